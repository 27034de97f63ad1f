"""amax, amin, max and min where values are equal or undefined, over every way of walking through memory."""

import numpy as np
import pytest

import tenon

FLOATS = ["float16", "bfloat16", "float32", "float64"]


def layouts(x):
    """The same rows of a matrix in memory of other orders."""
    yield x
    yield x.t().contiguous().t()
    yield x.flip(0).contiguous().flip(0)
    yield tenon.stack([x, x], 2)[:, :, 0]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [2, 5, 33, 1000, 1024, 2100])
def test_zero_is_above_minus_zero(dtype, n):
    x = tenon.full((3, n), -0.0, dtype=getattr(tenon, dtype))
    x[1, n - 1] = 0.0
    x[2, 0] = 0.0
    for y in layouts(x):
        assert np.signbit(np.asarray(y.amax(1).to(tenon.float32))).tolist() == [True, False, False]
        assert np.signbit(np.asarray(y.amin(1).to(tenon.float32))).tolist() == [True, True, True]
        assert np.signbit(np.asarray((-y).amin(1).to(tenon.float32))).tolist() == [False, True, True]
        # With an index: the element there, the first of those that are equal.
        values, indices = y.max(1)
        assert indices.tolist() == [0, 0, 0]
        assert np.signbit(np.asarray(values.to(tenon.float32))).tolist() == [True, True, False]
        values, indices = y.t().min(0)
        assert indices.tolist() == [0, 0, 0]
        assert np.signbit(np.asarray(values.to(tenon.float32))).tolist() == [True, True, False]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [2, 33, 1000, 1024, 2100])
def test_nan_wins_in_every_layout(dtype, n):
    x = tenon.full((3, n), float("inf"), dtype=getattr(tenon, dtype))
    x[1, n // 2] = float("nan")
    x[2, n - 1] = -float("inf")
    for y in layouts(x):
        assert np.isnan(np.asarray(y.amax(1).to(tenon.float32))).tolist() == [False, True, False]
        assert y.amin(1).tolist()[0] == float("inf") and y.amin(1).tolist()[2] == -float("inf")
        assert y.max(1).indices.tolist()[1] == n // 2 and y.min(1).indices.tolist()[1] == n // 2


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", *FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 1), (70, 4), (400, 31), (5, 32), (5, 33), (3, 1024), (2, 2500)])
def test_sums_have_the_same_bits_in_every_layout(dtype, shape):
    rng = np.random.default_rng(3)
    if dtype == "bool":
        array = rng.integers(0, 2, shape).astype(bool)
    elif "int" in dtype:
        array = rng.integers(0, 100, shape).astype(dtype)
    else:
        array = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.startswith("complex") else 0)
    x = tenon.tensor(array).to(getattr(tenon, dtype))
    wide = x.to({"float16": tenon.float32, "bfloat16": tenon.float32}.get(dtype, x.sum().dtype))
    want, whole = wide.sum(1), wide.sum()
    for y in layouts(x):
        assert tenon.equal(y.sum(1), want.to(y.sum(1).dtype)), (dtype, y.stride())
        assert tenon.equal(y.sum(), whole.to(y.sum().dtype))
        assert tenon.equal(y.t().sum(0), y.sum(1))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS, "complex64"])
@pytest.mark.parametrize("shape", [(70, 8), (33, 130), (2, 40, 300), (1000, 9)])
def test_reductions_across_rows_are_numpys(dtype, shape):
    """Rows of neighbouring results are converted together: wholly, in a last strip, and in groups."""
    rng = np.random.default_rng(5)
    whole = rng.integers(0, 3, shape) * rng.integers(0, 2, shape)
    whole[..., 3] = 0  # a column of nothing else
    whole[..., 5] = 1
    x = tenon.tensor(whole).to(getattr(tenon, dtype))
    dim = len(shape) - 2
    assert (np.asarray(x.any(dim)) == whole.any(dim)).all() and (np.asarray(x.all(dim)) == whole.all(dim)).all()
    if dtype == "bool" or dtype == "complex64":
        return
    assert (np.asarray(x.amax(dim).to(tenon.int64)) == whole.max(dim)).all()
    assert (np.asarray(x.amin(dim).to(tenon.int64)) == whole.min(dim)).all()
    few = np.where(whole == 2, 1, whole) + (np.arange(shape[-1]) == 5) * (np.arange(shape[dim]) % 7 == 1)[:, None]
    y = tenon.tensor(few[..., :4, :]).to(getattr(tenon, dtype))
    assert (np.asarray(y.prod(dim).to(tenon.int64)) == few[..., :4, :].prod(dim)).all()
