"""The accelerator of this process, with the names of torch.accelerator: the first device that was loaded from a plug-in and is
still there. Functions take a number of it, a tenon.device, its name, or None for the current one.

Without a device, everything is on the CPU: what asks says so, and what needs one raises RuntimeError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _C, devices
from ._names.absent import add_module_getattr
from .arguments import check_module as _check_module


def _module(function: str) -> devices.DeviceModule:
    accelerator = current_accelerator()
    if accelerator is None:
        raise RuntimeError(f"accelerator.{function}: there is no accelerator; Tenon computes on the CPU")
    return devices.module_of(accelerator.type)


def _index(function: str, device: Any) -> tuple[devices.DeviceModule, Any]:
    """The accelerator's module and the number that `device` means; None stays None."""
    module = _module(function)
    if device is None or isinstance(device, int):
        return module, device
    d = _C.device(device) if isinstance(device, str) else device
    name = current_accelerator()
    if not isinstance(d, _C.device) or name is None or d.type != name.type:
        loaded = [there for there, _, _ in devices.loaded()]
        others = f", which is the first of the loaded devices ({', '.join(loaded)}); use tenon.{d.type}" if d.type in loaded else ""
        raise ValueError(f"accelerator.{function}: {device} doesn't match the current accelerator {name}{others}")
    return module, d.index


def _of_device(function: str, device: Any) -> Any:
    """What the accelerator's function of this name says of a device."""
    module, index = _index(function, device)
    return getattr(module, function)(index)


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """The accelerator's device type, without a number; None without an accelerator."""
    loaded = devices.loaded()
    return _C.device(loaded[0][0]) if loaded else None


def is_available() -> bool:
    """Whether there is an accelerator."""
    return current_accelerator() is not None


def device_count() -> int:
    """How many devices the accelerator has; 0 without one."""
    return _module("device_count").device_count() if is_available() else 0


def current_device_index() -> int:
    """The number of this thread's current device."""
    return _module("current_device_index").current_device()


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """Makes a device this thread's current one; a negative number changes nothing."""
    module, index = _index("set_device_index", device)
    if index is not None and index >= 0:
        module.set_device(index)


set_device_idx = set_device_index


@contextlib.contextmanager
def device_index(device: int | None) -> Iterator[None]:
    """A context in which a device is the current one; None changes nothing."""
    module, index = _index("device_index", device)
    if index is None:
        yield
        return
    with module.device(index):
        yield


def current_stream(device: Any = None) -> devices.Stream:
    """This thread's current stream of a device."""
    return _of_device("current_stream", device)


def set_stream(stream: devices.Stream) -> None:
    """Makes a stream, and its device, this thread's current ones."""
    _index("set_stream", stream.device)[0].set_stream(stream)


def synchronize(device: Any = None) -> None:
    """Waits until the work of all streams of a device has run."""
    _of_device("synchronize", device)


def empty_cache() -> None:
    """Returns the free blocks of the accelerator's allocator to it."""
    _module("empty_cache").empty_cache()


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The statistics of the caching allocator by PyTorch's keys (docs/memory.md)."""
    return _of_device("memory_stats", device)


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold."""
    return _of_device("memory_allocated", device)


def max_memory_allocated(device: Any = None) -> int:
    """The maximum of `memory_allocated()` since the start or `reset_peak_memory_stats()`."""
    return _of_device("max_memory_allocated", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds, in use or kept for reuse."""
    return _of_device("memory_reserved", device)


def max_memory_reserved(device: Any = None) -> int:
    """The maximum of `memory_reserved()` since the start or `reset_peak_memory_stats()`."""
    return _of_device("max_memory_reserved", device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Resets all peaks to the current values."""
    _of_device("reset_peak_memory_stats", device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Resets all sums to zero."""
    _of_device("reset_accumulated_memory_stats", device)


def get_memory_info(device: Any = None) -> tuple[int, int]:
    """(free bytes, total bytes), as the device counts them."""
    module, index = _index("get_memory_info", device)
    return module.mem_get_info(index)


_check_module(globals())
add_module_getattr(__name__)
