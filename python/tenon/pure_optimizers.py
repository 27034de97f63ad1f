"""LiveNumbers: the numbers of optimizers that change by design, and that replays read afresh: rates, and counts of steps."""

from .arguments import unwrapped
from .optim import SGD, Adam, AdamW, Optimizer
from .pure_observer import Refused

_FORMULAS = {SGD: "SGD", Adam: "Adam", AdamW: "Adam"}
#: The code that reads a rate or a count of steps as replays do.
_READERS = {unwrapped(method).__code__ for method in (Optimizer.step, Optimizer.zero_grad, SGD._update, Adam._update)}


def _is_usual(optimizer):
    """Whether each group of an optimizer has a rate and parameters. Of another one the program's own step says what is wrong."""
    groups, state = getattr(optimizer, "param_groups", None), getattr(optimizer, "state", None)
    return (
        isinstance(groups, list)
        and isinstance(state, dict)
        and all(isinstance(group, dict) and type(group.get("lr")) in (int, float) for group in groups)
        and all(isinstance(group.get("params"), list) for group in groups)
    )


class LiveNumbers:
    """What the numbers were before the call that is captured, by the dict that has them and their key there."""

    def __init__(self, are_followed):
        self._are_followed = are_followed  # else all numbers are compared
        self.is_shared = False  # a list or a dict that has them is found in another way than by its optimizer
        self._before = {}  # (id of a dict, key): a number
        self._parts = set()  # ids of the lists and dicts that lead to them
        self._optimizers = []

    def __contains__(self, entry):
        return entry in self._before

    def reach_again(self, number):
        """Notes that the object with this id was found once more."""
        self.is_shared = self.is_shared or number in self._parts

    def note(self, optimizer, kind, codes, seen):
        """Notes the numbers of an optimizer, if nobody but its own step, of the code that ran, reads them. `seen` has the ids of
        what was found before."""
        if not self._are_followed:
            return
        readers = {
            code
            for code in codes
            if {"param_groups", "state", "lr"} & {*code.co_names, *(c for c in code.co_consts if isinstance(c, str))}
        }
        if kind not in _FORMULAS or kind._update.__code__ not in codes or not readers <= _READERS:
            return
        if not _is_usual(optimizer):
            return
        parts = {id(optimizer.param_groups), id(optimizer.state), *map(id, optimizer.param_groups), *map(id, optimizer.state.values())}
        if not parts.isdisjoint(seen):
            return
        self._parts |= parts
        self._optimizers.append(optimizer)
        for group in optimizer.param_groups:
            self._before[id(group), "lr"] = group["lr"]
            for p in group["params"]:
                state = optimizer.state.get(p, {})
                if type(state.get("step")) is int:
                    self._before[id(state), "step"] = state["step"]

    def described(self, capture):
        """For each parameter that an optimizer has updated, what its numbers follow from. Whether it has a gradient when the
        call ends says nothing: zero_grad() may follow the step."""
        rows = []
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                before = self._before.get((id(group), "lr"))
                rate = group.get("lr")
                if before is None or rate != before or type(rate) is not type(before):
                    raise Refused("it changes the learning rate of an optimizer")
                for p, updates in zip(group["params"], capture.updates_of(group["params"])):
                    if updates:
                        rows.append(self._row(optimizer, group, p, capture.slot_of(p), updates))
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
