"""tenon.special at the far ends of its arguments: subnormal, huge and infinite numbers, against mpmath."""

import math

import mpmath as mp
import numpy as np
import pytest
import tenon
from tenon import special

inf = math.inf
LARGEST = float(np.finfo(np.float64).max)


def _values(f, points):
    return f(tenon.tensor(points, dtype=tenon.float64)).tolist()


def test_log_ndtr_goes_on_until_its_value_overflows():
    points = [-1e9, -1e18, -1e100, -1e153, -1e154, -1.8e154, -1.89e154]
    expected = [float(-mp.mpf(x) ** 2 / 2 - mp.log(-x * mp.sqrt(2 * mp.pi))) for x in points]
    np.testing.assert_allclose(_values(special.log_ndtr, points), expected, rtol=4e-16)
    assert _values(special.log_ndtr, [-1.9e154, -LARGEST, -inf]) == [-inf] * 3
    assert _values(special.log_ndtr, [LARGEST]) == [0]


def test_digamma_of_subnormal_numbers_is_their_negated_inverse():
    points = [5e-324, 1e-310, -5e-324, -1e-310, 5.6e-309, -5.6e-309, 1e-308, -1e-308]
    expected = [float(-1 / mp.mpf(x)) for x in points]
    assert expected[:4] == [-inf, -inf, inf, inf] and max(map(abs, expected[4:])) < inf
    np.testing.assert_allclose(_values(special.digamma, points), expected, rtol=4e-16)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_polygamma_falls_as_a_power_as_far_as_numbers_reach(n):
    points = [1e5, 1e12, 2.0**59, 1e18, 1e19, 1e40, 1e60, 1e100, 1e150, 1e160, 1e300, LARGEST]
    expected = [(-1) ** (n + 1) * mp.factorial(n - 1) / mp.mpf(x) ** n * (1 + n / (2 * mp.mpf(x)) + n * (n + 1) / (12 * mp.mpf(x) ** 2)) for x in points]
    for x, exact, result in zip(points, expected, _values(lambda x: special.polygamma(n, x), points)):
        assert abs(result - exact) <= 8 * mp.mpf(2) ** -53 * abs(exact) + math.factorial(n) * mp.mpf(2) ** -1074, x
    poles = [-inf, -LARGEST, -1e20, -3.0]
    assert _values(lambda x: special.polygamma(n, x), poles) == [inf if n % 2 else -inf] * 4 and _values(lambda x: special.polygamma(n, x), [inf]) == [0]


def test_zeta_far_out_is_an_inverse_power():
    for s, q in [(1.5, 1e200), (2.0, 1e300), (17.5, 2.0**59), (17.5, 2.0**60), (1 + 2.0**-40, 1e300), (3.0, 1e105)]:
        exact = mp.mpf(q) ** (1 - mp.mpf(s)) / (mp.mpf(s) - 1) * (1 + (mp.mpf(s) - 1) / (2 * mp.mpf(q)))
        assert abs(_values(lambda q, s=s: special.zeta(s, q), [q])[0] / exact - 1) < 1e-15, (s, q)


def _airy(x, slope):
    """By the expansion for large -x (DLMF 9.7.9 and 9.7.10)."""
    with mp.workdps(150):
        v = -mp.mpf(x)
        z = 2 * v ** mp.mpf(1.5) / 3
        root = mp.sqrt(mp.sqrt(v))
        if slope:
            return -root / mp.sqrt(mp.pi) * (mp.cos(z + mp.pi / 4) - 7 / (72 * z) * mp.sin(z + mp.pi / 4))
        return (mp.sin(z + mp.pi / 4) - 5 / (72 * z) * mp.cos(z + mp.pi / 4)) / (root * mp.sqrt(mp.pi))


@pytest.mark.parametrize("slope", [False, True])
def test_the_airy_function_oscillates_below_two_to_the_33(slope):
    rng = np.random.default_rng(5)
    exponents = np.concatenate([rng.uniform(33, 36, 20), rng.uniform(36, 68, 20)])
    points = -np.exp2(exponents)
    x = tenon.tensor(points, requires_grad=True)
    results = special.airy_ai(x)
    if slope:
        (results,) = tenon.autograd.grad(results.sum(), x)
    for at, exponent, result in zip(points, exponents, results.tolist()):
        envelope = abs(at) ** (0.25 if slope else -0.25) / math.sqrt(math.pi)
        # The angle, a power of 3/2, is right to 2^-104 of its size.
        bound = 3 * 2.0**-53 + 2.0 ** (1.5 * exponent - 104)
        assert abs(result - _airy(at, slope)) <= bound * envelope, at


def test_the_airy_function_stays_inside_its_envelope():
    points = [-(2.0**k) * 1.37 for k in range(33, 1024, 9)]
    for x, result in zip(points, _values(special.airy_ai, points)):
        assert abs(result) <= 1.0001 / math.sqrt(math.pi) / abs(x) ** 0.25
    narrow = special.airy_ai(tenon.tensor([-1e12, -1e15], dtype=tenon.float32))
    exact = [float(_airy(float(np.float32(x)), False)) for x in (-1e12, -1e15)]
    np.testing.assert_allclose(narrow.numpy(), exact, rtol=2e-7)
    assert _values(special.airy_ai, [-inf, inf]) == [0, 0]


@pytest.mark.parametrize("x", [1.3e301, 1e308, LARGEST])
def test_bessel_functions_oscillate_up_to_the_largest_number(x):
    with mp.workdps(400):
        root, angle = mp.sqrt(2 / (mp.pi * mp.mpf(x))), mp.mpf(x) - mp.pi / 4
        expected = {"bessel_j0": root * mp.cos(angle), "bessel_y0": root * mp.sin(angle), "bessel_j1": root * mp.sin(angle), "bessel_y1": -root * mp.cos(angle),
                    "scaled_modified_bessel_k0": mp.pi * root / 2, "scaled_modified_bessel_k1": mp.pi * root / 2}  # fmt: skip
    for name, exact in expected.items():
        assert abs(_values(getattr(special, name), [x])[0] - exact) <= 4e-16 * float(root), name


def test_a_probability_of_gammainc_is_at_most_one():
    tiny = np.exp2(-np.arange(10.0, 1074, 8))
    for x in (0.5, 1.0, 1.2):
        a = tenon.tensor(tiny)
        assert special.gammainc(a, tenon.full_like(a, x)).max().item() <= 1 and special.gammaincc(a, tenon.full_like(a, x)).min().item() >= 0


SLOPES = {
    # Where a function is infinite or NaN, at the ends of the numbers, and at large arguments.
    "entr": [(0.0, inf), (-1.0, math.nan), (inf, -inf), (math.nan, math.nan), (2.0, -math.log(2) - 1)],
    "logit": [(0.0, inf), (1.0, inf), (2.0, math.nan), (-1e-30, math.nan), (math.nan, math.nan), (0.25, 16 / 3)],
    "bessel_y1": [(0.0, inf), (-1.0, math.nan)],
    "sinc": [(0.0, 0.0), (1e200, 1e-200), (1e15 + 1, -1 / (1e15 + 1)), (3.0, -1 / 3)],
}


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_are_right_at_edges(name):
    x = tenon.tensor([at for at, _ in SLOPES[name]], dtype=tenon.float64, requires_grad=True)
    (slopes,) = tenon.autograd.grad(getattr(special, name)(x).sum(), x)
    np.testing.assert_allclose(slopes.numpy(), [slope for _, slope in SLOPES[name]], rtol=1e-14)


def _sinc(z):
    return mp.mpf(1) if z == 0 else mp.sinpi(z) / (mp.pi * z)


def test_sinc_of_complex_numbers():
    rng = np.random.default_rng(2)
    points = [*(rng.normal(size=20) * 3 + 1j * rng.normal(size=20)), 0, 1, -2, 3 + 1e-9j, 1e10 + 0.5j, 1e-30 + 1e-30j, 0.5 + 200j]
    for dtype, digits in ((tenon.complex128, 4e-15), (tenon.complex64, 2e-6)):
        x = tenon.tensor(points[:-1] if dtype is tenon.complex64 else points, dtype=dtype)
        result = tenon.sinc(x)
        assert result.dtype is dtype
        for z, value in zip(x.tolist(), result.tolist()):
            exact = _sinc(mp.mpc(z))
            assert abs(mp.mpc(value) - exact) <= digits * (1 + abs(z.imag)) * abs(exact), z
    x = tenon.tensor(points[:5], dtype=tenon.complex128, requires_grad=True)
    assert tenon.autograd.gradcheck(tenon.sinc, (x,)) and tenon.autograd.gradgradcheck(tenon.sinc, (x,))


def test_logarithms_of_sums_of_complex_exponentials():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(3, 41)) * 2 + 1j * rng.normal(size=(3, 41)) * 3
    x = tenon.tensor(z)
    np.testing.assert_allclose(np.exp(tenon.logaddexp(x[0], x[1]).numpy()), np.exp(z[0]) + np.exp(z[1]), rtol=1e-12)
    np.testing.assert_allclose(np.exp(tenon.logcumsumexp(x, 1).numpy()), np.cumsum(np.exp(z), 1), rtol=1e-12)
    # Far beyond what exp holds.
    np.testing.assert_allclose(tenon.logcumsumexp(x + 5000, 1).numpy().real, (5000 + np.log(np.cumsum(np.exp(z), 1))).real, rtol=1e-12)
    edges = tenon.tensor([complex(-inf, 1), 1 + 2j, complex(inf, 3)])
    assert tenon.logcumsumexp(edges, 0).tolist() == [complex(-inf, 1), 1 + 2j, complex(inf, 3)]
    assert np.isnan(tenon.logcumsumexp(tenon.tensor([complex(math.nan, 1), 1]), 0).numpy()).all()
    w = tenon.tensor(z[0, :5], requires_grad=True)
    assert tenon.autograd.gradcheck(lambda w: tenon.logcumsumexp(w, 0), (w,)) and tenon.autograd.gradcheck(lambda w: tenon.logaddexp(w, w.flip(0)), (w,))
    with pytest.raises(TypeError, match="logcumsumexp: expected a floating point or complex dtype, got int64; convert it"):
        tenon.logcumsumexp(tenon.arange(3), 0)
