"""Opencl in what every device must stand: memory with work pending, what keeps it loaded, checkpoints."""

import io

import numpy as np
import pytest

import tenon
from tests.devices.opencl_programs import run, same


def test_memory_of_another_stream_waits(opencl):
    """S2: a block that another stream uses is not handed out again until that has passed."""
    side = opencl.Stream()
    for i in range(30):
        x = tenon.full((1 << 19,), float(i), device="opencl")
        side.wait_stream(opencl.current_stream())
        with opencl.stream(side):
            y = x * 2 + 1
        x.record_stream(side)
        del x
        tenon.full((1 << 19,), -1.0, device="opencl")  # in its place, if it were free
        side.synchronize()
        assert y[0].item() == y[-1].item() == 2 * i + 1


def test_resizing_setting_and_dropping_with_work_pending(opencl):
    """S4"""
    x = tenon.arange(100_000.0, device="opencl") * 1
    view = x[10:20]
    y = x.exp()
    x.resize_(300_000)
    assert x[99_999].item() == 99_999 and view.tolist() == list(range(10, 20))
    z = (x[:100_000] + 1).set_(y)
    assert z.data_ptr() == y.data_ptr()
    del x, y
    last = (view * 3)[::2]
    del view
    kept = last + 1
    del last
    for _ in range(20):
        tenon.zeros(100_000, device="opencl")
    assert kept.tolist() == [31, 37, 43, 49, 55]
    same(z[:3], tenon.arange(3.0).exp())


def test_tensors_without_elements_and_beyond_memory(opencl):
    """S6"""
    empty = tenon.empty(0, 3, device="opencl")
    for t in (empty, empty.t(), empty[:, 1:], empty.expand(4, 0, 3), tenon.ones(3, device="opencl")[3:]):
        assert (t + 1).shape == t.shape and t.cpu().numel() == 0 and t.clone().to(tenon.int16).tolist() is not None
    assert empty.sum().item() == 0
    for size in (1 << 45, (1 << 62,), (1 << 40, 1 << 40)):
        with pytest.raises((MemoryError, RuntimeError, ValueError)):
            tenon.empty(size, device="opencl")
    assert tenon.ones(2, device="opencl").tolist() == [1, 1]


def test_a_tensor_on_the_device_is_itself(opencl):
    """S29"""
    x = tenon.ones(2, device="opencl")
    assert x.to("opencl") is x and x.to("opencl:0") is x and x.opencl() is x and x.is_opencl


@pytest.mark.parametrize("what", ["stream", "event", "timed event", "saved", "pinned", "shared"])
def test_unloading_is_refused_while_something_lives(what):
    """S16"""
    program = {
        "stream": "kept = device.Stream()",
        "event": "kept = device.current_stream().record_event()",
        "timed event": "kept = device.Event(enable_timing=True); kept.record()",
        "saved": "kept = tenon.ones(3, device='opencl', requires_grad=True).exp()",
        "pinned": "kept = tenon.zeros(10, pin_memory=True)",
        "shared": "kept = tenon.ones(3, device='opencl').__dlpack__()",
    }[what]
    run(f"""
device = tenon.load_device(path)
{program}
try:
    tenon.unload_device("opencl")
except RuntimeError as error:
    assert "opencl" in str(error) and "1" in str(error), error
else:
    raise AssertionError
assert (tenon.ones(2, device="opencl") + 1).tolist() == [2, 2]
del kept
tenon.unload_device("opencl")
tenon.load_device(path)
assert (tenon.ones(2, device="opencl") + 1).tolist() == [2, 2]
""")


def test_checkpoints(opencl):
    """S31"""

    def model(where):
        tenon.manual_seed(3)
        return tenon.nn.Sequential(tenon.nn.Linear(4, 8), tenon.nn.ReLU(), tenon.nn.Linear(8, 2)).to(where)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()

    tenon.set_strict(True)
    try:
        x = tenon.randn(6, 4)
        here, there = model("cpu"), model("opencl")
        adam, other = (tenon.optim.Adam(m.parameters(), lr=0.1) for m in (here, there))
        for m, optimizer, where in ((here, adam, "cpu"), (there, other, "opencl")):
            step(m, optimizer, x.to(where))
        file = io.BytesIO()
        tenon.save({"model": there.state_dict(), "adam": other.state_dict()}, file)
        file.seek(0)
        loaded = tenon.load(file)
        assert {t.device.type for t in loaded["model"].values()} == {"opencl"}
        again = model("opencl")
        again.load_state_dict(loaded["model"])
        resumed = tenon.optim.Adam(again.parameters(), lr=0.1)
        resumed.load_state_dict(loaded["adam"])
        step(here, adam, x)
        step(again, resumed, x.to("opencl"))
        for a, b in zip(again.parameters(), here.parameters()):
            same(a, b.detach())
        file.seek(0)
        assert {t.device.type for t in tenon.load(file, map_location="cpu")["model"].values()} == {"cpu"}
    finally:
        tenon.set_strict(False)


def test_a_graph_over_the_host_and_the_device_has_the_cpus_gradients(opencl, openreg):
    """S22"""
    rng = np.random.default_rng(1)
    a = tenon.tensor(rng.normal(size=(5, 3)).astype(np.float32))

    def gradients(first, second):
        x = a.clone().requires_grad_()
        y = (x.to(first).sigmoid() * x.to(second).to(first)).to(second).tanh()
        (y.to("cpu") * x).backward(a)
        return x.grad

    want = gradients("cpu", "cpu")
    assert gradients("opencl", "openreg").equal(want) and gradients("openreg", "opencl").equal(want)
