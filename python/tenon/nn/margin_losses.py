"""Losses over pairs of classes, and of triplets by any distance; bilinear forms."""

from __future__ import annotations

from .. import _C
from ..arguments import checked as _checked, describe as _describe
from .loss_functions import _reduced, pairwise_distance as _pairwise_distance, reduction_of as _reduction_of, triplet_margins as _triplet_margins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .._C import Tensor

pdist = _C.pdist


def _rows(function: str, input: Tensor, target: Tensor, labels: bool) -> tuple[Tensor, Tensor]:
    """Input [N, C] and target [N], or with `labels` [N, C], of those, of one row of them or of one number."""
    if input.dim() == 0 and target.dim() <= 1:
        input, target = input.reshape(1), target.reshape(-1) if labels else target
    fits = input.dim() in (1, 2) and input.shape[-1] > 0
    batch = input.shape[0] if input.dim() == 2 else 1
    wanted = list(input.shape) if labels else list(input.shape[:-1])
    alone = not labels and input.dim() == 1 and target.numel() == 1 and target.dim() <= 1
    if not fits or not (list(target.shape) == wanted or alone):
        raise RuntimeError(
            f"{function}: expected input [N, C] and target {'[N, C]' if labels else '[N]'}, or one row of them, got "
            f"{list(input.shape)} and {list(target.shape)}"
        )
    if target.dtype != _C.int64:
        raise RuntimeError(f"{function}: target must be int64, got {target.dtype}")
    if not input.is_floating_point():
        raise TypeError(f"{function}: not implemented for {input.dtype}; convert input to a floating-point type")
    return input.reshape(batch, input.shape[-1]), target.reshape(batch, input.shape[-1]) if labels else target.reshape(batch)


def _check_classes(function: str, target: Tensor, least: int, classes: int) -> None:
    if target.numel() and not target.is_meta and (int(target.min()) < least or int(target.max()) >= classes):
        raise RuntimeError(f"{function}: target must be from {least} to {classes - 1}, got {int(target.min())} to {int(target.max())}")


@_checked
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes i of max(0, margin - input[y] + input[i]) ** p without i = y, the target; input [N, C] or [C], target [N]
    or 0-dim. `weight` [C] multiplies the terms of a row by that of its target. p is 1 or 2. Crammer and Singer (2001)."""
    number = _reduction_of("multi_margin_loss", reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"multi_margin_loss: weight must be [C], got {list(weight.shape)}")
    rows, classes = _rows("multi_margin_loss", input, target, False)
    _check_classes("multi_margin_loss", classes, 0, rows.shape[1])
    if weight is not None and weight.numel() != rows.shape[1]:
        raise RuntimeError(f"multi_margin_loss: weight must be [{rows.shape[1]}], one for each class, got {list(weight.shape)}")
    at = classes.unsqueeze(1)
    apart = (margin - rows.gather(1, at) + rows).clamp(min=0)
    if p == 2:
        apart = apart * apart
    if weight is not None:
        apart = apart * weight[classes].unsqueeze(1)
    values = apart.scatter(1, at, 0.0).sum(1) / rows.shape[1]
    return _reduced(values.reshape(target.shape), number)


@_checked
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """The sum of max(0, 1 - input[y] + input[i]) over targets y and classes i that are no targets, divided by the number of classes.
    target [N, C] or [C] has the targets of a row, up to the first -1."""
    number = _reduction_of("multilabel_margin_loss", reduction, size_average, reduce)
    rows, labels = _rows("multilabel_margin_loss", input, target, True)
    classes = rows.shape[1]
    _check_classes("multilabel_margin_loss", labels, -1, classes)
    given = (labels >= 0).to(_C.int64).cumprod(1)
    most = classes if labels.is_meta else int(given.sum(1).amax()) if labels.shape[0] else 0
    labels, given = labels[:, :most].clamp(min=0), given[:, :most]
    is_target = _C.zeros_like(rows, dtype=_C.int64).scatter_reduce(1, labels, given, "amax")
    counted = given.unsqueeze(2) * (1 - is_target).unsqueeze(1)
    apart = (1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1)).clamp(min=0)
    values = _C.where(counted != 0, apart, 0.0).sum((1, 2)) / classes
    return _reduced(values.reshape(input.shape[:-1]), number)


@_checked
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the last dimension of -(target * log(sigmoid(input)) + (1 - target) * log(1 - sigmoid(input))), times `weight`."""
    number = _reduction_of("multilabel_soft_margin_loss", reduction, size_average, reduce)
    values = -(target * _C.log_sigmoid(input) + (1 - target) * _C.log_sigmoid(-input))
    if weight is not None:
        values = values * weight
    return _reduced(values.sum(-1) / input.shape[-1], number)


@_checked
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[..., Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with another distance: a function of two tensors, unless given pairwise_distance."""
    number = _reduction_of("triplet_margin_with_distance_loss", reduction)
    distance = _pairwise_distance if distance_function is None else distance_function
    return _reduced(_triplet_margins("triplet_margin_with_distance_loss", distance, anchor, positive, negative, margin, swap), number)


@_checked
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1^T weight[o] input2 + bias[o] for each o: [.., I], [.., J], weight [O, I, J] and bias [O] give [.., O]."""
    for name, value in (("input1", input1), ("input2", input2), ("weight", weight)):
        if not isinstance(value, _C.Tensor):
            raise TypeError(f"bilinear: {name} must be a Tensor, got {_describe(value)}")
    if weight.dim() != 3 or input1.dim() == 0 or input1.dim() != input2.dim() or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear: expected input1 [.., I] and input2 [.., J] with the same leading sizes, and weight [O, I, J], got "
            f"{list(input1.shape)}, {list(input2.shape)} and {list(weight.shape)}"
        )
    if weight.shape[1:] != (input1.shape[-1], input2.shape[-1]):
        raise RuntimeError(f"bilinear: weight must be [O, {input1.shape[-1]}, {input2.shape[-1]}] for these inputs, got {list(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise RuntimeError(f"bilinear: bias must be [{weight.shape[0]}], got {list(bias.shape)}")
    left, right = input1.reshape(-1, input1.shape[-1]), input2.reshape(-1, input2.shape[-1])
    result = _C.einsum("bi,oij,bj->bo", [left, weight, right]).reshape(*input1.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias
