"""What the modules of tenon.array_api share: dimensions, promotion of arrays and Python numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from .. import _C
from .._C import Tensor
from ..arguments import describe

Axis = int | Sequence[int] | None
DType = _C.dtype | None
Device = str | _C.device | None
#: One of two operands.
Operand = Tensor | complex


def dims_of(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """All dimensions for None."""
    return tuple(range(x.dim())) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def dtype_of(x: Tensor | _C.dtype) -> _C.dtype:
    return x.dtype if isinstance(x, Tensor) else x


def is_unsigned(dtype: _C.dtype) -> bool:
    return not dtype.is_signed and dtype is not _C.bool


def result_type(*arrays_and_dtypes: Tensor | _C.dtype | complex) -> _C.dtype:
    """The dtype that arrays, dtypes and Python numbers promote to. Numbers matter where their kind is above that of the rest."""
    dtypes: list[_C.dtype] = []
    kinds: set[type] = set()
    for i, item in enumerate(arrays_and_dtypes):
        if isinstance(item, Tensor | _C.dtype):
            dtypes.append(dtype_of(item))
        elif isinstance(item, complex | float | int):
            kinds.add(next(kind for kind in (bool, int, float, complex) if isinstance(item, kind)))
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


def reduced(x: Tensor, axis: Axis, keepdims: bool) -> tuple[Tensor, tuple[int, ...], bool]:
    """The operand, dimensions and `keepdims` of a reduction by Tenon, which takes no dimensions for all of them.

    Over none of them, each element is reduced by itself: along a dimension of its own.
    """
    dims = dims_of(x, axis)
    return (x, dims, keepdims) if dims else (x.unsqueeze(-1), (-1,), False)


def promoted(name: str, x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Two arrays of one dtype, for a function. An array without dimensions promotes as any other does; a number takes the array's device."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        if x1.dtype is x2.dtype:
            return x1, x2
        dtype = _C.promote_types(x1.dtype, x2.dtype)
        return x1.to(dtype), x2.to(dtype)
    for place, x in enumerate((x1, x2), 1):
        if not isinstance(x, Tensor | complex | float | int):
            raise TypeError(f"{name}: x{place} must be an array or a number, got {describe(x)}")
    dtype = result_type(x1, x2)
    for place, x in enumerate((x1, x2), 1):
        if isinstance(x, int) and x < 0 and is_unsigned(dtype):
            raise ValueError(f"{name}: x{place} is {x}, which does not fit {dtype}")
    device = x1.device if isinstance(x1, Tensor) else x2.device  # type: ignore[union-attr]
    a, b = (x.to(dtype) if isinstance(x, Tensor) else _C.full((), x, dtype=dtype, device=device) for x in (x1, x2))
    return a, b


def named(call: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    call.__name__ = call.__qualname__ = name
    return call


def of_one(name: str, function: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """The standard's signature for a function of one array."""

    def call(x: Tensor, /) -> Tensor:
        return function(x)

    return named(call, name)


def of_two(name: str, function: Callable[..., Tensor]) -> Callable[[Operand, Operand], Tensor]:
    """The standard's signature and promotion for a function of two arrays, or of an array and a number."""

    def call(x1: Operand, x2: Operand, /) -> Tensor:
        return function(*promoted(name, x1, x2))

    return named(call, name)
