"""Activations for nn.functional: operators whose arguments PyTorch's Python writes in another way."""

from __future__ import annotations

from .. import _C
from ..arguments import checked as _checked, describe as _describe
from ..callers import warn as _warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor
    from ..types import DType


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere. Clevert et al. (2015), arXiv:1511.07289."""
    return _C.elu_(input, alpha) if inplace else _C.elu(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu in place."""
    return _C.elu_(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0). Barron (2017), arXiv:1704.07483."""
    return _C.celu_(input, alpha) if inplace else _C.celu(input, alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu in place."""
    return _C.celu_(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu, scaled so that mean 0 and variance 1 stay. Klambauer et al. (2017), arXiv:1706.02515."""
    return _C.selu_(input) if inplace else _C.selu(input)


def selu_(input: Tensor) -> Tensor:
    """selu in place."""
    return _C.selu_(input)


@_checked
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x between min_val and max_val, those beyond them."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} must not be above max_val {max_val}")
    return _C.hardtanh_(input, min_val, max_val) if inplace else _C.hardtanh(input, min_val, max_val)


@_checked
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh in place."""
    return hardtanh(input, min_val, max_val, True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)"""
    return _C.relu6_(input) if inplace else _C.relu6(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6"""
    return _C.hardsigmoid_(input) if inplace else _C.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x). Howard et al. (2019), arXiv:1905.02244."""
    return _C.hardswish_(input) if inplace else _C.hardswish(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)). Misra (2019), arXiv:1908.08681."""
    return _C.mish_(input) if inplace else _C.mish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, `value` elsewhere."""
    return _C.threshold_(input, threshold, value) if inplace else _C.threshold(input, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold in place."""
    return _C.threshold_(input, threshold, value)


def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x times the normal distribution's function of x; approximate="tanh" for the formula of the paper.

    Hendrycks and Gimpel (2016), arXiv:1606.08415.
    """
    return _C.gelu(input, approximate=approximate)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu with slopes of a tensor: one, or one for each channel of [N, C, ...]. He et al. (2015)."""
    return _C.prelu(input, weight)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, 0 elsewhere."""
    return _C.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 where it would pass it."""
    return _C.softshrink(input, lambd)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, x * negative_slope below."""
    return leaky_relu_(input, negative_slope) if inplace else _C.leaky_relu(input, negative_slope)


@_checked
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu in place."""
    return input.leaky_relu_(negative_slope)


@_checked
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)"""
    return input / (input.abs() + 1)


@_checked
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)"""
    return input - input.tanh()


def _implicit_dim(name: str, input: Tensor) -> int:
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"{name}: input must be a Tensor, got {_describe(input)}")
    # PyTorch's choice, from when these functions had no `dim`.
    _warn(f"{name}: give `dim`; the choice of a dimension without it is deprecated")
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType = None) -> Tensor:
    """exp(x) divided by its sum along `dim`."""
    return _C.softmax(input, _implicit_dim("softmax", input) if dim is None else dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType = None) -> Tensor:
    """The logarithm of softmax, computed without overflow."""
    return _C.log_softmax(input, _implicit_dim("log_softmax", input) if dim is None else dim, dtype)


@_checked
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType = None) -> Tensor:
    """softmax(-x)"""
    return _C.softmax(-input, _implicit_dim("softmin", input) if dim is None else dim, dtype)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `dim` times the sigmoid of the second. Dauphin et al. (2016), arXiv:1612.08083."""
    return _C.glu(input, dim)


@_checked
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with slopes drawn uniformly from [lower, upper] while training, and their middle otherwise."""
    if lower > upper:
        raise ValueError(f"rrelu: lower {lower} must not be above upper {upper}")
    slope = _C.empty_like(input).uniform_(lower, upper) if training else (lower + upper) / 2
    out = _C.where(input > 0, input, input * slope)
    return input.copy_(out) if inplace else out


@_checked
def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu in place."""
    return rrelu(input, lower, upper, training, True)


@_checked
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """softmax((logits + noise) / tau) with Gumbel's noise; with `hard`, one-hot results that have its gradient.

    Jang et al. (2016), arXiv:1611.01144.
    """
    noise = -_C.empty_like(logits.detach(), memory_format=_C.contiguous_format).exponential_().log()
    soft = _C.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = (soft == soft.amax(dim, keepdim=True)).to(soft.dtype)
    return chosen - soft.detach() + soft


__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "mish",
    "prelu",
    "relu6",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "softmax",
    "softmin",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
    "threshold_",
]
