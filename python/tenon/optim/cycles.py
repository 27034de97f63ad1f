"""Schedulers of tenon.optim.lr_scheduler that move the learning rate and the momentum together, batch by batch."""

from __future__ import annotations

import math

from ..arguments import check_module as _check_module, describe
from .optimizer import Optimizer
from .scheduler import LRScheduler, _set_rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _for_each_group(who: str, name: str, optimizer: Optimizer, value: Any) -> Any:
    """A list with a value for each group."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(f"{who}: expected {groups} values of {name}, got {len(value)}")
    return list(value)


class _MomentumCycle(LRScheduler):
    """A scheduler that may also change the momentum, or the first of Adam's betas."""

    def _take_momentum(self, base_momentum: Any, max_momentum: Any, last_epoch: int) -> None:
        who, optimizer = type(self).__name__, self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(f"{who}: the optimizer has neither `momentum` nor `betas`, which cycle_momentum changes")
        self.use_beta1 = "betas" in optimizer.defaults
        low = _for_each_group(who, "base_momentum", optimizer, base_momentum)
        high = _for_each_group(who, "max_momentum", optimizer, max_momentum)
        for group, base, most in zip(optimizer.param_groups, low, high):
            if last_epoch == -1:
                self._set_momentum(group, most)
            group["base_momentum"], group["max_momentum"] = base, most

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_MomentumCycle):
    """Up from base_lr to max_lr in step_size_up steps and down in step_size_down, again and again; step() after each batch.

    mode "triangular2" halves the height with each cycle, "exp_range" multiplies it by gamma at each step. Smith (2015),
    arXiv:1506.01186.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"CyclicLR: expected an Optimizer, got {describe(optimizer)}")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: unknown mode {mode!r}; without a scale_fn it is 'triangular', 'triangular2' or 'exp_range'")
        if step_size_up < 1:
            raise ValueError(f"CyclicLR: step_size_up must be at least 1 step, got {step_size_up}")
        self.optimizer = optimizer
        lowest = _for_each_group("CyclicLR", "base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, lowest):
                _set_rate(group, lr)
        self.max_lrs = _for_each_group("CyclicLR", "max_lr", optimizer, max_lr)
        step_size_down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + step_size_down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else ("iterations" if mode == "exp_range" else "cycle")
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._take_momentum(base_momentum, max_momentum, last_epoch)
            self.base_momentums = [group["base_momentum"] for group in optimizer.param_groups]
            self.max_momentums = [group["max_momentum"] for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """The height of a cycle or step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = share * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, base, most in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, most - (most - base) * height)
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]


class OneCycleLR(_MomentumCycle):
    """Up to max_lr and down to a small fraction of it, once in total_steps; step() after each batch.

    It starts at max_lr / div_factor and ends at that divided by final_div_factor. With three_phase, the way down stops at the
    initial rate first. Smith and Topin (2017), arXiv:1708.07120.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"OneCycleLR: expected an Optimizer, got {describe(optimizer)}")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or both epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(f"OneCycleLR: the number of steps must be a positive int, got {total_steps!r}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start must be between 0 and 1, got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        self.optimizer, self.total_steps = optimizer, total_steps
        self._anneal_func_type = anneal_strategy
        up, end = float(pct_start * total_steps) - 1, total_steps - 1
        phases: list[tuple[float, str, str, str, str]] = [(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            phases += [(float(2 * pct_start * total_steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")]
            phases += [(end, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            phases += [(end, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(keys, phase)) for phase in phases]  # as in PyTorch's states
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, _for_each_group("OneCycleLR", "max_lr", optimizer, max_lr)):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._take_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} of {self.total_steps} steps in total")
        first = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            first = phase["end_step"]
        share = (step - first) / (phase["end_step"] - first)
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], share))
        return [self._between(group[phase["start_lr"]], group[phase["end_lr"]], share) for group in groups]


_check_module(globals())
