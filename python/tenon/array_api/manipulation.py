"""Functions of the standard that rearrange arrays and take elements of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from .. import _C
from .._C import Tensor
from ..arguments import check_module as _check_module
from ..functional import broadcast_shapes, broadcast_tensors
from ._base import Axis, dims_of


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    return list(broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    return _C.broadcast_to(x, shape)


def _of_one_dtype(arrays: Sequence[Tensor]) -> list[Tensor]:
    """An array without dimensions promotes as any other does."""
    if not arrays:
        return []
    dtype = reduce(_C.promote_types, (a.dtype for a in arrays))
    return [a.to(dtype) for a in arrays]


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    parts = _of_one_dtype(arrays)
    return _C.cat([_C.flatten(a) for a in parts]) if axis is None else _C.cat(parts, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    return _C.stack(_of_one_dtype(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    return x.unbind(axis)


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    return _C.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: int | Sequence[int]) -> Tensor:
    dims = dims_of(x, axis)
    for dim in dims:
        if x.shape[dim] != 1:
            raise ValueError(f"squeeze: dimension {dim} has {x.shape[dim]} elements, not 1")
    return _C.squeeze(x, dims)


def flip(x: Tensor, /, *, axis: Axis = None) -> Tensor:
    """A copy: programs add it in place to the array it came from."""
    return _C.clone(_C.flip(x, dims_of(x, axis)))


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    return _C.moveaxis(x, source, destination)  # type: ignore[arg-type]


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    return _C.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    return _C.repeat_interleave(x, repeats.to(_C.int64) if isinstance(repeats, Tensor) else repeats, axis)  # type: ignore[arg-type]


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: bool | None = None) -> Tensor:
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape: copy=False, but {tuple(x.shape)} with these strides is no view as {tuple(shape)}") from error
    return _C.reshape(_C.clone(x) if copy else x, shape)


def roll(x: Tensor, /, shift: int | Sequence[int], *, axis: Axis = None) -> Tensor:
    if isinstance(shift, int) and axis is not None and not isinstance(axis, int):
        shift = (shift,) * len(axis)
    return _C.roll(x, shift, () if axis is None else axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    return _C.tile(x, repetitions)


def _positions(name: str, indices: Tensor) -> Tensor:
    """As int64, which an index of uint64 may exceed."""
    places = indices.to(_C.int64)
    if indices.dtype is _C.uint64 and (places < 0).any():
        raise IndexError(f"{name}: index {indices[places < 0][0].item()} is out of bounds")
    return places


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    if axis is None and x.dim() != 1:
        raise ValueError(f"take: `axis` must be given for an array of {x.dim()} dimensions")
    dim = 0 if axis is None else axis
    if not -x.dim() <= dim < x.dim():
        raise IndexError(f"take: `axis` {dim} is out of range for an array of {x.dim()} dimensions")
    return x[(slice(None),) * (dim % x.dim()) + (_positions("take", indices),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    if x.dim() != indices.dim():
        raise ValueError(f"take_along_axis: expected `indices` of as many dimensions as `x`, got {indices.dim()} and {x.dim()}")
    return _C.take_along_dim(x, _positions("take_along_axis", indices), axis)


_check_module(globals())
