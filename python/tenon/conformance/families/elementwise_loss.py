"""Losses that compare element by element."""

import numpy as np
from scipy.special import log_expit, xlogy

from ..rows import Row, binary_samples, gradient_samples
from ..samples import sample, with_options


def _reduce(each, reduction):
    return {0: each, 1: each.mean() if each.size else np.float64("nan"), 2: each.sum()}[reduction]


def _loss(each):
    """The reduction comes third, or by name; an expression's other arguments after it or by name."""
    return lambda a, b, reduction=1, *more, **named: _reduce(each(a, b, *more, **named), reduction)


@with_options
def _samples(m, *more, **named):
    for a, b in m.pairs():
        for reduction in (0, 1, 2):
            yield sample(m.tensor(a), m.tensor(b), reduction, *more, **named)


@with_options
def _weighted_samples(m, count):
    """With each set of weights, all of the shape of the result; operands of one shape."""
    for shape in m.shapes():
        for given in range(2**count):
            weights = [m.tensor(shape) if given >> i & 1 else None for i in range(count)]
            yield sample(m.tensor(shape), m.tensor(shape), *weights, given % 3)


def _bce(x, t):
    return -(t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))


def _bce_backward(g, x, t):
    return g * ((x - t) / np.maximum((1 - x) * x, 1e-12))


def _logits(x, t, weight=None, pos=None):
    both = 1 if pos is None else (pos - 1) * t + 1
    loss = (1 - t) * x - both * log_expit(x)
    return loss if weight is None else loss * weight


def _huber(x, t, delta=1.0):
    d = np.abs(x - t)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


def _smooth(x, t, beta=1.0):
    d = np.abs(x - t)
    return np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)


def _kl(x, t, log_target=False):
    return np.exp(t) * (t - x) if log_target else xlogy(t, t) - t * x


def _margin(x, t):
    return -log_expit(t * x)


_HUGE = {"special": "sums of terms that overflow or are undefined"}
_LOSS = dict(operands=(0, 1), result="float", refuse=("complex",), ulps=24, magnitude=lambda *a, **k: np.float64(64.0),
             absent=_HUGE, inner="loss")
_PART = {**_LOSS, "no_peer": "not in PyTorch", "direct": True}
_UNIT = dict(domain=(0.05, 0.95))

ROWS = [
    Row("_binary_cross_entropy", binary_samples(), _bce, **_UNIT, **{**_PART, "inner": "binary"}),
    Row("_binary_cross_entropy_backward", gradient_samples, _bce_backward, **_UNIT,
        **{**_PART, "operands": (0, 1, 2), "refuse": (), "result": "same", "inner": "binary",
           "absent": {**_HUGE, "bool": "gradients are numbers", "integral": "gradients are floating numbers",
                      "complex": "losses are real", "promotion": "gradients have the dtype of the loss"}}),
    Row("_bce_with_logits", lambda m: (sample(*s.args[:4]) for s in _weighted_samples(2)(m)), _logits,
        **{**_PART, "operands": (0, 1, 2, 3), "inner": "bce"}),
    Row("_huber_loss", binary_samples(0.75), _huber, **_PART),
    Row("_kl_div", binary_samples(), _kl, domain=(0.1, 3.0), **{**_PART, "inner": "kl_div"}),
    Row("_kl_div_of_logs", binary_samples(), lambda x, t: _kl(x, t, True), **{**_PART, "inner": "kl_div"}),
    Row("_mse_loss", binary_samples(), lambda x, t: (x - t) ** 2, **{**_PART, "result": "same", "refuse": ("bool", "complex")}),
    Row("_smooth_l1_loss", binary_samples(0.75), _smooth, **_PART),
    Row("_soft_margin_loss", binary_samples(), _margin, **_PART),
    Row("binary_cross_entropy", _weighted_samples(1),
        lambda x, t, w=None, reduction=1: _reduce(_bce(x, t) if w is None else _bce(x, t) * w, reduction), **_UNIT,
        **{**_LOSS, "operands": (0, 1, 2), "inner": "binary", "absent": {**_HUGE, "promotion": "of one dtype in PyTorch"}}),
    Row("binary_cross_entropy_with_logits", _weighted_samples(2),
        lambda x, t, w=None, p=None, reduction=1: _reduce(_logits(x, t, w, p), reduction),
        **{**_LOSS, "operands": (0, 1, 2, 3), "inner": "bce"}),
    Row("huber_loss", _samples(0.75), _loss(_huber), **_LOSS),
    Row("kl_div", _samples(), _loss(_kl), domain=(0.1, 3.0), **{**_LOSS, "inner": "kl_div"}),
    Row("smooth_l1_loss", _samples(0.75), _loss(_smooth), **_LOSS),
    Row("soft_margin_loss", _samples(), _loss(_margin), **_LOSS),
]  # fmt: skip
