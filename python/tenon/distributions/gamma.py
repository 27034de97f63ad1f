"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from .._names.info import finfo
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and rate `rate`."""

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support: Any = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _repeated = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / (self.rate * self.rate)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = tn._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # What underflowed would be outside of what others take.
        return tn.where(value == 0, finfo(value.dtype).tiny, value)

    def log_prob(self, value: Any) -> Tensor:
        value = tn.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        a, b = self.concentration, self.rate
        return tn.xlogy(a, b) + tn.xlogy(a - 1, value) - b * value - tn.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - tn.log(self.rate) + tn.lgamma(a) + (1 - a) * tn.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return tn.lgamma(x + 1) + (x + 1) * tn.log(-y.reciprocal())

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return tn.igamma(self.concentration, self.rate * value)
