"""tenon::rmsnorm: rows over the root of the mean of their squares.

Zhang and Sennrich (2019), "Root Mean Square Layer Normalization". The reciprocal root is not kept for backward, which computes
it again where it reads the row anyway.
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

_lib = Library("tenon", "FRAGMENT")
_lib.define("rmsnorm(Tensor input, int[1] normalized_shape, Tensor? weight, float? eps) -> Tensor")
_lib.define("rmsnorm.out(Tensor input, int[1] normalized_shape, Tensor? weight, float? eps, *, Tensor(a!) out) -> Tensor(a!)")
_lib.define("rmsnorm_backward(Tensor grad, Tensor input, int[1] normalized_shape, Tensor? weight, float? eps) -> Tensor")
_lib.define("rmsnorm_backward_weight(Tensor grad, Tensor input, Tensor weight, float? eps) -> Tensor")


def _or_default(eps: Tensor | None, input: Tensor) -> Tensor | float:
    if eps is not None:
        return eps
    return 2.0**-52 if input.get_data_type() is _C.float64 else 2.0**-23


@cached_plan(name="tenon::rmsnorm")
def _forward(g: pygraph, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: Tensor | None) -> Tensor:
    check_trailing("rmsnorm", input, normalized_shape, weight=weight)
    y, _ = g.rmsnorm("INFERENCE", input, scale=weight, epsilon=_or_default(eps, input), axis=-len(normalized_shape))
    return y


def _normal(g: pygraph, input: Tensor, eps: Tensor | None, dims: int) -> tuple[Tensor, Tensor]:
    """The rows over their root, and one over the root."""
    compute = sum_type(input.get_data_type())
    return g.rmsnorm("TRAINING", input, epsilon=_or_default(eps, input), axis=-dims, compute_data_type=compute)


@cached_plan(name="tenon::rmsnorm_backward")
def _backward(
    g: pygraph, grad: Tensor, input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: Tensor | None
) -> Tensor:
    _, scale = _normal(g, input, eps, len(normalized_shape))
    dx, _ = g.rmsnorm_backward(grad, input, scale=weight, inv_variance=scale, axis=-len(normalized_shape))
    return dx.set_data_type(input.get_data_type())


@cached_plan(name="tenon::rmsnorm_backward_weight")
def _backward_weight(g: pygraph, grad: Tensor, input: Tensor, weight: Tensor, eps: Tensor | None) -> Tensor:
    _, scale = _normal(g, input, eps, len(weight.get_dim()))
    _, dweight = g.rmsnorm_backward(grad, input, scale=weight, inv_variance=scale)
    return dweight.set_data_type(weight.get_data_type())


for _name, _kernel in (
    ("rmsnorm", _forward),
    ("rmsnorm.out", _forward),
    ("rmsnorm_backward", _backward),
    ("rmsnorm_backward_weight", _backward_weight),
):
    _lib.impl(_name, _kernel, "CompositeExplicit")


_rmsnorm = namespace("tenon").rmsnorm.default
_rmsnorm_out = namespace("tenon").rmsnorm.out
_rmsnorm_backward = namespace("tenon").rmsnorm_backward
_rmsnorm_backward_weight = namespace("tenon").rmsnorm_backward_weight


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    input, ctx.normalized_shape, weight, ctx.eps = inputs
    ctx.save_for_backward(input, weight)


def _gradients(ctx: Any, grad: _C.Tensor) -> tuple[_C.Tensor | None, ...]:
    input, weight = ctx.saved_tensors
    wants_input, _, wants_weight, _ = ctx.needs_input_grad
    return (
        _rmsnorm_backward(grad, input, ctx.normalized_shape, weight, ctx.eps) if wants_input else None,
        None,
        _rmsnorm_backward_weight(grad, input, weight, ctx.eps) if wants_weight else None,
        None,
    )


register_autograd("tenon::rmsnorm", _gradients, setup_context=_setup_context, lib=_lib)


def rmsnorm(
    input: _C.Tensor,
    normalized_shape: int | Sequence[int],
    weight: _C.Tensor | None = None,
    eps: float | None = None,
    *,
    out: _C.Tensor | None = None,
) -> _C.Tensor:
    """input / sqrt(mean(input ** 2) + eps) * weight over the trailing dimensions `normalized_shape`, as one operator.

    `eps` is 2^-52 for float64 and 2^-23 for all others unless given. `out` is written, and returned; it has the result's
    dtype and shape, and any strides.
    """
    if out is None:
        return _rmsnorm(input, normalized_shape, weight, eps)
    return _rmsnorm_out(input, normalized_shape, weight, eps, out=out)
