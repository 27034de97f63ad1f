"""Whether the key by which an operator's author keeps graphs has all that a graph depends on, for `tenon check-op`.

The operator is called again with one property of its arguments changed. If a graph of the first call then runs at the address of a
changed argument, the key lacks that property.
"""

from __future__ import annotations

import inspect
import math
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C
from ..callers import is_own, names_in
from .op_arguments import Arguments
from .op_watch import Run, Watch
from ..testing import assert_close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OTHER_DTYPE = {
    _C.float32: _C.float64,
    _C.float64: _C.float32,
    _C.float16: _C.float32,
    _C.bfloat16: _C.float32,
    _C.int32: _C.int64,
    _C.int64: _C.int32,
}
_OTHER = {"dtype": "another dtype", "strides": "other strides", "sizes": "other sizes", "device": "another device"}


class _OnAnotherDevice(_C.Tensor):
    """A tensor of the host that says it is on another device of the host, for keys that are made of `device`."""

    asked = False

    @property
    def device(self) -> Any:
        _OnAnotherDevice.asked = True
        return _C.device("cpu:0")


class _Stopped(Exception):
    """Ends a call before a graph reads elements of another dtype than its own."""


class _Base(NamedTuple):
    """What the first call ran."""

    arguments: Arguments
    result: Any
    runs: int
    places: dict[int, dict[int, int]]  #: By graph and UID: the argument at the UID's address.
    sizes: dict[int, dict[int, int]]  #: By graph and UID: how many elements the graph reads there.


def missing_from_key(call: Callable[[Arguments], Any], arguments: Arguments, names: list[str], mentions_device: bool) -> str | None:
    """What the key lacks, as a sentence, or None. `names` are those of the tensors among the arguments; `mentions_device` says
    whether the operator's code does, so that a key may have it."""
    with Watch() as first:
        result = call(arguments)
    if not first.runs:
        return None
    places = {id(run.graph): _places(run, arguments) for run in first.runs}
    sizes = {id(run.graph): {uid: math.prod(dim) for uid, _, dim, _ in first.tensors(run.graph)} for run in first.runs}
    base = _Base(arguments, result, len(first.runs), places, sizes)
    for what, changed, which in _variations(arguments):
        foreign = _foreign_argument(call, what, changed, which, base, mentions_device)
        if foreign is not None:
            return f"the graph of the first call ran on `{names[foreign]}` of {_OTHER[what]}: put the {what} into the key"
    return None


def _foreign_argument(
    call: Callable[[Arguments], Any], what: str, changed: Arguments, which: set[int], base: _Base, mentions_device: bool
) -> int | None:
    """The changed argument on which a graph of the first call ran, where it should not."""
    found: list[int] = []

    def look(run: Run) -> None:
        known = base.places.get(id(run.graph))
        if known is None or (what == "device" and mentions_device and not _OnAnotherDevice.asked):
            return  # a graph of its own; or a key that is made of a view, which says that it is on the host
        for uid, i in _places(run, changed).items():
            if i not in which or known.get(uid) != i:
                continue
            if what != "sizes" or base.sizes[id(run.graph)][uid] == base.arguments.tensors()[i].numel():
                found.append(i)
        if what == "dtype" and found:
            raise _Stopped

    _OnAnotherDevice.asked = False
    watch, result = Watch(look), None
    try:
        with watch:
            result = call(changed)
    except _Stopped:
        return found[0]
    except Exception:
        return found[0] if found and what != "strides" else None  # the operator may refuse such arguments
    if not found or (what == "sizes" and len(watch.runs) > base.runs):
        return None  # a graph that runs on an argument part by part
    if what == "strides" and _same(result, base.result):
        return None  # a graph that holds for all strides
    return found[0]


def _places(run: Run, arguments: Arguments) -> dict[int, int]:
    """The tensor at each UID's address."""
    addresses = {t.data_ptr(): i for i, t in enumerate(arguments.tensors()) if not t.is_meta and t.numel() > 0}
    return {uid: addresses[address] for uid, address in run.addresses.items() if address in addresses}


def _same(a: Any, b: Any) -> bool:
    try:
        assert_close(a, b, rtol=1e-3, atol=1e-5, equal_nan=True, check_stride=False)
    except (AssertionError, TypeError, ValueError):
        return False
    return True


def _variations(arguments: Arguments) -> Iterator[tuple[str, Arguments, set[int]]]:
    """(property, arguments, the tensors that were changed): all tensors at once, then each."""
    tensors = arguments.tensors()
    groups = [set(range(len(tensors))), *({i} for i in range(len(tensors)) if len(tensors) > 1)]
    changes = (
        ("dtype", _other_dtype),
        ("strides", _transposed),
        ("strides", _with_gaps),
        ("sizes", _other_sizes),
        ("device", _other_device),
    )
    for what, change in changes:
        for group in groups:
            changed = {i: made for i in group if (made := change(tensors[i])) is not None}
            if changed:
                yield what, arguments.changed(lambda i, t: changed.get(i, t)), set(changed)  # noqa: B023


def _other_dtype(t: _C.Tensor) -> _C.Tensor | None:
    return t.to(_OTHER_DTYPE[t.dtype]) if t.dtype in _OTHER_DTYPE else None


def _transposed(t: _C.Tensor) -> _C.Tensor | None:
    """The same elements in the same memory, the last two dimensions exchanged there."""
    if t.dim() < 2 or t.shape[-1] < 2 or t.shape[-2] < 2:
        return None
    made = t.transpose(-1, -2).contiguous().transpose(-1, -2)
    return made if made.stride() != t.stride() else t.contiguous()


def _with_gaps(t: _C.Tensor) -> _C.Tensor | None:
    """The same elements in twice the memory."""
    return _C.stack([t, t], -1)[..., 0] if t.dim() > 0 and t.numel() > 1 else None


def _other_sizes(t: _C.Tensor) -> _C.Tensor | None:
    return _C.cat([t, t]) if t.dim() > 0 and t.numel() > 0 else None


def _other_device(t: _C.Tensor) -> _C.Tensor | None:
    return _C._make_subclass(_OnAnotherDevice, t.detach(), False) if t.device.type == "cpu" else None


def names_of(function: Any) -> set[str]:
    """The names in the code of a function, and of the functions and methods of its object that it names and that are not Tenon's."""
    function = inspect.unwrap(function)
    owner = type(getattr(function, "__self__", None)).__mro__
    found: set[str] = set()
    seen: set[int] = set()
    todo = [getattr(function, "__func__", function)]
    while todo:
        f = todo.pop()
        if not isinstance(f, types.FunctionType) or id(f) in seen or is_own({"__name__": f.__module__}):
            continue
        seen.add(id(f))
        names = names_in(f.__code__)
        found |= names
        todo += [f.__globals__[name] for name in names & f.__globals__.keys()]
        for name in names:
            for method in (cls.__dict__[name] for cls in owner if name in cls.__dict__):
                todo.append(method)
                if "super" not in getattr(getattr(method, "__code__", None), "co_names", ()):
                    break  # it overrides those of the next classes
        for cell in f.__closure__ or ():
            try:
                todo.append(cell.cell_contents)
            except ValueError:
                pass  # not set yet
    return found
