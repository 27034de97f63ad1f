"""Normalisation by rows, groups of channels and batches."""

import importlib

import numpy as np

from ..dtypes import BY_NAME, real_of
from ..rows import Row
from ..samples import sample, with_options

_FLOATS = ("bool", "integral", "complex")
_ABSENT = {"promotion": "operands must have one dtype", "zero_dim": "the rank is fixed", "channels_last": "the rank is fixed",
           "special": "a row with an infinity or a NaN has no mean"}  # fmt: skip
_OURS = {"direct": True, "no_peer": "an operator of ours"}


def _scale(x, *_):
    """What rounding is relative to: quotients of sums of differences, times a weight."""
    return 64 + np.max(np.abs(x), initial=0)


def _wide_scale(x, *_):
    """Of products of four factors and their sums."""
    return 64 + 16 * np.max(np.abs(x), initial=0) ** 3


def _row(name, samples, reference, magnitude=_scale, absent=_ABSENT, **options):
    return Row(name, samples, reference, result="self", ulps=96, magnitude=magnitude, one_dtype=True, refuse=_FLOATS, absent=absent, **options)


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
    yield from _instance_samples(m)
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


@with_options
def _backward_samples(m, statistics, weighted):
    """A gradient, the input, and what the forward pass keeps of each row; with a weight and without, or none."""
    for shape in _shapes(m):
        tail, kept = shape[-1:], (*shape[:-1], 1)
        for weight in ((m.tensor(tail),), (None,)) if weighted else ((),):
            yield sample(m.tensor(shape), m.tensor(shape), *(m.tensor(kept) for _ in range(statistics)), *weight, list(tail))


def _layer_backward(g, x, mu, rstd, weight, shape):
    g, x, axes = g if weight is None else g * weight, (x - mu) * rstd, _last(shape)
    return rstd * (g - g.mean(axes, keepdims=True) - x * (g * x).mean(axes, keepdims=True))


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
    return t if weight is None else t * _channels(weight, n), (g * x).sum(axes), g.sum(axes)


def _native(name, samples, reference, **options):
    return _row(name, samples, reference, _wide_scale, direct=True, inner="layer_norm", **options)


def _wide_of(x):
    return "complex128" if BY_NAME[x.dtype].category == "complex" else "float64"


def _product(name, samples, reference):
    return _row(name, samples, reference, _wide_scale, grad_constant=(0, 1, 2, 3, 4), **_OURS)


def _vector_norm(x, p=2, dim=None, keepdim=False, dtype=None):
    axes = tuple(range(x.ndim)) if dim is None or len(dim) == 0 or x.ndim == 0 else tuple(dim)
    size, options = np.abs(x), dict(axis=axes, keepdims=keepdim)
    if p == 0:
        return np.count_nonzero(x, axis=axes, keepdims=keepdim).astype(np.float64)
    if np.isinf(p):
        return np.max(size, **options) if p > 0 else np.min(size, **options)
    return np.sum(size**p, **options) ** (1.0 / p)


_ORDERS = (2, 1, 0, np.inf, -np.inf, 3, 0.5, 1.5, -1)


@with_options
def _order_samples(m, orders=_ORDERS, build=lambda x, p, dim, keep: sample(x, p, dim, keep)):
    for p in orders:
        needs_elements = np.isinf(p) or p < 0
        for shape in m.shapes():
            if m.kind == "grad" and p < 1 and not shape:
                continue
            for dim, keep in ((None, False), ([0], True), ([-1], False)):
                sizes = [shape[d] for d in dim] if dim and shape else shape
                if not (needs_elements and 0 in sizes):
                    yield build(m.tensor(shape, distinct=m.kind == "grad"), p, dim, keep)


def _real(s):
    return real_of(s.kwargs.get("dtype") or s.specs()[0].dtype)


#: The rounding of sums, and of a power whose exponent is the quotient of one.
_VECTOR = dict(result=_real, refuse=("bool", "integral"), ulps=32, inner="linalg_vector_norm", extremes=False,
               absent={"promotion": "one operand"})  # fmt: skip


def _own_norm(name, order):
    """A row operator that `linalg_vector_norm` is made of: of real numbers, without a derivative."""
    build = lambda x, p, dim, keep: sample(x, dim, keep)  # noqa: E731
    reference = lambda x, dim, keep: _vector_norm(x, order, dim, keep)  # noqa: E731
    if order is None:
        build, reference = (lambda x, p, dim, keep: sample(x, p, dim, keep)), _vector_norm
    absent = {"promotion": "one operand", "bool": "norms refuse them", "integral": "norms refuse them"}
    return Row(name, _order_samples((3, 1.5) if order is None else (order,), build), reference,
               **{**_VECTOR, "refuse": ("complex",), "absent": absent}, **_OURS)  # fmt: skip


def _norm_backward_samples(m):
    for p in (2, 1, 0, np.inf, -np.inf, 3, 0.5, 1.5):
        if 0 in _first_shape(m):
            continue
        shape = _first_shape(m)
        x = m.tensor(shape, distinct=True)
        if np.isinf(p) and m.dtype.category == "complex":
            x.flat.imag = 0  # absolute values that are exact: the largest one is found by its value
        value = _vector_norm(x.array(), p, [0])
        held = m.tensor(value.shape, real_of(x.dtype), layout="contiguous")
        held.flat[: value.size] = BY_NAME[held.dtype].store(value).reshape(-1)
        yield sample(m.tensor(value.shape, real_of(x.dtype)), x, p, held, [0], False)


def _first_shape(m):
    return next(iter(m.shapes()))


def _norm_backward(g, x, p, value, dim, keep):
    g, value, size = g[None], value[None], np.abs(x)
    sign = np.where(size == 0, 0, x / np.where(size == 0, 1, size))
    if p == 0:
        return np.zeros_like(x)
    if np.isinf(p):
        hit = size == value
        return sign * g * hit / hit.sum(0, keepdims=True)
    return sign * g * np.where(value == 0, 0, (size / np.where(value == 0, 1, value)) ** (p - 1))


def _native_layer_backward_samples(m):
    for shape in _shapes(m):
        tail, kept = list(shape[-1:]), (*shape[:-1], 1)
        for w in (m.tensor(tuple(tail)), None):
            stats = m.tensor(kept), m.tensor(kept)
            yield sample(m.tensor(shape), m.tensor(shape), tail, *stats, w, w, [True, True, True])


def _native_layer_backward(g, x, shape, mu, rstd, weight, bias, mask):
    lead = tuple(range(x.ndim - len(shape)))
    return _layer_backward(g, x, mu, rstd, weight, shape), (g * (x - mu) * rstd).sum(lead), g.sum(lead)


def _native_group_samples(m):
    for shape in _shapes(m):
        n, c, places = shape[0], shape[1], int(np.prod(shape[2:]))
        yield sample(m.tensor(shape), m.tensor((c,)), m.tensor((c,)), n, c, places, 2, 1e-2)
        yield sample(m.tensor(shape), None, None, n, c, places, 1, 0.5)


def _native_group(x, weight, bias, n, c, places, groups, eps):
    if not x.size:
        return x, np.zeros((n, groups)), np.zeros((n, groups))
    rows = x.reshape(n, groups, -1)
    rstd = _normal(rows, -1, eps)[1]
    return _group(x, groups, weight, bias, eps), rows.mean(-1), rstd[..., 0]


def _native_group_backward_samples(m):
    for shape in _shapes(m):
        n, c, places = shape[0], shape[1], int(np.prod(shape[2:]))
        for w in (m.tensor((c,)), None):
            stats = m.tensor((n, 2)), m.tensor((n, 2))
            yield sample(m.tensor(shape), m.tensor(shape), *stats, w, n, c, places, 2, [True, True, True])


def _native_group_backward(g, x, mu, rstd, weight, n, c, places, groups, mask):
    if not x.size:
        return g * 0, np.zeros(c), np.zeros(c)
    rows = lambda t: t.reshape(n, groups, -1)  # noqa: E731
    mu, rstd = mu[..., None], rstd[..., None]
    gw = g if weight is None else g * _channels(weight, x.ndim)
    slope = _layer_backward(rows(gw), rows(x), mu, rstd, None, (rows(x).shape[-1],)).reshape(x.shape)
    normal = ((rows(x) - mu) * rstd).reshape(x.shape)
    return slope, (g * normal).sum(_others(x)), g.sum(_others(x))


def _legit_samples(m):
    for s in _inference_samples(m):
        x, weight, bias, mean, var, eps = s.args
        for training in (False,) if m.kind == "empty" else (True, False):
            yield sample(x, weight, bias, mean, var, training, 0.25, eps)


def _legit(x, weight, bias, mean, var, training, momentum, eps):
    if not training:
        return _inference(x, weight, bias, mean, var, eps), np.zeros(0), np.zeros(0), mean, var
    out, mu, rstd, spread = _training(x, weight, bias, eps)
    n = x.size // max(x.shape[1], 1)
    follow = lambda old, new: old * (1 - momentum) + new * momentum  # noqa: E731
    return out, mu, rstd, follow(mean, mu), follow(var, spread * n / (n - 1))


def _call_legit(x, weight, bias, mean, var, *rest):
    """The call on copies of the running statistics, with their new values in the result."""
    mean, var = mean.clone(), var.clone()
    aten = importlib.import_module(type(x).__module__.partition(".")[0]).ops.aten
    return (*aten._native_batch_norm_legit.default(x, weight, bias, mean, var, *rest), mean, var)


def _no_stats_samples(m):
    for s in _training_samples(m):
        x, weight, bias, eps = s.args
        yield sample(x, weight, bias, True, 0.1, eps)


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
    _own_norm("_norm_count", 0),
    _own_norm("_norm_largest", np.inf),
    _own_norm("_norm_one", 1),
    _own_norm("_norm_power", None),
    _own_norm("_norm_smallest", -np.inf),
    _own_norm("_norm_two", 2),
    Row("linalg_vector_norm", _order_samples(), _vector_norm, grad_domain=(0.5, 4), **_VECTOR),
    Row("linalg_vector_norm_backward", _norm_backward_samples, _norm_backward, ulps=64, magnitude=True, result=lambda s: s.args[1].dtype,
        refuse=("bool", "integral"), grad_constant=(1, 3), direct=True, no_peer="other signatures",
        absent={"promotion": "operands have one dtype", "zero_dim": "the rank is fixed", "empty": "linalg_vector_norm covers it",
                "special": "linalg_vector_norm covers it", "integral": "norms refuse them", "bool": "norms refuse them"}),
    Row("norm.Scalar", _order_samples((2, 3), lambda x, p, dim, keep: sample(x, p)),
        lambda x, p: _vector_norm(x, p), grad_domain=(0.5, 4), direct=True, **_VECTOR),
    Row("norm.ScalarOpt_dim", _order_samples((2, 1), lambda x, p, dim, keep: sample(x, p if p == 1 else None, dim or [], keep)),
        lambda x, p, dim, keep: _vector_norm(x, p or 2, dim, keep), grad_domain=(0.5, 4), direct=True, **_VECTOR),
    Row("norm.ScalarOpt_dim_dtype", _order_samples((2, 1), lambda x, p, dim, keep: sample(x, p, dim or [], keep, dtype=_wide_of(x))),
        lambda x, p, dim, keep, dtype: _vector_norm(x, p, dim, keep), grad_domain=(0.5, 4), direct=True, **_VECTOR),
    Row("norm.ScalarOpt_dtype", _order_samples((2, 1), lambda x, p, dim, keep: sample(x, p, dtype=_wide_of(x))),
        lambda x, p, dtype: _vector_norm(x, p), grad_domain=(0.5, 4), direct=True, **_VECTOR),
    _native("native_layer_norm_backward", _native_layer_backward_samples, _native_layer_backward, grad_constant=(1, 3, 4, 6)),
    _row("native_group_norm", _native_group_samples, _native_group, inner="layer_norm", direct=True),
    _native("native_group_norm_backward", _native_group_backward_samples, _native_group_backward, grad_constant=(1, 2, 3)),
    _row("_native_batch_norm_legit", _legit_samples, _legit, inner="batch_norm", call=_call_legit, grad_constant=(3, 4)),
    _row("_native_batch_norm_legit.no_stats", _no_stats_samples, lambda x, w, b, training, momentum, eps: _training(x, w, b, eps)[:3],
         inner="batch_norm", direct=True, absent={**_ABSENT, "empty": "a batch of nothing has no statistics"}),
    _row("_native_batch_norm_legit_no_training", lambda m: (sample(*s.args[:5], 0.1, s.args[5]) for s in _inference_samples(m)),
         lambda x, w, b, mean, var, momentum, eps: (_inference(x, w, b, mean, var, eps), np.zeros(0), np.zeros(0)),
         inner="batch_norm", direct=True, grad_constant=(3, 4)),
    _product("_layer_norm_backward", _backward_samples(2, True), _layer_backward),
    _product("_layer_norm_backward_weight", _backward_samples(2, False),
             lambda g, x, mu, rstd, shape: (g * (x - mu) * rstd).sum((0, 1))),  # fmt: skip
    _product("_rms_norm_backward", _backward_samples(1, True), _rms_backward),
    _product("_rms_norm_backward_weight", _backward_samples(1, False),
             lambda g, x, rstd, shape: (g * x * rstd).sum(tuple(range(x.ndim - len(shape))))),
    _product("_batch_norm_backward", _batch_backward_samples, _batch_backward),
]
