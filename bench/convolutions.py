"""Convolutions: Tenon, PyTorch where it is installed, and the ratio, alternated in one run on one pinned core.

Usage: convolutions.py [--threads N] [--core N] [--rows PATTERN]

Layouts are NCHW; sizes are those that models have. With more than one thread, no core is pinned.
"""

import argparse
import importlib
import os
import re
import time


def best_us(function, calls=10):
    """The fastest of some calls: noise only ever adds."""
    function()
    best = float("inf")
    for _ in range(calls):
        start = time.perf_counter_ns()
        function()
        best = min(best, (time.perf_counter_ns() - start) / 1e3)
    return best


#: name, function, shapes of input and weight, options
ROWS = [
    ("conv2d 8x32x28x28 k3 to 64", "conv2d", (8, 32, 28, 28), (64, 32, 3, 3), {"padding": 1}),
    ("conv2d depthwise 8x32x28x28 k3", "conv2d", (8, 32, 28, 28), (32, 1, 3, 3), {"padding": 1, "groups": 32}),
    ("conv2d 8x32x28x28 1x1 to 64", "conv2d", (8, 32, 28, 28), (64, 32, 1, 1), {}),
    ("conv2d 3x224x224 k7 stride 2 to 64", "conv2d", (1, 3, 224, 224), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
    ("conv2d 64x56x56 k3 to 64", "conv2d", (1, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
    ("conv2d 512x7x7 k3 to 512", "conv2d", (1, 512, 7, 7), (512, 512, 3, 3), {"padding": 1}),
    ("conv_transpose2d 8x32x28x28 k3 stride 2 to 64", "conv_transpose2d", (8, 32, 28, 28), (32, 64, 3, 3), {"stride": 2, "padding": 1}),
    ("conv_transpose2d 8x32x28x28 k3 to 64", "conv_transpose2d", (8, 32, 28, 28), (32, 64, 3, 3), {"padding": 1}),
    ("conv1d 8x64x1024 k3 to 64", "conv1d", (8, 64, 1024), (64, 64, 3), {"padding": 1}),
]  # fmt: skip


def rows(framework, arrays):
    """(name, function) of each row, for a framework with PyTorch's names."""
    functional = framework.nn.functional
    for name, function, x, w, options in ROWS:
        x, w = (framework.from_numpy(arrays[name][i]) for i in range(2))
        call = getattr(functional, function)
        yield name, lambda call=call, x=x, w=w, options=options: call(x, w, **options)
        if name.startswith(("conv2d 8x32x28x28 k3", "conv2d depthwise")):
            grad = framework.from_numpy(arrays[name][2])
            numbers = ([1, 1], [1, 1], [1, 1], False, [0, 0], options.get("groups", 1))
            backward = framework.ops.aten.convolution_backward
            for part, mask in (("input", [True, False, False]), ("weight", [False, True, False])):
                yield (
                    f"{name}, gradient of the {part}",
                    lambda x=x, w=w, g=grad, n=numbers, m=mask: backward(g, x, w, None, *n, m),
                )
        if name == ROWS[0][0]:
            last = x.contiguous(memory_format=framework.channels_last)
            yield name + ", channels-last", lambda last=last, w=w, call=call, options=options: call(last, w, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--rows", default="")
    given = parser.parse_args()
    if given.threads == 1:
        os.sched_setaffinity(0, {given.core})
    import numpy

    rng = numpy.random.default_rng(1)
    arrays = {
        name: [rng.standard_normal(s).astype(numpy.float32) for s in (x, w, (x[0], w[0], *x[2:]))]
        for name, _, x, w, _ in ROWS
    }
    measured = {}
    for framework in ("tenon", "torch"):
        try:
            module = importlib.import_module(framework)
        except ImportError:
            if framework == "tenon":
                raise
            continue
        module.set_num_threads(given.threads)
        measured[framework] = [r for r in rows(module, arrays) if re.search(given.rows, r[0])]
    print(f"{'':66}{'Tenon us':>10}{'PyTorch us':>12}{'ratio':>7}")
    for i, (name, ours) in enumerate(measured["tenon"]):
        theirs = measured["torch"][i][1] if "torch" in measured else None
        times = [(best_us(ours), best_us(theirs) if theirs else float("nan")) for _ in range(5)]
        tenon_us, torch_us = (min(t) for t in zip(*times))
        print(f"{name:66}{tenon_us:10.0f}{torch_us:12.0f}{tenon_us / torch_us:7.2f}")


if __name__ == "__main__":
    main()
