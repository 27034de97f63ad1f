"""The half-Cauchy distribution."""

from __future__ import annotations

import math

from .. import _C as tn
from .._C import Tensor
from .cauchy import Cauchy
from .half_normal import HalfDistribution
from .utils import same_as

__all__ = ["HalfCauchy"]


class HalfCauchy(HalfDistribution):
    """The absolute value of a Cauchy number of median 0 and half width `scale`."""

    _whole = Cauchy
    scale: Tensor = same_as("base_dist.scale", "The half width.")
    variance: Tensor = same_as("base_dist.variance")

    @property
    def mean(self) -> Tensor:
        return tn.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 / math.pi * tn.atan(value / self.scale)

    def icdf(self, prob: Tensor) -> Tensor:
        return self.scale * tn.tan(0.5 * math.pi * prob)
