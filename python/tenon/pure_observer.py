"""Observer: notes what runs in a call of a program that is to be replayed, and what of it no replay could stand for."""

import builtins
import dis
import functools
import sys
import types
import weakref

from . import _C
from .callers import is_own, line_of_program

# Functions in C that neither keep anything nor say anything to the world. Of builtins by name, of modules whole.
_QUIET_BUILTINS = frozenset(
    "len isinstance issubclass getattr hasattr setattr delattr callable iter next min max sum abs round any all sorted divmod pow "
    "repr format chr ord vars dir locals".split()
)
_QUIET_MODULES = frozenset(("math", "cmath", "operator", "_operator", "_functools", "itertools", "_abc", "_collections"))
_QUIET_OBJECTS: tuple[type, ...] = (dict, list, tuple, set, frozenset, str, bytes, int, float, complex)
_QUIET_OBJECTS += (type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType)
_LOUD = frozenset(  # of tenon._C
    "manual_seed seed set_num_threads set_default_dtype set_rng_state load_library save load initial_seed get_rng_state".split()
)
_BY_TEXT = frozenset("getattr hasattr setattr delattr".split())
_WHOLE = frozenset("vars dir locals".split())
_READ_BY_FORMAT = frozenset(("format", "format_map"))  # of str: "{0.scale}"
READS_BY_TEXT = _BY_TEXT | _WHOLE | _READ_BY_FORMAT


class Refused(Exception):
    """Why a program is not replayed."""


def is_quiet(function):
    """Whether a function in C neither keeps anything nor says anything to the world."""
    name, owner = function.__name__, getattr(function, "__self__", None)
    if owner is builtins:
        return name in _QUIET_BUILTINS
    if owner is None or isinstance(owner, types.ModuleType):
        module = function.__module__ or getattr(owner, "__name__", "")
        return module in _QUIET_MODULES or (module or "").startswith("tenon") and name not in _LOUD or function is sys.setprofile
    kind = owner if isinstance(owner, type) else type(owner)
    if kind is _C.Generator:
        return False
    quiet = issubclass(kind, (*_QUIET_OBJECTS, _C.Tensor)) or kind in (object, type)
    return quiet or kind.__module__.startswith("tenon")


class Observer:
    """The function that sys.setprofile calls."""

    def __init__(self):
        self.codes = {}  # code: the globals that it sees
        self.functions = {}  # in C, by their ids; weakly, since a bound method holds its tensor, which a replay would then store
        self.names = set()  # of attributes that are read by a text
        self.dynamic = False  # attributes are read by computed names
        self.has_imported = False
        self.refused = None
        self._import = None  # the frame that loads a module, which runs once

    def add(self, other):
        """Adds what another has seen; returns whether that has run what this one did not know, or loaded a module."""
        is_new = other.has_imported or not other.codes.keys() <= self.codes.keys() or not other.names <= self.names
        is_new |= other.dynamic > self.dynamic
        self.codes.update(other.codes)
        self.functions.update(other.functions)
        self.names |= other.names
        self.dynamic |= other.dynamic
        return is_new

    def __call__(self, frame, event, arg):
        if self._import is not None:
            if event == "return" and frame is self._import:
                self._import = None
        elif event == "call":
            module = frame.f_globals.get("__name__")
            if module == "importlib._bootstrap":
                self._import, self.has_imported = frame, True
            else:
                if module == "tenon.cached_plans" and self.refused is None:
                    self.refused = "it makes a plan of cached_plan, which runs at once", line_of_program(frame)
                self.codes.setdefault(frame.f_code, frame.f_globals)
        elif event == "c_call":
            self.functions[id(arg)] = weakref.ref(arg)
            self._check(frame, arg)

    def _check(self, frame, function):
        name, owner = function.__name__, getattr(function, "__self__", None)
        if owner is builtins:
            if name in _BY_TEXT:
                text = _text_argument(frame.f_code, frame.f_lasti)
                self.names |= {text} - {None}
                self.dynamic |= text is None
            self.dynamic |= name in _WHOLE
        elif isinstance(owner, str) or owner is str:
            self.dynamic |= name in _READ_BY_FORMAT
        quiet = is_quiet(function) or name in ("id", "hash", "globals") and owner is builtins and is_own(frame.f_globals)
        if not quiet and self.refused is None:
            whole = f"{type(owner).__name__}.{name}" if owner is not None and not isinstance(owner, types.ModuleType) else name
            self.refused = f"it calls {whole}, whose effects a replay would not have", line_of_program(frame)


def _text_argument(code, offset):
    """The text that the call at `offset` has as its second argument, in front of a third one at most; None if it is computed."""
    before = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("CACHE", "PRECALL", "EXTENDED_ARG", "NOP"):
            continue
        if instruction.offset >= offset:
            break
        before.append(instruction)
    else:
        return None
    if not instruction.opname.startswith("CALL") or instruction.arg not in (2, 3):
        return None
    if instruction.arg == 3:
        default = before.pop()
        if not default.opname.startswith(("LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF")):
            return None
    text = before[-1]
    return text.argval if text.opname == "LOAD_CONST" and isinstance(text.argval, str) else None


@functools.lru_cache(4096)
def names_of_globals(code):
    """The names that the code looks up among its globals."""
    of_globals = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "STORE_NAME", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
    return tuple({i.argval: None for i in dis.get_instructions(code) if i.opname in of_globals})


@functools.lru_cache(4096)
def imports_of(code):
    """(name, level) of each import statement."""
    if not _may_have(code, "IMPORT_NAME"):
        return ()
    found, before = [], []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            found.append((instruction.argval, before[-2].argval))  # after the level and the list of names
        elif instruction.opname not in ("CACHE", "EXTENDED_ARG"):
            before.append(instruction)
    return tuple(found)


@functools.lru_cache(4096)
def matches_classes(code):
    """Whether the code has patterns of classes, which read attributes by the texts in `__match_args__`."""
    return _may_have(code, "MATCH_CLASS") and any(i.opname == "MATCH_CLASS" for i in dis.get_instructions(code))


def _may_have(code, name):
    """Whether such an instruction may be there: a look that costs less than taking all apart."""
    return dis.opmap[name] in code.co_code[::2]


@functools.lru_cache(4096)
def names_of_values(code):
    """The names of variables and attributes that the code does not call itself, but may give to a function in C that does,
    such as map(): nobody observes that."""
    called = ("LOAD_GLOBAL",) if "LOAD_METHOD" in dis.opmap else ("LOAD_GLOBAL", "LOAD_ATTR")  # by the lowest bit
    if sys.version_info < (3, 11):
        called = ()  # which does not say so
    loads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_DEREF")
    return frozenset(i.argval for i in dis.get_instructions(code) if i.opname in loads and not (i.opname in called and i.arg & 1))


_SINGLETONS = (None, True, False, ..., NotImplemented)


def tells_objects_apart(code, variables):
    """Whether the code may tell equal numbers apart by `is`: it compares with what is neither a singleton nor found to be of
    another kind under a global name."""
    last = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("CACHE", "EXTENDED_ARG"):
            continue
        if instruction.opname == "IS_OP" and not _is_no_number(last, variables):
            return True
        last = instruction
    return "is_" in code.co_names or "is_not" in code.co_names


def _is_no_number(instruction, variables):
    if instruction.opname == "LOAD_CONST":
        return any(instruction.argval is one for one in _SINGLETONS)
    if instruction.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        return False
    value = variables.get(instruction.argval, getattr(builtins, instruction.argval, 0))
    return not isinstance(value, (int, float, complex, str, bytes)) or isinstance(value, bool)
