"""Connectionist temporal classification: the likelihood of labels over all their alignments with the steps of an input.

Two scans over time, whose steps compute all sequences and states at once, in logarithms: Graves et al. (2006), "Connectionist
temporal classification", equations 6 to 16.
"""

from __future__ import annotations

import math
from numbers import Integral as _Integral

from .. import _C
from ..arguments import checked as _checked, describe as _describe
from ..autograd.function import Function, once_differentiable as _once_differentiable
from .loss_functions import reduction_of as _reduction_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor


def _numbers(name: str, lengths: Any, batch: int) -> list[int]:
    """Lengths as a list, one for each sequence."""
    if isinstance(lengths, _C.Tensor):
        if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == _C.bool:
            raise RuntimeError(f"ctc_loss: {name} must be integers, got {lengths.dtype}")
        lengths = lengths.reshape(-1).tolist()
    if not isinstance(lengths, (list, tuple)) or not all(isinstance(n, _Integral) for n in lengths):
        raise TypeError(f"ctc_loss: {name} must be a Tensor or a sequence of ints, got {_describe(lengths)}")
    if len(lengths) != batch:
        raise RuntimeError(f"ctc_loss: {name} must have {batch} numbers, one for each sequence of log_probs, got {len(lengths)}")
    return [int(n) for n in lengths]


def _padded(targets: Tensor, lengths: list[int], blank: int) -> Tensor:
    """Labels as a matrix [N, S]; beyond a sequence's length they are blank."""
    longest, device = max(lengths, default=0), targets.device
    if targets.dim() == 1:
        if sum(lengths) != targets.numel():
            raise RuntimeError(f"ctc_loss: target_lengths must add up to the {targets.numel()} labels of targets, got {sum(lengths)}")
        rows = _C.split_with_sizes(targets, lengths) if lengths else ()
        return _C.stack([_C.constant_pad_nd(row, [0, longest - len(row)], blank) for row in rows]).to(_C.int64)
    if targets.dim() != 2 or targets.shape[0] != len(lengths) or targets.shape[1] < longest:
        raise RuntimeError(f"ctc_loss: targets must be [{len(lengths)}, at least {longest}], or all labels in a row, got {list(targets.shape)}")
    inside = _C.arange(longest, device=device) < _C.tensor(lengths, device=device).unsqueeze(1)
    return _C.where(inside, targets[:, :longest].to(_C.int64), blank)


class _States:
    """The states of an alignment, a blank before and after each label: [N, 2 S + 1], and what leads from one to the next."""

    def __init__(self, log_probs: Tensor, targets: Tensor, input_lengths: list[int], target_lengths: list[int], blank: int) -> None:
        steps, batch, _ = log_probs.shape
        device, dtype = log_probs.device, log_probs.dtype
        count = 2 * targets.shape[1] + 1
        self.labels = _C.full((batch, count), blank, dtype=_C.int64, device=device)
        self.labels[:, 1::2] = targets
        self.emissions = log_probs.gather(2, self.labels.expand(steps, batch, count))
        # Added to a state's value two before: -inf where a blank must be between.
        self.skips = _C.full((batch, count), -math.inf, dtype=dtype, device=device)
        if count > 2:
            may = (self.labels[:, 2:] != blank) & (self.labels[:, 2:] != self.labels[:, :-2])
            self.skips[:, 2:].masked_fill_(may, 0.0)
        self.ends = _C.full((batch, count), -math.inf, dtype=dtype, device=device)
        for n, length in enumerate(target_lengths):
            self.ends[n, max(2 * length - 1, 0) : 2 * length + 1] = 0.0
        self.input_lengths = input_lengths

    def _table(self) -> Tensor:
        """Values by step and state, with two states of probability 0 at each end."""
        steps, batch, count = self.emissions.shape
        return _C.full((steps, batch, count + 4), -math.inf, dtype=self.emissions.dtype, device=self.emissions.device)

    def forward(self) -> tuple[Tensor, Tensor]:
        """log(alpha) [T, N, states]: of all ways to a state, its emission included; and the negative log-likelihoods [N]."""
        table, count = self._table(), self.labels.shape[1]
        steps = table.shape[0]
        if steps:
            table[0, :, 2 : min(4, 2 + count)] = self.emissions[0, :, :2]
        for t in range(1, steps):
            former = table[t - 1]
            ways = _C.logaddexp(former[:, 2 : 2 + count], former[:, 1 : 1 + count])
            ways = _C.logaddexp(ways, former[:, :count] + self.skips)
            _C.add(ways, self.emissions[t], out=table[t, :, 2 : 2 + count])
        alpha = table[:, :, 2 : 2 + count]
        rows = [alpha[n - 1, i] if n else self._nothing() for i, n in enumerate(self.input_lengths)]
        last = _C.stack(rows) if rows else self.ends
        return alpha, -_C.logsumexp(last + self.ends, 1)

    def _nothing(self) -> Tensor:
        """The states of an input without steps: before the first blank."""
        first = self.ends.new_full((self.ends.shape[1],), -math.inf)
        first[0] = 0.0
        return first

    def backward(self) -> Tensor:
        """log(beta) [T, N, states]: of all ways from a state to the end, its emission included."""
        table, count = self._table(), self.labels.shape[1]
        skips = _C.full_like(self.skips, -math.inf)
        skips[:, :-2] = self.skips[:, 2:]
        ending = _C.tensor(self.input_lengths, device=self.ends.device) - 1
        last = set(self.input_lengths)
        for t in range(table.shape[0] - 1, -1, -1):
            if t + 1 < table.shape[0]:
                later = table[t + 1]
                ways = _C.logaddexp(later[:, 2 : 2 + count], later[:, 3 : 3 + count])
                ways = _C.logaddexp(ways, later[:, 4 : 4 + count] + skips)
            else:
                ways = table[t, :, 2 : 2 + count]
            if t + 1 in last:
                ways = _C.where((ending == t).unsqueeze(1), self.ends, ways)
            _C.add(ways, self.emissions[t], out=table[t, :, 2 : 2 + count])
        return table[:, :, 2 : 2 + count]


class _CTC(Function):
    """The negative log-likelihoods [N]; the gradient is that of PyTorch, for log_probs that log_softmax gave."""

    @staticmethod
    def forward(ctx: Any, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int, zero_infinity: bool) -> Tensor:
        states = _States(log_probs, targets, input_lengths, target_lengths, blank)
        alpha, loss = states.forward()
        ctx.states, ctx.zero_infinity = states, zero_infinity
        ctx.save_for_backward(log_probs, alpha, loss)
        return loss

    @staticmethod
    @_once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        log_probs, alpha, loss = ctx.saved_tensors
        states = ctx.states
        ways = alpha + states.backward()
        # How likely each state is at each step, given the labels.
        taken = _C.where(ways == -math.inf, 0.0, (ways - states.emissions + loss.unsqueeze(1)).exp())
        posterior = _C.zeros_like(log_probs).scatter_add(2, states.labels.expand_as(taken), taken)
        found = (log_probs.exp() - posterior) * grad.unsqueeze(1)
        never = (loss == math.inf).unsqueeze(1)
        found = _C.where(never, 0.0 if ctx.zero_infinity else math.nan, found)
        lengths = _C.tensor(states.input_lengths, device=log_probs.device)
        inside = _C.arange(log_probs.shape[0], device=log_probs.device).unsqueeze(1) < lengths
        return _C.where(inside.unsqueeze(2), found, 0.0), None, None, None, None, None


def _check(log_probs: Tensor, targets: Tensor, blank: int) -> None:
    for name, value in (("log_probs", log_probs), ("targets", targets)):
        if not isinstance(value, _C.Tensor):
            raise TypeError(f"ctc_loss: {name} must be a Tensor, got {_describe(value)}")
    if log_probs.dim() not in (2, 3):
        raise RuntimeError(f"ctc_loss: log_probs must be [T, N, C] or [T, C], got {list(log_probs.shape)}")
    if not log_probs.is_floating_point():
        raise TypeError(f"ctc_loss: log_probs must have a floating-point dtype, got {log_probs.dtype}")
    if targets.dtype not in (_C.int32, _C.int64):
        raise TypeError(f"ctc_loss: targets must be int32 or int64, got {targets.dtype}")
    if not 0 <= blank < log_probs.shape[-1]:
        raise RuntimeError(f"ctc_loss: blank must be a class, from 0 to {log_probs.shape[-1] - 1}, got {blank}")


@_checked
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of labels under log_probs [T, N, C], the results of log_softmax, or [T, C].

    targets [N, S], or the labels of all sequences in a row. "mean" divides by the numbers of labels first. With zero_infinity,
    sequences that are too short for their labels count 0. Half types compute in float32.
    """
    number = _reduction_of("ctc_loss", reduction)
    _check(log_probs, targets, blank)
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
        pair: Any = (input_lengths, target_lengths)
        input_lengths, target_lengths = ([n] if isinstance(n, _Integral) else n for n in pair)  # type: ignore[assignment]
    steps, batch, classes = log_probs.shape
    if batch == 0 or steps == 0 and not isinstance(input_lengths, (list, tuple, _C.Tensor)):
        raise RuntimeError(f"ctc_loss: log_probs must have at least one sequence, got {list(log_probs.shape)}")
    inputs, labels = _numbers("input_lengths", input_lengths, batch), _numbers("target_lengths", target_lengths, batch)
    for name, lengths, most in (("input_lengths", inputs, steps), ("target_lengths", labels, math.inf)):
        if any(not 0 <= n <= most for n in lengths):
            raise RuntimeError(f"ctc_loss: {name} must be between 0 and {most}, got {lengths}")
    padded = _padded(targets, labels, blank)
    if padded.numel() and (int(padded.min()) < 0 or int(padded.max()) >= classes):
        raise RuntimeError(f"ctc_loss: targets must be classes, from 0 to {classes - 1}, got {int(padded.min())} to {int(padded.max())}")
    half = log_probs.dtype in (_C.float16, _C.bfloat16)
    wide = log_probs.float() if half else log_probs
    losses = _CTC.apply(wide, padded, inputs, labels, blank, bool(zero_infinity))
    if zero_infinity:
        losses = _C.where(losses == math.inf, 0.0, losses)
    if number == 1:
        losses = (losses / _C.tensor(labels, dtype=wide.dtype, device=wide.device).clamp(min=1)).mean()
    elif number == 2:
        losses = losses.sum()
    elif single:
        losses = losses.squeeze(0)
    return losses.to(log_probs.dtype) if half else losses
