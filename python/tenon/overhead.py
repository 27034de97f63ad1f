"""What a call costs beside its kernel, measured on this machine: `tenon bench overhead`.

The rows are those of the table that the cuDNN frontend publishes for its custom operators (docs/adding_torch_custom_ops.md). PyTorch
is measured in the same run, where it is installed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import timeit
from typing import Any, NamedTuple

from . import _C
from .cached_plans import cached_plan
from .library import Library, register_autograd
from .namespaces import namespace

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


class Row(NamedTuple):
    """In nanoseconds; None where there is no such step, or nobody to measure."""

    name: str
    tenon: float | None
    torch: float | None = None
    cudnn: float | None = None


def nanoseconds(statement: str, names: dict[str, Any], seconds: float = 0.02) -> float:
    """What a statement takes: the least of nine runs."""
    timer = timeit.Timer(statement, globals=names)
    count, took = timer.autorange()
    count = max(1, int(count * seconds / max(took, 1e-9)))
    return min(timer.repeat(9, count)) / count * 1e9


@cached_plan(name="overhead::norm")
def _norm(g: Any, x: Any, weight: Any, eps: Any) -> Any:
    return g.rmsnorm("INFERENCE", x, scale=weight, epsilon=eps)[0]


def _tenon_rows(size: int) -> dict[str, float | None]:
    import tenon
    from tenon import graph

    lib = Library("overhead", "FRAGMENT")
    lib.define("norm(Tensor x, Tensor weight, float eps) -> Tensor")
    lib.impl("norm", _norm, "CPU")
    register_autograd(
        "overhead::norm", lambda ctx, grad: (grad, None, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]), lib=lib,
    )  # fmt: skip
    x, weight = tenon.ones(1, size), tenon.ones(size)
    g = _norm.find(x, weight, 1e-6)
    eps, out = tenon.full((), 1e-6, dtype=tenon.float64), tenon.empty(1, size)
    workspace = tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8)
    names = {
        "op": namespace("overhead").norm, "impl": _norm, "x": x, "w": weight, "r": x.detach().requires_grad_(), "empty": tenon.empty,
        "shape": (1, size), "g": g, "pointers": [t.data_ptr() for t in (x, weight, eps, out)], "workspace": workspace,
        "native": tenon.nn.functional.rms_norm, "norm_shape": (size,), "set_stream": graph.set_stream,
        "handle": graph.create_handle("cpu"), "f": lambda x, weight, eps: None,
    }  # fmt: skip

    def time(statement: str) -> float:
        return nanoseconds(statement, names)

    call = time("f(x, w, 1e-6)")
    total, plain, direct = time("op(r, w, 1e-6)"), time("op(x, w, 1e-6)"), time("impl(x, w, 1e-6)")
    allocate, found = time("empty(shape)"), time("impl._find(x, w, 1e-6)")
    execute = time("g._execute_with_ptrs(pointers, workspace)")
    rows: dict[str, float | None] = {
        "dispatch and autograd": total - direct,
        "dispatch alone": plain - direct,
        "set the stream": time("set_stream(handle, 0)"),
        "allocate an output": allocate,
        "key and look-up": found,
        "map of UIDs": max(0.0, direct - found - allocate - execute),
        "execute": execute,
        "total": total,
        "the implementation, without dispatch": direct,
        "native operator": time("native(r, norm_shape, w, 1e-6)"),
        "a call of an empty function": call,
    }
    lib._destroy()
    return rows


def _torch_rows(size: int) -> dict[str, float | None]:
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch  # type: ignore[import-not-found, unused-ignore]

    torch.set_num_threads(1)
    lib = torch.library.Library("tenon_overhead", "DEF")
    lib.define("norm(Tensor x, Tensor weight, float eps) -> Tensor")
    native = torch.nn.functional.rms_norm

    def impl(x: Any, weight: Any, eps: float) -> Any:
        return native(x, (size,), weight, eps)

    lib.impl("norm", impl, "CPU")
    torch.library.register_autograd(
        "tenon_overhead::norm", lambda ctx, grad: (grad, None, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]), lib=lib,
    )  # fmt: skip
    x, weight = torch.ones(1, size), torch.ones(size)
    names = {
        "op": torch.ops.tenon_overhead.norm, "impl": impl, "x": x, "w": weight, "r": x.detach().requires_grad_(),
        "empty": torch.empty, "shape": (1, size), "native": native, "norm_shape": (size,),
    }  # fmt: skip

    def time(statement: str) -> float:
        return nanoseconds(statement, names)

    total, direct = time("op(r, w, 1e-6)"), time("impl(x, w, 1e-6)")
    return {
        "dispatch and autograd": total - direct,
        "dispatch alone": time("op(x, w, 1e-6)") - direct,
        "allocate an output": time("empty(shape)"),
        "total": total,
        "the implementation, without dispatch": direct,
        "native operator": time("native(r, norm_shape, w, 1e-6)"),
    }


def custom_operator(size: int = 16) -> list[Row]:
    """The steps of one call of a custom operator over a graph, on a row of `size` elements."""
    own, peer = _tenon_rows(size), _torch_rows(size)
    return [Row(n, t, peer.get(n), CUDNN[n] * 1e3 if n in CUDNN else None) for n, t in own.items()]


def _lock() -> float | None:
    """What it takes to release the interpreter lock and take it again: a function of C's that does and one that does not."""
    try:
        keeps, releases = (library(None).abs for library in (ctypes.PyDLL, ctypes.CDLL))
    except (OSError, AttributeError):
        return None
    names = {"keeps": keeps, "releases": releases}
    return nanoseconds("releases(1)", names) - nanoseconds("keeps(1)", names)


def one_call() -> list[Row]:
    """Where the time of one built-in call goes: `x + y` of one element."""

    def rows(module: Any) -> dict[str, float]:
        x, y = module.ones(1), module.ones(1)
        names = {
            "add": module.add, "x": x, "y": y, "r": x.detach().requires_grad_(), "empty": module.empty, "shape": (1,),
            "f": lambda x, y: None,
        }  # fmt: skip

        def time(statement: str) -> float:
            return nanoseconds(statement, names)

        binding, added = time("x.is_floating_point()"), time("add(x, y)")
        return {
            "a call of an empty function of Python": time("f(x, y)"),
            "binding: a method that computes nothing": binding,
            "dispatch, checks, result and kernel": added - binding,
            "autograd: one argument requires grad": time("add(r, y)") - added,
            "add(x, y)": added,
            "for comparison: an empty tensor": time("empty(shape)"),
        }

    import tenon

    own = rows(tenon)
    peer: dict[str, float] = {}
    if importlib.util.find_spec("torch") is not None:
        import torch

        peer = rows(torch)
    found = [Row(name, value, peer.get(name)) for name, value in own.items()]
    return [Row("the interpreter lock, which large kernels release", _lock()), *found]


def ten_thousand(count: int = 10_000) -> tuple[float, float]:
    """`r[i] = r[i] * 2 + 1` for every i, and the same of all at once: nanoseconds for an element."""
    import tenon

    names = {"r": tenon.ones(count), "count": count}
    loop = min(timeit.Timer("for i in range(count): r[i] = r[i] * 2 + 1", globals=names).repeat(3, 1)) / count * 1e9
    return loop, nanoseconds("r * 2 + 1", names) / count


def _print(title: str, rows: list[Row], with_cudnn: bool) -> None:
    print(f"\n{title:52}{'Tenon':>10}{'PyTorch':>10}" + (f"{'cuDNN frontend':>16}" if with_cudnn else ""))
    for row in rows:
        cells = [row.tenon, row.torch, *([row.cudnn] if with_cudnn else [])]
        widths = (10, 10, 16)
        print(f"  {row.name:50}" + "".join(f"{'-' if c is None else format(c, ',.0f'):>{w}}" for c, w in zip(cells, widths)))


def report(as_json: bool = False) -> None:
    """Prints all of it."""
    before = _C.get_num_threads()
    _C.set_num_threads(1)
    try:
        operator, call, (loop, vectorised) = custom_operator(), one_call(), ten_thousand()
    finally:
        _C.set_num_threads(before)
    if as_json:
        import json

        print(json.dumps({"custom operator": [r._asdict() for r in operator], "one call": [r._asdict() for r in call],
                          "loop of 10,000": {"loop": loop, "vectorised": vectorised}}, indent=2))  # fmt: skip
        return
    print("In nanoseconds, one thread. The cuDNN frontend's column is what it publishes; the others are measured here.")
    if all(row.torch is None for row in operator):
        print("PyTorch is not installed here.")
    _print("One call of a custom operator over a graph", operator, with_cudnn=True)
    _print("One call of a built-in operator", call, with_cudnn=False)
    print(f"\n10,000 x r[i] = r[i]*2+1: {loop:,.0f} ns a turn, {loop / 5:,.0f} ns an operator; "
          f"one vectorised call: {vectorised:.2f} ns an element, {loop / vectorised:,.0f} times less")  # fmt: skip
