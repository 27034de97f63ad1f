"""Updates of optimizers: what they write, in float64."""

import numpy as np

from ..complex_numbers import divide
from ..rows import Row
from ..samples import sample

_ADAM = {"beta1": 0.75, "rest1": 0.25, "beta2": 0.5, "rest2": 0.5, "root": 0.875, "eps": 2.0**-10, "step": -0.125}
_SGD = {"momentum": 0.75, "rest": 0.5, "step": -0.125}


def _adam(p, grad, first, second, largest=None, *, beta1, rest1, beta2, rest2, root, eps, step):
    first = first * beta1 + rest1 * grad
    second = second * beta2 + rest2 * (grad * grad)
    if largest is not None:
        largest = np.where(np.isnan(largest) | np.isnan(second), np.nan, np.maximum(largest, second))
    scale = divide(np.sqrt(second if largest is None else largest), np.float64(root)) + eps
    new = (p + step * divide(first, scale), first, second)
    return new if largest is None else (*new, largest)


def _adam_bound(p, grad, first, second, largest=None, *, step, root, eps, **others):
    """Of absolute values. The averages are rounded to the parameter's dtype before the step is computed: float16 has steps of 2^-24
    near zero."""
    _, first, *averages = _adam(p, grad, first, second, largest, step=step, root=root, eps=eps, **others)
    low, high = (np.sqrt(np.maximum(averages[-1] + by, 0)) / root + eps for by in (-(2.0**-24), 2.0**-24))
    moved = np.abs(step) * first
    return (p + moved / low + 32 * (moved * (1 / low - 1 / high) + np.abs(step) * 2.0**-24 / low), first, *averages)


def _sgd(p, grad, average, *, momentum, rest, step, nesterov):
    average = average * momentum + rest * grad
    direction = grad + momentum * average if nesterov else average
    return p + step * direction, average


def _square(m, shape):
    """An average of squares."""
    t = m.tensor(shape)
    if t.flat.dtype.kind == "f":
        t.flat[:] = np.abs(t.flat)
    return t


def _adam_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), m.tensor(shape), m.tensor(shape), _square(m, shape), None, **_ADAM)
        if m.dtype.category != "complex" and m.second.category != "complex":
            p, grad, first = m.tensor(shape), m.tensor(shape), m.tensor(shape)
            yield sample(p, grad, first, _square(m, shape), _square(m, shape), **_ADAM)


def _sgd_samples(m):
    for shape in m.shapes():
        for nesterov in (False, True):
            yield sample(*(m.tensor(shape) for _ in range(3)), **_SGD, nesterov=nesterov)


#: Positive numbers cancel only where the parameter is updated.
_OPTIONS = {"result": "float", "ulps": 32, "complex_ulps": 64, "domain": (0.5, 4.0), "extremes": False, "direct": True,
            "infinite": "class", "no_peer": "not in PyTorch", "signed_zeros": False}  # fmt: skip

ROWS = [
    Row("_adam_step_", _adam_samples, _adam, operands=(0, 1, 2, 3, 4), writes=(0, 2, 3, 4), magnitude=_adam_bound, **_OPTIONS),
    Row("_sgd_step_", _sgd_samples, _sgd, operands=(0, 1, 2), writes=(0, 2), **_OPTIONS),
]
