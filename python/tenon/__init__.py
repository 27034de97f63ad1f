"""Tenon: tensors, autograd and small models, with PyTorch's names and little overhead.

    import tenon as torch

runs PyTorch code that stays inside the supported operators; `python -m tenon ops` lists them.
"""

import builtins as _builtins
import math as _math

from . import _C
from ._C import *  # noqa: F401,F403  operators, dtypes, Tensor and its kin are the module's own objects
from . import autograd, nn, optim
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .info import finfo, iinfo
from .serialization import load, save

del dispatch  # noqa: F821  _C's own; tenon.dispatch is the module of that name

__version__ = "0.1.0"

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e


def typename(o):
    """The name of an object's type, as error messages show it."""
    return f"{type(o).__module__}.{type(o).__qualname__}"


def seed():
    """Seeds the default generator from the operating system and returns the seed."""
    import os

    value = _builtins.int.from_bytes(os.urandom(8), "little")
    _C.manual_seed(value)
    return value


def initial_seed():
    """The seed of the default generator."""
    return _C.default_generator.initial_seed()


def get_rng_state():
    """The default generator's place in its stream."""
    return _C.default_generator.get_state()


def set_rng_state(state):
    """Goes back to a place in the default generator's stream."""
    _C.default_generator.set_state(state)


def is_storage(o):
    """Whether an object is a storage."""
    return isinstance(o, _C.UntypedStorage)


def __getattr__(name):
    # Rarely used rooms load when first asked for, so that `import tenon` stays quick.
    if name in ("utils", "random", "library", "ops", "dispatch"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'tenon' has no attribute {name!r}")
