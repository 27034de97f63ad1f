"""Reads: all that the code of a program may read by a name, as the comparisons that a replay makes."""

import abc
import builtins
import collections
import dis
import functools
import gc
import importlib.util
import operator
import os
import sys
import sysconfig
import types

from . import _C
from .callers import is_own
from .guards import (
    CELL, CLASS, CODE, DEFAULTS, DICT, ELEMENTS, ENTRY, ITEM, KEYS, MEMBER, NO_ENTRY, RESULT, SIZE, TYPE,
)  # fmt: skip
from .optim import Optimizer
from .pure_observer import (
    READS_BY_TEXT, Refused, imports_of, is_quiet, matches_classes, names_of_globals, names_of_values, tells_objects_apart,
)  # fmt: skip
from .pure_optimizers import LiveNumbers

_MAX_GUARDS = 20_000

SCALARS = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range, types.CodeType)
_HAS_NOTHING_TO_READ = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    type(dis.Instruction.opname),  # a field of a namedtuple
)  # fmt: skip
_DICT_OF_MODULES = vars(types.ModuleType)["__dict__"]
_HEAP, _FIXED = 1 << 9, 1 << 8  # of type.__flags__: made by a class statement, or as if; never changes
# Attributes made in C that lead to what no comparison knows.
_UNKNOWN = frozenset("_version _base untyped_storage data_ptr const_data_ptr is_set_to".split())
_UNKNOWN |= frozenset("__subclasses__ __globals__ __builtins__ f_globals f_locals f_back gi_frame".split())
_BY_ANY_NAME = frozenset(("__dict__", "__getattribute__", "__setattr__", "__delattr__"))
_TEXTS_OF_FUNCTIONS = frozenset("__name__ __qualname__ __doc__ __module__ __annotations__".split())
# These read what a function consists of, whether it runs or not.
_OF_FUNCTIONS = frozenset("__code__ __defaults__ __kwdefaults__ __closure__ cell_contents".split())
_IMMUTABLE = (types.GenericAlias, type(int | str), _C.dtype, _C.device, _C.layout, _C.memory_format)
_LAYOUTS = {object, dict, list, tuple, set, frozenset, int, float, str, BaseException, Exception, types.SimpleNamespace}
_LAYOUTS |= {collections.OrderedDict, collections.defaultdict, _C.OpOverload, _C.OpOverloadPacket}
_MEMBERS = {functools.partial: ("func", "args", "keywords"), collections.defaultdict: ("default_factory",)}
# Classes in C whose operators, which nobody observes, read what no comparison knows: a context of decimal numbers.
_MODULES_WITH_CONTEXT = frozenset(("decimal", "_decimal"))
_ABSTRACT = {abc.ABCMeta.__instancecheck__.__code__, abc.ABCMeta.__subclasscheck__.__code__}
_LIBRARIES = tuple({sysconfig.get_path(place) + os.sep for place in ("stdlib", "platstdlib", "purelib", "platlib")})


class Reads:
    """What a program may read, and the tensors and containers among it. `seen` has an Observer's notes of earlier calls."""

    def __init__(self, seen, follows_optimizers=True):
        self._notes = seen
        self.codes = seen.codes
        self._texts = seen.names
        self.names = {name for code in self.codes for name in (*code.co_names, *code.co_freevars)} | seen.names
        self.dynamic = seen.dynamic or "__dict__" in seen.names or any(
            matches_classes(code) or not is_own(variables) and not _BY_ANY_NAME.isdisjoint(code.co_names)
            for code, variables in self.codes.items()
        )
        # Modules look through their own attributes for their parts.
        self._own_are_whole = any("__dict__" in code.co_names and is_own(variables) for code, variables in self.codes.items())
        by_program = (code.co_names for code, variables in self.codes.items() if not is_own(variables))
        self._texts_of_functions = _TEXTS_OF_FUNCTIONS & seen.names.union(*by_program)
        # Names of what functions in C may be given, and call.
        self._values = frozenset().union(*(names_of_values(code) for code, variables in self.codes.items() if not is_own(variables)))
        self.dynamic = self.dynamic or not self._values.isdisjoint(READS_BY_TEXT)
        self.exact = False  # equal numbers may be told apart
        self.guards, self.tensors, self.containers = [], [], []
        self.tensor_paths = []
        self.live = LiveNumbers(follows_optimizers and not self.dynamic)
        self._functions = seen.functions
        self._seen = {}  # by id, and kept alive
        self._classes = set()
        self._found = set()  # code of the functions that were found, and what is inside it

    def collect(self, fn, arguments):
        for code, variables in self.codes.items():
            if is_own(variables):
                continue
            for name in _UNKNOWN & {*code.co_names, *self.names}:
                raise Refused(f"it reads `{name}`, which cannot be compared")
            self.exact = self.exact or tells_objects_apart(code, variables)
        self._class(_C.Tensor, "tenon.Tensor")
        self.visit(fn, getattr(fn, "__qualname__", "the function"))
        for argument in arguments:
            self.visit(argument, "an argument")
        for code, variables in self.codes.items():
            self._globals(code, variables)
        if not _ABSTRACT.isdisjoint(self.codes):
            self._guard(RESULT, abc.get_cache_token, None, abc.get_cache_token(), "what is registered with abstract classes")
        # What is reached in two ways may be read by code that names no rate: all of it is compared then.
        return Reads(self._notes, False).collect(fn, arguments) if self.live.is_shared else self

    def check_found(self, codes):
        """Raises Refused for code that has run in a function whose variables are not among the comparisons."""
        for code, variables in codes.items():
            if code not in self._found and not is_own(variables):
                raise Refused(f"it runs `{getattr(code, 'co_qualname', code.co_name)}`, which no name leads to")

    def _guard(self, kind, obj, key, expected, path, number=0):
        self.guards.append((kind, obj, key, expected, number, path))
        if len(self.guards) > _MAX_GUARDS:
            raise Refused(f"it may read more than {_MAX_GUARDS} values")

    def _globals(self, code, variables):
        for name in names_of_globals(code):
            if name in variables:
                self._entry(variables, name, f"global `{name}`", name)
                continue
            self._guard(NO_ENTRY, variables, name, None, f"global `{name}`")
            if name in vars(builtins):
                self._entry(vars(builtins), name, f"builtin `{name}`", name)
            else:
                self._guard(NO_ENTRY, vars(builtins), name, None, f"builtin `{name}`")
        for name, level in imports_of(code):
            self._import(name, level, variables)

    def _import(self, name, level, variables):
        """Adds the modules that an import statement finds loaded."""
        if level:
            try:
                name = importlib.util.resolve_name("." * level + name, variables.get("__package__"))
            except ImportError:
                return
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            whole = ".".join(parts[:end])
            if whole not in sys.modules:
                continue
            if is_own(variables):
                self.visit(sys.modules[whole], whole)
            else:
                self._entry(sys.modules, whole, f"module `{whole}`", whole)
        if not is_own(variables) and id(builtins.__import__) not in self._seen:
            self._entry(vars(builtins), "__import__", "builtin `__import__`", "__import__")

    def _entry(self, entries, key, path, name):
        value = entries[key]
        self._guard(ENTRY, entries, key, value, path)
        self.visit(value, name)

    def visit(self, obj, path):
        """Adds what may be read through `obj`, which the program calls `path`."""
        if isinstance(obj, SCALARS) and type(obj) in SCALARS:
            return
        if id(obj) in self._seen:
            self.live.reach_again(id(obj))
            return
        self._seen[id(obj)] = obj
        kind = type(obj)
        if kind in (tuple, list, dict):
            self.containers.append(obj)
        if isinstance(obj, _C.Tensor):
            self._tensor(obj, kind, path)
        elif isinstance(obj, types.ModuleType):
            self._module(obj, kind, path)
        elif isinstance(obj, types.FunctionType):
            self._function(obj, path)
        elif isinstance(obj, types.MethodType):
            self.visit(obj.__func__, path)
            self.visit(obj.__self__, f"{path}.__self__")
        elif isinstance(obj, _HAS_NOTHING_TO_READ):
            owner = getattr(obj, "__self__", None)
            name = path.rpartition(".")[2]
            if isinstance(obj, types.BuiltinFunctionType) and (name in self._values or not name.isidentifier()):
                self._check_unobserved(obj, path, name)
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                self.visit(owner, f"{path}.__self__")
        elif isinstance(obj, type):
            if obj in (operator.attrgetter, operator.methodcaller):
                raise Refused(f"it may read attributes by `{path}`")
            if obj.__module__ in _MODULES_WITH_CONTEXT and not _is_plain(obj):
                raise Refused(f"it may use `{path}`, whose results depend on a context that cannot be compared")
            self._class(obj, path)
        elif isinstance(obj, (property, classmethod, staticmethod)):
            for name in ("fget", "fset", "fdel", "__func__"):
                if getattr(obj, name, None) is not None:
                    self.visit(getattr(obj, name), f"{path}.{name}")
        elif isinstance(obj, _C.CompiledFunction):
            self.visit(obj.__wrapped__, path)
        elif kind in (tuple, _C.Size):
            self._items(obj, path)
        elif kind is types.MappingProxyType:
            self._proxy(obj, path)
        elif kind in _IMMUTABLE:
            pass
        elif isinstance(obj, functools._lru_cache_wrapper) and is_own({"__name__": obj.__module__}):
            pass  # of what never changes
        elif _is_number_of_numpy(obj):
            pass
        else:
            self._instance(obj, kind, path)

    def _items(self, items, path):
        for i, item in enumerate(items):
            self.visit(item, f"{path}[{i}]")

    def _tensor(self, tensor, kind, path):
        self.tensors.append(tensor)
        self.tensor_paths.append(path)
        self._class(kind, path)
        self._check_slots(kind, path)
        for name, value in vars(tensor).items():  # which are compared with the tensor
            self.visit(value, f"{path}.{name}")

    def _module(self, module, kind, path):
        entries = _DICT_OF_MODULES.__get__(module)
        if not is_own(entries):
            self._guard(CLASS, module, None, kind, f"the class of `{path}`")
        if kind is not types.ModuleType:  # what its class has, an entry may hide
            self._class(kind, path)
            self._guard(KEYS, entries, None, tuple(entries), f"the names of `{path}`")
        names = self.names & entries.keys()
        if self.dynamic:
            # Of a module of the program all counts; of libraries, what has run.
            file = getattr(module, "__file__", None) or _LIBRARIES[0]
            whole = not is_own(entries) and (not file.startswith(_LIBRARIES) or getattr(module, "__spec__", None) is None)
            whole = whole and entries.keys() - {"__builtins__"}
            names |= whole or {name for name, value in entries.items() if self._ran(value)}
            if whole:
                self._guard(KEYS, entries, None, tuple(entries), f"the names of `{path}`")
        for name in names:
            self._entry(entries, name, f"`{path}.{name}`", f"{path}.{name}")
        for name in self._texts - entries.keys():
            self._guard(NO_ENTRY, entries, name, None, f"`{path}.{name}`")

    def _ran(self, value):
        """Whether a function has run, which may be wrapped as methods are."""
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        if isinstance(value, property):
            return any(map(self._ran, (value.fget, value.fset, value.fdel)))
        in_c = self._functions.get(id(value))
        return in_c is not None and in_c() is value or getattr(value, "__code__", None) in self.codes

    def _proxy(self, proxy, path):
        behind = gc.get_referents(proxy)
        if len(behind) != 1 or type(behind[0]) is not dict:
            raise Refused(f"it may read `{path}`, a mapping that cannot be compared")
        self.visit(behind[0], path)

    def _function(self, f, path):
        for name in self._texts_of_functions:
            self._guard(MEMBER, f, name, getattr(f, name), f"`{path}.{name}`")
            self.visit(getattr(f, name), f"{path}.{name}")
        if f.__code__ in self.codes or self.names & _OF_FUNCTIONS:
            self._find(f.__code__)
            self._guard(CODE, f, None, f.__code__, f"the code of `{path}`")
            for number, defaults in enumerate((f.__defaults__, f.__kwdefaults__)):
                self._guard(DEFAULTS, f, None, ... if defaults is None else defaults, f"the defaults of `{path}`", number)
                if defaults is not None:
                    self.visit(defaults, f"{path}.__defaults__")
            for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
                try:
                    held = cell.cell_contents
                except ValueError:
                    held = ...
                self._guard(CELL, cell, None, held, f"`{name}`")
                if held is not ...:
                    self.visit(held, name)
        if self.dynamic or self._texts or vars(f):
            self._named(vars(f), path)

    def _find(self, code):
        if code not in self._found:
            self._found.add(code)
            for constant in code.co_consts:
                if isinstance(constant, types.CodeType):
                    self._find(constant)

    def _named(self, entries, path, whole=False):
        """Adds those attributes that a name or a computed text leads to."""
        self._guard(KEYS, entries, None, tuple(entries), f"which attributes `{path}` has")
        for name in list(entries) if self.dynamic or whole else self.names & entries.keys():
            self._entry(entries, name, f"`{path}.{name}`", f"{path}.{name}")

    def _class(self, kind, path):
        if kind in self._classes or kind.__flags__ & _FIXED:
            return
        self._classes.add(kind)
        self._guard(TYPE, kind, None, None, f"class `{kind.__qualname__}`", _C._pure_class_version(kind))
        self._class(type(kind), path)
        for base in kind.__mro__:
            if base.__flags__ & _FIXED:
                continue
            # Special methods run without a name in any code.
            for name, value in list(vars(base).items()):
                if name in self.names or self._ran(value) or self.dynamic and not name.startswith("__") and name != "_abc_impl":
                    self.visit(value, f"{base.__qualname__}.{name}")

    def _instance(self, obj, kind, path):
        layouts = [base for base in kind.__mro__ if not _is_plain(base)]
        known = _LAYOUTS | _MEMBERS.keys()
        if not all(base in known for base in layouts):
            raise Refused(f"it may read `{path}`, a {kind.__module__}.{kind.__qualname__}, which cannot be compared")
        if isinstance(obj, Optimizer):
            self.live.note(obj, kind, self.codes, self._seen)
        if kind.__flags__ & _HEAP:
            self._guard(CLASS, obj, None, kind, f"the class of `{path}`")
            self._class(kind, path)
        for base in layouts:
            for member in _MEMBERS.get(base, ()):
                value = getattr(obj, member)
                self._guard(MEMBER, obj, member, value, f"`{path}.{member}`")
                self.visit(value, f"{path}.{member}")
        if isinstance(obj, functools.partial) and isinstance(obj.func, types.BuiltinFunctionType):
            self._check_unobserved(obj.func, path, "func")
        if isinstance(obj, dict):
            self._dict(obj, path)
        elif isinstance(obj, list):
            items = tuple(list.__iter__(obj))
            self._guard(SIZE, obj, None, None, f"`{path}`", len(items))
            for i, item in enumerate(items):
                self._guard(ITEM, obj, None, item, f"`{path}[{i}]`", i)
            self._items(items, path)
        elif isinstance(obj, (set, frozenset)):
            items = tuple((set if isinstance(obj, set) else frozenset).__iter__(obj))
            self._guard(ELEMENTS, obj, None, items, f"`{path}`")
            self._items(items, path)
        elif isinstance(obj, tuple):
            self._items(tuple.__iter__(obj), path)
        self._attributes(obj, kind, path)

    def _check_unobserved(self, function, path, name):
        """Refuses a function in C, found by `name`, that another may call, if it has effects or reads what no name leads to."""
        if function.__name__ in READS_BY_TEXT:
            if name != function.__name__:
                raise Refused(f"it may read attributes by `{path}`")
        elif not is_quiet(function):
            raise Refused(f"it may have `{path}` called by a function in C, whose effects a replay would not have")

    def _dict(self, obj, path):
        keys = tuple((collections.OrderedDict if isinstance(obj, collections.OrderedDict) else dict).__iter__(obj))
        self._guard(KEYS, obj, None, keys, f"the keys of `{path}`")
        for key in keys:
            if (id(obj), key) in self.live:
                continue
            label = f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[...]"
            self.visit(key, label)
            value = dict.__getitem__(obj, key)
            self._guard(ENTRY, obj, key, value, f"`{label}`")
            self.visit(value, label)

    def _check_slots(self, kind, path):
        for base in kind.__mro__:
            slots = vars(base).get("__slots__", ())
            held = set((slots,) if isinstance(slots, str) else slots) - {"__dict__", "__weakref__"}
            if held if self.dynamic else self.names & held:
                raise Refused(f"it may read `{path}`, whose attributes are in __slots__, which cannot be compared")

    def _attributes(self, obj, kind, path):
        self._check_slots(kind, path)
        entries = getattr(obj, "__dict__", None)
        if not isinstance(entries, dict):
            return
        self._guard(DICT, obj, None, entries, f"the attributes of `{path}`")
        whole = isinstance(obj, types.SimpleNamespace)  # it compares and shows all
        whole |= self._own_are_whole and any(is_own({"__name__": base.__module__}) for base in kind.__mro__)
        self._named(entries, path, whole)


def _is_plain(kind):
    """Whether a class has been made by a class statement, so that its instances keep nothing but attributes."""
    base = kind.__base__
    if base is None or not kind.__flags__ & _HEAP:
        return False
    slots = vars(kind).get("__slots__", ())
    held = set((slots,) if isinstance(slots, str) else slots) - {"__dict__", "__weakref__"}
    added = sum(getattr(kind, place) != 0 == getattr(base, place) for place in ("__dictoffset__", "__weakrefoffset__"))
    return kind.__basicsize__ <= base.__basicsize__ + (len(held) + added) * _POINTER


_POINTER = tuple.__itemsize__


def _is_number_of_numpy(obj):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, numpy.generic)
