"""Parameter and Buffer: tensors that belong to a module."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from .._C import Tensor


class Parameter(_C.Tensor):
    """A tensor that a module registers as a parameter when it is assigned to an attribute. Requires grad by default."""

    _copies_alone = True  # a deep copy shares no memory with the copies of other tensors and has no gradient yet

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = _C.empty(0)
        if not isinstance(data, _C.Tensor):
            raise TypeError(f"Parameter(): data must be a Tensor, got {describe(data)}")
        return _C._make_subclass(cls, data, requires_grad)


class Buffer(_C.Tensor):
    """A tensor that belongs to a module's state but is not trained."""

    persistent: bool

    def __new__(cls, data: Tensor | None = None, persistent: bool = True) -> Self:
        if data is not None and not isinstance(data, _C.Tensor):
            raise TypeError(f"Buffer(): data must be a Tensor, got {describe(data)}")
        buffer = _C._make_subclass(cls, _C.empty(0) if data is None else data, False)
        buffer.persistent = persistent
        return buffer

    def __repr__(self) -> str:
        return repr(self.detach())  # as any tensor: PyTorch's buffers have no type of their own


_check_module(globals())


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in ("UninitializedBuffer", "UninitializedParameter", "is_lazy"):
            from . import lazy

            return getattr(lazy, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
