"""bincount beside NumPy's, which takes what PyTorch's takes; randint with a generator of its own."""

import numpy as np
import pytest

import tenon


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("minlength", [0, 3, 40])
def test_bincount_counts(dtype, minlength):
    drawn = np.random.default_rng(1).integers(0, 20, 200).astype(dtype)
    for numbers in (drawn, drawn[::-3], drawn[:0]):
        found = tenon.bincount(tenon.tensor(numbers), minlength=minlength)
        assert found.dtype is tenon.int64 and found.tolist() == np.bincount(numbers, minlength=minlength).tolist()
    assert tenon.tensor(drawn).bincount().tolist() == np.bincount(drawn).tolist()


@pytest.mark.parametrize("dtype, result", [("float32", "float32"), ("float64", "float64"), ("int64", "float64"), ("float16", "float64"), ("bool", "float64")])
def test_bincount_adds_weights(dtype, result):
    numbers, weights = np.array([3, 1, 3, 0]), np.array([0.5, 1, 4, 0]).astype(dtype)
    found = tenon.bincount(tenon.tensor(numbers), tenon.tensor(weights), minlength=6)
    assert found.dtype is getattr(tenon, result)
    assert found.tolist() == np.bincount(numbers, weights, 6).tolist()


@pytest.mark.parametrize("call, text", [
    (lambda: tenon.bincount(tenon.tensor([1, -2])), "bincount: expected no negative numbers, got -2"),
    (lambda: tenon.bincount(tenon.ones(2)), r"bincount: expected a vector of integers, got float32 \[2\]"),
    (lambda: tenon.bincount(tenon.tensor([True])), r"bincount: expected a vector of integers, got bool \[1\]"),
    (lambda: tenon.bincount(tenon.tensor([[1]])), r"bincount: expected a vector of integers, got int64 \[1, 1\]"),
    (lambda: tenon.bincount(tenon.tensor([1]), minlength=-1), "bincount: minlength must not be negative, got -1"),
    (lambda: tenon.bincount(tenon.tensor([1]), tenon.ones(2)), r"bincount: weights must have the input's shape \[1\], got float32 \[2\]"),
])  # fmt: skip
def test_bincount_refuses(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("arguments", [(10,), (3, 10)])
def test_randint_draws_from_a_generator(arguments):
    """What the default generator draws from the same place; neither moves the other."""
    tenon.manual_seed(7)
    wanted = tenon.randint(*arguments, (50,))
    before = tenon.get_rng_state()
    generator = tenon.Generator().manual_seed(7)
    first, second = (tenon.randint(*arguments, (50,), generator=generator) for _ in range(2))
    assert tenon.equal(first, wanted) and not tenon.equal(second, wanted)
    assert tenon.equal(tenon.get_rng_state(), before)
    narrow = tenon.randint(*arguments, size=(50,), generator=generator.manual_seed(7), dtype=tenon.int8)
    assert narrow.dtype is tenon.int8 and tenon.equal(narrow.long(), wanted)
    out = tenon.empty(50, dtype=tenon.int64)
    assert tenon.randint(*arguments, (50,), generator=generator.manual_seed(7), out=out) is out and tenon.equal(out, wanted)
    assert tenon.randint(*arguments, (2,), generator=None).shape == (2,)
