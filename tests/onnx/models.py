"""Small ONNX models for the tests, written down with onnx.helper."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

OPSET = 17
FLOAT = TensorProto.FLOAT


def port(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name, values):
    return numpy_helper.from_array(np.asarray(values), name)


def model_of(nodes, inputs, outputs, constants=(), opset=OPSET, functions=(), domains=()):
    """The bytes of a model."""
    graph = helper.make_graph(list(nodes), "test", list(inputs), list(outputs), list(constants))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    made = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=8)
    return made.SerializeToString()


def mlp(rng, sizes=(3, 5, 2)):
    """A perceptron and its weights by name: fc1.weight [5, 3], fc1.bias [5], fc2.weight, fc2.bias."""
    weights = {}
    for i, (inner, outer) in enumerate(zip(sizes, sizes[1:]), 1):
        weights[f"fc{i}.weight"] = rng.standard_normal((outer, inner)).astype(np.float32)
        weights[f"fc{i}.bias"] = rng.standard_normal(outer).astype(np.float32)
    nodes = [
        helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "fc2.weight", "fc2.bias"], ["y"], transB=1),
    ]
    data = model_of(nodes, [port("x", ["batch", sizes[0]])], [port("y", ["batch", sizes[-1]])],
                    [constant(*item) for item in weights.items()])  # fmt: skip
    return data, weights
