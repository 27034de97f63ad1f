"""Losses made of operators, for nn.functional."""

from .. import _C

_REDUCE = {"none": lambda x: x, "mean": _C.mean, "sum": _C.sum}


def reduced(values, reduction):
    """Values of a loss as a number, or as they are."""
    if reduction not in _REDUCE:
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return _REDUCE[reduction](values)


def _check_shapes(name, input, target):
    if input.shape != target.shape:
        raise ValueError(f"{name}: input {list(input.shape)} and target {list(target.shape)} must have the same shape")


def smooth_l1_loss(input, target, reduction="mean", beta=1.0):
    """Half the square of the difference over `beta` below `beta`, |input - target| - beta / 2 above it.

    Girshick (2015), arXiv:1504.08083.
    """
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    distance = (input - target).abs()
    if beta == 0:
        return reduced(distance, reduction)
    return reduced(_C.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta), reduction)


def huber_loss(input, target, reduction="mean", weight=None, delta=1.0):
    """Half the square of the difference up to `delta`, delta * (|input - target| - delta / 2) above it. Huber (1964)."""
    if delta <= 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta}")
    distance = (input - target).abs()
    values = _C.where(distance <= delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta)
    return reduced(values if weight is None else values * weight, reduction)


def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """-(target * log(input) + (1 - target) * log(1 - input)), where logarithms are at least -100. Input is in [0, 1]."""
    _check_shapes("binary_cross_entropy", input, target)
    if not input.is_meta and not ((input >= 0) & (input <= 1)).all():
        raise RuntimeError("binary_cross_entropy: all elements of input should be between 0 and 1")
    values = (target - 1) * (-input).log1p().clamp(min=-100) - target * input.log().clamp(min=-100)
    return reduced(values if weight is None else values * weight, reduction)


def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies what a target of 1 costs."""
    _check_shapes("binary_cross_entropy_with_logits", input, target)
    log_of_one = _C.log_sigmoid(input)
    if pos_weight is not None:
        log_of_one = log_of_one * ((pos_weight - 1) * target + 1)
    values = (1 - target) * input - log_of_one
    return reduced(values if weight is None else values * weight, reduction)


def kl_div(input, target, reduction="mean", log_target=False):
    """The divergence of target from input, pointwise: target * (log(target) - input), where input has log-probabilities.

    Kullback and Leibler (1951). reduction "batchmean" divides the sum by the size of dimension 0, as the definition does.
    """
    if log_target:
        values = target.exp() * (target - input)
    else:
        nothing = target == 0
        values = target * (_C.where(nothing, 1, target).log() - _C.where(nothing, 0, input))
    if reduction == "batchmean":
        return values.sum() / input.shape[0] if input.dim() else values.sum()
    return reduced(values, reduction)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angles between vectors along `dim`; lengths below eps count as eps."""
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)


def _unit(x, dim, eps):
    square = (x * x).sum(dim, keepdim=True)
    # The square is bounded, not the root, whose slope at 0 is infinite.
    return x / square.clamp(min=eps * eps).sqrt()


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean"):
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1; vectors are rows of [N, D], or [D]."""
    if input1.dim() not in (1, 2) or input1.dim() != input2.dim() or target.dim() != input1.dim() - 1:
        raise ValueError(
            f"cosine_embedding_loss: expected inputs [N, D] and target [N], or [D] and a number, got "
            f"{list(input1.shape)}, {list(input2.shape)} and {list(target.shape)}"
        )
    dim = input1.dim() - 1
    product = (input1 * input2).sum(dim)
    lengths = ((input1 * input1).sum(dim) + 1e-12) * ((input2 * input2).sum(dim) + 1e-12)
    cosine = product / lengths.sqrt()
    zero = _C.zeros_like(cosine)
    values = _C.where(target == 1, 1 - cosine, zero) + _C.where(target == -1, (cosine - margin).clamp(min=0), zero)
    return reduced(values, reduction)
