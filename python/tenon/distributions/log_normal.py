"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import same_as

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """e to the power of a normal number of mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]
    _repeated = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc: Tensor = same_as("base_dist.loc", "The mean of the logarithm.")
    scale: Tensor = same_as("base_dist.scale", "The standard deviation of the logarithm.")

    @property
    def mean(self) -> Tensor:
        return tn.exp(self.loc + self.scale * self.scale / 2)

    @property
    def mode(self) -> Tensor:
        return tn.exp(self.loc - self.scale * self.scale)

    @property
    def variance(self) -> Tensor:
        s2 = self.scale * self.scale
        return tn.expm1(s2) * tn.exp(2 * self.loc + s2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
