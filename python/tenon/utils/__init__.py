"""Helpers for training."""

from .._names.absent import add_module_getattr
from . import data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import checkpoint

__all__ = ["checkpoint", "data"]

add_module_getattr(__name__, ("checkpoint",))


def __dir__() -> list[str]:
    return sorted({*globals(), "checkpoint"})
