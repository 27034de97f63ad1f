"""What compile(pure=True) finds out about a program, so that it can be replayed without running: loaded at its first call.

A call under observation notes the code that ran (sys.setprofile). Before the next one, everything that this code may read by
a name is collected: globals, closures, attributes of objects found that way, items of their containers. If that call changes
none of it, does nothing that is not recorded, and reads no value, then what was recorded can be replayed wherever all of it
is as it was. What cannot be compared, and what has effects that a replay would not have, is refused with a sentence.
"""

import builtins
import collections
import functools
import importlib.util
import opcode
import sys
import types
import warnings

from . import _C
from .optim import SGD, Adam, AdamW, Optimizer

# Kinds of comparisons and of structures, as python/src/pure has them.
ENTRY, NO_ENTRY, SIZE, ITEM, CELL, CODE, DEFAULTS, TYPE, DICT, CLASS, EQUAL = range(11)
TENSOR, CONSTANT, TUPLE, LIST, DICT_OF = range(5)

_MAX_GUARDS = 20_000
_MAX_MISSES = 8  # calls in a row that made a replay which the next call could not use

_SCALARS = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range, types.CodeType)
_HAS_NOTHING_TO_READ = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip
# Functions in C that neither keep anything nor say anything to the world. Of builtins by name, of modules whole.
_QUIET_BUILTINS = frozenset(
    "len isinstance issubclass getattr hasattr setattr delattr callable iter next min max sum abs round any all sorted divmod pow "
    "repr format chr ord hash id vars dir locals globals".split()
)
_QUIET_MODULES = frozenset(("math", "cmath", "operator", "_operator", "_functools", "itertools", "_abc", "_collections"))
_QUIET_OBJECTS: tuple[type, ...] = (dict, list, tuple, set, frozenset, str, bytes, int, float, complex, type({}.keys()), type({}.values()), type({}.items()))
_LOUD = frozenset(  # of tenon._C
    "manual_seed seed set_num_threads set_default_dtype set_rng_state load_library save load".split()
)
_DYNAMIC = frozenset("getattr hasattr setattr delattr vars dir locals globals".split())
_HEAP = 1 << 9  # of type.__flags__: made by a class statement, or as if
_IMPORT = opcode.opmap["IMPORT_NAME"]


class Refused(Exception):
    """Why a program is not replayed."""


class Observer:
    """The function that sys.setprofile calls: notes which code runs, and what of it a replay could not stand for."""

    def __init__(self):
        self.codes = {}  # code: the globals that it sees
        self.dynamic = False  # attributes are read by computed names
        self.refused = None

    def __call__(self, frame, event, arg):
        if event == "call":
            self.codes.setdefault(frame.f_code, frame.f_globals)
        elif event == "c_call":
            self._check(frame, arg)

    def _check(self, frame, function):
        name, owner = function.__name__, getattr(function, "__self__", None)
        if owner is builtins:
            self.dynamic |= name in _DYNAMIC
            quiet = name in _QUIET_BUILTINS
        elif owner is None or isinstance(owner, types.ModuleType):
            module = function.__module__ or getattr(owner, "__name__", "")
            quiet = module in _QUIET_MODULES or (module or "").startswith("tenon") and name not in _LOUD or function is sys.setprofile
        else:
            kind = owner if isinstance(owner, type) else type(owner)
            quiet = issubclass(kind, _QUIET_OBJECTS) or kind.__module__.startswith("tenon") or kind in (_C.Tensor, object, type)
            quiet = quiet or issubclass(kind, _C.Tensor)
        if not quiet and self.refused is None:
            whole = f"{type(owner).__name__}.{name}" if owner is not None and not isinstance(owner, types.ModuleType) else name
            self.refused = f"it calls {whole}, whose effects a replay would not have", _line(frame)


def _line(frame):
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Reads:
    """All that code may read by a name, as comparisons, and the tensors among it."""

    def __init__(self, codes, dynamic):
        self.codes = codes
        self.names = {name for code in codes for name in (*code.co_names, *code.co_freevars)}
        self.dynamic = dynamic or "__dict__" in self.names
        self.guards, self.tensors = [], []
        self.live = {}  # numbers of optimizers, which replays read afresh: (id of a dict, key): what they were
        self.optimizers = []
        self._seen = {}  # by id, and kept alive
        self._classes = set()

    def collect(self, fn):
        self.visit(fn, getattr(fn, "__qualname__", "the function"))
        for code, variables in self.codes.items():
            self._globals(code, variables)
        return self

    def _guard(self, kind, obj, key, expected, path, number=0):
        self.guards.append((kind, obj, key, expected, number, path))
        if len(self.guards) > _MAX_GUARDS:
            raise Refused(f"it may read more than {_MAX_GUARDS} values")

    def _globals(self, code, variables):
        for name in code.co_names:
            if name in variables:
                self._entry(variables, name, f"global `{name}`", name)
            elif name in vars(builtins):
                self._guard(NO_ENTRY, variables, name, None, f"global `{name}`")
                self._entry(vars(builtins), name, f"builtin `{name}`", name)
        if _IMPORT in code.co_code[::2]:
            self._imports(code, variables)

    def _imports(self, code, variables):
        package = variables.get("__package__") or ""
        for name in code.co_names:
            for level in range(4 if package else 1):
                try:
                    whole = importlib.util.resolve_name("." * level + name, package) if level else name
                except ImportError:
                    break
                if whole in sys.modules:
                    self.visit(sys.modules[whole], whole)

    def _entry(self, entries, key, path, name):
        value = entries[key]
        self._guard(ENTRY, entries, key, value, path)
        self.visit(value, name)

    def visit(self, obj, path):
        """Adds what may be read through `obj`, which the program calls `path`."""
        if isinstance(obj, _SCALARS) and type(obj) in _SCALARS or id(obj) in self._seen:
            return
        self._seen[id(obj)] = obj
        kind = type(obj)
        if isinstance(obj, _C.Tensor):
            self.tensors.append(obj)
            if kind is not _C.Tensor:
                self._class(kind, path)
        elif isinstance(obj, types.ModuleType):
            entries = vars(obj)
            for name in self.names & entries.keys():
                self._entry(entries, name, f"`{path}.{name}`", f"{path}.{name}")
        elif isinstance(obj, types.FunctionType):
            if obj.__code__ in self.codes:
                self._function(obj, path)
        elif isinstance(obj, types.MethodType):
            self.visit(obj.__func__, path)
            self.visit(obj.__self__, f"{path}.__self__")
        elif isinstance(obj, _HAS_NOTHING_TO_READ):
            owner = getattr(obj, "__self__", None)
            if owner is not None and not isinstance(owner, (types.ModuleType, type)):
                self.visit(owner, f"{path}.__self__")
        elif isinstance(obj, type):
            self._class(obj, path)
        elif isinstance(obj, (functools.partial, property, classmethod, staticmethod)):
            for name in ("func", "args", "keywords", "fget", "fset", "__func__"):
                if getattr(obj, name, None) is not None:
                    self.visit(getattr(obj, name), f"{path}.{name}")
        elif isinstance(obj, _C.CompiledFunction):
            self.visit(obj.__wrapped__, path)
        elif kind in (tuple, _C.Size):
            self._items(obj, path)
        elif kind.__module__.startswith("tenon._C") and not kind.__flags__ & _HEAP or kind in _IMMUTABLE:
            pass  # dtypes, devices, layouts: they never change
        elif _is_number_of_numpy(obj):
            pass
        else:
            self._instance(obj, kind, path)

    def _items(self, items, path):
        for i, item in enumerate(items):
            self.visit(item, f"{path}[{i}]")

    def _function(self, f, path):
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
        for name in self.names & vars(f).keys():
            self._entry(vars(f), name, f"`{path}.{name}`", f"{path}.{name}")

    def _class(self, kind, path):
        if kind in self._classes or not kind.__flags__ & _HEAP:  # made in C, cannot be changed
            return
        self._classes.add(kind)
        self._guard(TYPE, kind, None, None, f"class `{kind.__qualname__}`")
        for base in kind.__mro__:
            if not base.__flags__ & _HEAP:
                continue
            for name in self.names & vars(base).keys():
                self.visit(vars(base)[name], f"{base.__qualname__}.{name}")

    def _instance(self, obj, kind, path):
        layouts = [base for base in kind.__mro__ if not base.__flags__ & _HEAP]
        if not all(base in _LAYOUTS for base in layouts):
            raise Refused(f"it may read `{path}`, a {kind.__module__}.{kind.__qualname__}, which cannot be compared")
        if isinstance(obj, Optimizer):
            self._optimizer(obj, kind)
        if kind.__flags__ & _HEAP:
            self._guard(CLASS, obj, None, kind, f"the class of `{path}`")
            self._class(kind, path)
        if isinstance(obj, dict):
            self._guard(SIZE, obj, None, None, f"`{path}`", len(obj))
            for key, value in obj.items():
                if (id(obj), key) in self.live:
                    continue
                label = f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[...]"
                self.visit(key, label)
                self._entry(obj, key, f"`{label}`", label)
        elif isinstance(obj, list):
            self._guard(SIZE, obj, None, None, f"`{path}`", len(obj))
            for i, item in enumerate(obj):
                self._guard(ITEM, obj, None, item, f"`{path}[{i}]`", i)
            self._items(obj, path)
        elif isinstance(obj, (set, frozenset)):
            self._guard(EQUAL, obj, None, frozenset(obj), f"`{path}`")
            self._items(obj, path)
        elif isinstance(obj, tuple):
            self._items(obj, path)
        self._attributes(obj, kind, path)

    def _optimizer(self, optimizer, kind):
        """Notes the numbers that replays read, if nobody but the optimizer's own step does."""
        own = _OPTIMIZERS.get(kind)
        readers = {code.co_filename for code in self.codes if {"param_groups", "state", "lr"} & {*code.co_names, *(c for c in code.co_consts if isinstance(c, str))}}
        if own is None or kind._update.__code__ not in self.codes or not readers <= _OPTIMIZER_FILES:
            return
        self.optimizers.append(optimizer)
        for group in optimizer.param_groups:
            if type(group["lr"]) in (int, float):
                self.live[id(group), "lr"] = group["lr"]
            for p in group["params"]:
                state = optimizer.state.get(p, {})
                if type(state.get("step")) is int:
                    self.live[id(state), "step"] = state["step"]

    def numbers(self, capture):
        """For each parameter that an optimizer has updated, what its numbers follow from."""
        described = []
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                before = self.live.get((id(group), "lr"))
                if before is None or group["lr"] != before or type(group["lr"]) is not type(before):
                    raise Refused("it changes the learning rate of an optimizer")
                for p in group["params"]:
                    if p.grad is not None:
                        described.append(self._numbers_of(optimizer, group, p, capture.slot_of(p)))
        return described

    def _numbers_of(self, optimizer, group, p, slot):
        state = optimizer.state.get(p, {})
        step = self.live.get((id(state), "step"))
        if slot is None or _OPTIMIZERS[type(optimizer)] == "Adam" and (step is None or state["step"] != step + 1):
            raise Refused("it makes something else of an optimizer than one step")
        betas, decay = group.get("betas", (0.0, 0.0)), group["weight_decay"]
        decoupled = group.get("decoupled_weight_decay", False)
        return (
            _OPTIMIZERS[type(optimizer)], group, state, slot, float(group["lr"]), step or 0, *betas, float(decay), decoupled
        )  # fmt: skip

    def _attributes(self, obj, kind, path):
        for base in kind.__mro__:
            slots = vars(base).get("__slots__", ())
            if self.names & set((slots,) if isinstance(slots, str) else slots) - {"__dict__", "__weakref__"}:
                raise Refused(f"it may read `{path}`, whose attributes are in __slots__, which cannot be compared")
        entries = getattr(obj, "__dict__", None)
        if not isinstance(entries, dict):
            return
        self._guard(DICT, obj, None, entries, f"the attributes of `{path}`")
        if self.dynamic:
            self._guard(SIZE, entries, None, None, f"the attributes of `{path}`", len(entries))
        for name in list(entries) if self.dynamic else self.names & entries.keys():
            self._entry(entries, name, f"`{path}.{name}`", f"{path}.{name}")
        if not self.dynamic:
            for name in self.names - entries.keys():
                if hasattr(kind, name):
                    self._guard(NO_ENTRY, entries, name, None, f"`{path}.{name}`")


_OPTIMIZERS = {SGD: "SGD", Adam: "Adam", AdamW: "Adam"}  # by the formulas of their numbers
_OPTIMIZER_FILES = {method.__code__.co_filename for method in (Optimizer.step.__wrapped__, SGD._update, Adam._update)}
_IMMUTABLE = (types.GenericAlias, type(int | str), types.MappingProxyType)
_LAYOUTS = {object, dict, list, tuple, set, frozenset, int, float, str, BaseException, Exception, types.SimpleNamespace}
_LAYOUTS |= {collections.OrderedDict, collections.defaultdict}


def _is_number_of_numpy(obj):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, numpy.generic)


class Program:
    """A function that was compiled with pure=True: runs it where no replay fits, and makes replays."""

    def __init__(self, fn, program, relaxed, end_after):
        self._fn, self._program, self._relaxed, self._end_after = fn, program, relaxed, end_after
        self._codes, self._dynamic = {}, False
        self._misses = self._replayed = 0
        self.compiled = None  # a weak reference
        self.refused = None  # (reason, line)
        self.replanned = []  # why earlier replays did not fit

    def __call__(self, args, kwargs):
        compiled = self.compiled()
        known, replayed, mismatch = compiled._replays()
        if known and mismatch:
            self.replanned.append(mismatch)
            self._misses = self._misses + 1 if replayed == self._replayed else 0
            self._replayed = replayed
            if self._misses == _MAX_MISSES:
                self._give_up(compiled, f"{_MAX_MISSES} calls in a row differed, the last one in {mismatch}", "")
        capture = reads = None
        if self._codes and self.refused is None:
            try:
                shape = _Arguments(args, kwargs)
                reads = Reads(self._codes, self._dynamic).collect(self._fn)
                for obj in shape.objects:
                    reads.visit(obj, "an argument")
                capture = _C._PureCapture(self._program, self._relaxed, shape.tensors + reads.tensors, len(shape.tensors))
            except Refused as refusal:
                self._give_up(compiled, str(refusal), "")
        result, observer = self._run(capture, args, kwargs)
        if self.refused is None:
            self._learn(compiled, observer, capture, reads, shape if capture else None, result)
        return result

    def events(self):
        """What explain() tells of replays: see Report."""
        replays, runs, _ = self.compiled()._replays()
        events = [{"event": "replays", "count": replays, "runs": runs}]
        events += ({"event": "replanned", "reason": r, "count": n} for r, n in collections.Counter(self.replanned).items())
        if self.refused:
            events.append({"event": "refused", "reason": self.refused[0], "line": self.refused[1], "count": 1})
        return events

    def _run(self, capture, args, kwargs):
        """Runs the program under observation, recorded."""
        observer = Observer()
        if sys.getprofile() is not None:
            observer.refused = "another profiler is at work, which observes the program instead", ""
        begin = capture.begin if capture else lambda: _C._record_begin(self._program, -1, False, self._relaxed)
        end = capture.end if capture else _C._record_end
        scope = begin()
        try:
            if observer.refused is None:
                sys.setprofile(observer)
            try:
                result = self._fn(*args, **kwargs)
            finally:
                if observer.refused is None or sys.getprofile() is observer:
                    sys.setprofile(None)
        except BaseException as error:
            self._end_after(scope, error, end)
            raise
        end(scope)
        return result, observer

    def _learn(self, compiled, observer, capture, reads, shape, result):
        unknown = observer.codes.keys() - self._codes.keys()
        self._codes.update(observer.codes)
        self._dynamic |= observer.dynamic
        if observer.refused:
            return self._give_up(compiled, *observer.refused)
        if capture is None or unknown:
            return None  # the next call knows what it reads
        try:
            if refused := capture.refused():
                raise Refused(*refused)
            if changed := _C._pure_broken_guard(reads.guards):
                raise Refused(f"it changes {changed}")
            results = []
            described = _described(result, results)
            capture.finish(
                compiled, shape.described, len(shape.args), shape.names, reads.guards, described, results, reads.numbers(capture)
            )
        except (Refused, RuntimeError) as refusal:
            return self._give_up(compiled, str(refusal.args[0]), refusal.args[1] if len(refusal.args) > 1 else "")

    def _give_up(self, compiled, reason, line):
        name = getattr(self._fn, "__qualname__", repr(self._fn))
        self.refused = reason, line
        compiled._stop_observing()
        where = f" ({line})" if line else ""
        warnings.warn(f"compile(pure=True): {name} is not replayed, but recorded at every call: {reason}{where}", stacklevel=4)


class _Arguments:
    """How the arguments of a call are nested."""

    def __init__(self, args, kwargs):
        self.args, self.tensors, self.objects = args, [], []
        self.names = tuple(kwargs) or None
        self.described = TUPLE, [self._describe(a) for a in (*args, *kwargs.values())]

    def _describe(self, obj):
        if isinstance(obj, _C.Tensor):
            self.tensors.append(obj)
            return TENSOR, len(self.tensors) - 1
        if type(obj) in (tuple, list):
            return TUPLE if type(obj) is tuple else LIST, [self._describe(item) for item in obj]
        if type(obj) is dict:
            return DICT_OF, [self._describe(item) for item in obj.values()], list(obj)
        self.objects.append(obj)
        return CONSTANT, obj


def _described(result, tensors):
    """How the result is nested; its tensors are appended to `tensors`."""
    if isinstance(result, _C.Tensor):
        tensors.append(result)
        return TENSOR, len(tensors) - 1
    kind = type(result)
    if kind in (tuple, list):
        return TUPLE if kind is tuple else LIST, [_described(item, tensors) for item in result]
    if kind is dict:
        return DICT_OF, [_described(item, tensors) for item in result.values()], list(result)
    if kind in _SCALARS or isinstance(result, type):
        return CONSTANT, result
    raise Refused(f"it returns a {kind.__module__}.{kind.__qualname__}")
