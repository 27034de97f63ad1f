"""Memory statistics of the host, with the names that `torch.cuda` has for a GPU.

Blocks of 128 KiB and more are kept when tensors free them, and are reused for tensors of about that size, because fresh
memory costs a page fault for every page. `memory_reserved()` counts them until `empty_cache()` returns them to the system.
They are also returned when the system runs short of memory, and before an allocation fails. Tensors of up to 1 KiB are not
counted.
"""

from __future__ import annotations

from .. import _C
from .._names.absent import add_module_getattr
from ..arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..types import Device

__all__ = [
    "cache_limit",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_cache_limit",
]


def _check(device, function):
    if device is None:
        return
    if not isinstance(device, _C.device):
        device = _C.device(device)
    if device.type != "cpu":
        raise ValueError(f"{function}: expected a cpu device, but got {device}")


def memory_stats(device: Device = None) -> dict[str, Any]:
    """The allocator's statistics as a dict with PyTorch's keys, the same as of devices (docs/memory.md).

    `allocation` (blocks in use), `allocated_bytes` (what was asked for), `active` and `active_bytes` (on the host the same)
    and `reserved_bytes` (taken from the system, with what is kept), each as `NAME.all.current`, `.peak`, `.allocated` and
    `.freed` (sums since the last reset); `num_alloc_retries`, allocations that worked once the cache was emptied; and
    `num_ooms`, allocations that failed. The host has one pool, the large one, and no segments.
    """
    _check(device, "memory_stats")
    return _C._devices.memory_stats("cpu")


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """`memory_stats()` as dicts in dicts: `["allocated_bytes"]["all"]["peak"]`."""
    _check(device, "memory_stats_as_nested_dict")
    nested: dict[str, Any] = {}
    for key, value in _C._devices.memory_stats("cpu").items():
        *path, last = key.split(".")
        inner = nested
        for name in path:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return nested


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The statistics as a table."""
    _check(device, "memory_summary")
    return _C._devices.memory_summary("cpu", abbreviated)


def _stat(key, device, function):
    _check(device, function)
    return _C._devices.memory_stats("cpu")[key]


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors hold."""
    return _stat("allocated_bytes.all.current", device, "memory_allocated")


def max_memory_allocated(device: Device = None) -> int:
    """The maximum of `memory_allocated()` since the start or `reset_peak_memory_stats()`."""
    return _stat("allocated_bytes.all.peak", device, "max_memory_allocated")


def memory_reserved(device: Device = None) -> int:
    """Bytes that tensors hold or the cache keeps, including the rounding of block sizes."""
    return _stat("reserved_bytes.all.current", device, "memory_reserved")


def max_memory_reserved(device: Device = None) -> int:
    """The maximum of `memory_reserved()` since the start or `reset_peak_memory_stats()`."""
    return _stat("reserved_bytes.all.peak", device, "max_memory_reserved")


def reset_peak_memory_stats(device: Device = None) -> None:
    """Resets all peaks to the current values."""
    _check(device, "reset_peak_memory_stats")
    _C._memory.reset_peak_memory_stats()


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Resets all sums (allocated, freed, retries, failures) to zero."""
    _check(device, "reset_accumulated_memory_stats")
    _C._memory.reset_accumulated_memory_stats()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(available bytes, total bytes) of the machine, or of the control group or process if those are limited."""
    _check(device, "mem_get_info")
    return _C._memory.mem_get_info()


def empty_cache() -> None:
    """Returns the blocks that are kept for reuse to the system."""
    _C._memory.empty_cache()


def cache_limit() -> int:
    """The most bytes that are kept for reuse; unless set, a quarter of the memory."""
    return _C._memory.cache_limit()


def set_cache_limit(nbytes: int) -> None:
    """Sets the most bytes that are kept for reuse, and returns what exceeds it to the system; 0 keeps nothing."""
    _C._memory.set_cache_limit(nbytes)


_check_module(globals())
add_module_getattr(__name__, ("amp",))
