"""Optimizer: groups of parameters with options, and the state that an algorithm keeps for each parameter.

A group is a dict with "params" and the options, and `state` has a dict for each parameter, as in PyTorch. Counts of steps
are plain numbers there; state_dict() writes them as tensors, which is how PyTorch keeps them.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict

from .. import _C
from ..arguments import check_module as _check_module, describe
from ..autograd.grad_mode import enable_grad, no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .._C import Tensor
    from ..types import Hook, Params

# Options that only choose among implementations: a state without them is no other optimizer's.
_SWITCHES = {"foreach", "fused", "capturable", "differentiable", "maximize", "decoupled_weight_decay"}
_NUMBERS = ("step", "mu_product")  # what state keeps as Python numbers, and state_dict as 0-dim float32 tensors


class _Handle:
    def __init__(self, hooks: OrderedDict[Any, Any], hook: Hook, prepend: bool = False) -> None:
        self._hooks, self._key = hooks, object()
        hooks[self._key] = hook
        if prepend:
            hooks.move_to_end(self._key, last=False)

    def remove(self) -> None:
        """Removes the hook."""
        self._hooks.pop(self._key, None)


def _with_hooks(step: Callable[..., Any]) -> Any:
    """A step() that calls the hooks of its optimizer before and after."""

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        if self._awaits_step:
            self._awaits_step = False
        if self._step_hooks is None:
            return step(self, *args, **kwargs)
        before, after = self._step_hooks
        for hook in list(before.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"a step pre-hook must return None or (args, kwargs), got {changed!r}")
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in list(after.values()):
            hook(self, args, kwargs)
        return result

    wrapper._calls_hooks = True  # type: ignore[attr-defined]
    return wrapper


class Optimizer:
    """Base of the algorithms. One of your own calls __init__(params, defaults) and defines step(), as in PyTorch.

    Those of this package define `_update(group)` instead, and `_STATE`, the names of what they keep for each parameter.
    """

    _STATE: tuple[str, ...] | None = None
    _step_hooks: Any = None
    _state_hooks: Any = None
    #: Whether a scheduler waits for the first step(), to warn if its own comes before; None without a scheduler.
    _awaits_step: bool | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "_calls_hooks", False):
            cls.step = _with_hooks(step)  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, _C.Tensor):
            raise TypeError("params must be an iterable of Tensors or dicts, not a Tensor")
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with options of its own; missing options have the default.

        "params" is a Tensor, Tensors, or pairs of names and Tensors. Options that the algorithm does not know are kept, for
        schedulers and the like.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"{type(self).__name__}: a parameter group must be a dict, got {describe(param_group)}")
        if "params" not in param_group:
            raise KeyError(f'{type(self).__name__}: a parameter group needs "params"')
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(f"{type(self).__name__}: the parameters of a group must have an order: a set has none that lasts; use a list")
        params = [params] if isinstance(params, _C.Tensor) else list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names and len(names) != len(params):
            raise ValueError(f"{type(self).__name__}: either all parameters have names, or none has")
        params = [p[1] for p in params] if names else params
        named = [("param_names" in group) for group in self.param_groups]
        if any(one != bool(names) for one in named):
            raise ValueError(f"{type(self).__name__}: either all groups have names for their parameters, or none has")
        self._check_params(params)
        group = {"params": params}
        if names:
            group["param_names"] = names
        group.update(self.defaults)
        group.update((key, value) for key, value in param_group.items() if key != "params")
        self._check(group)
        self.param_groups.append(group)

    def _check_params(self, params: Any) -> None:
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for p in params:
            if not isinstance(p, _C.Tensor):
                raise TypeError(f"{type(self).__name__}: params must be Tensors or groups of them, got {describe(p)}")
            if not p.is_leaf:
                raise ValueError(f"{type(self).__name__}: params must be leaf Tensors, and one is the result of an operator")
            if id(p) in known:
                raise ValueError(f"{type(self).__name__}: a parameter appears in more than one group, or twice in one")
            known.add(id(p))

    def _check(self, group: dict[str, Any]) -> None:
        """Raises ValueError for invalid options."""

    def _check_numbers(self, group: dict[str, Any], *names: str) -> None:
        """Raises TypeError for options that are no numbers, ValueError for negative ones."""
        for name in names:
            value = group[name]
            if isinstance(value, bool) or not hasattr(value, "__float__"):
                raise TypeError(f"{type(self).__name__}: {name} must be a number, got {describe(value)}")
            if not value >= 0:
                raise ValueError(f"{type(self).__name__}: {name} must not be negative, got {value}")

    def _check_betas(self, group: dict[str, Any]) -> None:
        who = type(self).__name__
        if not isinstance(group["betas"], (tuple, list)) or len(group["betas"]) != 2:
            raise TypeError(f"{who}: betas must be two numbers, got {group['betas']!r}")
        for beta in group["betas"]:
            if isinstance(beta, bool) or not hasattr(beta, "__float__"):
                raise TypeError(f"{who}: betas must be two numbers, got {group['betas']!r}")
            if not 0 <= beta < 1:
                raise ValueError(f"{who}: betas must be in [0, 1), got {beta}")

    def _check_switches(self, group: dict[str, Any]) -> None:
        """Raises NotImplementedError for what cannot be had. foreach and fused choose nothing: each step is one call for a
        whole group as it is."""
        who = type(self).__name__
        if group.get("capturable"):
            raise NotImplementedError(f"{who}: capturable=True is for graphs that a GPU replays; Tenon records none")
        if group.get("differentiable"):
            raise NotImplementedError(
                f"{who}: differentiable=True is not in Tenon yet; a step changes parameters in place, outside autograd"
            )
        if group.get("foreach") and group.get("fused"):
            raise RuntimeError(f"{who}: `fused` and `foreach` cannot be `True` together.")

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} defines no step()")

    @_with_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient. `closure`, if given, computes the loss first; step returns it."""
        loss = None
        if closure is not None:
            if not callable(closure):
                raise TypeError(f"{type(self).__name__}.step: closure must be callable or None, got {describe(closure)}")
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update(group)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters, or sets them to zero."""
        for group in self.param_groups:
            _C._zero_grad(group["params"], set_to_none)

    # State

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with parameters by number, as PyTorch writes them."""
        self._run_state_hooks("state_dict_pre")
        state: dict[int, Any] = {}
        groups: list[dict[str, Any]] = []
        number_of: dict[Tensor, int] = {}
        for group in self.param_groups:
            first = len(number_of)
            number_of.update((p, first + i) for i, p in enumerate(group["params"]))
            numbers = list(range(first, len(number_of)))
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": numbers})
        by_number = [(number, self.state[p]) for p, number in number_of.items() if p in self.state]
        for number, kept in by_number:
            if kept:
                state[number] = {name: _written(name, value) for name, value in kept.items()}
        state.update((key, value) for key, value in self.state.items() if not isinstance(key, _C.Tensor))
        out = {"state": state, "param_groups": groups}
        return self._run_state_hooks("state_dict_post", out)

    def _check_state(self, state_dict: Mapping[str, Any]) -> None:
        """Raises ValueError for the state of another optimizer, or of other parameters."""
        who = type(self).__name__
        if not {"state", "param_groups"} <= set(state_dict):
            raise ValueError(f"load_state_dict: expected the keys 'state' and 'param_groups', got {list(state_dict)}")
        theirs = state_dict["param_groups"]
        if [len(g["params"]) for g in theirs] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError("load_state_dict: the parameter groups have other sizes than this optimizer's")
        for place, (group, saved) in enumerate(zip(self.param_groups, theirs)):
            absent = set(self.defaults) - set(saved) - _SWITCHES
            if absent:
                names = ", ".join(sorted(absent))
                raise ValueError(f"load_state_dict: the state of another optimizer: {who} needs the option {names}")
            try:
                # A state of another device may have another implementation.
                self._check({**saved, **{name: group[name] for name in _SWITCHES & set(group)}})
            except (TypeError, ValueError) as error:
                raise ValueError(f"load_state_dict: group {place} of the state: {error}") from None
            for p, number in zip(group["params"], saved["params"]):
                for name, value in state_dict["state"].get(number, {}).items():
                    if self._STATE is not None and name not in self._STATE:
                        raise ValueError(f"load_state_dict: the state of another optimizer: {who} keeps no {name}")
                    if self._STATE is not None and isinstance(value, _C.Tensor) and value.dim() and value.shape != p.shape:
                        raise ValueError(
                            f"load_state_dict: {name} of parameter {number} has shape {list(value.shape)}, "
                            f"expected {list(p.shape)}"
                        )

    @no_grad()
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores the options and state of an optimizer of the same class with as many parameters in each group.

        State takes the dtype of its parameter if that is floating-point. Raises ValueError, and changes nothing, if the state
        does not fit this optimizer.
        """
        state_dict = self._run_state_hooks("load_state_dict_pre", dict(state_dict))
        self._check_state(state_dict)
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        numbered: dict[int, Tensor] = {}
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            group.update((key, value) for key, value in saved.items() if key not in ("params", "param_names"))
            numbered.update(zip(saved["params"], group["params"]))
        for number, kept in state_dict["state"].items():
            if number in numbered:
                p = numbered[number]
                state[p] = {name: _read(name, value, p) for name, value in kept.items()}
            else:
                state[number] = kept
        self.state = state
        self._run_state_hooks("load_state_dict_post")

    # Hooks

    def register_step_pre_hook(self, hook: Hook) -> _Handle:
        """Calls hook(optimizer, args, kwargs) before each step; unless it returns None, (args, kwargs) for the step."""
        return self._add_step_hook(0, hook)

    def register_step_post_hook(self, hook: Hook) -> _Handle:
        """Calls hook(optimizer, args, kwargs) after each step."""
        return self._add_step_hook(1, hook)

    def _add_step_hook(self, place: int, hook: Hook) -> _Handle:
        if self._step_hooks is None:
            self._step_hooks = (OrderedDict(), OrderedDict())
        return _Handle(self._step_hooks[place], hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> _Handle:
        """Calls hook(optimizer) before state_dict()."""
        return self._add_state_hook("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> _Handle:
        """Calls hook(optimizer, state_dict) after state_dict(); unless it returns None, its result is the state."""
        return self._add_state_hook("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> _Handle:
        """Calls hook(optimizer, state_dict) before loading; unless it returns None, its result is loaded."""
        return self._add_state_hook("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> _Handle:
        """Calls hook(optimizer) after loading."""
        return self._add_state_hook("load_state_dict_post", hook, prepend)

    def _add_state_hook(self, kind: str, hook: Hook, prepend: bool) -> _Handle:
        if self._state_hooks is None:
            self._state_hooks = defaultdict(OrderedDict)
        return _Handle(self._state_hooks[kind], hook, prepend)

    def _run_state_hooks(self, kind: str, state: Any = None) -> Any:
        for hook in list((self._state_hooks or {}).get(kind, {}).values()):
            changed = hook(self) if state is None else hook(self, state)
            if state is not None and changed is not None:
                state = changed
        return state

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [""] * (number > 0) + [f"Parameter Group {number}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines + [")"])


def _written(name: str, value: Any) -> Any:
    """A value of the state as state_dict writes it."""
    if name in _NUMBERS and not isinstance(value, _C.Tensor):
        return _C.tensor(float(value), dtype=_C.float32)
    return value


def _read(name: str, value: Any, parameter: Tensor) -> Any:
    """A value of a state dict as the state of `parameter` keeps it."""
    if name in _NUMBERS:
        return value.item() if isinstance(value, _C.Tensor) else value
    if not isinstance(value, _C.Tensor):
        return value
    dtype = parameter.dtype if parameter.is_floating_point() else value.dtype
    return value.detach().to(parameter.device, dtype).clone()


_check_module(globals())
