"""Losses as modules that load when they are asked for: of labels in a sequence, of pairs of classes, of triplets by any distance."""

from __future__ import annotations

from ..arguments import check_module as _check_module
from . import functional as F
from .loss import NLLLoss, PairwiseDistance, _Loss, _TargetLoss, _WeightedLoss

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._C import Tensor


class CTCLoss(_Loss):
    """The negative log-likelihood of labels over all their alignments with the steps of log_probs; see functional.ctc_loss."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


class MultiMarginLoss(_WeightedLoss):
    """How much classes come near the target's score: see functional.multi_margin_loss."""

    _function, _options = staticmethod(F.multi_margin_loss), ("p", "margin", "weight")

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p must be 1 or 2, got {p}")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: weight must be [C], got {list(weight.shape)}")
        self.p, self.margin = p, margin


class MultiLabelMarginLoss(_TargetLoss):
    """How much other classes come near the targets' scores: see functional.multilabel_margin_loss."""

    _function = staticmethod(F.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of the cross entropy of sigmoid(input) and target: see functional.multilabel_soft_margin_loss."""

    _function = staticmethod(F.multilabel_soft_margin_loss)


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a distance of the caller's: a function of two tensors."""

    def __init__(
        self,
        *,
        distance_function: Callable[..., Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: margin must be above 0, got {margin}")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class NLLLoss2d(NLLLoss):
    """NLLLoss, under the former name of it for images [N, C, H, W]."""


_check_module(globals())
