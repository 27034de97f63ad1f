"""CUDA, which Tenon does not have: what programs ask before they use it answers so, and the rest raises RuntimeError."""

from __future__ import annotations

from typing import Any, NoReturn

from ..absent import module_getattr

TYPE_CHECKING = False


def is_available() -> bool:
    """Whether a CUDA device can be used: no."""
    return False


def is_initialized() -> bool:
    """Whether CUDA has been started: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the CUDA device computes in bfloat16: there is none."""
    return False


def device_count() -> int:
    """How many CUDA devices there are: none."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds the generator of the CUDA device, of which there is none; tenon.manual_seed seeds the one there is."""


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all CUDA devices, of which there are none."""


def empty_cache() -> None:
    """Returns cached memory of CUDA devices, of which there is none. For the host: tenon.cpu.empty_cache()."""


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold on a CUDA device: none."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors held on a CUDA device: none."""
    return 0


def _none(function: str) -> NoReturn:
    raise RuntimeError(f"cuda.{function}: there is no CUDA device; Tenon has no CUDA backend")


def current_device() -> int:
    """The number of the current CUDA device; raises RuntimeError, as there is none."""
    _none("current_device")


def set_device(device: Any) -> None:
    """Makes a CUDA device the current one; raises RuntimeError, as there is none."""
    _none("set_device")


def get_device_name(device: Any = None) -> str:
    """A CUDA device's name; raises RuntimeError, as there is none."""
    _none("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """A CUDA device's compute capability; raises RuntimeError, as there is none."""
    _none("get_device_capability")


def synchronize(device: Any = None) -> None:
    """Waits for a CUDA device; raises RuntimeError, as there is none."""
    _none("synchronize")


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
