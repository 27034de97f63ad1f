"""Limits for gradients. `foreach` makes no difference: it chooses an implementation in PyTorch."""

from __future__ import annotations

import math

from ... import _C
from ...arguments import check_module as _check_module
from ...callers import warn as _warn
from ...autograd.grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ...types import Tensors


def _tensors(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, _C.Tensor) else list(tensors)


def _grads(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _tensors(parameters) if p.grad is not None]


def _norm(tensor: Tensor, kind: float) -> Tensor:
    """The norm of all elements of a tensor: (sum |x|^kind)^(1 / kind), the largest, the smallest, or how many are not 0."""
    size = tensor.abs()
    if kind == math.inf:
        return size.max() if size.numel() else size.sum()
    if kind == -math.inf:
        return size.min()
    if kind == 0:
        return (size != 0).sum().to(size.dtype)
    if kind == 1:
        return size.sum()
    if kind == 2:
        return (size * size).sum().sqrt()
    return size.pow(kind).sum().pow(1.0 / kind)


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of the norms of tensors: that of all their elements together. norm_type may be inf.

    Raises RuntimeError if it is not finite and `error_if_nonfinite`.
    """
    tensors, kind = _tensors(tensors), float(norm_type)
    if not tensors:
        return _C.tensor(0.0)
    norms = _C.stack([_norm(t.detach(), kind) for t in tensors])
    total = _norm(norms, kind)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"get_total_norm: the norm of order {kind} of the gradients is {total.item()}; to clip all the same, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies the gradients by max_norm / total_norm where that is below 1."""
    # A multiplication by 1 leaves values as they are, and asking would cost a comparison of its own.
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for grad in _grads(parameters):
        grad.mul_(factor.to(grad.device))


@no_grad()
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients of the parameters so that their norm together is at most max_norm; returns what it was."""
    parameters = _tensors(parameters)
    if not parameters:
        _warn("clip_grad_norm_: there are no parameters, so nothing is clipped")
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of clip_grad_norm_."""
    _warn("nn.utils.clip_grad_norm is deprecated in favor of nn.utils.clip_grad_norm_.", FutureWarning)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limits each element of the gradients to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for grad in _grads(parameters):
        grad.clamp_(-clip_value, clip_value)


_check_module(globals())
