"""Modules that drop elements or channels at random while training."""

from __future__ import annotations

from ..arguments import check_module as _check_module
from . import functional as F
from .module import TensorModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


class _Dropout(TensorModule):
    _function: Any = None
    _shown = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{type(self).__name__}: p must be between 0 and 1, got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.p, self.training, self.inplace)


class Dropout(_Dropout):
    """Zeroes each element with probability p while training, and scales the others by 1 / (1 - p).

    Srivastava et al. (2014), JMLR 15. In evaluation it returns its input.
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """As Dropout, for whole channels of input [N, C, L] or [C, L]."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """As Dropout, for whole channels of input [N, C, H, W]."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """As Dropout, for whole channels of input [N, C, D, H, W] or [C, D, H, W]."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_Dropout):
    """Gives each element selu's limit with probability p while training, then keeps mean 0 and variance 1 by an affine map.

    Klambauer et al. (2017), arXiv:1706.02515.
    """

    _function = staticmethod(F.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """As AlphaDropout, for whole channels of input [N, C, ...]."""

    _function = staticmethod(F.feature_alpha_dropout)


_check_module(globals())
