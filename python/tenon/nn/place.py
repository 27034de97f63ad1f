"""Where in a model an error was raised: "in Sequential.2 (Linear)", added while the error leaves the calls of modules."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

    from .module import Module

#: The attribute of an exception that has its place already.
_MARK = "_place_in_model"


def add_place(error: Exception, calls: tuple[CodeType, ...]) -> None:
    """Adds the place of the innermost module that is being called to the error, once.

    `calls` is the code of the methods that call forward(). The text of Python's own exceptions and of Tenon's gets the place;
    an exception of another class, whose arguments may be data, gets it as a note, which tracebacks print.
    """
    if hasattr(error, _MARK):
        return
    try:
        text = _describe(_called_modules(sys._getframe(1), calls))
    except Exception:  # a module whose parts cannot be listed has no path; the error itself is what the caller needs
        return
    setattr(error, _MARK, text)
    if not text:
        return
    if type(error).__module__ in ("builtins", "tenon") and error.args == (str(error),):
        error.args = (f"{error}; {text}",)
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(text)


def _called_modules(frame: FrameType | None, calls: tuple[CodeType, ...]) -> list[Module]:
    """The modules whose calls are under way, the outermost first."""
    modules: list[Module] = []
    while frame is not None:
        if frame.f_code in calls:
            module = frame.f_locals["self"]
            if not modules or modules[-1] is not module:
                modules.append(module)
        frame = frame.f_back
    return modules[::-1]


def _describe(modules: list[Module]) -> str:
    """"in Sequential.2 (Linear)"; empty for a module that is called alone, which the traceback shows."""
    if len(modules) < 2:
        return ""
    path = type(modules[0]).__name__
    for outer, inner in zip(modules, modules[1:]):
        # A module that is no part of its caller, as one in a plain list, is named by its class.
        name = next((name for name, module in outer.named_modules() if module is inner), None)
        path += f".{name}" if name else f" > {type(inner).__name__}"
    return f"in {path} ({type(modules[-1]).__name__})"
