"""tenon::layernorm: rows less their mean, over their deviation.

Ba, Kiros and Hinton (2016), "Layer Normalization". Mean and deviation are not kept for backward, which computes them again where
it reads the row anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from .._program.cached_plans import cached_plan
from ..library import Library, register_autograd
from ..namespaces import namespace
from .._names.info import sum_type
from ._shapes import check_trailing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..graph import Tensor, pygraph

_ARGUMENTS = "Tensor input, int[1] normalized_shape, Tensor? weight, Tensor? bias, float eps"

_lib = Library("tenon", "FRAGMENT")
_lib.define(f"layernorm({_ARGUMENTS}) -> Tensor")
_lib.define(f"layernorm.out({_ARGUMENTS}, *, Tensor(a!) out) -> Tensor(a!)")
_lib.define("layernorm_backward(Tensor grad, Tensor input, int[1] normalized_shape, Tensor? weight, float eps) -> Tensor")
_lib.define("layernorm_backward_weight(Tensor grad, Tensor input, Tensor weight, float eps) -> Tensor")


@cached_plan(name="tenon::layernorm")
def _forward(
    g: pygraph, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: Tensor
) -> Tensor:
    check_trailing("layernorm", input, normalized_shape, weight=weight, bias=bias)
    return g.layernorm("INFERENCE", input, scale=weight, bias=bias, epsilon=eps, axis=-len(normalized_shape))[0]


def _statistics(g: pygraph, input: Tensor, eps: Tensor, dims: int) -> list[Tensor]:
    """The mean of each row, and one over its deviation."""
    return g.layernorm("TRAINING", input, epsilon=eps, axis=-dims, compute_data_type=sum_type(input.get_data_type()))[1:]


@cached_plan(name="tenon::layernorm_backward")
def _backward(
    g: pygraph, grad: Tensor, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: Tensor
) -> Tensor:
    dims = len(normalized_shape)
    mean, scale = _statistics(g, input, eps, dims)
    dx, _, _ = g.layernorm_backward(grad, input, scale=weight, mean=mean, inv_variance=scale, axis=-dims)
    return dx.set_data_type(input.get_data_type())


@cached_plan(name="tenon::layernorm_backward_weight")
def _backward_weight(g: pygraph, grad: Tensor, input: Tensor, weight: Tensor, eps: Tensor) -> Tensor:
    mean, scale = _statistics(g, input, eps, len(weight.get_dim()))
    _, dweight, _ = g.layernorm_backward(grad, input, scale=weight, mean=mean, inv_variance=scale)
    return dweight.set_data_type(weight.get_data_type())


for _name, _kernel in (
    ("layernorm", _forward),
    ("layernorm.out", _forward),
    ("layernorm_backward", _backward),
    ("layernorm_backward_weight", _backward_weight),
):
    _lib.impl(_name, _kernel, "CompositeExplicit")

_layernorm = namespace("tenon").layernorm.default
_layernorm_out = namespace("tenon").layernorm.out
_layernorm_backward = namespace("tenon").layernorm_backward
_layernorm_backward_weight = namespace("tenon").layernorm_backward_weight


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    input, ctx.normalized_shape, weight, bias, ctx.eps = inputs
    ctx.bias_type = None if bias is None else bias.dtype
    ctx.save_for_backward(input, weight)


def _gradients(ctx: Any, grad: _C.Tensor) -> tuple[_C.Tensor | None, ...]:
    input, weight = ctx.saved_tensors
    wants_input, _, wants_weight, wants_bias, _ = ctx.needs_input_grad
    return (
        _layernorm_backward(grad, input, ctx.normalized_shape, weight, ctx.eps) if wants_input else None,
        None,
        _layernorm_backward_weight(grad, input, weight, ctx.eps) if wants_weight else None,
        grad.sum_to_size(ctx.normalized_shape).to(ctx.bias_type) if wants_bias else None,
        None,
    )


register_autograd("tenon::layernorm", _gradients, setup_context=_setup_context, lib=_lib)


def layernorm(
    input: _C.Tensor,
    normalized_shape: int | Sequence[int],
    weight: _C.Tensor | None = None,
    bias: _C.Tensor | None = None,
    eps: float = 1e-5,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """(input - mean) / sqrt(variance + eps) * weight + bias over the trailing dimensions `normalized_shape`, as one operator.

    `out` is written, and returned; it has the result's dtype and shape, and any strides.
    """
    if out is None:
        return _layernorm(input, normalized_shape, weight, bias, eps)
    return _layernorm_out(input, normalized_shape, weight, bias, eps, out=out)
