"""Attention of several heads as a function: projections, masks, attention, and the projection of what the heads found.

Vaswani et al. (2017), "Attention is all you need". Used by nn.functional and nn.MultiheadAttention.
"""

from __future__ import annotations

import math

from .. import _C
from .._C import linear as _linear
from .._C import scaled_dot_product_attention as _attend
from ..arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

_NAME = "multi_head_attention_forward"


def _check_mask(mask: Tensor, name: str, dtype: Any, shapes: Any) -> None:
    if mask.dtype != _C.bool and not mask.is_floating_point():
        raise TypeError(f"{_NAME}: `{name}` must be bool or floating point, got {mask.dtype}")
    if tuple(mask.shape) not in shapes:
        expected = " or ".join(str(list(s)) for s in shapes)
        raise ValueError(f"{_NAME}: `{name}` must be {expected}, got {list(mask.shape)}")


def _added(mask: Tensor, dtype: Any) -> Tensor:
    """A mask that is added to scores: of a bool one, whose True hides a key, -inf there."""
    if mask.dtype != _C.bool:
        return mask.to(dtype)
    return _C.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)


def _merged(attn_mask: Tensor | None, key_padding_mask: Tensor | None, dtype: Any) -> Tensor | None:
    """Both masks, which broadcast to [N, heads, L, S], as scaled_dot_product_attention takes one."""
    masks = [m for m in (attn_mask, key_padding_mask) if m is not None]
    if all(m.dtype == _C.bool for m in masks):
        hidden = masks[0] if len(masks) == 1 else masks[0] | masks[1]
        return hidden.logical_not()
    masks = [_added(m, dtype) for m in masks]
    return masks[0] if len(masks) == 1 else masks[0] + masks[1]


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, dropout_p: float) -> Tensor:
    scores = (query * (1 / math.sqrt(query.shape[-1]))) @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores + _added(mask.logical_not() if mask.dtype == _C.bool else mask, query.dtype)
    weights = scores.softmax(-1)
    return _C.dropout(weights, dropout_p, True) if dropout_p > 0 else weights


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Any, bias: Tensor | None, separate: Any) -> Any:
    """query, key and value times their weights: one product where they are the same tensor."""
    if weight is None:
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return [_linear(x, w, b) for x, w, b in zip((query, key, value), separate, biases)]
    if query is key and key is value:
        return _linear(query, weight, bias).chunk(3, -1)
    width = query.shape[-1]
    if key is value:
        both = None if bias is None else bias[width:]
        return [
            _linear(query, weight[:width], None if bias is None else bias[:width]),
            *_linear(key, weight[width:], both).chunk(2, -1),
        ]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [_linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases)]


def attend_with_heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None = None,
    bias_v: Tensor | None = None,
    add_zero_attn: bool = False,
    dropout_p: float = 0.0,
    out_proj_weight: Any = None,
    out_proj_bias: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    separate_weights: Any = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    batch_dim: int | None = 1,
) -> tuple[Tensor, Tensor | None]:
    """multi_head_attention_forward on [L, N, E] (batch_dim 1), [N, L, E] (0) or [L, E] (None); dropout always drops."""
    rank = 2 if batch_dim is None else 3
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != rank:
            raise ValueError(f"{_NAME}: `{name}` must have {rank} dimensions as `query`, got {list(x.shape)}")
    width = query.shape[-1]
    if width % heads != 0:
        raise ValueError(f"{_NAME}: embed_dim {width} is not divisible by num_heads {heads}")
    size = width // heads
    if tuple(key.shape[:-1]) != tuple(value.shape[:-1]):
        raise ValueError(f"{_NAME}: `key` {list(key.shape)} and `value` {list(value.shape)} differ in length or batch")
    if batch_dim is not None and key.shape[batch_dim] != query.shape[batch_dim]:
        raise ValueError(f"{_NAME}: `query` {list(query.shape)} and `key` {list(key.shape)} differ in batch")
    if is_causal and attn_mask is None:
        raise ValueError(f"{_NAME}: is_causal=True is a hint about `attn_mask`, which must be given too")

    length_dim = 1 if batch_dim == 0 else 0
    batch = 1 if batch_dim is None else query.shape[batch_dim]
    length, keys = query.shape[length_dim], key.shape[length_dim]
    query, key, value = _projected(query, key, value, in_proj_weight, in_proj_bias, separate_weights)

    if attn_mask is not None:
        _check_mask(attn_mask, "attn_mask", query.dtype, [(length, keys), (batch * heads, length, keys)])
        if attn_mask.dim() == 3:
            attn_mask = attn_mask.view(batch, heads, length, keys)
    if key_padding_mask is not None:
        padding = (keys,) if batch_dim is None else (batch, keys)
        _check_mask(key_padding_mask, "key_padding_mask", query.dtype, [padding])
        key_padding_mask = key_padding_mask.view(batch, 1, 1, keys)

    def split(x):
        """[N, heads, length, size] of what was projected."""
        x = x.unflatten(-1, (heads, size))
        if batch_dim is None:
            return x.transpose(0, 1).unsqueeze(0)
        return x.transpose(1, 2) if batch_dim == 0 else x.permute(1, 2, 0, 3)

    def more(x, last):
        """`x` with one key more for each head, broadcast."""
        return _C.cat([x, last.expand(batch, heads, 1, last.shape[-1])], 2)

    def given(x, name):
        if x.shape[0] != batch * heads or x.shape[2] != size:
            raise ValueError(f"{_NAME}: `{name}` must be [{batch * heads}, S, {size}], got {list(x.shape)}")
        return x.unflatten(0, (batch, heads))

    query, key, value = split(query), split(key), split(value)
    if (bias_k is None) != (bias_v is None):
        raise ValueError(f"{_NAME}: `bias_k` and `bias_v` are given together")
    extra = 0
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise ValueError(f"{_NAME}: `bias_k` and `bias_v` cannot be added to `static_k` and `static_v`")
        key = more(key, bias_k.reshape(1, heads, 1, size))
        value = more(value, bias_v.reshape(1, heads, 1, size))  # type: ignore[union-attr]  # given with bias_k
        extra += 1
    if static_k is not None:
        key = given(static_k, "static_k")
    if static_v is not None:
        value = given(static_v, "static_v")
    if add_zero_attn:
        zero = _C.zeros(1, 1, 1, size, dtype=key.dtype, device=key.device)
        key, value = more(key, zero), more(value, zero)
        extra += 1

    # A causal mask needs no reading, where nothing else hides keys.
    causal = is_causal and key_padding_mask is None and not need_weights and not extra
    mask = None
    if not causal and (attn_mask is not None or key_padding_mask is not None):
        mask = _merged(attn_mask, key_padding_mask, query.dtype)
        if extra and mask is not None:
            seen = _C.ones if mask.dtype == _C.bool else _C.zeros
            mask = _C.cat([mask, seen([*mask.shape[:-1], extra], dtype=mask.dtype, device=mask.device)], -1)

    weights = None
    if need_weights:
        weights = _weights(query, key, mask, dropout_p)
        found = weights @ value
    else:
        found = _attend(query, key, value, mask, dropout_p, causal)
    if batch_dim is None:
        found = found.squeeze(0).transpose(0, 1)
    else:
        found = found.transpose(1, 2) if batch_dim == 0 else found.permute(2, 0, 1, 3)
    out = _linear(found.flatten(-2), out_proj_weight, out_proj_bias)
    if weights is not None:
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights.squeeze(0) if batch_dim is None else weights
    return out, weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """(output [L, N, E], weights [N, L, S] or None) of query [L, N, E], key and value [S, N, E]; or all without N.

    Masks hide the keys where they are True, or are added to the scores.
    """
    if query.dim() not in (2, 3):
        raise ValueError(f"{_NAME}: `query` must be [L, E] or [L, N, E], got {list(query.shape)}")
    if query.shape[-1] != embed_dim_to_check:
        raise ValueError(f"{_NAME}: expected `query` of width {embed_dim_to_check}, got {list(query.shape)}")
    separate = None
    if use_separate_proj_weight:
        separate = (q_proj_weight, k_proj_weight, v_proj_weight)
        if any(w is None for w in separate):
            raise ValueError(f"{_NAME}: use_separate_proj_weight=True needs q_proj_weight, k_proj_weight and v_proj_weight")
    return attend_with_heads(
        query,
        key,
        value,
        num_heads,
        None if use_separate_proj_weight else in_proj_weight,
        in_proj_bias,
        bias_k,
        bias_v,
        add_zero_attn,
        dropout_p if training else 0.0,
        out_proj_weight,
        out_proj_bias,
        key_padding_mask,
        need_weights,
        attn_mask,
        separate,
        static_k,
        static_v,
        average_attn_weights,
        is_causal,
        1 if query.dim() == 3 else None,
    )


_check_module(globals())
