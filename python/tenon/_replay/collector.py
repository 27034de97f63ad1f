"""GuardCollector: the tensors, modules and optimizers that a program has captured, and what a captured call must not change.

It goes from the program along closures, globals that the code names, attributes and items, through the program's own code and not
through that of installed packages. No replay compares what else it finds.
"""

import collections
import functools
import sys
import types

from .. import _C
from ..callers import is_own, names_in
from ..nn import Module
from ..optim import Optimizer
from .kinds import SCALARS, Refused, is_alike
from .optimizers import LiveNumbers

_MAX_OBJECTS = 20_000
_LIBRARIES = ("site-packages", "dist-packages")
_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType)
_ABSENT = object()
#: What replays compare of what an object consists of: nothing, its entries and those of lists and dicts in it, or all of it.
_NOTHING, _ENTRIES, _ALL = range(3)


def _top(name):
    return (name if isinstance(name, str) else "").partition(".")[0]


class GuardCollector:
    def __init__(self):
        self.guards = []  # of Guards in python/src/replay/guards.h
        self.tensors, self.paths, self.containers = [], [], []
        self.named = []  # tensors and containers that an argument may be, as a sentinel is
        self.codes = {}  # that the program may run: the globals that it sees
        self.live = LiveNumbers()
        self._watched = []  # (what is there now, by label and key; what was there)
        self._seen = {}  # by id, and kept alive
        self._classes = {}  # by id
        self._names = {}  # that were looked up in a module, by its id
        self._todo = collections.deque()  # (object, path, what replays compare of it)
        self._package = None  # of the program

    def collect(self, fn, name, arguments):
        """`arguments` are (object, name): what the program is given besides tensors and plain values."""
        inner = fn
        while isinstance(inner, functools.partial):
            inner = inner.func
        inner = getattr(inner, "__func__", inner)
        self._package = _top(getattr(inner, "__module__", None))
        for argument, path in arguments:
            self._add(argument, path, _ALL)
        self._visit_all()  # before the program leads there, and compares less of it
        self._add(fn, name)
        self._visit_all()
        return self

    def _visit_all(self):
        while self._todo:
            self._visit(*self._todo.popleft())

    def changed(self):
        """The label of something that is no longer as it was; None if nothing is."""
        for entries, read, before in self._watched:
            now = read()
            for place in [*before, *now]:
                if (id(entries), place[1]) not in self.live and not is_alike(now.get(place, _ABSENT), before.get(place, _ABSENT)):
                    return place[0]
        return None

    def _is_foreign(self, variables):
        """Whether code with these globals is Tenon's, Python's, or of an installed package that is not the program's."""
        top, file = _top(variables.get("__name__")), variables.get("__file__") or ""
        is_installed = top in sys.stdlib_module_names or any(name in file for name in _LIBRARIES)
        return is_own(variables) or is_installed and top != self._package

    def _add(self, obj, path, compared=_NOTHING):
        if type(obj) in SCALARS or id(obj) in self._seen:
            return
        self._seen[id(obj)] = obj
        if len(self._seen) > _MAX_OBJECTS:
            raise Refused(f"it may use more than {_MAX_OBJECTS:,} objects, the last one in `{path}`: pass those that it uses as arguments")
        self._todo.append((obj, path, compared))

    def _watch(self, read, entries=None):
        """`read()` has what is there now, by label and key; of a dict, if `entries` is one."""
        self._watched.append((entries, read, read()))

    def _add_inner(self, obj, path, compared):
        self._add(obj, path, compared if compared == _ALL or isinstance(obj, (list, tuple, dict)) else _NOTHING)

    def _entries(self, entries, label, path, compared=_NOTHING):
        """A dict, or the attributes of an object; `label(key)` is what the program calls an entry."""
        items = list(dict.items(entries))
        if compared:
            values = tuple(... if (id(entries), key) in self.live else value for key, value in items)
            labels = tuple(f"`{label(key)}`" for key, _ in items)
            self.guards.append((entries, f"what `{path}` has", tuple(entries), values, labels))
        self._watch(lambda: {(f"`{label(key)}`", key): value for key, value in list(dict.items(entries))}, entries)
        for key, value in items:
            self._add(key, path)
            self._add_inner(value, label(key), compared)

    def _attributes(self, obj, path, compared=_NOTHING):
        if isinstance(entries := getattr(obj, "__dict__", None), dict):
            self._entries(entries, lambda key: f"{path}.{key}", path, compared)
        for base in type(obj).__mro__:
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(obj, name):
                    self._add_inner(getattr(obj, name), f"{path}.{name}", compared)

    def _items(self, items, path, compared=_NOTHING):
        kind = type(items)
        if issubclass(kind, list):
            if compared:
                labels = tuple(f"`{path}[{i}]`" for i in range(list.__len__(items)))
                self.guards.append((items, f"what `{path}` has", None, tuple(list.__iter__(items)), labels))
            self._watch(lambda: {(f"`{path}`", i): item for i, item in enumerate(list.__iter__(items))})
        elif issubclass(kind, (set, collections.deque)):
            self._watch(lambda: {(f"`{path}`", id(item)): item for item in items})
        for i, item in enumerate(items):
            self._add_inner(item, f"{path}[{i}]", compared)

    def _visit(self, obj, path, compared):
        kind = type(obj)  # which proxies of other objects do not hide
        if kind in (tuple, list, dict):
            self.containers.append(obj)
        if issubclass(kind, _C.Tensor):
            self.tensors.append(obj)
            self.paths.append(path)
            for name, value in vars(obj).items():  # which are compared with the tensor
                self._add(value, f"{path}.{name}", compared)
        elif issubclass(kind, Module):
            self._attributes(obj, path, _ENTRIES)
            self._class(kind)
        elif issubclass(kind, Optimizer):
            self._optimizer(obj, path)
        elif kind is types.FunctionType:
            self._function(obj, path)
        elif kind is types.MethodType:
            self._add(obj.__func__, path)
            self._add(obj.__self__, f"{path}.__self__", compared)
        elif kind is types.BuiltinFunctionType:
            self._add(obj.__self__, f"{path}.__self__", compared)
        elif kind is _C.CompiledFunction:
            self._add(obj.__wrapped__, path)
        elif issubclass(kind, type):
            self._class(obj)
        elif issubclass(kind, types.ModuleType):
            pass  # code that names it names what it uses of it
        elif issubclass(kind, (property, classmethod, staticmethod)):
            for name in ("fget", "fset", "fdel", "__func__"):
                self._add(getattr(obj, name, None), path)
        elif issubclass(kind, functools.partial):
            self._add(obj.func, path)
            self._items(obj.args, path, compared)
            self._entries(obj.keywords, lambda key: f"{path}.{key}", path, compared)
        else:
            if issubclass(kind, dict):
                self._entries(obj, lambda key: f"{path}[{key!r}]" if type(key) in (str, int) else f"{path}[...]", path, compared)
            elif issubclass(kind, (list, tuple, set, frozenset, collections.deque)):
                self._items(obj, path, compared)
            self._attributes(obj, path, compared)
            self._class(kind)

    def _function(self, f, path):
        if self._is_foreign(f.__globals__):
            return
        variables, names = f.__globals__, names_in(f.__code__)
        self.codes[f.__code__] = variables
        known = sorted(names & variables.keys())
        self._watch(lambda: {(f"global `{name}`", name): variables.get(name, _ABSENT) for name in known})
        for name in known:
            self._global(variables[name], name, names)
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
        self._watch(lambda: {(f"`{name}`", name): _content(cell) for name, cell in cells.items()})
        for name, cell in cells.items():
            self._global(_content(cell), name, names)
        for value in f.__defaults__ or ():
            self._global(value, f"{path}.__defaults__", names)
        for entries in (f.__kwdefaults__ or {}, vars(f)):
            for name, value in entries.items():
                self._global(value, f"{path}.{name}", names)

    def _global(self, value, path, names):
        """What code with these names finds under one of them: of a module, what it names there."""
        if not isinstance(value, types.ModuleType):
            if type(value) in (tuple, list, dict) or isinstance(value, _C.Tensor):
                self.named.append(value)
            return self._add(value, path)
        if self._is_foreign(vars(value)) or names <= self._names.get(id(value), set()):
            return None
        self._names[id(value)] = names | self._names.get(id(value), set())
        known = sorted(names & vars(value).keys())
        self._watch(lambda: {(f"`{path}.{name}`", name): vars(value).get(name, _ABSENT) for name in known})
        for name in known:
            self._global(vars(value)[name], f"{path}.{name}", names)
        return None

    def _class(self, kind):
        for base in kind.__mro__:
            name = base.__dict__.get("__module__", "builtins")  # which types in C may lack
            module = sys.modules.get(name) if isinstance(name, str) else None
            if id(base) in self._classes or isinstance(module, types.ModuleType) and self._is_foreign(vars(module)):
                continue
            self._classes[id(base)] = base
            self._watch(lambda base=base: {(f"`{base.__qualname__}.{name}`", name): value for name, value in vars(base).items()})
            for name, value in list(vars(base).items()):
                if not isinstance(value, _DESCRIPTORS):
                    self._add(value, f"{base.__qualname__}.{name}")

    def _optimizer(self, optimizer, path):
        """Its options and its state, but for the numbers that replays read afresh."""
        parts = self.live.note(optimizer)
        for part, label in parts:
            self._seen[id(part)] = part
            self._entries(part, lambda key, label=label: f"{path}.{label}[{key!r}]", path, _ENTRIES)
        self._attributes(optimizer, path, _ENTRIES)


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT
