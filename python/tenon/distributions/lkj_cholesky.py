"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from .. import _C as tn
from .._C import Tensor
from .._names.info import finfo
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, standard_normal

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices of size `dim`, with density proportional to det(L L^T) ** (concentration - 1).

    Lewandowski, Kurowicka and Joe (2009), "Generating random correlation matrices based on vines and extended onion method", whose
    onion method draws. A concentration of 1 makes all correlation matrices equally probable.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if not isinstance(dim, (int, Integral)) or dim < 2:
            raise (ValueError if isinstance(dim, (int, Integral)) else TypeError)(f"LKJCholesky: expected dim to be an integer greater than or equal to 2, got {dim!r}")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        place = tn.arange(dim, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = (place - 1).clamp(min=0)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)
        self._beta = Beta(0.5 * offset + 0.5, (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * offset, validate_args=False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LKJCholesky:
        new = self._expanded(LKJCholesky, batch_shape, ("concentration",), _instance)
        new.dim = self.dim
        new._beta = self._beta.expand(tuple(batch_shape) + (self.dim,))
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        # A row is a point of the sphere times the root of a beta number, and what is left of its length on the diagonal.
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = standard_normal(self._extended_shape(sample_shape), y.dtype, y.device).tril(-1)
        length = normal.square().sum(-1, True).sqrt()
        row = y.sqrt() * normal / tn.where(length == 0, 1.0, length)
        left = (1 - row.square().sum(-1)).clamp(min=finfo(row.dtype).tiny)
        return row + tn.diag_embed(left.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, less = self.dim, self.dim - 1
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        order = 2 * (self.concentration - 1).unsqueeze(-1) + n - tn.arange(2, n + 1, dtype=diagonal.dtype, device=diagonal.device)
        # Page 1999 of the paper has the constant.
        alpha = self.concentration + 0.5 * less
        norm = 0.5 * less * math.log(math.pi) + tn.mvlgamma(alpha - 0.5, less) - less * tn.lgamma(alpha)
        return (order * tn.log(diagonal)).sum(-1) - norm
