"""What PyTorch has and Tenon has not: the sentence that says so, wherever such a name is asked for.

PyTorch's public names are in pytorch_names.txt, which scripts/pytorch_names.py writes.
"""

import functools
import importlib
import os
import sys

from .. import _C

LIST = "docs/coverage.md"
_PACKAGE = __package__.partition(".")[0]


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

#: PyTorch's modules that Tenon has no module for, by the module that they are in; the other names that are absent are functions and
#: classes.
_MODULES = {
    "torch": frozenset(
        "ao classes contrib export func functorch fx hub masked monitor multiprocessing nested overrides package profiler "
        "quantization quasirandom sparse".split()
    ),
    "torch.distributed": frozenset("algorithms autograd checkpoint elastic fsdp nn optim pipelining rpc tensor".split()),
    "torch.autograd": frozenset("forward_ad functional profiler".split()),
    "torch.nn.attention": frozenset("bias experimental flex_attention varlen".split()),
    "torch.nn.utils": frozenset("memory_format prune stateless".split()),
    "torch.utils": frozenset("_pytree benchmark bundled_inputs cpp_extension flop_counter mobile_optimizer model_zoo tensorboard".split()),
}


class AbsentName(AttributeError):
    """The error for an attribute that is not there. Its text, which looks for similar names, is made when it is read: programs
    ask for many a name by hasattr()."""

    def __init__(self, what, describe):
        super().__init__(what)
        self._describe = describe

    def __str__(self):
        return f"{self.args[0]}{self._describe()}"

    def __reduce__(self):
        return AttributeError, (str(self),)


def _is_of_pytorch(owner, name):
    return not name.startswith("_") and (name in pytorch_names().get(owner, ()) or name in _MODULES.get(owner, ()))


def _sentence(owner, name):
    """What PyTorch's name is, and what to write in place of it."""
    from .instead import INSTEAD

    instead = INSTEAD.get(name)
    return f"{owner}.{name} of PyTorch is not in Tenon yet; {LIST} lists what is" + (f". Write {instead}" if instead else "")


def _describe(owner, name, present):
    if _is_of_pytorch(owner, name):
        return f": {_sentence(owner, name)}"
    if name.startswith("_"):
        return ""
    import difflib

    others = [other for other in present() if not other.startswith("_")]
    near = [other for other in others if other.lower() == name.lower()] or difflib.get_close_matches(name, others, n=2, cutoff=0.75)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def attribute_error(module, name):
    """The error for a name that a module of Tenon has not."""
    theirs = "torch" + module.removeprefix("tenon")
    what = f"module {module!r} has no attribute {name!r}"
    return AbsentName(what, lambda: _describe(theirs, name, lambda: dir(sys.modules[module])))


def module_getattr(module, later=()):
    """A __getattr__ for a module that has every name that it will have, but for its modules `later`, which load when asked for; or
    for names, by the modules of its package that have them, or that they are.

    `from module import name` says what attribute_error() does, too: with a __path__, Python asks AbsentModules for the name.
    """
    sys.modules[module].__dict__.setdefault("__path__", [])

    def __getattr__(name):
        if name in later and isinstance(later, dict):
            own = sys.modules[module]
            found = importlib.import_module(f"{own.__package__}.{later[name]}")
            return found if name == later[name] else own.__dict__.setdefault(name, getattr(found, name))
        if name in later:
            return importlib.import_module(f"{module}.{name}")  # which makes it an attribute
        raise attribute_error(module, name)

    return __getattr__


def add_module_getattr(module, later=()):
    """Has a module answer so for names that it lacks; type checkers, which read no __getattr__, know that it lacks them."""
    sys.modules[module].__getattr__ = module_getattr(module, later)
    for name in ("annotations", "TYPE_CHECKING"):  # which serve the source alone
        sys.modules[module].__dict__.pop(name, None)


class AbsentModules:
    """The last finder of modules: `import tenon.sparse` and `from tenon import sparse, median` say what they ask for."""

    def find_spec(self, name, path=None, target=None):
        parent, _, last = name.rpartition(".")
        theirs = "torch" + parent.removeprefix(_PACKAGE)
        if not parent or parent.partition(".")[0] != _PACKAGE:
            return None
        if last in _MODULES.get(theirs, ()):
            # Named as PyTorch's: `from tenon import fft` passes over an error with the name that it asked for.
            raise ModuleNotFoundError(f"No module named {name!r}: {_sentence(theirs, last)}", name=f"{theirs}.{last}")
        if _is_of_pytorch(theirs, last):
            raise ImportError(f"cannot import name {last!r} from {parent!r}: {_sentence(theirs, last)}", name=name)
        return None


class _AbsentAttribute:
    """A place in a class where PyTorch's class has an attribute. hasattr() is False, and an assignment takes the place."""

    def __init__(self, owner, name):
        self._owner, self._name = owner, name

    def __get__(self, instance, owner=None):
        kind = "type object" if instance is None else ""
        what = f"{kind} {owner.__name__!r}" if instance is None else f"{type(instance).__name__!r} object"
        raise AbsentName(f"{what} has no attribute {self._name!r}", lambda: f": {_sentence(self._owner, self._name)}")


def add_base(cls, path):
    """Gives a class a base that says what PyTorch's class at `path` has and `cls` has not; dir() leaves it out, as that of Tensor."""
    # The class of a base that is added later is not that of `cls`, which stays `type`.
    base = type(_C._AbsentNames)("_AbsentNames", (), {"__slots__": (), "__module__": cls.__module__})
    fill_base(base, cls, path)
    cls.__bases__ = (*cls.__bases__, base)


def fill_base(base, cls, path):
    """Has a base of `cls`, which dir() leaves out, say what PyTorch's class at `path` has and `cls` has not."""
    for name in pytorch_names()[path]:
        if not hasattr(cls, name):
            setattr(base, name, _AbsentAttribute(path, name))
