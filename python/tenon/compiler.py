"""What programs ask of a compiler, with the names of torch.compiler. tenon.compile records calls while Python runs, so every line of a
function runs as it does without it, and what only a compiler that reads Python needs has nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._names.absent import add_module_getattr
from ._program.compile import compile as compile
from .arguments import check_module as _check_module, describe as _describe


def is_compiling() -> bool:
    """Whether a compiler reads this line in place of Python: no."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether PyTorch's Dynamo reads this line: no."""
    return False


def is_exporting() -> bool:
    """Whether the program is exported: no."""
    return False


def _callable(function: str, fn: Any) -> Any:
    if not callable(fn):
        raise TypeError(f"{function}: fn must be callable, got {_describe(fn)}")
    return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, or without one a decorator that gives it: Python runs it also inside of compiled functions."""
    if fn is None:
        return lambda function: _callable("disable", function)
    return _callable("disable", fn)


def allow_in_graph(fn: Any) -> Any:
    """The function itself, or a list of them: what it calls is recorded as in any function."""
    if isinstance(fn, (list, tuple)):
        return [_callable("allow_in_graph", function) for function in fn]
    return _callable("allow_in_graph", fn)


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, which Python calls each time."""
    return _callable("assume_constant_result", fn)


def cudagraph_mark_step_begin() -> None:
    """Does nothing: no memory of results is used again while they are alive."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names of other compilers that tenon.compile could hand programs to: none."""
    return []


_check_module(globals())
add_module_getattr(__name__)
