"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from .distribution import LocationScale
from .utils import rand_open

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """The Cauchy (Lorentz) distribution of median `loc` and half width `scale`; it has no mean and no variance."""

    @property
    def mean(self) -> Tensor:
        return tn.full(self._extended_shape(), math.nan, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def variance(self) -> Tensor:
        return tn.full(self._extended_shape(), math.inf, dtype=self.loc.dtype, device=self.loc.device)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = rand_open(self._extended_shape(sample_shape), self.loc)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - tn.log(self.scale) - tn.log1p(z * z)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return tn.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return tn.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + tn.log(self.scale)
