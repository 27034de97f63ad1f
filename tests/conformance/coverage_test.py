"""The harness itself: schemas are read whole, every operator has a row or a reason, calls reach the operator they name."""

import pathlib

import numpy as np

import tenon
from tenon.conformance import check, data_dependent, table
from tenon.conformance.dtypes import BY_NAME
from tenon.conformance.families import row_of, rows
from tenon.conformance.library import TENON
from tenon.conformance.rows import Row
from tenon.conformance.samples import KINDS, sample
from conformance.values_test import ENTRIES
from tenon._C import dispatch


def test_every_operator_is_read():
    found = table.operators()
    assert set(found) == {n.removeprefix("aten::") for n in dispatch.operators() if n.startswith("aten::")}
    add = found["add.out"]
    assert [a.name for a in add.arguments] == ["self", "other", "alpha", "out"] and add.form == "out"
    assert found["add_.Tensor"].form == "inplace" and found["transpose.int"].view and found["reshape"].composite
    assert found["index.Tensor"].arguments[1].optional_elements and found["max.dim"].returns == ("Tensor", "Tensor")
    assert found["exp"].differentiable and not found["eq.Tensor"].differentiable


def test_rows_name_operators():
    assert not set(rows()) - set(ENTRIES), "rows for operators that do not exist"


def test_what_meta_cannot_say_names_operators():
    known = {op.full_name for e in ENTRIES.values() for op in e.operators}
    assert not {*data_dependent.CALLERS, *data_dependent.SAMPLES} - known, "reasons for operators that do not exist"


def test_few_operators_are_without_a_shape():
    """`explicit` is for what no shape function can say; opgen refuses one without a reason."""
    yaml = pathlib.Path(__file__).parents[2] / "tenon" / "ops" / "yaml"
    found = [line for f in sorted(yaml.glob("*.yaml")) for line in f.read_text().splitlines() if "  explicit: {" in line]
    assert 0 < len(found) <= 27, "\n".join(found)


def test_every_operator_has_a_row():
    """A new operator needs a row in tenon/conformance/families (or a name that NumPy knows)."""
    assert not [n for n, e in ENTRIES.items() if row_of(e) is None ]


def test_results_are_no_views_unless_they_are_meant_to_be():
    """A result with a base cannot be detached in place, and writes to it take the way of a view's.

    Gradients may be views, as nobody writes to them; so may the columns of nonzero(as_tuple=True), as in PyTorch, and what
    sum_to_size has nothing to sum for; and what only adds, repeats or reorders dimensions, as in PyTorch too.
    """
    reshaped = {"broadcast_tensors", "einsum", "meshgrid", "meshgrid.indexing", "stft", "stft.center", "tensordot", "where"}
    reshaped |= {f"atleast_{n}d{form}" for n in (1, 2, 3) for form in ("", ".Sequence")}
    # What flip, which is a view, gives; and results whose dimensions were put in order at the end.
    reshaped |= {"fliplr", "flipud", "rot90", "inner", "cov", "corrcoef", "affine_grid_generator"}
    reshaped |= {f"{nan}quantile{form}" for nan in ("", "nan") for form in ("", ".scalar")}
    wrong = []
    for name, entry in ENTRIES.items():
        op, row = entry.main, row_of(entry)
        if op.form != "functional" or op.view or row is None or row.view or TENON.function(op, row) is None:
            continue
        for s in check.samples_of(op, row, "float32", "plain"):
            if row.refuses(s):
                continue
            args, kwargs = TENON.arguments(s)
            results = TENON.function(op, row)(*args, **kwargs)
            for r in results if isinstance(results, (tuple, list)) else [results]:
                if isinstance(r, tenon.Tensor) and r._base is not None and not any(r is a for a in args):
                    wrong.append(name)
    known = {"nonzero_numpy", "sum_to_size", "svd", "linalg_multi_dot"} | reshaped
    assert not sorted({n for n in wrong if "backward" not in n} - known)


def test_calls_reach_the_operator():
    """By the dispatcher's trace: the overload that a row names is the one that its sample calls."""
    missed = []
    for name, entry in ENTRIES.items():
        row = row_of(entry)
        if row is None or TENON.function(entry.main, row) is None:
            continue
        if all(row.why_absent("float32", kind) for kind in KINDS):
            continue
        for op in entry.operators:
            if not reaches(op, row):
                missed.append(op.full_name)
    assert not missed


def reaches(op, row):
    for dtype in ("float32", "int64", "complex64", "int8"):
        samples = check.samples_of(op, row, dtype, "plain") or check.samples_of(op, row, dtype, "zero_dim")
        for s in samples:
            if row.refuses(s):
                continue
            args, kwargs = TENON.arguments(s)
            if op.form == "out":
                names = row.result_dtype(s)
                outs = [tenon.empty([0], dtype=TENON.dtype(n)) for n in ([names] if isinstance(names, str) else names)]
                kwargs["out"] = outs[0] if isinstance(names, str) else tuple(outs)
            lines = []
            dispatch.set_sink(lines.append)
            dispatch.trace(True)
            try:
                TENON.function(op, row)(*args, **kwargs)
            except check.ERRORS:
                continue
            finally:
                dispatch.trace(False)
                dispatch.set_sink(None)
            if any(f"op=[aten::{op.full_name}]" in line for line in lines):
                return True
    return False


def test_the_tolerance_of_a_row_is_finite():
    """Of so many units in the last place; where sums overflow on their way there is none."""
    row = Row("f", None, ulps=4, reference_ulps=2)
    for name, unit in (("float32", 2.0**-23), ("float64", 2.0**-52), ("bfloat16", 2.0**-7)):
        allowed = check.tolerance(row, sample(), np.array([1.0, 8.0]), BY_NAME[name])
        np.testing.assert_allclose(allowed, [4 * unit + 2.0**-51, 32 * unit + 2.0**-48], rtol=1e-12)
    assert not check.tolerance(Row("f", None), sample(), np.ones(3), BY_NAME["float32"]).any()
    with np.testing.assert_raises_regex(AssertionError, "element .1. is 1.1, expected 1.0"):
        check.compare(np.array([1.0, 1.1]), np.ones(2), BY_NAME["float32"], check.tolerance(row, sample(), np.ones(2), BY_NAME["float32"]))
