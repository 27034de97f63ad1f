"""weight_norm of older programs: a weight as length times direction, computed before each forward.

Salimans and Kingma (2016), arXiv:1602.07868. `parametrizations.weight_norm` computes the weight where it is used.
"""

from __future__ import annotations

from ... import _C
from ...arguments import check_module as _check_module
from ..parameter import Parameter
from ._forward_pre_hook import add_pre_hook, taken_pre_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ..module import Module

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def lengths(v: Tensor, dim: int) -> Tensor:
    """The norm over all dimensions but `dim`, which are kept with size 1; over all of them for -1."""
    if dim == -1:
        return _C.linalg_vector_norm(v)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return _C.linalg_vector_norm(v, 2, others, True) if others else v.abs()


def scaled(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """v with the lengths g."""
    return v * (g / lengths(v, dim))


class WeightNorm:
    """The hook that computes a module's weight from `name`_g and `name`_v."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim
        self.computes = name

    def compute_weight(self, module: Module) -> Any:
        return scaled(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        hook = add_pre_hook(module, WeightNorm(name, dim), "weight_norm")
        weight = getattr(module, name)
        delattr(module, name)
        module.register_parameter(name + "_g", Parameter(lengths(weight.detach(), hook.dim)))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        return hook

    def remove(self, module: Module) -> None:
        weight = self.compute_weight(module).detach()
        for name in (self.name, self.name + "_g", self.name + "_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Replaces a parameter by two, `name`_g and `name`_v: its lengths over all dimensions but `dim`, or over all for None, and its
    direction. Returns the module."""
    import warnings

    warnings.warn("weight_norm of nn.utils is deprecated in favor of nn.utils.parametrizations.weight_norm", FutureWarning, stacklevel=3)
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Any:
    """Puts the weight in the place of the two parameters of weight_norm."""
    taken_pre_hook(module, WeightNorm, name, "weight_norm").remove(module)
    return module


_check_module(globals())
