"""The samples of tests/conformance on both libraries in one process; skipped where PyTorch is not installed.

What differs on purpose is in DIFFERENCES with the row of docs/differences.md that says so; all else fails.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

from tenon.conformance import check  # noqa: E402
from tenon.conformance.dtypes import BY_NAME, axis  # noqa: E402
from tenon.conformance.library import TENON, Library  # noqa: E402
from tenon.conformance.samples import KINDS, Spec  # noqa: E402
from conformance.values_test import ENTRIES, report  # noqa: E402
from tenon.conformance.families import row_of  # noqa: E402
from peer.differences import on_purpose  # noqa: E402

FORMS = {o.full_name: (e, o) for e in ENTRIES.values() for o in e.operators if o.form != "out"}


class Torch(Library):
    """PyTorch, by the very overloads that Tenon's operators are named for."""

    def function(self, op, row):
        if row.call:
            return row.call
        packet = getattr(torch.ops.aten, op.name, None)
        return getattr(packet, op.overload or "default", None) if packet is not None else None

    def array(self, tensor):
        return super().array(tensor.resolve_conj())  # conjugates are deferred there

    def tensor(self, spec, device=None):
        if any(s < 0 for s in spec.strides):  # PyTorch has none: the same elements in order
            d = BY_NAME[spec.dtype]
            a = np.ascontiguousarray(spec.array()).reshape(spec.shape)
            spec = Spec(a.reshape(-1), d.name, spec.shape, check.geometry("contiguous", spec.shape)[0], 0)
        return super().tensor(spec, device)


TORCH = Torch(torch)


def negative(s):
    return any(t < 0 for spec in s.specs() for t in spec.strides)


def outcome(library, op, row, s):
    """("value", result) or ("error", exception)."""
    args, kwargs = library.arguments(s)
    try:
        return "value", library.function(op, row)(*args, **kwargs)
    except Exception as e:
        return "error", e


def results(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def same_results(row, s, ours, theirs):
    ours, theirs = results(ours), results(theirs)
    assert len(ours) == len(theirs), f"{len(ours)} results, PyTorch has {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if not isinstance(b, torch.Tensor):
            assert a == b or a != a and b != b, f"{a}, PyTorch has {b}"
            continue
        assert TENON.name_of(a.dtype) == TORCH.name_of(b.dtype), f"{a.dtype}, PyTorch has {b.dtype}"
        assert tuple(a.shape) == tuple(b.shape), f"shape {list(a.shape)}, PyTorch has {list(b.shape)}"
        if not row.unreferenced:
            d = BY_NAME[TENON.name_of(a.dtype)]
            want = TORCH.array(b)
            # Both may be off by as much as the reference allows.
            allowed = 2 * check.tolerance(row, s, want, d, i) if d.floating and row.reference else 0
            check.compare(TENON.array(a), want, d, allowed, row=row)
        if not negative(s) and a.numel() > 1:
            mine = [t for n, t in zip(a.shape, a.stride()) if n > 1]
            hers = [t for n, t in zip(b.shape, b.stride()) if n > 1]
            assert mine == hers, f"strides {mine}, PyTorch has {hers}"
            if row.view:
                assert a.storage_offset() == b.storage_offset()


def same_errors(ours, theirs):
    """Kinds that one `except` clause of a user catches in both."""
    if isinstance(theirs, (IndexError, NotImplementedError)):
        # PyTorch says NotImplementedError where a kernel lacks a dtype; a TypeError says the same of the argument.
        allowed = (IndexError,) if isinstance(theirs, IndexError) else (NotImplementedError, TypeError)
        assert isinstance(ours, allowed), f"{type(ours).__name__}, PyTorch raises {type(theirs).__name__}: {theirs}"


def compare(op, row, s, counts):
    (a, ours), (b, theirs) = outcome(TENON, op, row, s), outcome(TORCH, op, row, s)
    if a == b == "value":
        same_results(row, s, ours, theirs)
        counts["samples with the same values, dtypes, shapes and strides"] += 1
    elif a == b:
        same_errors(ours, theirs)
        counts["samples that both refuse"] += 1
    elif a == "error":
        raise AssertionError(f"raises {type(ours).__name__}: {str(ours)[:120]}; PyTorch does not")
    else:
        raise AssertionError(f"PyTorch raises {type(theirs).__name__}: {str(theirs)[:120]}")


@pytest.mark.parametrize("name", FORMS)
def test_same_as_pytorch(name, counts, differences):
    entry, op = FORMS[name]
    row = row_of(entry)
    if row is None or TENON.function(op, row) is None:
        counts["operators that Python cannot call"] += 1
    elif row.no_peer:
        counts[f"operators not compared: {row.no_peer}"] += 1
    elif TORCH.function(op, row) is None:
        counts["operators that PyTorch lacks"] += 1
        differences.append(f"{name}: PyTorch has no such operator")
    else:
        report(differing(op, row, counts, differences))


def differing(op, row, counts, differences):
    problems = []
    for d in axis():
        for kind, second, turn in check.kinds_of(op, row, d.name):
            for s in check.samples_of(op, row, d.name, kind, second, turn):
                if op.form == "inplace" and not isinstance(s.args[0], Spec):
                    continue
                if row.rebinds and negative(s):
                    continue  # another storage there
                try:
                    compare(op, row, s, counts)
                except AssertionError as e:
                    what = str(e).splitlines()[0]
                    why = on_purpose(op, s, d.name, kind, what)
                    text = f"{op.full_name} {d.name} {kind} ({s}): {what}"
                    differences.append(f"{why or 'UNEXPLAINED'}: {text}")
                    counts[f"samples that differ: {why}" if why else "samples that differ without a reason"] += 1
                    if not why:
                        problems.append(text)
    return problems


def test_every_kind_was_compared():
    assert set(KINDS) >= {"plain", "special", "promotion"}
