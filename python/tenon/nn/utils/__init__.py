"""Helpers for parameters: the norm of gradients and its limit, all parameters as one vector, and parameters that are computed."""

from ..._names.absent import add_module_getattr
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .init import skip_init
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import fusion as fusion
    from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

_MODULES = {name: name for name in ("fusion", "parametrizations", "parametrize", "rnn")}
add_module_getattr(__name__, {**_MODULES, **{name: "fusion" for name in __all__ if name.startswith("fuse_")}})
