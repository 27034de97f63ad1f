"""LRScheduler, the base of the schedulers of tenon.optim.lr_scheduler."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, describe
from ..callers import warn as _warn
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
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
            raise TypeError(f"{type(self).__name__}: expected an Optimizer, got {describe(optimizer)}")
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
        self._step_count = 0  # read in programs for PyTorch
        self._last_lr = self._rates()
        self._initial_step()

    def _initial_step(self) -> None:
        awaits, self.optimizer._awaits_step = self.optimizer._awaits_step, False
        self.step()
        self.optimizer._awaits_step = True if awaits is None else awaits

    def get_lr(self) -> list[float]:
        """The rates of the groups for `last_epoch`, from those that they have now."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def get_last_lr(self) -> list[float]:
        """The rates that the last step() has set."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates for the next epoch, or for the given one."""
        if self.optimizer._awaits_step:
            self.optimizer._awaits_step = False
            _warn(
                f"Detected call of `lr_scheduler.step()` before `optimizer.step()`: {type(self).__name__} passes over the first "
                "learning rate; call optimizer.step() first"
            )
        self._step_count += 1
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


_check_module(globals())
