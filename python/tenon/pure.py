"""What compile(pure=True) finds out about a program, so that it can be replayed without running: loaded at its first call.

A call under observation notes the code that runs (sys.setprofile). Before the next one, everything that this code may read by
a name is collected: globals, closures, attributes of objects found that way, items of their containers. If that call changes
none of it, does nothing that is not recorded, and reads no value, then what was recorded can be replayed wherever all of it
is as it was. What cannot be compared, and what has effects that a replay would not have, is refused with a sentence.
"""

import sys

from . import _C
from .callers import warn
from .guards import CONSTANT, DICT_OF, GIVEN, LIST, SAME, TENSOR, TUPLE
from .pure_messages import Call, line_of, name_of, names_of_arguments
from .pure_observer import Observer, Refused
from .pure_reads import SCALARS, Reads

_MAX_CHANGES = 2  # captures in a row that changed something, as the first step of each optimizer does, which makes its state
_MAX_MISSES = 8  # calls in a row that made a replay which the next call could not use


class Program:
    """A function that was compiled with pure=True: runs it where no replay fits, and makes replays."""

    def __init__(self, fn, program, planning, end_after):
        self._fn, self._program, self._planning, self._end_after = fn, program, planning, end_after
        self._seen = Observer()  # all that the calls so far have run
        self._misses = self._replayed = self._changes = 0
        self.compiled = None  # a weak reference
        self.refused = None  # (reason, line)
        self.replanned = {}  # what differed from the latest replay: [how often, from what to what the last time]
        self._latest = None  # how the arguments of the latest replay were, as pure_messages.Call takes it

    def __call__(self, args, kwargs):
        compiled = self.compiled()
        if self._latest is not None and (found := compiled._mismatch()) is not None:
            self._miss(compiled, *Call(self._fn, *self._latest).difference(found, args, kwargs))
        capture = reads = None
        if self._seen.codes and self.refused is None:
            try:
                given = _Arguments((*args, *kwargs.values()))
                reads = Reads(self._seen).collect(self._fn, given.read())
                capture = _C._PureCapture(self._program, *self._planning, given.tensors + reads.tensors, len(given.tensors))
            except Refused as refusal:
                self._give_up(compiled, *refusal.args)
        result, observer = self._run(capture, args, kwargs)
        if self.refused is None:
            self._learn(compiled, observer, capture, reads, given if capture else None, len(args), tuple(kwargs) or None, result)
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
            self._give_up(
                compiled,
                f"{_MAX_MISSES} calls in a row differed, the last one in {latest}; pass what changes from call to call as a tensor",
            )

    def _run(self, capture, args, kwargs):
        """Runs the program under observation, recorded."""
        observer = Observer()
        if sys.getprofile() is not None:
            observer.refused = "another profiler is at work, which observes the program instead", ""
        begin = capture.begin if capture else lambda: _C._record_begin(self._program, -1, False, *self._planning)
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

    def _learn(self, compiled, observer, capture, reads, given, num_positional, names, result):
        is_new = self._seen.add(observer)
        if observer.refused:
            return self._give_up(compiled, *observer.refused)
        if capture is None or is_new:
            return None  # the next call knows what it reads
        try:
            if refused := capture.refused():
                raise Refused(*refused)
            if changed := _C._pure_broken_guard(reads.guards):
                self._changes += 1
                if self._changes < _MAX_CHANGES:
                    return None
                raise Refused(f"it changes {changed}")
            self._changes = 0
            reads.check_found(observer.codes)
            if reads.exact and any(t.is_leaf and t.grad is not None for t in given.tensors + reads.tensors):
                raise Refused("it tells objects apart by `is`, and a tensor has a gradient, which may be another's too")
            if (changed := given.changed()) is not None:
                name = names_of_arguments(self._fn, num_positional, names)[changed]
                raise Refused(f"it changes a list or a dict among its arguments, in `{name}`")
            for path, tensor in zip(reads.tensor_paths, reads.tensors):
                if tensor.grad_fn is not None:
                    raise Refused(f"it uses `{path}`, which has history: detach() it")
            made = _Result(result, given.containers, reads.containers)
            described = given.described(reads.exact)
            capture.finish(
                compiled, described, given.given, num_positional, names, reads.tensors, reads.containers,
                reads.guards, reads.exact, made.described, made.tensors, reads.live.described(capture),
            )  # fmt: skip
            self._latest = described, num_positional, names, reads.tensor_paths
        except (Refused, RuntimeError) as refusal:
            return self._give_up(compiled, *refusal.args[:2])

    def _give_up(self, compiled, reason, line=""):
        """Refuses the program, once. `line` is where it does what a replay could not; found by the name in `reason` if it is not
        known."""
        line = line or line_of(reason, self._seen.codes, self._fn)
        self.refused = reason, line
        compiled._stop_observing()
        where = f" ({line})" if line else ""
        warn(f"compile(pure=True): {name_of(self._fn)} is not replayed, but recorded at every call: {reason}{where}")


class _Arguments:
    """What a call is given: the tensors, containers and other objects that the arguments consist of."""

    def __init__(self, given):
        self.given = given
        self.tensors, self.containers, self.objects = [], [], []
        self._parts, self._sizes = [], []  # of each argument
        for obj in given:
            self._parts.append([])
            self._sizes.append([])
            self._walk(obj)

    def _walk(self, obj):
        self._parts[-1].append(obj)
        if isinstance(obj, _C.Tensor):
            self.tensors.append(obj)
        elif type(obj) in (tuple, list, dict):
            self.containers.append(obj)
            self._sizes[-1].append(len(obj))
            if type(obj) is dict:
                self.objects += obj
                self._parts[-1] += obj
            for item in obj.values() if type(obj) is dict else obj:
                self._walk(item)
        else:
            self.objects.append(obj)

    def read(self):
        """What the program may read of them that is not compared with the arguments themselves."""
        return self.objects + [part for tensor in self.tensors for part in (type(tensor), *vars(tensor).values())]

    def changed(self):
        """The number of the first argument in which a container is no longer as it was; None if all are."""
        now = _Arguments(self.given)
        for i, (sizes, parts) in enumerate(zip(self._sizes, self._parts)):
            if now._sizes[i] != sizes or any(a is not b for a, b in zip(now._parts[i], parts)):
                return i
        return None

    def described(self, exact):
        """How they are nested. `exact`: other objects are the same, not equal."""
        numbers = iter(range(len(self.tensors)))

        def describe(obj):
            if isinstance(obj, _C.Tensor):
                return TENSOR, next(numbers)
            if type(obj) in (tuple, list):
                return TUPLE if type(obj) is tuple else LIST, [describe(item) for item in obj]
            if type(obj) is dict:
                return DICT_OF, [describe(item) for item in obj.values()], list(obj)
            return SAME if exact else CONSTANT, obj

        return describe(self.given)


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
