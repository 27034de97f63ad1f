"""Module: parameters, buffers and modules by name, and a forward function.

Parameters, buffers and inner modules are ordinary attributes, which are as fast to read as any attribute: assigning a
Parameter, a Buffer or a Module to an attribute registers it.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from .. import _C
from ..arguments import check_module as _check_module, describe
from .module_hooks import ModuleHooks
from .module_state import ModuleState
from .parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any
    from typing_extensions import Self

    from .._C import Tensor
    from ..types import Device


def _convert(part: Any, convert: Callable[[Tensor], Tensor]) -> None:
    """Gives a parameter or buffer, and its gradient, what `convert` makes of its elements; the object stays the same."""
    grad = part.grad
    part.grad = None
    part.data = convert(part.data)
    if grad is not None:
        part.grad = convert(grad.detach())


# No methods, whose names programs would have to leave free.


def _parts(module: Module, kind: Any) -> dict[str, Any]:
    return {name: part for name, part in module.__dict__.items() if isinstance(part, kind)}


class _Parts(dict):  # type: ignore[type-arg]
    """The parameters, buffers or modules of a module by name. Programs of PyTorch's put parts there and take them away, which changes
    the module."""

    __slots__ = ("_kind", "_module")

    def __init__(self, module: Module, kind: Any) -> None:
        super().__init__(_parts(module, kind))
        self._module, self._kind = module, kind

    def __setitem__(self, name: str, value: Any) -> None:
        if self._kind is Buffer and isinstance(value, _C.Tensor) and not isinstance(value, Buffer):
            value = Buffer(value)
        setattr(self._module, name, value)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        delattr(self._module, name)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    clear, pop, popitem = MutableMapping.clear, MutableMapping.pop, MutableMapping.popitem  # type: ignore[assignment]
    setdefault, update = MutableMapping.setdefault, MutableMapping.update  # type: ignore[assignment]


def _named(module: Module, kind: Any, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
    seen = set()
    modules: Any = [(prefix, module)]
    if recurse:
        modules = module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
    for path, inside in modules:
        for name, part in _parts(inside, kind).items():
            if id(part) not in seen:
                if remove_duplicate:
                    seen.add(id(part))
                yield (f"{path}.{name}" if path else name), part


def _part(module: Module, target: str, kind: Any, function: str, word: str) -> Any:
    path, _, name = target.rpartition(".")
    module = module.get_submodule(path)
    part = module.__dict__.get(name)
    if not isinstance(part, kind):
        raise AttributeError(f"{function}({target!r}): {type(module).__name__} has no {word} {name!r}")
    return part


class Module(ModuleHooks, ModuleState):
    """Base of layers and models. Subclasses assign their parameters and modules in __init__, and define forward."""

    training: bool = True
    #: The attributes that extra_repr() prints, by name.
    _shown: tuple[str, ...] = ()

    def __init__(self) -> None:
        pass

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    # Parts

    def __setattr__(self, name: str, value: Any) -> None:
        old = self.__dict__.get(name)
        if isinstance(old, Parameter) and value is not None and not isinstance(value, Parameter):
            raise self._not_assigned(name, value, "parameter", "a Parameter")
        if isinstance(old, Buffer) and not isinstance(value, (Buffer, Parameter)):
            if isinstance(value, _C.Tensor):
                value = Buffer(value, old.persistent)
            elif value is not None and not isinstance(value, Module):
                raise self._not_assigned(name, value, "buffer", "a Tensor")
        if isinstance(old, Module) and value is not None and not isinstance(value, (Module, Parameter)):
            raise self._not_assigned(name, value, "child module", "a Module")
        object.__setattr__(self, name, value)

    def _not_assigned(self, name: str, value: Any, role: str, expected: str) -> TypeError:
        return TypeError(
            f"{type(self).__name__}: cannot assign {describe(value)} as {role} '{name}'; expected {expected} or None "
            f"(del {name} makes room for something else)"
        )

    @property
    def _parameters(self) -> dict[str, Parameter]:
        return _Parts(self, Parameter)

    @property
    def _buffers(self) -> dict[str, Buffer]:
        return _Parts(self, Buffer)

    @property
    def _modules(self) -> dict[str, Module]:
        return _Parts(self, Module)

    def _check_name(self, name: str, kind: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{type(self).__name__}: a part's name must be a str, got {describe(name)}")
        if not name or "." in name:
            raise KeyError(f"{type(self).__name__}: a part's name must be non-empty and without dots, got {name!r}")
        # None is an absent part.
        is_part = name in self.__dict__ and isinstance(self.__dict__[name], (kind, type(None)))
        if hasattr(self, name) and not is_part:
            raise KeyError(f"{type(self).__name__}: attribute {name!r} exists already")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Sets the parameter called `name` to `param`, which may be None."""
        self._check_name(name, Parameter)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"{type(self).__name__}: parameter '{name}' must be a Parameter or None, got {describe(param)}")
        setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Sets the buffer called `name` to `tensor`, which may be None."""
        self._check_name(name, Buffer)
        if tensor is not None and not isinstance(tensor, _C.Tensor):
            raise TypeError(f"{type(self).__name__}: buffer '{name}' must be a Tensor or None, got {describe(tensor)}")
        setattr(self, name, None if tensor is None else Buffer(tensor, persistent))

    def add_module(self, name: str, module: Module | None) -> None:
        """Sets the module called `name` to `module`, which may be None."""
        self._check_name(name, Module)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__}: module '{name}' must be a Module or None, got {describe(module)}")
        setattr(self, name, module)

    register_module = add_module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all inside, each once, with names such as "block.0"."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in _parts(self, Module).items():
            yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all inside, each once unless remove_duplicate is false."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, each once, with their names."""
        seen = set()
        for name, module in _parts(self, Module).items():
            if module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly inside, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with names such as "0.weight", each once unless remove_duplicate is False."""
        yield from _named(self, Parameter, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """All buffers with their names, each once unless remove_duplicate is False."""
        yield from _named(self, Buffer, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name."""
        module = self
        for name in target.split(".") if target else ():
            inside = module._modules.get(name)
            if inside is None:
                raise AttributeError(f"get_submodule({target!r}): {type(module).__name__} has no module {name!r}")
            module = inside
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name."""
        return _part(self, target, Parameter, "get_parameter", "parameter")

    def get_buffer(self, target: str) -> Buffer:
        """The buffer of a dotted name."""
        return _part(self, target, Buffer, "get_buffer", "buffer")

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place of the dotted name; with `strict`, only where one is already."""
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("set_submodule: the name must not be empty")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: module must be a Module, got {describe(module)}")
        parent = self.get_submodule(path)
        old = parent.__dict__.get(name)
        if old is None and (strict or hasattr(parent, name)) and name not in parent.__dict__ or (
            old is not None and not isinstance(old, Module)
        ):
            raise AttributeError(f"set_submodule({target!r}): {type(parent).__name__} has no module {name!r}")
        setattr(parent, name, module)

    # Changes to the whole

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls fn(module) for all modules inside, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets training mode, in which some layers behave differently."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be a bool, got {describe(mode)}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """train(False)"""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters, or sets them to zero."""
        _C._zero_grad(list(self.parameters()), set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether the parameters require grad."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def to(self, *args: Any, memory_format: Any = None, **kwargs: Any) -> Self:
        """Converts floating and complex parameters and buffers in place; takes what Tensor.to takes.

        A memory_format applies to parameters and buffers of four dimensions; the others keep their strides. Raises TypeError
        for a dtype that is not floating-point, because parameters could not be trained in it.
        """
        wanted = _C.empty(0, dtype=_C.float32).to(*args, **kwargs).dtype
        if not wanted.is_floating_point and not wanted.is_complex:
            raise TypeError(f"Module.to: expected a floating point or complex dtype, got {wanted}")

        def convert(tensor):
            wanted = _C.empty(0, dtype=tensor.dtype, device=tensor.device).to(*args, **kwargs)
            converted = tensor.is_floating_point() or tensor.is_complex()
            dtype = wanted.dtype if converted else tensor.dtype
            if memory_format is None or tensor.dim() != 4:
                return tensor.to(wanted.device, dtype)
            return tensor.to(wanted.device, dtype, memory_format=memory_format)

        return self._apply(convert)

    def _apply(self, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces the elements of each parameter, buffer and gradient by what `convert` makes of them."""
        done = set()
        for module in self.modules() if recurse else [self]:
            for part in _parts(module, (Parameter, Buffer)).values():
                if id(part) not in done:
                    done.add(id(part))
                    _convert(part, convert)
        return self

    def to_empty(self, *, device: Device, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without their values, which are undefined then."""
        return self._apply(lambda tensor: _C.empty_like(tensor, device=device), recurse)

    def type(self, dst_type: Any) -> Self:
        """Converts all parameters and buffers to a dtype, also those that are not floating-point."""
        return self._apply(lambda tensor: tensor.to(dst_type))

    def float(self) -> Self:
        """to(tenon.float32)"""
        return self.to(_C.float32)

    def double(self) -> Self:
        """to(tenon.float64)"""
        return self.to(_C.float64)

    def half(self) -> Self:
        """to(tenon.float16)"""
        return self.to(_C.float16)

    def bfloat16(self) -> Self:
        """to(tenon.bfloat16)"""
        return self.to(_C.bfloat16)

    def cpu(self) -> Self:
        """to("cpu")"""
        return self.to("cpu")

    # Printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What repr prints in the parentheses of a module without inner modules."""
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)

    def __repr__(self) -> str:
        children = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in _parts(self, Module).items()]
        extra = self.extra_repr()
        if not children and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = (extra.split("\n") if extra else []) + children
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def changed_options(module: Module, **defaults: Any) -> str:
    """", name=value" of each attribute that differs from this default, for extra_repr(); an absent one does not."""
    shown = {name: getattr(module, name, default) for name, default in defaults.items()}
    return "".join(f", {name}={value}" for name, value in shown.items() if value != defaults[name])


if TYPE_CHECKING:

    class TensorModule(Module):
        """A module whose call returns one tensor, which checkers cannot read off its forward."""

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...

else:
    TensorModule = Module


_check_module(globals())
