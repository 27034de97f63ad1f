"""pow of special exponents, and remainders of floats of any size: exact, and the same however they are asked for."""

import numpy as np
import pytest
import tenon

FLOATS = ("float16", "bfloat16", "float32", "float64")
#: With what the exponent's formula must not get wrong.
BASES = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.3, 1e-20, -1e-20, 3e19, float("inf"), float("-inf"), float("nan")] * 3


def signs(t):
    return tenon.copysign(tenon.ones_like(t), t).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [2, 3, 1, 0.5, -1, 2.5, 0, -2])
def test_numbers_and_tensors_as_exponents_give_the_same_bits(dtype, exponent):
    x = tenon.tensor(BASES).to(getattr(tenon, dtype))
    by_number, by_tensor = x**exponent, tenon.pow(x, tenon.full_like(x, exponent))
    same = (by_number == by_tensor) | (by_number.isnan() & by_tensor.isnan())
    assert same.all() and signs(by_number[by_number == 0]) == signs(by_tensor[by_tensor == 0])
    # Beside other exponents in one vector, too.
    mixed = tenon.full_like(x, 2.5)
    mixed[::3] = exponent
    got = tenon.pow(x, mixed)[::3]
    want = by_tensor[::3]
    assert ((got == want) | (got.isnan() & want.isnan())).all()


def test_a_root_has_the_values_of_c():
    x = tenon.tensor([-0.0, float("-inf"), -1.0, 4.0])
    got = (x**0.5).tolist()
    assert str(got[0]) == "0.0" and got[1] == float("inf") and got[2] != got[2] and got[3] == 2


@pytest.mark.parametrize("exponent", [2, 3, 4, 0.5, -1])
def test_powers_have_derivatives(exponent):
    x = tenon.tensor([0.5, 2.0, 3.0], dtype=tenon.float64, requires_grad=True)
    assert tenon.autograd.gradcheck(lambda t: t**exponent, (x,))
    assert tenon.autograd.gradgradcheck(lambda t: t**exponent, (x,))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [2, 3, 4, 1, 0.5, -1, 2.5, 0, -2])
def test_derivatives_by_numbers_and_tensors_as_exponents_have_the_same_bits(dtype, exponent):
    x = tenon.tensor(BASES).to(getattr(tenon, dtype)).requires_grad_()
    grad = tenon.linspace(-2, 3, len(BASES)).to(getattr(tenon, dtype))
    (by_number,) = tenon.autograd.grad(x**exponent, x, grad)
    (by_tensor,) = tenon.autograd.grad(tenon.pow(x, tenon.full_like(x, exponent)), x, grad)
    same = (by_number == by_tensor) | (by_number.isnan() & by_tensor.isnan())
    assert same.all() and signs(by_number[by_number == 0]) == signs(by_tensor[by_tensor == 0])


@pytest.mark.parametrize("dtype,integer", [("float32", "uint32"), ("float64", "uint64")])
def test_remainders_are_exact(dtype, integer):
    rng = np.random.default_rng(11)
    numbers = np.dtype(dtype)
    top = np.iinfo(integer).max
    # Any bits: all exponents, denormals, infinities and NaN; then quotients that the fast way takes.
    a = rng.integers(0, top, 20011, dtype=integer, endpoint=True).view(numbers)
    b = rng.integers(0, top, 20011, dtype=integer, endpoint=True).view(numbers)
    a = np.concatenate([a, rng.uniform(-100, 100, 20000).astype(numbers), np.rint(rng.uniform(-9, 9, 5000)).astype(numbers)])
    b = np.concatenate([b, rng.uniform(-3, 3, 20000).astype(numbers), np.rint(rng.uniform(-4, 4, 5000)).astype(numbers)])
    # Quotients around the largest that the fast way takes, and just below whole numbers.
    digits = np.finfo(numbers).nmant
    near = rng.uniform(1, 2, 5000).astype(numbers)
    scale = numbers.type(2.0) ** rng.integers(digits - 2, digits + 2, 5000).astype(numbers)
    a = np.concatenate([a, near * scale, np.nextafter(near * 7, numbers.type(0))])
    b = np.concatenate([b, np.roll(near, 1), near])
    with np.errstate(all="ignore"):
        want = np.fmod(a, b)
    got = tenon.fmod(tenon.from_numpy(a), tenon.from_numpy(b)).numpy()
    same = (got.view(integer) == want.view(integer)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), (a[~same][0], b[~same][0], got[~same][0], want[~same][0])
    with np.errstate(all="ignore"):
        want = np.where((want != 0) & ((b < 0) != (want < 0)), want + b, want)
    got = tenon.remainder(tenon.from_numpy(a), tenon.from_numpy(b)).numpy()
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    assert same.all(), (a[~same][0], b[~same][0], got[~same][0], want[~same][0])
