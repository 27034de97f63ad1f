"""Normalisation for nn.functional: operators whose arguments PyTorch's Python has in another order."""

from __future__ import annotations

from .. import _C
from ..arguments import checked as _checked
from ..functional import norm as _norm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor
    from ..types import Ints

_layer_norm, _group_norm, _rms_norm = _C.layer_norm, _C.group_norm, _C.rms_norm
_batch_norm, _instance_norm = _C.batch_norm, _C.instance_norm


@_checked
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """(input - mean) / sqrt(variance + eps) * weight + bias over the trailing dimensions `normalized_shape`."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


@_checked
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """input / sqrt(mean(input ** 2) + eps) * weight over the trailing dimensions `normalized_shape`."""
    return _rms_norm(input, normalized_shape, weight, eps)


@_checked
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """Normalises `num_groups` groups of the channels of each sample of input [N, C, ...]."""
    if input.dim() > 1 and num_groups > 0:
        # As PyTorch counts: a group's values are its channels in all samples.
        _check_more_than_one("group_norm", input, input.numel() // max(num_groups, 1))
    return _group_norm(input, num_groups, weight, bias, eps)


def _check_more_than_one(name: str, input: Tensor, count: int) -> None:
    if count == 1:
        raise ValueError(f"{name}: expected more than 1 value for each channel when training, got input of size {tuple(input.shape)}")


@_checked
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalises each channel of input [N, C, ...]: by this batch where `training`, else by the running statistics."""
    if eps < 0 or (training and eps == 0):
        raise ValueError(f"batch_norm: eps must be {'positive in training' if training else 'at least 0'}, got {eps}")
    if training and input.dim() > 1:
        _check_more_than_one("batch_norm", input, input.numel() // max(input.size(1), 1))
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)  # type: ignore[arg-type]


@_checked
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalises each channel of each sample of input [N, C, ...] by itself."""
    if use_input_stats and input.dim() > 1:
        _check_more_than_one("instance_norm", input, input.numel() // max(input.size(0) * input.size(1), 1))
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@_checked
def normalize(input: Tensor, p: float = 2.0, dim: Ints = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """input / max(norm of order p along `dim`, eps): an int or several dimensions."""
    length = _norm(input, p, dim, keepdim=True).clamp_min(eps)
    return input / length if out is None else _C.div(input, length, out=out)
