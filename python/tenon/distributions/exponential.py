"""The exponential distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, rand_open

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution of rate `rate`."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _repeated = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return tn.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return 1 / (self.rate * self.rate)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return -tn.log(rand_open(self._extended_shape(sample_shape), self.rate)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return tn.log(self.rate) - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -tn.expm1(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -tn.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - tn.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -tn.log(-natural_params[0])
