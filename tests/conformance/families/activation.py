"""Activations."""

import numpy as np
from scipy.special import expit, log_expit, log1p

from conformance.rows import number_samples, unary
from conformance.samples import sample


def _softplus(x, beta=1, threshold=20):
    return np.where(x * beta > threshold, x, (np.maximum(x * beta, 0) + log1p(np.exp(-np.abs(x * beta)))) / beta)


def _softplus_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape))
        yield sample(m.tensor(shape), 2.0, 4.0)


def _relu(x):
    return np.where(x > 0, x, np.where(np.isnan(x), x, 0))


def _silu(x):
    # x * sigmoid(x), which is nan at -inf: 0 * inf.
    return x * expit(x)


ROWS = [
    unary("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, x * slope), result="float", ulps=2,
          samples=number_samples(0.25, 0.5)),
    unary("log_sigmoid", log_expit, result="float", ulps=8),
    unary("relu", _relu, refuse=("bool",)),
    unary("sigmoid", expit, result="float", ulps=4),
    unary("silu", _silu, result="float", ulps=6),
    unary("softplus", _softplus, result="float", ulps=6, samples=_softplus_samples),
    unary("tanh", np.tanh, result="float", ulps=4),
]  # fmt: skip
