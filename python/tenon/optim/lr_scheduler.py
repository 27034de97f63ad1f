"""Learning rates that change from epoch to epoch, as in PyTorch: make a scheduler for an optimizer, and call its step()
after each epoch.

A scheduler changes the groups' current "lr", so that several can work on one optimizer. "initial_lr" keeps the rate from
before the first scheduler was made.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter

from .. import _C
from ..absent import module_getattr
from ..arguments import check_module as _check_module
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def _set_rate(group: dict[str, Any], lr: float) -> None:
    """Sets a group's rate; one that is a Tensor stays that Tensor."""
    if isinstance(group["lr"], _C.Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, _C.Tensor) else value


class LRScheduler:
    """Base of the schedulers, which define get_lr(): the rate of each group for the epoch `last_epoch`."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: expected an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: group {number} has no 'initial_lr', which going on from epoch "
                    f"{last_epoch} needs"
                )
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr = self._rates()
        self._initial_step()

    def _initial_step(self) -> None:
        self.step()

    def get_lr(self) -> list[float]:
        """The rates of the groups for `last_epoch`, from those that they have now."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self) -> list[float]:
        """The rates that the last step() has set."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates for the next epoch, or for the given one."""
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            rates = self._closed_form() or self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, rates):
            _set_rate(group, lr)
        self._last_lr = self._rates()

    def _closed_form(self) -> list[float] | None:
        """The rates for `last_epoch` from `base_lrs` alone; None where get_lr() is all there is."""
        return None

    def _scaled_bases(self, factor: float) -> list[float]:
        return [base * factor for base in self.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; functions are left out."""
        return {
            name: [None if callable(v) else v for v in value] if isinstance(value, list) else value
            for name, value in self.__dict__.items()
            if name != "optimizer" and not callable(value)
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores what state_dict() returned; functions stay as they are."""
        for name, value in state_dict.items():
            mine = self.__dict__.get(name)
            if isinstance(value, list) and isinstance(mine, list) and len(mine) == len(value):
                value = [old if callable(old) and new is None else new for old, new in zip(mine, value)]
            self.__dict__[name] = value

    def _rates(self) -> list[float]:
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> list[float]:
        return [lr * factor for lr in self._rates()]


class LambdaLR(LRScheduler):
    """initial_lr * lr_lambda(epoch); one function for all groups, or a list with one for each."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"LambdaLR: expected {groups} functions, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LRScheduler):
    """Multiplies by lr_lambda(epoch) every epoch; one function for all groups, or a list with one for each."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"MultiplicativeLR: expected {groups} functions, got {len(self.lr_lambdas)}")
        for one in self.lr_lambdas:
            if not callable(one):
                raise TypeError(f"MultiplicativeLR: lr_lambda must be a function, not {type(one).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch <= 0:
            return self._rates()
        return [lr * f(self.last_epoch) for lr, f in zip(self._rates(), self.lr_lambdas)]


class StepLR(LRScheduler):
    """Multiplies by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma) if due else self._rates()

    def _closed_form(self) -> list[float]:
        return self._scaled_bases(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Multiplies by `gamma` at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _closed_form(self) -> list[float]:
        passed = bisect.bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self._scaled_bases(self.gamma**passed)


class ConstantLR(LRScheduler):
    """`factor` times the rate for the first `total_iters` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must be between 0 and 1, got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        return self._scaled(1 / self.factor) if self.last_epoch == self.total_iters else self._rates()

    def _closed_form(self) -> list[float]:
        return self._scaled_bases(1.0 if self.last_epoch >= self.total_iters else self.factor)


class ExponentialLR(LRScheduler):
    """Multiplies by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._scaled(self.gamma) if self.last_epoch > 0 else self._rates()

    def _closed_form(self) -> list[float]:
        return self._scaled_bases(self.gamma**self.last_epoch)


class LinearLR(LRScheduler):
    """From start_factor to end_factor times the rate, in equal steps over the first `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(f"LinearLR: start_factor must be above 0 and at most 1, got {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor must be between 0 and 1, got {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self.last_epoch > self.total_iters:
            return self._rates()
        return self._scaled(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _closed_form(self) -> list[float]:
        return self._scaled_bases(self._factor(self.last_epoch))


class PolynomialLR(LRScheduler):
    """(1 - epoch / total_iters) ** power times the initial rate, zero after `total_iters` epochs."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((now / before) ** self.power)

    def _closed_form(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return self._scaled_bases((1.0 - share) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to `eta_min` in `T_max` epochs, and back up.

    Loshchilov and Hutter (2016), arXiv:1608.03983, without the restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803  PyTorch's name
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._rates()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # At the lowest point the quotient below is 0 / 0.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - self.eta_min) * rise for base, lr in zip(self.base_lrs, self._rates())]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (lr - self.eta_min) + self.eta_min for lr in self._rates()]

    def _closed_form(self) -> list[float]:
        rise = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * rise for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to `eta_min` in T_0 epochs, again and again, each time T_mult times as long.

    Loshchilov and Hutter (2016), arXiv:1608.03983. step() may be given parts of epochs.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:  # noqa: N803  PyTorch's names
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"CosineAnnealingWarmRestarts: {name} must be a positive int, got {value!r}")
        if not isinstance(eta_min, (int, float)):
            raise ValueError(f"CosineAnnealingWarmRestarts: eta_min must be a number, got {eta_min!r}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i, self.T_cur = T_0, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        rise = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * rise for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: epoch must not be negative, got {epoch}")
        else:
            self._place(epoch)
        super().step(math.floor(epoch))

    def _place(self, epoch: float) -> None:
        """Sets T_cur and T_i from the epoch alone."""
        self.T_i, self.T_cur = self.T_0, epoch  # type: ignore[assignment]  # floats, where epochs are
        if epoch < self.T_0:
            return
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0  # type: ignore[assignment]
            return
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult


class SequentialLR(LRScheduler):
    """Each of the schedulers in its turn: the next one starts at its milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR: expected at least one scheduler")
        for number, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError("SequentialLR: ReduceLROnPlateau needs a metric, which SequentialLR does not pass on")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"SequentialLR: scheduler {number} is of another optimizer")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} milestones, got {len(milestones)}"
            )
        self.optimizer, self._schedulers, self._milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        # Each scheduler has made its first step already: all but the first take it back until their turn comes.
        for group in optimizer.param_groups:
            _set_rate(group, group["initial_lr"])
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Sets the rates for the next epoch."""
        self.last_epoch += 1
        turn = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The state of this scheduler and of those inside."""
        return _state_of_several(self)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores what state_dict() returned."""
        _load_several(self, state_dict)


class ChainedScheduler(LRScheduler):
    """All of the schedulers at each step."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: expected at least one scheduler")
        optimizer = optimizer or schedulers[0].optimizer
        for number, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError("ChainedScheduler: ReduceLROnPlateau needs a metric, which ChainedScheduler does not pass on")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"ChainedScheduler: scheduler {number} is of another optimizer")
        self.optimizer, self._schedulers = optimizer, list(schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """A step of each scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """The state of this scheduler and of those inside."""
        return _state_of_several(self)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores what state_dict() returned."""
        _load_several(self, state_dict)


def _state_of_several(scheduler: Any) -> dict[str, Any]:
    state = {k: v for k, v in scheduler.__dict__.items() if k not in ("optimizer", "_schedulers")}
    return {**state, "_schedulers": [one.state_dict() for one in scheduler._schedulers]}


def _load_several(scheduler: Any, state_dict: Mapping[str, Any]) -> None:
    scheduler.__dict__.update((k, v) for k, v in state_dict.items() if k != "_schedulers")
    for one, state in zip(scheduler._schedulers, state_dict["_schedulers"]):
        one.load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """Multiplies by `factor` when a metric has not got better for more than `patience` epochs.

    Better: below the best so far ("min") or above it ("max") by more than `threshold`, a share of the best ("rel") or a
    difference ("abs"). After a change, `cooldown` epochs do not count.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, got {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode must be 'min' or 'max', got {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: threshold_mode must be 'rel' or 'abs', got {threshold_mode!r}")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"ReduceLROnPlateau: expected an Optimizer, got {type(optimizer).__name__}")
        groups = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != groups:
            raise ValueError(f"ReduceLROnPlateau: expected {groups} values of min_lr, got {len(min_lr)}")
        self.optimizer = optimizer
        self.min_lrs: list[Any] = list(min_lr) if several else [min_lr] * groups  # type: ignore[arg-type]
        self.default_min_lr = None if several else min_lr
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self) -> None:
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the metric of an epoch."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: the optimizer has {len(groups)} groups now, and there are {len(self.min_lrs)} "
                    "values of min_lr"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                _set_rate(group, new)

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs do not count now."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether `a` is better than `best`."""
        if self.threshold_mode == "rel":
            share = 1.0 - self.threshold if self.mode == "min" else 1.0 + self.threshold
            best = best * share
        else:
            best = best - self.threshold if self.mode == "min" else best + self.threshold
        return a < best if self.mode == "min" else a > best


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
            raise TypeError(f"CyclicLR: expected an Optimizer, got {type(optimizer).__name__}")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: unknown mode {mode!r}; without a scale_fn it is 'triangular', 'triangular2' or 'exp_range'")
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
            for group in self.optimizer.param_groups:
                drop = (group["max_momentum"] - group["base_momentum"]) * height
                self._set_momentum(group, group["max_momentum"] - drop)
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
            raise TypeError(f"OneCycleLR: expected an Optimizer, got {type(optimizer).__name__}")
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
        self._anneal_strategy = anneal_strategy
        up, end = float(pct_start * total_steps) - 1, total_steps - 1
        # (last step, rate at its start, rate at its end, momentum at its start, momentum at its end)
        if three_phase:
            self._phases = [
                (up, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (float(2 * pct_start * total_steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (end, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._phases = [
                (up, "initial_lr", "max_lr", "max_momentum", "base_momentum"),
                (end, "max_lr", "min_lr", "base_momentum", "max_momentum"),
            ]
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
        if self._anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} of {self.total_steps} steps in total")
        first = 0.0
        for number, (last, *_) in enumerate(self._phases):
            if step <= last or number == len(self._phases) - 1:
                break
            first = last
        last, lr_from, lr_to, momentum_from, momentum_to = self._phases[number]
        share = (step - first) / (last - first)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                self._set_momentum(group, self._between(group[momentum_from], group[momentum_to], share))
        return [self._between(group[lr_from], group[lr_to], share) for group in self.optimizer.param_groups]


_LRScheduler = LRScheduler  # its name in older programs

_check_module(globals())


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
