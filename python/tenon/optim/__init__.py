"""Optimizers. The updates of SGD, Adam and AdamW are C++ functions, which tenon::optim uses too."""

from .._names.absent import add_module_getattr
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

# Half of the room's code, which programs without a schedule never read.
add_module_getattr(__name__, ("lr_scheduler",))


def __dir__() -> list[str]:
    return sorted({*globals(), "lr_scheduler"})
