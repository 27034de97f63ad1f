"""tenon.special against mpmath: values, edges, derivatives and messages."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special as ss
import tenon
from tenon import special
from tenon.autograd import gradcheck, gradgradcheck

RNG = np.random.default_rng(11)
WIDE = np.concatenate([RNG.uniform(-6, 6, 12), RNG.uniform(-0.5, 0.5, 6)])
POSITIVE = np.concatenate([np.exp(RNG.uniform(-20, 8, 12)), RNG.uniform(0.5, 5, 8)])
UNIT = np.concatenate([RNG.uniform(0, 1, 12), np.exp(RNG.uniform(-200, -1, 8))])

mp.mp.dps = 60


def _erfcx(x):
    with mp.workdps(60 if x < 20 else 1000):
        return mp.exp(x * x) * mp.erfc(x)


def _ndtri(p):
    x = mp.mpf(-1)
    for _ in range(60):
        x -= (mp.log(mp.ncdf(x)) - mp.log(p)) * mp.ncdf(x) / mp.npdf(x)
    return x


ONE = {
    "gammaln": (lambda x: mp.re(mp.loggamma(x)), POSITIVE, 2),
    "digamma": (mp.digamma, POSITIVE, 2),
    "erfinv": (mp.erfinv, RNG.uniform(-1, 1, 20), 2),
    "erfcx": (_erfcx, np.concatenate([WIDE, np.linspace(27.01, 45, 7)]), 2),
    "ndtr": (mp.ncdf, 5 * WIDE, 2),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x)), 5 * WIDE, 2),
    "ndtri": (_ndtri, UNIT[UNIT < 0.45], 2),
    "i0": (lambda x: mp.besseli(0, x), 3 * WIDE, 2),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), 3 * WIDE, 2),
    "i1": (lambda x: mp.besseli(1, x), 3 * WIDE, 2),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), 3 * WIDE, 2),
    "sinc": (lambda x: mp.sinpi(x) / (mp.pi * x), WIDE, 3),
    "logit": (lambda p: mp.log(p / (1 - p)), UNIT, 3),
    "entr": (lambda x: -x * mp.log(x), POSITIVE, 3),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), POSITIVE[POSITIVE < 700], 2),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), POSITIVE[POSITIVE < 700], 2),
    "scaled_modified_bessel_k0": (lambda x: mp.besselk(0, x) * mp.exp(x), POSITIVE, 2),
    "scaled_modified_bessel_k1": (lambda x: mp.besselk(1, x) * mp.exp(x), POSITIVE, 2),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, WIDE, 2),
}


def _ulp(x):
    return mp.mpf(2) ** (int(mp.floor(mp.log(abs(x), 2))) - 52)


def _error(result, exact):
    """In units in the last place of float64."""
    return float(abs(mp.mpf(float(result)) - exact) / _ulp(exact))


@pytest.mark.parametrize("name", ONE)
def test_a_function_of_one_number_is_as_accurate_as_promised(name):
    exact, points, bound = ONE[name]
    results = getattr(special, name)(tenon.tensor(points)).tolist()
    errors = [_error(r, exact(mp.mpf(float(x)))) for x, r in zip(points, results)]
    assert max(errors) <= bound, (points[int(np.argmax(errors))], max(errors))
    narrow = getattr(special, name)(tenon.tensor(points.astype(np.float32)))
    wide = getattr(special, name)(tenon.tensor(points.astype(np.float32).astype(np.float64)))
    assert narrow.dtype is tenon.float32
    np.testing.assert_allclose(narrow.numpy(), wide.numpy().astype(np.float32), rtol=3e-7)


NEAR_ROOTS = {
    # A zero, the function, the larger of the extrema around the zero.
    "bessel_j0": [(2.404825557695773, lambda x: mp.besselj(0, x), 1.0), (30.634606468431976, lambda x: mp.besselj(0, x), 0.147)],
    "bessel_j1": [(3.8317059702075125, lambda x: mp.besselj(1, x), 0.581), (29.046828534916855, lambda x: mp.besselj(1, x), 0.151)],
    "bessel_y0": [(0.8935769662791675, lambda x: mp.bessely(0, x), 0.520), (29.06025, lambda x: mp.bessely(0, x), 0.151)],
    "bessel_y1": [(2.197141326031017, lambda x: mp.bessely(1, x), 0.416), (27.4761, lambda x: mp.bessely(1, x), 0.155)],
    "airy_ai": [(-2.338107410459767, mp.airyai, 0.535), (-20.53733290767757, mp.airyai, 0.266)],
}
OSCILLATING = np.concatenate([RNG.uniform(0, 9, 20), RNG.uniform(9, 1e3, 8), np.exp(RNG.uniform(7, 20, 6))])


@pytest.mark.parametrize("name", NEAR_ROOTS)
def test_a_function_with_zeros_keeps_them(name):
    f = getattr(special, name)
    for root, exact, extremum in NEAR_ROOTS[name]:
        points = root + np.array([-1e-2, -1e-5, -1e-9, 0, 1e-12, 1e-7, 1e-3])
        for x, result in zip(points, f(tenon.tensor(points)).tolist()):
            assert abs(mp.mpf(result) - exact(mp.mpf(float(x)))) <= _ulp(extremum), x
    points = np.concatenate([-OSCILLATING, np.linspace(0, 100, 21)]) if name == "airy_ai" else OSCILLATING
    for x, result in zip(points, f(tenon.tensor(points)).tolist()):
        value = exact(mp.mpf(float(x)))
        envelope = 0.39 / max(abs(x), 1) ** 0.25 if name == "airy_ai" else 0.56 / max(abs(x), 1) ** 0.5
        oscillates = x < -1 if name == "airy_ai" else x > 1
        assert abs(mp.mpf(result) - value) <= max(2 * _ulp(value), _ulp(envelope) if oscillates else 0), x
    if name.startswith("bessel_j"):
        assert f(tenon.tensor(-points)).tolist() == (f(tenon.tensor(points)) * (-1 if name.endswith("1") else 1)).tolist()


@pytest.mark.parametrize("a, x", [(0.3, 0.1), (0.01, 1.1), (2.5, 1.0), (2.5, 4.0), (15.0, 40.0), (30.0, 25.0), (500.0, 520.0), (120.0, 40.0),
                                  (198.77140552624493, 140.23231656007275), (75.80256180137854, 52.88979035055076), (126.61739245914453, 210.0)])  # fmt: skip
def test_incomplete_gamma_functions_are_accurate_in_every_region(a, x):
    lower = special.gammainc(tenon.tensor(a, dtype=tenon.float64), tenon.tensor(x, dtype=tenon.float64)).item()
    upper = special.gammaincc(tenon.tensor(a, dtype=tenon.float64), tenon.tensor(x, dtype=tenon.float64)).item()
    a, x = mp.mpf(a), mp.mpf(x)
    assert _error(lower, mp.gammainc(a, 0, x, regularized=True)) <= 8
    assert _error(upper, mp.gammainc(a, x, mp.inf, regularized=True)) <= 8


@pytest.mark.parametrize("n, x", [(0, 0.7), (1, 0.2), (1, 30.0), (2, -1.3), (3, -4.6), (7, 2.5), (20, 0.9)])
def test_polygamma_is_accurate(n, x):
    result = special.polygamma(n, tenon.tensor(x, dtype=tenon.float64)).item()
    assert _error(result, mp.psi(n, mp.mpf(x))) <= 8


@pytest.mark.parametrize("s, q", [(1.5, 0.3), (2.0, 12.0), (7.25, 0.5), (40.0, 1.2)])
def test_zeta_is_accurate(s, q):
    result = special.zeta(tenon.tensor(s, dtype=tenon.float64), q).item()
    assert _error(result, mp.zeta(mp.mpf(s), mp.mpf(q))) <= 8


inf, nan = math.inf, math.nan
EDGES = {
    "gammaln": [(0.0, inf), (-1.0, inf), (1.0, 0.0), (2.0, 0.0), (inf, inf), (-inf, inf), (1e308, inf), (nan, nan)],
    "digamma": [(0.0, -inf), (-0.0, inf), (-1.0, nan), (inf, inf), (-inf, nan), (nan, nan)],
    "erfinv": [(1.0, inf), (-1.0, -inf), (0.0, 0.0), (1.5, nan), (nan, nan)],
    "erfcx": [(inf, 0.0), (-inf, inf), (-30.0, inf), (0.0, 1.0), (nan, nan)],
    "ndtr": [(inf, 1.0), (-inf, 0.0), (0.0, 0.5), (nan, nan)],
    "log_ndtr": [(inf, 0.0), (-inf, -inf), (nan, nan)],
    "ndtri": [(0.0, -inf), (1.0, inf), (0.5, 0.0), (-0.1, nan), (1.1, nan), (nan, nan)],
    "i0": [(0.0, 1.0), (inf, inf), (-inf, inf), (nan, nan)],
    "i0e": [(0.0, 1.0), (inf, 0.0), (nan, nan)],
    "i1": [(0.0, 0.0), (inf, inf), (-inf, -inf), (nan, nan)],
    "i1e": [(0.0, 0.0), (inf, 0.0), (nan, nan)],
    "sinc": [(0.0, 1.0), (1.0, 0.0), (-3.0, 0.0), (inf, 0.0), (nan, nan)],
    "logit": [(0.0, -inf), (1.0, inf), (0.5, 0.0), (-1.0, nan), (2.0, nan), (nan, nan)],
    "airy_ai": [(inf, 0.0), (-inf, 0.0), (nan, nan)],
    "bessel_j0": [(0.0, 1.0), (inf, 0.0), (-inf, 0.0), (nan, nan)],
    "bessel_j1": [(0.0, 0.0), (inf, 0.0), (-inf, 0.0), (nan, nan)],
    "bessel_y0": [(0.0, -inf), (inf, 0.0), (-1.0, nan), (-inf, nan), (nan, nan)],
    "bessel_y1": [(0.0, -inf), (inf, 0.0), (-1.0, nan), (-inf, nan), (nan, nan)],
    "modified_bessel_k0": [(0.0, inf), (inf, 0.0), (1e4, 0.0), (-1.0, nan), (-inf, nan), (nan, nan)],
    "modified_bessel_k1": [(0.0, inf), (inf, 0.0), (1e4, 0.0), (-1.0, nan), (-inf, nan), (nan, nan)],
    "scaled_modified_bessel_k0": [(0.0, inf), (inf, 0.0), (-1.0, nan), (nan, nan)],
    "scaled_modified_bessel_k1": [(0.0, inf), (inf, 0.0), (-1.0, nan), (nan, nan)],
    "spherical_bessel_j0": [(0.0, 1.0), (inf, 0.0), (-inf, 0.0), (nan, nan)],
    "entr": [(0.0, 0.0), (1.0, 0.0), (-1.0, -inf), (inf, -inf), (nan, nan)],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_those_of_the_limits(name):
    points = [x for x, _ in EDGES[name]]
    for dtype in (tenon.float64, tenon.float32):
        results = getattr(special, name)(tenon.tensor(points, dtype=dtype)).tolist()
        np.testing.assert_array_equal(results, [y for _, y in EDGES[name]])


def test_edges_of_two_arguments():
    def both(f, a, x):
        return f(tenon.tensor(a, dtype=tenon.float64), tenon.tensor(x, dtype=tenon.float64)).item()

    for a, x, p in [(0.0, 1.0, 1.0), (1.0, 0.0, 0.0), (2.0, inf, 1.0), (inf, 2.0, 0.0)]:
        assert both(special.gammainc, a, x) == p and both(special.gammaincc, a, x) == 1 - p
    for a, x in [(-1.0, 1.0), (1.0, -1.0), (nan, 1.0), (0.0, 0.0), (inf, inf)]:
        assert math.isnan(both(special.gammainc, a, x)) and math.isnan(both(special.gammaincc, a, x))
    assert both(special.zeta, 1.0, 2.0) == inf and math.isnan(both(special.zeta, 0.5, 2.0))
    assert both(special.zeta, 2.0, 0.0) == inf and both(special.zeta, 2.0, -3.0) == inf and math.isnan(both(special.zeta, 2.5, -0.5))
    assert both(special.xlog1py, 0.0, -1.0) == 0 and math.isnan(both(special.xlog1py, 0.0, nan))


@pytest.mark.parametrize("f, low, high", [
    (special.gammaln, 0.3, 4), (special.digamma, 0.3, 4), (special.erfinv, -0.8, 0.8), (special.erfcx, -1, 3), (special.ndtr, -2, 2),
    (special.log_ndtr, -3, 2), (special.ndtri, 0.1, 0.9), (special.i0, -3, 3), (special.i0e, 0.5, 3), (special.i1, 0.5, 3), (special.i1e, 0.5, 3),
    (special.sinc, 0.2, 3), (special.logit, 0.1, 0.9), (special.entr, 0.2, 3), (lambda x: special.polygamma(2, x), 0.5, 3),
    (special.airy_ai, -3, 3), (special.bessel_j0, -5, 5), (special.bessel_j1, -5, 5), (special.bessel_y0, 0.5, 5), (special.bessel_y1, 0.5, 5),
    (special.modified_bessel_k0, 0.5, 4), (special.modified_bessel_k1, 0.5, 4), (special.scaled_modified_bessel_k0, 0.5, 4),
    (special.scaled_modified_bessel_k1, 0.5, 4), (special.spherical_bessel_j0, -3, 3),
    (lambda x: special.multigammaln(x, 3), 1.5, 4), (lambda x: special.zeta(2.5, x), 0.5, 3), (lambda x: special.gammainc(1.7, x), 0.5, 3),
])  # fmt: skip
def test_derivatives_are_right_twice(f, low, high):
    x = tenon.tensor(np.linspace(low, high, 5), requires_grad=True)
    g = (lambda x: f(x)) if f is not None else f
    try:
        g(x)
    except TypeError:
        g = lambda x: special.gammainc(tenon.full_like(x, 1.7), x)  # noqa: E731
    assert gradcheck(g, (x,)) and gradgradcheck(g, (x,))


def test_the_incomplete_gamma_function_has_a_derivative_by_its_shape():
    a = tenon.tensor([0.4, 2.5, 30.0], dtype=tenon.float64, requires_grad=True)
    x = tenon.tensor([0.3, 4.0, 25.0], dtype=tenon.float64)
    assert gradcheck(lambda a: special.gammainc(a, x), (a,)) and gradcheck(lambda a: special.gammaincc(a, x), (a,))


def test_messages_say_what_is_wrong():
    x = tenon.ones(2)
    with pytest.raises(ValueError, match="polygamma: n has to be 0 or more, got -1"):
        special.polygamma(-1, x)
    with pytest.raises(ValueError, match="mvlgamma: p has to be greater than or equal to 1, got 0"):
        special.multigammaln(x, 0)
    s = tenon.tensor([2.5], requires_grad=True)
    with pytest.raises(NotImplementedError, match="no derivative by the exponent"):
        special.zeta(s, x).sum().backward()
    with pytest.raises(NotImplementedError, match="`erfcx` is not implemented for complex numbers"):
        special.erfcx(tenon.ones(2, dtype=tenon.complex64))
    with pytest.raises(AttributeError, match="not in Tenon yet|has no attribute"):
        special.nothing_of_that_name


def test_integers_give_float32_and_out_takes_results():
    x = tenon.arange(1, 6)
    assert special.gammaln(x).dtype is tenon.float32
    np.testing.assert_allclose(special.gammaln(x).numpy(), [math.lgamma(k) for k in range(1, 6)], rtol=1e-6, atol=1e-7)
    out = tenon.empty(0)
    assert special.entr(tenon.ones(3), out=out) is out and out.tolist() == [0, 0, 0]


def test_logit_keeps_eps_away_from_the_ends():
    x = tenon.tensor([0.0, 0.5, 1.0], dtype=tenon.float64)
    np.testing.assert_allclose(special.logit(x, 0.1).numpy(), [-math.log(9), 0, math.log(9)], rtol=1e-14, atol=1e-15)
    # Above 1/2 an element below eps becomes eps, and no more.
    np.testing.assert_allclose(special.logit(tenon.tensor([0.0, 0.25, 0.75]), 0.7).numpy(), np.log(7 / 3) * np.array([1, 1, -1]), rtol=1e-6)


POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda n, x: ss.eval_chebyt(n, x),
    "chebyshev_polynomial_u": lambda n, x: ss.eval_chebyu(n, x),
    "chebyshev_polynomial_v": lambda n, x: ss.eval_chebyu(n, x) - (ss.eval_chebyu(n - 1, x) if n else 0),
    "chebyshev_polynomial_w": lambda n, x: ss.eval_chebyu(n, x) + (ss.eval_chebyu(n - 1, x) if n else 0),
    "hermite_polynomial_h": lambda n, x: ss.eval_hermite(n, x),
    "hermite_polynomial_he": lambda n, x: ss.eval_hermitenorm(n, x),
    "laguerre_polynomial_l": lambda n, x: ss.eval_laguerre(n, x),
    "legendre_polynomial_p": lambda n, x: ss.eval_legendre(n, x),
}
POLYNOMIALS |= {f"shifted_{k}": (lambda f: lambda n, x: f(n, 2 * x - 1))(POLYNOMIALS[k]) for k in list(POLYNOMIALS)[:4]}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials_agree_with_scipy(name):
    f, x = getattr(special, name), np.linspace(-1.5, 1.5, 7)
    for n in range(8):
        np.testing.assert_allclose(f(tenon.tensor(x), n).numpy(), POLYNOMIALS[name](n, x), rtol=1e-12, atol=1e-12)
    degrees = tenon.arange(7)
    expected = [POLYNOMIALS[name](n, v) for n, v in enumerate(x)]
    out = tenon.empty(0, dtype=tenon.float64)
    assert f(tenon.tensor(x), degrees, out=out) is out
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-12)
    assert f(tenon.tensor(x), -1).tolist() == [0] * 7 and f(0.5, degrees).dtype is tenon.float32
    assert gradcheck(lambda x: f(x, 4), (tenon.tensor(x, requires_grad=True),))
    with pytest.raises(TypeError, match=f"{name}: input or n must be a Tensor"):
        f(0.5, 2)


@pytest.mark.parametrize("name", ["chebyshev_polynomial_t", "hermite_polynomial_h", "shifted_chebyshev_polynomial_w"])
def test_errors_name_the_polynomial(name):
    f, x = getattr(special, name), tenon.zeros(3)
    for call, kind, text in [
        (lambda: f(x, tenon.zeros(2)), RuntimeError, "shapes .* do not broadcast"),
        (lambda: f(x, "2"), TypeError, "n must be a Tensor or a number, got '2' .str."),
        (lambda: f([1.0], x), TypeError, "input must be a Tensor or a number, got .* .list."),
        (lambda: f(x, 2, out=tenon.zeros(3, dtype=tenon.int64)), TypeError, ".* cannot be stored in `out` of int64"),
    ]:
        with pytest.raises(kind, match=f"^{name}: {text}"):
            call()


def test_igamma_has_no_second_derivative_by_its_shape():
    a, x = (tenon.tensor([v], dtype=tenon.float64, requires_grad=True) for v in (0.7, 1.3))
    for f in (tenon.igamma, tenon.igammac):
        (slope,) = tenon.autograd.grad(f(a, x), a, create_graph=True)
        with pytest.raises(NotImplementedError, match="no second derivative by the shape"):
            slope.backward()
