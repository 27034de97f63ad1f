"""library.opcheck: whether an operator does what its schema says, on given arguments. Each test returns a sentence on what is wrong, or
"". The names of the tests are PyTorch's."""

from __future__ import annotations

from . import _C
from .arguments import check_module as _check_module, describe
from .autograd import grad
from .autograd.grad_mode import no_grad
from ._program.compile import compile
from .functional import broadcast_shapes
from .namespaces import find_operator
from .random import get_rng_state, set_rng_state
from .testing import assert_close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class OpCheckError(Exception):
    """An operator that fails a test of opcheck."""


class _Call:
    """The operator with copies of its arguments, made again for each use, so that what one writes no other sees."""

    def __init__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], rtol: float | None, atol: float | None) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs
        _, self.name, self.arguments, _ = _C._op_schema(op._name)
        self.writes = any(writes for *_, writes in self.arguments)
        self.rtol, self.atol = rtol, atol

    def copies(self, change: Callable[[_C.Tensor], _C.Tensor] = lambda t: t.detach().clone()) -> tuple[list[Any], dict[str, Any]]:
        def of(value):
            if isinstance(value, _C.Tensor):
                return change(value).requires_grad_(value.requires_grad)
            if isinstance(value, (list, tuple)):
                return type(value)(map(of, value))
            return value

        return [of(value) for value in self.args], {name: of(value) for name, value in self.kwargs.items()}

    def named(self, args: list[Any], kwargs: dict[str, Any]) -> list[tuple[str, bool, _C.Tensor]]:
        """(argument, whether the schema writes it, tensor) of every tensor among the arguments."""
        values = {**dict(zip((a[0] for a in self.arguments), args)), **kwargs}
        rows = [(name, writes, values[name]) for name, *_, writes in self.arguments if name in values]
        return [(name, writes, t) for name, writes, value in rows for t in _tensors(value)]


def _tensors(value: Any) -> list[_C.Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for each in value for t in _tensors(each)]
    return [value] if isinstance(value, _C.Tensor) else []


def _schema(call: _Call) -> str:
    args, kwargs = call.copies()
    before = [(name, writes, t, _version(t), t.detach().clone()) for name, writes, t in call.named(args, kwargs)]
    with no_grad():
        call.op(*args, **kwargs)  # raises where a kernel in Python returns memory of an argument
    for name, writes, t, version, old in before:
        if not writes and (_version(t) != version or not _same_bits(t, old)):
            return f"it writes argument `{name}`, and its schema does not say so: Tensor(a!) {name}"
    return ""


def _version(t):  # which the stubs do not show
    return t._version


def _same_bits(a, b):
    a, b = a.detach().contiguous(), b.contiguous()
    return bool(_C.equal(a.view(-1).view(_C.uint8), b.view(-1).view(_C.uint8))) if a.numel() else True


def _autograd_registration(call: _Call) -> str:
    args, kwargs = call.copies()
    if call.writes or not any(t.requires_grad for _, _, t in call.named(args, kwargs)):
        return ""
    found = [t.abs().sum() for t in _tensors(call.op(*args, **kwargs)) if t.requires_grad]
    if found:
        _C.stack(found).sum().backward()  # raises where there is no derivative
    return ""


def _faketensor(call: _Call) -> str:
    args, kwargs = call.copies()
    fake_args, fake_kwargs = call.copies(lambda t: t.detach().to("meta"))
    with no_grad():
        results = _tensors(call.op(*args, **kwargs))
        try:
            fakes = _tensors(call.op(*fake_args, **fake_kwargs))
        except RuntimeError as e:
            return f"it does not run on meta tensors: {e}"
    if len(results) != len(fakes):
        return f"on meta tensors it returns {len(fakes)} tensors, and {len(results)} on others"
    for i, (result, fake) in enumerate(zip(results, fakes)):
        for what in ("shape", "dtype", "stride"):
            real, said = (getattr(t, what) if what != "stride" else t.stride() for t in (result, fake))
            if real != said:
                return f"result {i} has the {what} {real}, and {said} on meta tensors"
    return ""


def _compiled(call: _Call) -> str:
    eager, recorded = call.copies(), call.copies()
    outcomes = []
    for function, (args, kwargs) in ((call.op, eager), (compile(lambda *a, **k: call.op(*a, **k)), recorded)):
        try:
            results = _tensors(function(*args, **kwargs))
            leaves = [t for _, _, t in call.named(args, kwargs) if t.requires_grad]
            roots = [t.abs().sum() for t in results if t.requires_grad]
            slopes = grad(roots, leaves, allow_unused=True) if roots and leaves and not call.writes else ()
        except NotImplementedError:  # what test_autograd_registration tells
            slopes = ()
        written = [t.detach() for _, writes, t in call.named(args, kwargs) if writes]
        outcomes.append([[t.detach() for t in results], written, list(slopes)])
    try:
        assert_close(outcomes[1], outcomes[0], equal_nan=True, rtol=call.rtol, atol=call.atol)
    except AssertionError as e:
        return f"in a recorded program it gives something else: {e}"
    return ""


def _tags(call: _Call) -> str:
    tags = {tag.name for tag in call.op.tags}

    def results(change=lambda t: t.detach().clone()):
        args, kwargs = call.copies(change)
        with no_grad():
            made = _tensors(call.op(*args, **kwargs))
        named = call.named(args, kwargs)
        return made + [t for _, writes, t in named if writes], named

    state = get_rng_state()
    first, named = results()
    if "inplace" in tags and not (first and named and first[0] is named[0][2]):
        return "it has the tag inplace, and does not return its first argument"
    if "nondeterministic_bitwise" not in tags:
        if "nondeterministic_seeded" in tags:
            set_rng_state(state)
        if not all(map(_same_bits, first, results()[0])):
            if "nondeterministic_seeded" in tags:
                return "it has the tag nondeterministic_seeded, and gives other bits from the same state of the default generator"
            return "two calls give different bits, and it has neither the tag nondeterministic_seeded nor nondeterministic_bitwise"
    if "pointwise" in tags:
        return _pointwise(results, first, named)
    return ""


def _pointwise(results, first, named) -> str:
    shape = broadcast_shapes(*(t.shape for _, _, t in named))
    for i, result in enumerate(first):
        if result.shape != shape:
            return f"it has the tag pointwise, and result {i} has the shape {tuple(result.shape)}, where its arguments broadcast to {tuple(shape)}"
    # A number that is a tensor stays one: it takes part in promotion otherwise.
    reversed_ = results(lambda t: t.detach().expand(shape).flip(*range(len(shape))) if t.dim() else t.detach().clone())[0]
    for i, (result, other) in enumerate(zip(first, reversed_)):
        if not _same_bits(result, other.flip(*range(len(shape)))):
            return f"it has the tag pointwise, and result {i} depends on where elements are"
    return ""


TESTS = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd_registration,
    "test_faketensor": _faketensor,
    "test_aot_dispatch_dynamic": _compiled,
    "test_tags": _tags,
}


def check(op, args, kwargs, test_utils, raise_exception, rtol, atol) -> dict[str, str]:
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if unknown := [name for name in names if name not in TESTS]:
        raise ValueError(f"opcheck: there is no test {unknown[0]!r}; there are {', '.join(TESTS)}")
    if isinstance(op, str):
        try:
            op = find_operator(op)
        except LookupError as e:
            raise LookupError(f"opcheck: {e}") from None
    op = op.default if isinstance(op, _C.OpOverloadPacket) else op
    if not isinstance(op, _C.OpOverload):
        raise TypeError(f"opcheck: expected an operator or its name, 'namespace::name', got {describe(op)}")
    call = _Call(op, tuple(args), dict(kwargs or {}), rtol, atol)
    outcome = {}
    for name in names:
        try:
            outcome[name] = TESTS[name](call) or "SUCCESS"
        except RuntimeError as e:  # the dispatcher's own checks
            outcome[name] = str(e)
        if raise_exception and outcome[name] != "SUCCESS":
            raise OpCheckError(f"opcheck: {call.name} fails {name}: {outcome[name]}")
    return outcome


_check_module(globals())
