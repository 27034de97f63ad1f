"""Attention: softmax(query @ key.T * scale + mask) @ value, with all weights at once."""

import numpy as np

from ..rows import Row
from ..samples import sample, with_options

_ABSENT = {"zero_dim": "queries are rows", "promotion": "operands must have one dtype"}
#: What a query may see decides whether 0 * inf is among its sums.
_HIDDEN = {**_ABSENT, "special": "a gradient of values that no attention gives",
           **{c: "attention itself refuses it" for c in ("bool", "integral")}}  # fmt: skip


def _heads(t, query):
    return np.repeat(t, query.shape[-3] // t.shape[-3], -3)


def _scores(query, key, mask, causal, scale):
    s = np.matmul(query, np.swapaxes(key, -1, -2)) * scale
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    return s


def _scale(query, scale):
    return scale if scale is not None else 1 / np.sqrt(max(query.shape[-1], 1))


def _with_logsumexp(query, key, value, mask, causal, scale, gqa):
    if gqa:
        key, value = _heads(key, query), _heads(value, query)
    s = _scores(query, key, mask, causal, scale)
    m = s.max(-1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(m == -np.inf, 0, m))
    total = e.sum(-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total != 0)
    # A query that sees nothing gives zeros, whatever the values are.
    return np.where(total == 0, 0, np.matmul(weights, value)), (m + np.log(total))[..., 0]


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    return _with_logsumexp(query, key, value, attn_mask, is_causal, _scale(query, scale), enable_gqa)[0]


def _largest(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """Of the largest value, as much as the weights may be off: a score's rounding is relative to its terms."""
    if enable_gqa:
        key, value = _heads(key, query), _heads(value, query)
    s = _scores(query, key, None, False, _scale(query, scale))
    return (1 + s.max(-1, keepdims=True, initial=0)) * value.max(-2, keepdims=True, initial=0)


def _operands(m):
    """query, key, value of several ranks; and the shape of the weights."""
    rows = m.size(3)
    shapes = [((2, 2, rows, 4), (2, 2, 5, 4), (2, 2, 5, 3)), ((2, 3, 1, rows, 2), (3, 2, 4, 2), (1, 3, 1, 4, 2))]
    if m.kind != "channels_last":
        shapes += [((rows, 4), (5, 4), (5, 3)), ((3, rows, 2), (3, 3, 2), (3, 3, 2))]
    if m.kind == "plain":
        shapes += [((2, 1, 70, 6), (2, 1, 150, 6), (2, 1, 150, 5))]  # several blocks
    if m.kind == "grad":
        shapes = [((2, 2, 2, 2), (2, 1, 3, 2), (2, 2, 3, 2)), ((2, 2), (3, 2), (3, 1))]
    if m.kind == "empty":
        shapes += [((2, 3, 4), (2, 0, 4), (2, 0, 3)), ((2, 3, 0), (2, 4, 0), (2, 4, 3)), ((0, 3, 2), (0, 4, 2), (0, 4, 2))]
    for q, k, v in shapes:
        batch = np.broadcast_shapes(q[:-2], k[:-2], v[:-2])
        yield (q, k, v), (*batch, q[-2], k[-2])


def _samples(m):
    if m.kind == "zero_dim":
        return
    for shapes, weights in _operands(m):
        def tensors(shapes=shapes):
            return [m.tensor(s) for s in shapes]

        yield sample(*tensors())
        yield sample(*tensors(), m.tensor(weights[-2:], dtype="bool"))
        yield sample(*tensors(), m.tensor((*weights[:-2], 1, weights[-1])), scale=0.75)
        if m.kind != "special":
            yield sample(*tensors(), None, 0.0, True)
    if m.kind != "special":
        for rows in (m.size(1), m.size(3)):
            shapes = (2, 4, rows, 3), (2, 2, 5, 3), (2, 2, 5, 2)
            yield sample(*(m.tensor(s) for s in shapes), enable_gqa=True)
            yield sample(*(m.tensor(s) for s in shapes), m.tensor((4, rows, 5), dtype="bool"), enable_gqa=True)


def _forward_samples(m):
    for s in _samples(m):
        query, key, value, mask, *_ = *s.args, None
        causal = len(s.args) > 5
        gqa = s.kwargs.get("enable_gqa", False)
        yield sample(query, key, value, mask, 0.0, causal, s.kwargs.get("scale", 0.5), gqa, 0, 0)


def _forward(query, key, value, mask, dropout_p, causal, scale, gqa, seed, offset):
    return _with_logsumexp(query, key, value, mask, causal, scale, gqa)


def _forward_largest(query, key, value, mask, dropout_p, causal, scale, gqa, seed, offset):
    out = _largest(query, key, value, scale=scale, enable_gqa=gqa)
    key = _heads(key, query) if gqa else key
    s = _scores(query, key, None if mask is None or mask.dtype == bool else mask, False, scale)
    return max(out.max(initial=0), 1 + s.max(initial=0))


def _types(s):
    dtype = s.args[0].dtype
    return dtype, "float64" if dtype == "float64" else "float32"


@with_options
def _backward_samples(m, masks):
    for s in _forward_samples(m):
        query, key, value, mask, *rest = s.args
        if masks and (mask is None or mask.dtype == "bool"):
            continue
        args = [x.array() if x is not None else None for x in (query, key, value, mask)]
        with np.errstate(all="ignore"):
            out, logsumexp = _forward(*args, *rest)
        grad, output = m.tensor(out.shape), m.tensor(out.shape, layout="contiguous")
        rows = m.tensor(logsumexp.shape, dtype="float64" if query.dtype == "float64" else "float32", layout="contiguous")
        if m.dtype.floating and m.dtype.category != "complex":
            output.flat[: out.size] = m.dtype.store(out.reshape(-1))
            rows.flat[: logsumexp.size] = logsumexp.reshape(-1).astype(_types(s)[1])
        yield sample(grad, query, key, value, mask, output, rows, *rest)


def _score_gradients(grad, query, key, value, mask, output, logsumexp, dropout_p, causal, scale, gqa, *_):
    """The weights, the gradients by the scores, and key and value with all heads."""
    if gqa:
        key, value = _heads(key, query), _heads(value, query)
    s = _scores(query, key, mask, causal, scale)
    rows = logsumexp[..., None]
    weights = np.exp(s - np.where(rows == -np.inf, 0, rows))
    means = (grad * output).sum(-1, keepdims=True)
    return weights, weights * (np.matmul(grad, np.swapaxes(value, -1, -2)) - means), key, value


def _sum_heads(t, like, gqa):
    if not gqa:
        return t
    heads = like.shape[-3]
    return t.reshape(*t.shape[:-3], heads, t.shape[-3] // heads, *t.shape[-2:]).sum(-3)


def _gradients(grad, query, key, value, *rest):
    weights, by_scores, keys, _ = _score_gradients(grad, query, key, value, *rest)
    scale, gqa = rest[5], rest[6]
    by_key = np.matmul(np.swapaxes(by_scores, -1, -2), query) * scale
    by_value = np.matmul(np.swapaxes(weights, -1, -2), grad)
    return np.matmul(by_scores, keys) * scale, _sum_heads(by_key, key, gqa), _sum_heads(by_value, value, gqa)


def _sum_to(x, shape):
    extra = x.ndim - len(shape)
    x = x.sum(tuple(range(extra)))
    return x.sum(tuple(d for d, n in enumerate(shape) if n == 1), keepdims=True)


def _mask_gradient(grad, query, key, value, mask, *rest):
    return _sum_to(_score_gradients(grad, query, key, value, mask, *rest)[1], mask.shape)


def _gradient_scale(grad, query, key, value, mask, output, logsumexp, dropout_p, causal, scale, gqa, *_):
    """An upper bound of the terms of the gradients, which cancel."""
    out, _ = _with_logsumexp(query, key, value, None, False, scale, gqa)
    s = (query.max(initial=0) * key.max(initial=0) * query.shape[-1] * scale + 1) * (1 + np.abs(logsumexp).max(initial=0))
    terms = grad.max(initial=0) * (value.max(initial=0) + output.max(initial=0)) * value.shape[-1] * s
    return terms * (1 + scale * (query.max(initial=0) + key.max(initial=0)) * max(query.shape[-2], 1))


_EASY = dict(extremes=False, refuse=("bool", "integral", "complex"), one_dtype=(0, 1, 2), inner="scaled_dot_product_attention")
_LATE = dict(refuse=("bool", "integral", "complex"), inner="scaled_dot_product_attention", no_peer="PyTorch has others")

ROWS = [
    Row("scaled_dot_product_attention", _samples, attention, ulps=8, magnitude=_largest, result="self", absent=_ABSENT,
        **_EASY),
    Row("_fused_sdp_choice", _samples, lambda *args, **options: 1, result="int64", absent=_ABSENT, extremes=False,
        one_dtype=(0, 1, 2), no_peer="PyTorch chooses among its own ways"),
    Row("_attention_forward", _forward_samples, _forward, ulps=8, magnitude=_forward_largest, result=_types, absent=_ABSENT,
        no_peer="PyTorch has others", **_EASY),
    Row("_attention_backward", _backward_samples(False), _gradients, ulps=16, magnitude=_gradient_scale, result="self",
        absent=_HIDDEN, **_LATE),
    Row("_attention_gradients", _backward_samples(False), _gradients, ulps=16, magnitude=_gradient_scale, result="self",
        absent=_HIDDEN, grad_constant=(5, 6), **_LATE),
    Row("_attention_mask_backward", _backward_samples(True), _mask_gradient, ulps=16, magnitude=_gradient_scale,
        result=lambda s: s.args[4].dtype, absent=_HIDDEN, **_LATE),
    Row("_attention_mask_gradient", _backward_samples(True), _mask_gradient, ulps=16, magnitude=_gradient_scale,
        result=lambda s: s.args[4].dtype, absent=_HIDDEN, grad_constant=(5, 6), **_LATE),
]  # fmt: skip
