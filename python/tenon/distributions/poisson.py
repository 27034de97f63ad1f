"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all, same_as

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The Poisson distribution of mean `rate`."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _repeated = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean: Tensor = same_as("rate")

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    variance: Tensor = same_as("rate")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return tn.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return tn.xlogy(value, rate) - rate - tn.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (tn.log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return tn.exp(natural_params[0])
