"""What PyTorch has and Tenon has not: the sentence that says so, wherever such a name is asked for.

PyTorch's public names are in pytorch_names.txt, which scripts/pytorch_names.py writes.
"""

import functools
import os

LIST = "docs/coverage.md"


@functools.cache
def pytorch_names():
    """PyTorch's public names by module: {"torch.nn": {"Linear", ...}, ...}; under "core" the core ATen schemas."""
    names, section = {}, None
    with open(os.path.join(os.path.dirname(__file__), "pytorch_names.txt"), encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line.startswith("["):
                section = names.setdefault(line[1:-1], set())
            elif line and not line.startswith("#"):
                section.add(line)
    return names

#: What serves in place of it.
_INSTEAD = {
    f"torch{name}": "; model.to(tenon.bfloat16) and inputs of that dtype compute in bfloat16 throughout"
    for name in (".autocast", ".amp", ".is_autocast_enabled", ".get_autocast_dtype", ".set_autocast_enabled", ".cuda.amp")
}


def _sentence(owner, name):
    return f"{owner}.{name} of PyTorch is not in Tenon yet; {LIST} lists what is{_INSTEAD.get(f'{owner}.{name}', '')}"


def attribute_error(module, name):
    """The error for a name that a module of Tenon has not."""
    theirs = "torch" + module.removeprefix("tenon")
    message = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("_") and name in pytorch_names().get(theirs, ()):
        message += f": {_sentence(theirs, name)}"
    return AttributeError(message)


def module_getattr(module):
    """A __getattr__ for a module that has every name that it will have."""

    def __getattr__(name):
        raise attribute_error(module, name)

    return __getattr__


class _AbsentAttribute:
    """A place in a class where PyTorch's class has an attribute. hasattr() is False, and an assignment takes the place."""

    def __init__(self, owner, name):
        self._owner, self._name = owner, name

    def __get__(self, instance, owner=None):
        kind = "type object" if instance is None else ""
        what = f"{kind} {owner.__name__!r}" if instance is None else f"{type(instance).__name__!r} object"
        raise AttributeError(f"{what} has no attribute {self._name!r}: {_sentence(self._owner, self._name)}")


def fill_class(cls, path):
    """Marks what PyTorch's class at `path` has and `cls` has not, so that asking for it says so."""
    for name in pytorch_names()[path]:
        if not hasattr(cls, name):
            setattr(cls, name, _AbsentAttribute(path, name))
    cls.__dir__ = _dir_of_present


def _dir_of_present(instance):
    absent = {name for kind in type(instance).__mro__ for name, v in vars(kind).items() if isinstance(v, _AbsentAttribute)}
    return [name for name in object.__dir__(instance) if name not in absent]

