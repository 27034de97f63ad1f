"""Small models for the tests of this folder."""

import numpy as np
import pytest

import tenon

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

TYPES = {np.dtype(np.bool_): onnx.TensorProto.BOOL, **{np.dtype(t): helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in
         (np.float32, np.float64, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8)}}  # fmt: skip


def port(name, dtype=None, shape=None):
    """A value of a graph, of a dtype of NumPy."""
    return helper.make_tensor_value_info(name, TYPES[np.dtype(dtype)] if dtype else onnx.TensorProto.UNDEFINED, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def graph(nodes, inputs, outputs, **constants):
    """A graph inside of a node: its inputs and outputs are names, or ports."""
    ports = [[port(one) if isinstance(one, str) else one for one in side] for side in (inputs, outputs)]
    return helper.make_graph(nodes, "inner", *ports, [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])


def load(nodes, inputs, outputs, opset=21, **constants):
    """A model of some nodes; `inputs` and `outputs` are names."""
    made = helper.make_model(graph(nodes, inputs.split(), outputs.split(), **constants), opset_imports=[
        helper.make_opsetid(domain, version) for domain, version in (("", opset), ("com.microsoft", 1), ("ai.onnx.ml", 3), ("ai.onnx.preview.training", 1))])  # fmt: skip
    return tenon.onnx.load(made.SerializeToString())


def run(op, *inputs, opset=21, outputs=1, domain="", **attributes):
    """The results of one node, as arrays. An input that is None is absent."""
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(inputs)]
    results = [f"o{k}" for k in range(outputs)]
    made = load([helper.make_node(op, names, results, domain=domain, **attributes)], " ".join(filter(None, names)), " ".join(results), opset)
    out = made(*(tensor(value) for value in inputs if value is not None))
    return out.numpy() if outputs == 1 else [one.numpy() for one in out]


def tensor(value):
    value = np.asarray(value)
    return tenon.tensor(value.item(), dtype=getattr(tenon, value.dtype.name)) if value.ndim == 0 else tenon.from_numpy(value)
