"""Intel's GPUs, of which Tenon has none: what programs ask before they use one answers so, and the rest raises RuntimeError."""

from __future__ import annotations

from typing import Any, NoReturn

from .absent import module_getattr

TYPE_CHECKING = False


def is_available() -> bool:
    """Whether such a device can be used: no."""
    return False


def is_initialized() -> bool:
    """Whether such a device has been started: no."""
    return False


def device_count() -> int:
    """How many such devices there are: none."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds the generator of such a device, of which there is none; tenon.manual_seed seeds the one there is."""


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all such devices, of which there are none."""


def empty_cache() -> None:
    """Returns cached memory of such devices, of which there is none. For the host: tenon.cpu.empty_cache()."""


def _none(function: str) -> NoReturn:
    raise RuntimeError(f"xpu.{function}: there is no such device; Tenon has no XPU backend")


def synchronize(device: Any = None) -> None:
    """Waits for such a device; raises RuntimeError, as there is none."""
    _none("synchronize")


def current_device() -> int:
    """The number of the current device; raises RuntimeError, as there is none."""
    _none("current_device")


def set_device(device: Any) -> None:
    """Makes a device the current one; raises RuntimeError, as there is none."""
    _none("set_device")


def get_device_name(device: Any = None) -> str:
    """A device's name; raises RuntimeError, as there is none."""
    _none("get_device_name")


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
