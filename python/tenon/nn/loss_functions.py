"""The losses of nn.functional: operators, and compositions of them, whose reduction is a word.

`size_average` and `reduce` are PyTorch's former names for a reduction: given, they take the place of `reduction`.
"""

from __future__ import annotations

import math
from functools import partial

from .. import _C
from ..arguments import checked as _checked, describe as _describe, name_called as _name_called
from ..callers import warn as _warn
from .._names.info import sum_type as _sum_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Size, Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "pairwise_distance",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
]

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_bce, _bce_with_logits = _C.binary_cross_entropy, _C.binary_cross_entropy_with_logits
_cross_entropy, _nll_loss, _mse_loss, _l1_loss = _C.cross_entropy_loss, _C.nll_loss, _C.mse_loss, _C.l1_loss
_vector_norm = _C.linalg_vector_norm
_huber_loss, _smooth_l1_loss, _kl_div, _soft_margin_loss = _C.huber_loss, _C.smooth_l1_loss, _C.kl_div, _C.soft_margin_loss


def reduction_of(name: str, word: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """The number that operators know a reduction by. Raises ValueError, in the name of a loss, for another word."""
    if size_average is not None or reduce is not None:
        word = "none" if reduce is False else "sum" if size_average is False else "mean"
        _warn(f"{name}: size_average and reduce are former names; say reduction={word!r}")
    if not isinstance(word, str) or word not in _REDUCTIONS:
        raise ValueError(f"{name}: reduction must be 'none', 'mean' or 'sum', got {word!r}")
    return _REDUCTIONS[word]


def _reduced(values: Tensor, number: int) -> Tensor:
    return values if number == 0 else values.mean() if number == 1 else values.sum()


def _weighted(name: str, values: Tensor, weight: Tensor, shape: Size) -> Tensor:
    """Values times weights, which have the input's shape."""
    if not isinstance(weight, _C.Tensor):
        raise TypeError(f"{name}: weight must be a Tensor or None, got {_describe(weight)}")
    if weight.shape != shape:
        raise ValueError(f"{name}: weight {list(weight.shape)} must have the shape of the input, {list(shape)}")
    return values * weight


def _check_shapes(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ValueError(f"{name}: input {list(input.shape)} and target {list(target.shape)} must have the same shape")


def _check_ranks(name: str, a: Tensor, b: Tensor, c: Tensor) -> None:
    if not a.dim() == b.dim() == c.dim():
        raise RuntimeError(f"{name}: all tensors must have as many dimensions, got {list(a.shape)}, {list(b.shape)} and {list(c.shape)}")


def _broadcast(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the shape that they broadcast to, as PyTorch has them before it promotes: a 0-dim tensor then counts as others do."""
    if input.shape == target.shape:
        return input, target
    sizes = target.shape, input.shape
    try:
        input, target = _C.broadcast_tensors([input, target])
    except _C.ShapeError:
        raise _C.ShapeError(f"{name}: target {list(sizes[0])} does not broadcast with input {list(sizes[1])}; give both the same size") from None
    _warn(
        "Using a target size ({}) that is different to the input size ({}): ".format(*sizes)
        + f"{name} broadcasts them, which is rarely meant; give both the same size"
    )
    return input, target


def _difference_loss(loss: Any, input: Tensor, target: Tensor, number: int, weight: Tensor | None) -> Tensor:
    """A loss of the differences. With weights, the mean is divided by their sum."""
    shape = input.shape
    input, target = _broadcast(loss.__name__, input, target)
    if weight is None:
        return loss(input, target, number)
    values = _weighted(loss.__name__, loss(input, target, 0), weight, shape)
    return values.sum() / weight.sum() if number == 1 else _reduced(values, number)


def _widened(x: Tensor, dtype: _C.dtype) -> Tensor:
    """A tensor in `dtype`, of a half type in float32: for squares, which leave half types and small integers."""
    return x.to(_sum_type(dtype) or dtype)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log-likelihood of the classes `target` [N] (int64), or of their probabilities [N, C], under
    softmax(input), where input is [N, C] or [N, C, ...]."""
    number = reduction_of("cross_entropy", reduction, size_average, reduce)
    try: return _cross_entropy(input, target, weight, number, ignore_index, label_smoothing)  # fmt: skip
    except Exception as error:
        _name_called(error, "cross_entropy")
        raise


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of the classes `target` [N] (int64), where input [N, C] has log-probabilities."""
    return _nll_loss(input, target, weight, reduction_of("nll_loss", reduction, size_average, reduce), ignore_index)


@_checked
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)^2"""
    return _difference_loss(_mse_loss, input, target, reduction_of("mse_loss", reduction, size_average, reduce), weight)


@_checked
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|"""
    return _difference_loss(_l1_loss, input, target, reduction_of("l1_loss", reduction, size_average, reduce), weight)


@_checked
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Half the square of the difference over `beta` below `beta`, |input - target| - beta / 2 above it.

    Girshick (2015), arXiv:1504.08083.
    """
    number = reduction_of("smooth_l1_loss", reduction, size_average, reduce)
    return _smooth_l1_loss(*_broadcast("smooth_l1_loss", input, target), number, beta)


@_checked
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the square of the difference up to `delta`, delta * (|input - target| - delta / 2) above it. Huber (1964)."""
    number = reduction_of("huber_loss", reduction)
    shape = input.shape
    input, target = _broadcast("huber_loss", input, target)
    if weight is not None:
        return _reduced(_weighted("huber_loss", _huber_loss(input, target, 0, delta), weight, shape), number)
    return _huber_loss(input, target, number, delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)), where logarithms are at least -100. Input is in [0, 1]."""
    return _bce(input, target, weight, reduction_of("binary_cross_entropy", reduction, size_average, reduce))


@_checked
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies what a target of 1 costs."""
    number = reduction_of("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    _check_shapes("binary_cross_entropy_with_logits", input, target)
    return _bce_with_logits(input, target, weight, pos_weight, number)


@_checked
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The divergence of target from input, pointwise: target * (log(target) - input), where input has log-probabilities.

    Kullback and Leibler (1951). reduction "batchmean" divides the sum by the size of dimension 0, as the definition does.
    """
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = _kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    return _kl_div(input, target, reduction_of("kl_div", reduction, size_average, reduce), log_target=log_target)


@_checked
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target * input)), of targets 1 and -1."""
    return _soft_margin_loss(input, target, reduction_of("soft_margin_loss", reduction, size_average, reduce))


@_checked
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)): input1 should be larger where target is 1, smaller where it is -1."""
    number = reduction_of("margin_ranking_loss", reduction, size_average, reduce)
    _check_ranks("margin_ranking_loss", input1, input2, target)
    return _reduced((margin - target * (input1 - input2)).clamp(min=0), number)


@_checked
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    number = reduction_of("hinge_embedding_loss", reduction, size_average, reduce)
    zero = _C.zeros_like(input)
    apart = _C.where(target != 1, (margin - input).clamp(min=0), zero)
    return _reduced(apart + _C.where(target != -1, input, zero), number)


@_checked
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target * input, or with log_input=False input - target * log(input + eps). `full` adds Stirling's formula
    for log(target!) where target is above 1."""
    number = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    values = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        values = values + stirling.masked_fill(target <= 1, 0)
    return _reduced(values, number)


@_checked
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, where var is at least eps; `full` adds log(2 pi) / 2.

    var is a number or a tensor of the shape of input, of that shape with 1 for the last size, or without it.
    """
    number = reduction_of("gaussian_nll_loss", reduction)
    if not isinstance(var, _C.Tensor):
        var = _C.full_like(input, var)
    elif var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    elif var.dim() != input.dim() or any(n not in (1, size) for n, size in zip(var.shape, input.shape)):
        raise ValueError(f"gaussian_nll_loss: var {list(var.shape)} does not fit input {list(input.shape)}")
    if not var.is_meta and (var < 0).any():
        raise ValueError("gaussian_nll_loss: var has a negative element")
    var = var + (var.detach().clamp(min=eps) - var.detach())  # bounded, with the slope of what is not
    values = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduced(values + 0.5 * math.log(2 * math.pi) if full else values, number)


@_checked
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension; p may be negative, as in linalg.vector_norm."""
    return _vector_norm(x1 - x2 + eps, p, -1, keepdim)


@_checked
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) of pairwise distances along the last dimension.

    With `swap`, the nearer of anchor and positive is what negative is compared with. Schroff et al. (2015), Balntas et al. (2016).
    """
    number = reduction_of("triplet_margin_loss", reduction, size_average, reduce)
    distance = partial(pairwise_distance, p=p, eps=eps)
    return _reduced(triplet_margins("triplet_margin_loss", distance, anchor, positive, negative, margin, swap), number)


def triplet_margins(
    name: str, distance: Callable[..., Tensor], anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, swap: bool
) -> Tensor:
    """The loss of each triplet, in the name of a function."""
    if margin <= 0:
        raise ValueError(f"{name}: margin must be above 0, got {margin}")
    _check_ranks(name, anchor, positive, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    return (margin + near - far).clamp(min=0)


@_checked
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angles between vectors along `dim`, which broadcast; lengths below eps count as eps."""
    dtype = _C.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise TypeError(f"cosine_similarity: expected floating-point tensors, got {x1.dtype} and {x2.dtype}")
    x1, x2 = _C.broadcast_tensors([_widened(x1, dtype), _widened(x2, dtype)])
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim).to(dtype)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    square = (x * x).sum(dim, keepdim=True)
    # The square is bounded, not the root, whose slope at 0 is infinite.
    return x / square.clamp(min=eps * eps).sqrt()


@_checked
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1; vectors are rows of [N, D], or [D]."""
    number = reduction_of("cosine_embedding_loss", reduction, size_average, reduce)
    if input1.dim() not in (1, 2) or input1.dim() != input2.dim() or target.dim() != input1.dim() - 1:
        raise ValueError(
            f"cosine_embedding_loss: expected inputs [N, D] and target [N], or [D] and a number, got "
            f"{list(input1.shape)}, {list(input2.shape)} and {list(target.shape)}"
        )
    dim, dtype = input1.dim() - 1, _C.promote_types(input1.dtype, input2.dtype)
    if not dtype.is_floating_point:
        dtype = _C.get_default_dtype()
    input1, input2 = _widened(input1, dtype), _widened(input2, dtype)
    product = (input1 * input2).sum(dim)
    lengths = ((input1 * input1).sum(dim) + 1e-12) * ((input2 * input2).sum(dim) + 1e-12)
    cosine = (product / lengths.sqrt()).to(dtype)
    zero = _C.zeros_like(cosine)
    values = _C.where(target == 1, 1 - cosine, zero) + _C.where(target == -1, (cosine - margin).clamp(min=0), zero)
    return _reduced(values, number)
