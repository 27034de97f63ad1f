"""Functions of the standard along axes: sums, extremes, scans, differences."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from ..arguments import check_module as _check_module
from ._base import Axis, DType, is_unsigned, reduced, result_type


def _accumulated(x: Tensor, dtype: DType) -> DType:
    """The dtype of a sum or product: of unsigned integers it is unsigned."""
    return _C.uint64 if dtype is None and is_unsigned(x.dtype) else dtype


def sum(x: Tensor, /, *, axis: Axis = None, dtype: DType = None, keepdims: bool = False) -> Tensor:
    return _C.sum(*reduced(x, axis, keepdims), dtype=_accumulated(x, dtype))


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _C.mean(*reduced(x, axis, keepdims))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: DType = None, keepdims: bool = False) -> Tensor:
    dtype = _accumulated(x, dtype)
    x, dims, keepdims = reduced(x, axis, keepdims)
    n = x.dim()
    for dim in sorted((d % n if -n <= d < n else d for d in dims), reverse=True):
        x = _C.prod(x, dim, keepdims, dtype=dtype)
    return x


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    x, dims, keepdims = reduced(x, axis, keepdims)
    return _C.std(x, dims, correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    x, dims, keepdims = reduced(x, axis, keepdims)
    return _C.var(x, dims, correction=correction, keepdim=keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _C.amax(*reduced(x, axis, keepdims))


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _C.amin(*reduced(x, axis, keepdims))


def _truth(x: Tensor) -> Tensor:
    """Truth values of uint8, whose reductions are uint8 in PyTorch."""
    return x != 0 if x.dtype is _C.uint8 else x


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _C.all(*reduced(_truth(x), axis, keepdims))


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return _C.any(*reduced(_truth(x), axis, keepdims))


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    return sum(x != 0, axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    return _C.argmin(x, axis, keepdims)


def _cumulative(name: str, scan: Any, initial: int, x: Tensor, axis: int | None, dtype: DType, include_initial: bool) -> Tensor:
    if axis is None and x.dim() != 1:
        raise ValueError(f"{name}: `axis` must be given for an array of {x.dim()} dimensions")
    dim = 0 if axis is None else axis
    result: Tensor = scan(x, dim, dtype=_accumulated(x, dtype))
    if not include_initial:
        return result
    first = list(result.shape)
    first[dim] = 1
    return _C.cat([result.new_full(first, initial), result], dim)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False) -> Tensor:
    return _cumulative("cumulative_sum", _C.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False) -> Tensor:
    return _cumulative("cumulative_prod", _C.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    dtype = result_type(*(a for a in (x, prepend, append) if a is not None))
    before, after = (a if a is None else a.to(dtype) for a in (prepend, append))
    return _C.diff(x.to(dtype), n, axis, before, after)


_check_module(globals())
