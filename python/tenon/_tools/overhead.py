"""What a call costs besides its kernel, measured on this machine: `tenon bench overhead`.

A call is measured up to each of its steps, so that a step is the difference between two measurements and all steps add up to the
whole call. The rows are those of the table that the cuDNN frontend publishes for its custom operators
(docs/adding_torch_custom_ops.md). PyTorch is measured in the same run, where it is installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import timeit
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, graph
from .._program.cached_plans import cached_plan
from ..library import Library, register_autograd
from ..namespaces import find_operator, namespace
from .op_arguments import Arguments, arguments_for, python_kernel
from .op_watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

#: In microseconds, from that page: what each step of a call costs there.
CUDNN = {
    "dispatch and autograd": 25.0,
    "set the stream": 5.0,
    "allocate an output": 2.0,
    "key and look-up": 1.5,
    "map of UIDs": 1.0,
    "execute": 19.0,
    "total": 52.0,
    "native operator": 18.0,
}

_ROUNDS = 15


class Rung(NamedTuple):
    """A call up to the end of one of its steps: what that step is called, and a statement that gets so far."""

    step: str
    statement: str
    names: dict[str, Any]
    #: What holds while it is measured.
    context: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext


class Row(NamedTuple):
    """In nanoseconds. `tenon` is None where it is below the noise."""

    name: str
    tenon: float | None
    noise: float
    torch: float | None = None
    cudnn: float | None = None


def nanoseconds(statement: str, names: dict[str, Any], seconds: float = 0.02) -> float:
    """What a statement takes: the least of nine runs."""
    timer = timeit.Timer(statement, globals=names)
    count, took = timer.autorange()
    count = max(1, int(count * seconds / max(took, 1e-9)))
    return min(timer.repeat(9, count)) / count * 1e9


def measure(rungs: list[Rung], rounds: int = _ROUNDS, seconds: float = 0.002) -> list[list[float]]:
    """Nanoseconds of each rung in each round. All rungs take part in a round, so that what slows the machine slows all."""
    timers = [timeit.Timer(rung.statement, globals=rung.names) for rung in rungs]
    counts = []
    for rung, timer in zip(rungs, timers):
        with rung.context():
            count, took = timer.autorange()
        counts.append(max(1, int(count * seconds / max(took, 1e-9))))
    found: list[list[float]] = [[] for _ in rungs]
    for _ in range(rounds):
        for rung, timer, count, values in zip(rungs, timers, counts, found):
            with rung.context():
                values.append(timer.timeit(count) / count * 1e9)
    return found


def spread(values: list[float]) -> float:
    """By how much the fastest quarter of the rounds differs."""
    ordered = sorted(values)
    return ordered[len(ordered) // 4] - ordered[0]


def steps(names: list[str], measured: list[list[float]]) -> list[Row]:
    """The steps of a call from measurements that end after each of them, and "total", to which they add up.

    Up to a step a call takes the least of the rounds, and no longer than up to a later one. A step that is not above the noise of its
    two measurements has no figure: its time counts to the next step, or at the end to the last one that has a figure.
    """
    least = [min(values) for values in measured]
    for i in reversed(range(len(least) - 1)):
        least[i] = min(least[i], least[i + 1])
    rows: list[Row] = []
    reached, noise_there, last = 0.0, 0.0, 0
    for name, values, until in zip(names, measured, least):
        took, noise = until - reached, max(spread(values), noise_there)
        if rows and took <= noise:
            rows.append(Row(name, None, noise))
            continue
        last = len(rows)
        rows.append(Row(name, took, noise))
        reached, noise_there = until, spread(values)
    rows[last] = rows[last]._replace(tenon=(rows[last].tenon or 0.0) + least[-1] - reached)
    return [*rows, Row("total", least[-1], spread(measured[-1]))]


def apart(name: str, values: list[float]) -> Row:
    """What is measured by itself."""
    return Row(name, min(values), spread(values))


def difference(name: str, larger: list[float], smaller: list[float]) -> Row:
    """What is known as the difference of two measurements."""
    took, noise = min(larger) - min(smaller), max(spread(larger), spread(smaller))
    return Row(name, took if took > noise else None, noise)


def _with_peers(rows: list[Row], peer: dict[str, float | None]) -> list[Row]:
    return [row._replace(torch=peer.get(row.name), cudnn=CUDNN[row.name] * 1e3 if row.name in CUDNN else None) for row in rows]


def _call_of(function: str, arguments: Arguments, names: dict[str, Any], first: str = "") -> str:
    """The statement that calls a function with arguments, which get names."""
    parts = [first] if first else []
    for i, value in enumerate(arguments.positional):
        names[f"a{i}"] = value
        parts.append(f"a{i}")
    for name, value in arguments.named.items():
        names[f"n_{name}"] = value
        parts.append(f"{name}=n_{name}")
    return f"{function}({', '.join(parts)})"


def _plan_rungs(plan: Any, arguments: Arguments) -> list[Rung]:
    """A call of a `cached_plan`, step by step."""
    names = {"plan": plan, "until": plan._until}
    statements = [_call_of("until", arguments, names, str(step)) for step in range(3)] + [_call_of("plan", arguments, names)]
    return [Rung(step, s, names) for step, s in zip(("key and look-up", "allocate an output", "map of UIDs", "execute"), statements)]


def _nothing_runs() -> AbstractContextManager[None]:
    """Graphs that an operator's author wrote down are not run."""

    def nothing(*_: Any) -> None:
        pass

    return graph._replaced_builder(execute=nothing, execute_ptrs=nothing)


def _kernel_rungs(op: Any, arguments: Arguments) -> list[Rung]:
    """A call of an operator's kernel, in the steps that can be separated; none where it is no function of Python."""
    kernel = python_kernel(op, arguments)
    if kernel is None:
        return []
    if isinstance(kernel, _C.CachedPlan):
        return _plan_rungs(kernel, arguments)
    names: dict[str, Any] = {"kernel": kernel}
    whole = _call_of("kernel", arguments, names)
    with Watch() as watch:
        kernel(*arguments.positional, **arguments.named)
    if watch.runs:
        own = "the kernel without its graph: key, look-up, outputs, UIDs"
        return [Rung(own, whole, names, _nothing_runs), Rung("execute", whole, names)]
    for plan in watch.plans:
        try:
            plan.find(*arguments.positional, **arguments.named)
        except (TypeError, ValueError):
            continue  # it is called with other arguments than the operator
        return [*_plan_rungs(plan, arguments), Rung("the kernel's lines around its plan", whole, names)]
    return [Rung("the kernel", whole, names)]


def _recording(arguments: Arguments) -> Arguments:
    """The same, with arguments that require grad where they can."""
    return arguments.changed(lambda _, t: t.detach().requires_grad_() if t.is_floating_point() else t)


def operator_rungs(op: Any, arguments: Arguments) -> list[Rung]:
    """A call of an operator, step by step."""
    plain = arguments.changed(lambda _, t: t.detach())
    rungs = _kernel_rungs(op, plain)
    names: dict[str, Any] = {"op": op}
    called = Rung("dispatch" if rungs else "dispatch and the kernel, which is no function of Python", _call_of("op", plain, names), names)
    names = {"op": op}
    recorded = Rung("dispatch and autograd" if rungs else "autograd", _call_of("op", _recording(arguments), names), names)
    try:
        op(*_recording(arguments).positional, **_recording(arguments).named)
    except Exception:
        return [*rungs, called]  # it takes no arguments that require grad
    return [*rungs, recorded] if rungs else [called, recorded]


def _operator_rows(op: Any, arguments: Arguments) -> list[Row]:
    """The steps of a call, then what dispatch alone is."""
    rungs = operator_rungs(op, arguments)
    names: dict[str, Any] = {"op": op}
    plain = Rung("", _call_of("op", arguments.changed(lambda _, t: t.detach()), names), names)
    measured = measure([*rungs, plain])
    rows = steps([rung.step for rung in rungs], measured[:-1])
    if rungs[-1].step == "dispatch and autograd":
        rows.append(difference("  dispatch alone", measured[-1], measured[len(rungs) - 2]))
    return rows


def user_operator(full_name: str, given: str | None = None) -> list[Row]:
    """The steps of one call of an operator. Raises LookupError if there is none, ValueError if no arguments for it are known."""
    op = find_operator(full_name)
    schema = _C._op_schema(op._name)
    arguments = arguments_for(op, schema, given)
    return _with_peers(_operator_rows(op, arguments), _torch_steps(schema[0], op, arguments))


@cached_plan(name="overhead::norm")
def _norm(g: Any, x: Any, weight: Any, eps: Any) -> Any:
    return g.rmsnorm("INFERENCE", x, scale=weight, epsilon=eps)[0]


def custom_operator(size: int = 16) -> list[Row]:
    """The steps of one call of a custom operator over a graph, on a row of `size` elements, then what to compare it with."""
    import tenon

    lib = Library("overhead", "FRAGMENT")
    lib.define("norm(Tensor x, Tensor weight, float eps) -> Tensor")
    lib.impl("norm", _norm, "CPU")
    register_autograd(
        "overhead::norm", lambda ctx, grad: (grad, None, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]), lib=lib,
    )  # fmt: skip
    x, weight = tenon.ones(1, size), tenon.ones(size)
    names = {
        "x": x, "w": weight, "r": x.detach().requires_grad_(), "native": tenon.nn.functional.rms_norm, "shape": (size,),
        "set_stream": graph.set_stream, "handle": graph.create_handle("cpu"), "f": lambda x, weight, eps: None,
    }  # fmt: skip
    compared = {
        "native operator": "native(r, shape, w, 1e-6)",
        "set the stream": "set_stream(handle, 0)",
        "a call of an empty function": "f(x, w, 1e-6)",
    }
    try:
        rows = _operator_rows(namespace("overhead").norm.default, Arguments((x, weight, 1e-6), {}))
    finally:
        lib._destroy()
    measured = measure([Rung(name, statement, names) for name, statement in compared.items()])
    rows += [apart(name, values) for name, values in zip(compared, measured)]
    return _with_peers(rows, _torch_norm(size))


def _torch() -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch  # type: ignore[import-not-found, unused-ignore]

    torch.set_num_threads(1)
    return torch


def _torch_operator(torch: Any, schema: str, impl: Any, arguments: Arguments, recorded: Arguments) -> dict[str, float | None]:
    """What PyTorch's dispatch and autograd add to a kernel of Python, for an operator of the same schema."""
    lib = torch.library.Library("tenon_overhead", "FRAGMENT")
    name = schema.partition("(")[0]
    lib.define(schema)
    lib.impl(name, impl, "CPU")
    count = len(arguments.positional) + len(arguments.named)
    torch.library.register_autograd(
        f"tenon_overhead::{name}", lambda ctx, *grads: (None,) * count,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]), lib=lib,
    )  # fmt: skip
    names: dict[str, Any] = {"impl": impl, "op": getattr(torch.ops.tenon_overhead, name)}
    alone, plain = _call_of("impl", arguments, names), _call_of("op", arguments, names)
    tracked = dict(names)
    rungs = [Rung("", alone, names), Rung("", plain, names), Rung("", _call_of("op", recorded, tracked), tracked)]
    direct, dispatched, whole = measure(rungs)
    both = difference("", whole, direct)
    return {"dispatch and autograd": both.tenon, "  dispatch alone": difference("", dispatched, direct).tenon, "total": min(whole)}


def _torch_norm(size: int) -> dict[str, float | None]:
    torch = _torch()
    if torch is None:
        return {}
    native = torch.nn.functional.rms_norm
    x, weight = torch.ones(1, size), torch.ones(size)
    recorded = x.detach().requires_grad_()
    found = _torch_operator(
        torch, "norm(Tensor x, Tensor weight, float eps) -> Tensor", lambda x, weight, eps: native(x, (size,), weight, eps),
        Arguments((x, weight, 1e-6), {}), Arguments((recorded, weight, 1e-6), {}),
    )  # fmt: skip
    names = {"r": recorded, "w": weight, "native": native, "shape": (size,), "empty": torch.empty}
    rungs = [Rung("native operator", "native(r, shape, w, 1e-6)", names), Rung("allocate an output", "empty(1, *shape)", names)]
    return {**found, **{rung.step: min(values) for rung, values in zip(rungs, measure(rungs))}}


def _torch_steps(schema: str, op: Any, arguments: Arguments) -> dict[str, float | None]:
    """PyTorch's dispatch of an operator of the same schema, whose kernel makes results of the same sizes."""
    torch = _torch()
    if torch is None or not arguments.tensors():
        return {}
    results = op(*arguments.positional, **arguments.named)
    single = not isinstance(results, tuple)

    def like(t: Any) -> Any:
        return torch.from_dlpack(t.detach()) if isinstance(t, _C.Tensor) else t

    results = tuple(map(like, (results,) if single else results))
    made = torch.empty_like

    def impl(*_: Any, **__: Any) -> Any:
        return made(results[0]) if single else tuple(map(made, results))

    converted = Arguments(tuple(map(like, arguments.positional)), {name: like(v) for name, v in arguments.named.items()})
    leaves = Arguments(
        tuple(v.clone().requires_grad_() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in converted.positional),
        converted.named,
    )
    try:
        found = _torch_operator(torch, schema.partition("::")[2], impl, converted, leaves)
    except Exception:
        return {}  # PyTorch has no such argument type
    found.pop("total")  # its kernel is another
    return found


def _lock() -> Row | None:
    """What it takes to release the interpreter lock and take it again: a function of C's that does and one that does not."""
    try:
        keeps, releases = (library(None).abs for library in (ctypes.PyDLL, ctypes.CDLL))
    except (OSError, AttributeError):
        return None
    names = {"keeps": keeps, "releases": releases}
    measured = measure([Rung("", "releases(1)", names), Rung("", "keeps(1)", names)])
    return difference("the interpreter lock, which large kernels release", *measured)


def one_call() -> list[Row]:
    """Where the time of one built-in call goes: `x + y` of one element, where one requires grad."""

    def rows(module: Any) -> list[Row]:
        x, y = module.ones(1), module.ones(1)
        names = {
            "add": module.add, "x": x, "y": y, "r": x.detach().requires_grad_(), "empty": module.empty, "shape": (1,),
            "f": lambda x, y: None,
        }  # fmt: skip
        rungs = [
            Rung("binding: a method that computes nothing", "x.is_floating_point()", names),
            Rung("dispatch, checks, result and kernel", "add(x, y)", names),
            Rung("autograd: one argument requires grad", "add(r, y)", names),
        ]
        compared = {"for comparison: an empty tensor": "empty(shape)", "a call of an empty function of Python": "f(x, y)"}
        measured = measure([*rungs, *(Rung(name, statement, names) for name, statement in compared.items())])
        found = steps([rung.step for rung in rungs], measured[: len(rungs)])
        return found + [apart(name, values) for name, values in zip(compared, measured[len(rungs) :])]

    import tenon

    torch = _torch()
    peer = {row.name: row.tenon for row in rows(torch)} if torch else {}
    found, lock = [row._replace(torch=peer.get(row.name)) for row in rows(tenon)], _lock()
    return [*found, lock] if lock else found


def ten_thousand(count: int = 10_000) -> tuple[float, float]:
    """`r[i] = r[i] * 2 + 1` for every i, and the same of all at once: nanoseconds for an element."""
    import tenon

    names = {"r": tenon.ones(count), "count": count}
    loop = min(timeit.Timer("for i in range(count): r[i] = r[i] * 2 + 1", globals=names).repeat(3, 1)) / count * 1e9
    return loop, nanoseconds("r * 2 + 1", names) / count


def _print(title: str, rows: list[Row], with_cudnn: bool) -> None:
    print(f"\n{title:58}{'Tenon':>16}{'noise':>8}{'PyTorch':>10}" + (f"{'cuDNN frontend':>16}" if with_cudnn else ""))

    def cell(value: float | None) -> str:
        return "-" if value is None else format(value, ",.0f")

    for row in rows:
        own = "below the noise" if row.tenon is None else cell(row.tenon)
        print(f"  {row.name:56}{own:>16}{cell(row.noise):>8}{cell(row.torch):>10}" + (f"{cell(row.cudnn):>16}" if with_cudnn else ""))
        if row.name == "total":
            print()


def report(as_json: bool = False, operator: str | None = None, given: str | None = None) -> None:
    """Prints all of it, or the steps of one operator."""
    before = _C.get_num_threads()
    _C.set_num_threads(1)
    try:
        tables = {"custom operator": user_operator(operator, given) if operator else custom_operator()}
        if not operator:
            tables["one call"], (loop, vectorised) = one_call(), ten_thousand()
    finally:
        _C.set_num_threads(before)
    if as_json:
        import json

        found: dict[str, Any] = {name: [row._asdict() for row in rows] for name, rows in tables.items()}
        if not operator:
            found["loop of 10,000"] = {"loop": loop, "vectorised": vectorised}
        print(json.dumps(found, indent=2))
        return
    print(f"In nanoseconds, one thread: the least of {_ROUNDS} rounds. The rows above a total add up to it. The noise is by how much the "
          "fastest quarter\nof the rounds differs; a step below it has no figure, and its time is in the next one. The cuDNN frontend's column "
          "is what it publishes;\nthe others are measured here." + ("" if _torch() else " PyTorch is not installed here."))  # fmt: skip
    _print(f"One call of {operator}" if operator else "One call of a custom operator over a graph", tables["custom operator"], with_cudnn=True)
    if operator:
        return
    _print("One call of a built-in operator", tables["one call"], with_cudnn=False)
    print(f"\n10,000 x r[i] = r[i]*2+1: {loop:,.0f} ns a turn, {loop / 5:,.0f} ns an operator; "
          f"one vectorised call: {vectorised:.2f} ns an element, {loop / vectorised:,.0f} times less")  # fmt: skip
