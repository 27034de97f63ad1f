"""Activations."""

import numpy as np
from scipy.special import expit, log_expit, log1p, ndtr

from .. import complex_numbers
from ..rows import Row, binary_samples, number_samples, unary, unary_calls
from ..samples import sample


def _softplus(x, beta=1, threshold=20):
    return np.where(x * beta > threshold, x, (np.maximum(x * beta, 0) + log1p(np.exp(-np.abs(x * beta)))) / beta)


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


def _gelu(x, approximate="none"):
    if approximate == "tanh":
        return x * expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    return x * ndtr(x)


def _mish(x):
    e = np.exp(np.minimum(x, 40))
    return x * (e * (e + 2) / (e * (e + 2) + 2))


def _prelu_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), m.tensor((1,), layout="contiguous"))
        if len(shape) > 1:
            yield sample(m.tensor(shape), m.tensor((shape[1],)))


def _prelu(x, w):
    shape = [1] * x.ndim
    if w.size > 1:
        shape[1] = w.size
    return np.where(x > 0, x, w.reshape(shape if w.size > 1 else ()) * x)


def _glu_samples(m):
    for shape in m.shapes():
        if shape:
            yield sample(m.tensor((2 * shape[0], *shape[1:])), 0)
            yield sample(m.tensor((*shape[:-1], 2 * shape[-1])))


def _glu(x, dim=-1):
    a, b = np.split(x, 2, dim)
    return complex_numbers.multiply(a, _sigmoid(b)) if x.dtype.kind == "c" else a * expit(b)


def _elu(x, alpha=1, scale=1, slope=1):
    return np.where(x > 0, x * scale, alpha * scale * np.expm1(x * slope))


#: There is no order among complex numbers.
_ORDERED = ("complex",)


#: Activations of floating numbers alone.
_FLOATS = ("bool", "integral", "complex")
_INSIDE = dict(no_peer="not in PyTorch", direct=True)

ROWS = [
    unary("_gelu_erf", _gelu, ulps=4, reference_ulps=16, refuse=_FLOATS, **_INSIDE),
    unary("_gelu_tanh", lambda x: _gelu(x, "tanh"), ulps=4, reference_ulps=16, refuse=_FLOATS, **_INSIDE),
    Row("gelu gelu_", unary_calls((), dict(approximate="tanh")), _gelu, operands=(0,), ulps=4, reference_ulps=16, refuse=_FLOATS),
    Row("elu", number_samples(0.75), _elu, operands=(0,), ulps=6, refuse=_FLOATS),
    unary("celu", lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)), ulps=6, refuse=_FLOATS,
          samples=number_samples(0.75, 2.0)),
    unary("selu", lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805), ulps=6, refuse=_FLOATS),
    unary("hardshrink", lambda x, n: np.where((x >= -n) & (x <= n), 0, x), refuse=_FLOATS, samples=number_samples(0.5)),
    unary("softshrink", lambda x, n: np.where(x > n, x - n, np.where(x < -n, x + n, x * 0)), ulps=1, refuse=_FLOATS,
          samples=number_samples(0.5)),
    unary("hardsigmoid", lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, (x + 3) / 6)), ulps=2, refuse=_FLOATS),
    unary("hardswish", lambda x: np.where(x <= -3, -0.0, np.where(x >= 3, x, x * (x + 3) / 6)), ulps=3, refuse=_FLOATS),
    unary("hardtanh", lambda x, a=-1, b=1: np.where(x <= a, a, np.where(x >= b, b, x)), refuse=("bool", "complex"),
          samples=number_samples(-2), no_peer="keywords"),
    unary("relu6", lambda x: np.where(x <= 0, np.where(x == 0, x, 0), np.where(x >= 6, 6, x)), refuse=("bool", "complex"),
          domain=(-3, 8)),
    unary("threshold", lambda x, t, v: np.where(x <= t, v, x), refuse=("bool", "complex"), 
          samples=unary_calls((1, 3))),
    unary("mish", _mish, ulps=4, refuse=_FLOATS),
    Row("_prelu_kernel", binary_samples(),
        lambda x, w: np.where(x > 0, x, w * x), operands=(0, 1), refuse=_FLOATS, infinite="class", **_INSIDE),
    Row("prelu", _prelu_samples, _prelu, operands=(0, 1), refuse=_FLOATS, infinite="class", inner="prelu",
        absent={"empty": "a channel for each weight", "promotion": "of one dtype in PyTorch"}),
    Row("glu", _glu_samples, _glu, operands=(0,), result="float", ulps=8, complex_ulps=12, infinite="class", inner="glu",
        condition=lambda x, *rest: 64.0, absent={"zero_dim": "needs a dimension"}),
    unary("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, x * slope), result="float", ulps=2,
          samples=number_samples(0.25, 0.5), refuse=_ORDERED),
    unary("log_sigmoid", log_expit, result="float", ulps=8, refuse=_ORDERED),
    unary("relu", _relu, refuse=("bool", *_ORDERED)),
    unary("sigmoid", _sigmoid, result="float", ulps=4, complex_ulps=10, infinite="class", condition=_pole),
    unary("silu", _silu, result="float", ulps=4, complex_ulps=10, infinite="class", condition=_pole),
    unary("softplus", _softplus, result="float", ulps=6, samples=unary_calls((), (2.0, 4.0)), refuse=_ORDERED),
    unary("tanh", complex_numbers.wide(np.tanh), result="float", ulps=4, complex_ulps=6),
]  # fmt: skip
