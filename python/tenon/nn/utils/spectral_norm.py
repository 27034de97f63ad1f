"""spectral_norm of older programs: a weight divided by its largest singular value, which is estimated before each forward.

Miyato et al. (2018), arXiv:1802.05957. `parametrizations.spectral_norm` computes the weight where it is used.
"""

from __future__ import annotations

from ... import _C
from ...arguments import check_module as _check_module
from ...autograd.grad_mode import no_grad
from ..parameter import Parameter
from ._forward_pre_hook import add_pre_hook, taken_pre_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ..module import Module

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """[size of dim, all the rest]"""
    if dim != 0:
        weight = weight.movedim(dim, 0)
    return weight.reshape(weight.shape[0], -1)


def unit(vector: Tensor, eps: float) -> Tensor:
    """The vector with length 1."""
    return vector / _C.linalg_vector_norm(vector).clamp_min(eps)


def check_iterations(n_power_iterations: int) -> None:
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")


class SpectralNorm:
    """The hook that computes a module's weight from `name`_orig and the singular vectors `name`_u and `name`_v."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        check_iterations(n_power_iterations)
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps
        self.computes = name

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(unit(_C.mv(matrix.t(), u), self.eps))
                    u.copy_(unit(_C.mv(matrix, v), self.eps))
                u, v = u.clone(), v.clone()  # what the backward pass uses; the next forward changes the buffers
        return weight / _C.dot(u, _C.mv(matrix, v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        if name not in (module._parameters.keys() | vars(module)):
            raise KeyError(f"spectral_norm: {type(module).__name__} has no parameter '{name}'")
        weight = vars(module)[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        add_pre_hook(module, hook, "spectral_norm")
        matrix = as_matrix(weight.detach(), dim)
        u, v = (unit(matrix.new_empty(size).normal_(0, 1), eps) for size in matrix.shape)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        return hook

    def remove(self, module: Module) -> None:
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for name in (self.name, self.name + "_u", self.name + "_v", self.name + "_orig"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


def default_dim(module: Module) -> int:
    """Where a weight has the features of the module's result."""
    from ..conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a parameter by its largest singular value, estimated by `n_power_iterations` steps of the power method before each
    forward in training mode. The weight is a matrix of [size of dim, all the rest]. Returns the module."""
    SpectralNorm.apply(module, name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Any:
    """Puts the weight in the place of what spectral_norm made of it."""
    taken_pre_hook(module, SpectralNorm, name, "spectral_norm").remove(module)
    return module


_check_module(globals())
