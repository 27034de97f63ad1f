"""What a function that writes a graph down reads beside its arguments, as comparisons: a plan holds while they do."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from .guards import CELL, CODE, DEFAULTS, ELEMENTS, ENTRY, ITEM, KEYS, SIZE

#: Longer containers are compared by their identity alone: a call would take long.
_MAX_ITEMS = 64

#: Kind, holder, key, expected, number and the name, as guards.h has them.
Comparison = tuple[int, Any, Any, Any, int, str]


class PlanReads:
    """The globals and closures of a function, and of functions of its module that it names, as they are now: numbers, texts and
    the like by value, lists, dicts and sets by their items, functions by their code and defaults too, other objects as such."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.comparisons: list[Comparison] = []
        self._seen: set[int] = set()
        function = inspect.unwrap(function)
        function = getattr(function, "__func__", function)
        self._globals = getattr(function, "__globals__", {})
        if isinstance(function, types.FunctionType):
            self._read_by(function)

    def that_stayed(self, before: PlanReads) -> list[Comparison]:
        """Without variables and containers that have changed since `before`: notes that the function makes of its own calls."""
        then = {_place(c): c for c in before.comparisons}

        def owner(c: Comparison) -> tuple[Any, ...]:
            _, holder, key, *_ = c
            return (id(holder), key) if holder is self._globals else (id(holder),)

        changed = {owner(c) for c in self.comparisons if not _is_as(c, then.get(_place(c)))}
        return [c for c in self.comparisons if owner(c) not in changed]

    def _read_by(self, f: types.FunctionType) -> None:
        if id(f) in self._seen or f.__globals__ is not self._globals:
            return
        self._seen.add(id(f))
        for name in _names(f.__code__) & self._globals.keys():
            self._read((ENTRY, self._globals, name, self._globals[name], 0, name))
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            try:
                self._read((CELL, cell, None, cell.cell_contents, 0, name))
            except ValueError:
                pass  # not set yet

    def _read(self, comparison: Comparison) -> None:
        value, path = comparison[3], comparison[5]
        if value is ...:  # what stands for nothing in comparisons
            return
        self.comparisons.append(comparison)
        if isinstance(value, types.FunctionType):
            self.comparisons.append((CODE, value, None, value.__code__, 0, path))
            for number, defaults in enumerate((value.__defaults__, value.__kwdefaults__)):
                self.comparisons.append((DEFAULTS, value, None, ... if defaults is None else defaults, number, path))
            self._read_by(value)
        else:
            self._look_into(value, path)

    def _look_into(self, value: Any, path: str) -> None:
        kind = type(value)
        if kind not in (list, tuple, dict, set) or id(value) in self._seen or len(value) > _MAX_ITEMS:
            return
        self._seen.add(id(value))
        if kind is set:
            self.comparisons.append((ELEMENTS, value, None, tuple(value), 0, path))
        elif kind is dict:
            self.comparisons.append((KEYS, value, None, tuple(value), 0, path))
            for key, item in value.items():
                self._read((ENTRY, value, key, item, 0, path))
        elif kind is list:
            self.comparisons.append((SIZE, value, None, None, len(value), path))
            for i, item in enumerate(value):
                self._read((ITEM, value, None, item, i, path))
        else:
            for item in value:
                self._look_into(item, path)


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, types.CodeType)))


def names_in(function: Any) -> set[str]:
    """The names in the code of a function, and of the functions and methods of its object that it names and that are not Tenon's."""
    function = inspect.unwrap(function)
    owner = type(getattr(function, "__self__", None)).__mro__
    found: set[str] = set()
    seen: set[int] = set()
    todo = [getattr(function, "__func__", function)]
    while todo:
        f = todo.pop()
        if not isinstance(f, types.FunctionType) or id(f) in seen or (f.__module__ or "").partition(".")[0] == __package__:
            continue
        seen.add(id(f))
        names = _names(f.__code__)
        found |= names
        todo += [f.__globals__[name] for name in names & f.__globals__.keys()]
        for name in names:
            for method in (cls.__dict__[name] for cls in owner if name in cls.__dict__):
                todo.append(method)
                if "super" not in getattr(getattr(method, "__code__", None), "co_names", ()):
                    break  # it overrides those of the classes behind it
        for cell in f.__closure__ or ():
            try:
                todo.append(cell.cell_contents)
            except ValueError:
                pass  # not set yet
    return found


def _place(c: Comparison) -> tuple[Any, ...]:
    kind, holder, key, _, number, _ = c
    return kind, id(holder), key, number if kind in (ITEM, DEFAULTS) else 0


def _is_as(now: Comparison, then: Comparison | None) -> bool:
    if then is None or now[4] != then[4]:
        return False
    a, b = now[3], then[3]
    if now[0] in (KEYS, ELEMENTS):
        return len(a) == len(b) and all(x is y for x, y in zip(a, b))
    return a is b
