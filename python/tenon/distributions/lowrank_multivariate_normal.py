"""The multivariate normal distribution whose covariance is a diagonal and a matrix of low rank."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn, linalg
from .._C import Tensor
from ..functional import broadcast_shapes
from . import constraints
from .distribution import Distribution
from .multivariate_normal import _half_log_det, _mahalanobis, _times
from .utils import check_tensors, lazy_property, same_as, standard_normal

__all__ = ["LowRankMultivariateNormal"]


def _plus_identity(matrix: Tensor) -> Tensor:
    return matrix + tn.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def _capacitance_tril(factor: Tensor, diag: Tensor) -> Tensor:
    """The Cholesky factor of 1 + W^T D^-1 W, of the rank's size."""
    return linalg.cholesky(_plus_identity((factor.mT / diag.unsqueeze(-2)) @ factor))


def _log_det(diag: Tensor, capacitance_tril: Tensor) -> Tensor:
    """The logarithm of the determinant of W W^T + D (the matrix determinant lemma)."""
    return 2 * _half_log_det(capacitance_tril) + tn.log(diag).sum(-1)


def _low_rank_mahalanobis(factor: Tensor, diag: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """x^T (W W^T + D)^-1 x (Woodbury's identity)."""
    return (x.square() / diag).sum(-1) - _mahalanobis(capacitance_tril, _times(factor.mT / diag.unsqueeze(-2), x))


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors of mean `loc` [..., n] and covariance cov_factor cov_factor^T + cov_diag.

    `cov_factor` is [..., n, rank], `cov_diag` [..., n]. What it computes factors matrices of the rank's size.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        check_tensors("LowRankMultivariateNormal", loc=loc, cov_factor=cov_factor, cov_diag=cov_diag)
        if loc.dim() < 1:
            raise ValueError("LowRankMultivariateNormal: loc must be at least one-dimensional, got a tensor without dimensions")
        n = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != n:
            raise ValueError(f"LowRankMultivariateNormal: cov_factor must be a batch of matrices of shape [{n}, rank], got shape {tuple(cov_factor.shape)}")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"LowRankMultivariateNormal: cov_diag must be a batch of vectors of shape [{n}], got shape {tuple(cov_diag.shape)}")
        try:
            batch = tuple(broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]))
        except RuntimeError:
            raise ValueError(
                f"LowRankMultivariateNormal: incompatible batch shapes: loc {tuple(loc.shape)}, cov_factor {tuple(cov_factor.shape)}, "
                f"cov_diag {tuple(cov_diag.shape)}"
            ) from None
        self.loc, self.cov_diag = loc.expand(batch + (n,)), cov_diag.expand(batch + (n,))
        self.cov_factor = cov_factor.expand(batch + tuple(cov_factor.shape[-2:]))
        super().__init__(batch, (n,), validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LowRankMultivariateNormal:
        new = self._expanded(LowRankMultivariateNormal, batch_shape, ("loc", "cov_diag"), _instance, self.event_shape)
        new.cov_factor = self.cov_factor.expand(tuple(batch_shape) + tuple(self.cov_factor.shape[-2:]))
        return new

    mean: Tensor = same_as("loc")
    mode: Tensor = same_as("loc")

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The variance."""
        return (self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag).expand(self._extended_shape())

    def _of_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand(tuple(self._batch_shape) + tuple(self._event_shape) * 2)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance, by that of 1 + D^-1/2 W W^T D^-1/2."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        factor = self._unbroadcasted_cov_factor / root
        return self._of_batch(root * linalg.cholesky(_plus_identity(factor @ factor.mT)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._of_batch(factor @ factor.mT + tn.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance (Woodbury's identity)."""
        diag = self._unbroadcasted_cov_diag
        a = linalg.solve_triangular(self._capacitance_tril, self._unbroadcasted_cov_factor.mT / diag.unsqueeze(-2), upper=False)
        return self._of_batch(tn.diag_embed(diag.reciprocal()) - a.mT @ a)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rank = tuple(self.cov_factor.shape[-1:])
        low = standard_normal(tuple(shape[:-1]) + rank, self.loc.dtype, self.loc.device)
        own = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _times(self._unbroadcasted_cov_factor, low) + self._unbroadcasted_cov_diag.sqrt() * own

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        spread = _low_rank_mahalanobis(self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + _log_det(self._unbroadcasted_cov_diag, self._capacitance_tril) + spread)

    def entropy(self) -> Tensor:
        found = 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + _log_det(self._unbroadcasted_cov_diag, self._capacitance_tril))
        return found.expand(tuple(self._batch_shape))
