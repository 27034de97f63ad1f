"""compile: a function whose operators are recorded while it runs, and computed together when a value is needed.

    step = tenon.compile(step)              # or @tenon.compile above its definition
    step(batch)
    print(step.explain())                   # what was fused, what ran at once and why

The program runs as it always does, at every call, and gets the bits that it gets without compile: docs/compile.md.
"""

from __future__ import annotations

import _thread
import functools
import os
import weakref

from .. import _C
from ..arguments import describe
from ..nn import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ParamSpec, Protocol, TypeVar, overload

    from .report import Report
    from .._replay.program import Program

    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)

    class Compiled(Protocol[P, R]):
        """What compile() makes of a function."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        def explain(self) -> Report: ...
        def __get__(self, instance: Any, owner: Any = None) -> Any: ...
else:

    def overload(function):  # typing's, which nothing else needs when a program runs
        return function


_SHARED = {"safe": False, "trusted": True}
_AT_THE_MEASURED_SIZE = -1
_TUNE_MS = 200.0
_NO_PROGRAM = 0  # scopes without a function share a tree of what ran before

# Of inspect, which takes longer to import than all of tenon: what a code object's flags say.
_STEPWISE = {
    0x20: ("a generator function", "compile what does the work of one step, or loop over the generator in a compiled function"),
    0x80: ("a coroutine function", "compile the part between two awaits, and call that from the coroutine"),
    0x200: ("an asynchronous generator function", "compile the part between two awaits, and call that from the generator"),
}


@overload
def compile(
    fn: Module, *, shared: str = "safe", relaxed: bool = False, threshold: int | None = None, pure: bool = False, check: bool = False, tune: bool | float = False,
    fullgraph: bool = False, dynamic: bool | None = None, backend: str | None = None, mode: str | None = None,
    options: dict[str, Any] | None = None, disable: bool = False,
) -> CompiledModule: ...


@overload
def compile(
    fn: Callable[P, R], *, shared: str = "safe", relaxed: bool = False, threshold: int | None = None, pure: bool = False, check: bool = False, tune: bool | float = False,
    fullgraph: bool = False, dynamic: bool | None = None, backend: str | None = None, mode: str | None = None,
    options: dict[str, Any] | None = None, disable: bool = False,
) -> Compiled[P, R]: ...


@overload
def compile(
    fn: None = None, *, shared: str = "safe", relaxed: bool = False, threshold: int | None = None, pure: bool = False, check: bool = False, tune: bool | float = False,
    fullgraph: bool = False, dynamic: bool | None = None, backend: str | None = None, mode: str | None = None,
    options: dict[str, Any] | None = None, disable: bool = False,
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...


def compile(
    fn: Callable[..., Any] | None = None, *, shared: str = "safe", relaxed: bool = False, threshold: int | None = None, pure: bool = False, check: bool = False, tune: bool | float = False,
    fullgraph: bool = False, dynamic: bool | None = None, backend: str | None = None, mode: str | None = None,
    options: dict[str, Any] | None = None, disable: bool = False,
) -> Any:
    """A function like `fn` whose operators are recorded while it runs and computed, fused, when a value is needed or it returns.

    Also a decorator, with and without arguments. Results, errors and effects are those of `fn`, bit for bit.

    shared: "safe" computes at once what reads or writes memory that NumPy or DLPack shares; "trusted" defers it too, where
        no one writes to that memory through an array meanwhile.
    relaxed: lets a fused chain of half or small integer operators keep more precision between them than their dtype has, and
        oneDNN, where it is installed, compute products and convolutions with what follows them (docs/compile.md).
    threshold: operators on fewer elements run at once where nothing that they read is deferred; by default as measured.
    tune: times what may run each region when a program is planned, and keeps the fastest with the same bits: True for 200 ms of
        that at most, or a number of milliseconds. What it chose is kept with the plan, also on disk.
    pure: promises that `fn` depends on nothing but its arguments, the tensors and modules that it has captured, the optimizers that
        it steps, and Tenon's modes. What it recorded is then replayed without running it, where all of these are like those of an
        earlier call. A program that prints, reads a value or changes something else is refused once, by a warning with the line,
        and recorded at every call.
    check: keeps to the promise of `pure`: where a replay fits, the program runs, recorded, and raises RuntimeError with the line
        that recorded something else than the replay has. For tests; TENON_REPLAY=check in the environment does it for all.
    fullgraph, dynamic, backend, mode, options: PyTorch's, which choose nothing here; each that asks for something says so once
        in the process, by a warning. Raises RuntimeError for a backend or a mode that PyTorch does not know.
    disable: returns `fn` itself.

    Raises TypeError for what is no function, and for generator and coroutine functions, which return before they run.
    """
    own = _options("compile", shared, relaxed, threshold, tune)
    replays = _replays(pure, check)
    _check_pytorch_options(fullgraph, dynamic, backend, mode, options)
    if disable:
        return fn if fn is not None else lambda fn: fn
    if fn is None:
        return functools.partial(_compiled, options=own, replays=replays)
    return _compiled(fn, options=own, replays=replays)


def _replays(pure, check):
    """None, "replay" or "check", by the options of compile() and TENON_REPLAY."""
    wanted = os.environ.get("TENON_REPLAY", "")
    if wanted not in ("", "check"):
        raise ValueError(f"compile: TENON_REPLAY must be 'check' or not set, got {wanted!r}")
    if check and not pure:
        raise ValueError("compile: check=True compares a program with its replays, which pure=True makes: give both")
    return None if not pure else "check" if check or wanted else "replay"


# Of PyTorch, whose names programs give.
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_BACKENDS = ("inductor", "eager", "aot_eager", "cudagraphs", "openxla", "tvm", "ts", "aot_ts", "onnxrt", "tensorrt", "ipex")
_warned: set[str] = set()  # options that a warning has said to have no effect


def _check_pytorch_options(fullgraph, dynamic, backend, mode, options):
    """Raises RuntimeError for values that PyTorch does not know, and warns, once for each option, of those that choose nothing."""
    if mode is not None and options is not None:
        raise RuntimeError("compile: Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"compile: Unrecognized mode={mode!r}, should be one of: {', '.join(_MODES)}; none of them changes anything")
    if callable(backend):
        raise RuntimeError(
            f"compile: backend={getattr(backend, '__name__', backend)!r} is a function, which takes a graph of PyTorch's; "
            "Tenon records operators itself, so leave backend out"
        )
    if backend is not None and backend not in _BACKENDS:
        raise RuntimeError(f"compile: Invalid backend: {backend!r}; leave it out, as Tenon has one way to compile, or give one of {', '.join(_BACKENDS)}")
    for option, asks, instead in (
        ("fullgraph=True", fullgraph, "the program runs as it is, and nothing breaks a graph"),
        (f"dynamic={dynamic}", dynamic is not None, "numbers are inputs of a plan, and other sizes make another plan"),
        (f"backend={backend!r}", backend not in (None, "inductor"), "Tenon has one way to compile"),
        (f"mode={mode!r}", mode not in (None, "default"), "tune=True measures what runs each region, and pure=True replays without the program"),
        ("options", bool(options), "tune, relaxed, threshold, shared and pure are Tenon's own"),
    ):  # fmt: skip
        name = option.partition("=")[0]
        if asks and name not in _warned:
            from ..callers import warn

            _warned.add(name)
            warn(f"compile: {option} has no effect: {instead}")


def _options(caller, shared, relaxed, threshold, tune):
    """What _C._record_begin takes after the program."""
    if not isinstance(shared, str) or shared not in _SHARED:
        raise ValueError(f"{caller}: shared must be 'safe' or 'trusted', got {shared!r}")
    if threshold is None:
        threshold = _AT_THE_MEASURED_SIZE
    elif isinstance(threshold, bool) or not isinstance(threshold, int) or not 0 <= threshold < 2**60:
        raise ValueError(f"{caller}: threshold must be a number of elements or None, got {threshold!r}")
    if relaxed:
        from .._tools.loaded import find_onednn

        find_onednn()
    milliseconds = _TUNE_MS * tune if isinstance(tune, bool) else tune
    if not isinstance(milliseconds, (int, float)) or not 0 <= milliseconds < 1e6:
        raise ValueError(f"{caller}: tune must be a bool or a number of milliseconds, got {tune!r}")
    return threshold, _SHARED[shared], bool(relaxed), float(milliseconds)


def _compiled(fn, options, replays=None):
    _check(fn)
    if isinstance(fn, Module):
        return CompiledModule(fn, options, replays)
    program = _C._record_new_program()
    capture = None
    if replays:
        from .._replay.program import Program

        capture = Program(fn, program, options[2:], _end_after)
    # Opens a scope, calls `fn` and ends the scope: in C++, as a frame of Python costs as much as some small operators.
    compiled = _C.CompiledFunction(fn, _end_after, program, *options, capture, replays == "check")
    functools.update_wrapper(compiled, fn)
    if capture:
        capture.compiled = weakref.ref(compiled)
    compiled.explain = functools.partial(explain, program, capture)
    return compiled


def _end_after(scope, error, end=_C._record_end):
    """Ends the scope that an exception leaves. What the flush then raises is reported with it, not instead of it."""
    try:
        end(scope)
    except Exception as failed:
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"Computing what was recorded before it failed too: {type(failed).__name__}: {failed}")


def _check(fn):
    """Raises TypeError, which says what to do instead, for what cannot be compiled."""
    if isinstance(fn, type):
        raise TypeError(
            f"compile takes a function or a module, got the class {fn.__qualname__!r}: compile its methods, or an instance"
        )
    if not callable(fn):
        raise TypeError(f"compile takes a function or a module, got {describe(fn)}")
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    if isinstance(inner, Module):
        inner = inner.forward
    elif not hasattr(inner, "__code__") and not hasattr(inner, "__func__"):
        inner = getattr(type(inner), "__call__", inner)
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    for flag, (kind, instead) in _STEPWISE.items():
        if code is not None and code.co_flags & flag:
            name = getattr(inner, "__qualname__", repr(inner))
            raise TypeError(f"compile: {name!r} is {kind}, which returns before its first line has run: {instead}")


class CompiledModule(Module):
    """A module whose calls are recorded. Everything but its call is the inner module's, under the name PyTorch has for it."""

    def __init__(self, module: Module, options: Any, replays: str | None = None) -> None:
        object.__setattr__(self, "_orig_mod", module)
        object.__setattr__(self, "_options", (options, replays))
        object.__setattr__(self, "forward", _compiled(module.__call__, options, replays))

    @property
    def training(self) -> bool:  # type: ignore[override]
        return self._orig_mod.training

    @property
    def explain(self) -> Callable[[], Report]:
        """`explain()`: what became of its calls, as of a compiled function."""
        explain: Callable[[], Report] = self.__dict__["forward"].explain
        return explain

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":  # not there yet while a copy is made
            raise AttributeError(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return bool(self._orig_mod)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._orig_mod)

    def __contains__(self, item: object) -> bool:
        return item in self._orig_mod

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self) -> Any:
        return CompiledModule, (self._orig_mod, *self._options)

    def __repr__(self) -> str:
        return f"compiled {self._orig_mod!r}"


def _compile_in_place(self: Module, *args: Any, **options: Any) -> None:
    """Compiles the calls of this module itself, with hooks, as tenon.compile with the same options does: what compiled copies and
    files hold is the module alone."""
    self._set_compiled_call(compile(self._call_impl, *args, **options))


_compile_in_place.__name__, _compile_in_place.__qualname__ = "compile", "Module.compile"
Module.compile = _compile_in_place  # type: ignore[method-assign,assignment]


class recording:
    """A scope: operators inside are recorded as in a compiled function, and computed at its end at the latest.

    with tenon.recording():
        ...

    The options are compile's. Inside another scope it changes nothing: the outermost one rules. Scopes end on the thread that
    began them, the inner one first; anything else raises RuntimeError."""

    def __init__(self, *, shared: str = "safe", relaxed: bool = False, threshold: int | None = None, tune: bool | float = False) -> None:
        self._options = _options("recording", shared, relaxed, threshold, tune)
        self._open: list[tuple[int, Any]] = []  # a thread and a scope for each time it was entered

    def __enter__(self) -> recording:
        self._open.append((_thread.get_ident(), _C._record_begin(_NO_PROGRAM, *self._options)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, error: BaseException | None = None, trace: object = None
    ) -> None:
        if not self._open:
            raise RuntimeError("recording: this scope was not entered, or it has ended already")
        if self._open[-1][0] != _thread.get_ident():
            raise RuntimeError("recording: another thread began this scope, and has to end it")
        _, scope = self._open.pop()
        if error is None:
            _C._record_end(scope)
        else:
            _end_after(scope, error)

    @staticmethod
    def explain() -> Report:
        """What became of such scopes on this thread: see Report."""
        return explain(_NO_PROGRAM)


def explain(program: int, replays: Program | None = None) -> Report:
    """The report of a compiled function; loads when first asked for."""
    from .report import Report

    return Report(_C._record_explain(program) + (replays.events() if replays else []))
