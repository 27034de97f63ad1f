"""Functions of one operand."""

import numpy as np

from conformance.rows import Row, unary
from conformance.samples import sample


def _whole(f):
    """Functions that round leave integers as they are."""
    return lambda x: f(x) if x.dtype.kind in "fc" else x


def _decimals(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), decimals=1)
        yield sample(m.tensor(shape), decimals=-1)


def _to_decimals(x, decimals):
    return np.round(x, decimals) if x.dtype.kind == "f" else x


_DECIMALS = dict(operands=(0,), ulps=2, domain=(-40, 40), extremes=False, no_peer="refuses integers")

ROWS = [
    unary("abs", np.abs),
    unary("ceil", _whole(np.ceil)),
    unary("cos", np.cos, result="float", ulps=4),
    unary("exp", np.exp, result="float", ulps=4),
    unary("expm1", np.expm1, result="float", ulps=4),
    unary("floor", _whole(np.floor)),
    unary("log", np.log, result="float", ulps=4, grad_domain=(0.2, 4)),
    unary("log10", np.log10, result="float", ulps=4, grad_domain=(0.2, 4)),
    unary("log1p", np.log1p, result="float", ulps=4, grad_domain=(-0.7, 4)),
    unary("log2", np.log2, result="float", ulps=4, grad_domain=(0.2, 4)),
    unary("neg", np.negative, refuse=("bool",)),
    unary("reciprocal", lambda x: 1 / x, result="float", ulps=1),
    unary("round", _whole(np.rint)),
    Row("round.decimals", _decimals, _to_decimals, **_DECIMALS),
    Row("round_.decimals", _decimals, _to_decimals, **_DECIMALS),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), result="float", ulps=4, grad_domain=(0.2, 4)),
    unary("sign", lambda x: x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x))),
    unary("sin", np.sin, result="float", ulps=4),
    unary("sqrt", np.sqrt, result="float", grad_domain=(0.2, 4)),
    unary("square", lambda x: x * x if x.dtype != bool else x),
    unary("trunc", _whole(np.trunc)),
]  # fmt: skip
