"""compile(pure=True): what changes in Python between replays gives what the same lines give eager, and effects are not lost."""

import abc
import array
import collections
import functools
import sys
import types

import pytest
from pure_cases import Cases, alike, changed, warm, x

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


# Identity


@case
def one_list_or_two(c):
    f = c(lambda x, p, q: x * (2.0 if p is q else 3.0))
    a, b = [1.0], [1.0]
    return [f(x(), a, q) for q in (a, a, a, b, b, b, a)]


@case
def equal_floats_that_are_one_or_two(c):
    f = c(lambda x, p, q: x * (2.0 if p is q else 3.0))
    a, b = float("1.5"), float("1.5")
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
def a_tensor_looked_for_in_a_list(c):
    known = [(tenon.ones(1),)]
    f = c(lambda x, p: x * (2.0 if p in known else 3.0))
    return [f(x(), p) for p in (known[0], known[0], known[0], (None,), known[0])]


@case
def a_captured_float_by_its_identity(c):
    k, other = [float("2.5")], float("2.5")
    f = c(lambda x, p: x * (2.0 if p is k[0] else 3.0))
    first = k[0]
    before = [f(x(), first) for _ in range(4)]
    k[0] = other
    return before, f(x(), first)


@case
def addresses(c):
    a, b = [1.0], [1.0]
    f = c(lambda x, p: x * (2.0 if id(p) == id(a) else 3.0))
    return [f(x(), p) for p in (a, a, a, b, a)]


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


# Classes and methods


@case
def a_method_given_to_tensors(c):
    def put(k):
        tenon.Tensor.threefold = lambda self: self * k

    try:
        put(3)
        return changed(c, lambda x: x.threefold(), lambda: put(5))
    finally:
        del tenon.Tensor.threefold


@pytest.mark.parametrize("name", ["exp", "__add__", "backward"])
def test_a_method_of_tensors_replaced(name):
    old = getattr(tenon.Tensor, name)
    w = tenon.ones(2, requires_grad=True)

    def f(x):
        if name == "backward":
            return (w * x).sum().backward()
        return x.exp() + x

    def program(c):
        w.grad = None
        try:
            return changed(c, f, lambda: setattr(tenon.Tensor, name, lambda self, *_: self * 9)), w.grad
        finally:
            setattr(tenon.Tensor, name, old)

    alike(program)


@case
def variables_of_special_methods(c):
    """Methods that no name in the code leads to."""
    k = 1.0

    class Scaled:
        def __call__(self, x):
            return x * k

        def __enter__(self):
            return k

        def __exit__(self, *_):
            pass

        def __getattr__(self, name):
            return k + len(name)

    scaled = Scaled()

    def f(x):
        with scaled as held:
            return scaled(x) + held + scaled.missing

    def change():
        nonlocal k
        k = 2.0

    return changed(c, f, change)


@case
def a_property_of_a_metaclass(c):
    k = 1.0

    class Meta(type):
        @property
        def scale(cls):
            return k

    class Holder(metaclass=Meta):
        pass

    def change():
        nonlocal k
        k = 2.0

    return changed(c, lambda x: x * Holder.scale, change)


class Base(abc.ABC):  # noqa: B024
    pass


@case
def a_class_registered_with_an_abstract_one(c):
    class Thing:
        pass

    thing = Thing()
    return changed(c, lambda x, q: x * (2.0 if isinstance(q, Base) else 3.0), lambda: Base.register(Thing), thing)


# Containers found by a name


@case
def the_order_of_a_dict(c):
    d = {"a": 1.0, "b": 2.0}

    def change():
        d["a"] = d.pop("a")

    return changed(c, lambda x: x * list(d.values())[0], change)


@case
def the_order_of_an_ordered_dict(c):
    d = collections.OrderedDict(a=1.0, b=2.0)
    return changed(c, lambda x: x * next(iter(d.values())), lambda: d.move_to_end("a"))


@case
def an_attribute_that_is_written_beside_another(c):
    class Thing:
        scale, unused = 2.0, 0

    thing = Thing()
    thing.scale, thing.unused = 2.0, 0
    f = c(lambda x: x * thing.scale)
    out = []
    for i in range(8):
        thing.unused = i
        thing.scale = float("2") if i < 6 else 3.0
        out.append(f(x()))
    return out


@case
def the_order_of_attributes(c):
    thing = types.SimpleNamespace(a=1.0, b=2.0)

    def change():
        del thing.a
        thing.a = 1.0

    return changed(c, lambda x: x * next(iter(vars(thing).values())), change)


@case
def the_order_of_a_set(c):
    s = {0, 8}

    def change():
        s.clear()
        s.add(8)
        s.add(0)

    return changed(c, lambda x: x + list(s)[0], change)


@case
def a_mapping_proxy(c):
    d = {"a": 1.0}
    p = types.MappingProxyType(d)
    return changed(c, lambda x: x * p["a"], lambda: d.update(a=2.0))


@case
def an_array(c):
    a = array.array("d", [1.0])
    return changed(c, lambda x: x * a[0], lambda: a.__setitem__(0, 2.0))


@case
def a_cache(c):
    k = [1.0]

    @functools.lru_cache
    def read():
        return k[0]

    f = c(lambda x: x * read())
    out = warm(f)
    k[0] = 5.0
    out += warm(f)
    read.cache_clear()
    return out + warm(f), read.cache_info()


@case
def the_state_of_a_partial(c):
    def f(x, a, b=0.0):
        return x * a + b

    p = functools.partial(f, a=2.0)
    q = functools.partial(f, a=2.0)
    first = changed(c, p, lambda: p.__setstate__((f, (), {"a": 5.0}, {})))
    return first, changed(c, lambda x: q(x), lambda: q.__setstate__((f, (), {"a": 5.0, "b": 1.0}, {})))


# Names that are computed


VALUE = 1.0


@case
def globals_by_a_text(c):
    global VALUE
    VALUE = 1.0

    def change():
        global VALUE
        VALUE = 2.0

    return changed(c, lambda x: x * globals()["VALUE"], change)


@case
def globals_written_by_a_text(c):
    def f(x):
        globals()["VALUE"] = x * 2

    f, seen = c(f), []
    for k in range(5):
        f(x() * k)
        seen.append(VALUE)
    return seen


@case
def attributes_of_a_module_by_a_computed_name(c):
    module = types.ModuleType("module")
    module.k1 = 1.0
    return changed(c, lambda x: x * getattr(module, f"k{1}"), lambda: setattr(module, "k1", 2.0))


@case
def items_of_a_class_by_a_computed_name(c):
    class Holder:
        k1 = [1.0]

    return changed(c, lambda x: x * getattr(Holder, f"k{1}")[0], lambda: Holder.k1.__setitem__(0, 2.0))


@case
def attributes_of_a_function_by_a_computed_name(c):
    def helper():
        pass

    helper.k1 = 1.0
    return changed(c, lambda x: x * getattr(helper, f"k{1}"), lambda: setattr(helper, "k1", 2.0))


@case
def an_attribute_that_was_not_there(c):
    class Thing:
        pass

    thing, module = Thing(), types.ModuleType("module")

    def helper():
        pass

    def f(x):
        try:
            k = thing.scale
        except AttributeError:
            k = 1.0
        try:
            k += SURPRISE
        except NameError:
            pass
        return x * k * getattr(module, "scale", 1.0) + hasattr(helper, "scale")

    def change():
        thing.scale = 2.0

    def change_others():
        module.scale = 3.0
        helper.scale = 1
        globals()["SURPRISE"] = 5.0

    try:
        return changed(c, f, change), changed(c, f, change_others)
    finally:
        del globals()["SURPRISE"]


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
def texts_of_a_function(c):
    def helper(value: "int"):
        """Four"""

    f = lambda x: x * len(helper.__name__) * len(helper.__doc__) * len(helper.__annotations__)  # noqa: E731
    changes = (
        lambda: setattr(helper, "__name__", "other"),
        lambda: setattr(helper, "__doc__", "Another one"),
        lambda: helper.__annotations__.update(more="float"),
        lambda: setattr(helper, "__annotations__", {}),
    )
    return [changed(c, f, change) for change in changes]


@case
def the_class_of_a_module(c):
    class Module(types.ModuleType):
        scale = 2.0

    class Other(types.ModuleType):
        scale = 3.0

    class Odd(types.ModuleType):
        def __getattribute__(self, name):
            return 7.0

    module, plain_module = Module("module"), types.ModuleType("plain_module")
    plain_module.scale = 2.0
    changes = (
        lambda: vars(module).update(scale=9.0),
        lambda: delattr(module, "scale"),
        lambda: setattr(Module, "scale", 4.0),
        lambda: setattr(module, "__class__", Other),
        lambda: setattr(module, "__class__", Odd),
        lambda: setattr(plain_module, "__class__", type("Third", (types.ModuleType,), {"scale": property(lambda self: 5.0)})),
    )
    return [changed(c, lambda x: x * module.scale + x * plain_module.scale, change) for change in changes]


@case
def attributes_set_by_a_computed_name(c):
    held = types.SimpleNamespace()
    f, seen = c(lambda x: object.__setattr__(held, "la" + "st"[: len(x)], x * 3)), []
    for k in range(5):
        f(x() * k)
        seen.append(vars(held)["last"])
    return seen


@case
def a_namespace_that_is_compared_and_shown(c):
    one, other = types.SimpleNamespace(a=1), types.SimpleNamespace(a=1)
    f = c(lambda x: x * (2.0 if one == other else 3.0) + len(repr(one)))
    before = warm(f)
    one.a = 100
    return before, warm(f)


@case
def a_module_put_in_place_of_another(c):
    def f(x):
        import a_module_of_this_test

        return x * a_module_of_this_test.scale

    def put(scale):
        sys.modules["a_module_of_this_test"] = types.ModuleType("a_module_of_this_test")
        sys.modules["a_module_of_this_test"].scale = scale

    put(1.0)
    try:
        return changed(c, f, lambda: put(2.0))
    finally:
        del sys.modules["a_module_of_this_test"]


@pytest.mark.parametrize("name", case)
def test_as_eager(name):
    alike(case[name])
