"""Parametrizations: tensors of a module that are computed from others wherever they are used.

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

    parametrize.register_parametrization(linear, "weight", Symmetric())

`linear.weight` is then symmetric, and `linear.parametrizations.weight.original` is what is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy

from ... import _C
from ..._names.absent import add_module_getattr
from ...arguments import check_module as _check_module
from ...autograd.grad_mode import no_grad
from ..container import ModuleDict, ModuleList
from ..parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..._C import Tensor
    from ..module import Module

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once, when it is first used, and kept to the end of the block."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(to: Any, value: Any) -> None:
    """Has a tensor take the elements of another, as set_ does."""
    if value is not to:
        to.data = value.detach()


def _inverses(value: Any, parametrizations: Any, *, strict: bool) -> Any:
    """What the parametrizations, from the last to the first, make `value` of."""
    for module in reversed(list(parametrizations)):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                if strict:
                    raise
        elif strict:
            raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
    return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, with the tensors that the first of them takes: `original`, or `original0`,
    `original1` and so on where its right_inverse returns several. register_parametrization makes it."""

    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new: Any = _inverses(original, self, strict=False)
        if not isinstance(new, (_C.Tensor, Sequence)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}")
        self.is_tensor = isinstance(new, _C.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for what in ("dtype", "device"):
                if getattr(original, what) != getattr(new, what):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                        f"original.{what}: {getattr(original, what)}\nright_inverse(original).{what}: {getattr(new, what)}"
                    )
            _set(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, _C.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part.detach(), original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _check_kept("", self(), dtype, shape)

    def right_inverse(self, value: Tensor) -> None:
        """Sets the original tensors so that the result is `value`, by the right_inverse of each parametrization."""
        with no_grad():
            new = _inverses(value, self, strict=True)
            if self.is_tensor:
                if not isinstance(new, _C.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
                if new.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {new.dtype} while `original` has dtype {self.original.dtype}"
                    )
                _set(self.original, new)
                return
            if not isinstance(new, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(new).__name__}.")
            if len(new) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(new)}."
                )
            for i, part in enumerate(new):
                original = getattr(self, f"original{i}")
                if not isinstance(part, _C.Tensor):
                    raise ValueError(f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(part).__name__}.")
                if original.dtype != part.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` has dtype {original.dtype}"
                    )
                _set(original, part)

    def forward(self) -> Any:
        first, *others = self
        value = first(self.original) if self.is_tensor else first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in others:
            value = module(value)
        return value


def _check_kept(name: str, new: Any, dtype: Any, shape: Any) -> None:
    """That a parametrization gives a tensor of the same dtype and shape; `name` is that of a tensor with others already."""
    if not isinstance(new, _C.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(new).__name__}.")
    flag = "the `unsafe` flag" if name else "`unsafe` flag"
    for what, old in (("dtype", dtype), ("shape", shape)):
        if getattr(new, what) != old:
            labels = (f"module.{name}.{what}", f"parametrization(module.{name}).{what}") if name else (f"unparametrized {what}", f"parametrized {what}")
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless {flag} is enabled.\n"
                f"{labels[0]}: {old}\n{labels[1]}: {getattr(new, what)}"
            )


def _class_of(cls: Any, members: dict[str, Any]) -> Any:
    """A class of a parametrized module over that of the module; each module has one of its own, for its properties."""
    return type(f"Parametrized{cls.__name__}", (cls,), {**members, "__module__": cls.__module__})


def _getstate(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See docs/weights.md"
    )


def _deepcopy(self, memo):
    if (known := memo.get(id(self))) is not None:
        return known
    base = type(self).__bases__[0]
    replica = memo[id(self)] = base.__new__(base)
    state = {name: value for name, value in self.__dict__.items() if name != "_compiled_call"}  # which runs this module
    replica.__dict__.update(deepcopy(state, memo))
    replica.__class__ = _class_of(base, dict(vars(type(self))))
    return replica


def _property(name: str) -> property:
    def get(self):
        if not _cache_enabled:
            return self.parametrizations[name]()
        if (known := _cache.get((id(self), name))) is None:
            known = _cache[id(self), name] = self.parametrizations[name]()
        return known

    def set(self, value):
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Has `module.tensor_name` be parametrization(original) from now on, or of what other parametrizations made of the original.

    A parametrization is a module. Its right_inverse(value), if it has one, returns the tensor or tensors that forward makes the value
    of: it gives the original its first value, and assignments to the tensor use it. The dtype and the shape stay, unless `unsafe`.
    Returns the module.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            old = getattr(module, tensor_name)
            new = parametrization(old)
            _check_kept(tensor_name, new, old.dtype, old.shape)
            if hasattr(parametrization, "right_inverse"):
                try:
                    _check_inverse(tensor_name, parametrization.right_inverse(new), old)
                except NotImplementedError:
                    pass
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif isinstance(module.__dict__.get(tensor_name), (Parameter, Buffer)):
        original = module.__dict__[tensor_name]
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            members: dict[str, Any] = {"__getstate__": _getstate}
            if not hasattr(type(module), "__deepcopy__"):
                members["__deepcopy__"] = _deepcopy
            module.__class__ = _class_of(type(module), members)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _check_inverse(name: str, new: Any, old: Tensor) -> None:
    if not isinstance(new, _C.Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(new).__name__}")
    for what in ("dtype", "shape"):
        if getattr(new, what) != getattr(old, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, unless the `unsafe` "
                f"flag is enabled.\nmodule.{name}.{what}: {getattr(old, what)}\nreturned {what}: {getattr(new, what)}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module, or any of them, has a parametrization."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Makes the tensor an ordinary parameter or buffer again: with its parametrized value, or with the original one, which must be the
    only one then. Returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of the module without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Any:
    """Gives another module the parametrizations of one tensor, or of all, with their original tensors. Returns that module."""
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        ours: Any = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in ours:
            register_parametrization(to_module, name, parametrization)
        theirs = to_module.parametrizations[name]
        for original in ["original"] if ours.is_tensor else [f"original{i}" for i in range(ours.ntensors)]:
            setattr(theirs, original, getattr(ours, original))
    return to_module


_check_module(globals())
add_module_getattr(__name__)
