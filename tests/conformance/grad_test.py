"""gradcheck and gradgradcheck of every differentiable operator, in every form, for incoming gradients of every stride."""

from math import prod

import pytest

import tenon
from conformance import check
from conformance.library import TENON
from conformance.samples import Spec
from conformance.values_test import ENTRIES, bound, report, row_of
from tenon.autograd import gradcheck, gradgradcheck
from tenon.autograd.gradcheck import GRADIENT_LAYOUTS, GradcheckError, gradient_of_layout

OPERATORS = {o.full_name: (e, o) for e in ENTRIES.values() for o in e.operators if o.form != "out"}

#: Values are written, so a derivative with respect to the old ones is zero; or there is none at all by nature.
_CONSTANT = "its result does not depend on its tensors' values in a differentiable way"


def grad_samples(op, row):
    """Small samples in float64, away from kinks."""
    return list((row.grad_samples or row.samples)(check.maker(op, "float64", "grad", row)))


def floating(row, s):
    """The specs that gradients are taken for."""
    constant = [id(s.args[i]) for i in row.grad_constant if i < len(s.args)]
    return [spec for spec in s.specs() if spec.dtype == "float64" and id(spec) not in constant]


def function_of(op, row, s):
    """The operator as a function of its floating tensors alone; in-place forms write a copy."""
    call = TENON.function(op, row)
    varied = floating(row, s)

    def f(*tensors):
        places = {id(spec): t for spec, t in zip(varied, tensors)}
        args, kwargs = s.map(lambda spec: places.get(id(spec), None) if id(spec) in places else TENON.tensor(spec))
        args = tuple(TENON.dtype(a) if isinstance(a, str) else a for a in args)
        if op.form == "inplace":
            args = (args[0].clone(), *args[1:])
        result = call(*args, **kwargs)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    return f


def counting(matrix, layout):
    """A maker of gradients of one layout that counts those that really have it."""

    def make(output, rng):
        g = gradient_of_layout(output, layout, rng)
        matrix.layouts[layout if output.dim() and prod(output.shape) else "0-dim or empty"] += 1
        return g

    make.__name__ = layout
    return make


def without_derivative(op):
    if not op.differentiable:
        return "derivative: none"
    if not any(t in ("Tensor", "Tensor[]") for t in op.returns):
        return "its result is no tensor"
    return ""


@pytest.mark.parametrize("name", OPERATORS)
def test_derivatives(name, matrix):
    entry, op = OPERATORS[name]
    row = row_of(entry)
    if not bound(op, row, matrix):
        return
    why = without_derivative(op) or row.why_absent("float64", "grad")
    samples = [] if why else [s for s in grad_samples(op, row) if floating(row, s)]
    if samples and all(map(row.refuses, samples)):
        samples, why = [], "floating numbers are refused"
    if not samples:
        why = why or ("takes no tensor" if not op.tensors else "its samples have no float64 tensors")
    if op.form == "inplace" and not why:
        samples = [s for s in samples if isinstance(s.args[0], Spec) and writable_shape(row, s)]
        why = "" if samples else "the result does not fit self"
    for kind in ("grad", "gradgrad"):
        if why:
            matrix.note(name, "float64", kind, "absent", why)
    if not why:
        layouts = [counting(matrix, layout) for layout in GRADIENT_LAYOUTS]
        report([p for s in samples for p in problems(op, row, s, matrix, layouts)])


def writable_shape(row, s):
    return row.reference is None or getattr(row.wanted(s), "shape", ()) == s.args[0].shape


def problems(op, row, s, matrix, layouts):
    name = op.full_name
    f = function_of(op, row, s)
    tensors = [TENON.tensor(spec).detach().clone().requires_grad_() for spec in floating(row, s)]
    found = []
    try:
        outputs = f(*tensors)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if not any(isinstance(o, tenon.Tensor) and o.requires_grad for o in outputs):
            for kind in ("grad", "gradgrad"):
                matrix.note(name, "float64", kind, "absent", _CONSTANT)
            return []
        gradcheck(f, tensors, check_grad_dtypes=True, grad_layouts=layouts)
        matrix.note(name, "float64", "grad", "tested")
        gradgradcheck(f, tensors, check_grad_dtypes=True, grad_layouts=layouts, atol=1e-4)
        matrix.note(name, "float64", "gradgrad", "tested")
    except (GradcheckError, *check.ERRORS) as e:
        text = f"({s}): {type(e).__name__}: {e}"
        matrix.note(name, "float64", "grad", "failed", text[:200])
        found.append(text)
    return found


def test_every_layout_was_tried(matrix):
    """Runs last in this file: what the tests above counted."""
    if sum(matrix.layouts.values()) > 1000:
        assert all(matrix.layouts[layout] > 100 for layout in GRADIENT_LAYOUTS)
