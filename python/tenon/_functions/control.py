"""Branches and loops as functions, with the meaning that they have when nothing is traced; and sizes as numbers of Python."""

from __future__ import annotations

import math

from .. import _C
from ..arguments import check_module as _check_module, describe as _describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """true_fn(*operands) where pred is true, false_fn(*operands) where not; pred is a bool, a number or a tensor of one element."""
    if not isinstance(pred, (bool, int, float, _C.Tensor)):
        raise RuntimeError(f"cond: pred must be a bool, a number or a Tensor, got {_describe(pred)}")
    if isinstance(pred, _C.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"cond: pred must be a Tensor of one element, got shape {list(pred.shape)}")
    for name, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise RuntimeError(f"cond: {name} must be callable, got {_describe(function)}")
    if not isinstance(operands, (list, tuple)):
        raise RuntimeError(f"cond: operands must be a tuple or list, got {_describe(operands)}")
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """The tuple of values that body_fn(*values) gives, again and again while cond_fn(*values) is true; first of carried_inputs."""
    for name, function in (("cond_fn", cond_fn), ("body_fn", body_fn)):
        if not callable(function):
            raise RuntimeError(f"while_loop: {name} must be callable, got {_describe(function)}")
    if not isinstance(carried_inputs, (list, tuple)):
        raise RuntimeError(f"while_loop: carried_inputs must be a tuple or list, got {_describe(carried_inputs)}")
    values = tuple(carried_inputs)
    while _goes_on(cond_fn(*values)):
        found = body_fn(*values)
        if not isinstance(found, (list, tuple)) or len(found) != len(values):
            raise RuntimeError(f"while_loop: body_fn must return {len(values)} values, as many as carried_inputs, got {_describe(found)}")
        values = tuple(found)
    return values


def _goes_on(found: Any) -> bool:
    if isinstance(found, _C.Tensor):
        if found.dim() or found.dtype is not _C.bool:
            raise RuntimeError(f"while_loop: cond_fn must return a bool or a 0-dim Tensor of bool, got {found.dtype} {list(found.shape)}")
    elif not isinstance(found, bool):
        raise RuntimeError(f"while_loop: cond_fn must return a bool or a 0-dim Tensor of bool, got {_describe(found)}")
    return bool(found)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A future of func(*args, **kwargs), which has run: only PyTorch's TorchScript runs it later."""
    from ..futures import Future

    if not callable(func):
        raise TypeError(f"fork: func must be callable, got {_describe(func)}")
    future: Any = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """The value of a future, once it is done."""
    from ..futures import Future

    if not isinstance(future, Future):
        raise TypeError(f"wait: future must be a Future, got {_describe(future)}")
    return future.wait()


class _Symbol(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{cls.__name__}: sizes are numbers of Python here, and no symbols; give the number itself")


class SymInt(metaclass=_Symbol):
    """PyTorch's type of ints that a tracer does not know yet, for isinstance(): no object has it, sizes are always ints."""


class SymFloat(metaclass=_Symbol):
    """PyTorch's type of floats that a tracer does not know yet, for isinstance(): no object has it."""


class SymBool(metaclass=_Symbol):
    """PyTorch's type of truth values that a tracer does not know yet, for isinstance(): no object has it."""


# PyTorch's functions for sizes that may be symbols. Sizes are always numbers here.


def sym_float(a: Any) -> Any:
    """float(a)"""
    return _converted("sym_float", float, a)


def sym_int(a: Any) -> Any:
    """int(a)"""
    return _converted("sym_int", int, a)


def _converted(function: str, kind: Any, a: Any) -> Any:
    try:
        return kind(a)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{function}: a must be a number, got {_describe(a)}") from None


def _check_numbers(function: str, *numbers: Any) -> None:
    for number in numbers:
        if not isinstance(number, (int, float)):
            raise TypeError(f"{function}: expected numbers, got {_describe(number)}")


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, a float if either is."""
    _check_numbers("sym_max", a, b)
    found = max(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if either is."""
    _check_numbers("sym_min", a, b)
    found = min(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_not(a: Any) -> Any:
    """not a"""
    return not a


def sym_sqrt(a: Any) -> Any:
    """The square root of a number."""
    _check_numbers("sym_sqrt", a)
    if a < 0:
        raise ValueError(f"sym_sqrt: a must not be negative, got {a}")
    return math.sqrt(a)


def sym_sum(*args: Any) -> Any:
    """The sum of ints, or of a list of them."""
    numbers = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    _check_numbers("sym_sum", *numbers)
    return sum(numbers)


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """t where b is true, f where not; both are of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise TypeError(f"sym_ite: b must be a bool, and t and f of one type, got {_describe(b)}, {_describe(t)} and {_describe(f)}")
    return t if b else f


def sym_fresh_size(expr: int) -> int:
    """The number itself."""
    _check_numbers("sym_fresh_size", expr)
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Raises RuntimeError for a number below `min` or above `max`."""
    _check_bounds("sym_constrain_range", size, min, max)


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """sym_constrain_range for a size, whose `max` must be above 2."""
    if max is not None and max <= 2:
        raise RuntimeError(f"sym_constrain_range_for_size: max must be above 2, got {max}")
    _check_bounds("sym_constrain_range_for_size", size, 0 if min is None else min, max)


def _check_bounds(function: str, size: Any, least: int | None, most: int | None) -> None:
    _check_numbers(function, size)
    if least is not None and most is not None and least > most:
        raise RuntimeError(f"{function}: max must not be below min, got {least} and {most}")
    if (least is not None and size < least) or (most is not None and size > most):
        raise RuntimeError(f"{function}: {size} is not between {least} and {most}")


_check_module(globals())
