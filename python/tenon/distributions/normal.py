"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from .distribution import LocationScale
from .exp_family import ExponentialFamily
from .utils import same_as, standard_normal

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution of mean `loc` and standard deviation `scale`."""

    _mean_carrier_measure = 0
    mean: Tensor = same_as("loc")
    stddev: Tensor = same_as("scale")

    @property
    def variance(self) -> Tensor:
        return self.stddev * self.stddev

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * z * z - tn.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return tn.special_ndtr((value - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tn.special_ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + tn.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.variance, -0.5 / self.variance

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return -0.25 * x * x / y + 0.5 * tn.log(-math.pi / y)
