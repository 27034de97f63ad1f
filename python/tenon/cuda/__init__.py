"""CUDA, which Tenon does not have: what programs ask before they use it answers so, and the rest raises RuntimeError."""

from __future__ import annotations

from typing import Any

from .._names.absent import add_module_getattr
from ..no_device import device_count as device_count, empty_cache as empty_cache, is_available as is_available
from ..no_device import is_initialized as is_initialized, manual_seed as manual_seed, manual_seed_all as manual_seed_all
from ..no_device import refuse as _refuse


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the CUDA device computes in bfloat16: there is none."""
    return False


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold on a CUDA device: none."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors held on a CUDA device: none."""
    return 0


def current_device() -> int:
    """The number of the current CUDA device; raises RuntimeError, as there is none."""
    _refuse("cuda", "current_device")


def set_device(device: Any) -> None:
    """Makes a CUDA device the current one; raises RuntimeError, as there is none."""
    _refuse("cuda", "set_device")


def get_device_name(device: Any = None) -> str:
    """A CUDA device's name; raises RuntimeError, as there is none."""
    _refuse("cuda", "get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """A CUDA device's compute capability; raises RuntimeError, as there is none."""
    _refuse("cuda", "get_device_capability")


def synchronize(device: Any = None) -> None:
    """Waits for a CUDA device; raises RuntimeError, as there is none."""
    _refuse("cuda", "synchronize")


add_module_getattr(__name__, ("amp",))
