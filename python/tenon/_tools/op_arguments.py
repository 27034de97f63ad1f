"""Arguments for an operator that is called to be watched or measured: `tenon check-op` and `tenon bench overhead`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, dispatch
from ..autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable


class Arguments(NamedTuple):
    positional: tuple[Any, ...]
    named: dict[str, Any]

    def tensors(self) -> list[_C.Tensor]:
        """In order, with those of lists."""
        return [t for value in (*self.positional, *self.named.values()) for t in _tensors(value)]

    def changed(self, change: Callable[[int, _C.Tensor], _C.Tensor]) -> Arguments:
        """With `change(i, tensor)` in the place of tensor i."""
        places = iter(range(len(self.tensors())))

        def of(value: Any) -> Any:
            if isinstance(value, _C.Tensor):
                return change(next(places), value)
            return type(value)(map(of, value)) if type(value) in (list, tuple) else value

        return Arguments(tuple(map(of, self.positional)), {name: of(value) for name, value in self.named.items()})

    def fresh(self) -> Arguments:
        """Copies at other addresses, where a copy has the same strides."""

        def copy(i: int, t: _C.Tensor) -> _C.Tensor:
            made = t.detach().clone()
            return made if made.stride() == t.stride() else t

        return self.changed(copy)


def _tensors(value: Any) -> list[_C.Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for each in value for t in _tensors(each)]
    return [value] if isinstance(value, _C.Tensor) else []


def _elements(shape: tuple[int, ...], place: int) -> _C.Tensor:
    """Numbers between 0.5 and 1.5 that look random, others for each argument, without drawing from the generator."""
    count = _C.arange(1, 1 + int(_C.tensor(shape).prod()), dtype=_C.float32)
    return ((count * 0.618034 + place * 0.377) % 1 + 0.5).reshape(shape)


def _tiny(name: str, type_text: str, place: int, shape: tuple[int, ...]) -> Any:
    """An argument of a type, with a value that most operators accept."""
    width = shape[-1]
    if type_text == "Tensor":
        return _elements((width,) if name in ("weight", "bias", "gamma", "beta") else shape, place)
    if type_text.endswith("?"):
        return None
    plain = {"int": 1, "float": 1e-3 if "eps" in name else 0.75, "bool": False, "str": "", "Scalar": 0.75}
    if type_text.startswith(("int[", "SymInt[")):
        return [width]
    if type_text in ("Tensor[]",):
        return [_elements(shape, place), _elements(shape, place + 100)]
    return plain.get(type_text.replace("SymInt", "int"))


def arguments_for(op: Any, schema: Any, given: str | None) -> Arguments:
    """Arguments that the operator takes: those that were given as an expression, or guessed ones. Raises ValueError."""
    if given is not None:
        import tenon

        try:
            value = eval(given, {"tenon": tenon, "torch": tenon})
        except Exception as e:
            raise ValueError(f"--arguments '{given}' cannot be evaluated: {type(e).__name__}: {e}") from None
        arguments = Arguments(value if isinstance(value, tuple) else (value,), {})
        try:
            with no_grad():
                op(*arguments.positional)
        except Exception as e:
            raise ValueError(f"{op._name} does not take --arguments '{given}': {type(e).__name__}: {e}") from None
        return arguments
    error: Exception | None = None
    positional: list[Any]
    named: dict[str, Any]
    for shape in ((2, 4), (1, 2, 3, 4), (2, 3, 4), (4,), (4, 4)):
        positional, named = [], {}
        for place, (name, type_text, keyword_only, has_default, _) in enumerate(schema[2]):
            if has_default:
                continue
            value = _tiny(name, type_text, place, shape)
            if keyword_only or len(positional) < place:
                named[name] = value
            else:
                positional.append(value)
        try:
            with no_grad():
                op(*positional, **named)
        except Exception as e:
            error = e
            continue
        return Arguments(tuple(positional), named)
    raise ValueError(f"no guess fits it ({error}); pass arguments: --arguments '(tenon.ones(2, 4), 1e-5)'")


def python_kernel(op: Any, arguments: Arguments) -> Callable[..., Any] | None:
    """The function of Python that a call below autograd runs, if it is one."""
    keys = [dispatch.key_set(t) for t in arguments.tensors()]
    if not keys:
        return None
    function: Callable[..., Any] | None = _C._python_kernel(op._name, keys[0])
    return function
