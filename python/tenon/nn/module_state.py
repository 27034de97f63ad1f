"""The state of a module as a dict: its parameters and persistent buffers by name."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

from .. import _C
from ..arguments import check_module as _check_module, describe
from .module_hooks import add_hook
from .parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..types import Hook
    from .module import Module
    from .module_hooks import Handle as HookHandle


class IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict did not find, and what it found no place for."""

    __slots__ = ()

    def __repr__(self) -> str:
        if self.missing_keys or self.unexpected_keys:
            return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"
        return "<All keys matched successfully>"

    __str__ = __repr__


_EXTRA = "_extra_state"


class ModuleState:
    """The part of Module that writes and reads state dicts."""

    _state_dict_pre_hooks: OrderedDict[int, Any] | None = None
    _state_dict_hooks: OrderedDict[int, Any] | None = None
    _load_state_dict_pre_hooks: OrderedDict[int, Any] | None = None
    _load_state_dict_post_hooks: OrderedDict[int, Any] | None = None

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

    def get_extra_state(self) -> Any:
        """What else belongs to the state of this module; a class that defines it defines set_extra_state too."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restores what get_extra_state() returned."""
        raise NotImplementedError(f"{type(self).__name__} defines no set_extra_state()")

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not ModuleState.get_extra_state

    def _state_parts(self) -> list[tuple[str, Any]]:
        """The parameters and then the persistent buffers of this module itself, by name."""
        parts: list[tuple[str, Any]] = [(name, part) for name, part in self.__dict__.items() if isinstance(part, Parameter)]
        buffers = [(name, part) for name, part in self.__dict__.items() if isinstance(part, Buffer)]
        return parts + [(name, part) for name, part in buffers if part.persistent]

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, part in self._state_parts():
            destination[prefix + name] = part if keep_vars else part.detach()
        if self._has_extra_state():
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by name, detached unless `keep_vars`; they share memory with the module.

        A parameter or buffer that occurs in several places has a key for each.
        """
        state = OrderedDict() if destination is None else destination
        for hook in (self._state_dict_pre_hooks or {}).values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, module in self._modules.items():
            module.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in (self._state_dict_hooks or {}).values():
            if hook(self, state, prefix, {}) is not None:
                raise RuntimeError("a state_dict hook must return None; it changes the dict that it gets")
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies values into the parameters and buffers of the same names; with `assign`, puts the tensors in their place.

        Raises RuntimeError, and changes nothing, if a shape does not fit, if a value has no elements to copy (on meta) or a dtype
        that the parameter's cannot take, or, with `strict`, if names are missing or unknown.
        Returns the missing and the unknown names.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"load_state_dict: expected a dict, got {describe(state_dict)}")
        load = _Load(_State(state_dict.items()), getattr(state_dict, "_metadata", None) or {}, strict, assign)
        try:
            load._collect(self)  # type: ignore[arg-type]  # a Module
        finally:
            del load.state.load  # which would keep the tensors
        load._check(type(self).__name__)
        load._apply(type(self).__name__)
        result = IncompatibleKeys(load.missing, load.unexpected)
        for module in self.modules():
            for hook in (module._load_state_dict_post_hooks or {}).values():
                if hook(module, result) is not None:
                    raise RuntimeError("a load_state_dict post-hook must return None; it changes the lists that it gets")
        return result

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Takes the values of this module itself from `state_dict`; load_state_dict calls it for each module. A class that overrides it
        may change the dict and the lists first, as in PyTorch."""
        if not isinstance(state_dict, _State):
            raise RuntimeError("_load_from_state_dict: state_dict must be the dict that load_state_dict gave; change that one")
        for hook in (self._load_state_dict_pre_hooks or {}).values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        state_dict.load._collect_own(self, prefix)  # type: ignore[arg-type]  # a Module

    def _add_state_hook(self, kind: str, hook: Hook) -> HookHandle:
        if getattr(self, kind) is None:
            object.__setattr__(self, kind, OrderedDict())
        return add_hook(getattr(self, kind), hook)

    def register_state_dict_pre_hook(self, hook: Hook) -> HookHandle:
        """Calls hook(module, prefix, keep_vars) before the module writes its state."""
        return self._add_state_hook("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Hook) -> HookHandle:
        """Calls hook(module, state_dict, prefix, metadata) after the module has written its state, which it may change."""
        return self._add_state_hook("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> HookHandle:
        """Calls hook(module, state_dict, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs) before the
        module reads its state from a dict that the hook may change."""
        return self._add_state_hook("_load_state_dict_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> HookHandle:
        """Calls hook(module, incompatible_keys) after loading; it may change the two lists."""
        return self._add_state_hook("_load_state_dict_post_hooks", hook)


class _State(OrderedDict):
    """A state that is loaded, which modules and hooks may change."""

    load: _Load


class _Load:
    """One load_state_dict: everything is checked before anything is changed."""

    def __init__(self, state: _State, metadata: dict[str, Any], strict: bool, assign: bool) -> None:
        self.state, self.metadata, self.strict, self.assign = state, metadata, strict, assign
        state.load = self
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.problems: list[str] = []
        self.known: set[str] = set()
        self.tensors: list[Any] = []
        self.extras: list[Any] = []
        self.refused: dict[Any, Exception | None] = {}

    def _collect(self, module: Module, prefix: str = "") -> None:
        self.collected: Any = None
        local = self.metadata.get(prefix[:-1], {})
        module._load_from_state_dict(self.state, prefix, local, self.strict, self.missing, self.unexpected, self.problems)
        if self.collected is not module:  # a class that takes its values itself
            self.known.update(key for key in self.state if key.startswith(prefix))
        for name, child in module._modules.items():
            self._collect(child, f"{prefix}{name}.")

    def _collect_own(self, module: Module, prefix: str) -> None:
        self.collected = module
        for name, part in module._state_parts():
            key = prefix + name
            self.known.add(key)
            if key in self.state:
                self._add(module, name, key, part, self.state[key])
            else:
                self.missing.append(key)
        key = prefix + _EXTRA
        if module._has_extra_state():
            self.known.add(key)
            if key in self.state:
                self.extras.append((module, self.state[key]))
            else:
                self.missing.append(key)

    def _add(self, module: Module, name: str, key: str, part: Any, value: Any) -> None:
        if not isinstance(value, _C.Tensor):
            self.problems.append(f'"{key}" is a {type(value).__name__}, expected a Tensor.')
        elif value.shape != part.shape:
            self.problems.append(
                f"size mismatch for {key}: a shape of {list(value.shape)} in the state_dict, "
                f"{list(part.shape)} in the module."
            )
        elif not self.assign and (why := self._why_not_copied(part, value)):
            self.problems.append(_while_copying(key, part, why))
        else:
            self.tensors.append((module, name, key, part, value))

    def _why_not_copied(self, part: Any, value: Any) -> Exception | None:
        """Why copy_ would refuse the value's device or dtype: tried once for each pair, with one element."""
        pair = (part.device, part.dtype, value.device, value.dtype)
        if pair[:2] == pair[2:]:
            return None
        if pair not in self.refused:
            self.refused[pair] = None
            try:
                _C.empty(1, dtype=part.dtype, device=part.device).copy_(_C.empty(1, dtype=value.dtype, device=value.device))
            except Exception as error:
                self.refused[pair] = error
        return self.refused[pair]

    def _check(self, who: str) -> None:
        self.unexpected += [key for key in self.state if key not in self.known]
        problems = []
        if self.strict and self.missing:
            problems.append("Missing key(s) in state_dict: " + _quoted(self.missing) + ".")
        if self.strict and self.unexpected:
            problems.append("Unexpected key(s) in state_dict: " + _quoted(self.unexpected) + ".")
        problems += self.problems
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {who}:\n\t" + "\n\t".join(problems))

    def _apply(self, who: str) -> None:
        for module, name, key, part, value in self.tensors:
            if self.assign:
                setattr(module, name, _in_place_of(part, value))
                continue
            try:
                part.detach().copy_(value)
            except Exception as error:
                # What could not be known before, such as a mapped file that was cut short.
                kind = type(error) if isinstance(error, (OSError, MemoryError)) else RuntimeError
                raise kind(f"Error(s) in loading state_dict for {who}:\n\t{_while_copying(key, part, error)}") from error
        for module, state in self.extras:
            module.set_extra_state(state)


def _while_copying(key: str, part: Any, why: Exception) -> str:
    return f'While copying the {"buffer" if isinstance(part, Buffer) else "parameter"} named "{key}": {why}'


def _in_place_of(part: Any, value: Any) -> Any:
    """`value` as a part of a module in the place of another one."""
    if isinstance(part, Buffer):
        return Buffer(value, part.persistent)
    if isinstance(value, Parameter):
        return value.requires_grad_(part.requires_grad)
    return Parameter(value, part.requires_grad)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


_check_module(globals())
