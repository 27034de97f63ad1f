"""The accelerator of this machine, of which Tenon uses none: everything is on the CPU."""

from __future__ import annotations

from typing import Any, NoReturn

from . import _C
from .absent import module_getattr


def is_available() -> bool:
    """Whether there is an accelerator: no."""
    return False


def device_count() -> int:
    """How many accelerators there are: none."""
    return 0


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """The device type of the accelerator: None, as there is none."""
    return None


def _none(function: str) -> NoReturn:
    raise RuntimeError(f"accelerator.{function}: there is no accelerator; Tenon computes on the CPU")


def current_device_index() -> int:
    """The number of the current accelerator; raises RuntimeError, as there is none."""
    _none("current_device_index")


def set_device_index(device: Any) -> None:
    """Makes an accelerator the current one; raises RuntimeError, as there is none."""
    _none("set_device_index")


def synchronize(device: Any = None) -> None:
    """Waits for an accelerator; raises RuntimeError, as there is none."""
    _none("synchronize")


def empty_cache() -> None:
    """Returns the accelerator's cached memory; raises RuntimeError, as there is none."""
    _none("empty_cache")


__getattr__ = module_getattr(__name__)
