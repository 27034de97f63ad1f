"""Plans for authors of operators, who write no keys: a graph is written down once for each kind of arguments.

    @tenon.cached_plan
    def rmsnorm(g, x, weight, eps):
        y, _ = g.rmsnorm("INFERENCE", x, scale=weight, epsilon=eps)
        return y

    rmsnorm(x, weight, 1e-6)      # new tensors, or those of out=
    lib.impl("rmsnorm", rmsnorm, "CPU")
    lib.impl("rmsnorm", rmsnorm, "Meta")

`docs/custom-operators.md` is the guide.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C
from ..arguments import check_module as _check_module
from ..graph import Tensor, pygraph

__all__ = ["CacheInfo", "CachedPlan", "cached_plan"]

CachedPlan = _C.CachedPlan
#: All that there are, for those who count what a call does.
every_plan: weakref.WeakSet[Any] = weakref.WeakSet()


class CacheInfo(NamedTuple):
    """As `functools.lru_cache` has it."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


def cached_plan(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    reads: str | tuple[str, ...] = (),
    maxsize: int = 256,
    io_data_type: _C.dtype | None = None,
    intermediate_data_type: _C.dtype | None = None,
    compute_data_type: _C.dtype | None = None,
) -> Any:
    """A function of tensors from one that writes a graph down: `function(g, ...)` gets a graph and, for each tensor and each
    float, a tensor of that graph, and returns the results. It is called once for each kind of arguments.

    A plan depends on the dtype, sizes, strides and device of tensors, on which arguments are None, and on the values of
    ints, bools, strings, dtypes and lists of ints, which the function gets as they are. It does not depend on the values of
    floats: they are inputs of the graph. At most `maxsize` plans are kept, those that were used last.

    What the function reads besides its arguments, such as globals, is not compared, unless `reads` names it: variables of the
    closure or globals ("EPS"), or attributes of these ("config.scale"). Their values are then part of what the plan depends on:
    numbers (also floats), strings, bools, None, dtypes and lists of ints.

    `name` is what messages say, the function's unless given.

    On meta tensors the results have shapes and no elements. There is no derivative: where history would be recorded, a call
    raises. It is meant as the kernel of an operator, which has one.
    """

    def make(function: Callable[..., Any]) -> Any:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[1:]
        for p in parameters:
            if p.name == "out":
                raise TypeError(f"cached_plan: {function.__qualname__} takes `out`, which says where results go")
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TypeError(f"cached_plan: {function.__qualname__} takes *{p.name}, and a plan has a fixed number of arguments")
        missing = inspect.Parameter.empty

        def build(capsule: Any, numbers: tuple[int | None, ...], values: tuple[Any, ...]) -> list[int]:
            g = pygraph._of(capsule)
            given: list[Any] = []
            for p, number, value in zip(parameters, numbers, values):
                given.append(value if number is None else Tensor(g, number).set_name(p.name))
            positional = [v for p, v in zip(parameters, given) if p.kind is not p.KEYWORD_ONLY]
            by_name = {p.name: v for p, v in zip(parameters, given) if p.kind is p.KEYWORD_ONLY}
            results = function(g, *positional, **by_name)
            listed = results if isinstance(results, (tuple, list)) else (results,)
            for result in listed:
                if not isinstance(result, Tensor) or result._graph is not g:
                    raise TypeError(f"{function.__qualname__} has to return tensors of its graph, not {type(result).__name__}")
            return [result._number for result in listed]

        plan: Any = CachedPlan(
            name or function.__qualname__,
            tuple(p.name for p in parameters),
            tuple(p.default for p in parameters),
            missing,
            build,
            tuple(_place_of(function, read) for read in ((reads,) if isinstance(reads, str) else reads)),
            maxsize,
            io_data_type,
            intermediate_data_type,
            compute_data_type,
        )
        for copied in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(plan, copied, getattr(function, copied))
        plan.__wrapped__ = function
        every_plan.add(plan)
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        plan.__signature__ = signature.replace(parameters=[*parameters, out])
        return plan

    return make if function is None else make(function)


def _place_of(function: Callable[..., Any], read: str) -> tuple[str, Any, str | None, tuple[str, ...]]:
    """Where a call finds what `read` names: its name, a cell or a dict, the key in the dict, names of attributes."""
    if not isinstance(read, str) or not all(part.isidentifier() for part in read.split(".")):
        raise TypeError(f"cached_plan: `reads` takes names such as 'EPS' or 'config.scale', not {read!r}")
    function = inspect.unwrap(function)
    function = getattr(function, "__func__", function)
    name, *attributes = read.split(".")
    variables = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    if name in variables:
        return read, variables[name], None, tuple(attributes)
    return read, function.__globals__, name, tuple(attributes)


def _find(self: Any, *args: Any, **kwargs: Any) -> pygraph:
    """The graph that runs such arguments, built if there is none: its UIDs, its workspace, `_execute_with_ptrs`."""
    return pygraph._of(self._find(*args, **kwargs))


def _cache_info(self: Any) -> CacheInfo:
    """How often a plan was there, how often one was built, and how many are kept."""
    return CacheInfo(*self._counts())


CachedPlan.find = _find  # type: ignore[attr-defined]
CachedPlan.cache_info = _cache_info  # type: ignore[attr-defined]


_check_module(globals())
