"""Activations."""

import numpy as np
from scipy.special import expit, log_expit, log1p

from conformance import complex_numbers
from conformance.rows import number_samples, unary
from conformance.samples import sample


def _softplus(x, beta=1, threshold=20):
    return np.where(x * beta > threshold, x, (np.maximum(x * beta, 0) + log1p(np.exp(-np.abs(x * beta)))) / beta)


def _softplus_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape))
        yield sample(m.tensor(shape), 2.0, 4.0)


def _relu(x):
    return np.where(x < 0, 0, x)


def _sigmoid(x):
    return complex_numbers.sigmoid(x) if x.dtype.kind == "c" else expit(x)


def _silu(x):
    # x * sigmoid(x), which is nan at -inf: 0 * inf.
    return complex_numbers.multiply(x, _sigmoid(x))


def _pole(x):
    """1 + exp(-x) loses digits where it is near zero."""
    e = np.exp(np.where(x.real < 0, x, -x))
    return np.nan_to_num(1 + np.abs(e / (1 + e)), nan=1, posinf=1)


#: There is no order among complex numbers.
_ORDERED = ("complex",)


ROWS = [
    unary("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, x * slope), result="float", ulps=2,
          samples=number_samples(0.25, 0.5), refuse=_ORDERED),
    unary("log_sigmoid", log_expit, result="float", ulps=8, refuse=_ORDERED),
    unary("relu", _relu, refuse=("bool", *_ORDERED)),
    unary("sigmoid", _sigmoid, result="float", ulps=4, complex_ulps=10, infinite="class", condition=_pole),
    unary("silu", _silu, result="float", ulps=6, complex_ulps=10, infinite="class", condition=_pole),
    unary("softplus", _softplus, result="float", ulps=6, samples=_softplus_samples, refuse=_ORDERED),
    unary("tanh", complex_numbers.wide(np.tanh), result="float", ulps=4, complex_ulps=6),
]  # fmt: skip
