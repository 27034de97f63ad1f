"""Derivatives of nodes, against finite differences in float64."""

import numpy as np
import pytest

import tenon

from onnx_networks import load, node, tensor

rng = np.random.default_rng(0)
draw = lambda *shape: rng.standard_normal(shape)
each = rng.integers(-3, 3, (2, 4))
places = np.array([[2, -1], [0, 0], [-2, 3]])


def cases():
    yield "Gather", [draw(3, 4), np.array([[-1, 0], [0, 2]])], {"axis": 1}
    yield "GatherElements", [draw(3, 4), each], {"axis": 0}
    yield "GatherND", [draw(3, 4, 2), np.array([[[1], [-1]]] * 3)], {"batch_dims": 1}
    for reduction in ("none", "add", "mul", "min", "max"):
        index = np.array([[0, -1, 1, 2], [1, 0, -1, 0]]) if reduction == "none" else each
        yield "ScatterElements", [draw(3, 4), index, draw(2, 4)], {"axis": 0, "reduction": reduction}
        twice = places if reduction == "none" else np.concatenate([places, places[:1]])
        yield "ScatterND", [draw(3, 4, 2), twice, draw(len(twice), 2)], {"reduction": reduction}
    yield "TensorScatter", [draw(2, 5, 3), draw(2, 2, 3), np.array([1, 3])], {}
    yield "Compress", [draw(3, 4), np.array([True, False, True])], {"axis": 1}
    yield "Unique", [draw(6)], {}
    yield "OneHot", [np.array([1, -1]), np.int64(3), draw(2)], {}
    yield "DFT", [draw(2, 6, 1)], {"onesided": 1}
    yield "DFT", [draw(2, 6, 2)], {"inverse": 1}
    yield "NegativeLogLikelihoodLoss", [draw(2, 3, 4), rng.integers(0, 3, (2, 4)), rng.random(3)], {"ignore_index": 1}
    yield "SoftmaxCrossEntropyLoss", [draw(5, 3), rng.integers(0, 3, 5)], {}


@pytest.mark.parametrize("op, inputs, attributes", list(cases()))
def test_derivatives_are_those_of_finite_differences(op, inputs, attributes):
    names = " ".join(f"i{k}" for k in range(len(inputs)))
    model = load([node(op, names, "y", **attributes)], names, "y", opset=24)
    values = [tensor(value) for value in inputs]
    trained = [k for k, value in enumerate(inputs) if value.dtype == np.float64]
    if op == "NegativeLogLikelihoodLoss":
        trained = trained[:1]  # classes' weights have no derivative, as PyTorch's
    for k in trained:
        values[k].requires_grad_()
    out = model(*values)
    weight = draw(*out.shape)
    (out * tensor(weight)).sum().backward()
    for k in trained:
        numeric = np.zeros(inputs[k].size)
        for i in range(numeric.size):
            sides = []
            for step in (1e-6, -1e-6):
                moved = inputs[k].copy()
                moved.flat[i] += step
                sides.append((model(*(tensor(moved if j == k else value) for j, value in enumerate(inputs))).numpy() * weight).sum())
            numeric[i] = (sides[0] - sides[1]) / 2e-6
        np.testing.assert_allclose(values[k].grad.numpy().reshape(-1), numeric, rtol=1e-6, atol=1e-8)
