"""Updates of optimizers: what they write, in float64."""

import itertools

import numpy as np

from ..complex_numbers import divide
from ..rows import Row
from ..samples import sample, with_options

_ADAM = {"beta1": 0.75, "rest1": 0.25, "beta2": 0.5, "rest2": 0.5, "root": 0.875, "eps": 2.0**-10, "step": -0.125}
_ADADELTA = {"rho": 0.75, "rest": 0.25, "eps": 2.0**-10, "step": -0.125}
_ADAGRAD = {"eps": 2.0**-10, "step": -0.125}
_NADAM = {"rest1": 0.25, "beta2": 0.5, "rest2": 0.5, "correction": 0.75, "eps": 0.25, "grad_step": -0.125, "average_step": -0.25}
_RMSPROP = {"alpha": 0.75, "rest": 0.25, "eps": 2.0**-10, "momentum": 0.5, "step": -0.125}
_SGD = {"momentum": 0.75, "rest": 0.5, "step": -0.125}


def _adam(p, grad, first, second, largest=None, *, beta1, rest1, beta2, rest2, root, eps, step):
    first = first * beta1 + rest1 * grad
    second = second * beta2 + rest2 * (grad * grad)
    if largest is not None:
        largest = np.where(np.isnan(largest) | np.isnan(second), np.nan, np.maximum(largest, second))
    scale = divide(np.sqrt(second if largest is None else largest), np.float64(root)) + eps
    new = (p + step * divide(first, scale), first, second)
    return new if largest is None else (*new, largest)


def _adadelta(p, grad, squares, moves, *, rho, rest, eps, step):
    squares = squares * rho + rest * (grad * grad)
    delta = divide(np.sqrt(moves + eps), np.sqrt(squares + eps)) * grad
    return p + step * delta, squares, moves * rho + rest * (delta * delta)


def _adagrad(p, grad, total, *, eps, step):
    total = total + grad * grad
    return p + step * divide(grad, np.sqrt(total) + eps), total


def _nadam(p, grad, first, second, *, rest1, beta2, rest2, correction, eps, grad_step, average_step):
    first = first + rest1 * (grad - first)
    second = second * beta2 + rest2 * (grad * grad)
    scale = np.sqrt(divide(second, np.float64(correction))) + eps
    return p + grad_step * divide(grad, scale) + average_step * divide(first, scale), first, second


def _rmsprop(p, grad, squares, mean=None, buffer=None, *, alpha, rest, eps, momentum, step):
    squares = squares * alpha + rest * (grad * grad)
    scale, averages = squares, [squares]
    if mean is not None:
        mean = mean + rest * (grad - mean)
        scale = squares - mean * mean
        averages.append(mean)
    direction = divide(grad, np.sqrt(scale) + eps)
    if buffer is not None:
        direction = buffer * momentum + direction
        averages.append(direction)
    return p + step * direction, *averages


def _of_sizes(reference):
    """The same steps upwards, so that nothing cancels where the parameter moves."""
    return lambda *args, **options: reference(*args, **{k: abs(v) if k.endswith("step") else v for k, v in options.items()})


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


@with_options
def _samples(m, plain, squares, options):
    """So many tensors, and then averages of squares."""
    for shape in m.shapes():
        yield sample(*(m.tensor(shape) for _ in range(plain)), *(_square(m, shape) for _ in range(squares)), **options)


def _rmsprop_samples(m):
    """The average of squares is large next to the square of the average, so their difference has as many digits; no special
    values meet there, whose squares float32 may not hold."""
    special = m.kind == "special"
    for shape in m.shapes():
        for centered, moving in itertools.product((False,) if special else (False, True), (False, True)):
            squares = _square(m, shape) if special else m.tensor(shape, domain=(64.0, 128.0))
            given = m.tensor(shape), m.tensor(shape), squares
            yield sample(*given, m.tensor(shape) if centered else None, m.tensor(shape) if moving else None, **_RMSPROP)


def _sgd_samples(m):
    for shape in m.shapes():
        for nesterov in (False, True):
            yield sample(*(m.tensor(shape) for _ in range(3)), **_SGD, nesterov=nesterov)


#: Positive numbers cancel only where the parameter is updated.
_OPTIONS = {"result": "float", "ulps": 32, "complex_ulps": 64, "domain": (0.5, 4.0), "extremes": False, "direct": True,
            "infinite": "class", "no_peer": "not in PyTorch", "signed_zeros": False}  # fmt: skip

#: Complex parameters come as their parts.
_OF_PARTS = {**_OPTIONS, "refuse": ("complex",)}

ROWS = [
    Row("_adadelta_step_", _samples(2, 2, _ADADELTA), _adadelta, operands=(0, 1, 2, 3), writes=(0, 2, 3), magnitude=_of_sizes(_adadelta), **_OF_PARTS),
    Row("_adagrad_step_", _samples(2, 1, _ADAGRAD), _adagrad, operands=(0, 1, 2), writes=(0, 2), magnitude=_of_sizes(_adagrad), **_OF_PARTS),
    Row("_adam_step_", _adam_samples, _adam, operands=(0, 1, 2, 3, 4), writes=(0, 2, 3, 4), magnitude=_of_sizes(_adam), **_OPTIONS),
    Row("_nadam_step_", _samples(3, 1, _NADAM), _nadam, operands=(0, 1, 2, 3), writes=(0, 2, 3), magnitude=_of_sizes(_nadam), **_OF_PARTS),
    Row("_rmsprop_step_", _rmsprop_samples, _rmsprop, operands=(0, 1, 2, 3, 4), writes=(0, 2, 3, 4), magnitude=_of_sizes(_rmsprop), **_OF_PARTS),
    Row("_sgd_step_", _sgd_samples, _sgd, operands=(0, 1, 2), writes=(0, 2), **_OPTIONS),
]
