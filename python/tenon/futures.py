"""Results that come later, with the names of torch.futures: Future, collect_all, wait_all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ._names.absent import add_module_getattr
from .arguments import check_module as _check_module, describe as _describe

T = TypeVar("T")


class Future(Generic[T]):
    """A value, or an error, that one thread sets once and others wait for. `devices` may list nothing: values are of the host, or
    tensors whose streams their devices order."""

    def __init__(self, *, devices: Any = None) -> None:
        if devices:
            raise NotImplementedError(f"Future: devices are not supported, got {_describe(devices)}; set a value after synchronize()")
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether a value or an error was set."""
        return self._ready.is_set()

    def wait(self) -> T:
        """Waits for the value and returns it, or raises the error."""
        self._ready.wait()
        return self.value()

    def value(self) -> T:
        """The value, or raises the error; RuntimeError while there is neither."""
        if not self._ready.is_set():
            raise RuntimeError("Future: value() needs a value or an error, and none was set; use wait()")
        if self._error is not None:
            raise self._error
        return self._value

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError("Future: a value or an error was set before, and can be set once only")
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def set_result(self, result: T) -> None:
        """Sets the value, and calls what waits for it."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which wait() and value() raise."""
        if not isinstance(result, BaseException):
            raise TypeError(f"Future: set_exception takes an exception, got {_describe(result)}")
        self._finish(None, result)

    def _add(self, callback: Callable[[Future[T]], Any]) -> None:
        with self._lock:
            if not self._ready.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls a function with this future once it is done: at once if it is; an error of the function is printed."""
        if not callable(callback):
            raise TypeError(f"Future: callback must be callable, got {_describe(callback)}")

        def guarded(future: Future[T]) -> None:
            try:
                callback(future)
            except Exception:
                import traceback

                traceback.print_exc()

        self._add(guarded)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A future of callback(self), which is called once this one is done."""
        if not callable(callback):
            raise TypeError(f"Future: callback must be callable, got {_describe(callback)}")
        later: Future[Any] = Future()

        def run(future: Future[T]) -> None:
            try:
                value = callback(future)
            except BaseException as error:
                later.set_exception(error)
            else:
                later.set_result(value)

        self._add(run)
        return later


def _listed(function: str, futures: Iterable[Future[Any]]) -> list[Future[Any]]:
    found = list(futures)
    for future in found:
        if not isinstance(future, Future):
            raise TypeError(f"{function}: futures must be a list of Futures, got {_describe(future)}")
    return found


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list, done when all of them are; its value is the list."""
    waiting = _listed("collect_all", futures)
    together: Future[list[Future[Any]]] = Future()
    left, lock = len(waiting), threading.Lock()
    if not waiting:
        together.set_result(waiting)

    def count(future: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            together.set_result(waiting)

    for future in waiting:
        future._add(count)
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all futures, once they are done; raises the first error."""
    return [future.wait() for future in collect_all(_listed("wait_all", futures)).wait()]


_check_module(globals())
add_module_getattr(__name__)
