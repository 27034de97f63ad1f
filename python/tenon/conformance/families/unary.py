"""Functions of one operand."""

import numpy as np
import scipy.special

from .. import complex_numbers
from ..complex_numbers import wide
from ..rows import Row, unary, unary_calls


def _whole(f):
    """Functions that round leave integers as they are."""
    return lambda x: f(x) if x.dtype.kind in "fc" else x


def _expm1(x):
    if x.dtype.kind != "c":
        return np.expm1(x)
    e = wide(np.exp)(x)
    return complex_numbers.parts(np.where(np.isfinite(x), wide(np.expm1)(x).real, e.real - 1), e.imag)


def _exp2(x):
    return wide(np.exp)(complex_numbers.multiply(x, np.log(np.longdouble(2)))) if x.dtype.kind == "c" else np.exp2(x)


def _angle(x):
    """The angle, y log 2, is rounded before its sine and cosine are taken."""
    return 1 + np.where(np.isfinite(x.imag), np.abs(x.imag), 0)


def _log1p(x):
    return complex_numbers.log1p(x) if x.dtype.kind == "c" else np.log1p(x)


def _reciprocal(x):
    return complex_numbers.divide(np.ones_like(x), x)


_decimals = unary_calls(dict(decimals=1), dict(decimals=-1))


def _to_decimals(x, decimals):
    return np.round(x, decimals) if x.dtype.kind == "f" else x


#: There is no order among complex numbers, and nothing to round to.
_ORDERED = ("complex",)
_DECIMALS = dict(operands=(0,), ulps=2, domain=(-40, 40), extremes=False, refuse=_ORDERED,
                 no_peer="refuses integers")

ROWS = [
    unary("abs", wide(np.abs), real=True, complex_ulps=2),
    unary("acos", wide(np.arccos), result="float", ulps=4, complex_ulps=8, domain=(-1, 1), grad_domain=(-0.9, 0.9)),
    unary("acosh", wide(np.arccosh), result="float", ulps=4, complex_ulps=8, domain=(1, 5), grad_domain=(1.2, 5)),
    unary("asin", wide(np.arcsin), result="float", ulps=4, complex_ulps=8, domain=(-1, 1), grad_domain=(-0.9, 0.9)),
    unary("asinh", wide(np.arcsinh), result="float", ulps=4, complex_ulps=8),
    unary("atan", wide(np.arctan), result="float", ulps=4, complex_ulps=8),
    unary("atanh", wide(np.arctanh), result="float", ulps=4, complex_ulps=8, domain=(-1, 1), grad_domain=(-0.9, 0.9)),
    unary("erf", scipy.special.erf, result="float", ulps=4, refuse=_ORDERED),
    unary("erfc", scipy.special.erfc, result="float", ulps=4, reference_ulps=8, refuse=_ORDERED),
    unary("exp2", _exp2, result="float", ulps=4, complex_ulps=16, infinite="class", condition=_angle),
    unary("frac", lambda x: x - np.trunc(x), ulps=1, refuse=("bool", "integral", *_ORDERED)),
    unary("ceil", _whole(np.ceil), refuse=_ORDERED),
    unary("cos", wide(np.cos), result="float", ulps=4, complex_ulps=6),
    unary("exp", wide(np.exp), result="float", ulps=4, complex_ulps=6),
    unary("expm1", _expm1, result="float", ulps=4, complex_ulps=6),
    unary("floor", _whole(np.floor), refuse=_ORDERED),
    unary("log", wide(np.log), result="float", ulps=4, complex_ulps=6, grad_domain=(0.2, 4)),
    unary("log10", wide(np.log10), result="float", ulps=4, complex_ulps=6, grad_domain=(0.2, 4)),
    unary("log1p", _log1p, result="float", ulps=4, complex_ulps=6, grad_domain=(-0.7, 4)),
    unary("log2", wide(np.log2), result="float", ulps=4, complex_ulps=6, grad_domain=(0.2, 4)),
    unary("neg", complex_numbers.negative, refuse=("bool",)),
    unary("reciprocal", _reciprocal, result="float", ulps=1, complex_ulps=4, infinite="class"),
    unary("round", _whole(np.rint), refuse=_ORDERED),
    Row("round.decimals round_.decimals", _decimals, _to_decimals, **_DECIMALS),
    unary("rsqrt", lambda x: _reciprocal(wide(np.sqrt)(x)), result="float", ulps=4, complex_ulps=6, infinite="class", grad_domain=(0.2, 4)),
    unary("sign", lambda x: x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x)), refuse=_ORDERED),
    unary("sin", wide(np.sin), result="float", ulps=4, complex_ulps=6),
    unary("sqrt", wide(np.sqrt), result="float", complex_ulps=4, grad_domain=(0.2, 4)),
    unary("square", lambda x: x if x.dtype == bool else wide(np.square)(x), complex_ulps=4, infinite="class"),
    unary("trunc", _whole(np.trunc), refuse=_ORDERED),
]  # fmt: skip
