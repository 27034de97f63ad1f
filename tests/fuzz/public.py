"""The package's public functions, constructors and methods, with the names of their parameters: what wrong arguments are given to."""

import enum
import importlib
import inspect
import os
import pathlib
import re
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache

import numpy as np

import tenon

MODULES = (
    "tenon", "tenon.accelerator", "tenon.amp", "tenon.array_api", "tenon.array_api.fft", "tenon.array_api.linalg", "tenon.autograd", "tenon.autograd.graph", "tenon.backends", "tenon.compiler", "tenon.cpu",
    "tenon.cuda", "tenon.devices", "tenon.dispatch", "tenon.fft", "tenon.futures", "tenon.graph", "tenon.library", "tenon.linalg", "tenon.mps", "tenon.nn",
    "tenon.nn.attention", "tenon.nn.functional", "tenon.nn.grad", "tenon.nn.init", "tenon.nn.utils", "tenon.nn.utils.parametrizations", "tenon.nn.utils.parametrize",
    "tenon.ops", "tenon.optim",
    "tenon.optim.lr_scheduler", "tenon.random", "tenon.safetensors", "tenon.signal.windows", "tenon.storage", "tenon.testing", "tenon.utils.checkpoint", "tenon.utils.data", "tenon.xpu",
)  # fmt: skip

#: What ends, stops or starts processes, and what a wrong argument is right for.
LEFT_OUT = {
    "tenon.set_num_threads": "changes how many threads every later call has",
    "tenon.utils.data.DataLoader": "takes any object as a data set, and fails where that does",
    "tenon.is_tensor": "any object is right",
    "tenon.is_storage": "any object is right",
    "tenon.typename": "any object is right",
}
#: Modules whose functions other modules import for themselves.
HELPERS = {"tenon._names.absent", "tenon.arguments", "tenon.array_api._base"}
#: Methods of Python's protocols that are called as well, and with how many arguments. Python itself checks their number.
PROTOCOLS = {
    "__array__": 1, "__contains__": 1, "__deepcopy__": 1, "__delitem__": 1, "__format__": 1, "__getitem__": 1, "__setitem__": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Callable:
    name: str
    function: object
    parameters: tuple  # names, in order
    required: int  # of those, the ones without a default
    protocol: bool = False  # Python's, with a fixed number of arguments by position

    @property
    def words(self):
        """What a message may call it by: its name, its class, its parameters."""
        parts = [p.strip("_") for p in self.name.split(".")[-2:]] + self.name.split(".")[-2:]
        return {*parts, *self.parameters} - {"tenon", "nn", "", "a", "x", "p", "f"}


def parameters_of(function):
    """(names, how many are required) as far as the signature says."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ("input", "other"), 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    all_of = list(signature.parameters.values())
    names = [p.name for p in all_of if p.kind in kinds]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in all_of):
        names = names or ["args", "more"]
    required = sum(p.kind in kinds[:2] and p.default is inspect.Parameter.empty for p in all_of)
    return tuple(names), required


def objects():
    """Objects whose methods are called: made for each call, because a call may change them."""
    layer = tenon.nn.Linear(2, 3)
    optimizer = tenon.optim.SGD([tenon.nn.Parameter(tenon.ones(2))], lr=0.1, momentum=0.9)
    return {
        "Tensor": tenon.arange(6.0).reshape(2, 3),
        "UntypedStorage": tenon.ones(3).untyped_storage(),
        "Generator": tenon.Generator(),
        "Module": layer,
        "Sequential": tenon.nn.Sequential(layer, tenon.nn.ReLU()),
        "ModuleList": tenon.nn.ModuleList([layer]),
        "ModuleDict": tenon.nn.ModuleDict({"first": layer}),
        "ParameterList": tenon.nn.ParameterList([tenon.ones(2)]),
        "ParameterDict": tenon.nn.ParameterDict({"first": tenon.ones(2)}),
        "BatchNorm2d": tenon.nn.BatchNorm2d(3),
        "MultiheadAttention": tenon.nn.MultiheadAttention(4, 2),
        "CrossEntropyLoss": tenon.nn.CrossEntropyLoss(),
        "Embedding": tenon.nn.Embedding(4, 2),
        "SGD": optimizer,
        "Adam": tenon.optim.Adam([tenon.nn.Parameter(tenon.ones(2))]),
        "StepLR": tenon.optim.lr_scheduler.StepLR(optimizer, 2),
        "Graph": tenon.graph.pygraph(),
    }


@cache
def callables():
    found = OrderedDict()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted({*dir(module), *getattr(module, "__all__", ())}):
            value = getattr(module, name, None)
            full = f"{module_name}.{name}"
            home = getattr(value, "__module__", None) or "tenon"
            public = not name.startswith("_") and callable(value) and str(home).startswith("tenon") and home not in HELPERS
            public = public and not (inspect.isclass(value) and issubclass(value, (BaseException, enum.Enum)))
            if public and full not in LEFT_OUT:
                found[full] = Callable(full, value, *parameters_of(value))
    for kind, value in objects().items():
        for name in sorted(dir(value)):
            if (name.startswith("_") and name not in PROTOCOLS) or not callable(getattr(type(value), name, None)):
                continue
            if name == "__contains__" and kind.endswith("Dict"):  # Python's own: of what cannot be a key
                continue
            full = f"{kind}.{name}"
            method = lambda *args, kind=kind, name=name, **kwargs: getattr(objects()[kind], name)(*args, **kwargs)  # noqa: E731
            count = PROTOCOLS.get(name)
            shown = (("first", "second")[:count], count) if count else parameters_of(getattr(value, name))
            found[full] = Callable(full, method, *shown, protocol=bool(count))
    return list(found.values())


@cache
def _known_words():
    words = {c.name.rpartition(".")[2] for c in callables()} | {c.name.split(".")[-2] for c in callables()}
    return words | {"DLPack", "dlpack", "__dlpack__"} | {name.partition("::")[2].partition(".")[0] for name in tenon.dispatch.operators()} - {"tenon", "nn"}


def _is_quoted(value, text):
    """Whether the text shows an argument that is a name or a path."""
    if isinstance(value, bytes):  # a path, which errors show as text
        return bool(value) and repr(os.fsdecode(value)) in text
    if isinstance(value, (str, pathlib.PurePath)):
        return repr(str(value)) in text or f"'{value}'" in text or (len(str(value)) > 2 and str(value) in text)
    if repr(value) == text:  # a KeyError of a dict
        return True
    # What NumPy says of an array that a program takes for a truth value.
    return isinstance(value, np.ndarray) and text.startswith("The truth value of an")


def is_named(text, called, given):
    """Whether a message says what went wrong where: the function, one of its arguments, or an operator that it is made of."""
    # linalg.inv is the function linalg_inv.
    words = {word.strip("_") for word in re.findall(r"\w+", f"{text} {text.replace('.', '_', 1)}")}
    if re.search(r"argument '\w+'|`\w+`", text) or any(map(lambda v: _is_quoted(v, text), given)):
        return True
    if called.words & words:
        return True
    # What Python says of a signature: "_Activation.__init__() takes 2 positional arguments ..."
    if re.match(r"[\w.<>]+\(\) (takes|missing|got) |cannot create '[\w.]+' instances", text):
        return True
    # "conv2d: ...", "conv2d(): ...", "Linear.forward() ..."
    head = re.match(r"([\w.]+)(\(\))?(:| )", text)
    if head and set(head[1].split(".")) & _known_words():
        return True
    # What an object that was handed in raises of its own accord names that object.
    return any(getattr(v, "__name__", None) in words or type(v).__name__ in words and callable(v) for v in given)
