"""The graph that the forward pass records, and the tensors that it saves."""

from __future__ import annotations

import functools

from .. import _C
from .._C import Node
from ..arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor

__all__ = ["Node", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:
    """Inside, each tensor that backward needs is kept as `pack_hook(tensor)` returns it; `unpack_hook` restores it.

    Neither may write to its argument. The innermost pair applies. An unpack hook must return a tensor of the shape and dtype
    that was packed.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception: object) -> None:
        _C._pop_saved_tensor_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, the tensors that backward needs are kept in host memory, and return to their device when backward uses them."""

    def __init__(self, pin_memory: bool = False, device_type: str | None = None) -> None:
        def pack(tensor):
            return tensor.device, tensor.detach().clone() if tensor.device.type == "cpu" else tensor.to("cpu")

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Inside, entering saved_tensors_hooks raises RuntimeError with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        self.previous = _C._disable_saved_tensor_hooks(self.message)

    def __exit__(self, *exception: object) -> None:
        _C._disable_saved_tensor_hooks(self.previous)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with disable_saved_tensors_hooks(self.message):
                return function(*args, **kwargs)

        return wrapped


_check_module(globals())
