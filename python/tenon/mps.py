"""Apple's GPUs, of which Tenon has none: what programs ask before they use one answers so, and the rest raises RuntimeError."""

from __future__ import annotations

from typing import NoReturn

from .absent import module_getattr

TYPE_CHECKING = False


def is_available() -> bool:
    """Whether such a device can be used: no."""
    return False


def device_count() -> int:
    """How many such devices there are: none."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds the generator of such a device, of which there is none; tenon.manual_seed seeds the one there is."""


def empty_cache() -> None:
    """Returns cached memory of such devices, of which there is none. For the host: tenon.cpu.empty_cache()."""


def _none(function: str) -> NoReturn:
    raise RuntimeError(f"mps.{function}: there is no such device; Tenon has no MPS backend")


def synchronize() -> None:
    """Waits for such a device; raises RuntimeError, as there is none."""
    _none("synchronize")


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
