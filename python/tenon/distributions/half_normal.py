"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform
from .utils import same_as

__all__ = ["HalfNormal"]


class HalfDistribution(TransformedDistribution):
    """The absolute value of a number of another distribution around 0, of `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True  # type: ignore[assignment]
    _repeated = ()
    _whole: Any = None

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return tn.zeros_like(self.base_dist.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return tn.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(HalfDistribution):
    """The absolute value of a normal number of mean 0 and standard deviation `scale`."""

    _whole = Normal
    scale: Tensor = same_as("base_dist.scale", "The standard deviation of the normal number.")

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale * self.scale * (1 - 2 / math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return tn.erf(value / (self.scale * math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * math.sqrt(2) * tn.erfinv(value)
