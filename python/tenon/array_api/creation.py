"""Functions of the standard that make arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from ..arguments import check_module as _check_module
from ..functional import meshgrid as _meshgrid
from ._base import Device, DType, shape_of


def _is_read_only(x: Tensor) -> bool:
    """Whether memory that another library shares may only be read."""
    try:
        return memoryview(x).readonly  # type: ignore[arg-type]
    except (BufferError, TypeError):
        return False


def asarray(obj: Any, /, *, dtype: DType = None, device: Device = None, copy: bool | None = None) -> Tensor:
    result = _C.asarray(obj, dtype=dtype, device=device, copy=copy)
    if copy is None and not isinstance(obj, Tensor | list | tuple) and _is_read_only(result):
        return _C.clone(result)  # programs write to what they make
    return result


def from_dlpack(x: object, /, *, device: Device = None, copy: bool | None = None) -> Tensor:
    return _C.from_dlpack(x, device=device, copy=copy)


def empty(shape: int | Sequence[int], *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.empty(shape_of(shape), dtype=dtype, device=device)


def ones(shape: int | Sequence[int], *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.ones(shape_of(shape), dtype=dtype, device=device)


def zeros(shape: int | Sequence[int], *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.zeros(shape_of(shape), dtype=dtype, device=device)


def full(shape: int | Sequence[int], fill_value: complex, *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.full(shape_of(shape), fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.empty_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.ones_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.zeros_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: DType = None, device: Device = None) -> Tensor:
    return _C.full_like(x, fill_value, dtype=dtype, device=device)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: DType = None, device: Device = None
) -> Tensor:
    first, end = (0, start) if stop is None else (start, stop)
    if dtype is None and isinstance(start + end + step, float):
        dtype = _C.get_default_dtype()
    # Where the end is not ahead, there is nothing.
    return _C.arange(first, end if (end - first) * step > 0 else first, step, dtype=dtype, device=device)


def linspace(
    start: complex, stop: complex, /, num: int, *, dtype: DType = None, device: Device = None, endpoint: bool = True
) -> Tensor:
    if endpoint:
        return _C.linspace(start, stop, num, dtype=dtype, device=device)
    return _C.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType = None, device: Device = None) -> Tensor:
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


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    return list(_meshgrid(*arrays, indexing=indexing))


_check_module(globals())
