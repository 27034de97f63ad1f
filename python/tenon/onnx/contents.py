"""What an ONNX file is made of, whether or not Tenon can run it."""

from __future__ import annotations

from .. import _C
from .model import Port, source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..types import Path


class Operator:
    """An operator that a file uses: `domain` (empty for the standard's own), `name`, the version `opset` that the file asks for, how
    many nodes there are, the first of them, and whether Tenon computes it."""

    __slots__ = ("domain", "name", "opset", "num_nodes", "first_node", "is_known")

    def __init__(self, domain: str, name: str, opset: int, num_nodes: int, first_node: str, is_known: bool):
        self.domain, self.name, self.opset = domain, name, opset
        self.num_nodes, self.first_node, self.is_known = num_nodes, first_node, is_known

    def __repr__(self) -> str:
        name = f"{self.domain}:{self.name}" if self.domain else self.name
        return f"Operator({name}, opset={self.opset}, num_nodes={self.num_nodes}, is_known={self.is_known})"


class Contents:
    """What `contents` returns: `producer`, `ir_version`, `metadata` (a dictionary of texts), `inputs` and `outputs`, `operators`, the number of elements of all weights,
    and `missing`: all that keeps the model from running, a sentence each."""

    __slots__ = ("producer", "ir_version", "metadata", "inputs", "outputs", "operators", "num_weights", "missing")

    def __init__(self, found: tuple):
        self.producer, self.ir_version, metadata, inputs, outputs, operators, self.num_weights, self.missing = found
        self.metadata = dict(metadata)
        self.inputs, self.outputs = ([Port(*port) for port in side] for side in (inputs, outputs))
        self.operators = [Operator(*op) for op in operators]


    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        sides = {
            side: [{"name": port.name, "dtype": port.dtype and str(port.dtype), "shape": port.shape} for port in getattr(self, side)]
            for side in ("inputs", "outputs")
        }
        operators = [{name: getattr(op, name) for name in op.__slots__} for op in self.operators]
        return {"producer": self.producer, "ir_version": self.ir_version, "metadata": self.metadata, **sides, "num_weights": self.num_weights,
                "operators": operators, "missing": self.missing}  # fmt: skip

    def __str__(self) -> str:
        facts = [("producer", self.producer or "not said"), ("weights", f"{self.num_weights:,} elements")]
        facts += [(side[:-1], repr(port)) for side in ("inputs", "outputs") for port in getattr(self, side)]
        lines = [f"{name:10}{value}" for name, value in facts]
        names = [f"{op.domain}:{op.name}" if op.domain else op.name for op in self.operators]
        width = max(map(len, [*names, "operator"]))
        lines += ["", f"{'operator':{width}}  version  nodes"]
        for op, name in zip(self.operators, names):
            lines.append(f"{name:{width}}  {op.opset or '':7}  {op.num_nodes:5}{'' if op.is_known else '  MISSING'}")
        return "\n".join([*lines, "", *(["Tenon does not have:", *map("  {}".format, self.missing)] if self.missing else ["Tenon runs it."])])

def contents(source: Path | bytes | bytearray | memoryview) -> Contents:
    """Reads what a model is made of, from a file or from its bytes. Raises ValueError for one that is damaged or of another kind."""
    return Contents(_C._onnx.contents(*source_of("onnx.contents", source)))
