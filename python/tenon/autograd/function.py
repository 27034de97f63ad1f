"""Function: a differentiable function with a forward and a backward of its own."""

from __future__ import annotations

import functools

from .. import _C
from .._C import Tensor
from ..arguments import check_module as _check_module
from .grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FunctionCtx = _C._FunctionBase


class _FunctionMeta(type):
    """Gives each Function class a class for the ctx of its calls, which grad_fn returns."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(name + "Backward", (FunctionCtx,), {"_forward_cls": cls, "__module__": cls.__module__})
        if len(cls.__mro__) == 2:  # Function itself
            return
        cls._separate_setup = cls.setup_context is not Function.setup_context  # type: ignore[attr-defined]
        has_backward, has_vjp = cls.backward is not Function.backward, cls.vjp is not Function.vjp  # type: ignore[attr-defined]
        if has_backward and has_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        cls._backward_name = "vjp" if has_vjp else "backward"


class Function(metaclass=_FunctionMeta):
    """A differentiable function. A subclass has static methods `forward` and `backward`, and is called by `apply`:

        class Square(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * 2 * x

        y = Square.apply(x)

    `forward` runs without recording. With a static method `setup_context(ctx, inputs, output)` as well, `forward` takes no
    ctx. `backward` gets one gradient for each result of forward, and returns one for each argument: None for an argument
    without a gradient. It is recorded if its own derivative is needed (create_graph=True).
    """

    _separate_setup = False
    _backward_name = "backward"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} should not be instantiated: methods of autograd functions are all static, so call "
            f"{type(self).__name__}.apply(...)"
        )

    apply = classmethod(_C._apply_function)

    # Subclasses name their arguments.

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vjp(*args: Any, **kwargs: Any) -> Any:
        return Function.backward(*args, **kwargs)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward whose own derivative raises RuntimeError, because it computes with more than recorded operators."""

    @functools.wraps(backward)
    def wrapper(ctx, *grads):
        with no_grad():
            result = backward(ctx, *grads)
        if not _C.is_grad_enabled():
            return result
        if not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return result
        several = isinstance(result, tuple)
        marked = _C._delayed_error(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            result if several else (result,),
        )
        return marked if several else marked[0]

    return wrapper


_check_module(globals())
