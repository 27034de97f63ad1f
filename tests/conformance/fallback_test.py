"""Every operator on a device that has byte copies alone, and nothing else: what it lacks runs on host copies.

The device (tests/ops/blind_device.h) has addresses that the host cannot read, and its work runs only when somebody waits, so
that a hidden access faults and a missing wait is seen. The kit compares: results have the host's bits, strides and dtypes;
what is written is the tensor that was given.
"""

import os
import pathlib
import subprocess
import sys

import tenon
from conformance.chosen import SAMPLE, is_chosen
from tenon.conformance import table
from tenon.conformance.cells import Bench, Plan, forms_of
from tenon.conformance.claims import Claims
from tenon.conformance.families import row_of

DTYPES = ("float32", "int64", "bool", "complex64", "bfloat16")
#: Its work is in order by nature, tests/conformance/doors_test.py has its derivatives, and host copies have no blocks.
PLAN = Plan(dtypes=DTYPES, thorough=DTYPES, samples=2, gradients=(), order=(), large=())


def on_the_device():
    """All cells of the device."""
    bench = Bench("blind", PLAN, Claims("blind"))
    for name, entry in table.entries().items():
        if not is_chosen(name):
            continue
        row = row_of(entry)
        for op in forms_of(entry, row):
            yield from bench.try_operator(op, row)


def test_every_operator_is_native_or_falls_back():
    """In a process of its own, because a device stays."""
    package = pathlib.Path(tenon._C.__file__).resolve().parent
    (plugin,) = package.parents[1].glob("tests/ops_plugins/blind_device.so")
    done = subprocess.run([sys.executable, "-c", f"from conformance import fallback_test; fallback_test.main({str(plugin)!r})"],
                          capture_output=True, text=True, cwd=pathlib.Path(__file__).resolve().parents[1],
                          env={**os.environ, "PYTHONPATH": str(package.parent)})  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def main(plugin):
    tenon.ops.load_library(plugin)
    cells = list(on_the_device())
    found = [f"{c.operator} {c.dtype} {kind}: {text}" for c in cells for kind, text in c.differences.items()]
    found += [f"{c.operator} {c.dtype}: it says that it has not what it takes" for c in cells if c.unsupported]
    operators, calls = {c.operator for c in cells}, sum(c.native + c.fallback + c.refused for c in cells)
    print(len(operators), "operators,", calls, "calls,", len(found), "differ")
    print("\n".join(found))
    few = (50, 3000) if SAMPLE else (1000, 100_000)
    sys.exit(bool(found) or len(operators) < few[0] or calls < few[1])
