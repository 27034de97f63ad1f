"""The parts of a batch norm whose statistics come from several batches, as synchronised batch norms put them together.

Channels are dimension 1 of [N, C, ...]. Half types have their statistics in float32. Chan, Golub, LeVeque (1983) for the sums.
"""

from __future__ import annotations

from .._names.info import sum_type as _sum_type
from ..arguments import check_module as _check_module
from .results import check_tensor as _check_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor


def _wide(function: str, input: Tensor) -> Tensor:
    _check_tensor(function, "input", input)
    if input.dim() < 2 or not input.is_floating_point():
        raise RuntimeError(f"{function}: expected floating-point input [N, C, ...], got {input.dtype} {list(input.shape)}")
    return input.to(_sum_type(input.dtype) or input.dtype)


def _others(input: Tensor) -> list[int]:
    return [d for d in range(input.dim()) if d != 1]


def _by_channel(values: Tensor, input: Tensor) -> Tensor:
    return values.reshape([1, -1, *([1] * (input.dim() - 2))])


def _moments(x: Tensor) -> tuple[Tensor, Tensor, int]:
    """The mean and the mean squared distance from it of each channel, and how many elements it has."""
    mean = x.mean(_others(x))
    distance = x - _by_channel(mean, x)
    return mean, (distance * distance).mean(_others(x)), x.numel() // max(x.shape[1], 1)


def _move(running: Tensor | None, value: Tensor, momentum: float) -> None:
    if running is not None:
        running.detach().mul_(1 - momentum).add_(value.to(running.dtype), alpha=momentum)


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mean and 1 / sqrt(variance + eps) of each channel."""
    mean, variance, _ = _moments(_wide("batch_norm_stats", input))
    return mean, (variance + eps).rsqrt()


def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """The mean and the variance of each channel, in the dtype of the running ones or else of input; moves the running ones towards them
    by `momentum`, the variance that of a sample."""
    mean, variance, count = _moments(_wide("batch_norm_update_stats", input))
    _move(running_mean, mean, momentum)
    _move(running_var, variance * (count / max(count - 1, 1)), momentum)
    kept = input.dtype if running_mean is None else running_mean.dtype
    return mean.to(kept), variance.to(kept)


def batch_norm_elemt(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    """(input - mean) * invstd * weight + bias, of each channel."""
    x = _wide("batch_norm_elemt", input)
    scale = invstd if weight is None else invstd * weight
    result = (x - _by_channel(mean, x)) * _by_channel(scale, x)
    return (result if bias is None else result + _by_channel(bias, x)).to(input.dtype)


def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """The mean and 1 / sqrt(variance + eps) of batches together, whose own are `mean` and `invstd` [batches, C], and which have
    `counts` [batches] elements in each channel; moves the running ones."""
    for name, value in (("mean", mean), ("invstd", invstd), ("counts", counts)):
        _check_tensor("batch_norm_gather_stats_with_counts", name, value)
    if mean.dim() != 2 or mean.shape != invstd.shape or counts.shape != mean.shape[:1]:
        raise RuntimeError(
            f"batch_norm_gather_stats_with_counts: expected mean and invstd [batches, C] and counts [batches], got {list(mean.shape)}, "
            f"{list(invstd.shape)} and {list(counts.shape)}"
        )
    n = counts.to(mean.dtype).unsqueeze(1)
    total = n.sum()
    together = (mean * n).sum(0) / total
    squares = ((1 / (invstd * invstd) - eps) * n + n * (mean - together) * (mean - together)).sum(0)
    _move(running_mean, together, momentum)
    _move(running_var, squares / (total - 1).clamp(min=1), momentum)
    return together, (squares / total + eps).rsqrt()


def batch_norm_gather_stats(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[Tensor, Tensor]:
    """batch_norm_gather_stats_with_counts of batches with `count` elements in each channel."""
    _check_tensor("batch_norm_gather_stats", "mean", mean)
    counts = mean.new_full(mean.shape[:1], count)
    return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """Sums over each channel of grad_out, and of grad_out * (input - mean), with `input_g`; and the gradients of weight and bias,
    with `weight_g` and `bias_g`."""
    x, grad = _wide("batch_norm_backward_reduce", input), _wide("batch_norm_backward_reduce", grad_out)
    total = grad.sum(_others(x))
    along = (grad * (x - _by_channel(mean, x))).sum(_others(x))
    of_weight = along * invstd if weight_g else None
    return total if input_g else None, along if input_g else None, of_weight, total.clone() if bias_g else None


def batch_norm_backward_elemt(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """The gradient of a batch norm's input, of the sums over all batches that batch_norm_backward_reduce gives, and their counts."""
    x, grad = _wide("batch_norm_backward_elemt", input), _wide("batch_norm_backward_elemt", grad_out)
    total = count.sum().to(x.dtype)
    slope = _by_channel(sum_dy_xmu * invstd * invstd / total, x)
    rest = grad - _by_channel(sum_dy / total, x) - (x - _by_channel(mean, x)) * slope
    return (rest * _by_channel(invstd if weight is None else invstd * weight, x)).to(input.dtype)


_check_module(globals())
