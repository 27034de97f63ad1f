"""The functions of the Python array API standard, as far as Tenon has them: what Tensor.__array_namespace__ returns.

A name of the standard that is not here yet raises AttributeError that says so; `absent()` lists them.
https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

from collections.abc import Sequence
from math import e, inf, nan, pi
from typing import Any

from . import _C
from ._C import (
    Tensor,
    abs,
    acos,
    acosh,
    add,
    arange,
    asarray,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    bool,
    can_cast,
    ceil,
    clip,
    complex64,
    complex128,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    empty,
    empty_like,
    exp,
    expm1,
    eye,
    float32,
    float64,
    floor,
    floor_divide,
    from_dlpack,
    full,
    full_like,
    hypot,
    imag,
    int8,
    int16,
    int32,
    int64,
    isfinite,
    isinf,
    isnan,
    linspace,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    maximum,
    minimum,
    multiply,
    negative,
    ones,
    ones_like,
    pow,
    real,
    reciprocal,
    remainder,
    reshape,
    result_type,
    roll,
    round,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    stack,
    subtract,
    tan,
    tanh,
    tile,
    tril,
    triu,
    trunc,
    uint8,
    where,
    zeros,
    zeros_like,
)
from .functional import broadcast_shapes, broadcast_tensors, meshgrid as _meshgrid, tensordot as _tensordot
from .info import finfo, iinfo

Axis = int | Sequence[int] | None

newaxis = None
__array_api_version__ = "2024.12"

bitwise_invert = _C.bitwise_not
equal, not_equal = _C.eq, _C.ne
greater, greater_equal, less, less_equal = _C.gt, _C.ge, _C.lt, _C.le
permute_dims = _C.permute
expand_dims = _C.unsqueeze
broadcast_to = _C.broadcast_to
moveaxis = _C.moveaxis
count_nonzero = _C.count_nonzero

_ABSENT = frozenset(
    "cumulative_prod diff fft isin linalg nextafter positive searchsorted signbit take_along_axis uint16 uint32 uint64 "
    "unique_all unique_counts unique_inverse unique_values".split()
)


def absent() -> list[str]:
    """The names of the standard that are not here yet."""
    return sorted(_ABSENT)


def check_version(version: str | None) -> None:
    """Raises ValueError for a version of the standard that Tenon does not follow."""
    if version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__: version {version!r} of the array API is unknown; there are 2021.12 to 2024.12")


def _dims(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """All dimensions for None."""
    return tuple(range(x.dim())) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def astype(x: Tensor, dtype: _C.dtype, /, *, copy: _C._bool = True, device: Any = None) -> Tensor:
    return x.to(device or x.device, dtype, copy=copy)


def sum(x: Tensor, /, *, axis: Axis = None, dtype: _C.dtype | None = None, keepdims: _C._bool = False) -> Tensor:
    return x if axis == () and dtype is None else _C.sum(x, _dims(x, axis), keepdims, dtype=dtype)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.mean(x, _dims(x, axis), keepdims)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: _C.dtype | None = None, keepdims: _C._bool = False) -> Tensor:
    for dim in sorted((d % x.dim() for d in _dims(x, axis)), reverse=True):
        x = _C.prod(x, dim, keepdims, dtype=dtype)
    return x


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: _C._bool = False) -> Tensor:
    return _C.std(x, _dims(x, axis), correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: _C._bool = False) -> Tensor:
    return _C.var(x, _dims(x, axis), correction=correction, keepdim=keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.amax(x, _dims(x, axis), keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.amin(x, _dims(x, axis), keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.all(x, _dims(x, axis), keepdims)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.any(x, _dims(x, axis), keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: _C._bool = False) -> Tensor:
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: _C._bool = False) -> Tensor:
    return _C.argmin(x, axis, keepdims)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: _C.dtype | None = None, include_initial: _C._bool = False
) -> Tensor:
    dim = 0 if axis is None else axis
    result = _C.cumsum(x, dim, dtype=dtype)
    if not include_initial:
        return result
    first = list(result.shape)
    first[dim] = 1
    return _C.cat([result.new_zeros(first), result], dim)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    return _C.cat([a.flatten() for a in arrays]) if axis is None else _C.cat(list(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return x.unbind(axis)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    return _C.flip(x, _dims(x, axis))


def squeeze(x: Tensor, /, axis: int | Sequence[int]) -> Tensor:
    dims = _dims(x, axis)
    for dim in dims:
        if x.shape[dim] != 1:
            raise ValueError(f"squeeze: dimension {dim} has {x.shape[dim]} elements, not 1")
    return _C.squeeze(x, dims)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    return _C.repeat_interleave(x, repeats, axis)  # type: ignore[arg-type]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    return list(broadcast_tensors(*arrays))


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    return list(_meshgrid(*arrays, indexing=indexing))


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    return _C.index_select(x, 0 if axis is None else axis, indices)


def sort(x: Tensor, /, *, axis: int = -1, descending: _C._bool = False, stable: _C._bool = True) -> Tensor:
    return _C.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: _C._bool = False, stable: _C._bool = True) -> Tensor:
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    return _C.nonzero(x, as_tuple=True)


def matrix_transpose(x: Tensor, /) -> Tensor:
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | Sequence[Any] = 2) -> Tensor:
    return _tensordot(x1, x2, axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    return (x1.conj() * x2).sum(axis)


def isdtype(dtype: _C.dtype, kind: Any) -> _C._bool:
    """Whether a dtype is another, of a kind ("bool", "integral", "real floating", ...), or one of several of these."""
    if isinstance(kind, tuple):
        return True in [isdtype(dtype, one) for one in kind]
    integral = not (dtype.is_floating_point or dtype.is_complex or dtype is _C.bool)
    kinds = {
        "bool": dtype is _C.bool,
        "signed integer": integral and dtype.is_signed,
        "unsigned integer": integral and not dtype.is_signed,
        "integral": integral,
        "real floating": dtype.is_floating_point,
        "complex floating": dtype.is_complex,
        "numeric": dtype is not _C.bool,
    }
    if isinstance(kind, str):
        if kind not in kinds:
            raise ValueError(f"isdtype: unknown kind {kind!r}; there are {', '.join(kinds)}")
        return kinds[kind]
    return dtype is kind


class _Info:
    """What the standard's inspection functions say of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> _C.device:
        return _C.device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, _C.dtype]:
        return {
            "real floating": _C.get_default_dtype(),
            "complex floating": _C.complex64,
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def devices(self) -> list[_C.device]:
        return [_C.device("cpu")]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _C.dtype]:
        names = ("bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64", "complex64", "complex128")
        found: dict[str, _C.dtype] = {name: getattr(_C, name) for name in names}
        return {name: dtype for name, dtype in found.items() if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__() -> _Info:
    return _Info()


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(f"{name} of the array API standard is not in Tenon yet; tenon.array_api.absent() lists such names")
    raise AttributeError(f"module 'tenon.array_api' has no attribute {name!r}")
