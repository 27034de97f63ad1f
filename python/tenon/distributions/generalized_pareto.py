"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, same_as

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution from `loc` on, of `scale` and shape `concentration`; of shape 0 it is exponential."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _repeated = ("loc", "scale", "concentration")

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = tn.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Whether the shape is 0, and the shape with 1 there."""
        zero = self.concentration == 0
        return zero, tn.where(zero, 1.0, self.concentration)

    def _log_tail(self, y: Tensor) -> Tensor:
        """log(1 - cdf) at loc + scale y."""
        zero, k = self._shape()
        return tn.where(zero, -y, -tn.log1p((k * y).clamp(min=-1)) / k)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (value - self.loc) / self.scale
        return self._log_tail(y) * (1 + self.concentration) - tn.log(self.scale)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 - cdf(value))."""
        self._check(value)
        return self._log_tail((value - self.loc) / self.scale)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log(cdf(value))."""
        return tn.log1p(-tn.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return -tn.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        zero, k = self._shape()
        log_tail = tn.log1p(-value)
        return self.loc + self.scale * tn.where(zero, -log_tail, tn.expm1(-k * log_tail) / k)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return tn.where(k < 1, self.loc + self.scale / (1 - k), math.inf)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        spread = self.scale * self.scale / ((1 - k) * (1 - k) * (1 - 2 * k))
        return tn.where(k < 0.5, spread, math.inf)

    mode: Tensor = same_as("loc")

    def entropy(self) -> Tensor:
        return tn.log(self.scale) + self.concentration + 1

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        _, k = self._shape()
        upper = tn.where(self.concentration < 0, self.loc - self.scale / k, math.inf)
        return constraints.interval(self.loc, upper)
