"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from .._names.info import finfo
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant, same_as

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of mode `loc` and scale `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _repeated = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        low = tn.full_like(self.loc, info.tiny)
        high = tn.full_like(self.loc, 1 - info.eps)
        transforms = [
            ExpTransform().inv, AffineTransform(loc=0, scale=-tn.ones_like(self.scale)),
            ExpTransform().inv, AffineTransform(loc=self.loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(Uniform(low, high, validate_args=False), transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - tn.exp(y) - tn.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return tn.exp(-tn.exp((self.loc - value) / self.scale))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * tn.log(-tn.log(value))

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    mode: Tensor = same_as("loc")

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev * self.stddev

    def entropy(self) -> Tensor:
        return tn.log(self.scale) + (1 + euler_constant)
