"""What a custom operator written in Python costs over the plain Python call of its kernel.

    PYTHONPATH=build/release/python python bench/custom_operator.py

One pinned core; the operator and the function alternate in one run, and the smallest of many rounds counts.
"""

import os
import time

import tenon
from tenon.library import Library, custom_op, register_autograd

# Rounds shorter than a time slice, so that a busy machine leaves some of them alone.
CALLS, ROUNDS = 500, 600


def rounds(cases, arguments):
    """Nanoseconds a call, by case."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, function in cases.items():
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                function(*arguments)
            best[name] = min(best[name], (time.perf_counter_ns() - start) / CALLS)
    return best


def main():
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    empty = tenon.empty

    def kernel(x, y, s):
        return empty(1)

    def annotated(x: tenon.Tensor, y: tenon.Tensor, s: float) -> tenon.Tensor:
        return empty(1)

    def setup_context(ctx, inputs, output):
        x, y, s = inputs
        ctx.save_for_backward(x, y)
        ctx.s = s

    def backward(ctx, grad):
        return grad, grad, None

    lib = Library("bench", "DEF")
    lib.define("f(Tensor x, Tensor y, float s) -> Tensor")
    lib.impl("f", kernel, "CPU")
    register_autograd("bench::f", backward, setup_context=setup_context, lib=lib)
    cases = {
        "plain function": kernel,
        "tenon.ops (define, impl)": tenon.ops.bench.f,
        "custom_op": custom_op("bench::g", annotated, mutates_args=()),
    }
    x, y = tenon.ones(1), tenon.ones(1)
    for title, first in (("no grad", x), ("with grad", tenon.ones(1, requires_grad=True))):
        recorded = {k: f for k, f in cases.items() if title == "no grad" or k != "custom_op"}
        best = rounds(recorded, (first, y, 2.0))
        plain = best["plain function"]
        for name, t in best.items():
            print(f"{title:10} {name:26} {t:7.0f} ns  over the plain call {t - plain:6.0f} ns")


if __name__ == "__main__":
    main()
