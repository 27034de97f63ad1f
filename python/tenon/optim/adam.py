"""Adam and AdamW."""

from .. import _C
from .optimizer import Optimizer


class Adam(Optimizer):
    """Kingma and Ba (2014): steps scaled by running averages of the gradient and of its square."""

    _STATE = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    _DECOUPLED = False

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, maximize=False
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )

    def _check(self, group):
        self._check_numbers(group, "lr", "eps", "weight_decay")
        if not isinstance(group["betas"], (tuple, list)) or len(group["betas"]) != 2:
            raise TypeError(f"{type(self).__name__}: betas must be two numbers, got {group['betas']!r}")
        for beta in group["betas"]:
            if not 0 <= beta < 1:
                raise ValueError(f"{type(self).__name__}: betas must be in [0, 1), got {beta}")

    def _update(self, group, state):
        _C._adam_step(
            group["params"],
            state["step"],
            state["exp_avg"],
            state["exp_avg_sq"],
            state["max_exp_avg_sq"],
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            self._DECOUPLED,
            group["amsgrad"],
            group["maximize"],
        )


class AdamW(Adam):
    """Loshchilov and Hutter (2017): Adam that shrinks the parameters themselves."""

    _DECOUPLED = True

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
