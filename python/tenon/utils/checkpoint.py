"""Checkpoints of activations: the tensors that backward needs are computed again when it needs them, instead of being kept.

Both values of PyTorch's `use_reentrant` do the same here: the graph is recorded, and its saved tensors are recomputed by hooks.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref

from .. import _C
from .._names.absent import add_module_getattr
from ..arguments import describe as _describe
from ..autograd.grad_mode import enable_grad
from ..autograd.graph import saved_tensors_hooks
from ..random import fork_rng, get_rng_state, set_rng_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from .._C import Tensor

    Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_early_stop"]


class CheckpointError(RuntimeError):
    """The function computed something else than before when it was called again."""


def noop_context_fn() -> Contexts:
    """Contexts for the function and for its repetition that change nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """PyTorch's choice whether a repetition ends at the last tensor that is needed. It runs to its end here, with the same values."""
    yield


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, without keeping the tensors that its backward pass needs: backward calls it again for them.

    Without a function, a decorator. The gradients are those of the plain call, if the function computes the same again.

    use_reentrant: chooses among PyTorch's two implementations; there is one here. With True, arguments by name are
        refused as PyTorch refuses them.
    preserve_rng_state: the second call draws the random numbers of the first one, and leaves the generator as it was.
    context_fn: returns two contexts, for the first call and for the second.
    determinism_check: "default" compares shapes, dtypes and devices of what is computed again; "none" does not.

    Raises CheckpointError from the backward pass if the second call saves other tensors, and RuntimeError if an argument was
    changed in place since the first.
    """
    if debug:
        raise NotImplementedError("checkpoint: debug=True, a trace of both calls, is not in Tenon; tenon.dispatch.trace() records calls")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: determinism_check must be 'default' or 'none', got {determinism_check!r}")
    if use_reentrant and (kwargs or context_fn is not noop_context_fn):
        names = ", ".join(kwargs) or "context_fn"
        raise ValueError(f"checkpoint: Unexpected keyword arguments with use_reentrant=True: {names}; give use_reentrant=False")
    options = preserve_rng_state, context_fn, determinism_check == "default"
    if function is not None:
        return _run(function, args, kwargs, *options)
    if kwargs:
        raise ValueError(f"checkpoint: Unexpected keyword arguments: {', '.join(kwargs)}; a decorator gets them with the call")

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return _run(function, args, kwargs, *options)

        return wrapper

    return decorator


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True
) -> Any:
    """Applies functions, or the modules of a Sequential, one after another to `input`, in `segments` parts of equal length;
    all but the last one are checkpoints."""
    try:
        steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    except TypeError as error:
        if error.__traceback__ and error.__traceback__.tb_next:  # of the caller's own iterator
            raise
        raise TypeError(f"checkpoint_sequential: functions must be a Sequential or several functions, got {_describe(functions)}") from None
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= max(len(steps), 1):
        raise ValueError(f"checkpoint_sequential: segments must be a number from 1 to that of functions, {len(steps)}, got {segments!r}")

    def run(first, last, x):
        for step in steps[first:last]:
            try:
                x = step(x)
            except TypeError:
                if callable(step):
                    raise
                raise TypeError(f"checkpoint_sequential: functions must be callable, and one is {_describe(step)}") from None
        return x

    size = len(steps) // segments
    for first in range(0, size * (segments - 1), max(size, 1)):
        part = functools.partial(run, first, first + size)
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return run(size * (segments - 1), len(steps), input)


def _run(function, args, kwargs, preserves, context_fn, checks):
    try:
        if not _C.is_grad_enabled():
            return function(*args, **kwargs)
        now, again = context_fn()
        call = _Call(function, args, kwargs, get_rng_state() if preserves else None, again, checks)
        with saved_tensors_hooks(call.pack, call.unpack), now:
            result = function(*args, **kwargs)
    except TypeError:
        for name, given in (("function", function), ("context_fn", context_fn)):
            if not callable(given):
                raise TypeError(f"checkpoint: {name} must be callable, got {_describe(given)}") from None
        raise
    call.is_complete = True
    return result


class _Place:
    """Takes the place of a saved tensor in the graph."""

    __slots__ = ("__weakref__", "header")

    def __init__(self, tensor: Tensor) -> None:
        self.header = _header(tensor)


def _header(tensor: Tensor) -> Any:
    return tuple(tensor.shape), tensor.dtype, tensor.device


class _Call:
    """One call of a function: the places of what backward needs, and how to compute that again."""

    def __init__(self, function: Any, args: Any, kwargs: Any, state: Any, context: Any, checks: bool) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs
        self._state, self._context, self._checks = state, context, checks
        given: list[tuple[Any, Any]] = [*enumerate(args, 1), *kwargs.items()]
        self._versions: list[tuple[Any, Any, int]] = [
            (name, t, t._version)  # type: ignore[attr-defined]
            for name, t in given
            if isinstance(t, _C.Tensor) and not t.is_inference()
        ]
        self._places: list[Any] = []
        self._values: weakref.WeakKeyDictionary[_Place, Tensor] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()  # the workers of devices unpack on threads of their own
        self.is_complete = False

    def pack(self, tensor: Tensor) -> _Place:
        place = _Place(tensor)
        self._places.append(weakref.ref(place))
        return place

    def unpack(self, place: _Place) -> Tensor:
        with self._lock:
            if place not in self._values:
                self._compute_again()
            return self._values[place]

    def _compute_again(self) -> None:
        for name, tensor, version in self._versions:
            if tensor._version != version:
                raise RuntimeError(
                    f"checkpoint: argument {name} was changed in place since the function ran, so it cannot run again; "
                    "give it a clone()"
                )
        values: list[Tensor] = []

        def keep(tensor):
            values.append(tensor)
            return tensor

        with fork_rng(enabled=self._state is not None), self._context, enable_grad(), saved_tensors_hooks(keep, lambda t: t):
            if self._state is not None:
                set_rng_state(self._state)
            self._function(*self._args, **self._kwargs)
        # Where the function itself runs a backward pass, the first call has not saved all yet.
        if len(values) < len(self._places) or self.is_complete and len(values) != len(self._places):
            raise CheckpointError(
                f"checkpoint: the function saved {len(self._places)} tensors for backward, and {len(values)} when it was called "
                "again; it must compute the same both times"
            )
        for number, (reference, value) in enumerate(zip(self._places, values), 1):
            place = reference()
            if place is None:
                continue
            if self._checks and place.header != _header(value):
                first, second = (f"{list(shape)} of {dtype} on {device}" for shape, dtype, device in (place.header, _header(value)))
                raise CheckpointError(
                    f"checkpoint: saved tensor {number} had shape {first}, and {second} when the function was called again; "
                    "it must compute the same both times"
                )
            self._values[place] = value


add_module_getattr(__name__)
