"""Introspection of the dispatcher: key sets, registrations, computed tables, and traces of calls.

An operator is named "aten::add.Tensor" ("add.Tensor" means aten's) or given as an object of tenon.ops. Keys are named as
tables print them: CPU, Meta, AutogradCPU, BackendSelect, and the aliases Autograd, CompositeExplicit,
CompositeImplicit. PyTorch's own spellings, `tenon._C._dispatch_*`, are in pytorch_dispatch.py.
"""

from __future__ import annotations

import contextlib
from _thread import allocate_lock
from typing import NamedTuple

from . import _C
from ._C import dispatch as _d
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ._C import Tensor
    from .types import Op

__all__ = [
    "DispatchKeySet",
    "Cell",
    "Registration",
    "Stub",
    "TraceEvent",
    "backends",
    "check_invariants",
    "computed_table",
    "defined_at",
    "dump_registrations",
    "dump_table",
    "exclude",
    "excluded_keys",
    "find_dangling_impls",
    "has_fallback",
    "has_kernel",
    "has_kernel_for_any_key",
    "has_kernel_for_key",
    "include",
    "included_keys",
    "is_alias_key",
    "is_fallthrough",
    "is_included_in_alias",
    "key_for_device",
    "key_name",
    "key_parse",
    "key_set",
    "keys",
    "num_backends",
    "operators",
    "operators_with_kernel",
    "record",
    "registrations",
    "schema",
    "stubs",
    "trace",
]

DispatchKeySet = _d.DispatchKeySet
excluded_keys = _d.excluded_keys
find_dangling_impls = _d.find_dangling_impls
has_fallback = _d.has_fallback
included_keys = _d.included_keys
is_alias_key = _d.is_alias_key
is_included_in_alias = _d.is_included_in_alias
key_for_device = _d.key_for_device
key_parse = _d.key_parse
operators_with_kernel = _d.operators_with_kernel


class Registration(NamedTuple):
    """One registered kernel."""

    key: str
    kind: str  #: "typed", "boxed" (closures and Python kernels too), "fallthrough", "not implemented"
    file: str
    line: int
    active: bool  #: Whether it is the newest for its key.


class Cell(NamedTuple):
    """One cell of an operator's computed table."""

    key: str
    source: str  #: "kernel", "default backend kernel", "composite kernel", "fallback", "fallthrough", "missing"
    file: str  #: Empty where nothing is registered.
    line: int


class Stub(NamedTuple):
    """A function inside an operator that each device fills in."""

    name: str
    signature: str  #: In the schema language; empty where it takes functions in C++ only.
    devices: list  #: Those that serve it.
    own: list  #: Of these, those that filled it in; the others serve it by expressions or copies of bytes.


class TraceEvent(NamedTuple):
    """One recorded call. Times are nanoseconds of a clock that only runs forward."""

    op: str
    key: str  #: The key whose kernel was called.
    redispatch: bool
    failed: bool  #: An exception left it.
    depth: int  #: How many calls of its thread it is inside of.
    thread: int
    begin_ns: int
    end_ns: int
    shapes: list  #: Of the tensors among the arguments.
    dtypes: list
    stream: str | None  #: Where a device's kernel queues its work: "openreg:0, stream 2".


def _name(op):
    if isinstance(op, _C.OpOverload):
        return op._name
    if isinstance(op, _C.OpOverloadPacket):
        overloads = op.overloads()
        if len(overloads) != 1:
            raise ValueError(f"{op._qualified_op_name} has several overloads: {', '.join(overloads)}; name one of them")
        return getattr(op, overloads[0])._name
    return op


def key_set(tensor: Tensor) -> Any:
    """The keys that a tensor adds to a call. They are printed and listed (`.names()`) in rising priority."""
    return DispatchKeySet(tensor)


def operators(ns: str | None = None) -> list[str]:
    """Full names of all operators, or of one namespace's, sorted."""
    return [name for name in _d.operators() if ns is None or name.startswith(ns + "::")]


def schema(op: Op) -> str:
    """The text of an operator's schema."""
    return _d.schema(_name(op))


def registrations(op: Op) -> list[Registration]:
    """All kernels of an operator by key, newest first for each key: a list of Registration."""
    return [Registration(*row) for row in _d.registrations(_name(op))]


def computed_table(op: Op) -> list[Cell]:
    """The kernel that a call finds at each key: a list of Cell."""
    return [Cell(*row) for row in _d.computed_table(_name(op))]


def defined_at(op: Op) -> Any:
    """(file, line) of an operator's declaration."""
    return _d.defined_at(_name(op))


def dump_registrations(op: Op) -> str:
    """An operator's registrations as readable text."""
    return _d.dump(_name(op))


def dump_table(op: Op) -> str:
    """An operator's computed table as readable text."""
    return _d.table(_name(op))


def has_kernel(op: Op, key: str | None = None) -> bool:
    """Whether a kernel is registered for exactly this key (an alias does not count for the keys that it covers); without a
    key, for any key."""
    return _d.has_kernel(_name(op)) if key is None else _d.has_kernel(_name(op), key)


def has_kernel_for_key(op: Op, key: str) -> bool:
    """Whether a call that arrives at a key finds a kernel, including composite kernels and fallbacks."""
    return _d.has_kernel_for_key(_name(op), key)


def has_kernel_for_any_key(op: Op, keys: Any) -> bool:
    """Whether a kernel is registered for one of the keys of a DispatchKeySet."""
    return _d.has_kernel_for_any_key(_name(op), keys)


def is_fallthrough(op: Op, key: str) -> bool:
    """Whether calls at the key fall through to the next key."""
    return _d.is_fallthrough(_name(op), key)


def key_name(key: Any) -> str:
    """A key's name as tables print it; accepts other spellings ("CatchAll" is "CompositeImplicit")."""
    return key_parse(key)


def keys(unused: bool = False) -> list[str]:
    """The keys that a call may arrive at: Dense and Autograd ones of every backend, BackendSelect, and those with a
    registered kernel or fallback. With `unused`, also those without any."""
    return _d.all_keys() if unused else _d.used_keys()


def num_backends() -> int:
    """How many backends there are, meta included."""
    return len(_d.backends())


def check_invariants(op: Op | None = None) -> Any:
    """Raises RuntimeError, naming what is wrong, if what the dispatcher knows of an operator, or of any without one, does not
    agree with itself: registrations, schema, and the table that calls read."""
    _d.check_invariants(None if op is None else _name(op))


def backends() -> Any:
    """(device, key) of every backend in rising priority."""
    return _d.backends()


def stubs() -> list[Stub]:
    """Every stub of the process: a list of Stub."""
    return [Stub(*row) for row in _d.stubs()]


#: The open traces: sink, shapes and times of each, in the order in which they began.
_traces: list[tuple[Callable[[str], Any], bool, bool]] = []
_changing = allocate_lock()
_sink_before: Callable[[str], Any] | None = None


def _write_line(line: str) -> None:
    for sink, _, _ in tuple(_traces):
        sink(line)


def _change_traces(change: Callable[[Any], None], of: tuple[Callable[[str], Any], bool, bool]) -> None:
    """Begins or ends a trace: the first one takes the place of the sink, and the last one gives it back."""
    global _sink_before
    with _changing:
        first = not _traces
        change(of)
        if first:
            _sink_before = _d.set_sink(_write_line)
        _d.trace(False)
        if _traces:
            _d.trace(True, shapes=any(shapes for _, shapes, _ in _traces), times=any(times for _, _, times in _traces))
        else:
            _d.set_sink(_sink_before)


@contextlib.contextmanager
def trace(sink: Callable[[str], Any] | None = None, *, shapes: bool = False, times: int = False) -> Iterator[list[str]]:
    """Traces the calls made inside, of all threads: passes each line to `sink`, or appends it to the list that the context
    returns. With `shapes`, lines show those of arguments; with `times`, each call has a line at its end. Of traces that are open at
    once, each gets every line, as the most talkative of them asks for it.

        with tenon.dispatch.trace() as lines:
            tenon.randn(3, 3)
    """
    lines: list[str] = []
    open_trace = (lines.append if sink is None else sink, shapes, bool(times))
    _change_traces(_traces.append, open_trace)
    try:
        yield lines
    finally:
        _change_traces(_traces.remove, open_trace)


class Recording:
    """What `record` returns: `events` are there when its context has ended."""

    events: list = []
    _json = None

    def chrome_trace(self) -> str:
        """The events as JSON in Chrome's Trace Event Format, for chrome://tracing and ui.perfetto.dev."""
        if self._json is None:
            raise RuntimeError("chrome_trace: the recording has not ended; leave its context first")
        return self._json

    def export_chrome_trace(self, path: Any) -> None:
        """Writes chrome_trace() to a file."""
        text = self.chrome_trace()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


@contextlib.contextmanager
def record() -> Iterator[Recording]:
    """Records the calls made inside, of all threads, with times, shapes and streams.

        with tenon.dispatch.record() as recording:
            tenon.randn(3, 3)
        recording.export_chrome_trace("trace.json")
    """
    recording = Recording()
    open_recording = _d.start_recording()
    try:
        yield recording
    finally:
        events, recording._json = _d.stop_recording(open_recording)
        recording.events = [TraceEvent(*event) for event in events]


@contextlib.contextmanager
def exclude(*keys: Any) -> Iterator[None]:
    """Removes functionalities from every call of this thread: exclude("AutogradCPU")."""
    hidden = DispatchKeySet(*keys)
    before = _d._set_excluded(DispatchKeySet())
    _d._set_excluded(before | hidden)
    try:
        yield
    finally:
        _d._set_excluded(before)


@contextlib.contextmanager
def include(*keys: Any) -> Iterator[None]:
    """Adds keys to every call of this thread."""
    before = _d._set_included(DispatchKeySet())
    _d._set_included(before | DispatchKeySet(*keys))
    try:
        yield
    finally:
        _d._set_included(before)


_check_module(globals())
