"""Parametrizations of weights: by length and direction, and divided by the largest singular value."""

from __future__ import annotations

from ... import _C
from ..._names.absent import add_module_getattr
from ...arguments import check_module as _check_module
from ...autograd.grad_mode import no_grad
from ..module import Module
from . import parametrize
from .spectral_norm import as_matrix, check_iterations, default_dim, unit
from .weight_norm import lengths, scaled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Any:
    """Not in Tenon: raises NotImplementedError."""
    raise NotImplementedError(
        "orthogonal: Tenon has no matrix exponential, QR decomposition or solver for it; nn.init.orthogonal_ makes a weight orthogonal once, "
        "and register_parametrization takes a map of your own"
    )


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return lengths(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Makes a parameter of two others: `original0`, its lengths over all dimensions but `dim`, or over all for None, and `original1`,
    its direction. Loads states of nn.utils.weight_norm too. Returns the module. Salimans and Kingma (2016), arXiv:1602.07868.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(_OlderNames(name))
    return module


class _OlderNames:
    """Gives what nn.utils.weight_norm saved the names that it has here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
        old = [f"{prefix}{self.name}_{part}" for part in "gv"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{self.name}.original{i}"] = state_dict.pop(key)


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.dim()
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        check_iterations(n_power_iterations)
        self.dim, self.eps, self.n_power_iterations = dim % ndim, eps, n_power_iterations
        if ndim > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, unit(matrix.new_empty(size).normal_(0, 1), eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(unit(_C.mv(matrix, self._v), self.eps))
                self._v.copy_(unit(_C.mv(matrix.t().conj(), self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # What the backward pass uses; the next forward changes the buffers.
        return weight / _C.vdot(self._u.clone(), _C.mv(matrix, self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divides a parameter by its largest singular value wherever it is used; in training mode `n_power_iterations` steps of the power
    method estimate that first. The weight is a matrix of [size of dim, all the rest]. Returns the module. Miyato et al. (2018),
    arXiv:1802.05957.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    dim = default_dim(module) if dim is None else dim
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


_check_module(globals())
add_module_getattr(__name__)
