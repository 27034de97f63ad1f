"""Special functions. SciPy is the reference; where it errs by more than a few units in the last place, the row says by how much."""

import numpy as np
import scipy.special as ss

from ..rows import Row, binary, gradient_samples, number_first, unary, unary_calls, unary_samples
from ..samples import KINDS, sample

_REAL = dict(result="float", refuse=("complex",))
_SHAPES = dict(domain=(0.3, 6.0), grad_domain=(0.6, 5.0))


def _logit(x, eps=None):
    return ss.logit(x if eps is None else np.where(np.isnan(x), x, np.clip(x, eps, 1 - eps)))


def _multigamma(x, p):
    return sum(ss.gammaln(x - i / 2) for i in range(p)) + p * (p - 1) / 4 * np.log(np.pi)


def _polygamma(n, x):
    return ss.polygamma(n, x) if n else ss.digamma(x)


def _sinc(x):
    if np.iscomplexobj(x):
        z = np.where(x == 0, 1, np.pi * x)
        return np.where(x == 0, 1, np.sin(z) / z)
    return np.where(np.isinf(x) | ((x == np.rint(x)) & (x != 0)), 0, np.sinc(x))


def _density(a, x):
    with np.errstate(all="ignore"):
        density = np.exp((a - 1) * np.log(x) - x - ss.gammaln(a))
    return np.where(a > 0, density, np.where((a == 0) & (x > 0), 0, np.nan))


def _xlog1py_backward(grad, a, b):
    return np.where((a == 0) & (b <= -1), 0, ss.xlog1py(grad, b))


_NO_SPECIAL = {"special": "the reference errs at the edges; tests/python/special has them"}

ROWS = [
    unary("lgamma", ss.gammaln, ulps=16, reference_ulps=256, domain=(0.1, 8.0), grad_domain=(0.3, 5.0), absent=_NO_SPECIAL, **_REAL),
    unary("digamma", ss.digamma, ulps=16, reference_ulps=64, domain=(0.1, 8.0), grad_domain=(0.3, 5.0), absent=_NO_SPECIAL, **_REAL),
    unary("erfinv", ss.erfinv, ulps=4, reference_ulps=8, domain=(-0.99, 0.99), grad_domain=(-0.8, 0.8), **_REAL),
    unary("i0", ss.i0, ulps=4, reference_ulps=16, absent=_NO_SPECIAL, **_REAL),
    Row("logit", unary_calls((), (0.125,)), _logit, operands=(0,), ulps=4, reference_ulps=16, domain=(0.01, 0.99), grad_domain=(0.2, 0.8), **_REAL),
    Row("mvlgamma", lambda m: (sample(m.tensor(s), p) for s in m.shapes() for p in (1, 3)), _multigamma, operands=(0,), ulps=32,
        reference_ulps=1024, domain=(1.5, 8.0), grad_domain=(1.5, 5.0),
        absent={**_NO_SPECIAL, "bool": "1 is outside of the domain", "integral": "1 is outside of the domain"}, inner="lgamma", **_REAL),
    Row("polygamma", lambda m: (sample(n, m.tensor(s)) for s in m.shapes() for n in (0, 1, 3)), _polygamma, operands=(1,), ulps=16,
        reference_ulps=64, absent=_NO_SPECIAL, inner="", **_REAL, **_SHAPES),
    Row("_polygamma", lambda m: (sample(m.tensor(s), 3.0, -2.0) for s in m.shapes()), lambda x, s, f: f * ss.zeta(s, x), operands=(0,), ulps=8,
        reference_ulps=32, absent=_NO_SPECIAL, direct=True, no_peer="not in PyTorch", **_REAL, **_SHAPES),
    unary("_trigamma", lambda x: ss.polygamma(1, x), ulps=16, reference_ulps=64, domain=(0.1, 8.0), grad_domain=(0.3, 5.0), absent=_NO_SPECIAL,
        direct=True, no_peer="not in PyTorch", **_REAL),
    unary("sinc", _sinc, ulps=4, reference_ulps=64, complex_ulps=16, domain=(-0.9, 0.9), absent=_NO_SPECIAL, result="float"),
    unary("special_airy_ai", lambda x: ss.airy(x)[0], ulps=4, reference_ulps=4096, domain=(-2.0, 6.0), grad_domain=(-2.0, 3.0), absent=_NO_SPECIAL, **_REAL),
    unary("special_bessel_j0", ss.j0, ulps=4, reference_ulps=1024, domain=(-2.2, 2.2), absent=_NO_SPECIAL, **_REAL),
    unary("special_bessel_j1", ss.j1, ulps=4, reference_ulps=1024, domain=(-3.5, 3.5), absent=_NO_SPECIAL, **_REAL),
    unary("special_bessel_y0", ss.y0, ulps=4, reference_ulps=1024, domain=(1.0, 3.8), grad_domain=(1.0, 3.8), absent=_NO_SPECIAL, **_REAL),
    unary("special_bessel_y1", ss.y1, ulps=4, reference_ulps=1024, domain=(0.1, 2.1), grad_domain=(0.5, 2.1), absent=_NO_SPECIAL, **_REAL),
    unary("special_modified_bessel_k0", ss.k0, ulps=4, reference_ulps=64, absent=_NO_SPECIAL, **_REAL, **_SHAPES),
    unary("special_modified_bessel_k1", ss.k1, ulps=4, reference_ulps=64, absent=_NO_SPECIAL, **_REAL, **_SHAPES),
    unary("special_scaled_modified_bessel_k0", ss.k0e, ulps=4, reference_ulps=64, absent=_NO_SPECIAL, **_REAL, **_SHAPES),
    unary("special_scaled_modified_bessel_k1", ss.k1e, ulps=4, reference_ulps=64, absent=_NO_SPECIAL, **_REAL, **_SHAPES),
    unary("special_spherical_bessel_j0", lambda x: ss.spherical_jn(0, x), ulps=4, reference_ulps=64, domain=(-3.0, 3.0), absent=_NO_SPECIAL, **_REAL),
    unary("special_entr", ss.entr, ulps=4, reference_ulps=8, domain=(0.1, 4.0), grad_domain=(0.1, 4.0), **_REAL),
    unary("special_erfcx", ss.erfcx, ulps=4, reference_ulps=32, absent=_NO_SPECIAL, **_REAL),
    unary("special_i0e", ss.i0e, ulps=4, reference_ulps=16, **_REAL),
    unary("special_i1", ss.i1, ulps=4, reference_ulps=16, absent=_NO_SPECIAL, **_REAL),
    unary("special_i1e", ss.i1e, ulps=4, reference_ulps=16, **_REAL),
    unary("special_log_ndtr", ss.log_ndtr, ulps=4, reference_ulps=64, absent=_NO_SPECIAL, **_REAL),
    unary("special_ndtr", ss.ndtr, ulps=4, reference_ulps=32, **_REAL),
    unary("special_ndtri", ss.ndtri, ulps=4, reference_ulps=16, domain=(0.01, 0.99), grad_domain=(0.1, 0.9), **_REAL),
    Row("_xlog1py_backward", gradient_samples, _xlog1py_backward, operands=(0, 1, 2), ulps=4, reference_ulps=4, domain=(0.1, 4), direct=True,
        no_peer="not in PyTorch", **_REAL),
    binary("special_xlog1py", ss.xlog1py, ulps=4, reference_ulps=4, domain=(0.1, 4), **_REAL),
    Row("special_xlog1py.other_scalar", unary_samples(0.5), ss.xlog1py, operands=(0, 1), ulps=4, reference_ulps=4, **_REAL),
    Row("special_xlog1py.self_scalar", number_first(0.5), ss.xlog1py, operands=(0, 1), ulps=4, reference_ulps=4, domain=(0.1, 4), **_REAL),
    binary("special_zeta", ss.zeta, ulps=8, reference_ulps=32, domain=(1.5, 6), grad_constant=(0,), absent=_NO_SPECIAL, **_REAL),
    Row("special_zeta.other_scalar", unary_samples(2.5), ss.zeta, operands=(0, 1), ulps=8, reference_ulps=32, domain=(1.5, 6),
        grad_constant=(0,), absent=_NO_SPECIAL, **_REAL),
    Row("special_zeta.self_scalar", number_first(2.5), ss.zeta, operands=(0, 1), ulps=8, reference_ulps=32, absent=_NO_SPECIAL, **_REAL, **_SHAPES),
    binary("igamma", ss.gammainc, ulps=16, reference_ulps=64, grad_constant=(0,), absent=_NO_SPECIAL, **_REAL, **_SHAPES),
    binary("igammac", ss.gammaincc, ulps=16, reference_ulps=64, grad_constant=(0,), absent=_NO_SPECIAL, **_REAL, **_SHAPES),
    Row("_igamma_shape_gradient", lambda m: (), unreferenced="gradcheck of igamma has it (tests/python/special)", properties=lambda r, *a: None,
        absent={k: "gradcheck of igamma has it" for k in KINDS}, direct=True, no_peer="not in PyTorch"),
    Row("_special_zeta_exponent_gradient", lambda m: (), unreferenced="it always throws (tests/python/special)", properties=lambda r, *a: None,
        absent={k: "it always throws" for k in KINDS}, direct=True, no_peer="not in PyTorch"),
    binary("_igamma_density", _density, ulps=16, reference_ulps=64, absent=_NO_SPECIAL, direct=True, no_peer="not in PyTorch", **_REAL, **_SHAPES),
]
