"""Views as copies: each function is the view of its name in new memory, contiguous and with the gradient of the view."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from .results import all_into as _all_into, check_tensor as _check_tensor, into as _into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor


def _copied(function: str, view: Tensor, out: Tensor | None) -> Tensor:
    if out is not None:
        return _into(function, view, out)
    return view.clone(memory_format=_C.contiguous_format)


def _all_copied(function: str, views: Sequence[Tensor], out: Any) -> Any:
    """A tuple of copies; with `out`, a list of tensors to write to, None, as in PyTorch."""
    if out is not None:
        return _all_into(function, views, out)
    return tuple(view.clone(memory_format=_C.contiguous_format) for view in views)


def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor in new memory."""
    return _copied("alias_copy", _C.alias(input), out)


def as_strided_copy(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """as_strided in new memory."""
    return _copied("as_strided_copy", _C.as_strided(input, size, stride, storage_offset), out)


def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor in new memory, without its history."""
    return _copied("detach_copy", input.detach(), out)


def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Tensor | None = None) -> Tensor:
    """diagonal in new memory."""
    return _copied("diagonal_copy", _C.diagonal(input, offset, dim1, dim2), out)


def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False, out: Tensor | None = None) -> Tensor:
    """expand in new memory."""
    return _copied("expand_copy", input.expand(size), out)


def permute_copy(input: Tensor, dims: Sequence[int], *, out: Tensor | None = None) -> Tensor:
    """permute in new memory."""
    return _copied("permute_copy", _C.permute(input, dims), out)


def select_copy(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor:
    """select in new memory."""
    return _copied("select_copy", _C.select(input, dim, index), out)


def slice_copy(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1, *, out: Tensor | None = None
) -> Tensor:
    """input[start:end:step] along `dim`, in new memory."""
    return _copied("slice_copy", _C.slice(input, dim, start, end, step), out)


def slice_inverse(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The view of the memory of `input` in which `src` would be the slice along `dim`: what slice undoes."""
    _check_tensor("slice_inverse", "src", src)
    view = _C.slice(src, dim, start, end, step)
    if view.shape != input.shape:
        raise RuntimeError(f"slice_inverse: the slice of src is {list(view.shape)}, but input is {list(input.shape)}; give a slice of its shape")
    return _C.as_strided(input, src.shape, src.stride(), src.storage_offset())


def split_copy(input: Tensor, split_size: int, dim: int = 0, *, out: Any = None) -> Any:
    """split in new memory; with `out`, a list of tensors, writes there and returns None."""
    return _all_copied("split_copy", _C.split(input, split_size, dim), out)


def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Any = None) -> Any:
    """split_with_sizes in new memory; with `out`, a list of tensors, writes there and returns None."""
    return _all_copied("split_with_sizes_copy", _C.split_with_sizes(input, split_sizes, dim), out)


def squeeze_copy(input: Tensor, dim: int | Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """squeeze in new memory."""
    return _copied("squeeze_copy", _C.squeeze(input) if dim is None else _C.squeeze(input, dim), out)


def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """t in new memory."""
    return _copied("t_copy", _C.t(input), out)


def transpose_copy(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor:
    """transpose in new memory."""
    return _copied("transpose_copy", _C.transpose(input, dim0, dim1), out)


def unbind_copy(input: Tensor, dim: int = 0, *, out: Any = None) -> Any:
    """unbind in new memory; with `out`, a list of tensors, writes there and returns None."""
    return _all_copied("unbind_copy", _C.unbind(input, dim), out)


def unfold_copy(input: Tensor, dimension: int, size: int, step: int, *, out: Tensor | None = None) -> Tensor:
    """unfold in new memory."""
    return _copied("unfold_copy", input.unfold(dimension, size, step), out)


def unsqueeze_copy(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """unsqueeze in new memory."""
    return _copied("unsqueeze_copy", _C.unsqueeze(input, dim), out)


def view_copy(input: Tensor, size: Sequence[int] | _C.dtype, *, out: Tensor | None = None) -> Tensor:
    """view, of a shape or of a dtype, in new memory."""
    return _copied("view_copy", input.view(size), out)  # type: ignore[arg-type]


def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """view_as_real in new memory."""
    return _copied("view_as_real_copy", _C.view_as_real(input), out)


def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """view_as_complex in new memory."""
    return _copied("view_as_complex_copy", _C.view_as_complex(input), out)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """chunk, whose results may be written in place one by one, as those of chunk may here."""
    return tuple(_C.chunk(input, chunks, dim))


def unsafe_split(input: Tensor, split_size: int, dim: int = 0, *, out: Any = None) -> Any:
    """split, whose results may be written in place one by one, as those of split may here."""
    parts = tuple(_C.split(input, split_size, dim))
    return parts if out is None else _all_into("unsafe_split", parts, out)


def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Any = None) -> Any:
    """split_with_sizes, whose results may be written in place one by one, as those of split may here."""
    parts = tuple(_C.split_with_sizes(input, split_sizes, dim))
    return parts if out is None else _all_into("unsafe_split_with_sizes", parts, out)


_check_module(globals())
