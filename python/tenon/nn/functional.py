"""The functions behind the modules. A function whose arguments need no translation is the operator itself."""

from .. import _C
from .._C import leaky_relu, linear, log_softmax, relu_, sigmoid, softmax, softplus, tanh
from .._C import log_sigmoid as logsigmoid

__all__ = [
    "cross_entropy",
    "dropout",
    "l1_loss",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "mse_loss",
    "nll_loss",
    "relu",
    "relu_",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]

_relu, _silu, _silu_ = _C.relu, _C.silu, _C.silu_
_dropout, _dropout_ = _C.dropout, _C.dropout_
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_cross_entropy, _nll_loss, _mse_loss, _l1_loss = _C.cross_entropy_loss, _C.nll_loss, _C.mse_loss, _C.l1_loss


def relu(input, inplace=False):
    """max(input, 0)"""
    return relu_(input) if inplace else _relu(input)


def silu(input, inplace=False):
    """input * sigmoid(input)"""
    return _silu_(input) if inplace else _silu(input)


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes each element with probability p while training, and scales the others by 1 / (1 - p)."""
    return (_dropout_ if inplace else _dropout)(input, p, training)


def _reduction(word):
    if word not in _REDUCTIONS:
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {word!r}")
    return _REDUCTIONS[word]


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """The negative log-likelihood of the classes `target` [N] (int64) under softmax(input), where input is [N, C]."""
    return _cross_entropy(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """The negative log-likelihood of the classes `target` [N] (int64), where input [N, C] has log-probabilities."""
    return _nll_loss(input, target, weight, _reduction(reduction), ignore_index)


def mse_loss(input, target, reduction="mean"):
    """(input - target)^2"""
    return _mse_loss(input, target, _reduction(reduction))


def l1_loss(input, target, reduction="mean"):
    """|input - target|"""
    return _l1_loss(input, target, _reduction(reduction))
