"""Results of functions that are written in Python, written to `out=` as operators write theirs."""

from __future__ import annotations

from .. import _C
from ..arguments import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor


def into(function: str, result: Tensor, out: Tensor | None, resize: bool = True) -> Tensor:
    """`result`, or `out` with its elements: cast to the dtype of `out`, which gets its shape."""
    if out is None:
        return result
    if not isinstance(out, _C.Tensor):
        raise TypeError(f"{function}: out must be a Tensor, got {describe(out)}")
    if not _C.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"{function}: the result is {result.dtype}, which out, of {out.dtype}, cannot hold; give it that dtype")
    if _C.is_grad_enabled() and (out.requires_grad or result.requires_grad):
        raise RuntimeError(f"{function}: with out=, no gradient is recorded, but an argument requires one; leave out= away, or use no_grad()")
    if out.shape != result.shape:
        if not resize and out.numel():
            raise RuntimeError(f"{function}: out must have shape {list(result.shape)}, got {list(out.shape)}")
        out.resize_(result.shape)
    return out.copy_(result)


def all_into(function: str, results: Sequence[Tensor], out: Any) -> None:
    """Each of several results to a tensor of the list `out`."""
    if not isinstance(out, (list, tuple)) or len(out) != len(results):
        raise TypeError(f"{function}: out must be a list of {len(results)} Tensors, got {describe(out)}")
    for result, to in zip(results, out):
        into(function, result, to)


def check_tensor(function: str, name: str, value: object) -> None:
    """Raises TypeError for what is no tensor."""
    if not isinstance(value, _C.Tensor):
        raise TypeError(f"{function}: {name} must be a Tensor, got {describe(value)}")
