"""Stochastic gradient descent."""

from .. import _C
from .optimizer import Optimizer

_sgd_step = _C._sgd_step


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum. The options are PyTorch's."""

    _STATE = ("momentum_buffer",)

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _check(self, group):
        self._check_numbers(group, "lr", "momentum", "weight_decay")
        self._check_switches(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD: nesterov needs a momentum and no dampening")

    def _update(self, group):
        params, state = group["params"], self.state
        _sgd_step(
            params,
            [state[p] for p in params] if group["momentum"] else None,
            group["lr"],
            group["momentum"],
            group["dampening"],
            group["weight_decay"],
            group["nesterov"],
            group["maximize"],
        )
