"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution of `scale` and shape `concentration`."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _repeated = ("scale", "concentration")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(tn.ones_like(self.scale), validate_args=False)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * tn.exp(tn.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return tn.where(k > 1, self.scale * ((k - 1).clamp(min=0) / k) ** self.concentration_reciprocal, 0.0)

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale * self.scale * (tn.exp(tn.lgamma(1 + 2 * r)) - tn.exp(2 * tn.lgamma(1 + r)))

    def entropy(self) -> Tensor:
        return euler_constant * (1 - self.concentration_reciprocal) + tn.log(self.scale * self.concentration_reciprocal) + 1
