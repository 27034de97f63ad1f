"""Batch norms after convolutions and linear layers, in their weights: for models that are evaluated."""

from __future__ import annotations

import copy

from ...arguments import check_module as _check_module, describe as _describe
from ..module import Module
from ..parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(function: str, layer: Any, bn: Any) -> None:
    for name, module in (("the layer", layer), ("bn", bn)):
        if not isinstance(module, Module):
            raise TypeError(f"{function}: {name} must be a Module, got {_describe(module)}")
    if layer.training or bn.training:
        raise ValueError(f"{function}: both modules must be in eval mode, for training changes the statistics; call eval()")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError(f"{function}: the batch norm must have running statistics; make it with track_running_stats")


def _fused(weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, by: Any, shift: Any, shape: list[int]) -> Any:
    factor = (var + eps).rsqrt()
    if by is not None:
        factor = factor * by
    moved = -mean if bias is None else bias - mean
    constant = moved * factor if shift is None else moved * factor + shift
    new = weight * factor.reshape(shape).to(weight.dtype)
    return Parameter(new, weight.requires_grad), Parameter(constant, weight.requires_grad if bias is None else bias.requires_grad)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution whose results are those of the batch norm after it; with `transpose` of a transposed one."""
    _check("fuse_conv_bn_eval", conv, bn)
    found = copy.deepcopy(conv)
    found.weight, found.bias = fuse_conv_bn_weights(
        found.weight, found.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return found


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Any, Any]:
    """The weight and bias of a convolution with the batch norm after it."""
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer whose results are those of the batch norm after it."""
    _check("fuse_linear_bn_eval", linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise ValueError(
            f"fuse_linear_bn_eval: the batch norm must have out_features, {linear.out_features}, or 1 feature, got {bn.num_features}"
        )
    found = copy.deepcopy(linear)
    found.weight, found.bias = fuse_linear_bn_weights(
        found.weight, found.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return found


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Any, Any]:
    """The weight and bias of a linear layer with the batch norm after it."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


_check_module(globals())
