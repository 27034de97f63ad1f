"""Calls of modules and their hooks: before and after forward, and around the backward pass of a module."""

from __future__ import annotations

import itertools
from collections import OrderedDict

from .. import _C
from ..arguments import check_module as _check_module
from ..autograd.function import Function
from .place import add_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..types import Hook
    from .module import Module


class Handle:
    """Removes a hook; as a context manager, at the end of the block."""

    _ids = itertools.count()

    def __init__(self, hooks: OrderedDict[int, Any]) -> None:
        self.hooks, self.id = hooks, next(self._ids)

    def remove(self) -> None:
        """Removes the hook, if it is still there."""
        self.hooks.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def add_hook(hooks: OrderedDict[int, Any], hook: Hook, prepend: bool = False) -> Handle:
    """Puts a hook into an OrderedDict, last or first, and returns its handle."""
    handle = Handle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class _Boundary(Function):
    """Passes tensors on as they are; on the way back, `seen` gets their gradients and may return others."""

    @staticmethod
    def forward(ctx: Any, seen: Any, *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.seen = seen
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.seen(grads))


def _tensors_that_record(values: Sequence[Any]) -> list[int]:
    return [i for i, v in enumerate(values) if isinstance(v, _C.Tensor) and v.requires_grad]


def _with_boundary(seen: Any, values: Any) -> Any:
    """The values, those that require grad passed through a boundary. `seen` gets gradients for all values."""
    places = _tensors_that_record(values)
    if not places:
        return values

    def spread(grads):
        whole = [None] * len(values)
        for place, grad in zip(places, grads):
            whole[place] = grad
        changed = seen(tuple(whole))
        return tuple(changed[place] for place in places)

    passed = _Boundary.apply(spread, *(values[place] for place in places))
    out = list(values)
    for place, value in zip(places, passed if isinstance(passed, tuple) else (passed,)):
        out[place] = value
    return tuple(out)


def _replaced(old: Any, new: Any, what: str) -> Any:
    """What a hook returned, as a tuple as long as the old one; None keeps the old one."""
    if new is None:
        return old
    new = new if isinstance(new, tuple) else (new,)
    if len(new) != len(old):
        raise RuntimeError(f"a backward hook returned {len(new)} gradients for {len(old)} {what}")
    return new


class _BackwardCall:
    """One call of a module with backward hooks: what leads from the gradients of its results to those of its inputs."""

    def __init__(self, module: Module, hooks: Any, pre_hooks: Any) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.has_inputs = False
        self.inputs = 0

    def arguments(self, args: Any) -> Any:
        self.inputs = len(args)
        self.has_inputs = bool(_tensors_that_record(args))
        return _with_boundary(self.grads_of_inputs, args) if self.hooks else args

    def result(self, result: Any) -> Any:
        if isinstance(result, tuple):
            return _with_boundary(self.grads_of_outputs, result)
        return _with_boundary(self.grads_of_outputs, (result,))[0]

    def grads_of_outputs(self, grads: Any) -> Any:
        for hook in self.pre_hooks:
            grads = _replaced(grads, hook(self.module, grads), "results")
        self.grad_outputs = grads
        if self.hooks and not self.has_inputs:
            nothing = (None,) * self.inputs
            for hook in self.hooks:
                if hook(self.module, nothing, grads) is not None:
                    raise RuntimeError("a backward hook returned gradients for inputs that do not require grad")
        return grads

    def grads_of_inputs(self, grads: Any) -> Any:
        for hook in self.hooks:
            grads = _replaced(grads, hook(self.module, grads, self.grad_outputs), "inputs")
        return grads


class ModuleHooks:
    """The part of Module that calls forward, with hooks where there are any."""

    # None until the first hook comes, so that a call without hooks costs one comparison for each kind.
    _forward_hooks: OrderedDict[int, Any] | None = None
    _forward_pre_hooks: OrderedDict[int, Any] | None = None
    _backward_hooks: OrderedDict[int, Any] | None = None
    _backward_pre_hooks: OrderedDict[int, Any] | None = None
    _compiled_call: Any = None

    if TYPE_CHECKING:
        # Parameters, buffers and modules may be assigned by any name.
        def __getattr__(self, name: str) -> Any: ...

        def compile(self, *args: Any, **options: Any) -> None: ...  # of tenon.compile

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks is None
            and self._forward_pre_hooks is None
            and self._backward_hooks is None
            and self._backward_pre_hooks is None
        ):
            # On one line, `try` is no instruction of Python 3.11: calls without errors pay nothing for it.
            try: return self.forward(*args, **kwargs)  # fmt: skip
            except Exception as error:
                add_place(error, _CALLS)
                raise
        return self._call_impl(*args, **kwargs) if self._compiled_call is None else self._compiled_call(*args, **kwargs)

    def _set_compiled_call(self, call: Any) -> None:
        """Has `call`, which is compiled from `_call_impl`, run this module from now on."""
        object.__setattr__(self, "_compiled_call", call)
        if self._forward_hooks is None:
            object.__setattr__(self, "_forward_hooks", OrderedDict())  # so that __call__ does not go to forward itself

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_compiled_call", None)  # which runs this module, not its copy
        for hook in (self._forward_pre_hooks or {}).values():
            if (name := getattr(hook.hook, "computes", None)) is not None and name in state:
                state[name] = state[name].detach()  # what weight_norm computes again before each forward
        return state

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        always = [hook for hook in (self._forward_hooks or {}).values() if hook.always_call]
        called = set()
        result = None
        try:
            for hook in (self._forward_pre_hooks or {}).values():
                args, kwargs = hook(self, args, kwargs)
            backward = self._backward_call()
            if backward:
                args = backward.arguments(args)
            result = self.forward(*args, **kwargs)
            for hook in (self._forward_hooks or {}).values():
                called.add(id(hook))
                result = hook(self, args, kwargs, result)
            return backward.result(result) if backward else result
        except Exception as error:
            add_place(error, _CALLS)
            for hook in always:
                if id(hook) not in called:
                    try:
                        hook(self, args, kwargs, result)
                    except Exception:  # the first error is the one that the caller needs
                        pass
            raise

    def _backward_call(self) -> _BackwardCall | None:
        hooks = tuple((self._backward_hooks or {}).values())
        pre_hooks = tuple((self._backward_pre_hooks or {}).values())
        return _BackwardCall(self, hooks, pre_hooks) if hooks or pre_hooks else None  # type: ignore[arg-type]

    def _add_hook(self, kind: str, hook: Hook, prepend: bool) -> Handle:
        if getattr(self, kind) is None:
            object.__setattr__(self, kind, OrderedDict())
        return add_hook(getattr(self, kind), hook, prepend)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Calls hook(module, args, result) after forward; unless it returns None, its result replaces the module's.

        `prepend`: before the hooks that are there already. `with_kwargs`: as hook(module, args, kwargs, result).
        `always_call`: even if forward or another hook raises.
        """
        return self._add_hook("_forward_hooks", _ForwardHook(hook, with_kwargs, always_call), prepend)

    def register_forward_pre_hook(self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Calls hook(module, args) before forward; unless it returns None, its result replaces the arguments.

        `prepend`: before the hooks that are there already. `with_kwargs`: as hook(module, args, kwargs), which returns None
        or a tuple of new args and kwargs.
        """
        return self._add_hook("_forward_pre_hooks", _ForwardPreHook(hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> Handle:
        """Calls hook(module, grad_input, grad_output) when the gradients of the module's inputs are known.

        Both are tuples, with None for what has no gradient. Unless it returns None, its result replaces grad_input. The module
        must not change its inputs or results in place.
        """
        return self._add_hook("_backward_hooks", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> Handle:
        """Calls hook(module, grad_output) before the module's backward pass; a result replaces grad_output."""
        return self._add_hook("_backward_pre_hooks", hook, prepend)


#: The methods that call forward().
_CALLS = (ModuleHooks.__call__.__code__, ModuleHooks._call_impl.__code__)


class _ForwardHook:
    def __init__(self, hook: Hook, with_kwargs: bool, always_call: bool) -> None:
        self.hook, self.with_kwargs, self.always_call = hook, with_kwargs, always_call

    def __call__(self, module: Module, args: Any, kwargs: Any, result: Any) -> Any:
        changed = self.hook(module, args, kwargs, result) if self.with_kwargs else self.hook(module, args, result)
        return result if changed is None else changed


class _ForwardPreHook:
    def __init__(self, hook: Hook, with_kwargs: bool) -> None:
        self.hook, self.with_kwargs = hook, with_kwargs

    def __call__(self, module: Module, args: Any, kwargs: Any) -> Any:
        if not self.with_kwargs:
            changed = self.hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
            return args, kwargs
        changed = self.hook(module, args, kwargs)
        if changed is None:
            return args, kwargs
        if isinstance(changed, tuple) and len(changed) == 2:
            return changed
        raise RuntimeError(f"a forward pre-hook with kwargs must return None or (args, kwargs), got {changed!r}")


_check_module(globals())
