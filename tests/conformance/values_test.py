"""Every operator x dtype x kind of sample against its reference, in all forms."""

import pytest

from tenon.conformance import check, table
from tenon.conformance.dtypes import axis
from tenon.conformance.families import row_of
from tenon.conformance.library import TENON, reason_not_bound
from tenon.conformance.samples import KINDS

ENTRIES = table.entries()


def problems_of(run, label):
    """What was wrong in one run: the text of the AssertionError, or of what should not have been raised."""
    try:
        run()
    except AssertionError as e:
        return [f"{label}: {e}"]
    except Exception as e:
        return [f"{label}: raised {type(e).__name__}: {e}"]
    return []


def cover(op, row, matrix, deep, run):
    """Calls run(sample, dtype, kind) for every sample of every cell and gathers what fails."""
    problems = []
    for d in axis():
        for kind in KINDS:
            found = 0
            for k, second, turn in check.kinds_of(op, row, d.name, deep):
                if k != kind:
                    continue
                for s in check.samples_of(op, row, d.name, kind, second, turn):
                    found += 1
                    wrong = problems_of(lambda: run(s, d.name, kind), f"{d.name} {kind} ({s})")
                    if wrong:
                        matrix.note(op.full_name, d.name, kind, "failed", wrong[0])
                    problems += wrong
            if not found:
                why = row.why_absent(d.name, kind)
                if not why and kind == "promotion" and not op.several_operands:
                    why = "one operand"
                matrix.note(op.full_name, d.name, kind, "absent", why)
        what_none_computes(op, d.name, matrix)
    return problems


def what_none_computes(op, dtype, matrix):
    """A dtype that is refused, or that no sample has, says nothing of meta, nor of other outputs."""
    kinds = [k for k in KINDS if matrix.cells[op.full_name, dtype, k] != "absent"]
    states = {matrix.cells[op.full_name, dtype, k] for k in kinds}
    plain = matrix.cells[op.full_name, dtype, "plain"] == "refused"
    for column in ("meta", "errors") if op.form == "out" else ("meta",):
        refused = states == {"refused"} or column == "errors" and plain
        why = "the dtype is refused" if refused else "" if kinds else "no samples of the dtype"
        if why and (op.full_name, dtype, column) not in matrix.cells:
            matrix.note(op.full_name, dtype, column, "absent", why)


def report(problems):
    if problems:
        more = f"\n... and {len(problems) - 12} more" if len(problems) > 12 else ""
        pytest.fail("\n".join(problems[:12]) + more, pytrace=False)


def bound(op, row, matrix):
    if row is None:
        matrix.note(op.full_name, "any", "plain", "absent", "no row describes it")
    elif TENON.function(op, row) is None:
        matrix.note(op.full_name, "any", "plain", "absent", reason_not_bound(op))
    else:
        return True
    return False


@pytest.mark.parametrize("name", ENTRIES)
def test_values(name, matrix, deep):
    """The entry's main form."""
    op, row = ENTRIES[name].main, row_of(ENTRIES[name])
    if bound(op, row, matrix):
        report(cover(op, row, matrix, deep, lambda s, dtype, kind: check.one(op, row, s, matrix, dtype, kind)))


@pytest.mark.parametrize("name", [n for n, e in ENTRIES.items() if e.form("inplace") and e.main.form == "functional"])
def test_in_place(name, matrix, deep):
    op, row = ENTRIES[name].form("inplace"), row_of(ENTRIES[name])
    if bound(op, row, matrix):
        report(cover(op, row, matrix, deep, lambda s, dtype, kind: check.in_place(op, row, s, matrix, dtype, kind)))


@pytest.mark.parametrize("name", [n for n, e in ENTRIES.items() if e.form("out")])
def test_out(name, matrix, deep):
    op, row = ENTRIES[name].form("out"), row_of(ENTRIES[name])
    if not bound(op, row, matrix):
        return
    layouts = check.OUT_LAYOUTS

    def run(s, dtype, kind):
        # The layout of the argument is that of the cell, and out has it too; plain samples try all.
        for layout in layouts if kind == "plain" else [kind if kind in layouts else "contiguous"]:
            check.out_form(op, row, s, matrix, dtype, kind, layout)
        if kind == "plain" and not row.refuses(s):
            check.out_elsewhere(op, row, s, matrix, dtype)

    report(cover(op, row, matrix, deep, run))
