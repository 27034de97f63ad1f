"""Transforms of vectors and matrices, and transforms side by side."""

from __future__ import annotations

from typing import Any

from ... import _C as tn
from ..._C import Tensor
from ..._names.info import finfo
from ...nn.functional import pad, softmax, softplus
from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .transform import ParameterFreeTransform, Transform


class SoftmaxTransform(ParameterFreeTransform):
    """y = softmax(x); the inverse is log, whose softmax is y again"""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, dim=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return tn.log(y)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("SoftmaxTransform: expected one dimension or more, got none")
        return shape

    inverse_shape = forward_shape


def _length_changed(name: str, shape: Any, by: int) -> Any:
    if len(shape) < 1:
        raise ValueError(f"{name}: expected one dimension or more, got none")
    return tuple(shape[:-1]) + (shape[-1] + by,)


class StickBreakingTransform(ParameterFreeTransform):
    """k numbers to k + 1 parts of a stick, each by the sigmoid of a number, moved so that zeros give equal parts"""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _offset(self, x: Tensor) -> Tensor:
        """How many parts are left at each number."""
        n = x.shape[-1]
        return n - tn.arange(n, dtype=x.dtype, device=x.device)

    def _call(self, x: Tensor) -> Tensor:
        info = finfo(x.dtype)
        z = tn.sigmoid(x - tn.log(self._offset(x))).clamp(min=info.tiny, max=1.0 - info.eps)
        rest = tn.cumprod(1 - z, -1)
        return pad(z, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        y_crop = y[..., :-1]
        # The rest of the stick, never below the least number.
        rest = (1 - tn.cumsum(y_crop, -1)).clamp(min=finfo(y.dtype).tiny)
        return tn.log(y_crop) - tn.log(rest) + tn.log(self._offset(y_crop))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - tn.log(self._offset(x))
        # -x + log(sigmoid(x)) is log(sigmoid(-x)).
        return (-x - softplus(-x) + tn.log(y[..., :-1])).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _length_changed("StickBreakingTransform", shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return _length_changed("StickBreakingTransform", shape, -1)


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix of size n (Stan's reference manual, 10.12)"""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = tn.tanh(x)
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        # What is left of the row's unit length, before each element.
        left = tn.cumprod(tn.sqrt(1 - r * r), -1)
        unit = r + tn.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return unit * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = pad((1 - tn.cumsum(y * y, -1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tn.sqrt(tril_matrix_to_vec(left, diag=-1))
        return 0.5 * (tn.log1p(t) - tn.log1p(-t))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = 1 - tn.cumsum(y * y, -1)
        stick = 0.5 * tn.log(tril_matrix_to_vec(left, diag=-2)).sum(-1)
        tanh = -2 * (x + softplus(-2 * x) - 0.6931471805599453).sum(-1)
        return stick + tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("CorrCholeskyTransform: expected one dimension or more, got none")
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError(f"CorrCholeskyTransform: {count} numbers fill no triangle")
        return tuple(shape[:-1]) + (n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2 or shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: expected square matrices, got shape {tuple(shape)}")
        return tuple(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


class LowerCholeskyTransform(ParameterFreeTransform):
    """Matrices to lower triangles with a positive diagonal, by exp"""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + tn.diag_embed(tn.exp(x.diagonal(dim1=-2, dim2=-1)))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + tn.diag_embed(tn.log(y.diagonal(dim1=-2, dim2=-1)))


class PositiveDefiniteTransform(ParameterFreeTransform):
    """Matrices to positive definite ones: the product of a `LowerCholeskyTransform` with its transpose"""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.transpose(-2, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        from ... import linalg

        if not hasattr(linalg, "cholesky"):
            raise NotImplementedError("PositiveDefiniteTransform: the inverse needs tenon.linalg.cholesky, which is not there")
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class _Parts(Transform):
    """Transforms of parts or slices along one dimension."""

    _join: Any = None

    def __init__(self, tseq: Any, dim: int, cache_size: int) -> None:
        tseq = list(tseq)
        for t in tseq:
            if not isinstance(t, Transform):
                raise TypeError(f"{type(self).__name__}: tseq must be of Transforms, got {type(t).__name__}")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else tseq
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    def _split(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._split(x))], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._split(y))], dim=self.dim)


class CatTransform(_Parts):
    """Transforms of parts of a dimension, of given `lengths`, joined again"""

    _made_of = ("transforms", "dim", "lengths")
    _join = staticmethod(tn.cat)

    def __init__(self, tseq: Any, dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"CatTransform: expected {len(self.transforms)} lengths, one for each transform, got {len(self.lengths)}")

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    def _split(self, x: Tensor) -> list[Tensor]:
        if not -x.dim() <= self.dim < x.dim() or x.shape[self.dim] != self.length:
            raise ValueError(f"CatTransform: expected {self.length} along dimension {self.dim}, got shape {tuple(x.shape)}")
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [x.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, px, py in zip(self.transforms, self._split(x), self._split(y)):
            term = t.log_abs_det_jacobian(px, py)
            extra = self.event_dim - t.event_dim
            terms.append(term.reshape(term.shape[: term.dim() - extra] + (-1,)).sum(-1) if extra > 0 else term)
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return tn.cat(terms, dim=dim)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Parts):
    """Transforms of slices of a dimension, stacked again"""

    _made_of = ("transforms", "dim")
    _join = staticmethod(tn.stack)

    def __init__(self, tseq: Any, dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _split(self, z: Tensor) -> list[Tensor]:
        if not -z.dim() <= self.dim < z.dim() or z.shape[self.dim] != len(self.transforms):
            raise ValueError(f"StackTransform: expected {len(self.transforms)} along dimension {self.dim}, got shape {tuple(z.shape)}")
        return [z.select(self.dim, i) for i in range(z.shape[self.dim])]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [t.log_abs_det_jacobian(a, b) for t, a, b in zip(self.transforms, self._split(x), self._split(y))]
        return tn.stack(terms, dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
