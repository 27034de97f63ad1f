"""Nodes that compute in whole numbers take whole numbers that their type holds, and refuse all others alike."""

import itertools
import math

import numpy as np
import pytest

import tenon
from tenon.graph import pygraph

TWO = ["add", "add_square", "bias", "max", "min", "mod", "mul", "pow", "scale", "sub"]
COMPARISONS = ["cmp_eq", "cmp_ge", "cmp_gt", "cmp_le", "cmp_lt", "cmp_neq"]
TYPES = [tenon.uint8, tenon.int8, tenon.int16, tenon.int32, tenon.int64]
BITS = {tenon.uint8: (0, 255), tenon.int8: (-128, 127), tenon.int16: (-(2**15), 2**15 - 1), tenon.int32: (-(2**31), 2**31 - 1)}


def called(kind, place, x, number, compute=None):
    """The result of a node that takes the tensor x and, at one place, a number or what `number(graph)` makes."""
    g = pygraph()
    t = g.tensor_like(x)
    made = number(g) if callable(number) else number
    given = [t] * (3 if kind == "binary_select" else 2)
    given[place] = made
    y = getattr(g, kind)(*given, compute_data_type=compute).set_output(True)
    g.build()
    out = tenon.empty(y.get_dim(), dtype=y.get_data_type())
    g.execute({t: x, y: out}, tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8))
    return out


def beyond(dtype):
    low, high = BITS[dtype]
    return low - 1, high + 1, 2**40


@pytest.mark.parametrize("dtype", BITS, ids=str)
@pytest.mark.parametrize("kind", [*TWO, *COMPARISONS, "binary_select"])
def test_a_number_beyond_the_type_is_refused(kind, dtype):
    x = tenon.tensor([0, 1, 2], dtype=dtype)
    for place, compute, number in itertools.product((0, 1), (None, dtype), beyond(dtype)):
        with pytest.raises(ValueError, match=f"node '{kind}_0': {kind}: it computes in {dtype}, which cannot hold input `\\w+` of {number};".replace("tenon.", "")):
            called(kind, place, x, number, compute)


@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_quotients_have_numbers_of_the_compute_type_where_one_is_set(dtype):
    x = tenon.tensor([1, 2, 4], dtype=dtype)
    for place, number in itertools.product((0, 1), beyond(dtype)):
        with pytest.raises(ValueError, match="div: it computes in .* which cannot hold input `[ab]` of"):
            called("div", place, x, number, dtype)
        # A quotient is a floating-point number, and so is what it is computed from.
        wanted = [number / n if place == 0 else n / number for n in (1, 2, 4)]
        np.testing.assert_allclose(called("div", place, x, number).numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_the_ends_of_a_type_are_numbers_of_it(dtype):
    low, high = BITS[dtype]
    x = tenon.tensor([0, 1, 2], dtype=dtype)
    for place, compute in itertools.product((0, 1), (None, dtype)):
        assert called("max", place, x, high, compute).tolist() == [high] * 3
        assert called("min", place, x, low, compute).tolist() == [low] * 3
        assert called("mod", 1, x, high, compute).tolist() == [0, 1, 2]
        assert called("cmp_eq", place, x, high, compute).tolist() == [False] * 3
        assert called("add", place, x, True, compute).tolist() == [1, 2, 3]
    assert called("binary_select", 0, x, high).tolist() == [0, high, high]
    assert called("binary_select", 1, x, low).tolist() == [low, 1, 2]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("kind", [*TWO, *COMPARISONS, "div", "binary_select"])
def test_fractions_and_what_is_no_number_are_refused(kind, dtype):
    x = tenon.tensor([0, 1, 2], dtype=dtype)
    for place, number in itertools.product((0, 1), (1.5, math.nan, math.inf, -math.inf)):
        with pytest.raises(TypeError, match=f"{kind}: it computes in .* and input `\\w+` is float64"):
            called(kind, place, x, number, dtype)
    for place in (0, 1):
        with pytest.raises(ValueError, match=f"{kind}: a number is {2**70}, expected an int from"):
            called(kind, place, x, 2**70, dtype)


@pytest.mark.parametrize("kind", [*TWO, *COMPARISONS, "binary_select"])
def test_a_number_of_a_run_has_no_wider_type(kind):
    x = tenon.tensor([0, 1, 2], dtype=tenon.int32)
    for place, compute in itertools.product((0, 1), (None, tenon.int32)):
        wide = "cannot hold each int64 that a run may bring for input `\\w+`; declare the number as int32"
        with pytest.raises(TypeError, match=wide):
            called(kind, place, x, lambda g: g.tensor(is_pass_by_value=True, data_type=tenon.int64), compute)


def test_numbers_that_count_as_bools_are_not_converted_first():
    x = tenon.tensor([0, 1, 2], dtype=tenon.int32)
    for number, place in itertools.product((2**40, 256, 0.5, math.nan, -1), (0, 1)):
        assert called("logical_and", place, x, number).tolist() == [False, True, True]
        assert called("logical_or", place, x, number).tolist() == [True, True, True]
    for number in (2**40, 256, 0.5):
        assert called("binary_select", 2, x, number).tolist() == [0, 1, 2]


def test_a_mask_has_no_part_in_the_type_of_a_node():
    x, mask = tenon.tensor([5, 6, 7], dtype=tenon.int8), tenon.tensor([0, 2**40, 1])
    g = pygraph()
    t, m = g.tensor_like(x), g.tensor_like(mask)
    with pytest.raises(ValueError, match="computes in int8, which cannot hold input `input1` of 300"):
        g.binary_select(t, 300, m).set_output(True)
        g.validate()
    g = pygraph()
    t, m = g.tensor_like(x), g.tensor_like(mask)
    y = g.binary_select(t, 300, m).set_data_type(tenon.int32).set_output(True)  # computes in the type of its result
    g.build()
    out = tenon.empty(3, dtype=tenon.int32)
    g.execute({t: x, m: mask, y: out}, tenon.empty(64, dtype=tenon.uint8))
    assert out.tolist() == [300, 6, 7]


def test_numbers_with_a_type_are_values_of_it():
    for value, dtype in ((-1, tenon.uint8), (256, tenon.uint8), (2.0**40, tenon.int32), (math.inf, tenon.int64), (2.0**63, tenon.int64), (2, tenon.bool)):
        g = pygraph()
        g.add(g.tensor(dim=[2], data_type=tenon.float32), g.tensor_scalar(value, dtype)).set_output(True)
        with pytest.raises((ValueError, TypeError), match="tensor_scalar: number .* which its data type .* cannot hold"):
            g.validate()
    with pytest.raises(ValueError, match="tensor_scalar: `value` is an int of 3001 bits, expected"):
        pygraph().tensor_scalar(2**3000)


@pytest.mark.parametrize("kind", ["relu", "relu_backward"])
def test_attributes_that_are_compared_with_whole_numbers(kind):
    def made(compute, **attributes):
        g = pygraph()
        x = g.tensor(dim=[3], data_type=tenon.int32)
        y = getattr(g, kind)(*[x] * (2 if "backward" in kind else 1), compute_data_type=compute, **attributes)
        y.set_output(True)
        g.validate()
        return y.get_data_type()

    for name in ("lower_clip", "upper_clip", "negative_slope"):
        with pytest.raises(ValueError, match=f"{kind}: it computes in int32, which cannot hold attribute `{name}` of {2**31};"):
            made(None, **{name: 2**31})
        for value in (0.5, math.inf):
            with pytest.raises(TypeError, match=f"it computes in int32 .* attribute `{name}` is the float"):
                made(tenon.int32, **{name: value})
        with pytest.raises(ValueError, match=f"{kind}: `{name}` is NaN"):
            made(tenon.int32, **{name: math.nan})
    assert made(tenon.int32, lower_clip=-(2**31), upper_clip=2**31 - 1) == tenon.int32


def test_indices_that_the_result_cannot_hold():
    def indices(size, dtype):
        g = pygraph()
        y = g.gen_index(g.tensor(dim=[size], data_type=tenon.float32, uid=1), axis=0).set_data_type(dtype).set_output(True)
        g.build()
        out = tenon.empty(size, dtype=dtype)
        g.execute({1: tenon.zeros(size), y: out})
        return out.tolist()

    for dtype, (_, high) in [*BITS.items()][:2]:
        assert indices(high + 1, dtype) == [*range(high + 1)]
        with pytest.raises(ValueError, match=f"gen_index: its data type .* cannot hold the last index of dimension 0, {high + 1}"):
            indices(high + 2, dtype)
    assert indices(0, tenon.uint8) == []
