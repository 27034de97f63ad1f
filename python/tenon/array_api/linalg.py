"""The extension linalg of the standard: tenon.linalg by the standard's names of arguments and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from .. import _C, linalg as _linalg
from .._C import Tensor
from ..arguments import check_module as _check_module
from ..functional import broadcast_tensors as _broadcast_tensors, tensordot as _tensordot
from ._base import Axis, DType, of_one, promoted, reduced
from .reductions import sum as _sum

__all__ = [
    "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


det = of_one("det", _C.linalg_det)
eigvalsh = of_one("eigvalsh", _C.linalg_eigvalsh)
inv = of_one("inv", _C.linalg_inv)
svdvals = of_one("svdvals", _C.linalg_svdvals)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    return _C.matmul(*promoted("matmul", x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | Sequence[Any] = 2) -> Tensor:
    return _tensordot(*promoted("tensordot", x1, x2), axes)


def _last_axis(name: str, x1: Tensor, x2: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Two arrays of one dtype with an axis, counted from the end, as their last: it has the same size in both."""
    fewest = min(x1.dim(), x2.dim())
    if not -fewest <= axis < 0:
        raise IndexError(f"{name}: `axis` must count from the last dimension of both arrays, from {-fewest} to -1, got {axis}")
    a, b = (x.moveaxis(axis, -1) for x in promoted(name, x1, x2))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"{name}: `axis` {axis} must have one size in both arrays, got {a.shape[-1]} and {b.shape[-1]}")
    return a, b


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    a, b = _last_axis("vecdot", x1, x2, axis)
    return _C.sum(_C.conj(a) * b, -1, dtype=a.dtype)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    a, b = _last_axis("cross", x1, x2, axis)
    if a.shape[-1] != 3:
        raise ValueError(f"cross: expected 3 elements along `axis` {axis}, got {a.shape[-1]}")
    return _linalg.cross(*_broadcast_tensors(a, b)).moveaxis(-1, axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    if x1.dim() != 1 or x2.dim() != 1:
        raise ValueError(f"outer: expected two arrays of 1 dimension, got {x1.dim()} and {x2.dim()}")
    a, b = promoted("outer", x1, x2)
    return a[:, None] * b


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    return _C.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType = None) -> Tensor:
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    return _C.linalg_cholesky(x, upper=upper)


def eigh(x: Tensor, /) -> EighResult:
    return EighResult(*_C.linalg_eigh(x))


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: expected `mode` of 'reduced' or 'complete', got {mode!r}")
    return QRResult(*_C.linalg_qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    return SlogdetResult(*_C.linalg_slogdet(x))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    return SVDResult(*_C.linalg_svd(x, full_matrices))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    a, b = promoted("solve", x1, x2)
    if b.dim() == 1:
        return _C.linalg_solve(a, b)
    # With as many dimensions as `a`, what would pass for a batch of vectors is a matrix.
    missing = a.dim() - b.dim()
    return _C.linalg_solve(a, b.reshape((1,) * missing + tuple(b.shape)) if missing > 0 else b)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    return _C.linalg_matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    if x.dim() < 2:
        raise ValueError(f"matrix_rank: expected an array of at least 2 dimensions, got {x.dim()}")
    return _linalg.matrix_rank(x, rtol=rtol)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    return _linalg.pinv(x, rtol=rtol)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    x, dims, keepdims = reduced(x, axis, keepdims)
    return _linalg.vector_norm(x, ord, dims, keepdims)


_check_module(globals())
