"""All parameters of a model as one vector, and back."""

from __future__ import annotations

from ... import _C
from ...arguments import check_module as _check_module, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..._C import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other."""
    return _C.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives each parameter its part of a vector, as a view of it."""
    if not isinstance(vec, _C.Tensor):
        raise TypeError(f"vector_to_parameters: vec must be a Tensor, got {describe(vec)}")
    parameters = list(parameters)
    needed = sum(p.numel() for p in parameters)
    if vec.dim() != 1 or vec.numel() < needed:
        raise ValueError(
            f"vector_to_parameters: the parameters have {needed} elements, and the vector has shape {list(vec.shape)}"
        )
    first = 0
    for p in parameters:
        p.data = vec[first : first + p.numel()].view_as(p).data
        first += p.numel()


_check_module(globals())
