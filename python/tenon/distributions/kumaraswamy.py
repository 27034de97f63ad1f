"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moment(a: Tensor, b: Tensor, n: int) -> Tensor:
    """The moment n: b B(1 + n / a, b)."""
    first = 1 + n / a
    return tn.exp(tn.log(b) + tn.lgamma(first) + tn.lgamma(b) - tn.lgamma(first + b))


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution on [0, 1], of `concentration1` and `concentration0`."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]
    _repeated = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(tn.full_like(self.concentration0, 0), tn.full_like(self.concentration0, 1), validate_args=False)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b = self.concentration1, self.concentration0
        x = value.clamp(0, 1)
        inner = (x > 0) & (x < 1)
        above = tn.where(inner, -tn.expm1(a * tn.log(tn.where(inner, x, 0.5))), 1 - x)  # 1 - x ** a
        density = tn.log(a) + tn.log(b) + tn.xlogy(a - 1, x) + tn.xlogy(b - 1, above)
        return tn.where((value < 0) | (value > 1), -math.inf, density)

    @property
    def mean(self) -> Tensor:
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & ~((a == 1) & (b == 1))
        log_mode = (tn.log1p(-a.reciprocal()) - tn.log1p(-(a * b).reciprocal()) - b.log()) / a
        return tn.where(inside, tn.exp(log_mode), float("nan"))

    @property
    def variance(self) -> Tensor:
        mean = self.mean
        return _moment(self.concentration1, self.concentration0, 2) - mean * mean

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = tn.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - tn.log(a) - tn.log(b)
