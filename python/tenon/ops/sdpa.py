"""tenon::sdpa: attention, whose weights are never stored.

Vaswani et al. (2017), "Attention is all you need"; by blocks as in Dao et al. (2022), "FlashAttention". Backward computes the
weights again from each query's sum of exponentials, whose logarithm is the second result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._program.cached_plans import cached_plan
from ..library import Library, register_autograd
from ..namespaces import namespace

if TYPE_CHECKING:
    from ..graph import Tensor, pygraph

_INPUTS = "Tensor query, Tensor key, Tensor value, Tensor? attn_mask"
_OPTIONS = "bool is_causal, float? scale, bool enable_gqa"

_lib = Library("tenon", "FRAGMENT")
_lib.define(f"sdpa({_INPUTS}, {_OPTIONS}) -> (Tensor output, Tensor logsumexp)")
_lib.define(f"sdpa.out({_INPUTS}, {_OPTIONS}, *, Tensor(a!) out) -> Tensor(a!)")
_lib.define(
    f"sdpa_backward(Tensor grad, {_INPUTS}, Tensor output, Tensor logsumexp, {_OPTIONS}) -> (Tensor, Tensor, Tensor)"
)


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if len(tensor.get_dim()) != 4:
            raise ValueError(f"sdpa: `{name}` has shape {tensor.get_dim()}, expected [batch, heads, length, width]")
    heads = [tensor.get_dim()[1] for tensor in (query, key, value)]
    if not enable_gqa and len(set(heads)) > 1:
        raise ValueError(
            f"sdpa: query, key and value have {heads[0]}, {heads[1]} and {heads[2]} heads; with enable_gqa=True, heads of key "
            "and value serve several of query"
        )


def _attention(
    g: pygraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: Tensor | None,
    enable_gqa: bool,
) -> list[Tensor]:
    _check(query, key, value, enable_gqa)
    results: list[Tensor] = g.sdpa(
        query, key, value, bias=attn_mask, attn_scale=scale, use_causal_mask=is_causal, generate_stats=True
    )
    return results


_forward = cached_plan(_attention, name="tenon::sdpa")


@cached_plan(name="tenon::sdpa")
def _forward_alone(
    g: pygraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: Tensor | None,
    enable_gqa: bool,
) -> Tensor:
    return _attention(g, query, key, value, attn_mask, is_causal, scale, enable_gqa)[0]


@cached_plan(name="tenon::sdpa_backward")
def _backward(
    g: pygraph,
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    output: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: Tensor | None,
    enable_gqa: bool,
) -> list[Tensor]:
    _check(query, key, value, enable_gqa)
    results: list[Tensor] = g.sdpa_backward(
        query, key, value, output, grad, logsumexp, bias=attn_mask, attn_scale=scale, use_causal_mask=is_causal
    )
    return results


for _name, _kernel in (("sdpa", _forward), ("sdpa.out", _forward_alone), ("sdpa_backward", _backward)):
    _lib.impl(_name, _kernel, "CompositeExplicit")

_sdpa = namespace("tenon").sdpa.default
_sdpa_out = namespace("tenon").sdpa.out
_sdpa_backward = namespace("tenon").sdpa_backward


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    query, key, value, attn_mask, *ctx.options = inputs
    if attn_mask is not None and attn_mask.requires_grad:
        raise NotImplementedError(
            "sdpa: `attn_mask` requires grad, and its gradient is not computed; detach it, or call "
            "nn.functional.scaled_dot_product_attention"
        )
    ctx.save_for_backward(query, key, value, attn_mask, *output)
    ctx.mark_non_differentiable(output[1])


def _gradients(ctx: Any, grad: _C.Tensor, _: Any) -> tuple[_C.Tensor | None, ...]:
    return *_sdpa_backward(grad, *ctx.saved_tensors, *ctx.options), None, None, None, None


register_autograd("tenon::sdpa", _gradients, setup_context=_setup_context, lib=_lib)


def sdpa(
    query: _C.Tensor,
    key: _C.Tensor,
    value: _C.Tensor,
    attn_mask: _C.Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """softmax(query @ key.T * scale + attn_mask) @ value, as one operator; scale is 1 / sqrt(E) unless given.

    Shape: query [batch, heads, L, E], key [batch, heads, S, E], value [batch, heads, S, V] -> [batch, heads, L, V]. A bool mask
    says which keys a query sees, a floating one is added. With `enable_gqa`, each head of key and value serves several of query.
    `out` is written, and returned; it has the result's dtype and shape, and any strides.
    """
    if out is not None:
        return _sdpa_out(query, key, value, attn_mask, is_causal, scale, enable_gqa, out=out)
    output: _C.Tensor = _sdpa(query, key, value, attn_mask, is_causal, scale, enable_gqa)[0]
    return output
