"""Layers with noise under `tenon`, as PyTorch has them there: without nn.functional's `inplace`, and as functions in place."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from ..nn import functional as _F
from .results import check_tensor as _check_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Generator, Tensor


def _leaky(input: Tensor, lower: float, upper: float, training: bool, generator: Generator | None) -> Tensor:
    slope = _C.empty_like(input).uniform_(lower, upper, generator=generator) if training else (lower + upper) / 2
    return _C.where(input > 0, input, input * slope)


def rrelu(
    input: Tensor, lower: float = 0.125, upper: float = 1.0 / 3, training: bool = False, generator: Generator | None = None
) -> Tensor:
    """leaky_relu with slopes drawn uniformly from [lower, upper] while training, and their middle otherwise."""
    _check_slopes("rrelu", input, lower, upper)
    return _leaky(input, lower, upper, training, generator)


def rrelu_(
    input: Tensor, lower: float = 0.125, upper: float = 1.0 / 3, training: bool = False, generator: Generator | None = None
) -> Tensor:
    """rrelu in place."""
    _check_slopes("rrelu_", input, lower, upper)
    return input.copy_(_leaky(input, lower, upper, training, generator))


def _check_slopes(function: str, input: Tensor, lower: float, upper: float) -> None:
    _check_tensor(function, "input", input)
    if not input.is_floating_point():
        raise TypeError(f"{function}: input must have a floating-point dtype, got {input.dtype}")
    if lower > upper:
        raise RuntimeError(f"{function}: lower {lower} must not be above upper {upper}")


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.alpha_dropout."""
    return _F.alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout in place."""
    return _F.alpha_dropout(input, p, train, True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.feature_alpha_dropout."""
    return _F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """feature_alpha_dropout in place."""
    return _F.feature_alpha_dropout(input, p, train, True)


def _scaled_channels(function: str, input: Tensor, p: float, train: bool) -> Tensor | None:
    """What channels are multiplied by: 0, or 1 / (1 - p); None where nothing is dropped."""
    _check_tensor(function, "input", input)
    if not 0 <= p <= 1:
        raise RuntimeError(f"{function}: p must be between 0 and 1, got {p}")
    if not train or p == 0 or input.numel() == 0:
        return None
    if input.dim() < 2:
        raise RuntimeError(f"{function}: expected at least 2 dimensions, got shape {list(input.shape)}")
    shape = [*input.shape[:2], *([1] * (input.dim() - 2))]
    noise = _C.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    return noise.div_(1 - p) if p < 1 else noise


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeroes whole channels of [N, C, ...] with probability p while training, and scales the others by 1 / (1 - p)."""
    noise = _scaled_channels("feature_dropout", input, p, train)
    return input if noise is None else input * noise


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """feature_dropout in place."""
    noise = _scaled_channels("feature_dropout_", input, p, train)
    return input if noise is None else input.mul_(noise)


_check_module(globals())
