"""Modules of modules and of parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping

from .. import _C
from ..arguments import check_module as _check_module, describe
from .module import Module
from .parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import ItemsView, KeysView, ValuesView, Iterator
    from typing import Any
    from typing_extensions import Self


def _index_of(container: Module, index: Any) -> int:
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(f"{type(container).__name__}: index must be an int or a slice, got {describe(index)}") from None


class _Ordered(Module):
    """Modules in an order, named "0", "1", ... unless given names; also kept as a list, which is faster to iterate over."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_names", [])
        object.__setattr__(self, "_list", [])

    def _checked(self, module: Any, name: object = None) -> Module:
        if not isinstance(module, Module):
            place = "" if name is None else f" at {name!r}"
            call = f"; write {module.__name__}()" if isinstance(module, type) and issubclass(module, Module) else ""
            raise TypeError(f"{type(self).__name__} takes Modules, got {describe(module)}{place}{call}")
        return module

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._names:
            self._list[self._names.index(name)] = self._checked(value, name)
        elif isinstance(value, Module):
            if name in ("_names", "_list"):
                raise AttributeError(f"{type(self).__name__}: {name!r} is a name of its own")
            self._names.append(name)
            self._list.append(value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name in self._names:
            place = self._names.index(name)
            del self._names[place], self._list[place]

    def _renumber(self, modules: Any) -> None:
        for name in list(self._names):
            delattr(self, name)
        self.extend(modules)

    def _place(self, index: int) -> int:
        index = _index_of(self, index)
        if not -len(self._list) <= index < len(self._list):
            raise IndexError(f"{type(self).__name__}: index {index} is out of range for {len(self._list)} modules")
        return index % len(self._list)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(dict(zip(self._names[index], self._list[index])))
        return self._list[self._place(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._names[self._place(index)], self._checked(module))

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self._list)
        del modules[index if isinstance(index, slice) else self._place(index)]
        self._renumber(modules)

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._list)

    def __contains__(self, module: object) -> bool:
        return any(module is one for one in self._list)

    def append(self, module: Module) -> Self:
        """Adds a module at the end."""
        setattr(self, str(len(self._list)), self._checked(module))
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"{type(self).__name__}.extend takes Modules, got {describe(modules)}")
        for module in [self._checked(module, place) for place, module in enumerate(modules, len(self._list))]:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Adds a module before position `index`."""
        modules = list(self._list)
        # As list.insert, whose index may be beyond either end.
        modules.insert(max(min(_index_of(self, index), len(modules)), -len(modules)), self._checked(module))
        self._renumber(modules)
        return self

    def pop(self, index: int = -1) -> Module:
        """Removes a module and returns it."""
        module = self[self._place(index)]
        del self[index]
        return module

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)


class Sequential(_Ordered):
    """Each module gets the result of the one before. Takes modules, or one dict of names to modules."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self._check_name(name, Module)
                setattr(self, name, self._checked(module, name))
        else:
            self.extend(modules)

    if TYPE_CHECKING:
        # What nearly every program's last module returns; one that returns something else says so where it is called.
        def __call__(self, *args: Any, **kwargs: Any) -> _C.Tensor: ...

    def _of(self, modules: Any) -> Self:
        return type(self)(modules)

    def forward(self, input: Any) -> Any:
        for module in self._list:
            input = module(input)
        return input

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other) if isinstance(other, Sequential) else NotImplemented

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*(list(self) * self._times(times)))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self.extend(list(self) * (self._times(times) - 1))

    def _times(self, times: int) -> int:
        if not isinstance(times, int):
            raise TypeError(f"a Sequential can be repeated an int of times, got {describe(times)}")
        if times <= 0:
            raise ValueError(f"a Sequential can be repeated a positive number of times, not {times}")
        return times


class ModuleList(_Ordered):
    """A list of modules, which belong to the module that holds it."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _of(self, modules: Any) -> Self:
        return type(self)(modules.values())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Modules that print alike one after the other are counted: (0-2): 3 x Linear(...)."""
        texts = [repr(module) for module in self._list]
        if not texts:
            return f"{self._get_name()}()"
        lines, first = [], 0
        for place in range(1, len(texts) + 1):
            if place == len(texts) or texts[place] != texts[first]:
                count = place - first
                head = f"({first})" if count == 1 else f"({first}-{place - 1})"
                times = "" if count == 1 else f"{count} x "
                lines.append(f"{head}: {times}" + texts[first].replace("\n", "\n  "))
                first = place
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def _pairs(what: str, items: Any) -> list[tuple[str, Any]]:
    """The (key, value) pairs of a mapping or of an iterable of pairs, as dict.update takes them."""
    if isinstance(items, Mapping) or hasattr(items, "keys"):
        return [(key, items[key]) for key in items.keys()]
    if not isinstance(items, Iterable):
        raise TypeError(f"{what}.update takes a mapping or pairs of names and values, got {describe(items)}")
    pairs = []
    for place, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{what}.update: element {place} is no pair, but a {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{what}.update: element {place} has {len(pair)} values; a pair has 2")
        pairs.append(pair)
    return pairs


class ModuleDict(Module):
    """A dict of modules, which belong to the module that holds it. Names of the module's own attributes can be no keys."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Adds the modules of a mapping, or of pairs of names and modules; a name that is there gets the new module."""
        for name, module in _pairs("ModuleDict", modules):
            self[name] = module

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        self._modules[name]  # raises KeyError for what is no module
        delattr(self, name)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        for name in list(self):
            del self[name]

    def pop(self, key: str) -> Module:
        """Removes a module and returns it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> KeysView[str]:
        """The names of the modules."""
        return self._modules.keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> ItemsView[str, Module]:
        """Pairs of name and module."""
        return self._modules.items()


def _as_part(value: Any) -> Any:
    """What a list or dict of parameters keeps for a value: Tensors that are no Parameters become Parameters."""
    if isinstance(value, _C.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _described(name: object, value: Any) -> str:
    if not isinstance(value, _C.Tensor):
        return f"({name}): Object of type: {type(value).__name__}"
    sizes = "x".join(str(size) for size in value.shape)
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"({name}): {kind} containing: [{value.dtype} of size {sizes}]"


class ParameterList(Module):
    """A list of parameters, which belong to the module that holds it. Tensors become Parameters; other values may be in it."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _place(self, index: int) -> int:
        index = _index_of(self, index)
        if not -self._size <= index < self._size:
            raise IndexError(f"{type(self).__name__}: index {index} is out of range for {self._size} parameters")
        return index % self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self.__dict__[str(self._place(index))]

    def __setitem__(self, index: int, value: Any) -> None:
        self._put(self._place(index), value)

    def _put(self, place: int, value: Any) -> None:
        # A parameter's place may take another kind of value here, which Module.__setattr__ refuses.
        self.__dict__.pop(str(place), None)
        setattr(self, str(place), _as_part(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self.__dict__[str(place)] for place in range(self._size)])

    def append(self, value: Any) -> Self:
        """Adds a value at the end."""
        self._put(self._size, value)
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, _C.Tensor):
            raise TypeError(f"ParameterList.extend takes an iterable of values, got {describe(values)}")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def pop(self, index: int = -1) -> Any:
        """Removes a value and returns it."""
        values = list(self)
        value = values.pop(self._place(index))
        for place in range(self._size):
            del self.__dict__[str(place)]
        self._size = 0
        self.extend(values)
        return value

    def extra_repr(self) -> str:
        return "\n".join(f"  {_described(place, value)}" for place, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a ParameterList is no layer and cannot be called")


class ParameterDict(Module):
    """A dict of parameters, which belong to the module that holds it. Tensors become Parameters; other values may be in it."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        object.__setattr__(self, "_keys", {})
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        self._keys[key]  # raises KeyError
        return self.__dict__[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"a key of a ParameterDict must be a str, got {describe(key)}")
        if key not in self._keys:
            self._check_name(key, (Parameter, Buffer, Module))
        self._keys[key] = None
        self.__dict__.pop(key, None)
        setattr(self, key, _as_part(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        del self.__dict__[key]

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another ParameterDict of the same parameters."""
        return ParameterDict({key: self[key] for key in self._keys})

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which gets `default` if it is new."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes a value and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes the last (key, value) and returns it."""
        if not self._keys:
            raise KeyError("popitem: the ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another ParameterDict with these keys, all of one value."""
        return ParameterDict({key: default for key in keys})

    def keys(self) -> KeysView[str]:
        """The keys."""
        return self._keys.keys()

    def values(self) -> list[Any]:
        """The values."""
        return [self[key] for key in self._keys]

    def items(self) -> list[tuple[str, Any]]:
        """Pairs of key and value."""
        return [(key, self[key]) for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Adds the values of a mapping, or of pairs of keys and values."""
        for key, value in _pairs("ParameterDict", parameters):
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other: Any) -> ParameterDict:
        copy = ParameterDict(other)
        copy.update(self)
        return copy

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  {_described(key, value)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a ParameterDict is no layer and cannot be called")


_check_module(globals())
