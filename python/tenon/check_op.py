"""`tenon check-op ns::name`: nine points of a fast custom operator, each observed where it can be.

The operator is called on tiny arguments while what it does with graphs is watched: what is built, which UIDs tensors get, how plans
are executed and in which workspaces. The points are those that the cuDNN frontend recommends to authors of operators.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, NamedTuple

from . import _C, graph
from .autograd.grad_mode import no_grad
from ._program.cached_plans import every_plan
from ._tools.key_probe import missing_from_key, names_of
from ._tools.op_arguments import Arguments, arguments_for, python_kernel
from ._tools.op_watch import Run, Watch
from ._tools.overhead import nanoseconds
from .namespaces import find_operator
from .random import get_rng_state, set_rng_state
from .testing import assert_close

#: What a call may cost besides its kernel, in nanoseconds.
LIMIT = 2000.0


class Point(NamedTuple):
    """`holds` is None where the point does not apply."""

    name: str
    holds: bool | None
    sentence: str


class _Seeded:
    """A call of an operator that draws the same random numbers each time, and records no history."""

    def __init__(self, op: Any, state: Any = None) -> None:
        self.op, self.state = op, get_rng_state() if state is None else state

    def __call__(self, arguments: Arguments, **outs: Any) -> Any:
        before = get_rng_state()
        set_rng_state(self.state)
        try:
            with no_grad():
                return self.op(*arguments.positional, **arguments.named, **outs)
        finally:
            set_rng_state(before)


def check(full_name: str, given: str | None = None, limit: float = LIMIT) -> list[Point]:
    """The nine points of an operator. Raises LookupError if there is none, ValueError if no arguments for it are known."""
    from . import library

    op = find_operator(full_name)
    full_name = op._name
    schema = _C._op_schema(full_name)
    with Watch() as first:  # the first call builds what the operator keeps
        arguments = arguments_for(op, schema, given)
    call = _Seeded(op)
    with Watch() as later:
        for _ in range(3):
            call(arguments.fresh())
    uses_graph = bool(first.by_pack + first.by_pointers + first.built + later.built)
    kept = any(w() is not None for w in (*first.workspaces, *later.workspaces)) or (bool(later.runs) and _workspace_is_shared(call, arguments))
    cached = bool(later.plans)
    automatic = first.automatic | later.automatic
    no_graph = "not applicable: it runs no graph"

    def of_graph(name: str, holds: bool, sentence: str) -> Point:
        return Point(name, holds, sentence) if uses_graph else Point(name, None, no_graph)

    decorated = full_name in library._custom
    points = [
        Point("direct registration", True,
              "custom_op made it, which registers as define and impl do and costs no more here" if decorated
              else "it is registered by define and impl"),
        of_graph("the graph is cached", later.built == 0 and later.orders == 0,
                 f"three further calls built {later.built} graphs; keep the graph, and the order of its UIDs: cached_plan does" if later.built
                 else f"three further calls asked {later.orders} times for the order of UIDs; keep it with the graph" if later.orders
                 else "three further calls built nothing, and asked for no order of UIDs"),
        of_graph("executed by addresses", later.by_pack == 0 and later.by_pointers > 0,
                 "calls pass addresses in the order of the UIDs" if later.by_pack == 0
                 else "calls pass a dictionary to execute; pass addresses to _execute_with_ptrs"),
        of_graph("explicit UIDs", not automatic,
                 f"UIDs of {', '.join(sorted(automatic))} are given automatically; set them, from an IntEnum" if automatic
                 else "its arguments' places are its UIDs" if cached
                 else "every tensor that a caller brings has a UID of its author's"),
        of_graph("one handle for a device", later.handles == 0,
                 "no further call made a handle" if later.handles == 0
                 else f"three further calls made {later.handles} handles; create_handle gives the one of a device"),
        of_graph("a workspace for each call", not kept, _workspaces(kept, cached, later)),
        _out(call, schema, arguments),
        _key(call, schema, arguments, uses_graph, bool(later.runs)),
        _overhead(op, arguments, limit),
    ]  # fmt: skip
    return points


#: How long a call waits for another one to come to its graph: far more than it takes. An operator whose calls exclude each other, by a
#: lock, makes it wait to the end of it.
_PATIENCE_S = 5.0


def _workspace_is_shared(call: _Seeded, arguments: Arguments) -> bool:
    """Whether a second call, made on another thread while the first is about to run its graph, is given the same memory."""
    first = threading.get_ident()
    second: list[Run] = []
    shared: list[bool] = []

    def on_run(run: Run) -> None:
        if threading.get_ident() != first:
            second.append(run)
            return
        if run.workspace is None or len(shared) > 8:
            return
        second.clear()
        other = threading.Thread(target=_quietly, args=(call, arguments), daemon=True)
        other.start()
        other.join(_PATIENCE_S)
        ranges = [r.workspace for r in second if r.workspace is not None]
        shared.append(any(r.start < run.workspace.stop and run.workspace.start < r.stop for r in ranges))

    with Watch(on_run):
        call(arguments)
    return any(shared)


def _quietly(call: _Seeded, arguments: Arguments) -> None:
    try:
        call(arguments)
    except Exception:
        pass  # the other thread's call says it too


def _workspaces(kept: bool, cached: bool, watch: Watch) -> str:
    if kept:
        return "a workspace outlived its call, and two calls at once would share it; keep its size, allocate its bytes in each call"
    if cached:
        return "the plan keeps how large it is, and each call allocates its own"
    if any(run.workspace for run in watch.runs):
        return "two calls at once had workspaces of their own"
    return "calls pass none, though the graph needs one" if watch.needs_workspace else "it needs none"


def _other_than(result: Any) -> Any:
    """A tensor of the same kind, none of whose elements is that of the result."""
    out = _C.empty_like(result)
    return out.copy_(result == 0)


def _out(call: _Seeded, schema: Any, arguments: Arguments) -> Point:
    title, op = "out= form", call.op
    if any(writes for *_, writes in schema[2]):
        return Point(title, True, "it writes tensors of its caller's")
    if op._name.endswith("_backward") or "_backward_" in op._name:
        return Point(title, None, "not applicable: it is a backward pass, whose results autograd allocates")
    for overload in op.overloadpacket.overloads():
        form = getattr(op.overloadpacket, overload)
        parameters = _C._op_schema(form._name)[2]
        written = [name for name, _, keyword, _, writes in parameters if writes and keyword]
        others = [p[:3] for p in parameters if p[0] not in written]
        if form is op or not written or others != [p[:3] for p in schema[2]]:
            continue  # of another overload
        results = call(arguments)
        results = [r for r in (results if isinstance(results, tuple) else (results,)) if isinstance(r, _C.Tensor)]
        outs = {name: _other_than(r) for name, r in zip(written, results)}
        try:
            _Seeded(form, call.state)(arguments, **outs)
            assert_close(list(outs.values()), results[: len(outs)], equal_nan=True)
        except AssertionError as e:
            return Point(title, False, f"{form._name} writes something else than the operator returns: {str(e).splitlines()[0]}")
        except Exception as e:
            return Point(title, False, f"{form._name} does not take tensors like the operator's results: {type(e).__name__}: {e}")
        return Point(title, True, f"{form._name} writes what the operator returns")
    return Point(title, False, f"there is none; declare {op._name}.out(..., *, Tensor(a!) out) -> Tensor(a!)")


def _tensor_names(schema: Any, arguments: Arguments) -> list[str]:
    values = {**dict(zip((row[0] for row in schema[2]), arguments.positional)), **arguments.named}
    names: list[str] = []
    for name, value in values.items():
        if isinstance(value, _C.Tensor):
            names.append(name)
        elif isinstance(value, (list, tuple)):
            names += [f"{name}[{i}]" for i, t in enumerate(value) if isinstance(t, _C.Tensor)]
    return names


def _key(call: _Seeded, schema: Any, arguments: Arguments, uses_graph: bool, own_cache: bool) -> Point:
    title = "the key is complete"
    if not uses_graph:
        return Point(title, None, "not applicable: it runs no graph")
    if not own_cache:
        return Point(title, True, "cached_plan makes it from the arguments: dtypes, sizes, strides and devices")
    try:
        found = call(arguments.changed(lambda _, t: t.to("meta")))
    except Exception as e:
        return Point(title, False, f"it runs on the host but not on the meta device: {e}")
    if not all(t.is_meta for t in (found if isinstance(found, tuple) else (found,)) if isinstance(t, _C.Tensor)):
        return Point(title, False, "tensors of the meta device got results of the host; cached_plan keys by device")
    kernel = python_kernel(call.op, arguments)
    named = names_of(kernel)
    missing = missing_from_key(call, arguments, _tensor_names(schema, arguments), not named or bool(named & {"device", "get_device"}))
    return Point(title, missing is None, missing or "other dtypes, sizes, strides and devices got graphs of their own")


def _overhead(op: Any, arguments: Arguments, limit: float) -> Point:
    """The difference between a call and what it runs in the end."""
    title = "tiny tensors"
    positional, named = arguments
    with no_grad():
        names = {"op": op, "p": positional, "n": named}
        took = nanoseconds("op(*p, **n)", names, 0.005)
        inner: float | None = None
        for plan in every_plan:
            before = plan.cache_info()
            op(*positional, **named)
            if plan.cache_info()[:2] == before[:2]:
                continue
            try:
                g = plan.find(*positional, **named)
            except (TypeError, ValueError):
                break
            inner = nanoseconds("g._execute_with_ptrs(a, w)", _run_of(g), 0.005)
            break
    if inner is None:
        return Point(title, took < 100 * limit, f"a call on tiny tensors takes {took:,.0f} ns, its kernel included")
    outside = took - inner
    return Point(title, outside <= limit,
                 f"a call takes {took:,.0f} ns, {outside:,.0f} ns of them outside of its plan; at most {limit:,.0f} are expected")  # fmt: skip


def _run_of(g: Any) -> dict[str, Any]:
    """Tensors for a plan, and their addresses."""
    kept = []
    for uid in g._get_variant_pack_uids_sorted():
        for number in itertools.count():
            found = graph._builder.get(g._graph, number)
            if found[0] == uid:
                _, _, dim, stride, dtype, *_ = found
                kept.append(_C.empty_strided(dim, stride, dtype=dtype).fill_(1))
                break
    workspace = _C.empty(max(g.get_workspace_size(), 64), dtype=_C.uint8)
    return {"g": g, "a": [t.data_ptr() for t in kept], "w": workspace, "kept": kept}
