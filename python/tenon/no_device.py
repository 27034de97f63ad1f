"""What tenon.cuda, tenon.mps and tenon.xpu answer of devices that Tenon does not have."""

from __future__ import annotations

from typing import NoReturn


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
    """Does nothing, as there is no such device; tenon.manual_seed seeds the generator of the host."""


def manual_seed_all(seed: int) -> None:
    """Does nothing, as there is no such device; tenon.manual_seed seeds the generator of the host."""


def empty_cache() -> None:
    """Does nothing, as there is no such device. For the host: tenon.cpu.empty_cache()."""


def refuse(module: str, function: str) -> NoReturn:
    """Raises RuntimeError for a function that needs a device: `refuse("cuda", "set_device")`."""
    raise RuntimeError(f"{module}.{function}: there is no {module.upper()} device; Tenon has no {module.upper()} backend")
