"""Tensors on a device that can copy bytes and nothing else (tests/ops/blind_device.h), as Python sees them.

Each test runs in a process of its own, because a device stays.
"""

import os
import pathlib
import subprocess
import sys

import pytest

import tenon

PACKAGE = pathlib.Path(tenon._C.__file__).resolve().parent

BEGIN = """
import copy, math, tenon
tenon.ops.load_library({plugin!r})
host = tenon.arange(6, dtype=tenon.float32).reshape(2, 3)
x = host.to("blind")
"""


def run(code, **environment):
    (plugin,) = PACKAGE.parents[1].glob("tests/ops_plugins/blind_device.so")
    done = subprocess.run([sys.executable, "-c", BEGIN.format(plugin=str(plugin)) + code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def test_is_printed_and_described():
    run("""
assert repr(x) == "tensor([[0., 1., 2.],\\n        [3., 4., 5.]], device='blind:0')", repr(x)
assert "blind:0" in tenon.describe(x)
assert x.is_cpu is False and x.device == tenon.device("blind", 0) and x.device.type == "blind"
""")


def test_gives_its_values():
    run("""
assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
assert x[1, 2].item() == 5.0 and float(x[0, 1]) == 1.0 and int(x[1, 0]) == 3
assert bool(x[0, 1] > 0) and not bool(x[0, 0])
assert [row.tolist() for row in x.t()] == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
assert tenon.equal(x.cpu(), host) and x.cpu().device.type == "cpu"
""")


def test_is_no_numpy_array():
    run("""
try:
    x.numpy()
except RuntimeError as e:
    assert str(e) == "numpy: the tensor is on blind:0; move it with .cpu()", e
else:
    raise AssertionError("numpy() gave something")
assert x.numpy(force=True).tolist() == host.tolist()
""")


def test_a_deep_copy_is_on_the_same_device():
    run("""
y = copy.deepcopy(x)
assert y.device == x.device and y.data_ptr() != x.data_ptr() and y.tolist() == x.tolist()
both = copy.deepcopy([x, x.t()])
both[0].zero_()
assert both[1].tolist() == [[0.0, 0.0]] * 3 and x.tolist() == host.tolist()
""")


def test_to_its_own_device_is_the_tensor_itself():
    run("""
assert x.to("blind") is x and x.to("blind:0") is x and x.to(tenon.device("blind")) is x and x.to(device="blind") is x
assert tenon.as_tensor(x, device="blind") is x and x.to(x) is x
y = x.to("blind:1")
assert y is not x and y.device.index == 1 and y.to("blind") is not y
""")


def test_copies_go_between_two_backends_and_nothing_else_does():
    run("""
y = tenon.zeros(2, 3, device="deaf", dtype=tenon.float64)
before = tenon.hidden_copies()
assert y.copy_(x.t().t()) is y and y.tolist() == host.tolist() and tenon.hidden_copies() == before + 1
assert x.to(y).device.type == "deaf" and x.type_as(y).dtype == tenon.float64
y[0] = x[1]
assert y.tolist() == [[3.0, 4.0, 5.0]] * 2
for mixed in (lambda: x + y, lambda: tenon.cat([x, y]), lambda: tenon.where(x > 0, x, y), lambda: x.add_(y)):
    try:
        mixed()
    except RuntimeError as e:
        assert "the tensors are on more than one accelerator (blind, deaf); move them to one device" in str(e), e
    else:
        raise AssertionError("two accelerators took part in one operator")
""")


def test_what_fell_back_is_counted_and_logged():
    log = run("""
assert tenon.fallbacks() == {}
y = x + x
y = x + x
y.abs_()
assert tenon.fallbacks() == {"aten::add.Tensor": {"calls": 2, "bytes": 96}, "aten::abs_": {"calls": 1, "bytes": 48}}, tenon.fallbacks()
assert tenon.fallbacks("blind") == tenon.fallbacks(device="blind:0") and tenon.fallbacks("cpu") == {}
tenon.reset_fallbacks()
assert tenon.fallbacks() == {}
""", TENON_LOG_FALLBACK="1")  # fmt: skip
    assert log.splitlines() == ["[fallback] aten::add.Tensor on blind:0: 48 bytes copied"] * 2 + [
        "[fallback] aten::abs_ on blind:0: 48 bytes copied"
    ]


def test_a_bad_device_of_fallbacks_is_refused():
    with pytest.raises(TypeError, match="fallbacks.*device"):
        tenon.fallbacks(3.5)


def test_trains_with_the_hosts_bits():
    run("""
def trained(device):
    tenon.manual_seed(3)
    model = tenon.nn.Sequential(tenon.nn.Linear(8, 16), tenon.nn.ReLU(), tenon.nn.Linear(16, 4)).to(device)
    optimizer = tenon.optim.Adam(model.parameters(), lr=0.01)
    data, target = tenon.randn(12, 8).to(device), (tenon.arange(12) % 4).to(device)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = tenon.nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu().numpy().tobytes() for p in model.parameters()]

assert trained("blind") == trained("cpu")
""")
