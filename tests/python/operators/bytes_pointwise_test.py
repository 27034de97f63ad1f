"""Pointwise operators on many elements of one byte, which run on them as they are stored, beside NumPy."""

import numpy as np
import pytest

import tenon

DTYPES = ["uint8", "int8", "bool"]
ARITHMETIC = ["add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"]
TRUTH = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"]
NUMPYS = {"sub": "subtract", "mul": "multiply", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
          "gt": "greater", "ge": "greater_equal"}  # fmt: skip


def operands(dtype, layout):
    """Pairs of arrays of some 40,000 elements, as they lie in memory."""
    rng = np.random.default_rng(17)
    shapes = {"dense": [(41003,)] * 2, "strided": [(82006,)] * 2, "transposed": [(211, 203)] * 2,
              "row": [(211, 203), (203,)], "column": [(211, 203), (211, 1)], "one": [(41003,), (1,)]}[layout]  # fmt: skip
    arrays = [rng.integers(0, 2 if dtype == "bool" else 256, s).astype("uint8").view(dtype) for s in shapes]
    if layout == "strided":
        return [a[::2] for a in arrays]
    return [a.T for a in arrays] if layout == "transposed" else arrays


def numpys(name, *arrays):
    return getattr(np, NUMPYS.get(name, name))(*arrays)


@pytest.mark.parametrize("layout", ["dense", "strided", "transposed", "row", "column", "one"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_of_two_are_numpys(dtype, layout):
    x, y = operands(dtype, layout)
    a, b = tenon.from_numpy(x), tenon.from_numpy(y)
    for name in ARITHMETIC + TRUTH:
        if dtype == "bool" and name == "sub":
            continue  # refused, as by NumPy
        got, want = getattr(tenon, name)(a, b), numpys(name, x, y)
        assert got.numpy().dtype == want.dtype and (got.numpy() == want).all(), name
        assert (got.numpy().view("uint8") == want.view("uint8")).all(), f"{name}: truth is 0 or 1"


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_may_lie_where_operands_do_or_be_of_other_dtypes(dtype):
    x, y = operands(dtype, "dense")
    a, b = tenon.from_numpy(x.copy()), tenon.from_numpy(y)
    assert (a.bitwise_xor_(b).numpy() == (x ^ y)).all()
    assert (a.numpy() == (x ^ y)).all()
    for out in ("uint8", "bool", "int32", "float32"):
        to = tenon.empty(x.shape, dtype=getattr(tenon, out))
        assert (tenon.lt(b, a, out=to).numpy() == (y < (x ^ y))).all(), out
    odd = tenon.zeros(2 * x.size, dtype=getattr(tenon, dtype))
    tenon.maximum(a, b, out=odd[1::2])
    assert (odd.numpy()[1::2] == np.maximum(x ^ y, y)).all() and not odd.numpy()[::2].any()


def test_operators_of_one_and_numbers_are_numpys():
    x, _ = operands("int8", "dense")
    a = tenon.from_numpy(x)
    assert (tenon.neg(a).numpy() == -x).all() and (tenon.abs(a).numpy() == np.abs(x)).all()
    assert (tenon.bitwise_not(a).numpy() == ~x).all() and (tenon.logical_not(a).numpy() == ~x.astype(bool)).all()
    assert ((a + 100).numpy() == x + np.int8(100)).all() and ((a < 3).numpy() == (x < 3)).all()
    assert (a.clamp(-5, 7).numpy() == x.clip(-5, 7)).all()
    m = tenon.from_numpy(x > 0)
    assert ((~m).numpy() == ~(x > 0)).all() and (m.logical_not().numpy() == ~(x > 0)).all()


def test_any_byte_but_zero_is_true():
    x = np.arange(40000).astype("uint8")
    truths = tenon.from_numpy(x.view(bool))
    other = tenon.ones(40000, dtype=tenon.bool)
    for got in (truths & other, truths.logical_and(other), truths.eq(other), truths.logical_not().logical_not()):
        assert (got.numpy().view("uint8") == (x != 0)).all()
