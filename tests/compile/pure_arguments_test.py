"""compile(pure=True): the structure and the identity of arguments, what they hold, and effects on what a program has captured."""

import collections
import types
import warnings

import numpy
import pytest
from pure_cases import Cases, alike, x

import tenon
from tenon import nn

case = Cases()


# Containers among the arguments


def _add(out, value):
    out += [value]


WRITES = {
    "append": lambda out, v: out.append(v),
    "add": _add,
    "item": lambda out, v: out.__setitem__(0, v),
    "equal item": lambda out, v: out.__setitem__(0, 1.0 if out[0] else v),
    "insert": lambda out, v: out.insert(0, v),
    "clear": lambda out, v: out.clear(),
    "pop": lambda out, v: out.pop(),
    "sort": lambda out, v: out.sort(),
    "reverse": lambda out, v: out.reverse(),
}


@pytest.mark.parametrize("what", WRITES)
def test_writes_to_a_list_among_the_arguments(what):
    def program(c):
        f = c(lambda x, out: WRITES[what](out, x * 3))
        seen = []
        for _ in range(5):
            out = [3.0, 2.0]
            f(x(), out)
            seen.append(out)
        return seen

    alike(program)


@case
def writes_to_a_dict_among_the_arguments(c):
    def f(x, out):
        out["a"] = x * 3

    f, seen = c(f), []
    for _ in range(5):
        out = {"a": None, "b": 2.0}
        f(x(), out)
        seen.append(list(out.items()))
    return seen


@case
def the_order_of_a_dict_among_the_arguments_changed(c):
    def f(x, out):
        out["a"] = out.pop("a")
        return x * 2

    f, seen = c(f), []
    for _ in range(5):
        out = {"a": 1.0, "b": 2.0}
        f(x(), out)
        seen.append(list(out.items()))
    return seen


@case
def tensors_of_a_list_swapped(c):
    """Captured with two names of one tensor, which cannot show that it is done."""
    f, seen = c(lambda x, pair: pair.reverse()), []
    one, two = x(), x() + 1
    for pair in ([one, one], [one, one], [one, one], [one, two]):
        f(x(), pair)
        seen.append([t is one for t in pair])
    return seen


@case
def writes_deep_in_the_arguments(c):
    f, seen = c(lambda x, batch: batch["out"][0].append(x * 2)), []
    for _ in range(5):
        batch = {"out": ([],)}
        f(x(), batch)
        seen.append(batch)
    return seen


# Where tensors begin in their storage


def batches(rows=4, width=4):
    whole = tenon.arange(80.0).reshape(-1, width)
    return whole, [whole[i * rows : (i + 1) * rows] for i in range(80 // width // rows)]


def test_batches_of_one_tensor_share_a_replay():
    whole, parts = batches()
    f = tenon.compile(lambda x: (x.exp() * 2 + x.sum(), x.mm(x.t())), pure=True)
    for x in parts:
        y, product = f(x)
        assert y.equal(x.exp() * 2 + x.sum()) and product.equal(x.mm(x.t()))
    assert f.explain().of("replays") == [{"event": "replays", "count": 1, "runs": 3}]


@case
def batches_that_are_written(c):
    whole, parts = batches()
    f = c(lambda x: x.mul_(2).add_(1))
    seen = [f(x) for x in parts]
    return whole, seen


@case
def two_parts_of_one_tensor(c):
    """As far from each other as before, or not."""
    whole, parts = batches()
    f = c(lambda x, y: x * 2 + y)
    seen = [f(parts[i], parts[i + 1]) for i in range(4)] + [f(parts[1], parts[k]) for k in (3, 4, 1, 2, 0)]
    return seen, [f(parts[i], parts[i].clone()) for i in range(5)]


@case
def an_offset_that_the_program_reads(c):
    _, parts = batches()
    f = c(lambda x: x * x.storage_offset())
    return [f(x) for x in parts[1:]]


@case
def an_offset_from_the_storage_s_begin(c):
    _, parts = batches()
    f, g = c(lambda x: x.as_strided((2, 2), (1, 2), 0) * 2), c(lambda x: x.as_strided((2,), (1,), x.storage_offset() + 1) * 2)
    return [(f(x), g(x)) for x in (*parts[1:], *parts)]


@case
def views_of_batches_are_results(c):
    whole, parts = batches()
    f = c(lambda x: (x[1:], (x * 2)[1:]))
    seen = [f(x) for x in parts]
    whole.add_(1)
    return seen


@case
def parts_at_odd_places(c):
    whole = tenon.arange(40.0)
    f = c(lambda x: x.exp() + x.sum())
    return [f(whole[i : i + 8]) for i in (1, 1, 1, 5, 2, 3, 4, 8, 9, 13)]


@case
def parts_of_other_tensors(c):
    f = c(lambda x: x.exp() + 1)
    return [f(tenon.arange(40.0)[i : i + 8] * 1.0 if i == 3 else tenon.arange(40.0 + i)[i : i + 8]) for i in range(0, 32, 4)]


# Identity


@case
def one_list_or_two(c):
    f = c(lambda x, p, q: x * (2.0 if p is q else 3.0))
    a, b = [1.0], [1.0]
    return [f(x(), a, q) for q in (a, a, a, b, b, b, a)]


@case
def one_tensor_or_two_with_nothing_read(c):
    f = c(lambda x, p, q: x * (2.0 if p is q else 3.0))
    a, b = tenon.ones(1), tenon.ones(1)
    return [f(x(), a, q) for q in (a, a, a, b, b, b, a)]


SENTINEL: list = []


DEFAULT = tenon.ones(1)


@case
def a_list_as_a_sentinel(c):
    f = c(lambda x, p=None: x * (2.0 if p is SENTINEL else 3.0))
    return [f(x(), p) for p in (SENTINEL, SENTINEL, SENTINEL, [], [], [], SENTINEL)]


@case
def a_tensor_as_a_sentinel(c):
    f = c(lambda x, p=None: x * (2.0 if p is DEFAULT else 3.0))
    return [f(x(), p) for p in (DEFAULT, DEFAULT, DEFAULT, DEFAULT.clone(), DEFAULT)]


@case
def results_that_are_the_programs_own_lists(c):
    own, given = [1], [2]
    f = c(lambda x, p: (x * 2, own, p, (p, p)))
    seen = []
    for _ in range(5):
        out = f(x(), given)
        seen.append((out[0], out[1] is own, out[2] is given, out[3][0] is given, out[3][1] is given))
    return seen


@case
def one_list_twice_in_a_result(c):
    def f(x):
        made = [x * 2]
        return made, made

    f = c(f)
    return [a is b for a, b in (f(x()) for _ in range(5))]


def test_an_argument_in_the_place_of_an_object_that_is_gone():
    """What was in reach of the program and has died is no argument, although a new one may get its address."""
    held = types.SimpleNamespace(last=None)
    f = tenon.compile(lambda x, p: x * len(vars(held)) * p[0], pure=True)
    for k in range(2):
        held.last = [k]
        f(x(), [1.0])
    held.last = None
    for _ in range(10):
        f(x(), [1.0])
    assert f.explain().of("replays") == [{"event": "replays", "count": 1, "runs": 10}]


# Effects on classes and objects


class _Counted(nn.Module):
    calls = 0

    def forward(self, x):
        _Counted.calls += 1
        return x * _Counted.calls

    @classmethod
    def count(cls, x):
        cls.calls += 1
        return x * cls.calls


def _set_by_text(x):
    setattr(_Counted, "calls", _Counted.calls + 1)
    return x * _Counted.calls


def _set_by_type(x):
    type.__setattr__(_Counted, "calls", _Counted.calls + 1)
    return x * _Counted.calls


def _toggled(x):
    _Counted.calls = 1 - _Counted.calls
    return x * _Counted.calls


def _kept(x):
    _Counted.last = x * 2
    return x + 1


def _added_and_removed(x):
    if hasattr(_Counted, "more"):
        del _Counted.more
        return x
    _Counted.more = 1
    return x * 2


@pytest.mark.parametrize(
    "program", [_Counted(), _Counted.count, _set_by_text, _set_by_type, _toggled, _kept, _added_and_removed]
)
def test_writes_to_classes_are_effects(program):
    def results(c):
        _Counted.calls = 0
        _Counted.last = None
        f = c(lambda x: program(x))
        seen = [f(tenon.full((1,), float(i))) for i in range(6)]
        return seen, _Counted.calls, _Counted.last

    alike(results)


@case
def attributes_set_by_a_computed_name(c):
    held = types.SimpleNamespace()
    f, seen = c(lambda x: object.__setattr__(held, "la" + "st"[: len(x)], x * 3)), []
    for k in range(5):
        f(x() * k)
        seen.append(vars(held)["last"])
    return seen


# Objects among the arguments


@case
def an_object_whose_fields_change(c):
    batch = types.SimpleNamespace(x=tenon.ones(2), scale=2.0, names=["a"])
    f, seen = c(lambda batch: batch.x * batch.scale + len(batch.names)), []
    for k in range(12):
        if k == 4:
            batch.x = tenon.ones(2) * 5
        if k == 6:
            batch.scale = 3.0
        if k == 8:
            batch.names.append("b")
        if k == 10:
            batch.more = 1
        seen.append(f(batch))
    return seen


@case
def an_ordered_dict_that_is_filled_again(c):
    batch = collections.OrderedDict(x=tenon.ones(2), scale=2.0)
    f, seen = c(lambda batch: batch["x"] * batch["scale"]), []
    for k in range(8):
        if k > 3:
            batch["x"] = tenon.ones(2) * k
        seen.append(f(batch))
    return seen


@case
def an_attribute_of_an_argument_and_a_list_in_it(c):
    t = x()
    t.scales = [1.0]
    f = c(lambda x: x * x.scales[0])
    before = [f(t) for _ in range(5)]
    t.scales[0] = 2.0
    return before, f(t)


@pytest.mark.parametrize(
    ("argument", "kind"), [(numpy.ones(2), "numpy.ndarray"), ({1, 2}, "builtins.set"), (iter([1.0, 2.0, 3.0, 4.0]), "builtins.list_iterator")]
)
def test_an_argument_whose_contents_cannot_be_compared(argument, kind):
    f = tenon.compile(lambda x, batch: x * list(batch)[0] if kind != "builtins.list_iterator" else x * next(batch), pure=True)
    with pytest.warns(UserWarning, match=f"its argument `batch` is a {kind}, whose contents cannot be compared: pass tensors"):
        for _ in range(3):
            f(x(), argument)


def test_a_scalar_of_numpy_never_changes():
    f, scale = tenon.compile(lambda x, scale: x * float(scale), pure=True), numpy.float32(2.0)
    for _ in range(4):
        assert f(x(), scale).tolist() == [2.0, 2.0]
    assert f(x(), numpy.float32(3.0)).tolist() == [3.0, 3.0]
    assert f.explain().of("replays") == [{"event": "replays", "count": 2, "runs": 2}]


def test_more_objects_than_it_looks_through():
    known = [[i] for i in range(30_000)]
    f = tenon.compile(lambda x: x * len(known), pure=True)
    with pytest.warns(UserWarning, match="it may use more than 20,000 objects, the last one in `known"):
        for _ in range(3):
            f(x())


def test_names_lead_into_the_program_s_own_code_alone():
    """A global of an installed package, whose functions it names, is no reason to refuse."""
    f = tenon.compile(lambda x: x * float(numpy.float32(2.0)) + len(pytest.__name__), pure=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            f(x())
    assert f.explain().of("replays")[0]["runs"] == 2


@pytest.mark.parametrize("name", case)
def test_as_eager(name):
    alike(case[name])
