"""Losses as modules: each calls the function of the same name in nn.functional with the options that it keeps."""

from . import functional as F
from .module import Module


class _Loss(Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction
        F._reduction(reduction)  # a wrong word is an error now, not at the first batch


class CrossEntropyLoss(_Loss):
    """The cross entropy of input [N, C] (logits) and target [N] (class numbers, int64)."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input, target):
        return F.cross_entropy(
            input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(_Loss):
    """The negative log-likelihood of input [N, C] (log-probabilities) and target [N] (class numbers, int64)."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input, target):
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class MSELoss(_Loss):
    """(input - target)^2"""

    def forward(self, input, target):
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """|input - target|"""

    def forward(self, input, target):
        return F.l1_loss(input, target, self.reduction)
