"""Products with several weights at once: of groups of rows, and of a layer with the loss that follows it."""

from __future__ import annotations

import math

from .. import _C
from ..arguments import check_module as _check_module, describe as _describe
from .linear import Linear
from .loss import _WeightedLoss
from .loss_functions import cross_entropy as _cross_entropy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType


def _check_options(function: str, options: Any) -> None:
    if options is not None:
        raise NotImplementedError(f"{function}: options choose how the logits are computed in parts, which they are not here; give None")


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target): input [N, in_features] or [in_features], linear_weight
    [C, in_features], or [C, ..., in_features] for logits [N, C, ...]. All logits are computed at once; `options` must be None."""
    _check_options("linear_cross_entropy", options)
    fits = input.dim() == 2 and linear_weight.dim() >= 2 or input.dim() == 1 and linear_weight.dim() == 2
    if not fits or input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            f"linear_cross_entropy: expected input [N, in_features] and linear_weight [C, ..., in_features], or input [in_features] and "
            f"linear_weight [C, in_features], got {list(input.shape)} and {list(linear_weight.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(f"linear_cross_entropy: linear_bias must be {list(linear_weight.shape[:-1])}, got {list(linear_bias.shape)}")
    classes = linear_weight.shape[:-1]
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _C.linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias).reshape(*input.shape[:-1], *classes)
    ignored = -100 if ignore_index is None else ignore_index
    return _cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)


class LinearCrossEntropyLoss(_WeightedLoss):
    """A Linear layer and the cross entropy of its results in one: see functional.linear_cross_entropy."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Device = None,
        dtype: DType = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        _check_options("LinearCrossEntropyLoss", options)
        if weight is not None and list(weight.shape) != [num_classes]:
            raise RuntimeError(f"LinearCrossEntropyLoss: weight must be [{num_classes}], got {list(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"LinearCrossEntropyLoss: label_smoothing must be between 0 and 1, got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


def _bounds(offs: Tensor | None, size: int) -> list[tuple[int, int]]:
    """Where each group begins and ends."""
    if offs is None:
        raise RuntimeError("grouped_mm: offs must be given where an operand has 2 dimensions")
    if not isinstance(offs, _C.Tensor) or offs.dim() != 1 or offs.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(f"grouped_mm: offs must be a vector of int32, got {_describe(offs)}")
    ends = offs.tolist()
    begins = [0, *ends[:-1]]
    if any(not 0 <= a <= b <= size for a, b in zip(begins, ends)):
        raise RuntimeError(f"grouped_mm: offs must ascend from 0 to at most {size}, got {ends}")
    return list(zip(begins, ends))


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: DType = None
) -> Tensor:
    """Products of groups: of mat_a [M, K], whose rows `offs` [G] divides by where each group ends, and mat_b [G, K, N]: [M, N]; of
    [G, M, K] and [K, N], whose columns it divides: [M, N]; of [M, K] and [K, N], whose K it divides: [G, M, N]; of [G, M, K] and
    [G, K, N] without it: [G, M, N]."""
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3) or mat_a.dtype != mat_b.dtype:
        raise RuntimeError(
            f"grouped_mm: expected two tensors of one dtype with 2 or 3 dimensions, got {mat_a.dtype} {list(mat_a.shape)} and {mat_b.dtype} "
            f"{list(mat_b.shape)}"
        )
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(f"grouped_mm: the last size of mat_a must be that of mat_b before the last, got {list(mat_a.shape)} and {list(mat_b.shape)}")
    if bias is not None:
        raise NotImplementedError("grouped_mm: bias is not supported, as in PyTorch; add it to the result")
    flat_a, flat_b = mat_a.dim() == 2, mat_b.dim() == 2
    if not flat_a and not flat_b:
        if offs is not None:
            raise RuntimeError("grouped_mm: offs must be None where both operands have 3 dimensions")
        result = _C.bmm(mat_a, mat_b)
    else:
        divided = mat_a.shape[0] if not flat_b else mat_b.shape[1] if not flat_a else mat_a.shape[1]
        bounds = _bounds(offs, divided)
        groups = mat_b.shape[0] if not flat_b else mat_a.shape[0] if not flat_a else len(bounds)
        if groups != len(bounds):
            raise RuntimeError(f"grouped_mm: offs must have {groups} numbers, one for each group, got {len(bounds)}")
        end = bounds[-1][1] if bounds else 0
        if flat_a and flat_b:
            result = _C.stack([mat_a[:, i:j] @ mat_b[i:j] for i, j in bounds])
        elif flat_a:
            rest = mat_a.new_zeros(divided - end, mat_b.shape[-1])
            result = _C.cat([*(mat_a[i:j] @ mat_b[g] for g, (i, j) in enumerate(bounds)), rest])
        else:
            rest = mat_a.new_zeros(mat_a.shape[1], divided - end)
            result = _C.cat([*(mat_a[g] @ mat_b[:, i:j] for g, (i, j) in enumerate(bounds)), rest], 1)
    return result if out_dtype is None else result.to(out_dtype)


_check_module(globals())
