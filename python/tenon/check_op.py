"""`tenon check-op ns::name`: nine points of a fast custom operator, each observed where it can be.

The operator is called on tiny arguments while what it does with graphs is watched: what is built, which UIDs tensors get, how plans
are executed and in which workspaces. The points are those that the cuDNN frontend recommends to authors of operators.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, NamedTuple

from . import _C, graph
from .autograd.grad_mode import no_grad
from .cached_plans import every_plan
from .namespaces import namespace
from .overhead import nanoseconds

#: What a call may cost beside its kernel, in nanoseconds.
LIMIT = 2000.0


class Point(NamedTuple):
    """`holds` is None where the point does not apply."""

    name: str
    holds: bool | None
    sentence: str


class _Watch:
    """What happens to graphs and plans while it is active."""

    def __init__(self) -> None:
        self.built = self.by_pointers = self.by_pack = self.handles = 0
        self.automatic: set[str] = set()
        self.workspaces: list[Any] = []
        self.plans: list[Any] = []
        self.needs_workspace = False

    def __enter__(self) -> _Watch:
        self._builder = graph._builder
        self._handle = graph.Handle
        self._counts = {plan: plan.cache_info() for plan in every_plan}
        watch, builder = self, self._builder

        class Builder:
            def __getattr__(self, name: str) -> Any:
                return getattr(builder, name)

            def build_plans(self, g: Any, *rest: Any) -> Any:
                watch.built += 1
                return builder.build_plans(g, *rest)

            def validate(self, g: Any) -> Any:
                before = watch._unnamed(g)
                result = builder.validate(g)
                watch.automatic.update(before)
                return result

            def execute(self, g: Any, pack: Any, workspace: Any, *rest: Any) -> Any:
                watch.by_pack += 1
                watch._keep(g, workspace)
                return builder.execute(g, pack, workspace, *rest)

            def execute_ptrs(self, g: Any, addresses: Any, workspace: Any, *rest: Any) -> Any:
                watch.by_pointers += 1
                watch._keep(g, workspace)
                return builder.execute_ptrs(g, addresses, workspace, *rest)

        class Handle(self._handle):  # type: ignore[name-defined, misc]
            def __init__(self, *args: Any) -> None:
                watch.handles += 1
                super().__init__(*args)

        graph._builder, graph.Handle = Builder(), Handle  # type: ignore[assignment, misc]
        return self

    def __exit__(self, *_: object) -> None:
        graph._builder, graph.Handle = self._builder, self._handle  # type: ignore[misc]
        for plan in every_plan:
            before, now = self._counts.get(plan, (0, 0)), plan.cache_info()
            if now[:2] == before[:2]:
                continue
            self.plans.append(plan)
            self.built += now.misses - before[1]
            self.by_pointers += now.hits + now.misses - before[0] - before[1]

    def _unnamed(self, g: Any) -> set[str]:
        """Tensors of addresses without a UID of the author's."""
        found: set[str] = set()
        for number in itertools.count():
            try:
                uid, name, _, _, _, is_output, is_virtual, _ = self._builder.get(g, number)
            except IndexError:
                return found
            if uid == 0 and (is_output or not is_virtual):
                found.add(name or f"tensor {number}")
        return found

    def _keep(self, g: Any, workspace: Any) -> None:
        self.needs_workspace |= self._builder.workspace_size(g, None) > 0
        if isinstance(workspace, _C.Tensor):
            self.workspaces.append(weakref.ref(workspace))


def _tiny(name: str, type_text: str, width: int, shape: tuple[int, ...]) -> Any:
    """An argument of a type, of which most operators have some use."""
    if type_text == "Tensor":
        return _C.ones(width) if name in ("weight", "bias", "gamma", "beta") else _C.ones(shape)
    if type_text.endswith("?"):
        return None
    plain = {"int": 1, "float": 1e-3 if "eps" in name else 1.0, "bool": False, "str": "", "Scalar": 1.0}
    if type_text.startswith(("int[", "SymInt[")):
        return [width]
    if type_text in ("Tensor[]",):
        return [_C.ones(shape), _C.ones(shape)]
    return plain.get(type_text.replace("SymInt", "int"))


def _arguments(op: Any, schema: Any, given: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments that the operator takes: those that were given as an expression, or guessed ones. Raises ValueError."""
    if given is not None:
        import tenon

        value = eval(given, {"tenon": tenon, "torch": tenon})
        return (value if isinstance(value, tuple) else (value,)), {}
    error: Exception | None = None
    for shape in ((2, 4), (1, 2, 3, 4), (2, 3, 4), (4,), (4, 4)):
        positional, named = [], {}
        for name, type_text, keyword_only, _, _ in schema[2]:
            value = _tiny(name, type_text, shape[-1], shape)
            if keyword_only:
                named[name] = value
            else:
                positional.append(value)
        try:
            op(*positional, **named)
        except Exception as e:
            error = e
            continue
        return tuple(positional), named
    raise ValueError(f"no guess fits it ({error}); pass arguments: --arguments '(tenon.ones(2, 4), 1e-5)'")


def check(full_name: str, given: str | None = None, limit: float = LIMIT) -> list[Point]:
    """The nine points of an operator. Raises LookupError if there is none, ValueError if no arguments for it are known."""
    from . import library

    ns, _, name = full_name.partition("::")
    if not ns or not name:
        raise LookupError(f"'{full_name}' is not an operator's name, expected 'namespace::name'")
    if ns == "tenon":
        from . import ops  # noqa: F401  registers them
    base, _, overload = name.partition(".")
    try:
        packet = getattr(namespace(ns), base)
    except AttributeError as e:
        raise LookupError(str(e)) from None
    op = getattr(packet, overload or packet.overloads()[0])
    full_name = op._name
    schema = _C._op_schema(full_name)
    positional, named = _arguments(op, schema, given)

    def call() -> Any:
        with no_grad():
            return op(*positional, **named)

    with _Watch() as first:
        call()
    alive = any(w() is not None for w in first.workspaces)
    with _Watch() as later:
        for _ in range(3):
            call()
    alive = alive or any(w() is not None for w in later.workspaces)
    uses_graph = bool(first.by_pack + first.by_pointers + first.built)
    cached = bool(later.plans)
    no_graph = "not applicable: it runs no graph"

    def of_graph(name: str, holds: bool, sentence: str) -> Point:
        return Point(name, holds, sentence) if uses_graph else Point(name, None, no_graph)

    decorated = full_name in library._custom
    points = [
        Point("direct registration", True,
              "custom_op made it, which registers as define and impl do and costs no more here" if decorated
              else "it is registered by define and impl"),
        of_graph("the graph is cached", later.built == 0,
                 "three further calls built nothing" if later.built == 0
                 else f"three further calls built {later.built} graphs; keep the graph, and the order of its UIDs: cached_plan does"),
        of_graph("executed by addresses", later.by_pack == 0 and later.by_pointers > 0,
                 "calls pass addresses in the order of the UIDs" if later.by_pack == 0
                 else "calls pass a dictionary to execute; pass addresses to _execute_with_ptrs"),
        of_graph("explicit UIDs", cached or not first.automatic,
                 "its arguments' places are its UIDs" if cached
                 else "every tensor that a caller brings has a UID of its author's" if not first.automatic
                 else f"UIDs of {', '.join(sorted(first.automatic))} are given automatically; set them, from an IntEnum"),
        of_graph("one handle for a device", later.handles == 0,
                 "no further call made a handle" if later.handles == 0
                 else f"three further calls made {later.handles} handles; create_handle gives the one of a device"),
        of_graph("a workspace for each call", not alive, _workspaces(alive, cached, later)),
        _out(packet, op, schema, positional, named),
        _device(op, positional, named, uses_graph, cached),
        _overhead(op, positional, named, limit),
    ]  # fmt: skip
    return points


def _workspaces(alive: bool, cached: bool, watch: _Watch) -> str:
    if alive:
        return "a workspace outlived its call, and two calls at once would share it; keep its size, allocate its bytes in each call"
    if cached:
        return "the plan keeps how large it is, and each call allocates its own"
    if watch.workspaces:
        return "workspaces did not outlive their calls"
    return "workspaces come as addresses, whose owner cannot be seen" if watch.needs_workspace else "it needs none"


def _out(packet: Any, op: Any, schema: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> Point:
    title = "out= form"
    if any(writes for *_, writes in schema[2]):
        return Point(title, True, "it writes tensors of its caller's")
    if op._name.endswith("_backward") or "_backward_" in op._name:
        return Point(title, None, "not applicable: it is a backward pass, whose results autograd allocates")
    for overload in packet.overloads():
        form = getattr(packet, overload)
        arguments = _C._op_schema(form._name)[2]
        written = [name for name, _, keyword, _, writes in arguments if writes and keyword]
        others = [argument[:3] for argument in arguments if argument[0] not in written]
        if form is op or not written or others != [argument[:3] for argument in schema[2]]:
            continue  # of another overload
        with no_grad():
            results = op(*positional, **named)
            results = results if isinstance(results, tuple) else (results,)
            outs = {name: _C.empty_like(r) for name, r in zip(written, results)}
            form(*positional, **named, **outs)
        same = all(_C.equal(o, r) for o, r in zip(outs.values(), results))
        return Point(title, same, f"{form._name} writes what the operator returns" if same
                     else f"{form._name} writes something else than the operator returns")  # fmt: skip
    return Point(title, False, f"there is none; declare {op._name}.out(..., *, Tensor(a!) out) -> Tensor(a!)")


def _device(op: Any, positional: tuple[Any, ...], named: dict[str, Any], uses_graph: bool, cached: bool) -> Point:
    title = "the device is part of the key"

    def to_meta(value: Any) -> Any:
        return value.to("meta") if isinstance(value, _C.Tensor) else value

    if not uses_graph:
        return Point(title, None, "not applicable: it runs no graph")
    if cached:
        return Point(title, True, "cached_plan reads it from the arguments")
    try:
        with no_grad():
            found = op(*map(to_meta, positional), **{k: to_meta(v) for k, v in named.items()})
    except Exception as e:
        return Point(title, False, f"it does not run on the meta device, beside the host: {e}")
    found = found if isinstance(found, tuple) else (found,)
    right = all(t.is_meta for t in found if isinstance(t, _C.Tensor))
    return Point(title, right, "tensors of another device got results there" if right
                 else "tensors of the meta device got results of the host; cached_plan keys by device")  # fmt: skip


def _overhead(op: Any, positional: tuple[Any, ...], named: dict[str, Any], limit: float) -> Point:
    """The difference between a call and what it runs in the end."""
    title = "tiny tensors"
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
    beside = took - inner
    return Point(title, beside <= limit,
                 f"a call takes {took:,.0f} ns, of which {beside:,.0f} ns beside its plan; at most {limit:,.0f} are expected")  # fmt: skip


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
