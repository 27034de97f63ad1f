"""Adam and AdamW."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, describe
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..types import Params

_adam_step = _C._adam_step


class Adam(Optimizer):
    """Kingma and Ba (2014): steps scaled by running averages of the gradient and of its square."""

    _STATE = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )
        self._check_tensors(lr, betas, foreach)

    def _check_tensors(self, lr: Any, betas: Any, foreach: bool | None) -> None:
        """Raises ValueError for options that PyTorch does not take as Tensors."""
        who = type(self).__name__
        given = [name for name, value in (("lr", lr), ("betas", betas[0]), ("betas", betas[1])) if isinstance(value, _C.Tensor)]
        if given.count("betas") == 1:
            raise ValueError(f"{who}: betas must be either both floats or both Tensors, got {describe(betas[0])} and {describe(betas[1])}")
        if given and foreach:
            raise ValueError(f"{who}: {given[0]} as a Tensor is not supported with foreach=True; leave foreach out, or give a float")

    def _check(self, group: dict[str, Any]) -> None:
        self._check_numbers(group, "lr", "eps", "weight_decay")
        self._check_betas(group)
        self._check_switches(group)

    def _update(self, group: dict[str, Any]) -> None:
        params, state = group["params"], self.state
        _adam_step(
            params,
            [state[p] for p in params],
            group["lr"],
            *group["betas"],
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["amsgrad"],
            group["maximize"],
        )


class AdamW(Adam):
    """Loshchilov and Hutter (2017): Adam that shrinks the parameters themselves."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


_check_module(globals())
