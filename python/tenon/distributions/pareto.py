"""The Pareto distribution of type 1."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all, same_as

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution from `scale` on, whose tail falls with the power `alpha`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _repeated = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        # Infinite for alpha <= 1.
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode: Tensor = same_as("scale")

    @property
    def variance(self) -> Tensor:
        # Infinite for alpha <= 2.
        a = self.alpha.clamp(min=2)
        return self.scale * self.scale * a / ((a - 1) * (a - 1) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        below = value < self.scale
        x = tn.where(below, self.scale, value)
        inside = tn.log(self.alpha) + self.alpha * tn.log(self.scale) - (self.alpha + 1) * tn.log(x)
        return tn.where(below, -math.inf, inside)

    def entropy(self) -> Tensor:
        return tn.log(self.scale / self.alpha) + (1 + self.alpha.reciprocal())
