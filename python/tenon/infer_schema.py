"""infer_schema: an operator's schema from the annotations of a Python function."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing

from . import _C
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# What one annotation is in the schema language: Python's own types, then ours. SymInt is an int that a recorded program
# may leave open.
_SIMPLE = {int: "SymInt", float: "float", bool: "bool", str: "str", complex: "Scalar"}
_SIMPLE |= {
    getattr(_C, ours): name for name, ours in _C._argument_types().items() if isinstance(getattr(_C, ours, None), type)
}
_LISTS = {list, collections.abc.Sequence, typing.Sequence, typing.List}
_UNIONS = {typing.Union, getattr(types, "UnionType", typing.Union)}


def _type_text(annotation: Any) -> str | None:
    """The schema type of an annotation; None if there is none."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _UNIONS:
        rest = [a for a in arguments if a is not type(None)]
        if len(rest) < len(arguments):
            inner = _type_text(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])
            return inner and inner + "?"
        return "Scalar" if set(rest) <= {bool, int, float, complex} else None
    if origin in _LISTS and len(arguments) == 1:
        inner = _type_text(arguments[0])
        return inner and not inner.endswith("[]") and inner + "[]" or None
    return None


def _default_text(value: Any) -> str:
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (_C.dtype, _C.layout, _C.memory_format)):
        return repr(value).removeprefix("tenon.")
    if isinstance(value, _C.device):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_default_text(v) for v in value) + "]"
    raise ValueError(f"{value!r} cannot be a default of the schema language")


def _where(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


def _returns_text(annotation: Any) -> str | None:
    if annotation is None or annotation is type(None):
        return "()"
    if typing.get_origin(annotation) is tuple:
        parts = [_type_text(a) for a in typing.get_args(annotation)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return known[0] if len(known) == 1 else "(" + ", ".join(known) + ")"
    return _type_text(annotation)


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str] = (), op_name: str | None = None
) -> str:
    """The schema of an annotated function, such as "(Tensor x, float scale=1.0) -> Tensor".

    Every parameter and the return value must be annotated with a type that the schema language has: Tensor, int, float,
    bool, str, dtype, device, layout, memory_format, Generator, a Union of numbers, Optional and Sequence of those.
    `mutates_args` names the tensors that the function writes; "unknown" means all. `op_name` goes before the schema. Raises
    ValueError naming the parameter that does not fit.
    """
    who = f"infer_schema: {_where(prototype_function)}"
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as e:
        raise ValueError(f"{who}: an annotation cannot be evaluated: {e}") from e
    mutated = set(signature.parameters) if mutates_args == "unknown" else set(mutates_args)
    texts, star = [], False
    for position, (name, p) in enumerate(signature.parameters.items()):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ValueError(f"{who}: parameter `{p}` takes any number of arguments; a schema has a fixed number")
        if name not in hints:
            raise ValueError(f"{who}: parameter `{name}` has no annotation; annotate it, or give the schema")
        text = _type_text(hints[name])
        if text is None:
            raise ValueError(f"{who}: parameter `{name}` is annotated {hints[name]}, which no schema can say")
        if name in mutated and (text.startswith("Tensor") or mutates_args != "unknown"):
            if not text.startswith("Tensor"):
                raise ValueError(f"{who}: `{name}` is in mutates_args, but it is no Tensor")
            text = f"Tensor(a{position}!)" + text.removeprefix("Tensor")
        if p.kind is p.KEYWORD_ONLY and not star:
            texts.append("*")
            star = True
        try:
            default = "" if p.default is p.empty else "=" + _default_text(p.default)
        except ValueError as e:
            raise ValueError(f"{who}: parameter `{name}`: {e}") from None
        texts.append(f"{text} {name}{default}")
    unknown = mutated - set(signature.parameters)
    if unknown:
        raise ValueError(f"{who}: mutates_args names {', '.join(sorted(unknown))}, which is no parameter")
    if "return" not in hints:
        raise ValueError(f"{who}: the return has no annotation (None for nothing)")
    returns = _returns_text(hints["return"])
    if returns is None:
        raise ValueError(f"{who}: the return is annotated {hints['return']}, which no schema can say")
    return f"{op_name or ''}({', '.join(texts)}) -> {returns}"


_check_module(globals())
