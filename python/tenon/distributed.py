"""Several processes, which Tenon does not have: what programs ask before they use them answers so."""

from __future__ import annotations

from ._names.absent import add_module_getattr


def is_available() -> bool:
    """Whether processes can work together: no."""
    return False


def is_initialized() -> bool:
    """Whether processes work together: no."""
    return False


add_module_getattr(__name__)
