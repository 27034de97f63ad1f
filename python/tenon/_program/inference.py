"""tenon.inference: a trained module planned once for inputs of given sizes."""

from __future__ import annotations

from .. import _C
from ..arguments import describe, path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor, dtype
    from ..types import Path

#: Plans of so many combinations of dtypes and sizes are kept; the oldest goes.
_KEPT = 64


def _flatten(value: Any, tensors: list[Tensor]) -> Any:
    """Adds the tensors in tuples, lists and dictionaries to a list, and returns how to put others in their places."""
    if isinstance(value, _C.Tensor):
        tensors.append(value)
        return len(tensors) - 1
    if isinstance(value, (list, tuple)):
        return type(value), [_flatten(one, tensors) for one in value]
    if isinstance(value, dict):
        return dict, {key: _flatten(one, tensors) for key, one in value.items()}
    return None, value


def _filled(form: Any, tensors: list[Tensor]) -> Any:
    if isinstance(form, int):
        return tensors[form]
    kind, parts = form
    if kind is None:
        return parts
    if kind is dict:
        return {key: _filled(one, tensors) for key, one in parts.items()}
    values = [_filled(one, tensors) for one in parts]
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


class Inference:
    """What `inference` returns: called as the module, it gives the same results without running its lines.

    Inputs of other sizes or dtypes, or other arguments that are no tensors, make a plan of their own when they first come.
    """

    def __init__(self, function: Callable[..., Any], exact: bool):
        self._function, self._exact = function, exact
        #: With the other arguments of each, whose identity may be a part of the key: while a plan is kept, no other object may get it.
        self._plans: dict[Any, tuple[tuple[Any, Any], Any]] = {}
        #: The plan of the last call, where all arguments were tensors by position.
        self._last: tuple[Any, Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._last is not None and not kwargs:
            runs, result = self._last
            outputs = _C._inference.run(runs, args)
            if outputs is not None:
                return _filled(result, outputs)
        runs, result, inputs = self._plan(args, kwargs)
        outputs = _C._inference.run(runs, inputs)
        if outputs is None:  # the plan was made for them
            raise NotImplementedError("inference: the inputs have no values, as inside of another program; call the module there")
        return _filled(result, outputs)

    def _plan(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, list[Tensor]]:
        """The plan for a call, which is made if there is none: what runs, the form of its result, and the call's tensors."""
        inputs: list[Tensor] = []
        form = _flatten((args, kwargs), inputs)
        key = (repr(form), *[(t.dtype, t.shape) for t in inputs])
        found = self._plans.get(key)
        if found is None:
            found = self._make(form, inputs), form
            if len(self._plans) >= _KEPT:
                self._plans.pop(next(iter(self._plans)), None)
            self._plans[key] = found
        plan = found[0]
        self._last = plan if len(inputs) == len(args) and not kwargs else None
        return *plan, inputs

    def _make(self, form: Any, inputs: list[Tensor]) -> tuple[Any, Any]:
        builder, traced = _C._inference.begin(inputs, self._exact)
        try:
            args, kwargs = _filled(form, traced)
            outputs: list[Tensor] = []
            result = _flatten(self._function(*args, **kwargs), outputs)
            if not outputs:
                raise TypeError("inference: the function returns no tensor")
            return _C._inference.finish(builder, outputs), result
        finally:
            _C._inference.abandon(builder)

    def report(self) -> str:
        """What each plan fuses, as text."""
        return "\n".join(_C._inference.report(runs) for (runs, _), _ in self._plans.values())


class Program:
    """What `load_program` returns: called with tensors of the dtypes and shapes in `inputs`, it returns the result, or a tuple of
    several. Threads may run it at once."""

    #: The dtype and the shape of each input.
    inputs: list[tuple[dtype, tuple[int, ...]]]

    def __init__(self, runs: Any, num_outputs: int):
        self._runs, self._num_outputs = runs, num_outputs
        self.inputs = _C._inference.inputs(runs)

    def __call__(self, *inputs: Tensor) -> Any:
        outputs = _C._inference.run(self._runs, inputs)
        if outputs is None:
            given = ", ".join(f"{t.dtype} of shape {tuple(t.shape)}" if isinstance(t, _C.Tensor) else describe(t) for t in inputs)
            wanted = ", ".join(f"{kind} of shape {shape}" for kind, shape in self.inputs)
            raise ValueError(f"Program: it takes {wanted or 'nothing'}, and got {given or 'nothing'}")
        return outputs[0] if self._num_outputs == 1 else tuple(outputs)


def save_program(module: Callable[..., Any], path: Path, *example: Any, exact: bool = False, **kwargs: Any) -> None:
    """Writes what a module computes of inputs such as the example's, with its weights, to a file that `load_program`, and
    tenon::load_program in C++, run without the module's lines. Replaces the file completely or not at all.

        tenon.save_program(model.eval(), "classifier.tenon", image)

    Raises as `inference` does, which says what `exact` means.
    """
    if not callable(module):
        raise TypeError(f"save_program: `module` is called with tensors; {describe(module)} is no module and no function")
    made = Inference(module, exact)
    runs, _, _ = made._plan(example, kwargs)
    _C._inference.save(runs, path_of("save_program", path))


def load_program(path: Path) -> Program:
    """Reads a program that `save_program`, or tenon::save_program in C++, has written; it is planned for this machine, and its weights
    stay in the mapped file. Raises ValueError for a file that is damaged, of another kind or of a newer version."""
    return Program(*_C._inference.load(path_of("load_program", path)))


def inference(module: Callable[..., Any], *example: Any, exact: bool = False, **kwargs: Any) -> Inference:
    """A module, or a function of tensors, planned once for inputs of the example's dtypes and sizes.

        run = tenon.inference(model.eval(), image)
        scores = run(other_image)

    The module is called once with tensors without values. What follows from its weights alone is computed then, batch norms are
    folded into the convolutions and linear layers before them, weights are copied to the order in which products read them, and the
    rest becomes one plan, whose memory is planned, too. Results differ from eager's by rounding where something was folded. With
    `exact=True` the bits are eager's, and the weights are read where they are, so that changes of them in place show, but for what
    follows from weights alone. Threads may run it at once. Gradients are not recorded.

    Inputs count as contiguous and keep their values: what the module writes in place stays in the plan. Results share no memory.
    Arguments that are no tensors are compared by what `repr` says of them; others make another plan.

    Raises ValueError for a module in training, and NotImplementedError where a line needs the values of an input, as `if` and
    `item()` do, or an operator that cannot be part of a plan.
    """
    if not callable(module):
        raise TypeError(f"inference: `module` is called with tensors; {describe(module)} is no module and no function")
    made = Inference(module, exact)
    if example or kwargs:
        made._plan(example, kwargs)
    return made
