"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers that are decorators too."""

from __future__ import annotations

import functools

from .._C import _set_grad_enabled, _set_inference_mode
from ..arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar
    from typing_extensions import Self

    Fn = TypeVar("Fn", bound=Callable[..., Any])

_CO_GENERATOR = 0x20  # inspect.CO_GENERATOR; importing inspect takes longer than all of tenon


class _Mode:
    """Calls a decorated function, or each step of a decorated generator, inside a fresh copy of the mode."""

    def _again(self) -> _Mode:
        return type(self)()

    def __call__(self, function: Fn) -> Fn:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _CO_GENERATOR:

            @functools.wraps(function)
            def wrapped(*args, **kwargs):
                steps = function(*args, **kwargs)
                value, error = None, None
                while True:
                    try:
                        with self._again():
                            item = steps.throw(error) if error else steps.send(value)
                    except StopIteration as stop:
                        return stop.value
                    try:
                        value, error = (yield item), None
                    except GeneratorExit:
                        steps.close()
                        raise
                    except BaseException as raised:  # handed on to the generator
                        value, error = None, raised

            return wrapped  # type: ignore[return-value]

        @functools.wraps(function)  # type: ignore[no-redef]
        def wrapped(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


class no_grad(_Mode):
    """Switches recording of history off inside."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Self:
        mode = super().__new__(cls)
        return mode if function is None else mode(function)  # type: ignore[return-value]

    def __enter__(self) -> None:
        self.previous = _set_grad_enabled(False)

    def __exit__(self, *exception: object) -> None:
        _set_grad_enabled(self.previous)


class enable_grad(_Mode):
    """Switches recording of history on inside, even within no_grad."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Self:
        mode = super().__new__(cls)
        return mode if function is None else mode(function)  # type: ignore[return-value]

    def __enter__(self) -> None:
        self.previous = _set_grad_enabled(True)

    def __exit__(self, *exception: object) -> None:
        _set_grad_enabled(self.previous)


class set_grad_enabled(_Mode):
    """Sets the mode at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.previous = _set_grad_enabled(self.mode)

    def _again(self) -> _Mode:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Fn) -> Fn:
        _set_grad_enabled(self.previous)  # a decorator changes nothing until the function runs
        return super().__call__(function)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, *exception: object) -> None:
        _set_grad_enabled(self.previous)


class inference_mode(_Mode):
    """Switches off history and the tracking of views. Tensors made inside can never take part in autograd."""

    mode: bool

    def __new__(cls, mode: Any = True) -> Self:
        if callable(mode):
            return cls()(mode)
        self = super().__new__(cls)
        self.mode = mode
        return self

    def _again(self) -> _Mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.previous = _set_inference_mode(self.mode), _set_grad_enabled(not self.mode)
        if not self.mode:
            _set_grad_enabled(self.previous[1])

    def __exit__(self, *exception: object) -> None:
        _set_inference_mode(self.previous[0])
        _set_grad_enabled(self.previous[1])


_check_module(globals())
