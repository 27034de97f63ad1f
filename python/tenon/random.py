"""The default generator, with PyTorch's names: seeds, and positions in its stream."""

from __future__ import annotations

from . import _C
from ._C import default_generator, manual_seed
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state", "thread_safe_generator"]


def seed() -> int:
    """Seeds the default generator from the operating system and returns the seed."""
    import os

    value = int.from_bytes(os.urandom(8), "little")
    _C.manual_seed(value)
    return value


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's position in its stream: seed and offset, as a tensor of 16 bytes."""
    return default_generator.get_state()


def thread_safe_generator() -> _C.Generator | None:
    """The generator of this worker of a DataLoader where workers are threads, else None: they are processes here, whose default
    generators are their own."""
    return None


def set_rng_state(new_state: Any) -> None:
    """Restores a position of the default generator: what get_rng_state() returned, or a tuple of seed and offset."""
    _C._set_rng_state(new_state)


class fork_rng:
    """A context that restores the default generator's position at its end. All devices draw from one stream, so `devices`
    makes no difference."""

    def __init__(self, devices: Any = None, enabled: bool = True) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        if self._enabled:
            self._state = get_rng_state()

    def __exit__(self, *error: object) -> None:
        if self._enabled:
            set_rng_state(self._state)


_check_module(globals())
