"""Stochastic gradient descent."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..types import Params

_sgd_step = _C._sgd_step


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum. The options are PyTorch's."""

    _STATE = ("momentum_buffer",)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
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

    def _check(self, group: dict[str, Any]) -> None:
        self._check_numbers(group, "lr", "momentum", "weight_decay")
        self._check_switches(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD: nesterov needs a momentum and no dampening")

    def _update(self, group: dict[str, Any]) -> None:
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


_check_module(globals())
