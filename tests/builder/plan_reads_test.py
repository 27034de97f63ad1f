"""cached_plan: what a function reads beside its arguments is compared before each call."""

import pytest

import tenon

X = 3.0 * tenon.ones(2)
factor = 2.0
table = {"scale": [2.0, (1, [5.0])], "names": {"a"}}


def helper(g, x):
    return g.mul(x, factor)


def scaled_by(read):
    """A plan of x times what `read()` gives, a number."""

    @tenon.cached_plan
    def scaled(g, x):
        return g.mul(x, read())

    return scaled


def test_closures_and_globals():
    global factor
    k, here = [2.0], 2.0

    @tenon.cached_plan
    def plan(g, x):
        return g.mul(g.mul(helper(g, x), k[0]), here)

    def check():
        for _ in range(2):
            assert plan(X).tolist() == [3.0 * factor * k[0] * here] * 2

    check()
    k[0] = 3.0
    check()
    k.insert(0, 7.0)
    check()
    here = 5.0
    check()
    factor = 4.0
    check()
    assert plan.cache_info() == (5, 5, 256, 1)
    factor, here, k[0] = 8.0 / 2, 10.0 / 2, 14.0 / 2  # equal numbers, other objects
    check()
    assert plan.cache_info() == (7, 5, 256, 1)
    factor = 2.0


@pytest.mark.parametrize("change, number", [
    (lambda t: t["scale"].__setitem__(0, 4.0), lambda t: t["scale"][0]),
    (lambda t: t["scale"][1][1].__setitem__(0, 6.0), lambda t: t["scale"][1][1][0]),
    (lambda t: t.__setitem__("more", 1), lambda t: float(len(t))),
    (lambda t: t["names"].add("b"), lambda t: float(len(t["names"]))),
    (lambda t: t.pop("names"), lambda t: float("names" in t)),
], ids=["item", "item of an item", "key", "element", "fewer"])  # fmt: skip
def test_containers(change, number):
    held = {"scale": [2.0, (1, [5.0])], "names": {"a"}}
    plan = scaled_by(lambda: number(held))

    def indirect():
        return number(held)

    for plan in (plan, scaled_by(indirect)):
        held.clear()
        held.update({"scale": [2.0, (1, [5.0])], "names": {"a"}})
        assert plan(X).tolist() == [3.0 * number(held)] * 2
        change(held)
        assert plan(X).tolist() == [3.0 * number(held)] * 2
        assert plan(X).tolist() == [3.0 * number(held)] * 2
        assert plan.cache_info()[:2] == (1, 2)


def test_an_int_is_no_float_and_minus_zero_no_zero():
    held = [2]
    plan = scaled_by(lambda: held[0])
    x = tenon.tensor([1, 2])
    assert plan(x).dtype == tenon.int64
    held[0] = 2.0
    assert plan(x).dtype == tenon.float32
    held[0] = 0.0
    assert str(plan(x).tolist()) == "[0.0, 0.0]"
    held[0] = -0.0
    assert str(plan(x).tolist()) == "[-0.0, -0.0]"


def test_objects_are_compared_as_such():
    class Settings:
        scale = 2.0

    settings = Settings()
    plan = scaled_by(lambda: settings.scale)
    plan(X)
    settings = Settings()
    plan(X)
    assert plan.cache_info().misses == 2


def test_what_a_function_notes_of_its_calls_plans_nothing():
    built, calls = [], 0

    @tenon.cached_plan
    def plan(g, x):
        nonlocal calls
        calls += 1
        built.append(x.get_dim())
        return g.neg(x)

    for _ in range(2):
        plan(X)
        plan(tenon.ones(3))
        calls += 10
        built.clear()
    assert plan.cache_info() == (2, 2, 256, 2)


def test_several_kinds_of_arguments_are_forgotten_together():
    k = 2.0
    plan = scaled_by(lambda: k)
    y = tenon.ones(3)
    plan(X), plan(y)
    k = 3.0
    assert plan(X).tolist() == [9.0] * 2 and plan(y).tolist() == [3.0] * 3
    k = 2.0
    assert plan.find(y) is not None and plan(y).tolist() == [2.0] * 3


def test_methods_and_what_is_not_set_yet():
    class Maker:
        def graph(self, g, x):
            return g.mul(x, later) if x.get_dim() == [3] else g.neg(x)

    plan = tenon.cached_plan(Maker().graph)
    assert plan(X).tolist() == [-3.0] * 2
    later = 2.0
    assert plan(tenon.ones(3)).tolist() == [2.0] * 3
    later = 4.0
    assert plan(tenon.ones(3)).tolist() == [4.0] * 3


def _negated(g, x):
    return g.neg(x)


def _doubled(g, x, by=2.0):
    return g.mul(x, by)


class Kind:
    scale = 2.0


step, kind, pick = _doubled, Kind, max


@pytest.mark.parametrize("change", [
    lambda: globals().update(step=_negated),
    lambda: setattr(_doubled, "__defaults__", (3.0,)),
    lambda: setattr(_doubled, "__code__", (lambda g, x, by: g.mul(g.neg(x), by)).__code__),
    lambda: globals().update(kind=type("Other", (), {"scale": 5.0})),
    lambda: globals().update(pick=min),
], ids=["function", "defaults", "code", "class", "builtin"])  # fmt: skip
def test_functions_and_classes_that_it_calls(change):
    global step, kind, pick

    def program(g, x):
        return g.mul(step(g, x), pick(kind.scale, 1.0))

    code = _doubled.__code__
    plan = tenon.cached_plan(program)
    try:
        for _ in range(2):
            assert plan(X).tolist() == [12.0, 12.0]
        change()
        assert plan(X).tolist() == tenon.cached_plan(program)(X).tolist() != [12.0, 12.0]
        assert plan.cache_info().misses == 2
    finally:
        step, kind, pick = _doubled, Kind, max
        _doubled.__defaults__, _doubled.__code__ = (2.0,), code
