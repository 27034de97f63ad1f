"""Which code is Tenon's own, what code names, and which line of the program a warning or a message is about."""

import sys
import types
import warnings


def is_own(variables):
    """Whether code with these globals is part of Tenon."""
    name = variables.get("__name__", "")
    return isinstance(name, str) and name.partition(".")[0] == __package__


def names_in(code):
    """The names of globals and attributes in code, and in the functions that are defined in it."""
    return {*code.co_names}.union(*(names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)))


def line_of_program(frame):
    """The line of the innermost frame, from `frame` outwards, that is not Tenon's own: "model.py:12"; empty if there is none."""
    while frame is not None and is_own(frame.f_globals):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def warn(message, category=UserWarning):
    """Warns at the line of the program that has called Tenon."""
    frame, level = sys._getframe(1), 2
    while frame is not None and is_own(frame.f_globals):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level if frame is not None else 2)
