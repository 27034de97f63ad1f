"""Helpers for training."""

from .._names.absent import attribute_error
from . import data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import checkpoint

__all__ = ["checkpoint", "data"]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "checkpoint":
            import importlib

            return importlib.import_module(f"{__name__}.checkpoint")
        raise attribute_error(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), "checkpoint"})
