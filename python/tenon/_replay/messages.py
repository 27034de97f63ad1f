"""What compile(pure=True) says of a call that no replay fits and of a program that it refuses: the name and the value of what
differs, and the line of the program that reads or changes it."""

import ast
import functools
import linecache
import re
import types

from .. import _C
from ..nn import Module
from .kinds import CONSTANT, DICT_OF, LIST, SCALARS, TENSOR, TUPLE

_MOST = 60  # characters of a value


def name_of(fn):
    """The name of a program; of a module's call, the name of its class."""
    owner = getattr(fn, "__self__", None)
    return type(owner).__qualname__ if isinstance(owner, Module) else getattr(fn, "__qualname__", repr(fn))


def code_of(fn):
    """The code of a program; None where it has none of its own, as functions in C."""
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, Module):
        fn = owner.forward
    while isinstance(fn, functools.partial):
        fn = fn.func
    if not hasattr(fn, "__code__") and not hasattr(fn, "__func__"):
        fn = getattr(type(fn), "__call__", fn)
    return getattr(getattr(fn, "__func__", fn), "__code__", None)


def _is_attribute(*names):
    return lambda node: isinstance(node, ast.Attribute) and node.attr in names


def _writes_in_place(node):
    return isinstance(node, ast.Attribute) and node.attr.endswith("_") and not node.attr.startswith("_")


def _sets_attribute(node):
    return isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)


#: What the lines do that a reason is about, by how it begins.
_TELLING = (
    ("it returns", lambda node: isinstance(node, ast.Return)),
    ("it makes something else of an optimizer", _is_attribute("step")),
    ("it updates a parameter of an optimizer", _writes_in_place),
    ("it sets an attribute of a tensor", _sets_attribute),
    ("a gradient", _is_attribute("grad")),
    ("it changes the shape of a gradient", _is_attribute("grad")),
)


@functools.lru_cache(64)
def _tree(file):
    """The syntax of a file; an empty module where it cannot be read."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _last_line(code):
    lines = [line for _, _, line in code.co_lines() if line is not None]
    return max([*lines, *(_last_line(c) for c in code.co_consts if isinstance(c, types.CodeType))], default=code.co_firstlineno)


def _nodes(code):
    """The parts of the code's source, in the order of its lines."""
    first, last = code.co_firstlineno, _last_line(code)
    nodes = [node for node in ast.walk(_tree(code.co_filename)) if first <= getattr(node, "lineno", 0) <= last]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _mentions(node, name):
    """What a part of a program does with a name: "change" (`x.name = 1`, `x["name"] += 1`), "use", or None."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == name:
        return None if isinstance(node.ctx, ast.Load) else "change"
    if getattr(node, "id", None) == name or getattr(node, "attr", None) == name:
        return "use" if isinstance(node.ctx, ast.Load) else "change"
    return None


def line_of(path, codes, fn):
    """The line of the program that names the last part of `path`, "`model.scale`" or "global `scale`": one that changes it before
    one that reads it. Where no line does, one that does what `path` says as a reason, or that of the program itself. `codes` are
    what the program may run."""
    own = code_of(fn)
    ordered = sorted(codes, key=lambda code: code is not own)
    quoted = re.search("`([^`]+)`", path)
    for name in reversed(re.findall(r"[^\W\d]\w*", quoted.group(1) if quoted else "")):
        for wanted in ("change", "use"):
            for code in ordered:
                for node in _nodes(code):
                    if _mentions(node, name) == wanted:
                        return f"{code.co_filename}:{node.lineno}"
    for begin, tells in _TELLING:
        for code in ordered if path.startswith(begin) else ():
            if lines := [node.lineno for node in _nodes(code) if tells(node)]:
                return f"{code.co_filename}:{lines[-1]}"
    return f"{own.co_filename}:{own.co_firstlineno}" if own in codes else ""


def names_of_arguments(fn, num_positional, names):
    """What the program calls each argument of a call; the number of one that has no name."""
    code = code_of(fn)
    known = code.co_varnames[: code.co_argcount] if code is not None else ()
    if isinstance(fn, types.MethodType) or known[:1] == ("self",):
        known = known[1:]
    return [*(known[i] if i < len(known) else str(i + 1) for i in range(num_positional)), *(names or ())]


class Call:
    """The arguments of the call that a replay was made of: how they are nested, what the program calls each, and where it has
    its other tensors."""

    def __init__(self, fn, described, num_positional, names, captured):
        self._described, self._captured = described[1], captured
        self._num_positional, self._names = num_positional, names or ()
        self._paths = names_of_arguments(fn, num_positional, names)

    def difference(self, found, args, kwargs):
        """What differs in another call, and from what to what, which may be empty. `found` is what the compiled function says
        of it: the name of the difference, the number of a tensor, that tensor's header then, a value now and then."""
        what, tensor, was, now, then = found
        if tensor >= 0:
            return self._tensor(tensor, what, was, [*args, *kwargs.values()])
        if now is not ...:
            was, is_ = _shown(then), _shown(now)
            return what, f"which was {was} and is {is_}" if was != is_ else f"which is another {type(now).__qualname__}"
        if len(args) != self._num_positional or tuple(kwargs) != tuple(self._names):
            names = ", ".join(kwargs) or "none"
            return "the number or the names of the arguments", f"which are {len(args)} without a name and {names} by name"
        for description, path, value in zip(self._described, self._paths, (*args, *kwargs.values())):
            if found := _difference(description, value, path):
                differs, change = found
                return f"argument `{differs}`", change
        return what, ""

    def _tensor(self, number, what, was, values):
        paths = [*_tensors(self._described, self._paths)]
        if number >= len(paths):
            name, there = f"`{self._captured[number - len(paths)]}`", None
        else:
            name, there = f"argument `{paths[number]}`", _at(number, self._described, values)
        if not was or not isinstance(there, _C.Tensor):
            return name, f"which {what} then" + (f": {was}" if was else "")
        return name, f"which was {was} and is {_C._replay_header(there)}"


def _inner(description, path):
    """(description, path) of each item of a container."""
    kind, items, *keys = description
    labels = keys[0] if kind == DICT_OF else range(len(items))
    return [(item, f"{path}[{label!r}]") for item, label in zip(items, labels)]


def _tensors(descriptions, paths):
    """The paths of tensors in the order of their numbers."""
    for description, path in zip(descriptions, paths):
        if description[0] == TENSOR:
            yield path
        elif description[0] in (TUPLE, LIST, DICT_OF):
            yield from _tensors(*zip(*_inner(description, path))) if description[1] else ()


def _at(number, descriptions, values):
    """The tensor of a number among other arguments of this nesting; None if it is not there."""
    for description, value in zip(descriptions, values):
        kind = description[0]
        if kind == TENSOR and description[1] == number:
            return value
        if kind in (TUPLE, LIST, DICT_OF) and isinstance(value, (tuple, list, dict)):
            found = _at(number, description[1], value.values() if isinstance(value, dict) else value)
            if found is not None:
                return found
    return None


def _difference(description, value, path):
    """The first difference between a value and the description of what was there: its path, and from what to what; None if there
    is none."""
    kind, content, *keys = description
    if kind == TENSOR:
        return None if isinstance(value, _C.Tensor) else (path, f"which was a tensor and is {_shown(value)}")
    if kind == CONSTANT:
        alike = type(value) is type(content) in SCALARS and _text(value) == _text(content) != "nan"
        return None if value is content or alike else (path, f"which was {_shown(content)} and is {_shown(value)}")
    name = {TUPLE: "tuple", LIST: "list", DICT_OF: "dict"}[kind]
    if type(value).__name__ != name or len(value) != len(content) or keys and list(value) != keys[0]:
        return path, f"which was a {name} of {len(content)} and is {_shown(value)}"
    for (item, label), inner in zip(_inner(description, path), value.values() if kind == DICT_OF else value):
        if found := _difference(item, inner, label):
            return found
    return None


def _text(value):
    # Python refuses to write integers of thousands of digits, but for hexadecimal ones.
    return hex(value) if type(value) is int and value.bit_length() > 4096 else repr(value)


def _shown(value):
    """A number or a text as it is written, anything else by its kind."""
    if type(value) in SCALARS:
        text = _text(value)
        return text if len(text) <= _MOST else text[:_MOST] + "..."
    kind = type(value)
    if kind in (tuple, list, dict):
        return f"a {kind.__name__} of {len(value)}"
    if isinstance(value, _C.Tensor):
        return f"a tensor, {_C._replay_header(value)}"
    return f"a {kind.__qualname__}"
