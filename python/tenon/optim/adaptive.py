"""Adadelta, Adagrad, NAdam and RMSprop: steps scaled by what the gradients were."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from ..autograd.grad_mode import no_grad
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from ..types import Params


def _parts(tensor: Tensor) -> Any:
    """A complex tensor as the real one of its parts, which the algorithms scale separately; any other as it is."""
    return _C.view_as_real(tensor) if tensor.is_complex() else tensor


class _Adaptive(Optimizer):
    """An optimizer whose `_update_one(parameter, grad, state, group)` changes one parameter; all are real there."""

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first step: the names of `_STATE` after "step" are zeros."""
        return {"step": 0, **{name: _C.zeros_like(parameter) for name in (self._STATE or ())[1:]}}

    def _update_one(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError

    @no_grad()
    def _update(self, group: dict[str, Any]) -> None:
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            state = self.state[p]
            if not state:
                state.update(self._new_state(p, group))
            state["step"] += 1
            grad, p = _parts(grad), _parts(p)
            if group["maximize"]:
                grad = -grad
            if group["weight_decay"] != 0:
                if group.get("decoupled_weight_decay"):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                else:
                    grad = grad.add(p, alpha=group["weight_decay"])
            self._update_one(p, grad, state, group)


class Adadelta(_Adaptive):
    """Zeiler (2012), arXiv:1212.5701."""

    _STATE = ("step", "square_avg", "acc_delta")

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _check(self, group: dict[str, Any]) -> None:
        self._check_numbers(group, "lr", "rho", "eps", "weight_decay")
        self._check_switches(group)
        if not group["rho"] <= 1:
            raise ValueError(f"Adadelta: rho must be in [0, 1], got {group['rho']}")

    def _update_one(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        squares, deltas, rho = _parts(state["square_avg"]), _parts(state["acc_delta"]), group["rho"]
        _C._adadelta_step_(parameter, grad, squares, deltas, rho=rho, rest=1 - rho, eps=group["eps"], step=-group["lr"])


class Adagrad(_Adaptive):
    """Duchi, Hazan and Singer (2011), JMLR 12."""

    _STATE = ("step", "sum")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _check(self, group: dict[str, Any]) -> None:
        self._check_numbers(group, "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
        self._check_switches(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:
            self.state[p].update(self._new_state(p, group))

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        return {"step": 0, "sum": _C.full_like(parameter, complex(start, start) if parameter.is_complex() else start)}

    def share_memory(self) -> None:
        """Moves the state to shared memory, which Tenon does not have."""
        raise NotImplementedError("Adagrad.share_memory is not in Tenon yet")

    def _update_one(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        _C._adagrad_step_(parameter, grad, _parts(state["sum"]), eps=group["eps"], step=-rate)


class RMSprop(_Adaptive):
    """Tieleman and Hinton (2012), lecture 6.5; `centered` as in Graves (2013), arXiv:1308.0850."""

    _STATE = ("step", "square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _check(self, group: dict[str, Any]) -> None:
        self._check_numbers(group, "lr", "eps", "momentum", "weight_decay", "alpha")
        self._check_switches(group)

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": 0, "square_avg": _C.zeros_like(parameter)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = _C.zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = _C.zeros_like(parameter)
        return state

    def _update_one(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        _C._rmsprop_step_(
            parameter,
            grad,
            _parts(state["square_avg"]),
            _parts(state["grad_avg"]) if group["centered"] else None,
            _parts(state["momentum_buffer"]) if momentum > 0 else None,
            alpha=alpha,
            rest=1 - alpha,
            eps=group["eps"],
            momentum=momentum,
            step=-group["lr"],
        )


class NAdam(_Adaptive):
    """Dozat (2016): Adam with Nesterov's momentum, whose weight follows a schedule."""

    _STATE = ("step", "mu_product", "exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _check(self, group: dict[str, Any]) -> None:
        self._check_numbers(group, "lr", "eps", "weight_decay", "momentum_decay")
        self._check_betas(group)
        self._check_switches(group)

    def _new_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super()._new_state(parameter, group), "mu_product": 1.0}

    def _update_one(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        step, decay, lr = state["step"], group["momentum_decay"], group["lr"]
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        state["mu_product"] *= mu
        product = state["mu_product"]
        _C._nadam_step_(
            parameter,
            grad,
            _parts(state["exp_avg"]),
            _parts(state["exp_avg_sq"]),
            rest1=1 - beta1,
            beta2=beta2,
            rest2=1 - beta2,
            correction=1 - beta2**step,
            eps=group["eps"],
            grad_step=-lr * (1 - mu) / (1 - product),
            average_step=-lr * mu_next / (1 - product * mu_next),
        )


_check_module(globals())
