"""tenon::moe_matmul: each row by the matrix of its expert.

Shazeer et al. (2017), "Outrageously large neural networks: the sparsely-gated mixture-of-experts layer". How many rows an expert
has is known when the call runs, not when it is planned: there is no graph of it. Rows are ordered by expert, so that each
expert has one product; of few rows and small matrices each row has its own, of a copy of its expert's matrix. Both have the same
bits.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from .. import _C
from ..library import Library, register_autograd
from ..namespaces import namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

_lib = Library("tenon", "FRAGMENT")
_lib.define("moe_matmul(Tensor input, Tensor weight, Tensor experts) -> Tensor")
_lib.define("moe_matmul.out(Tensor input, Tensor weight, Tensor experts, *, Tensor(a!) out) -> Tensor(a!)")
_lib.define("moe_matmul_backward_weight(Tensor grad, Tensor input, Tensor experts, int num_experts) -> Tensor")

# Elements of matrices that are copied sooner than rows are ordered.
_FEW = 1 << 16
_INTEGERS = (_C.int64, _C.int32, _C.int16, _C.int8, _C.uint8)


def _check(name: str, rows: _C.Tensor, experts: _C.Tensor) -> None:
    if rows.dim() != 2:
        raise ValueError(f"moe_matmul: `{name}` has shape {list(rows.shape)}, expected [tokens, width]")
    if experts.dtype not in _INTEGERS or experts.shape != rows.shape[:1]:
        raise ValueError(
            f"moe_matmul: `experts` is {experts.dtype} of shape {list(experts.shape)}, expected integers, one for each of the "
            f"{rows.shape[0]} rows of `{name}`"
        )


def _check_product(input: _C.Tensor, weight: _C.Tensor, experts: _C.Tensor) -> None:
    _check("input", input, experts)
    if weight.dim() != 3 or weight.shape[1] != input.shape[1] or weight.dtype != input.dtype:
        raise ValueError(
            f"moe_matmul: `weight` is {weight.dtype} of shape {list(weight.shape)}, expected {input.dtype} of shape "
            f"[experts, {input.shape[1]}, width]"
        )


def _check_range(first: int, last: int, count: int) -> None:
    if not 0 <= first <= last < count:
        raise IndexError(f"moe_matmul: expert {first if first < 0 else last} of {count}")


def _groups(experts: _C.Tensor, count: int) -> Iterator[tuple[int, int, int]]:
    """(expert, first row, last row + 1) of those that have rows, from experts in order."""
    listed = experts.tolist()
    if listed:
        _check_range(listed[0], listed[-1], count)
    begin = 0
    while begin < len(listed):
        end = bisect_right(listed, listed[begin], begin)
        yield listed[begin], begin, end
        begin = end


def _product(input: _C.Tensor, weight: _C.Tensor, experts: _C.Tensor) -> _C.Tensor:
    _check_product(input, weight, experts)
    experts = experts.long()
    if experts.shape[0] * weight.shape[1] * weight.shape[2] <= _FEW:
        if listed := experts.tolist():
            _check_range(min(listed), max(listed), weight.shape[0])
        return _C.bmm(input.unsqueeze(1), weight.index_select(0, experts)).squeeze(1)
    ordered, order = _C.sort(experts, stable=True)
    rows, result = input.index_select(0, order), _C.empty((input.shape[0], weight.shape[2]), dtype=input.dtype)
    for expert, begin, end in _groups(ordered, weight.shape[0]):
        _C.mm(rows[begin:end], weight[expert], out=result[begin:end])
    back = _C.empty_like(result)
    back[order] = result
    return back


def _product_out(input: _C.Tensor, weight: _C.Tensor, experts: _C.Tensor, *, out: _C.Tensor) -> _C.Tensor:
    wanted = [input.shape[0], weight.shape[2]]
    if list(out.shape) != wanted or out.dtype != input.dtype:
        raise ValueError(f"moe_matmul: `out` is {out.dtype} of shape {list(out.shape)}, the result is {input.dtype} of shape {wanted}")
    return out.copy_(_product(input, weight, experts))


def _weight_gradient(grad: _C.Tensor, input: _C.Tensor, experts: _C.Tensor, num_experts: int) -> _C.Tensor:
    _check("grad", grad, experts)
    ordered, order = _C.sort(experts.long(), stable=True)
    gradients, rows = grad.index_select(0, order), input.index_select(0, order)
    result = _C.zeros((num_experts, input.shape[1], grad.shape[1]), dtype=input.dtype)
    for expert, begin, end in _groups(ordered, num_experts):
        _C.mm(rows[begin:end].T, gradients[begin:end], out=result[expert])
    return result


def _product_fake(input: _C.Tensor, weight: _C.Tensor, experts: _C.Tensor) -> _C.Tensor:
    _check_product(input, weight, experts)
    return input.new_empty((input.shape[0], weight.shape[2]))


def _weight_gradient_fake(grad: _C.Tensor, input: _C.Tensor, experts: _C.Tensor, num_experts: int) -> _C.Tensor:
    return input.new_empty((num_experts, input.shape[1], grad.shape[1]))


_lib.impl("moe_matmul", _product, "CPU")
_lib.impl("moe_matmul", _product_fake, "Meta")
_lib.impl("moe_matmul.out", _product_out, "CPU")
_lib.impl("moe_matmul_backward_weight", _weight_gradient, "CPU")
_lib.impl("moe_matmul_backward_weight", _weight_gradient_fake, "Meta")

_moe_matmul = namespace("tenon").moe_matmul.default
_moe_matmul_out = namespace("tenon").moe_matmul.out
_moe_matmul_backward_weight = namespace("tenon").moe_matmul_backward_weight


# The product is linear in rows and matrices, and so are its gradients: each is made of the two operators.


def _setup_product(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _product_gradients(ctx: Any, grad: _C.Tensor) -> tuple[_C.Tensor | None, ...]:
    input, weight, experts = ctx.saved_tensors
    wants_input, wants_weight, _ = ctx.needs_input_grad
    return (
        _moe_matmul(grad, weight.transpose(1, 2), experts) if wants_input else None,
        _moe_matmul_backward_weight(grad, input, experts, weight.shape[0]) if wants_weight else None,
        None,
    )


def _setup_weight_gradient(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:3])


def _weight_gradient_gradients(ctx: Any, grad_weight: _C.Tensor) -> tuple[_C.Tensor | None, ...]:
    grad, input, experts = ctx.saved_tensors
    wants_grad, wants_input, _, _ = ctx.needs_input_grad
    return (
        _moe_matmul(input, grad_weight, experts) if wants_grad else None,
        _moe_matmul(grad, grad_weight.transpose(1, 2), experts) if wants_input else None,
        None,
        None,
    )


register_autograd("tenon::moe_matmul", _product_gradients, setup_context=_setup_product, lib=_lib)
register_autograd(
    "tenon::moe_matmul_backward_weight", _weight_gradient_gradients, setup_context=_setup_weight_gradient, lib=_lib
)


def moe_matmul(input: _C.Tensor, weight: _C.Tensor, experts: _C.Tensor, *, out: _C.Tensor | None = None) -> _C.Tensor:
    """Row t of the result is input[t] @ weight[experts[t]].

    Shape: input [tokens, K], weight [experts, K, N], experts [tokens] of integers -> [tokens, N]. `out` is written, and returned;
    it has the result's dtype and shape, and any strides.
    """
    if out is None:
        return _moe_matmul(input, weight, experts)
    return _moe_matmul_out(input, weight, experts, out=out)
