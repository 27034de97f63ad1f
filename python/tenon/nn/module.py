"""Module: parameters, buffers and modules by name, and a forward function.

Parameters, buffers and inner modules are ordinary attributes, which are as fast to read as any attribute: assigning a
Parameter, a Buffer or a Module to an attribute registers it.
"""

import itertools
from collections import OrderedDict, namedtuple

from .. import _C
from .parameter import Buffer, Parameter

_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


class _Handle:
    """Removes a hook."""

    _ids = itertools.count()

    def __init__(self, hooks):
        self.hooks, self.id = hooks, next(self._ids)

    def remove(self):
        self.hooks.pop(self.id, None)


class Module:
    """Base of layers and models. Subclasses assign their parameters and modules in __init__, and define forward."""

    training = True
    _forward_hooks = None
    _forward_pre_hooks = None

    def __init__(self):
        pass

    def forward(self, *args):
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def __call__(self, *args, **kwargs):
        if self._forward_hooks is None and self._forward_pre_hooks is None:
            return self.forward(*args, **kwargs)
        for hook in (self._forward_pre_hooks or {}).values():
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in (self._forward_hooks or {}).values():
            changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    # Parts

    def __setattr__(self, name, value):
        old = self.__dict__.get(name)
        if isinstance(old, Parameter) and value is not None and not isinstance(value, Parameter):
            raise TypeError(
                f"cannot assign a {type(value).__name__} as parameter '{name}'; a Parameter or None is expected"
            )
        if isinstance(old, Buffer) and isinstance(value, _C.Tensor) and not isinstance(value, (Buffer, Parameter)):
            value = Buffer(value, old.persistent)
        object.__setattr__(self, name, value)

    def _parts(self, kind):
        return {name: part for name, part in self.__dict__.items() if isinstance(part, kind)}

    @property
    def _parameters(self):
        return self._parts(Parameter)

    @property
    def _buffers(self):
        return self._parts(Buffer)

    @property
    def _modules(self):
        return self._parts(Module)

    def _check_name(self, name):
        if not isinstance(name, str):
            raise TypeError(f"a part's name must be a str, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"a part's name must be non-empty and without dots, got {name!r}")
        is_part = name in self.__dict__ and isinstance(self.__dict__[name], (Parameter, Buffer, Module, type(None)))
        if hasattr(self, name) and not is_part:
            raise KeyError(f"attribute {name!r} exists already")

    def register_parameter(self, name, param):
        """Sets the parameter called `name` to `param`, which may be None."""
        self._check_name(name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"parameter '{name}' must be a Parameter or None, not {type(param).__name__}")
        setattr(self, name, param)

    def register_buffer(self, name, tensor, persistent=True):
        """Sets the buffer called `name` to `tensor`, which may be None."""
        self._check_name(name)
        if tensor is not None and not isinstance(tensor, _C.Tensor):
            raise TypeError(f"buffer '{name}' must be a Tensor or None, not {type(tensor).__name__}")
        setattr(self, name, None if tensor is None else Buffer(tensor, persistent))

    def add_module(self, name, module):
        """Sets the module called `name` to `module`, which may be None."""
        self._check_name(name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"module '{name}' must be a Module or None, not {type(module).__name__}")
        setattr(self, name, module)

    register_module = add_module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """This module and all inside, each once, with names such as "block.0"."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self):
        """This module and all inside, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self):
        """The modules directly inside, each once, with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """The modules directly inside, each once."""
        for _, module in self.named_children():
            yield module

    def _named(self, kind, prefix, recurse):
        seen = set()
        for path, module in self.named_modules(prefix=prefix) if recurse else [(prefix, self)]:
            for name, part in module._parts(kind).items():
                if id(part) not in seen:
                    seen.add(id(part))
                    yield (f"{path}.{name}" if path else name), part

    def named_parameters(self, prefix="", recurse=True):
        """All parameters with names such as "0.weight", each once."""
        yield from self._named(Parameter, prefix, recurse)

    def parameters(self, recurse=True):
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True):
        """All buffers with their names, each once."""
        yield from self._named(Buffer, prefix, recurse)

    def buffers(self, recurse=True):
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        """The module of a dotted name."""
        module = self
        for name in target.split(".") if target else ():
            inside = module._modules.get(name)
            if inside is None:
                raise AttributeError(f"get_submodule({target!r}): {type(module).__name__} has no module {name!r}")
            module = inside
        return module

    # State

    def state_dict(self, prefix=""):
        """Parameters and persistent buffers by name, detached; they share memory with the module.

        A parameter or buffer that occurs in several places has a key for each.
        """
        state = OrderedDict()
        for path, module in self.named_modules(remove_duplicate=False):
            for name, part in module.__dict__.items():
                if isinstance(part, Parameter) or (isinstance(part, Buffer) and part.persistent):
                    state[prefix + (f"{path}.{name}" if path else name)] = part.detach()
        return state

    def load_state_dict(self, state_dict, strict=True):
        """Copies values into the parameters and buffers of the same names.

        Raises RuntimeError, and changes nothing, if a shape does not fit or, with `strict`, if names are missing or unknown.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"load_state_dict: expected a dict, got {type(state_dict).__name__}")
        own = self.state_dict()
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        problems = []
        if strict and unexpected:
            problems.append("Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in unexpected) + ".")
        if strict and missing:
            problems.append("Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in missing) + ".")
        for name, target in own.items():
            value = state_dict.get(name, target)
            if not isinstance(value, _C.Tensor):
                problems.append(f'"{name}" is a {type(value).__name__}, expected a Tensor.')
            elif value.shape != target.shape:
                problems.append(
                    f"size mismatch for {name}: a shape of {list(value.shape)} in the state_dict, "
                    f"{list(target.shape)} in the module."
                )
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(problems))
        for name, target in own.items():
            if name in state_dict:
                target.copy_(state_dict[name])
        return _IncompatibleKeys(missing, unexpected)

    # Changes to the whole

    def apply(self, fn):
        """Calls fn(module) for all modules inside, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Sets training mode, in which some layers behave differently."""
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self):
        """train(False)"""
        return self.train(False)

    def zero_grad(self, set_to_none=True):
        """Clears the gradients of all parameters, or sets them to zero."""
        _C._zero_grad(list(self.parameters()), set_to_none)

    def requires_grad_(self, requires_grad=True):
        """Sets whether the parameters require grad."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def to(self, *args, memory_format=None, **kwargs):
        """Converts floating parameters and buffers, in place; takes what Tensor.to takes.

        A memory_format applies to parameters and buffers of four dimensions; the others keep their strides. Raises TypeError
        for a dtype that is not floating-point, because parameters could not be trained in it.
        """
        wanted = _C.empty(0, dtype=_C.float32).to(*args, **kwargs).dtype
        if not wanted.is_floating_point and not wanted.is_complex:
            raise TypeError(f"Module.to: expected a floating point or complex dtype, got {wanted}")

        def convert(tensor):
            wanted = _C.empty(0, dtype=tensor.dtype, device=tensor.device).to(*args, **kwargs)
            keeps_dtype = not (tensor.is_floating_point() and wanted.is_floating_point())
            dtype = tensor.dtype if keeps_dtype else wanted.dtype
            if memory_format is None or tensor.dim() != 4:
                return tensor.to(wanted.device, dtype)
            return tensor.to(wanted.device, dtype, memory_format=memory_format)

        for tensor in itertools.chain(self.parameters(), self.buffers()):
            tensor.data = convert(tensor.data)
            if tensor.grad is not None:
                grad, tensor.grad = tensor.grad, None
                tensor.grad = convert(grad.detach())
        return self

    def float(self):
        """to(tenon.float32)"""
        return self.to(_C.float32)

    def double(self):
        """to(tenon.float64)"""
        return self.to(_C.float64)

    def half(self):
        """to(tenon.float16)"""
        return self.to(_C.float16)

    def cpu(self):
        """to("cpu")"""
        return self.to("cpu")

    # Hooks

    def register_forward_hook(self, hook):
        """Calls hook(module, args, result) after forward; unless it returns None, its result replaces the module's."""
        if self._forward_hooks is None:
            object.__setattr__(self, "_forward_hooks", {})
        handle = _Handle(self._forward_hooks)
        self._forward_hooks[handle.id] = hook
        return handle

    def register_forward_pre_hook(self, hook):
        """Calls hook(module, args) before forward; unless it returns None, its result replaces the arguments."""
        if self._forward_pre_hooks is None:
            object.__setattr__(self, "_forward_pre_hooks", {})
        handle = _Handle(self._forward_pre_hooks)
        self._forward_pre_hooks[handle.id] = hook
        return handle

    # Printing

    def extra_repr(self):
        """What repr prints in the parentheses of a module without inner modules."""
        return ""

    def __repr__(self):
        children = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        extra = self.extra_repr()
        if not children:
            return f"{type(self).__name__}({extra})"
        lines = ([extra] if extra else []) + children
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"
