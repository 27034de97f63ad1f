"""The class by which einops knows Tenon's tensors. borders.py imports it where einops is imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from einops._backends import AbstractBackend

from . import _C
from .functional import einsum


class TenonBackend(AbstractBackend):  # type: ignore[misc]
    framework_name = "tenon"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, _C.Tensor)

    def from_numpy(self, x: Any) -> _C.Tensor:
        return _C.from_numpy(x)

    def to_numpy(self, x: _C.Tensor) -> Any:
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> _C.Tensor:
        return _C.arange(start, stop)

    def transpose(self, x: _C.Tensor, axes: Sequence[int]) -> _C.Tensor:
        return x.permute(list(axes))

    def reduce(self, x: _C.Tensor, operation: str, axes: Sequence[int]) -> _C.Tensor:
        if operation == "prod":  # of one dimension at a time
            for axis in sorted(axes, reverse=True):
                x = x.prod(axis)
            return x
        names = {"min": "amin", "max": "amax"}
        result: _C.Tensor = getattr(x, names.get(operation, operation))(tuple(axes))
        return result

    def stack_on_zeroth_dimension(self, tensors: Sequence[_C.Tensor]) -> _C.Tensor:
        return _C.stack(list(tensors))

    def add_axis(self, x: _C.Tensor, new_position: int) -> _C.Tensor:
        return x.unsqueeze(new_position)

    def add_axes(self, x: _C.Tensor, n_axes: int, pos2len: dict[int, int]) -> _C.Tensor:
        sizes = [-1] * n_axes
        for position, length in pos2len.items():
            x = x.unsqueeze(position)
            sizes[position] = length
        return x.expand(sizes)

    def tile(self, x: _C.Tensor, repeats: Sequence[int]) -> _C.Tensor:
        return x.repeat(list(repeats))

    def concat(self, tensors: Sequence[_C.Tensor], axis: int) -> _C.Tensor:
        return _C.cat(list(tensors), axis)

    def is_float_type(self, x: _C.Tensor) -> bool:
        return x.dtype.is_floating_point

    def einsum(self, pattern: str, *x: _C.Tensor) -> _C.Tensor:
        return einsum(pattern, *x)
