"""Optimizers. The updates of SGD, Adam and AdamW are C++ functions, which tenon::optim uses too."""

from ..absent import attribute_error
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, NAdam, RMSprop
from .optimizer import Optimizer
from .sgd import SGD

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


def __getattr__(name):
    # Half of the room's code, which programs without a schedule never read.
    if name == "lr_scheduler":
        import importlib

        return importlib.import_module(f"{__name__}.lr_scheduler")
    raise attribute_error(__name__, name)


def __dir__():
    return sorted({*globals(), "lr_scheduler"})
