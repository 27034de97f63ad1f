"""Optimizers. The updates of SGD, Adam and AdamW are C++ functions, which tenon::optim uses too."""

from .._names.absent import attribute_error
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, NAdam, RMSprop
from .optimizer import Optimizer
from .sgd import SGD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import lr_scheduler

__all__ = [
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "NAdam",
    "Optimizer",
    "RMSprop",
    "SGD",
    "lr_scheduler",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Half of the room's code, which programs without a schedule never read.
        if name == "lr_scheduler":
            import importlib

            return importlib.import_module(f"{__name__}.lr_scheduler")
        raise attribute_error(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), "lr_scheduler"})
