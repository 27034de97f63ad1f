"""LiveNumbers: the numbers of optimizers that change by design, and that replays read afresh: rates, and counts of steps."""

from ..optim import SGD, Adam, AdamW
from .kinds import Refused, is_alike

_FORMULAS = {SGD: "SGD", Adam: "Adam", AdamW: "Adam"}


def _is_usual(optimizer):
    """Whether each group of an optimizer has a rate and parameters. Of another one the program's own step says what is wrong."""
    groups, state = getattr(optimizer, "param_groups", None), getattr(optimizer, "state", None)
    return (
        isinstance(groups, list)
        and isinstance(state, dict)
        and all(isinstance(group, dict) and type(group.get("lr")) in (int, float) for group in groups)
        and all(isinstance(group.get("params"), list) for group in groups)
        and all(isinstance(kept, dict) for kept in state.values())
    )


class LiveNumbers:
    """What the numbers were before the call that is captured, by the dict that has them and their key there."""

    def __init__(self):
        self._before = {}  # (id of a dict, key): a number
        self._optimizers = []
        self._others = []  # whose numbers are compared

    def __contains__(self, entry):
        return entry in self._before

    def note(self, optimizer):
        """Notes the numbers of an optimizer whose step replays can compute. Returns the dicts that have them, and their names."""
        if type(optimizer) not in _FORMULAS or not _is_usual(optimizer):
            self._others.append(optimizer)
            return []
        self._optimizers.append(optimizer)
        parts = []
        for i, group in enumerate(optimizer.param_groups):
            self._before[id(group), "lr"] = group["lr"]
            parts.append((group, f"param_groups[{i}]"))
            for k, p in enumerate(group["params"]):
                state = optimizer.state.get(p, {})
                if type(state.get("step")) is int:
                    self._before[id(state), "step"] = state["step"]
                    parts.append((state, f"state[{k}]"))
        return parts

    def described(self, capture):
        """For each parameter that an optimizer has updated, what its numbers follow from. Whether it has a gradient when the
        call ends says nothing: zero_grad() may follow the step."""
        rows = []
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                before = self._before.get((id(group), "lr"))
                rate = group.get("lr")
                if before is None or not is_alike(rate, before):
                    raise Refused("it changes the learning rate of an optimizer")
                for p, updates in zip(group["params"], capture.updates_of(group["params"])):
                    if updates:
                        rows.append(self._row(optimizer, group, p, capture.slot_of(p), updates))
        others = sum(sum(capture.updates_of(group["params"])) for one in self._others if _is_usual(one) for group in one.param_groups)
        if len(rows) + others != capture.num_updates():
            raise Refused("it steps an optimizer that it makes itself, or that no name leads to")
        return rows

    def _row(self, optimizer, group, p, slot, updates):
        formula = _FORMULAS[type(optimizer)]
        state = optimizer.state.get(p, {})
        step = self._before.get((id(state), "step"))
        if updates > 1 or slot is None or formula == "Adam" and (step is None or state["step"] != step + 1):
            raise Refused("it makes something else of an optimizer than one step")
        betas, decay = group["betas"] if formula == "Adam" else (0.0, 0.0), group["weight_decay"]
        decoupled = group.get("decoupled_weight_decay", False)
        return formula, group, state, slot, float(group["lr"]), step or 0, *betas, float(decay), decoupled
