"""Learning rates that change from epoch to epoch, as in PyTorch: make a scheduler for an optimizer, and call its step()
after each epoch.

A scheduler changes the groups' current "lr", so that several can work on one optimizer. "initial_lr" keeps the rate from
before the first scheduler was made.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter

from .._names.absent import add_module_getattr
from ..arguments import check_module as _check_module, describe
from .cycles import CyclicLR as CyclicLR, OneCycleLR as OneCycleLR
from .optimizer import Optimizer
from .scheduler import LRScheduler as LRScheduler
from .scheduler import _set_rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any


def _check_at_least_one(what: str, count: int) -> None:
    if count < 1:
        raise ValueError(f"{what} must be at least 1 epoch, got {count}")


class _FunctionLR(LRScheduler):
    """Base of the schedulers whose rates follow from functions of the epoch: one for all groups, or a list with one for each."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas: list[Any] = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"{type(self).__name__}: expected {groups} functions, got {len(self.lr_lambdas)}")
        for one in self.lr_lambdas:
            if not callable(one):
                raise TypeError(f"{type(self).__name__}: lr_lambda must be a function, got {describe(one)}")
        super().__init__(optimizer, last_epoch)


class LambdaLR(_FunctionLR):
    """initial_lr * lr_lambda(epoch); one function for all groups, or a list with one for each."""

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_FunctionLR):
    """Multiplies by lr_lambda(epoch) every epoch; one function for all groups, or a list with one for each."""

    def get_lr(self) -> list[float]:
        if self.last_epoch <= 0:
            return self._rates()
        return [lr * f(self.last_epoch) for lr, f in zip(self._rates(), self.lr_lambdas)]


class StepLR(LRScheduler):
    """Multiplies by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        _check_at_least_one("StepLR: step_size", step_size)
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
        self, optimizer: Optimizer, milestones: Iterable[float], gamma: float = 0.1, last_epoch: int = -1
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
        if self.last_epoch != self.total_iters:
            return self._rates()
        # A factor of 0 left nothing to scale.
        return self._scaled(1 / self.factor) if self.factor else self._scaled_bases(1.0)

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
        # Without epochs the rate stays where it starts.
        share = min(epoch, self.total_iters) / max(self.total_iters, 1)
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
        # Without epochs the rate stays where it starts.
        share = min(self.total_iters, self.last_epoch) / max(self.total_iters, 1)
        return self._scaled_bases((1.0 - share) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate down to `eta_min` in `T_max` epochs, and back up.

    Loshchilov and Hutter (2016), arXiv:1608.03983, without the restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803  PyTorch's name
        _check_at_least_one("CosineAnnealingLR: T_max", T_max)
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


def _check_several(owner: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> Optimizer:
    """The optimizer of the schedulers, without one given that of the first. Raises an error for schedulers that cannot work together."""
    if not schedulers:
        raise ValueError(f"{owner}: expected at least one scheduler")
    for number, scheduler in enumerate(schedulers):
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(f"{owner}: ReduceLROnPlateau needs a metric, which {owner} does not pass on")
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(f"{owner}: scheduler {number} must be an LRScheduler, got {describe(scheduler)}")
        optimizer = optimizer or scheduler.optimizer
        if scheduler.optimizer is not optimizer:
            raise ValueError(f"{owner}: scheduler {number} is of another optimizer")
    return optimizer  # type: ignore[return-value]


class _SeveralSchedulers(LRScheduler):
    """A scheduler of other schedulers."""

    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """The state of this scheduler and of those inside."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores what state_dict() returned."""
        self.__dict__.update((k, v) for k, v in state_dict.items() if k != "_schedulers")
        for one, state in zip(self._schedulers, state_dict["_schedulers"]):
            one.load_state_dict(state)


class SequentialLR(_SeveralSchedulers):
    """Each of the schedulers in its turn: the next one starts at its milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        _check_several("SequentialLR", schedulers, optimizer)
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


class ChainedScheduler(_SeveralSchedulers):
    """All of the schedulers at each step."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        optimizer = _check_several("ChainedScheduler", schedulers, optimizer)
        self.optimizer, self._schedulers = optimizer, list(schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """A step of each scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


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
            raise TypeError(f"ReduceLROnPlateau: expected an Optimizer, got {describe(optimizer)}")
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


_LRScheduler = LRScheduler  # its name in older programs

_check_module(globals())
add_module_getattr(__name__)
