"""Derivatives go through the dispatcher: no kernel runs outside a call, and a device needs none of its own."""

import os
import pathlib
import subprocess
import sys

import pytest

import tenon
from tenon.conformance import check
from conformance.grad_test import OPERATORS
from tenon.conformance.derivatives import DTYPES, floating, function_of, grad_samples, without_derivative, writable_shape
from tenon.conformance.families import row_of
from tenon.conformance.library import TENON
from tenon.conformance.samples import Spec


def cases(names=None):
    """(name, f, specs) for a few samples of every operator that has a derivative."""
    for name, (entry, op) in OPERATORS.items():
        row = row_of(entry)
        if row is None or without_derivative(op) or TENON.function(op, row) is None or (names and name not in names):
            continue
        for dtype in DTYPES:
            samples = [] if row.why_absent(dtype, "grad") else grad_samples(op, row, dtype)
            samples = [s for s in samples if floating(row, s) and not row.refuses(s)]
            if op.form == "inplace":
                samples = [s for s in samples if isinstance(s.args[0], Spec) and writable_shape(row, s)]
            for s in list(samples)[:3]:
                yield name, op, row, s


def leaves_of(row, s, device=None):
    return [TENON.tensor(spec, device).detach().clone().requires_grad_() for spec in floating(row, s)]


def recorded(outputs):
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [o for o in outputs if isinstance(o, tenon.Tensor) and o.requires_grad]


def seeds_of(outputs):
    """Gradients of no simple form, the same for every device."""
    seeds = []
    for o in outputs:
        numbers = tenon.arange(o.numel(), dtype=tenon.float64).reshape(o.shape) * 0.37 - 1
        seeds.append((tenon.complex(numbers, numbers + 0.5) if o.is_complex() else numbers).to(o.dtype).to(o.device))
    return seeds


def gradients(outputs, leaves):
    return tenon.autograd.grad(outputs, leaves, seeds_of(outputs), create_graph=True, allow_unused=True)


def differentiate_again(gradients, leaves):
    again = [g for g in gradients if g is not None and g.requires_grad]
    if again:
        tenon.autograd.grad(again, leaves, [g.detach() for g in again], allow_unused=True)


def recorded_cases():
    """Those whose call records something: name, operator, row, sample, leaves and results."""
    for name, op, row, s in cases():
        leaves = leaves_of(row, s)
        try:
            outputs = recorded(function_of(op, row, s)(*leaves))
        except check.ERRORS:
            continue
        if outputs:
            yield name, op, row, s, leaves, outputs


def test_no_kernel_runs_outside_a_call():
    """Under the dispatch trace, which knows when a call is open; first and second derivatives."""
    found, walked = [], set()
    for name, _, _, s, leaves, outputs in recorded_cases():
        with tenon.dispatch.trace():
            tenon._C.set_kernel_reporting(True)
            try:
                differentiate_again(gradients(outputs, leaves), leaves)
            finally:
                tenon._C.set_kernel_reporting(False)
        outside = tenon._C.kernels_outside_calls()
        if outside:
            found.append(f"{name} ({s}): {outside}")
        walked.add(name)
    assert not found, "\n".join(found)
    assert len(walked) > 150, len(walked)


def test_a_kernel_outside_a_call_is_seen():
    """The planted fault: below the dispatcher the trace sees nothing, and the count must not be zero."""
    with tenon.dispatch.trace():
        tenon._C.set_kernel_reporting(True)
        tenon.ones(3) * 2
        assert not tenon._C.kernels_outside_calls()
    tenon.ones(3) * 2
    tenon._C.set_kernel_reporting(False)
    assert ("mul", 1) in [(op, calls) for op, _, calls in tenon._C.kernels_outside_calls()]


def on_the_mirror():
    """What differs between the host and a device that has byte copies and a fallback only."""
    found, walked = [], set()
    for name, op, row, s, leaves, outputs in recorded_cases():
        want = gradients(outputs, leaves)
        copies = [x.detach().to("mirror").requires_grad_() for x in leaves]
        try:
            moved = recorded(function_of(op, row, s, "mirror")(*copies))
            got = gradients(moved, copies)
            differentiate_again(got, copies)
            assert [g is None for g in got] == [g is None for g in want]
            for a, b in zip(got, want):
                if a is not None:
                    assert a.device.type == "mirror", "the gradient is elsewhere"
                    a, b = a.detach().cpu(), b.detach()
                    assert a.shape == b.shape and a.numpy().tobytes() == b.contiguous().numpy().tobytes(), (a, b)
        except Exception as e:
            found.append(f"{name} ({s}): {type(e).__name__}: {e}")
        walked.add(name)
    return found, walked


def test_derivatives_run_on_a_device_by_its_fallback():
    """In a process of its own, because a device stays."""
    package = pathlib.Path(tenon._C.__file__).resolve().parent
    build = package.parents[1]
    (plugin,) = build.glob("tests/autograd_plugins/mirror_device.so")
    run = subprocess.run([sys.executable, "-c", f"from conformance import doors_test; doors_test.main({str(plugin)!r})"],
                         capture_output=True, text=True, cwd=pathlib.Path(__file__).resolve().parents[1],
                         env={**os.environ, "PYTHONPATH": str(package.parent)})  # fmt: skip
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def main(plugin):
    tenon.ops.load_library(plugin)
    found, walked = on_the_mirror()
    print(len(walked), "operators;", len(found), "differ")
    print("\n".join(found))
    sys.exit(bool(found) or len(walked) < 150)
