"""Sparse constants, and files that would take far more memory than they have bytes."""

import numpy as np
import pytest

import tenon

from onnx_networks import node, port  # noqa: I001
from onnx import helper, numpy_helper


def model_of(places, dims=(3, 4), values=(1.0, 2.0, 3.0)):
    tensor = helper.make_sparse_tensor(numpy_helper.from_array(np.float32(values), "s"), numpy_helper.from_array(np.asarray(places), "p"), dims)
    graph = helper.make_graph([node("Add", "x s", "y")], "test", [port("x", np.float32, [])], [port("y")], sparse_initializer=[tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


@pytest.mark.parametrize("places", [[0, 6, 11], [[0, 0], [1, 2], [2, 3]]])
def test_a_sparse_constant_is_a_dense_one(places):
    expected = np.zeros((3, 4), np.float32)
    expected.reshape(-1)[[0, 6, 11]] = 1, 2, 3
    np.testing.assert_array_equal(tenon.onnx.load(model_of(places))(tenon.tensor(0.0)).detach().numpy(), expected)


@pytest.mark.parametrize("places, dims, words", [
    ([0, 6, 12], (3, 4), r"tensor 's': a sparse tensor of shape \[3, 4\] has a value at 12 of a dimension of 12"),
    ([0, 6, -1], (3, 4), "has a value at -1 of a dimension of 12"),
    ([[0, 0], [1, 2], [2, 4]], (3, 4), "has a value at 4 of a dimension of 4"),
    ([[0, 0], [1, 2], [3, 0]], (3, 4), "has a value at 3 of a dimension of 3"),
    ([0, 0, 0], (0, 1 << 62), "has a value at 0 of a dimension of 0"),
    ([0, 6], (3, 4), "a sparse tensor has a list of values, and for each its place as int64"),
    ([[0], [1], [2]], (3, 4), "a sparse tensor has a list of values, and for each its place as int64"),
    ([0, 1, 2], (1 << 40, 1 << 40), r"tensor 's': a sparse tensor of shape \[1099511627776, 1099511627776\]"),
    ([0, 1, 2], (1 << 20, 1 << 20), "make it much larger than its file"),
])  # fmt: skip
def test_places_that_are_not_there_are_refused(places, dims, words):
    with pytest.raises(ValueError, match=words):
        tenon.onnx.load(model_of(places, dims))


def test_functions_that_multiply_nodes_are_refused():
    """Twenty functions, each of which calls the next one twice."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    call = lambda i, a, b: helper.make_node(f"f{i}", [a], [b], domain="own") if i < 20 else helper.make_node("Neg", [a], [b])
    made = [helper.make_function("own", f"f{i}", ["a"], ["c"], [call(i + 1, "a", "b"), call(i + 1, "b", "c")], opsets) for i in range(20)]
    graph = helper.make_graph([call(0, "x", "y")], "test", [port("x")], [port("y")])
    with pytest.raises(ValueError, match="its functions make more than 100.* nodes"):
        tenon.onnx.load(helper.make_model(graph, functions=made, opset_imports=opsets).SerializeToString())
