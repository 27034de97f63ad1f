"""gradcheck and gradgradcheck of every differentiable operator, in every form, in float64 and complex128, for incoming
gradients of every stride."""

import pytest

import tenon
from tenon.conformance import check
from tenon.conformance.derivatives import (
    DTYPES,
    floating,
    function_of,
    grad_samples,
    layouts_of,
    named_dtypes,
    without_derivative,
    writable_shape,
)
from tenon.conformance.dtypes import BY_NAME, axis
from tenon.conformance.families import row_of
from tenon.conformance.library import TENON
from tenon.conformance.matrix import Matrix
from tenon.conformance.samples import Spec
from conformance.values_test import ENTRIES, bound, report
from tenon.autograd import gradcheck, gradgradcheck
from tenon.autograd.gradcheck import GRADIENT_LAYOUTS, GradcheckError, gradient_of_layout

OPERATORS = {o.full_name: (e, o) for e in ENTRIES.values() for o in e.operators if o.form != "out"}
#: Values are written, so a derivative with respect to the old ones is zero; or there is none at all by nature.
_CONSTANT = "its result does not depend on its tensors' values in a differentiable way"
_STRAIGHT = "its gradients depend neither on its tensors nor on the incoming gradient"


class Strides:
    """Makes gradients of every layout, and counts those that really have it."""

    def __init__(self, matrix, operator, dtype, level):
        self.matrix, self.place, self.made = matrix, (operator, dtype, level), 0

    def makers(self):
        return [self.maker(layout) for layout in GRADIENT_LAYOUTS]

    def maker(self, layout):
        def make(output, rng):
            g = gradient_of_layout(output, layout, rng)
            self.made += 1
            for found in layouts_of(g) & {layout}:
                self.matrix.strides[(*self.place, layout)] += 1
                self.matrix.layouts[layout] += 1
            self.matrix.ranks[self.place] = max(self.matrix.ranks[self.place], sum(n > 1 for n in output.shape))
            return g

        make.__name__ = layout
        return make


def not_differences(dtype):
    """Why a dtype has no finite differences."""
    if not BY_NAME[dtype].floating:
        return "integers and truth values have no derivatives"
    return "too few digits for differences; the formula is the one that float64 or complex128 has"


@pytest.mark.parametrize("name", OPERATORS)
def test_derivatives(name, matrix):
    entry, op = OPERATORS[name]
    row = row_of(entry)
    if not bound(op, row, matrix):
        return
    found = []
    for d in axis():
        if d.name in DTYPES:
            found += derivatives(op, row, d.name, matrix)
            continue
        for kind in ("grad", "gradgrad"):
            matrix.note(name, d.name, kind, "absent", without_derivative(op) or not_differences(d.name))
    report(found)


def derivatives(op, row, dtype, matrix):
    why = without_derivative(op) or row.why_absent(dtype, "grad")
    samples = [] if why else [s for s in grad_samples(op, row, dtype) if floating(row, s)]
    if samples and all(map(row.refuses, samples)):
        samples, why = [], f"{BY_NAME[dtype].category} numbers are refused"
    if not samples:
        why = why or ("takes no tensor" if not op.tensors else "its tensors are no floating numbers")
    if op.form == "inplace" and not why:
        samples = [s for s in samples if isinstance(s.args[0], Spec) and writable_shape(row, s)]
        why = "" if samples else "the result does not fit self"
    for kind in ("grad", "gradgrad"):
        if why:
            matrix.note(op.full_name, dtype, kind, "absent", why)
    return [] if why else [p for s in samples for p in problems(op, row, s, dtype, matrix)]


OUT_FORMS = {o.full_name: (e, o) for e in ENTRIES.values() for o in e.operators if o.form == "out"}


@pytest.mark.parametrize("name", OUT_FORMS)
def test_out_forms_record_nothing(name, matrix):
    """out= is refused where a gradient would have to flow through it, so that there is no derivative to check."""
    entry, op = OUT_FORMS[name]
    row = row_of(entry)
    if not bound(op, row, matrix):
        return
    for d in axis():
        for kind in ("grad", "gradgrad"):
            matrix.note(name, d.name, kind, "absent", "out= records nothing: refused where a tensor requires grad")
    if without_derivative(entry.main):
        return
    for dtype in DTYPES:
        samples = [] if row.why_absent(dtype, "grad") else grad_samples(op, row, dtype)
        samples = [s for s in samples if floating(row, s) and not row.refuses(s)]
        for s in samples[:1]:
            args, kwargs = named_dtypes(*s.map(lambda spec: TENON.tensor(spec).detach().clone()))
            for x in check.tensors_of([*args, *kwargs.values()]):
                x.requires_grad_(x.is_floating_point() or x.is_complex())
            names = row.result_dtype(s)
            outs = tuple(tenon.empty([0], dtype=TENON.dtype(n)) for n in ([names] if isinstance(names, str) else names))
            out = outs if isinstance(names, tuple) else outs[0]
            with pytest.raises(RuntimeError, match="out"):
                TENON.function(op, row)(*args, **kwargs, out=out)


def problems(op, row, s, dtype, matrix):
    name = op.full_name
    f = function_of(op, row, s)
    tensors = [TENON.tensor(spec).detach().clone().requires_grad_() for spec in floating(row, s)]
    found = []
    try:
        outputs = f(*tensors)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if not any(isinstance(o, tenon.Tensor) and o.requires_grad for o in outputs):
            for kind in ("grad", "gradgrad"):
                matrix.note(name, dtype, kind, "absent", _CONSTANT)
            return []
        strides = Strides(matrix, name, dtype, "grad")
        gradcheck(f, tensors, check_grad_dtypes=True, grad_layouts=strides.makers())
        matrix.note(name, dtype, "grad", "tested")
        strides = Strides(matrix, name, dtype, "gradgrad")
        gradgradcheck(f, tensors, check_grad_dtypes=True, grad_layouts=strides.makers(), atol=1e-4)
        matrix.note(name, dtype, "gradgrad", "tested" if strides.made else "absent", "" if strides.made else _STRAIGHT)
    except (GradcheckError, *check.ERRORS) as e:
        text = f"{dtype} ({s}): {type(e).__name__}: {e}"
        matrix.note(name, dtype, "grad", "failed", text[:200])
        found.append(text)
    return found


def test_every_operator_saw_every_stride(matrix):
    """Runs last in this file: what the tests above counted, for each of the operators that they ran for."""
    missing = [
        f"{name} {dtype} {kind}: no {layout} gradient"
        for (name, dtype, kind), state in matrix.cells.items()
        if kind in ("grad", "gradgrad") and state == "tested"
        for layout in GRADIENT_LAYOUTS
        if not matrix.saw(name, dtype, kind, layout)
    ]
    assert not missing, "\n".join(missing[:40])


def test_an_operator_that_lacks_a_stride_is_found():
    """The check above, on an operator whose gradients had all strides but one."""
    matrix = Matrix()
    matrix.note("op", "float64", "grad", "tested")
    for layout in GRADIENT_LAYOUTS[1:]:
        matrix.strides["op", "float64", "grad", layout] = 1
    matrix.ranks["op", "float64", "grad"] = 2
    with pytest.raises(AssertionError, match=f"op float64 grad: no {GRADIENT_LAYOUTS[0]} gradient"):
        test_every_operator_saw_every_stride(matrix)
    matrix.strides["op", "float64", "grad", GRADIENT_LAYOUTS[0]] = 1
    test_every_operator_saw_every_stride(matrix)
    assert matrix.saw("op", "float64", "grad", "transposed") == "1"
    matrix.ranks["flat", "float64", "grad"] = 1
    assert "one dimension" in matrix.saw("flat", "float64", "grad", "transposed")
    assert not matrix.saw("flat", "float64", "grad", "negative")
