"""Compiling the kernels of a device before they are needed, many at once: `tenon.NAME.warm_up`.

A plug-in takes part by operators `warm_up_begin(Tensor on) -> ()`, after which it notes what it would compile, and declines, and
`warm_up_end(Tensor on) -> int`, which compiles all of that (docs/backends.md).
"""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from .. import _C, dispatch, namespaces


def compile_for(device: _C.device, run: Callable[[], object]) -> int:
    """Compiles together what `run()` needs, which runs on host copies meanwhile; how many kernels they were. 0 where the device
    compiles nothing; `run()` is not called then."""
    own = _operators_of(device.type)
    if own is None:
        return 0
    on = _C.empty(0, device=device)
    own.warm_up_begin(on)
    try:
        run()
    finally:
        compiled = own.warm_up_end(on)
    return compiled


def compile_families(
    device: _C.device, families: Sequence[str] | None, dtypes: Sequence[Any], gradients: bool, strided: bool
) -> int:
    """The same for the pointwise operators of families, each family by itself."""
    known = pointwise_families()
    for name in families or ():
        if name not in known:
            raise ValueError(f"warm_up: there is no family {name!r} of pointwise operators; there are {', '.join(known)}")

    def try_all(operators: list[_Operator]) -> None:
        for operator in operators:
            for dtype in dtypes:
                for operands in _operands(operator, dtype, device, strided):
                    _call(operator, operands, gradients and dtype.is_floating_point, strided)

    return sum(compile_for(device, lambda name=name: try_all(known[name])) for name in families or known)  # type: ignore[misc]


def _operators_of(name: str) -> Any:
    """The operators of a device's plug-in, where it has those for warming up."""
    key = str(dispatch.key_for_device(name))
    for operator in dispatch.operators():
        space, _, function = operator.partition("::")
        if function == "warm_up_begin" and any(r.key == key for r in dispatch.registrations(operator)):
            return namespaces.namespace(space)
    return None


class _Operator(NamedTuple):
    """An operator that is an expression, and what it is called with."""

    call: Callable[..., Any]
    tensors: list[str]  #: The names of the arguments that are tensors.
    optional: set[str]  #: Those that may be absent, which is another program.
    numbers: dict[str, Any]
    functional: bool


@cache
def pointwise_families() -> dict[str, list[_Operator]]:
    """The operators that are expressions, by the file that declares them. In-place forms have the kernels of functional ones."""
    path = pathlib.Path(_C.__file__).parent / "_operators.json"
    by_place: dict[tuple[str, int], list[str]] = {}
    for name, said in json.loads(path.read_text(encoding="utf-8")).items():
        if "expr" in said.get("body", {}):
            by_place.setdefault((said["file"], said["line"]), []).append(name)
    found: dict[str, list[_Operator]] = {}
    for (file, _), names in by_place.items():
        functional = [n for n in names if "!" not in dispatch.schema(n)]
        found.setdefault(pathlib.Path(file).stem, []).extend(map(_read, functional or names))
    return dict(sorted(found.items()))


def _read(name: str) -> _Operator:
    schema = dispatch.schema(name)
    tensors: list[str] = []
    optional: set[str] = set()
    numbers: dict[str, Any] = {}
    for argument in schema[schema.index("(") + 1 : schema.rindex(") -> ")].split(", "):
        kind, _, called = argument.rpartition(" ")
        called, _, default = called.partition("=")
        if kind.startswith("Tensor"):
            tensors.append(called)
            optional |= {called} if kind.endswith("?") else set()
        elif kind and (not default or kind == "Scalar?"):
            numbers[called] = {"int": 1, "bool": False}.get(kind, 0.5)
    return _Operator(namespaces.overload(name), tensors, optional, numbers, functional="!" not in schema)


def _operands(operator: _Operator, dtype: Any, device: _C.device, strided: bool) -> Iterator[dict[str, Any]]:
    """Tensors that need kernels of their own: dense ones, and where asked strided ones of one dimension and of two."""
    for names in [operator.tensors, [n for n in operator.tensors if n not in operator.optional]][: 1 + bool(operator.optional)]:
        dense = [
            _C.ones(2, 3, dtype=_C.bool if name in ("mask", "condition") else dtype, device=device) for name in names
        ]
        yield dict(zip(names, dense))
        if strided:
            yield dict(zip(names, [t[:, 0] for t in dense]))
            if len(dense) > 1:
                yield dict(zip(names, [dense[0].t(), *(t.view(3, 2) for t in dense[1:])]))
                yield dict(zip(names, [dense[0], *(t[0] for t in dense[1:])]))  # broadcast


def _call(operator: _Operator, operands: dict[str, Any], gradients: bool, strided: bool) -> None:
    """Calls an operator, and the derivative of what it returns. One that refuses the operands needs no kernels for such."""
    gradients = gradients and operator.functional
    with contextlib.suppress(RuntimeError, TypeError, ValueError, NotImplementedError):
        leaves = {n: t.detach().requires_grad_(gradients and t.is_floating_point()) for n, t in operands.items()}
        result = operator.call(**leaves, **{n: None for n in operator.optional - set(leaves)}, **operator.numbers)
        if not isinstance(result, _C.Tensor) or not result.requires_grad:
            return
        result.backward(_C.ones_like(result), retain_graph=strided)
        if strided:
            result.sum().backward()  # an incoming gradient of strides 0
