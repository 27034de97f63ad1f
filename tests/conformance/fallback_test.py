"""Every operator on a device that has byte copies alone, and nothing else: what it lacks runs on host copies.

The device (tests/ops/blind_device.h) has addresses that the host cannot read, and its work runs only when somebody waits, so
that a hidden access faults and a missing wait is seen. Results have the host's bits, strides and dtypes; what is written is
the tensor that was given.
"""

import os
import pathlib
import subprocess
import sys
from collections import Counter

import tenon
from conformance import check, table
from conformance.library import TENON
from conformance.samples import Spec, geometry
from conformance.values_test import row_of

DTYPES = ("float32", "int64", "bool", "complex64", "bfloat16")
KINDS = ("plain", "transposed", "expanded", "negative", "sliced", "overlapping", "empty", "zero_dim")
#: How many samples of each cell.
SAMPLES = 2
#: Of these the elements say nothing: they are not initialised.
UNINITIALISED = {"empty.memory_format", "empty.out", "empty_like", "empty_strided", "new_empty", "new_empty_strided",
                 "resize_"}  # fmt: skip


def flat_of(t):
    """All elements of the storage of a tensor."""
    held = t.untyped_storage().nbytes() // t.element_size()
    return t.detach().as_strided([held], [1], 0)


def bits(t):
    t = t.detach().cpu().contiguous()
    return (t.view(tenon.int16) if t.dtype == tenon.bfloat16 else t).numpy().tobytes()


def strides(t):
    return [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else []


def outcome(function, args, kwargs):
    """Results of a call, or its error."""
    tenon.manual_seed(7)
    for given in [*args, *kwargs.values()]:
        if isinstance(given, tenon.Generator):
            given.manual_seed(7)
    try:
        got = function(*args, **kwargs)
    except check.ERRORS as e:
        return e
    return got if isinstance(got, (tuple, list)) else (got,)


def compare(there, here, given_there, given_here, elements):
    """Results and arguments on the device with those on the host."""
    assert len(there) == len(here), f"{len(there)} results, expected {len(here)}"
    for got, want in zip(there, here):
        if isinstance(want, (tuple, list)):
            compare(got, want, given_there, given_here, elements)
            continue
        if not isinstance(want, tenon.Tensor):
            assert got == want or (got != got and want != want), f"{got}, expected {want}"
            continue
        same = next((i for i, t in enumerate(given_here) if t is want), None)
        assert same is None or got is given_there[same], "the result is not the tensor that was given"
        assert got.dtype == want.dtype and got.shape == want.shape, (
            f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        )
        assert strides(got) == strides(want), f"strides {strides(got)}, expected {strides(want)}"
        assert not elements or bits(got) == bits(want), f"elements {got.cpu()}, expected {want}"


def outs_for(results, layout, device):
    """Tensors for `out=` of results that are known; empty ones for the layout "empty"."""
    outs = []
    for r in results:
        if layout == "empty":
            outs.append(tenon.empty([0], dtype=r.dtype, device=device))
            continue
        at, offset, count = geometry(layout, tuple(r.shape))
        flat = tenon.zeros([count], dtype=r.dtype, device=device)
        outs.append(flat.as_strided(list(r.shape), list(at), offset))
    return outs[0] if len(outs) == 1 else tuple(outs)


def run(op, row, s, layout=None):
    """One sample on the host and on the device."""
    function = TENON.function(op, row)
    args, kwargs = TENON.arguments(s)
    args_there, kwargs_there = TENON.arguments(s, "blind")
    if row.rebinds:
        function = lambda a, b: row.rebinds(a.clone(), b)  # noqa: E731
    if layout:
        plain = outcome(function, args, kwargs)
        if isinstance(plain, Exception):
            return
        kwargs["out"], kwargs_there["out"] = outs_for(plain, layout, "cpu"), outs_for(plain, layout, "blind")
    here = outcome(function, args, kwargs)
    there = outcome(function, args_there, kwargs_there)
    if isinstance(here, Exception) or isinstance(there, Exception):
        assert type(here) is type(there), f"{type(there).__name__}: {there}; on the host {type(here).__name__}: {here}"
        assert "has no function" not in str(there) and "not implemented for device" not in str(there), str(there)
        return
    given = check.tensors_of([*args, *kwargs.values()])
    given_there = check.tensors_of([*args_there, *kwargs_there.values()])
    compare(there, here, given_there, given, op.full_name not in UNINITIALISED)
    for got, want in zip(given_there, given):
        assert got.shape == want.shape and strides(got) == strides(want), "an argument has another geometry"
        if op.full_name not in UNINITIALISED:
            assert bits(flat_of(got)) == bits(flat_of(want)), "an argument has other elements, or those around it"


def tried(op, row):
    for dtype in DTYPES:
        for kind, second, turn in check.kinds_of(op, row, dtype):
            if kind in KINDS:
                yield from list(check.samples_of(op, row, dtype, kind, second, turn))[:SAMPLES]


def on_the_device():
    """What differs, and how many calls were made, by operator."""
    found, calls = [], Counter()
    for entry in table.entries().values():
        row = row_of(entry)
        for form in ("functional", "inplace", "out"):
            op = entry.main if entry.main.form == form else entry.form(form)
            if op is None or row is None or TENON.function(op, row) is None:
                continue
            for s in tried(op, row):
                if form == "inplace" and not isinstance(s.args[0], Spec):
                    continue
                for layout in ("empty", "contiguous", "sliced") if form == "out" else (None,):
                    calls[op.full_name] += 1
                    try:
                        run(op, row, s, layout)
                    except Exception as e:
                        found.append(f"{op.full_name} {layout or ''} ({s}): {type(e).__name__}: {e}")
    return found, calls


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
    found, calls = on_the_device()
    fell_back = tenon.fallbacks("blind")
    print(len(calls), "operators,", sum(calls.values()), "calls,", len(found), "differ,", len(fell_back), "fell back")
    print("\n".join(found))
    sys.exit(bool(found) or len(calls) < 500)


