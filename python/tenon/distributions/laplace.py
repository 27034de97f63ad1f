"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from .._names.info import finfo
from .distribution import LocationScale
from .utils import same_as

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """The Laplace distribution of mean `loc` and scale `scale`."""

    mean: Tensor = same_as("loc")

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale * self.scale

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        # 2 u - 1 of u on [0, 1) is -1 for u = 0, whose logarithm is infinite.
        u = 2 * tn.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device) - 1
        u = u.clamp(min=finfo(self.loc.dtype).eps - 1)
        return self.loc - self.scale * u.sign() * tn.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -tn.log(2 * self.scale) - tn.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        tail = 0.5 * tn.exp(-z.abs())
        return tn.where(z < 0, tail, 1 - tail)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * tn.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + tn.log(2 * self.scale)
