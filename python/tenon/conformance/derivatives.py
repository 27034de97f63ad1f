"""What derivatives are checked with: an operator as a function of its floating tensors, small samples away from kinks, and the
strides of incoming gradients."""

from math import prod

import tenon

from . import check
from .dtypes import BY_NAME
from .library import TENON

#: What finite differences are taken in. Complex gradients are PyTorch's: d/dRe + i d/dIm of a real loss.
DTYPES = ("float64", "complex128")


def grad_samples(op, row, dtype):
    """Small samples, away from kinks."""
    return check.maker(op, dtype, "grad", row).samples(row.grad_samples or row.samples)


def floating(row, s, dtypes=DTYPES):
    """The specs that gradients are taken for."""
    constant = [id(s.args[i]) for i in row.grad_constant if i < len(s.args)]
    return [spec for spec in s.specs() if spec.dtype in dtypes and id(spec) not in constant]


def named_dtypes(args, kwargs, device=None):
    """Arguments with dtypes for the texts that name one, and `device` in place of the cpu."""

    def named(x):
        if device and isinstance(x, str) and x == "cpu":
            return device
        return TENON.dtype(x) if isinstance(x, str) and x in BY_NAME else x

    return tuple(map(named, args)), {k: named(x) for k, x in kwargs.items()}


def function_of(op, row, s, device=None, dtypes=DTYPES):
    """The operator as a function of its floating tensors alone; in-place forms write a copy. Others are on `device`."""
    call = TENON.function(op, row)
    varied = floating(row, s, dtypes)

    def f(*tensors):
        places = {id(spec): t for spec, t in zip(varied, tensors)}
        args, kwargs = s.map(lambda spec: places.get(id(spec), None) if id(spec) in places else TENON.tensor(spec, device))
        args, kwargs = named_dtypes(args, kwargs, device)
        if op.form == "inplace":
            args = (args[0].clone(), *args[1:])
        tenon.manual_seed(5)  # for those that draw numbers
        result = call(*args, **kwargs)
        return tuple(result) if isinstance(result, (list, tuple)) else result

    return f


def layouts_of(g):
    """Which of the layouts a gradient really has; one element, or none, has all strides and so none."""
    sizes = [(n, t) for n, t in zip(g.shape, g.stride()) if n > 1]
    if prod(g.shape) < 2:
        return set()
    if any(t < 0 for _, t in sizes):
        return {"negative"}
    if any(t == 0 for _, t in sizes):
        return {"expanded"}
    if g.is_contiguous():
        return {"contiguous"}
    ordered = sorted(sizes, key=lambda size: -size[1])
    dense = ordered[-1][1] == 1 and all(a[1] == b[0] * b[1] for a, b in zip(ordered, ordered[1:]))
    return {"transposed"} if dense else {"sliced"}


def without_derivative(op):
    if not op.differentiable:
        return "derivative: none"
    if not any(t in ("Tensor", "Tensor[]") for t in op.returns):
        return "its result is no tensor"
    return ""


def writable_shape(row, s):
    spec = s.args[0]
    if row.reference is None:
        return True
    if row.real and BY_NAME[spec.dtype].category == "complex":
        return False
    fits = row.result == "bool" or check.fits(row.result_dtype(s), spec.dtype)
    return fits and getattr(row.wanted(s), "shape", ()) == spec.shape
