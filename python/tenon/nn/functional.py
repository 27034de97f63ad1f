"""The functions of the modules. A function whose arguments need no translation is the operator itself."""

from __future__ import annotations

from .. import _C
from .._C import linear, relu_, sigmoid, softplus, tanh
from .._C import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from .._C import scaled_dot_product_attention
from .._C import log_sigmoid as logsigmoid
from .._names.absent import add_module_getattr
from ..arguments import checked as _checked
from ..autograd.grad_mode import no_grad
from . import spatial
from . import activation_functions
from .activation_functions import *  # noqa: F403  by its __all__
from . import loss_functions
from .loss_functions import *  # noqa: F403
from .multi_head import multi_head_attention_forward
from .norm_functions import batch_norm, group_norm, instance_norm, layer_norm, normalize, rms_norm
from .spatial import *  # noqa: F403

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from .ctc import ctc_loss as ctc_loss
    from .margin_losses import (
        bilinear as bilinear,
        multi_margin_loss as multi_margin_loss,
        multilabel_margin_loss as multilabel_margin_loss,
        multilabel_soft_margin_loss as multilabel_soft_margin_loss,
        pdist as pdist,
        triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
    )
    from .products import grouped_mm as grouped_mm, linear_cross_entropy as linear_cross_entropy
    from .sampling import (
        affine_grid as affine_grid,
        conv_tbc as conv_tbc,
        fractional_max_pool2d as fractional_max_pool2d,
        fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
        fractional_max_pool3d as fractional_max_pool3d,
        fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices,
        grid_sample as grid_sample,
        local_response_norm as local_response_norm,
        max_unpool1d as max_unpool1d,
        max_unpool2d as max_unpool2d,
        max_unpool3d as max_unpool3d,
        native_channel_shuffle as native_channel_shuffle,
    )

__all__ = [
    "alpha_dropout",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "multi_head_attention_forward",
    "normalize",
    "one_hot",
    "relu",
    "relu_",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]
__all__ += activation_functions.__all__
__all__ += loss_functions.__all__
__all__ += spatial.__all__

_relu, _silu, _silu_ = _C.relu, _C.silu, _C.silu_
_dropout, _dropout_ = _C.dropout, _C.dropout_


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0)"""
    return relu_(input) if inplace else _relu(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input)"""
    return _silu_(input) if inplace else _silu(input)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability p while training, and scales the others by 1 / (1 - p)."""
    return (_dropout_ if inplace else _dropout)(input, p, training)


def _check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: p must be between 0 and 1, got {p}")


def _channel_shape(input: Tensor) -> list[int]:
    return [*input.shape[:2], *([1] * (input.dim() - 2))]


def _drop_channels(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, ranks: Any, batched: int
) -> Tensor:
    """Zeroes whole channels. `ranks`: the number of dimensions that input may have; without a batch, one less than `batched`."""
    _check_probability(name, p)
    if input.dim() not in ranks:
        raise ValueError(f"{name}: expected {' or '.join(map(str, ranks))} dimensions, got shape {list(input.shape)}")
    if not training or p == 0 or input.numel() == 0:
        return input
    whole = input if input.dim() == batched else input.unsqueeze(0)
    noise = _C.empty(_channel_shape(whole), dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    if p < 1:
        noise = noise.div_(1 - p)
    out = whole.mul_(noise) if inplace else whole * noise
    if inplace:
        return input
    return out if whole is input else out.squeeze(0)


@_checked
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As dropout, for whole channels of input [N, C, L] or [C, L]."""
    return _drop_channels("dropout1d", input, p, training, inplace, (2, 3), 3)


@_checked
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As dropout, for whole channels of input [N, C, H, W]. As in PyTorch, [N, C, L] counts as a batch too."""
    return _drop_channels("dropout2d", input, p, training, inplace, (3, 4), input.dim())


@_checked
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As dropout, for whole channels of input [N, C, D, H, W] or [C, D, H, W]."""
    return _drop_channels("dropout3d", input, p, training, inplace, (4, 5), 5)


_SELU_LIMIT = -1.7580993408473766  # what selu tends to for large negative input


def _alpha_dropout(name: str, input: Tensor, shape: Any, p: float, training: bool, inplace: bool) -> Tensor:
    _check_probability(name, p)
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    scale = ((1 - p) * (1 + p * _SELU_LIMIT**2)) ** -0.5
    kept = _C.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    rest = (1 - kept).mul_(_SELU_LIMIT * scale).add_(-scale * _SELU_LIMIT * p)
    kept = kept.mul_(scale)
    return input.mul_(kept).add_(rest) if inplace else input * kept + rest


@_checked
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Gives each element selu's limit with probability p while training, then keeps mean 0 and variance 1 by an affine map."""
    return _alpha_dropout("alpha_dropout", input, input.shape, p, training, inplace)


@_checked
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """As alpha_dropout, for whole channels of input [N, C, ...]."""
    _check_probability("feature_alpha_dropout", p)
    if input.dim() < 2 and training and 0 < p < 1 and input.numel() > 0:
        raise ValueError(f"feature_alpha_dropout: expected at least 2 dimensions in training, got shape {list(input.shape)}")
    return _alpha_dropout("feature_alpha_dropout", input, _channel_shape(input), p, training, inplace)


_embedding, _embedding_bag, _embedding_renorm_ = _C.embedding, _C.embedding_bag, _C.embedding_renorm_
_one_hot = _C.one_hot
_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def _padding_row(name: str, padding_idx: int | None, weight: Tensor) -> int:
    """Counted from the front; -1 for none."""
    if padding_idx is None or weight.dim() == 0:
        return -1
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise ValueError(f"{name}: padding_idx {padding_idx} is out of range for the {rows} rows of weight")
    return padding_idx % rows


def _limit_norms(weight: Tensor, indices: Tensor, max_norm: float | None, norm_type: float) -> None:
    if max_norm is not None:
        with no_grad():
            _embedding_renorm_(weight, indices, max_norm, norm_type)


@_checked
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` [N, D] that `input` [...] names: [..., D].

    Row padding_idx gets no gradient; rows whose norm is above max_norm are scaled to it first, in place; with
    scale_grad_by_freq, the gradient of a row is divided by how often it was read.
    """
    padding_idx = _padding_row("embedding", padding_idx, weight)
    _limit_norms(weight, input, max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@_checked
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or max of the rows of `weight` [N, D] in each bag: [B, D].

    Bags are the rows of input [B, n], or the ranges of input [n] between consecutive `offsets` [B]. Indices equal to
    padding_idx count nothing.
    """
    if mode not in _BAG_MODES:
        raise ValueError(f"embedding_bag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if weight.dim() != 2:
        raise ValueError(f"embedding_bag: weight must have 2 dimensions, got shape {list(weight.shape)}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("embedding_bag: the rows of a 2-dimensional input are its bags: give no offsets")
        offsets = _C.arange(input.size(0), device=input.device) * input.size(1)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"embedding_bag: input must have 1 or 2 dimensions, got shape {list(input.shape)}")
    elif offsets is None:
        raise ValueError("embedding_bag: an input of 1 dimension needs offsets, where its bags begin")
    row = _padding_row("embedding_bag", padding_idx, weight)
    _limit_norms(weight, input, max_norm, norm_type)
    return _embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        None if padding_idx is None else row,
    )[0]


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at each class, 0 elsewhere: [...] -> [..., num_classes], int64; with -1, as many as the largest class asks for."""
    return _one_hot(tensor, num_classes)


# Functions that load when first asked for, so that `import tenon` stays quick.
_LATER = {
    **dict.fromkeys(
        (
            "affine_grid", "conv_tbc", "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
            "fractional_max_pool3d_with_indices", "grid_sample", "local_response_norm", "max_unpool1d", "max_unpool2d", "max_unpool3d",
            "native_channel_shuffle",
        ),
        "sampling",
    ),
    **dict.fromkeys(
        (
            "bilinear", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "pdist",
            "triplet_margin_with_distance_loss",
        ),
        "margin_losses",
    ),
    "ctc_loss": "ctc",
    **dict.fromkeys(("grouped_mm", "linear_cross_entropy"), "products"),
}  # fmt: skip
__all__ += _LATER

add_module_getattr(__name__, later=_LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
