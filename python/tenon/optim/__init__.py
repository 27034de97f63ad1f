"""Optimizers. The updates of SGD, Adam and AdamW are C++ functions, which tenon::optim uses too."""

from ..absent import module_getattr
from . import lr_scheduler
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

__getattr__ = module_getattr(__name__)
