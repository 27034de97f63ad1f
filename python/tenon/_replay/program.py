"""What compile(pure=True) does where no replay fits: the program runs, recorded, and its call may become a replay.

The function promises to depend on nothing but its arguments, what it has captured (tensors, modules, optimizers) and Tenon's modes
(docs/compile.md). The first call is only recorded: it may fill caches. Each later one that no replay fits is captured: what was
recorded can be replayed if the call did nothing else that can be seen cheaply. With check=True the program runs where a replay fits,
too, and has to record what the replay has.
"""

import _thread
import sys

from .. import _C
from ..callers import line_of_program, warn
from ..nn import Module
from ..optim import Optimizer
from .collector import GuardCollector
from .kinds import CONSTANT, DICT_OF, GIVEN, LIST, SCALARS, TENSOR, TUPLE, Refused
from .messages import Call, line_of, name_of, names_of_arguments

_MAX_CHANGES = 2  # captures in a row that changed something, as the first step of each optimizer does, which makes its state
_MAX_MISSES = 8  # calls in a row that made a replay which the next call could not use


class Program:
    """A function that was compiled with pure=True: runs it where no replay fits, and makes replays."""

    def __init__(self, fn, program, planning, end_after):
        self._fn, self._program, self._planning, self._end_after = fn, program, planning, end_after
        self._has_run = False
        self._misses = self._replayed = self._changes = 0
        self._codes = {}  # that the latest captured call could run
        self.compiled = None  # a weak reference
        self.refused = None  # (reason, line)
        self.replanned = {}  # what differed from the latest replay: [how often, from what to what the last time]
        self._latest = None  # how the arguments of the latest replay were, as messages.Call takes it

    def __call__(self, args, kwargs, fits):
        """`fits`: the number of the replay that fits this call, which is checked; 0 if none does."""
        compiled = self.compiled()
        if not fits and self._latest is not None and (found := compiled._mismatch()) is not None:
            self._miss(compiled, *Call(self._fn, *self._latest).difference(found, args, kwargs))
        if self.refused or not self._has_run:
            self._has_run = True
            return self._run(None, args, kwargs)[0]
        names = names_of_arguments(self._fn, len(args), tuple(kwargs))
        try:
            given = _Arguments((*args, *kwargs.values()), names)
            found = GuardCollector()
            self._codes = found.codes
            found.collect(self._fn, getattr(self._fn, "__qualname__", "the function"), given.objects)
            tensors = given.tensors + found.tensors
            capture = _C._ReplayMaker(self._program, *self._planning, tensors, len(given.tensors))
        except Refused as refusal:
            self._refuse(compiled, fits, *refusal.args)
            return self._run(None, args, kwargs)[0]
        result, printed = self._run(capture, args, kwargs)
        try:
            if printed:
                raise Refused("it prints, which a replay would not do", printed)
            made = self._finish(capture, found, given, result, len(args), tuple(kwargs) or None, fits)
        except (Refused, RuntimeError) as refusal:
            self._refuse(compiled, fits, *refusal.args[:2])
            return result
        if made is None:
            return result
        if not fits:
            compiled._add_replay(made)
            self._latest = given.described, len(args), tuple(kwargs) or None, found.paths
        elif difference := compiled._difference(fits, made):
            self._refuse(compiled, fits, *difference)
        return result

    def events(self):
        """What explain() tells of replays: see Report."""
        replays, runs = self.compiled()._replays()
        events = [{"event": "replays", "count": replays, "runs": runs}]
        for what, (count, change) in self.replanned.items():
            events.append({"event": "replanned", "reason": f"{what}, {change}" if change else what, "count": count})
        if self.refused:
            events.append({"event": "refused", "reason": self.refused[0], "line": self.refused[1], "count": 1})
        return events

    def _miss(self, compiled, what, change):
        """Notes what the latest replay did not fit, and gives up where that has been so for many calls."""
        count, _ = self.replanned.get(what, (0, ""))
        self.replanned[what] = count + 1, change
        _, replayed = compiled._replays()
        self._misses = self._misses + 1 if replayed == self._replayed else 0
        self._replayed = replayed
        if self._misses == _MAX_MISSES:
            latest = f"{what}, {change}" if change else what
            reason = f"{_MAX_MISSES} calls in a row differed, the last one in {latest}; pass what changes from call to call as a tensor"
            self._refuse(compiled, 0, reason)

    def _run(self, capture, args, kwargs):
        """Runs the program, recorded, by `capture` if it is given. Returns the result, and the line that prints, if one does."""
        begin = capture.begin if capture else lambda: _C._record_begin(self._program, -1, False, *self._planning)
        end = capture.end if capture else _C._record_end
        streams = [_Stream(name) for name in ("stdout", "stderr")] if capture else []
        scope = begin()
        try:
            for stream in streams:
                stream.put()
            try:
                result = self._fn(*args, **kwargs)
            finally:
                for stream in streams:
                    stream.remove()
        except BaseException as error:
            self._end_after(scope, error, end)
            raise
        end(scope)
        return result, next((stream.line for stream in streams if stream.line), None)

    def _finish(self, capture, found, given, result, num_positional, names, fits):
        """The replay of a captured call; None if there is to be none yet."""
        if refused := capture.refused():
            raise Refused(*refused)
        if changed := found.changed():
            self._changes += 1
            if self._changes < _MAX_CHANGES and not fits:
                return None
            raise Refused(f"it changes {changed}")
        self._changes = 0
        if (changed := given.changed()) is not None:
            raise Refused(f"it changes a list or a dict among its arguments, in `{changed}`")
        for path, tensor in zip(found.paths, found.tensors):
            if tensor.grad_fn is not None and capture.slot_of(tensor) is not None:
                raise Refused(f"it uses `{path}`, which has history: detach() it")
        made = _Result(result, given.containers, found.containers)
        return capture.finish(
            given.described, given.given, num_positional, names, found.named, found.guards,
            made.described, made.tensors, found.live.described(capture),
        )  # fmt: skip

    def _refuse(self, compiled, fits, reason, line=""):
        """Refuses the program, once; raises where a replay that fits was to be checked. `line` is where it does what a replay could
        not; found by the name in `reason` if it is not known."""
        line = line or line_of(reason, self._codes, self._fn)
        where = f" ({line})" if line else ""
        name = name_of(self._fn)
        if fits:
            raise RuntimeError(
                f"compile(pure=True, check=True): {name} did something else than its replay: {reason}{where}; "
                "pass what it depends on as an argument"
            )
        self.refused = reason, line
        compiled._stop_capturing()
        warn(f"compile(pure=True): {name} is not replayed, but recorded at every call: {reason}{where}")


class _Stream:
    """Replaces a stream of `sys` while a call is captured, and notes the first line of this thread that writes to it."""

    def __init__(self, name):
        self._name, self._stream, self._thread = name, getattr(sys, name), _thread.get_ident()
        self.line = None

    def put(self):
        if self._stream is not None:
            setattr(sys, self._name, self)

    def remove(self):
        if getattr(sys, self._name) is self:
            setattr(sys, self._name, self._stream)

    def write(self, text):
        if self.line is None and _thread.get_ident() == self._thread:
            self.line = line_of_program(sys._getframe(1)) or "an unknown line"
        return self._stream.write(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


class _Arguments:
    """What a call is given: the tensors, containers and other objects that the arguments consist of."""

    def __init__(self, given, names):
        self.given, self._names = given, names
        self.tensors, self.containers, self.objects = [], [], []
        self._parts, self._sizes = [], []  # of each argument
        for name, obj in zip(names, given):
            self._parts.append([])
            self._sizes.append([])
            self._walk(obj, name)
        numbers = iter(range(len(self.tensors)))

        def describe(obj):
            if isinstance(obj, _C.Tensor):
                return TENSOR, next(numbers)
            if type(obj) in (tuple, list):
                return TUPLE if type(obj) is tuple else LIST, [describe(item) for item in obj]
            if type(obj) is dict:
                return DICT_OF, [describe(item) for item in obj.values()], list(obj)
            return CONSTANT, obj

        self.described = describe(given)

    def _walk(self, obj, name):
        self._parts[-1].append(obj)
        if isinstance(obj, _C.Tensor):
            self.tensors.append(obj)
            self.objects += [(value, f"{name}.{key}") for key, value in vars(obj).items()]
        elif type(obj) in (tuple, list, dict):
            self.containers.append(obj)
            self._sizes[-1].append(len(obj))
            if type(obj) is dict:
                self.objects += [(key, name) for key in obj]
                self._parts[-1] += obj
            for item in obj.values() if type(obj) is dict else obj:
                self._walk(item, name)
        elif type(obj) not in SCALARS:
            _check_comparable(obj, name)
            self.objects.append((obj, name))

    def changed(self):
        """The first argument in which a container is no longer as it was; None if all are."""
        now = _Arguments(self.given, self._names)
        for i, (sizes, parts) in enumerate(zip(self._sizes, self._parts)):
            if now._sizes[i] != sizes or any(a is not b for a, b in zip(now._parts[i], parts)):
                return self._names[i]
        return None


def _check_comparable(obj, name):
    """Raises Refused for an argument that may be the same object and give the program something else at the next call."""
    kind = type(obj)
    if isinstance(obj, (Module, Optimizer, type)):
        return
    try:
        holds = not memoryview(obj).readonly  # a NumPy scalar never changes
    except TypeError:
        holds = isinstance(obj, set) or hasattr(kind, "__next__")
    if holds:
        raise Refused(f"its argument `{name}` is a {kind.__module__}.{kind.__qualname__}, whose contents cannot be compared: pass tensors")


class _Result:
    """How a result is nested, and its tensors. Containers that the program was given or has captured are these again."""

    def __init__(self, result, arguments, captured):
        self.tensors = []
        self._given = {id(obj): number for number, obj in reversed([*enumerate(arguments)])}
        self._captured = {id(obj) for obj in captured}
        self._made = set()
        self.described = self._describe(result)

    def _describe(self, obj):
        if isinstance(obj, _C.Tensor):
            self.tensors.append(obj)
            return TENSOR, len(self.tensors) - 1
        kind = type(obj)
        if id(obj) in self._given:
            return GIVEN, self._given[id(obj)]
        if id(obj) in self._captured or kind in SCALARS or isinstance(obj, type):
            return CONSTANT, obj
        if kind not in (tuple, list, dict):
            raise Refused(f"it returns a {kind.__module__}.{kind.__qualname__}")
        if id(obj) in self._made:
            raise Refused(f"it returns a {kind.__name__} twice")
        self._made.add(id(obj))
        if kind is dict:
            return DICT_OF, [self._describe(item) for item in obj.values()], list(obj)
        return TUPLE if kind is tuple else LIST, [self._describe(item) for item in obj]
