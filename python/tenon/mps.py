"""Apple's GPUs, which Tenon does not have: what programs ask before they use one answers so, and the rest raises RuntimeError."""

from __future__ import annotations

from ._names.absent import add_module_getattr
from .no_device import device_count as device_count, empty_cache as empty_cache
from .no_device import is_available as is_available, manual_seed as manual_seed, refuse as _refuse


def synchronize() -> None:
    """Waits for such a device; raises RuntimeError, as there is none."""
    _refuse("mps", "synchronize")


add_module_getattr(__name__)
