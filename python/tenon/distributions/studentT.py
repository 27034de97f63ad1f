"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all, same_as, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom, around `loc` and stretched by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _repeated = ("df", "loc", "scale", "_chi2")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return tn.where(self.df <= 1, math.nan, self.loc)

    mode: Tensor = same_as("loc")

    @property
    def variance(self) -> Tensor:
        spread = self.scale * self.scale * self.df / tn.where(self.df > 2, self.df - 2, 1.0)
        return tn.where(self.df > 2, spread, tn.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * x * tn.rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        y = (value - self.loc) / self.scale
        z = tn.log(self.scale) + 0.5 * tn.log(self.df) + 0.5 * math.log(math.pi) + tn.lgamma(0.5 * self.df) - tn.lgamma(0.5 * (self.df + 1))
        return -0.5 * (self.df + 1) * tn.log1p(y * y / self.df) - z

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        log_beta = tn.lgamma(half) + math.lgamma(0.5) - tn.lgamma(half + 0.5)
        return tn.log(self.scale) + 0.5 * (self.df + 1) * (tn.digamma(half + 0.5) - tn.digamma(half)) + 0.5 * tn.log(self.df) + log_beta
