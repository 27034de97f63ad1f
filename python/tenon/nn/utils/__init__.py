"""Helpers for parameters: the norm of gradients and its limit, and all parameters as one vector."""

from ..._names.absent import module_getattr
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters

TYPE_CHECKING = False

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]

if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__, later=("rnn",))
