"""Decorators of PyTorch's TorchScript, for programs that have them: what they mark stays Python. `tenon.compile` makes programs fast."""

from __future__ import annotations

from typing import Final, cast as annotate

from ._names.absent import add_module_getattr
from .arguments import check_module as _check_module
from .nn.module import Module as _Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Final", "ScriptModule", "annotate", "export", "ignore", "interface", "is_scripting", "is_tracing", "script", "script_if_tracing",
    "script_method", "unused",
]  # fmt: skip


def _as_it_is(fn: Any) -> Any:
    """Returns what it gets."""
    return fn


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the function, class or module, which Python runs."""
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns the function, also as @ignore(...)."""
    return drop if callable(drop) else _as_it_is


export = interface = script_if_tracing = script_method = unused = _as_it_is


class ScriptModule(_Module):
    """A module, which Python runs."""


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = is_scripting

_check_module(globals())
add_module_getattr(__name__)
