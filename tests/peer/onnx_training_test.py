"""An imported network is trained further as PyTorch trains the same network: ten steps of AdamW."""

import pathlib
import sys

import numpy as np
import pytest
import tenon

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "onnx"))
from models import constant, helper, model_of, port  # noqa: E402


def network():
    """A convolution, a batch norm, a pool and a layer, in PyTorch and as an ONNX file with the same weights."""
    torch.manual_seed(1)
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(24, 3))
    with torch.no_grad():
        net[1].running_mean.normal_()
        net[1].running_var.uniform_(0.5, 2)
    net.eval()
    state = {name: value.numpy() for name, value in net.state_dict().items() if "batches" not in name}
    nodes = [
        helper.make_node("Conv", ["x", "0.weight", "0.bias"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "1.weight", "1.bias", "1.running_mean", "1.running_var"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("AveragePool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("Gemm", ["e", "5.weight", "5.bias"], ["y"], transB=1),
    ]
    data = model_of(nodes, [port("x", ["n", 2, 4, 4])], [port("y", ["n", 3])], [constant(*item) for item in state.items()])
    return net, tenon.onnx.load(data)


def test_ten_steps_of_adamw():
    theirs, ours = network()
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    rng = np.random.default_rng(0)
    steps = {
        module: optim.AdamW(net.parameters(), lr=0.05) for module, optim, net in ((torch, torch.optim, theirs), (tenon, tenon.optim, ours))
    }
    for _ in range(10):
        x, wanted = rng.standard_normal((8, 2, 4, 4)).astype(np.float32), rng.integers(0, 3, 8)
        for module, net in ((torch, theirs), (tenon, ours)):
            loss = module.nn.functional.cross_entropy(net(module.tensor(x)), module.tensor(wanted))
            steps[module].zero_grad()
            loss.backward()
            steps[module].step()
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters()):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
