"""Optimizer: groups of parameters with options, and the state that an algorithm keeps for each parameter.

A group is a dict with "params" and the options. State is kept in lists beside the groups, one entry for each parameter,
so that a step is one call for a whole group; `state` shows it by parameter, as PyTorch does.
"""

from .. import _C


class Optimizer:
    """Base of the algorithms, which define `_STATE` (the names of their state) and `_update(group, state)`."""

    _STATE = ()

    def __init__(self, params, defaults):
        if isinstance(params, _C.Tensor):
            raise TypeError("params must be an iterable of Tensors or dicts, not a Tensor")
        self.defaults = defaults
        self.param_groups = []
        self._states = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        """Adds a group of parameters with options of its own; missing options have the default."""
        if not isinstance(param_group, dict):
            raise TypeError(f"a parameter group must be a dict, not {type(param_group).__name__}")
        if "params" not in param_group:
            raise KeyError(f"{type(self).__name__}: a parameter group needs \"params\"")
        params = param_group["params"]
        group = {"params": [params] if isinstance(params, _C.Tensor) else list(params)}
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for p in group["params"]:
            if not isinstance(p, _C.Tensor):
                raise TypeError(f"an optimizer takes Tensors, not {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError("an optimizer takes leaf Tensors only")
            if id(p) in known:
                raise ValueError("a parameter appears in more than one group, or twice in one")
            known.add(id(p))
        unknown = set(param_group) - {"params", "initial_lr"} - set(self.defaults)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(sorted(unknown))}")
        group.update(self.defaults)
        group.update((key, value) for key, value in param_group.items() if key != "params")
        self._check(group)
        self.param_groups.append(group)
        self._states.append(self._new_state(len(group["params"])))

    def _new_state(self, count):
        return {name: [0 if name == "step" else None] * count for name in self._STATE}

    def _check(self, group):
        """Raises ValueError for invalid options."""

    def _check_numbers(self, group, *names):
        """Raises TypeError for options that are no numbers, ValueError for negative ones."""
        for name in names:
            value = group[name]
            if isinstance(value, bool) or not hasattr(value, "__float__"):
                raise TypeError(f"{type(self).__name__}: {name} must be a number, not {type(value).__name__}")
            if not value >= 0:
                raise ValueError(f"{type(self).__name__}: {name} must not be negative, got {value}")

    def _update(self, group, state):
        raise NotImplementedError

    def step(self, closure=None):
        """Updates every parameter that has a gradient. `closure`, if given, computes the loss first; step returns it."""
        loss = closure() if closure is not None else None
        for group, state in zip(self.param_groups, self._states):
            self._update(group, state)
        return loss

    def zero_grad(self, set_to_none=True):
        """Clears the gradients of all parameters, or sets them to zero."""
        for group in self.param_groups:
            _C._zero_grad(group["params"], set_to_none)

    @property
    def state(self):
        """The state of each parameter that has been updated, by parameter."""
        out = {}
        for group, state in zip(self.param_groups, self._states):
            for i, p in enumerate(group["params"]):
                kept = {name: values[i] for name, values in state.items() if values[i] is not None}
                if any(isinstance(value, _C.Tensor) for value in kept.values()):
                    out[p] = kept
        return out

    def state_dict(self):
        """Options and state, with parameters by number."""
        state, groups, first = {}, [], 0
        by_parameter = self.state
        for group in self.param_groups:
            numbers = list(range(first, first + len(group["params"])))
            first += len(numbers)
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": numbers})
            state.update((n, by_parameter[p]) for n, p in zip(numbers, group["params"]) if p in by_parameter)
        return {"state": state, "param_groups": groups}

    def _check_state(self, state_dict):
        """Raises ValueError for the state of another optimizer, or of other parameters."""
        who = type(self).__name__
        theirs = state_dict["param_groups"]
        if [len(g["params"]) for g in theirs] != [len(g["params"]) for g in self.param_groups]:
            raise ValueError("load_state_dict: the parameter groups have other sizes than this optimizer's")
        for group, saved in zip(self.param_groups, theirs):
            # What a scheduler has put there belongs to no optimizer.
            strange = set(saved) - {"params", "initial_lr"} - set(self.defaults)
            absent = set(self.defaults) - set(saved)
            if strange or absent:
                names = ", ".join(sorted(strange or absent))
                verb = "has no option" if strange else "needs the option"
                raise ValueError(f"load_state_dict: the state of another optimizer: {who} {verb} {names}")
            for p, number in zip(group["params"], saved["params"]):
                for name, value in state_dict["state"].get(number, {}).items():
                    if name not in self._STATE:
                        raise ValueError(f"load_state_dict: the state of another optimizer: {who} keeps no {name}")
                    if isinstance(value, _C.Tensor) and value.dim() > 0 and value.shape != p.shape:
                        raise ValueError(
                            f"load_state_dict: {name} of parameter {number} has shape {list(value.shape)}, "
                            f"expected {list(p.shape)}"
                        )

    def load_state_dict(self, state_dict):
        """Restores the options and state of an optimizer of the same class with as many parameters in each group.

        Raises ValueError, and changes nothing, if the state does not fit this optimizer.
        """
        self._check_state(state_dict)
        for group, state, saved in zip(self.param_groups, self._states, state_dict["param_groups"]):
            group.update((key, value) for key, value in saved.items() if key != "params")
            state.update(self._new_state(len(group["params"])))
            for i, number in enumerate(saved["params"]):
                for name, value in state_dict["state"].get(number, {}).items():
                    if name in state:
                        state[name][i] = value.detach().clone() if isinstance(value, _C.Tensor) else value

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines + [")"])
