"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform
from .utils import same_as

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The inverse of a gamma number of shape `concentration` and rate `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]
    _repeated = ()

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        neg_one = -tn.ones((), dtype=base.rate.dtype, device=base.rate.device)
        super().__init__(base, PowerTransform(neg_one), validate_args=validate_args)

    concentration: Tensor = same_as("base_dist.concentration", "The shape of the gamma number.")
    rate: Tensor = same_as("base_dist.rate", "Its rate.")

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return tn.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return tn.where(a > 2, self.rate * self.rate / ((a - 1) * (a - 1) * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + tn.log(self.rate) + tn.lgamma(a) - (1 + a) * tn.digamma(a)
