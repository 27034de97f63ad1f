"""Modules of modules: Sequential, ModuleList, ModuleDict."""

from .module import Module


class _Numbered(Module):
    """Modules named "0", "1", ..., also kept as a list, which is faster to iterate over."""

    def __init__(self):
        super().__init__()
        self._list = []

    def _put(self, index, module):
        if not isinstance(module, Module):
            raise TypeError(f"{type(self).__name__} takes Modules, not {type(module).__name__}")
        if index == len(self._list):
            self._list.append(module)
        else:
            self._list[index] = module
        object.__setattr__(self, str(index), module)

    def __setattr__(self, name, value):
        if name.isdecimal() and int(name) <= len(self._list):
            self._put(int(name), value)
        else:
            super().__setattr__(name, value)

    def _renumber(self, modules):
        for index in range(len(self._list)):
            object.__delattr__(self, str(index))
        self._list = []
        for index, module in enumerate(modules):
            self._put(index, module)

    def _index(self, index):
        if not -len(self._list) <= index < len(self._list):
            raise IndexError(f"index {index} is out of range for {len(self._list)} modules")
        return index % len(self._list)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)._of(self._list[index])
        return self._list[self._index(index)]

    def __setitem__(self, index, module):
        self._put(self._index(index), module)

    def __delitem__(self, index):
        modules = list(self._list)
        del modules[index]
        self._renumber(modules)

    def __len__(self):
        return len(self._list)

    def __iter__(self):
        return iter(self._list)

    def append(self, module):
        """Adds a module at the end."""
        self._put(len(self._list), module)
        return self

    def extend(self, modules):
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index, module):
        """Adds a module before position `index`."""
        modules = list(self._list)
        modules.insert(index, module)
        self._renumber(modules)
        return self


class Sequential(_Numbered):
    """Each module gets the result of the one before. Takes modules, or one dict of names to modules."""

    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, module in modules[0].items():
                self._check_name(name)
                if not isinstance(module, Module):
                    raise TypeError(f"Sequential takes Modules, not {type(module).__name__}")
                self._list.append(module)
                object.__setattr__(self, name, module)
        else:
            self.extend(modules)

    @classmethod
    def _of(cls, modules):
        return cls(*modules)

    def forward(self, input):
        for module in self._list:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules, which belong to the module that holds it."""

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

    @classmethod
    def _of(cls, modules):
        return cls(modules)


class ModuleDict(Module):
    """A dict of modules, which belong to the module that holds it."""

    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules):
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        self.add_module(name, module)

    def __delitem__(self, name):
        del self._modules[name]  # raises KeyError for what is no module
        delattr(self, name)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, name):
        return name in self._modules

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()
