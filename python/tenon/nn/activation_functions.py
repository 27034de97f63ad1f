"""Activations for nn.functional: operators whose arguments PyTorch's Python writes in another way."""

from .. import _C


def leaky_relu_(input, negative_slope=0.01):
    """leaky_relu in place."""
    return input.leaky_relu_(negative_slope)


def softsign(input):
    """x / (1 + |x|)"""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x)"""
    return input - input.tanh()


def softmin(input, dim, dtype=None):
    """softmax(-x)"""
    return _C.softmax(-input, dim, dtype=dtype)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu with slopes drawn uniformly from [lower, upper] while training, and their middle otherwise."""
    if lower > upper:
        raise ValueError(f"rrelu: lower {lower} must not be above upper {upper}")
    slope = _C.empty_like(input).uniform_(lower, upper) if training else (lower + upper) / 2
    out = _C.where(input >= 0, input, input * slope)
    return input.copy_(out) if inplace else out


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu in place."""
    return rrelu(input, lower, upper, training, True)
