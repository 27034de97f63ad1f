"""Initialisation of parameters. Each function fills a tensor in place, outside autograd, and returns it.

The formulas are those of tenon/nn/init.cc, operation by operation, so that a seed gives the same model in C++.
"""

import math

from ..autograd.grad_mode import no_grad


def _fans(tensor):
    if tensor.dim() < 2:
        raise ValueError(f"init: fans need at least 2 dimensions, got shape {list(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def calculate_gain(nonlinearity, param=None):
    """The factor by which a layer must scale its weights so that a nonlinearity keeps the variance of the values."""
    if nonlinearity in ("linear", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope * slope))
    raise ValueError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}")


def _fan(tensor, mode):
    fan_in, fan_out = _fans(tensor)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"init: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    return fan_in if mode == "fan_in" else fan_out


@no_grad()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal with the given mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def constant_(tensor, val):
    """One value everywhere."""
    return tensor.fill_(val)


def zeros_(tensor):
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor):
    """Ones."""
    return constant_(tensor, 1.0)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He et al. (2015): uniform within gain * sqrt(3 / fan)."""
    if tensor.numel() == 0:
        return tensor
    deviation = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    bound = math.sqrt(3.0) * deviation
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He et al. (2015): normal with standard deviation gain / sqrt(fan)."""
    if tensor.numel() == 0:
        return tensor
    deviation = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return normal_(tensor, 0.0, deviation, generator)


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Glorot and Bengio (2010): uniform within gain * sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _fans(tensor)
    deviation = gain * math.sqrt(2.0 / (fan_in + fan_out))
    bound = math.sqrt(3.0) * deviation
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Glorot and Bengio (2010): normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)
