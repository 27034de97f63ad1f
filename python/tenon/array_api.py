"""The functions of the Python array API standard, as far as Tenon has them: what Tensor.__array_namespace__ returns.

A name of the standard that is not here yet raises AttributeError that says so; `absent()` lists them.
https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from math import e, inf, nan, pi
from typing import Any, Literal, NamedTuple

from . import _C
from ._C import (
    Tensor,
    abs,
    acos,
    acosh,
    add,
    asarray,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    bool,
    ceil,
    complex64,
    complex128,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    empty_like,
    exp,
    expm1,
    float32,
    float64,
    floor,
    floor_divide,
    from_dlpack,
    full_like,
    imag,
    int8,
    int16,
    int32,
    int64,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    ones_like,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    stack,
    subtract,
    tan,
    tanh,
    tile,
    trunc,
    uint8,
    where,
    zeros_like,
)
from .arguments import check_module as _check_module
from .functional import broadcast_shapes, broadcast_tensors, meshgrid as _meshgrid, tensordot as _tensordot
from ._names.info import finfo as _finfo, iinfo as _iinfo

Axis = int | Sequence[int] | None

newaxis = None
__array_api_version__ = "2024.12"

bitwise_invert = _C.bitwise_not
equal, not_equal = _C.eq, _C.not_equal
greater, greater_equal, less, less_equal = _C.greater, _C.greater_equal, _C.less, _C.less_equal
moveaxis = _C.moveaxis

_ABSENT = frozenset("fft linalg uint16 uint32 uint64".split())


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


def _reduced(x: Tensor, axis: Axis, keepdims: _C._bool) -> tuple[Tensor, tuple[int, ...], _C._bool]:
    """The operand, dimensions and `keepdims` of a reduction by Tenon, which takes no dimensions for all of them.

    Over none of them, each element is reduced by itself: along a dimension of its own.
    """
    dims = _dims(x, axis)
    return (x, dims, keepdims) if dims else (x.unsqueeze(-1), (-1,), False)


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _dtype(x: Tensor | _C.dtype) -> _C.dtype:
    return x.dtype if isinstance(x, Tensor) else x


def empty(shape: int | Sequence[int], *, dtype: _C.dtype | None = None, device: Any = None) -> Tensor:
    return _C.empty(_shape(shape), dtype=dtype, device=device)


def ones(shape: int | Sequence[int], *, dtype: _C.dtype | None = None, device: Any = None) -> Tensor:
    return _C.ones(_shape(shape), dtype=dtype, device=device)


def zeros(shape: int | Sequence[int], *, dtype: _C.dtype | None = None, device: Any = None) -> Tensor:
    return _C.zeros(_shape(shape), dtype=dtype, device=device)


def full(
    shape: int | Sequence[int], fill_value: complex, *, dtype: _C.dtype | None = None, device: Any = None
) -> Tensor:
    return _C.full(_shape(shape), fill_value, dtype=dtype, device=device)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: _C.dtype | None = None, device: Any = None
) -> Tensor:
    first, end = (0, start) if stop is None else (start, stop)
    # Where the end is not ahead, there is nothing.
    return _C.arange(first, end if (end - first) * step > 0 else first, step, dtype=dtype, device=device)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: _C.dtype | None = None, device: Any = None, endpoint: _C._bool = True
) -> Tensor:
    if endpoint:
        return _C.linspace(start, stop, num, dtype=dtype, device=device)
    return _C.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: _C.dtype | None = None, device: Any = None
) -> Tensor:
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return _C.eye(n_rows, columns, dtype=dtype, device=device)
    result = _C.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        result.diagonal(k).fill_(1)
    return result


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    return _C.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    return _C.triu(x, k)


def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    return _C.unsqueeze(x, axis)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    return _C.permute(x, axes)


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    return _C.broadcast_to(x, shape)


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: _C._bool | None = None) -> Tensor:
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: copy=False, but {tuple(x.shape)} with these strides is no view as {tuple(shape)}") from error
    return _C.reshape(x.clone() if copy else x, shape)


def roll(x: Tensor, /, shift: int | Sequence[int], *, axis: Axis = None) -> Tensor:
    return _C.roll(x, shift, () if axis is None else axis)


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    if min is None and max is None:
        return x.clone()
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        low, high = (b if b is None or isinstance(b, Tensor) else x.new_full((), b) for b in (min, max))
        return _C.clip(x, low, high)
    return _C.clip(x, min, max)


def can_cast(from_: Tensor | _C.dtype, to: _C.dtype, /) -> _C._bool:
    return _C.promote_types(_dtype(from_), to) is to


def finfo(type: Tensor | _C.dtype, /) -> _finfo:
    return _finfo(_dtype(type))


def iinfo(type: Tensor | _C.dtype, /) -> _iinfo:
    return _iinfo(_dtype(type))


def _of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor | complex, Tensor | complex], Tensor]:
    """A function that takes a number for one of two arrays."""

    @wraps(function)
    def call(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        dtype = result_type(x1, x2)
        a, b = (x if isinstance(x, Tensor) else _C.full((), x, dtype=dtype) for x in (x1, x2))
        return function(a, b)

    return call


atan2, hypot, logaddexp, logical_xor = map(_of_two, (_C.atan2, _C.hypot, _C.logaddexp, _C.logical_xor))


def astype(x: Tensor, dtype: _C.dtype, /, *, copy: _C._bool = True, device: Any = None) -> Tensor:
    return x.to(device or x.device, dtype, copy=copy)


def sum(x: Tensor, /, *, axis: Axis = None, dtype: _C.dtype | None = None, keepdims: _C._bool = False) -> Tensor:
    return _C.sum(*_reduced(x, axis, keepdims), dtype=dtype)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.mean(*_reduced(x, axis, keepdims))


def prod(x: Tensor, /, *, axis: Axis = None, dtype: _C.dtype | None = None, keepdims: _C._bool = False) -> Tensor:
    x, dims, keepdims = _reduced(x, axis, keepdims)
    for dim in sorted((d % x.dim() for d in dims), reverse=True):
        x = _C.prod(x, dim, keepdims, dtype=dtype)
    return x


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: _C._bool = False) -> Tensor:
    x, dims, keepdims = _reduced(x, axis, keepdims)
    return _C.std(x, dims, correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: _C._bool = False) -> Tensor:
    x, dims, keepdims = _reduced(x, axis, keepdims)
    return _C.var(x, dims, correction=correction, keepdim=keepdims)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.amax(*_reduced(x, axis, keepdims))


def min(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.amin(*_reduced(x, axis, keepdims))


def all(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.all(*_reduced(x, axis, keepdims))


def any(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return _C.any(*_reduced(x, axis, keepdims))


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: _C._bool = False) -> Tensor:
    return sum(x != 0, axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: _C._bool = False) -> Tensor:
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: _C._bool = False) -> Tensor:
    return _C.argmin(x, axis, keepdims)


def _cumulative(name: str, scan: Any, initial: int, x: Tensor, axis: int | None, dtype: Any, include_initial: Any) -> Tensor:
    if axis is None and x.dim() != 1:
        raise ValueError(f"{name}: `axis` must be given for an array of {x.dim()} dimensions")
    dim = 0 if axis is None else axis
    result: Tensor = scan(x, dim, dtype=dtype)
    if not include_initial:
        return result
    first = list(result.shape)
    first[dim] = 1
    return _C.cat([result.new_full(first, initial), result], dim)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: _C.dtype | None = None, include_initial: _C._bool = False
) -> Tensor:
    return _cumulative("cumulative_sum", _C.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: _C.dtype | None = None, include_initial: _C._bool = False
) -> Tensor:
    return _cumulative("cumulative_prod", _C.cumprod, 1, x, axis, dtype, include_initial)


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


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    return _C.take_along_dim(x, indices, axis)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    return _C.diff(x, n, axis, prepend, append)


def isin(x1: Tensor | complex, x2: Tensor | complex, /, *, invert: _C._bool = False) -> Tensor:
    sides: Any = (x1, x2)
    return _C.isin(*sides, invert=invert)


def searchsorted(
    x1: Tensor, x2: Tensor | complex, /, *, side: Literal["left", "right"] = "left", sorter: Tensor | None = None
) -> Tensor:
    return _C.searchsorted(x1, x2, side=side, sorter=sorter)


class UniqueAllResult(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAllResult:
    values, inverse, counts = _C._unique2(x, True, True, True)
    # Equal elements keep their order, so that the first of each comes first.
    first = _C.argsort(x.reshape(-1))[_C.cumsum(counts, 0) - counts]
    return UniqueAllResult(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    values, _, counts = _C._unique2(x, True, False, True)
    return UniqueCountsResult(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    values, inverse, _ = _C._unique2(x, True, True, False)
    return UniqueInverseResult(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    return _C._unique2(x)[0]


def positive(x: Tensor, /) -> Tensor:
    return x.clone()


def sort(x: Tensor, /, *, axis: int = -1, descending: _C._bool = False, stable: _C._bool = True) -> Tensor:
    return _C.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: _C._bool = False, stable: _C._bool = True) -> Tensor:
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    return _C.nonzero(x, as_tuple=True)


def matrix_transpose(x: Tensor, /) -> Tensor:
    return x.mT


def result_type(*arrays_and_dtypes: Tensor | _C.dtype | complex) -> _C.dtype:
    """The dtype that arrays, dtypes and Python numbers promote to. Numbers matter where their kind is above that of the rest."""
    dtypes: list[_C.dtype] = []
    kinds: set[type] = set()
    for i, item in enumerate(arrays_and_dtypes):
        if isinstance(item, Tensor | _C.dtype):
            dtypes.append(item.dtype if isinstance(item, Tensor) else item)
        elif isinstance(item, complex | float | int):
            kinds.add(next(kind for kind in (builtins.bool, int, float, complex) if isinstance(item, kind)))
        else:
            raise TypeError(f"result_type: expected arrays, dtypes and numbers, got {type(item).__name__} as argument {i}")
    if not dtypes:
        raise ValueError(f"result_type: expected an array or a dtype among the arguments, got {len(arrays_and_dtypes)} numbers")
    result = reduce(_C.promote_types, dtypes)
    if int in kinds and result is _C.bool:
        result = _C.int64
    if kinds & {float, complex} and not (result.is_floating_point or result.is_complex):
        result = _C.get_default_dtype()
    return _C.promote_types(result, _C.complex64) if complex in kinds else result


def _promoted(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    dtype = result_type(x1, x2)
    return x1.to(dtype), x2.to(dtype)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    return _C.matmul(*_promoted(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | Sequence[Any] = 2) -> Tensor:
    return _tensordot(*_promoted(x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    return (x1.conj() * x2).sum(axis, dtype=result_type(x1, x2))


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


_check_module(globals())
