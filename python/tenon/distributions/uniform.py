"""The continuous uniform distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution on [low, high)."""

    has_rsample = True
    _repeated = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            from .distribution import _offender

            low_at, place = _offender(self.low, self.low < self.high)
            high_at, _ = _offender(self.high, self.low < self.high)
            raise ValueError(f"Uniform is not defined when low >= high: expected parameter low below high, got {low_at} and {high_at}{place}")

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {"low": constraints.dependent, "high": constraints.dependent}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def variance(self) -> Tensor:
        width = self.high - self.low
        return width * width / 12

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = tn.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low <= value) & (value < self.high)
        return tn.log(inside.to(self.low.dtype)) - tn.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return tn.log(self.high - self.low)
