"""Normalisation by rows, groups of channels and batches."""

import numpy as np

from conformance.rows import Row
from conformance.samples import sample

_FLOATS = ("bool", "integral", "complex")
_ABSENT = {"promotion": "operands must have one dtype", "zero_dim": "the rank is fixed", "channels_last": "the rank is fixed",
           "special": "a row with an infinity or a NaN has no mean"}  # fmt: skip
_EPS = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def _row(name, samples, reference, **options):
    options.setdefault("refuse", _FLOATS)
    options.setdefault("absent", _ABSENT)
    return Row(name, samples, reference, result="self", ulps=96, magnitude=_scale, one_dtype=True, **options)


def _scale(x, *_):
    """What rounding is relative to: quotients of sums of differences, times a weight."""
    return 64 + np.max(np.abs(x), initial=0)


def _normal(x, axes, eps, centered=True):
    d = x - x.mean(axes, keepdims=True) if centered else x
    return d / np.sqrt((d * d).mean(axes, keepdims=True) + eps), 1 / np.sqrt((d * d).mean(axes, keepdims=True) + eps)


def _affine(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _last(shape):
    return tuple(range(-len(shape), 0))


def _shapes(m, rank=3):
    """[N, C, L], as far as a layout has three dimensions."""
    if m.ranked([0] * rank) is None:
        return []
    return [(m.size(3), 4, 6)[:rank] if rank <= 3 else (m.size(3), 4, 3, 2)]


def _layer_samples(m):
    for shape in _shapes(m):
        for k in (1, 2):
            tail = list(shape[-k:])
            yield sample(m.tensor(shape), tail, m.tensor(tuple(tail)), m.tensor(tuple(tail)), 1e-3)
            yield sample(m.tensor(shape), tail, None, None, 0.5)
            yield sample(m.tensor(shape), tail, m.tensor(tuple(tail)), None, 0.1)


def _layer(x, shape, weight=None, bias=None, eps=1e-5, *_):
    if not x.size:
        return x
    return _affine(_normal(x, _last(shape), eps)[0], weight, bias)


def _native_layer(x, shape, weight, bias, eps):
    axes = _last(shape)
    if not x.size:
        kept = x.mean(axes, keepdims=True)
        return x, kept, kept
    return _layer(x, shape, weight, bias, eps), x.mean(axes, keepdims=True), _normal(x, axes, eps)[1]


def _rms_samples(m):
    for shape in _shapes(m):
        tail = list(shape[-1:])
        yield sample(m.tensor(shape), tail, m.tensor(tuple(tail)), 1e-3)
        yield sample(m.tensor(shape), tail, None, 0.25)


def _rms(x, shape, weight=None, eps=None):
    return _affine(_normal(x, _last(shape), eps, False)[0], weight, None) if x.size else x


def _own_rms(x, shape, weight, eps):
    return _rms(x, shape, weight, eps), _normal(x, _last(shape), eps, False)[1]


def _group_samples(m):
    for shape in _shapes(m):
        for groups in (1, 2, 4):
            yield sample(m.tensor(shape), groups, m.tensor((shape[1],)), m.tensor((shape[1],)), 1e-2)
        yield sample(m.tensor(shape), 2, None, None, 0.1)


def _channels(t, ndim):
    return None if t is None else np.asarray(t).reshape((1, -1) + (1,) * (ndim - 2))


def _group(x, groups, weight=None, bias=None, eps=1e-5, *_):
    if not x.size:
        return x
    rows = x.reshape(x.shape[0], groups, -1)
    return _affine(_normal(rows, -1, eps)[0].reshape(x.shape), _channels(weight, x.ndim), _channels(bias, x.ndim))


def _others(x):
    return tuple(d for d in range(x.ndim) if d != 1)


def _training_samples(m):
    for shape in _shapes(m):
        c = (shape[1],)
        yield sample(m.tensor(shape), m.tensor(c), m.tensor(c), 1e-2)
        yield sample(m.tensor(shape), None, None, 0.25)


def _training(x, weight, bias, eps):
    axes = _others(x)
    out, rstd = _normal(x, axes, eps)
    out = _affine(out, _channels(weight, x.ndim), _channels(bias, x.ndim))
    return out, x.mean(axes), rstd.reshape(-1), x.var(axes)


def _inference_samples(m):
    for shape in _shapes(m):
        c = (shape[1],)
        positive = lambda: m.tensor(c, domain=(0.25, 2))  # noqa: E731
        yield sample(m.tensor(shape), m.tensor(c), m.tensor(c), m.tensor(c), positive(), 1e-2)
        yield sample(m.tensor(shape), None, None, m.tensor(c), positive(), 0.25)


def _inference(x, weight, bias, mean, var, eps):
    n = x.ndim
    return _affine(
        (x - _channels(mean, n)) / np.sqrt(_channels(var, n) + eps), _channels(weight, n), _channels(bias, n)
    )


def _batch_samples(m):
    for s in _training_samples(m):
        x, weight, bias, eps = s.args
        yield sample(x, weight, bias, None, None, True, 0.1, eps, False)
    for s in _inference_samples(m):
        yield sample(*s.args[:5], False, 0.1, s.args[5], False)


def _batch(x, weight, bias, mean, var, training, momentum, eps, _):
    return _training(x, weight, bias, eps)[0] if training else _inference(x, weight, bias, mean, var, eps)


def _instance_samples(m):
    for s in _training_samples(m):
        x, weight, bias, eps = s.args
        yield sample(x, weight, bias, None, None, True, 0.1, eps, False)


def _instance(x, weight, bias, mean, var, by_input, momentum, eps, _):
    return _group(x, x.shape[1], weight, bias, eps)


def _layer_backward_samples(m):
    for shape in _shapes(m):
        tail, kept = list(shape[-1:]), (*shape[:-1], 1)
        weight = m.tensor(tuple(tail))
        for w in (weight, None):
            yield sample(m.tensor(shape), m.tensor(shape), m.tensor(kept), m.tensor(kept), w, tail)


def _layer_backward(g, x, mu, rstd, weight, shape):
    g, x, axes = g if weight is None else g * weight, (x - mu) * rstd, _last(shape)
    return rstd * (g - g.mean(axes, keepdims=True) - x * (g * x).mean(axes, keepdims=True))


def _layer_backward_weight_samples(m):
    for shape in _shapes(m):
        kept = (*shape[:-1], 1)
        yield sample(m.tensor(shape), m.tensor(shape), m.tensor(kept), m.tensor(kept), list(shape[-1:]))


def _rms_backward_samples(m):
    for shape in _shapes(m):
        kept = (*shape[:-1], 1)
        for w in (m.tensor(shape[-1:]), None):
            yield sample(m.tensor(shape), m.tensor(shape), m.tensor(kept), w, list(shape[-1:]))


def _rms_backward(g, x, rstd, weight, shape):
    g, x, axes = g if weight is None else g * weight, x * rstd, _last(shape)
    return rstd * (g - x * (g * x).mean(axes, keepdims=True))


def _batch_backward_samples(m):
    for shape in _shapes(m):
        c = shape[1:2]
        for w in (m.tensor(c), None):
            yield sample(m.tensor(shape), m.tensor(shape), m.tensor(c), m.tensor(c), w)


def _batch_backward(g, x, mu, rstd, weight):
    n, axes = x.ndim, _others(x)
    x, r = (x - _channels(mu, n)) * _channels(rstd, n), _channels(rstd, n)
    t = r * (g - g.mean(axes, keepdims=True) - x * (g * x).mean(axes, keepdims=True))
    return t if weight is None else t * _channels(weight, n)


def _batch_backward_weight_samples(m):
    for s in _batch_backward_samples(m):
        yield sample(*s.args[:4])


def _batch_backward_weight(g, x, mu, rstd):
    n = x.ndim
    return (g * (x - _channels(mu, n)) * _channels(rstd, n)).sum(_others(x))


def _wide_scale(x, *_):
    """Of products of four factors and their sums."""
    return 64 + 16 * np.max(np.abs(x), initial=0) ** 3


def _product(name, samples, reference):
    return Row(name, samples, reference, result="self", ulps=96, magnitude=_wide_scale, one_dtype=True, refuse=_FLOATS,
               absent=_ABSENT, direct=True, no_peer="an operator of ours", grad_constant=(0, 1, 2, 3, 4))  # fmt: skip


_OURS = {"direct": True, "no_peer": "an operator of ours"}
ROWS = [
    _row("layer_norm", _layer_samples, _layer, inner="layer_norm"),
    _row("native_layer_norm", _layer_samples, _native_layer, inner="layer_norm"),
    _row("rms_norm", _rms_samples, _rms, inner="rms_norm"),
    _row("_rms_norm", _rms_samples, _own_rms, inner="rms_norm", **_OURS),
    _row("group_norm", _group_samples, _group, inner="layer_norm"),
    _row("batch_norm", _batch_samples, _batch, grad_constant=(3, 4), inner="batch_norm"),
    _row("instance_norm", _instance_samples, _instance, grad_constant=(3, 4), inner="batch_norm"),
    _row("_batch_norm_training", _training_samples, _training, inner="batch_norm", **_OURS),
    _row("_batch_norm_inference", _inference_samples, _inference, grad_constant=(3, 4), inner="batch_norm", **_OURS),
    _product("_layer_norm_backward", _layer_backward_samples, _layer_backward),
    _product("_layer_norm_backward_weight", _layer_backward_weight_samples,
             lambda g, x, mu, rstd, shape: (g * (x - mu) * rstd).sum((0, 1))),  # fmt: skip
    _product("_rms_norm_backward", _rms_backward_samples, _rms_backward),
    _product("_batch_norm_backward", _batch_backward_samples, _batch_backward),
    _product("_batch_norm_backward_weight", _batch_backward_weight_samples, _batch_backward_weight),
]
