"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn, linalg
from .._C import Size, Tensor
from ..functional import broadcast_shapes
from . import constraints
from .distribution import Distribution
from .utils import check_tensors, lazy_property, same_as, standard_normal

__all__ = ["MultivariateNormal"]


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of matrices and vectors, of batches that broadcast."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """|L^-1 x|^2 of lower triangles L [B..., n, n] and vectors x [S..., B..., n]: samples are columns of one solution."""
    extra = max(x.dim() - factor.dim() + 1, 0)
    columns = x.reshape((math.prod(x.shape[:extra]),) + tuple(x.shape[extra:])).movedim(0, -1)
    found = linalg.solve_triangular(factor, columns, upper=False).square().sum(-2)
    return found.movedim(-1, 0).reshape(tuple(x.shape[:extra]) + tuple(found.shape[:-1]))


def _half_log_det(factor: Tensor) -> Tensor:
    return tn.log(factor.diagonal(dim1=-2, dim2=-1)).sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """L of L L^T = precision^-1, by the factor of the precision with rows and columns in reverse."""
    factor = linalg.cholesky(precision.flip((-2, -1)))
    inverse = factor.flip((-2, -1)).mT
    identity = tn.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(inverse, identity.expand(inverse.shape), upper=False)


def _one_matrix(name: str, given: dict[str, Tensor | None]) -> tuple[str, Tensor]:
    """The one of covariance_matrix, precision_matrix and scale_tril that is given."""
    found = [(kind, matrix) for kind, matrix in given.items() if matrix is not None]
    if len(found) != 1:
        raise ValueError(f"{name}: expected exactly one of covariance_matrix or precision_matrix or scale_tril, got {len(found)} of them")
    kind, matrix = found[0]
    check_tensors(name, **{kind: matrix})
    if matrix.dim() < 2:
        raise ValueError(f"{name}: {kind} must be two-dimensional or more, with optional leading batch dimensions, got shape {tuple(matrix.shape)}")
    return kind, matrix


class MatrixParameter:
    """Of distributions with one of `covariance_matrix`, `precision_matrix` and `scale_tril` as their parameter: the others.

    `_unbroadcasted_scale_tril` is the Cholesky factor of the covariance, of the batch that was given.
    """

    _unbroadcasted_scale_tril: Tensor

    def _set_factor(self, kind: str, matrix: Tensor) -> None:
        factors = {"scale_tril": lambda m: m, "covariance_matrix": linalg.cholesky, "precision_matrix": _precision_to_scale_tril}
        self._unbroadcasted_scale_tril = factors[kind](matrix)

    def _of_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand(tuple(self._batch_shape) + tuple(matrix.shape[-2:]))  # type: ignore[attr-defined]

    def _expand_matrices(self, new: Any, batch_shape: Any) -> None:
        shape = tuple(batch_shape) + tuple(self._unbroadcasted_scale_tril.shape[-2:])
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for kind in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if kind in self.__dict__:
                new.__dict__[kind] = self.__dict__[kind].expand(shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._of_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance: that of the parameter, of a Wishart distribution."""
        return self._of_batch(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._of_batch(tn.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(MatrixParameter, Distribution):
    """The normal distribution of vectors of mean `loc` [..., n], by one of `covariance_matrix`, `precision_matrix` and `scale_tril`."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_tensors("MultivariateNormal", loc=loc)
        if loc.dim() < 1:
            raise ValueError("MultivariateNormal: loc must be at least one-dimensional, got a tensor without dimensions")
        kind, matrix = _one_matrix(
            "MultivariateNormal", {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        )
        n = loc.shape[-1]
        if tuple(matrix.shape[-2:]) != (n, n):
            raise ValueError(f"MultivariateNormal: expected {kind} of shape [..., {n}, {n}] for loc of shape {tuple(loc.shape)}, got {tuple(matrix.shape)}")
        batch = tuple(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.loc = loc.expand(batch + (n,))
        self.__dict__[kind] = matrix.expand(batch + (n, n))
        super().__init__(batch, (n,), validate_args=validate_args)
        self._set_factor(kind, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MultivariateNormal:
        new = self._expanded(MultivariateNormal, batch_shape, ("loc",), _instance, self.event_shape)
        self._expand_matrices(new, batch_shape)
        return new

    mean: Tensor = same_as("loc")
    mode: Tensor = same_as("loc")

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(self._extended_shape())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _times(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        spread = _mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + spread) - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        found = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + _half_log_det(self._unbroadcasted_scale_tril)
        return found.expand(Size(self._batch_shape))
