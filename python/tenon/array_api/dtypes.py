"""Dtypes of the standard: their kinds, limits and conversions, and what the namespace says of itself."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._names.info import finfo as _finfo, iinfo as _iinfo
from ..arguments import check_module as _check_module
from ._base import Device, dtype_of

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class _Limits:
    """The standard's `dtype` of limits is a dtype, where PyTorch has its name."""

    dtype: Any

    def __init__(self, type: Any) -> None:
        super().__init__(type)  # type: ignore[call-arg]
        self.dtype = getattr(_C, self.dtype)


class _FloatLimits(_Limits, _finfo):
    pass


class _IntegerLimits(_Limits, _iinfo):
    pass


def finfo(type: Tensor | _C.dtype, /) -> _finfo:
    return _FloatLimits(dtype_of(type))


def iinfo(type: Tensor | _C.dtype, /) -> _iinfo:
    return _IntegerLimits(dtype_of(type))


def can_cast(from_: Tensor | _C.dtype, to: _C.dtype, /) -> bool:
    try:
        return _C.promote_types(dtype_of(from_), to) is to
    except TypeError:  # uint64 and signed integers
        return False


def astype(x: Tensor, dtype: _C.dtype, /, *, copy: bool = True, device: Device = None) -> Tensor:
    return x.to(x.device if device is None else device, dtype, copy=copy)


def isdtype(dtype: _C.dtype, kind: Any) -> bool:
    """Whether a dtype is another, of a kind ("bool", "integral", "real floating", ...), or one of several of these. NumPy's dtypes count as
    those that they name."""
    if not isinstance(dtype, _C.dtype):
        dtype = _C.empty(0, dtype=dtype).dtype
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


class Info:
    """What the standard's inspection functions say of this namespace."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> _C.device:
        return _C.device("cpu")

    def default_dtypes(self, *, device: Device = None) -> dict[str, _C.dtype]:
        real = _C.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": _C.promote_types(real, _C.complex64),
            "integral": _C.int64,
            "indexing": _C.int64,
        }

    def devices(self) -> list[_C.device]:
        names = [name for name, _, _ in _C._devices.loaded()]
        return [_C.device("cpu"), *(_C.device(name, i) for name in names for i in range(_C._devices.device_count(name)))]

    def dtypes(self, *, device: Device = None, kind: str | tuple[str, ...] | None = None) -> dict[str, _C.dtype]:
        found: dict[str, _C.dtype] = {name: getattr(_C, name) for name in _NAMES}
        return {name: dtype for name, dtype in found.items() if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__() -> Info:
    return Info()


_check_module(globals())
