"""Limits for gradients. `foreach` makes no difference: it chooses an implementation in PyTorch."""

from __future__ import annotations

import functools
import math

from ... import _C
from ...arguments import check_module as _check_module
from ...autograd.grad_mode import no_grad
from ...callers import warn as _warn
from ..._names.info import sum_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ...types import Tensors


def _tensors(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, _C.Tensor) else list(tensors)


def _grads(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _tensors(parameters) if p.grad is not None]


def _total_norm(tensors: list[Tensor], kind: float) -> tuple[Tensor, _C.dtype]:
    """The norm of all elements together, of half types in float32, and the dtype that the tensors' own norms promote to."""
    if math.isinf(kind):
        tensors = [t for t in tensors if t.numel()]  # no extremum is among no elements
    if not tensors:
        return _C.tensor(0.0), _C.float32
    norms = [_C.linalg_vector_norm(t.detach(), kind, dtype=sum_type(t.dtype)) for t in tensors]
    total = _C.linalg_vector_norm(_C.stack(norms), kind)
    own = [t.dtype if t.is_floating_point() else norm.dtype for t, norm in zip(tensors, norms)]
    return total, functools.reduce(_C.promote_types, own)


def _check_finite(total: Tensor, kind: float) -> None:
    if not math.isfinite(total.item()):
        raise RuntimeError(
            f"get_total_norm: the norm of order {kind} of the gradients is {total.item()}; to clip all the same, set "
            "`error_if_nonfinite=False`"
        )


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of the norms of tensors: that of all their elements together. norm_type may be inf.

    Raises RuntimeError if it is not finite and `error_if_nonfinite`.
    """
    total, dtype = _total_norm(_tensors(tensors), float(norm_type))
    total = total.to(dtype)
    if error_if_nonfinite:
        _check_finite(total, float(norm_type))
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies the gradients by max_norm / total_norm where that is below 1."""
    # A multiplication by 1 leaves values as they are, and asking would cost a comparison of its own.
    total_norm = total_norm.to(sum_type(total_norm.dtype) or total_norm.dtype)
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
    """Scales the gradients of the parameters so that their norm together is at most max_norm; returns what it was.

    Of half types the norm that scales is a float32: one beyond float16 is returned as inf, and scales all the same.
    """
    parameters = _tensors(parameters)
    if not parameters:
        _warn("clip_grad_norm_: there are no parameters, so nothing is clipped")
    total, dtype = _total_norm(_grads(parameters), float(norm_type))
    if error_if_nonfinite:
        _check_finite(total, float(norm_type))
    clip_grads_with_norm_(parameters, max_norm, total)
    return total.to(dtype)


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
