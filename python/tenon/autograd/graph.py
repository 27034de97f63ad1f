"""The graph that the forward pass records, and what it keeps."""

import functools

from .. import _C
from .._C import Node

__all__ = ["Node", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:
    """Inside, what backward needs is kept as `pack_hook(tensor)` returns it, and `unpack_hook` gives it back.

    Neither may write to what it gets. The innermost pair applies; results of an unpack hook must have the shape and
    dtype of what was packed.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        _C._push_saved_tensor_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception):
        _C._pop_saved_tensor_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, what backward needs is kept in host memory; it goes back to its device when backward asks."""

    def __init__(self, pin_memory=False, device_type=None):
        def pack(tensor):
            return tensor.device, tensor.detach().clone() if tensor.device.type == "cpu" else tensor.to("cpu")

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Inside, entering saved_tensors_hooks raises RuntimeError with this message."""

    def __init__(self, error_message):
        self.message = error_message

    def __enter__(self):
        self.previous = _C._disable_saved_tensor_hooks(self.message)

    def __exit__(self, *exception):
        _C._disable_saved_tensor_hooks(self.previous)

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with disable_saved_tensors_hooks(self.message):
                return function(*args, **kwargs)

        return wrapped
