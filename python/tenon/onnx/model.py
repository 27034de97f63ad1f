"""Model: a network in an ONNX file as a module."""

from __future__ import annotations

from .. import _C, nn
from ..arguments import describe, path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import dtype
    from ..types import Path


class _Program:
    """What runs: it never changes, so copies of a model share it."""

    def __init__(self, source: Any, is_bytes: bool):
        self.handle = _C._onnx.load(source, is_bytes)

    def __deepcopy__(self, memo: Any) -> _Program:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("onnx.Model: a model cannot be pickled; save its state_dict(), and load the file again")


class Port:
    """What a model takes or returns: its `name`, its `dtype` or None, and its `shape`, a list of ints, of names that several may
    share, and of None where any number fits; or None if the file does not say how many dimensions there are."""

    __slots__ = ("name", "dtype", "shape", "_text")

    def __init__(self, name: str, dtype: dtype | None, shape: list[int | str | None] | None, text: str):
        self.name, self.dtype, self.shape, self._text = name, dtype, shape, text

    def __repr__(self) -> str:
        return f"{self.name}: {self._text}"


class Model(nn.Module):
    """A network that `load` has read. Its floating-point weights are parameters; the names in `state_dict()` are the file's.

    A call takes the inputs in the file's order or by name, and returns the output, or a tuple of all outputs. A sequence is a list
    of tensors; None is an optional input that is absent. Training changes the weights alone: norms keep the statistics of the file, and
    dropout does what the file says.
    """

    #: Inputs and outputs, in the file's order.
    inputs: list[Port]
    outputs: list[Port]

    def __init__(self, source: Any, is_bytes: bool):
        super().__init__()
        self._program = _Program(source, is_bytes)
        ports = _C._onnx.ports(self._program.handle)
        self.inputs, self.outputs = ([Port(*port) for port in side] for side in ports)
        self._places = {port.name: i for i, port in enumerate(self.inputs)}
        parameters, buffers = _C._onnx.weights(self._program.handle)
        #: Where each weight is: a module, and its name there.
        self._weights: list[tuple[nn.Module, str]] = []
        for name, value in parameters:
            module, last = self._place_of(name)
            module.register_parameter(last, nn.Parameter(value))
            self._weights.append((module, last))
        for name, value in buffers:
            module, last = self._place_of(name)
            module.register_buffer(last, value)
            self._weights.append((module, last))

    def _place_of(self, name: str) -> tuple[nn.Module, str]:
        """The module for a weight called `name`, and its name in it: "a.b.weight" is `weight` of `b` of `a`."""
        *path, last = name.split(".")
        module: nn.Module = self
        if not last or not all(path):
            return self, name.replace(".", "_") or "_"
        for part in path:
            inner = module.__dict__.get(part)
            if not isinstance(inner, nn.Module):
                if hasattr(module, part):
                    return self, name.replace(".", "_")
                inner = nn.Module()
                module.add_module(part, inner)
            module = inner
        if hasattr(module, last):
            return self, name.replace(".", "_")
        return module, last

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        inputs: list[Any] = list(args)
        if kwargs:
            inputs += [None] * (len(self.inputs) - len(inputs))
            for name, value in kwargs.items():
                place = self._places.get(name)
                if place is None:
                    raise TypeError(f"onnx.Model: it has no input '{name}'; its inputs are {self._names()}")
                if place < len(args):
                    raise TypeError(f"onnx.Model: input '{name}' was given twice")
                inputs[place] = value
        weights = [getattr(module, name) for module, name in self._weights]
        outputs = _C._onnx.run(self._program.handle, inputs, weights)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _names(self) -> str:
        return ", ".join(f"'{port.name}'" for port in self.inputs) or "none"

    def extra_repr(self) -> str:
        inputs, outputs = (", ".join(map(repr, side)) for side in (self.inputs, self.outputs))
        return f"{inputs} -> {outputs}"


def source_of(function: str, source: Any) -> tuple[Any, bool]:
    """What the extension takes for a path or the bytes of a file."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source, True
    if hasattr(source, "__fspath__") or isinstance(source, str):
        return path_of(function, source), False
    raise TypeError(f"{function}: `source` is a path or the bytes of a model, not {describe(source)}")


def load(source: Path | bytes | bytearray | memoryview) -> Model:
    """Reads a model from a file, or from its bytes. The file is mapped, so that large weights are read when they are used; external
    data must be in the file's folder or below.

    Raises ValueError for a file that is damaged or of another kind, and NotImplementedError that lists all operators and types
    which the model needs and Tenon lacks.
    """
    return Model(*source_of("onnx.load", source))
