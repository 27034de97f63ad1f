"""The matrix itself: no operator, dtype and kind is left out in silence."""

from tenon.conformance import table
from tenon.conformance.dtypes import axis
from tenon.conformance.matrix import COLUMNS, Matrix
from conformance.values_test import ENTRIES

DTYPES = [d.name for d in axis()]


def fillers_of(entry, op):
    """The tests that fill the row of one operator: (function of this folder, its parameter)."""
    main = entry.main.full_name
    if op.form == "out":
        return {("test_out", main), ("test_out_forms_record_nothing", op.full_name)}
    values = "test_values" if op is entry.main else "test_in_place"
    own = {("test_wrong_arguments_are_refused", op.full_name), ("test_derivatives", op.full_name)}
    return own | {(values, main)}


def covered(ran):
    """The operators whose tests all ran; with `-k` these may be few, or none."""
    return [o.full_name for e in ENTRIES.values() for o in e.operators if fillers_of(e, o) <= ran]


def test_no_cell_is_silent(matrix, ran):
    """Runs last. Every cell is tested, refused, or absent with a reason."""
    operators = covered(ran)
    silent = matrix.silent(operators, DTYPES)
    shown = "\n".join(" ".join(c) for c in silent[:40])
    assert not silent, f"{len(silent)} cells of operator, dtype and kind were left out without a reason:\n{shown}"
    assert not set(matrix.cells) - {(o, d, k) for o in table.operators() for d in DTYPES for k in COLUMNS}


def test_a_cell_that_is_left_out_is_found():
    matrix = Matrix()
    for kind in COLUMNS:
        matrix.note("add.Tensor", "float32", kind, "tested")
    assert not matrix.silent(["add.Tensor"], ["float32"])
    del matrix.cells["add.Tensor", "float32", "sliced"]
    assert matrix.silent(["add.Tensor"], ["float32"]) == [("add.Tensor", "float32", "sliced")]
    matrix.note("add.Tensor", "float32", "sliced", "absent", "")
    assert matrix.silent(["add.Tensor"], ["float32"]) == [("add.Tensor", "float32", "sliced")]
    matrix.note("add.Tensor", "float32", "sliced", "absent", "a reason")
    assert not matrix.silent(["add.Tensor"], ["float32"])
    assert len(matrix.silent(["add.Tensor"], ["float32", "complex64"])) == len(COLUMNS)


def test_an_operator_that_lacks_a_column_is_listed_with_the_reason():
    matrix = Matrix()
    matrix.note("add", "float32", "special", "tested")
    for dtype in ("float32", "int64"):
        matrix.note("sort", dtype, "special", "absent", "why")
    matrix.note("add", "int64", "special", "absent", "no")
    assert matrix.lacking()["special"] == {"why": ["sort"]}
    assert "  special: 1 why: sort" in matrix.text().splitlines()


def test_every_form_has_tests_that_fill_its_row():
    every = {t for e in ENTRIES.values() for o in e.operators for t in fillers_of(e, o)}
    assert set(covered(every)) == set(table.operators())
    assert not covered(every - {("test_derivatives", o) for o in table.operators()} - {("test_out", e) for e in ENTRIES})
