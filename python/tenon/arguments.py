"""Arguments of functions and constructors that are written in Python, compared with their annotations.

An operator's arguments are checked by the extension module, which names them. What is written in Python would fail somewhere
inside, with a text that names neither the function nor the argument: check_module() gives it such texts.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from . import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FunctionType
    from typing import Any

    Check = Callable[[Any], bool]


_GENERATOR = 0x20  # of code.co_flags, as inspect.CO_GENERATOR
_Function = type(lambda: None)
_PACKAGE, _LIBRARY = os.path.dirname(__file__) + os.sep, os.path.dirname(os.__file__) + os.sep


def _is_one_element(value: Any) -> bool:
    """Whether the value is a tensor that operators take for a number."""
    return isinstance(value, _C.Tensor) and value.dim() == 0


def _is_int(value: Any) -> bool:
    # NumPy's time spans are derived from its integers.
    if isinstance(value, numbers.Integral):
        return not isinstance(value, bool) and type(value).__name__ != "timedelta64"
    return _is_one_element(value) and not value.is_floating_point() and not value.is_complex()


def _is_float(value: Any) -> bool:
    return (isinstance(value, numbers.Real) and type(value).__name__ != "timedelta64") or _is_one_element(value)


def _is_iterable(value: Any) -> bool:
    return isinstance(value, Iterable) and not _is_one_element(value)


def _is_tensors(value: Any) -> bool:
    if _is_sequence(value):
        return all(isinstance(item, _C.Tensor) for item in value)
    # An iterator would be used up.
    return isinstance(value, _C.Tensor) or (isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _is_vector(value: Any) -> bool:
    """Whether the value is a tensor or an array of NumPy of one dimension."""
    return getattr(value, "ndim", None) == 1


#: What an annotation promises: in words, and whether a value is that.
_KINDS: dict[str, tuple[str, Check]] = {
    "int": ("an int", _is_int),
    "float": ("a number", _is_float),
    "Number": ("a number", lambda value: _is_float(value) or isinstance(value, numbers.Complex)),
    "str": ("a str", lambda value: isinstance(value, str)),
    "bytes": ("bytes", lambda value: isinstance(value, (bytes, bytearray, memoryview))),
    "slice": ("a slice", lambda value: isinstance(value, slice)),
    "None": ("None", lambda value: value is None),
    "Ints": ("an int or several", lambda value: _is_int(value) or (_is_sequence(value) and all(map(_is_int, value)))),
    "Positions": ("a sequence of ints", lambda value: _is_vector(value) or (_is_sequence(value) and all(map(_is_int, value)))),
    "Weights": ("a sequence of numbers", lambda value: _is_vector(value) or (_is_sequence(value) and all(map(_is_float, value)))),
    "Axis": ("an int, several or None", lambda value: value is None or _is_int(value) or _is_sequence(value)),
    "Device": ("a device", lambda value: value is None or isinstance(value, (str, int, _C.device))),
    "dtype": ("a dtype", lambda value: isinstance(value, _C.dtype)),
    "Hook": ("callable", callable),
    "Callable": ("callable", callable),
    "Path": ("a path", lambda value: isinstance(value, (str, bytes, os.PathLike))),
    "Iterable": ("an iterable", _is_iterable),
    "Sequence": ("a sequence", _is_sequence),
    "list": ("a list", _is_sequence),
    "tuple": ("a tuple", _is_sequence),
    # Not the class alone: rows may be read from a list, a tensor or an array, too.
    "Dataset": ("a Dataset", lambda value: hasattr(type(value), "__getitem__") or hasattr(type(value), "__iter__")),
    "Mapping": ("a mapping", lambda value: isinstance(value, Mapping)),
    "dict": ("a dict", lambda value: isinstance(value, Mapping)),
    "Params": ("parameters or groups of them", _is_iterable),
    "Tensors": ("a Tensor or several", _is_tensors),
    "bool": ("a bool", lambda value: isinstance(value, (bool, int)) or type(value).__name__ in ("bool", "bool_")),
}
#: What sequences may be said to hold.
_PLURALS = {"int": "ints", "float": "numbers", "str": "texts", "Tensor": "Tensors", "_C.Tensor": "Tensors", "None": "None"}
#: Annotations that say nothing that could be checked here.
_ANYTHING = {"Any", "object", "DType", "Op", "OpOverload", "OpOverloadPacket", "Fn", "T", "Data"}
#: Classes that annotations name without a container.
_CLASSES = {
    "Tensor", "Module", "Optimizer", "LRScheduler", "Generator", "Library", "Parameter", "Stream", "Event", "Graph", "pygraph", "Handle",
}  # fmt: skip


def _parts(annotation: str) -> list[str]:
    """"int | Sequence[int | None]" as ["int", "Sequence[int | None]"]."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append(annotation[start:place].strip())
            start = place + 1
    return [*parts, annotation[start:].strip()]


def _kind_of(part: str) -> tuple[str, Check] | None:
    """The words and the check of one part of an annotation; none where anything is right."""
    name, _, inside = part.partition("[")
    name = name.rpartition(".")[2].removeprefix("_")
    if name in _CLASSES:
        # By name: the class may be one that is not imported yet.
        return f"{'an' if name[0] in 'AEIO' else 'a'} {name}", lambda value: any(kind.__name__ == name for kind in type(value).__mro__)
    kind = _KINDS.get(name)
    item = inside.removesuffix("]").partition(",")[0]
    if kind is None or name not in ("Sequence", "list", "tuple", "Iterable") or not set(_parts(item)) <= set(_PLURALS):
        return kind
    words = " or ".join(_PLURALS[part] for part in _parts(item))
    accepts_whole, accepts = kind[1], check_of(item)[1]  # type: ignore[index]
    # An iterator would be used up.
    return f"{kind[0]} of {words}", lambda value: accepts_whole(value) and (not _is_sequence(value) or all(map(accepts, value)))


def check_of(annotation: str) -> tuple[str, Check] | None:
    """The words and the check of an annotation; none where it admits anything, or says what is not known here."""
    kinds = []
    for part in _parts(annotation):
        kind = None if part in _ANYTHING else _kind_of(part)
        if kind is None:
            return None
        kinds.append(kind)
    return " or ".join(dict.fromkeys(words for words, _ in kinds)), lambda value: any(accepts(value) for _, accepts in kinds)


def describe(value: object) -> str:
    """A value for a message: "2.5 (float)", or its type alone where its text is long."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    try:
        text = "" if isinstance(value, _C.Tensor) else repr(value)
    except Exception:
        text = ""
    name = type(value).__name__
    return f"{text} ({name})" if 0 < len(text) <= 40 and "\n" not in text else name


def path_of(function: str, file: object, wanted: str = "filename must be a path") -> bytes:
    """A path as the system has it; TypeError for what is none, FileNotFoundError for an empty one."""
    try:
        path = os.fsencode(file)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{function}: {wanted}, got {describe(file)}") from None
    if not path:
        raise FileNotFoundError(f"{function}: {wanted}, got an empty one")
    return path


def unwrapped(function: Any) -> Any:
    """The function as it was written, without what wraps it."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _checks_of(function: FunctionType, is_constructor: bool) -> dict[str, Any]:
    """The words and the check of each argument that has one."""
    checks = {name: check for name, note in function.__annotations__.items() if name != "return" and (check := check_of(str(note)))}
    if is_constructor:
        # Any object may be a flag.
        checks = {name: check for name, check in checks.items() if "a bool" not in check[0]}
    return checks


def _wrong_argument(function: FunctionType, checks: dict[str, Any], owner: str, args: Any, kwargs: Any) -> TypeError | None:
    code = unwrapped(function).__code__
    names = code.co_varnames[: code.co_argcount]
    for name, value in (*zip(names, args), *kwargs.items()):
        check = checks.get(name)
        if check and not check[1](value):
            return TypeError(f"{owner}: {name} must be {check[0]}, got {describe(value)}")
    return None


def _is_within(error: Exception) -> bool:
    """Whether Python itself raised the error, in code of this package or its own: not here on purpose, not in a function given to it."""
    import opcode

    place = error.__traceback__
    if place is None:
        return False
    while True:
        code = place.tb_frame.f_code
        file = code.co_filename
        # Modules that are frozen into the interpreter, as os is, have no file.
        pythons = file.startswith("<frozen ") or (file.startswith(_LIBRARY) and "site-packages" not in file)
        own = file.startswith(_PACKAGE)
        if not own and not pythons:
            return False
        if place.tb_next is None:
            return pythons or code.co_code[place.tb_lasti] != opcode.opmap["RAISE_VARARGS"]
        place = place.tb_next


#: The modules whose functions errors name with the module: "linalg.cond".
_MODULES = {f"{__package__}.{module}" for module in ("fft", "linalg", "special")}
#: Names of the functions that are checked, and of one that is no operator.
_named: set[str] = {"tensor"}


def _is_function(name: str) -> bool:
    operator = name.replace(".", "_")
    return name in _named or any(full.partition("::")[2].partition(".")[0] == operator for full in _C.dispatch.operators())


def _is_own(error: BaseException) -> bool:
    """Whether the error passed only through functions of this package: not through one that was given to it."""
    place = error.__traceback__
    while place is not None:
        if not place.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            return False
        place = place.tb_next
    return True


def name_called(error: BaseException, called: str | None) -> str:
    """Has an error name the function that was called, if that is given, in place of an inner one. Returns the name that it had."""
    import re

    text = str(error)
    head = re.match(r"((?:\w+\.)?\w+)(\(\))?: ", text)
    if head and called and head[1] != called and error.args == (text,) and _is_function(head[1]) and _is_own(error):
        error.args = (called + text[head.end() - 2 :].partition("; the signature is ")[0],)
    return head[1] if head else ""


def named(function: Any, name: str) -> Any:
    """The function, whose errors name it and not the functions that it calls."""

    def call(*args, **kwargs):
        try: return function(*args, **kwargs)  # fmt: skip
        except Exception as error:
            name_called(error, name)
            raise

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def checked(function: Any) -> Any:
    """The function, with a TypeError that names an argument which is not what its annotation says. Other errors name the function
    that was called, and not those that it calls.

    A constructor looks at its arguments first, because it may keep them for later. Other functions look when they have failed:
    a call that succeeds is not compared with anything, and does not pay for it.
    """
    code, name = getattr(function, "__code__", None), function.__name__
    if code is None or code.co_flags & _GENERATOR or function.__annotations__.keys() <= {"return"}:
        return function
    is_constructor = name == "__init__"
    # What a function that was given raises names what that one called; a module's `forward` is what a program does not call.
    is_given = any(word in str(note) for note in function.__annotations__.values() for word in ("Callable", "Hook", "Fn"))
    is_called = not is_given and name != "forward" and (is_constructor or not function.__qualname__.startswith("_"))
    if is_called and not is_constructor:
        if function.__module__ in _MODULES:
            _named.add(name)
            name = f"{function.__module__.rpartition('.')[2]}.{name}"
        _named.add(name)
    checks: dict[str, Any] | None = None  # made when they are first asked for: importing the package should not wait for them

    def owner_of(args):
        return type(args[0]).__name__ if args and (is_constructor or name == "forward") else name

    def wrong(args, kwargs):
        nonlocal checks
        if checks is None:
            checks = _checks_of(function, is_constructor)
        return _wrong_argument(function, checks, owner_of(args), args, kwargs)

    def explain(error, args, kwargs):
        """Raises a better error in place of `error`, or lets it get a name."""
        owner, text = owner_of(args), str(error)
        head = name_called(error, owner if is_called and not owner.startswith("_") else None)
        # What a tensor of several elements says where it is taken for a number, and an operator without an overload that fits.
        if head in ("bool", "int", "float") or (head and "no signature takes" in text):
            if found := wrong(args, kwargs):
                raise found from error
        # Python's own text about an object that is none of the right kind may have the name, as that of a method.
        if head or (owner in text and "object has no attribute" not in text) or not _is_within(error):
            return
        if isinstance(error, RuntimeError):
            return
        if found := wrong(args, kwargs):
            raise found from error
        if error.args == (text,):
            error.args = (f"{owner}: {text}",)
        elif isinstance(error, OverflowError):  # of a power of floats, which has the system's number too
            error.args = (f"{owner}: {error.args[-1]}",)

    def call(*args, **kwargs):
        if is_constructor and (found := wrong(args, kwargs)):
            raise found
        try: return function(*args, **kwargs)  # fmt: skip
        except (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RuntimeError) as error:
            explain(error, args, kwargs)
            raise

    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(call, attribute, getattr(function, attribute))
    call.__dict__.update(function.__dict__)
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


#: Called at every step of a program, and by each other.
_LEFT_ALONE = {
    "Optimizer.step", "Optimizer.zero_grad", "forward", "__call__", "__setattr__", "__getattr__", "__iter__", "__len__", "__contains__",
}  # fmt: skip


def check_module(namespace: dict[str, Any]) -> None:
    """Has the functions and classes that a module defines, and has annotated, name wrong arguments; for the module's end."""
    for name, value in list(namespace.items()):
        if getattr(value, "__module__", None) != namespace["__name__"]:
            continue
        if isinstance(value, _Function) and not name.startswith("_"):
            namespace[name] = checked(value)
        elif isinstance(value, type):
            for attribute, method in list(vars(value).items()):
                public = attribute == "__init__" or not attribute.startswith("_") or attribute.endswith("item__")
                if not public or attribute in _LEFT_ALONE or f"{value.__name__}.{attribute}" in _LEFT_ALONE:
                    continue
                if isinstance(method, classmethod) and isinstance(method.__func__, _Function):
                    setattr(value, attribute, classmethod(checked(method.__func__)))
                elif isinstance(method, _Function):
                    setattr(value, attribute, checked(method))
