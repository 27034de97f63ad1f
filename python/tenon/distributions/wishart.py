"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import _C as tn, linalg
from .._C import Tensor
from .._names.info import finfo
from ..functional import broadcast_shapes
from . import constraints
from .exp_family import ExponentialFamily
from .multivariate_normal import MatrixParameter, _half_log_det, _one_matrix
from .utils import check_tensors, is_number, standard_normal

__all__ = ["Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of `mvlgamma`."""
    return tn.digamma(x.unsqueeze(-1) - 0.5 * tn.arange(p, dtype=x.dtype, device=x.device)).sum(-1)


class Wishart(MatrixParameter, ExponentialFamily):
    """The distribution of X X^T, the columns of X being `df` normal vectors of covariance `covariance_matrix` [..., p, p].

    `df` is any number above p - 1. In place of the covariance, `precision_matrix` or `scale_tril` may be given.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        kind, matrix = _one_matrix("Wishart", {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril})
        p = matrix.shape[-1]
        if matrix.shape[-2] != p:
            raise ValueError(f"Wishart: expected {kind} of shape [..., p, p], got {tuple(matrix.shape)}")
        df = tn.tensor(float(df), dtype=matrix.dtype, device=matrix.device) if is_number(df) else df
        check_tensors("Wishart", df=df)
        batch = tuple(broadcast_shapes(df.shape, matrix.shape[:-2]))
        self.df = df.expand(batch)
        self.__dict__[kind] = matrix.expand(batch + (p, p))
        if not df.is_meta and bool((df <= p - 1).any()):
            raise ValueError(f"Wishart: expected df above p - 1 = {p - 1}, got {df.min().item()}")
        if not df.is_meta and bool((df < p).any()):
            warnings.warn("Wishart: draws of df below p are often singular in the dtype's precision", stacklevel=2)
        super().__init__(batch, (p, p), validate_args=validate_args)
        self._set_factor(kind, matrix)

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        """The constraint of each parameter, by name."""
        return {
            "df": constraints.greater_than(self._event_shape[-1] - 1),
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
        }

    def expand(self, batch_shape: Any, _instance: Any = None) -> Wishart:
        new = self._expanded(Wishart, batch_shape, ("df",), _instance)
        self._expand_matrices(new, batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """NaN where df is at most p + 1."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return tn.where(factor <= 0, math.nan, factor)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Tensor:
        """Products of triangles whose squared diagonal is chi-square, below normal numbers (Bartlett, 1933)."""
        p = self._event_shape[-1]
        shape = self._extended_shape(sample_shape)
        half = 0.5 * (self.df.unsqueeze(-1) - tn.arange(p, dtype=self.df.dtype, device=self.df.device))
        square = 2 * tn._standard_gamma(half.expand(tuple(shape[:-1])))
        normal = standard_normal(shape, self.df.dtype, self.df.device).tril(-1)
        triangle = normal + tn.diag_embed(square.clamp(min=finfo(square.dtype).tiny).sqrt())
        factor = self._unbroadcasted_scale_tril @ triangle
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draws as `sample` gives, with gradients; those that are singular in the dtype's precision are drawn again, so many times."""
        sample = self._bartlett_sampling(sample_shape)
        if sample.is_meta or sample.numel() == 0:
            return sample
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            good = self.support.check(sample)
            if bool(good.all()):
                break
            if attempt == 0:
                warnings.warn("Wishart: singular draws are drawn again; a larger df or float64 has fewer of them", stacklevel=2)
            sample = tn.where(good[..., None, None], sample, self._bartlett_sampling(sample_shape))
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        inner = linalg.solve_triangular(factor, value, upper=False)
        trace = linalg.solve_triangular(factor.mT, inner, upper=True).diagonal(dim1=-2, dim2=-1).sum(-1)
        norm = nu * (0.5 * p * math.log(2) + _half_log_det(factor)) + tn.mvlgamma(0.5 * nu, p)
        return 0.5 * (nu - p - 1) * linalg.slogdet(value)[1] - 0.5 * trace - norm

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        half = 0.5 * nu
        return (
            (p + 1) * (0.5 * p * math.log(2) + _half_log_det(self._unbroadcasted_scale_tril))
            + tn.mvlgamma(half, p)
            - 0.5 * (nu - p - 1) * _mvdigamma(half, p)
            + half * p
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[-1] - 1)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        p = self._event_shape[-1]
        half = y + 0.5 * (p + 1)
        return half * (p * math.log(2) - linalg.slogdet(-2 * x)[1]) + tn.mvlgamma(half, p)
