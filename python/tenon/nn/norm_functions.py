"""Normalisation for nn.functional: operators whose arguments PyTorch's Python has in another order."""

from .. import _C
from ..functional import norm as _norm

_layer_norm, _group_norm, _rms_norm = _C.layer_norm, _C.group_norm, _C.rms_norm
_batch_norm, _instance_norm = _C.batch_norm, _C.instance_norm


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    """(input - mean) / sqrt(variance + eps) * weight + bias over the trailing dimensions `normalized_shape`."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input / sqrt(mean(input ** 2) + eps) * weight over the trailing dimensions `normalized_shape`."""
    return _rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """Normalises `num_groups` groups of the channels of each sample of input [N, C, ...]."""
    if input.dim() > 1 and num_groups > 0:
        # The channels of a group are values of it; groups of several samples stand side by side.
        _check_more_than_one("group_norm", input, input.numel() // max(num_groups, 1))
    return _group_norm(input, num_groups, weight, bias, eps)


def _check_more_than_one(name, input, count):
    if count == 1:
        raise ValueError(f"{name}: expected more than 1 value for each channel when training, got input of size {tuple(input.shape)}")


def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05
):
    """Normalises each channel of input [N, C, ...]: by this batch where `training`, else by the running statistics."""
    if training:
        _check_more_than_one("batch_norm", input, input.numel() // max(input.size(1), 1))
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-05,
):
    """Normalises each channel of each sample of input [N, C, ...] by itself."""
    if use_input_stats:
        _check_more_than_one("instance_norm", input, input.numel() // max(input.size(0) * input.size(1), 1))
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input / max(norm of order p along `dim`, eps): an int or several dimensions."""
    length = _norm(input, p, dim, keepdim=True).clamp_min(eps)
    return input / length if out is None else _C.div(input, length, out=out)
