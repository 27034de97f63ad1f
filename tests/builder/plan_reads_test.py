"""cached_plan: what `reads=` names is part of what a plan depends on; nothing else that its function reads is compared."""

import types

import pytest

import tenon

X = 3.0 * tenon.ones(2)
factor = 2.0
config = types.SimpleNamespace(scale=2.0, inner=types.SimpleNamespace(axes=[0]))


def scaled(**options):
    return tenon.cached_plan(lambda g, x: g.mul(x, factor), **options)


@pytest.fixture(autouse=True)
def restore():
    yield
    globals()["factor"] = 2.0
    config.scale, config.inner.axes = 2.0, [0]


def test_a_global_is_part_of_the_key_where_it_is_named():
    global factor
    plan, other = scaled(reads="factor"), scaled()
    for factor, misses in ((2.0, 1), (4.0, 2), (2.0, 2), (8.0 / 2, 2)):  # both are kept
        assert plan(X).tolist() == [3.0 * factor] * 2
        assert plan.cache_info().misses == misses
        assert other(X).tolist() == [6.0] * 2
    assert other.cache_info().misses == 1


def test_closures_attributes_and_items():
    here = 2.0

    @tenon.cached_plan(reads=("here", "config.scale", "config.inner.axes"))
    def plan(g, x):
        return g.mul(g.mul(x, here + len(config.inner.axes)), config.scale)

    def check(misses):
        for _ in range(2):
            assert plan(X).tolist() == [3.0 * (here + len(config.inner.axes)) * config.scale] * 2
        assert plan.cache_info().misses == misses

    check(1)
    here = 5.0
    check(2)
    config.scale = 3.0
    check(3)
    config.inner.axes.append(1)
    check(4)
    here, config.scale, config.inner.axes = 2.0, 2.0, [0]
    check(4)


def test_an_int_is_no_float_and_minus_zero_no_zero():
    held = 2
    plan = tenon.cached_plan(lambda g, x: g.mul(x, held), reads=("held",))
    x = tenon.tensor([1, 2])
    assert plan(x).dtype == tenon.int64
    held = 2.0
    assert plan(x).dtype == tenon.float32
    held = 0.0
    assert str(plan(x).tolist()) == "[0.0, 0.0]"
    held = -0.0
    assert str(plan(x).tolist()) == "[-0.0, -0.0]"
    assert plan.cache_info().misses == 4


@pytest.mark.parametrize("values", [
    (1, True, 1.0, "1", [1], (1, 1), None, tenon.int8), ("", [], None, False, 0), ("a", "a\0", "b", "a" * 9),
], ids=["ones", "nothings", "texts"])  # fmt: skip
def test_values_of_all_kinds_are_told_apart(values):
    held = None
    plan = tenon.cached_plan(lambda g, x: (held, g.neg(x))[1], reads="held")
    for _ in range(2):
        for held in values:
            plan(X)
    assert plan.cache_info()[:2] == (len(values), len(values))


def test_methods_of_objects():
    class Maker:
        def graph(self, g, x):
            return g.mul(x, factor)

    plan = tenon.cached_plan(Maker().graph, reads="factor")
    assert plan(X).tolist() == [6.0] * 2
    globals()["factor"] = 3.0
    assert plan(X).tolist() == [9.0] * 2


def test_uids_of_arguments_do_not_change():
    g = scaled(reads="factor").find(X)
    assert g._get_variant_pack_uids_sorted()[0] == 1


def test_what_cannot_be_part_of_a_key_is_refused():
    with pytest.raises(TypeError, match=r"'config', which is no number, str, .*; name an attribute of it, or pass it"):
        scaled(reads="config", name="mine")(X)
    with pytest.raises(NameError, match="mine: `reads` names 'absent', which is neither a global nor a variable"):
        scaled(reads=("absent",), name="mine")(X)
    with pytest.raises(AttributeError, match="absent"):
        scaled(reads=("config.absent",))(X)
    with pytest.raises(TypeError, match=r"`reads` takes names such as 'EPS' or 'config.scale', not 'config\[0\]'"):
        scaled(reads="config[0]")
    with pytest.raises(ValueError, match="at most 16 arguments and reads together"):
        scaled(reads=("factor",) * 16)
    later = tenon.cached_plan(lambda g, x: g.mul(x, late), reads="late")
    with pytest.raises(NameError):
        later(X)
    late = 2.0
    assert later(X).tolist() == [6.0] * 2
