"""Losses as modules: each calls the function of the same name in nn.functional with the options that it keeps."""

from __future__ import annotations

from ..arguments import check_module as _check_module
from . import functional as F
from .loss_functions import reduction_of
from .module import TensorModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

_WORDS = ("none", "mean", "sum")


class _Loss(TensorModule):
    """What all losses have: a reduction, "none", "mean" or "sum". size_average and reduce are former names of it."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        # A wrong word is an error now, not at the first batch.
        self.reduction = _WORDS[reduction_of(type(self).__name__, reduction, size_average, reduce)]


class _TargetLoss(_Loss):
    """A loss of an input and a target by a function, which takes the reduction and the attributes named `_options`."""

    _function: Any = None
    _options: tuple[str, ...] = ()

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return self._function(input, target, reduction=self.reduction, **{name: getattr(self, name) for name in self._options})


class _WeightedLoss(_TargetLoss):
    _options: tuple[str, ...] = ("weight",)

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of input [N, C] (logits) and target [N] (class numbers, int64)."""

    _function, _options = staticmethod(F.cross_entropy), ("weight", "ignore_index", "label_smoothing")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing


class NLLLoss(_WeightedLoss):
    """The negative log-likelihood of input [N, C] (log-probabilities) and target [N] (class numbers, int64)."""

    _function, _options = staticmethod(F.nll_loss), ("weight", "ignore_index")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index


class MSELoss(_TargetLoss):
    """(input - target)^2"""

    _function = staticmethod(F.mse_loss)


class L1Loss(_TargetLoss):
    """|input - target|"""

    _function = staticmethod(F.l1_loss)


class SmoothL1Loss(_TargetLoss):
    """Half the square of the difference over `beta` below `beta`, |input - target| - beta / 2 above it."""

    _function, _options = staticmethod(F.smooth_l1_loss), ("beta",)

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta


class HuberLoss(_TargetLoss):
    """Half the square of the difference up to `delta`, delta * (|input - target| - delta / 2) above it."""

    _function, _options = staticmethod(F.huber_loss), ("delta",)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta


class BCELoss(_WeightedLoss):
    """The cross entropy of probabilities `input` in [0, 1] and `target`."""

    _function = staticmethod(F.binary_cross_entropy)


class BCEWithLogitsLoss(_WeightedLoss):
    """BCELoss of sigmoid(input), without overflow; pos_weight multiplies what a target of 1 costs."""

    _function, _options = staticmethod(F.binary_cross_entropy_with_logits), ("weight", "pos_weight")

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)


class KLDivLoss(_TargetLoss):
    """The divergence of target (probabilities, or with log_target their logarithms) from input (log-probabilities)."""

    _function, _options = staticmethod(F.kl_div), ("log_target",)

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, "mean" if reduction == "batchmean" else reduction)
        if reduction == "batchmean":
            self.reduction = reduction
        self.log_target = log_target


class SoftMarginLoss(_TargetLoss):
    """log(1 + exp(-target * input)), of targets 1 and -1."""

    _function = staticmethod(F.soft_margin_loss)


class _PairLoss(_Loss):
    _function: Any = None

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return self._function(input1, input2, target, self.margin, reduction=self.reduction)


class MarginRankingLoss(_PairLoss):
    """max(0, margin - target * (input1 - input2)), of targets 1 and -1."""

    _function = staticmethod(F.margin_ranking_loss)


class HingeEmbeddingLoss(_TargetLoss):
    """input where target is 1, max(0, margin - input) where it is -1."""

    _function, _options = staticmethod(F.hinge_embedding_loss), ("margin",)

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class PoissonNLLLoss(_Loss):
    """exp(input) - target * input, or with log_input=False input - target * log(input + eps)."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """(log(var) + (input - target)^2 / var) / 2, where var is at least eps."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) of vectors along the last dimension."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: margin must be above 0, got {margin}")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class CosineEmbeddingLoss(_PairLoss):
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1; inputs are [N, D] or [D]."""

    _function = staticmethod(F.cosine_embedding_loss)


class CosineSimilarity(TensorModule):
    """The cosine of the angles between vectors along `dim`; lengths below eps count as eps."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(TensorModule):
    """The p-norm of x1 - x2 + eps along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


_check_module(globals())
