"""Intel's GPUs, which Tenon does not have: what programs ask before they use one answers so, and the rest raises RuntimeError."""

from __future__ import annotations

from typing import Any

from ._names.absent import add_module_getattr
from .no_device import device_count as device_count, empty_cache as empty_cache, is_available as is_available
from .no_device import is_initialized as is_initialized, manual_seed as manual_seed, manual_seed_all as manual_seed_all
from .no_device import refuse as _refuse


def synchronize(device: Any = None) -> None:
    """Waits for such a device; raises RuntimeError, as there is none."""
    _refuse("xpu", "synchronize")


def current_device() -> int:
    """The number of the current device; raises RuntimeError, as there is none."""
    _refuse("xpu", "current_device")


def set_device(device: Any) -> None:
    """Makes a device the current one; raises RuntimeError, as there is none."""
    _refuse("xpu", "set_device")


def get_device_name(device: Any = None) -> str:
    """A device's name; raises RuntimeError, as there is none."""
    _refuse("xpu", "get_device_name")


add_module_getattr(__name__)
