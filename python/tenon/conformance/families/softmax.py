"""Softmax, its logarithm, and the losses built on it."""

from functools import partial

import numpy as np
from scipy.special import softmax

from ..rows import ONE_OPERAND as _ONE, Row, binary_calls, dim_samples, reduced_dims
from ..samples import sample, with_options
from .elementwise_loss import _loss, _reduce

#: There is no order among complex numbers.
_FLOATS = ("bool", "integral", "complex")
_LOSS = {"promotion": "operands must have one dtype", "zero_dim": "the rank is fixed", "channels_last": "the rank is fixed"}  # fmt: skip


def _dims_and_flag(m):
    for s in dim_samples(m):
        yield sample(*s.args, False)


def _along(f, x, dim, *_):
    return f(x.reshape(1), 0).reshape(()) if x.ndim == 0 else f(x, dim)


def _safe(f):
    """SciPy refuses to take the maximum of nothing."""
    return lambda x, axis: f(x, axis=axis) if x.size else x


def log_softmax(x, axis):
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _largest(x, *_):
    """What rounding is relative to: the differences that logarithms are made of."""
    return 1 + np.max(x, initial=0)


@with_options
def _backward_samples(m, of):
    for shape in m.shapes():
        for dim in reduced_dims(shape):
            g, x = m.tensor(shape), m.tensor(shape)
            if m.kind != "special":
                x.flat[:] = m.dtype.store(np.abs(x.flat) / 8 if of is softmax else -np.abs(x.flat))
            yield sample(g, x, dim, m.dtype.name)


def _softmax_backward(g, y, dim, _):
    axis = None if g.ndim == 0 else dim
    return y * (g - (g * y).sum(axis, keepdims=True))


def _log_softmax_backward(g, y, dim, _):
    axis = None if g.ndim == 0 else dim
    return g - np.exp(y) * g.sum(axis, keepdims=True)


def _classes(m, shape, target_shape, ignored=False):
    x = m.tensor(shape)
    t = m.positions(target_shape, shape[1] if len(shape) > 1 else shape[0])
    if ignored:
        t.flat[::3] = -100
    return x, t


def _nll_samples(m):
    if m.ranked([0] * 2) is None:
        return
    n, c = m.size(4), 3
    for reduction in (0, 1, 2):
        yield sample(*_classes(m, (n, c), (n,)), None, reduction)
        yield sample(*_classes(m, (n, c), (n,), True), m.tensor((c,), domain=(0.25, 2)), reduction)
    yield sample(*_classes(m, (c,), ()), None, 1)


def _nll(x, t, weight=None, reduction=1, ignore_index=-100):
    if x.ndim == 1:
        out = _nll(x[None], np.asarray(t)[None], weight, reduction, ignore_index)
        return out[0] if reduction == 0 else out
    keep = t != ignore_index
    safe = np.where(keep, t, 0).astype(int)
    weights = (np.ones(x.shape[1]) if weight is None else weight)[safe]
    weights = np.where(keep, weights, 0)
    each = np.where(keep, -weights * np.take_along_axis(x, np.expand_dims(safe, 1), 1).squeeze(1), 0)
    if reduction == 0:
        return each
    return each.sum() if reduction == 2 else each.sum() / weights.sum()


def _cross_entropy_samples(m):
    if m.ranked([0] * 2) is None:
        return
    n, c = m.size(4), 3
    for reduction in (0, 1, 2):
        yield sample(*_classes(m, (n, c), (n,)), None, reduction)
        yield sample(*_classes(m, (n, c), (n,), True), m.tensor((c,), domain=(0.25, 2)), reduction)
        yield sample(*_classes(m, (n, c), (n,)), None, reduction, label_smoothing=0.25)
        yield sample(*_classes(m, (n, c, 2), (n, 2)), None, reduction)
        yield sample(m.tensor((n, c)), m.tensor((n, c), domain=(0.1, 1)), None, reduction)


def _cross_entropy(x, t, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    logs = log_softmax(x, axis=1) if x.size else x
    classes = x.shape[1]
    if t.dtype.kind == "f":
        return _reduce(-(logs * t).sum(1), reduction)
    plain = _nll(logs, t, weight, reduction, ignore_index)
    if not label_smoothing:
        return plain
    return (1 - label_smoothing) * plain + label_smoothing / classes * _reduce(-logs.sum(1), reduction)


_mse_samples = binary_calls((0,), (1,), (2,))


def _nll_forward(x, t, weight, reduction, ignore_index):
    keep = t != ignore_index
    weights = (np.ones(x.shape[-1]) if weight is None else weight)[np.where(keep, t, 0).astype(int)]
    weights = np.where(keep, weights, 0)
    total = weights.sum() if reduction != 0 else 0.0
    return _nll(x, t, weight, reduction, ignore_index), np.asarray(total)


def _forward_samples(m):
    for s in _nll_samples(m):
        yield sample(*s.args, -100)


def _nll_backward(g, x, t, weight, reduction, ignore_index, total):
    if x.ndim == 1:
        return _nll_backward(np.asarray(g)[None] if reduction == 0 else g, x[None], np.asarray(t)[None], weight, reduction,
                             ignore_index, total)[0]  # fmt: skip
    out = np.zeros(x.shape)
    for i, c in enumerate(t):
        if c != ignore_index:
            w = 1.0 if weight is None else weight[c]
            out[i, c] = -w * (g[i] if reduction == 0 else g) / (total if reduction == 1 else 1)
    return out


def _nll_backward_samples(m):
    for s in _nll_samples(m):
        x, t, weight, reduction = s.args
        if x.shape[0]:
            total = m.tensor((), domain=(2, 4))
            if m.kind == "grad":  # what the forward pass gives
                total.flat[:] = (weight.array() if weight else np.ones(3))[t.array()[t.array() >= 0]].sum()
            yield sample(m.tensor(t.shape if reduction == 0 else ()), x, t, weight, reduction, -100, total)


_INTERNAL = {**_ONE, "special": "a gradient of values that no softmax gives",
             **{c: "softmax itself refuses it" for c in ("bool", "integral")}}  # fmt: skip
_EASY = dict(refuse=_FLOATS, result="self", inner="softmax")
_NLL = dict(refuse=_FLOATS, grad_constant=(2,), result="self", inner="nll_loss")

ROWS = [
    Row("_softmax", _dims_and_flag, partial(_along, _safe(softmax)), ulps=8, absent=_ONE, **_EASY),
    Row("_log_softmax", _dims_and_flag, partial(_along, _safe(log_softmax)), ulps=8, magnitude=_largest, absent=_ONE, **_EASY),
    Row("_softmax_backward_data", _backward_samples(softmax), _softmax_backward, ulps=16,
        magnitude=lambda g, y, dim, _: y * (g + (g * y).sum(None if g.ndim == 0 else dim, keepdims=True)),
        absent=_INTERNAL, **_EASY),
    Row("_log_softmax_backward_data", _backward_samples(log_softmax), _log_softmax_backward, ulps=16,
        magnitude=lambda g, y, dim, _: g + np.exp(y) * g.sum(None if g.ndim == 0 else dim, keepdims=True),
        absent=_INTERNAL, **_EASY),
    Row("softmax.int", dim_samples, partial(_along, _safe(softmax)), ulps=8, absent=_ONE, **_EASY),
    Row("log_softmax.int", dim_samples, partial(_along, _safe(log_softmax)), ulps=8, magnitude=_largest, absent=_ONE,
        **_EASY),
    Row("l1_loss", _mse_samples, _loss(lambda a, b: np.abs(a - b)), operands=(0, 1), refuse=("bool",), refuse_common=("integral",), real=True, ulps=16,
        magnitude=True, absent={"bool": "a loss of numbers", "integral": "sub, abs and mean have it"}),
    Row("mse_loss", _mse_samples, _loss(lambda a, b: (a - b) ** 2), operands=(0, 1), refuse=("complex",), refuse_common=("bool", "integral"), ulps=16,
        magnitude=True, absent={"bool": "a loss of numbers", "integral": "sub, square and mean have it"}),
    Row("nll_loss", _nll_samples, _nll, ulps=8, magnitude=True, absent=_LOSS, **_NLL),
    Row("nll_loss_forward", _forward_samples, _nll_forward, ulps=8, magnitude=True, absent=_LOSS, refuse=_FLOATS,
        inner="nll_loss", grad_constant=(2,), result=lambda s: (s.specs()[0].dtype,) * 2),
    Row("nll_loss_backward", _nll_backward_samples, _nll_backward, ulps=8, absent=_LOSS, **{**_NLL, "grad_constant": (1, 3, 6)}),
    Row("cross_entropy_loss", _cross_entropy_samples, _cross_entropy, ulps=32, magnitude=True, absent=_LOSS, grad_constant=(2,), **_EASY),
]  # fmt: skip
