"""A device from a plug-in: tensors, operators on host copies, streams, and what is refused."""

import copy
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tenon
from tests.devices.conftest import OPENREG
from tests.devices.programs import run, run_on

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_a_module_for_each_device(openreg, lazyreg):
    assert openreg.device_count() == 2 and lazyreg.device_count() == 1
    assert tenon.openreg is openreg and tenon.lazyreg is lazyreg
    assert openreg.is_available() and openreg.current_device() == 0
    with openreg.device(1):
        assert openreg.current_device() == 1
        assert tenon.zeros(1, device="openreg").device == tenon.device("openreg:1")
    assert openreg.current_device() == 0
    with pytest.raises(RuntimeError, match="there is no device openreg:2; backend openreg has 2"):
        openreg.set_device(2)
    with pytest.raises(ValueError, match="expected a device of openreg"):
        openreg.synchronize("lazyreg")
    with pytest.raises(AttributeError, match="no attribute 'warp'"):
        openreg.warp


def test_there_and_back(device):
    a = np.arange(24.0).reshape(2, 3, 4)
    x = tenon.tensor(a).to(device)
    assert x.device.type == device and getattr(x, f"is_{device}")
    np.testing.assert_array_equal(x.cpu().numpy(), a)
    assert getattr(tenon.ones(2), device)().device.type == device
    np.testing.assert_array_equal(x.flip(0).transpose(0, 2)[::2].cpu().numpy(), a[::-1].transpose(2, 1, 0)[::2])
    assert x.tolist() == a.tolist() and x[1, 2, 3].item() == 23
    assert f"device='{device}:0'" in repr(x[0, 0])
    y = copy.deepcopy(x)
    assert y.device == x.device and y.data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match=f"the tensor is on {device}:0; move it"):
        x.numpy()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
def test_dtypes_move_and_convert(device, dtype):
    x = tenon.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(tenon, dtype))
    moved = x.to(device)
    assert moved.dtype == x.dtype and moved.cpu().equal(x)
    assert moved.t().to(tenon.float64, copy=True).cpu().equal(x.t().to(tenon.float64)) or dtype == "complex64"


def test_to_the_current_device_is_the_tensor(openreg):
    x = tenon.ones(3, device="openreg:0")
    assert x.to("openreg") is x and x.to("openreg:0") is x
    y = x.to("openreg:1")
    assert y.device == tenon.device("openreg:1") and y.cpu().equal(x.cpu())


def test_operators_run_on_host_copies(device):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 7)), rng.normal(size=(7, 3))
    x, y = tenon.tensor(a, device=device), tenon.tensor(b, device=device)
    np.testing.assert_allclose((x @ y).cpu().numpy(), a @ b, rtol=1e-12)
    np.testing.assert_allclose(x.softmax(1).sum(0).cpu().numpy(), tenon.tensor(a).softmax(1).sum(0).numpy())
    x.add_(1)
    np.testing.assert_array_equal(x.cpu().numpy(), a + 1)
    assert tenon.fallbacks()


def test_a_call_on_host_copies_waits_once(device):
    """And pointwise calls and what goes to the device not at all (S9)."""
    x, y = tenon.randn(4, 5).to(device), tenon.arange(5.0).to(device)

    def waits(call):
        before = tenon.ops.openreg.waits(x)
        call()
        return tenon.ops.openreg.waits(x) - before

    for call in (lambda: x.cumsum(0), lambda: x.t().sort(), lambda: x @ y, lambda: x.cumsum_(1), lambda: y[1].item()):
        assert waits(call) == 1
    for call in (lambda: [x + i for i in range(100)], lambda: tenon.full((3,), 2.0, device=device), lambda: tenon.ones(3).to(device)):
        assert waits(call) == 0


def test_pointwise_operators_run_on_the_device(device):
    tenon.reset_fallbacks()
    a = tenon.randn(6, 5)
    for dtype in (tenon.float32, tenon.float64, tenon.bfloat16, tenon.complex64):
        host = a.to(dtype)
        there = host.to(device)
        for f in (lambda x: x * x + 1, lambda x: x.exp(), lambda x: tenon.sin(x).t()[:, ::2] * 2, lambda x: x.sum(0) / 3):
            assert f(there).cpu().equal(f(host)), dtype
    x = a.to(device).requires_grad_()
    y = a.clone().requires_grad_()
    for t in (x, y):
        (t.tanh() * t.sigmoid() + t.relu()).backward(tenon.ones_like(t))
    assert x.grad.cpu().equal(y.grad)
    fell_back = {f.name if hasattr(f, "name") else str(f) for f in tenon.fallbacks()}
    assert all("sum" in name for name in fell_back), fell_back


def test_gradients(device):
    x = tenon.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.device == x.device and x.grad.tolist() == [2, 4, 6]


def test_streams_and_events(openreg):
    stream = openreg.Stream()
    assert stream != openreg.current_stream()
    with openreg.stream(stream):
        assert openreg.current_stream() == stream
        x = tenon.full((1000,), 3.0, device="openreg") * 2
        done = stream.record_event()
    done.wait(openreg.current_stream())
    done.synchronize()
    assert done.query() and x.sum().item() == 6000


def test_memory_is_cached_and_counted():
    """W14, in a process of its own."""
    run("""
openreg = tenon.load_device(sys.argv[1], options={"memory": 64 << 20})
x = tenon.empty(1 << 20, device="openreg")
address, before = x.data_ptr(), openreg.memory_stats()
assert before["allocated_bytes.all.current"] == 4 << 20 == openreg.memory_allocated()
del x
y = tenon.empty(1 << 20, device="openreg")
after = openreg.memory_stats()
assert y.data_ptr() == address and after["num_device_alloc"] == before["num_device_alloc"]
del y
openreg.empty_cache()
assert openreg.memory_reserved() == 0 and openreg.mem_get_info() == (64 << 20, 64 << 20)
z = tenon.ones(100, device="openreg")
openreg.empty_cache()
assert z.sum().item() == 100 and openreg.memory_reserved() >= openreg.memory_allocated() > 0
assert len([k for k in after if not k.startswith(("fragmentation", "waste"))]) == 122
assert "openreg:0" in openreg.memory_summary() and openreg.memory_snapshot()[0]["blocks"]
try:
    tenon.empty(65 << 20, dtype=tenon.uint8, device="openreg")
except MemoryError as error:
    assert "64.0 MiB" in str(error), error
assert (z + 1).sum().item() == 200
""")


def test_record_stream_keeps_memory_from_being_reused():
    """S2: without it, the lazy device shows the fault."""
    for recorded in (True, False):
        out = run(f"""
lazy = tenon.load_device(sys.argv[1], options={{"mode": "lazy", "devices": 1}})
stream = lazy.Stream()
x = tenon.full((1000,), 1.0, device="openreg")
lazy.synchronize()
with lazy.stream(stream):
    y = tenon.empty(1000, device="openreg")
    y.copy_(x)
if {recorded}:
    x.record_stream(stream)
del x
z = tenon.full((1000,), 7.0, device="openreg")
lazy.synchronize()
stream.synchronize()
print(y[0].item())
""")
        assert out == ("1.0\n" if recorded else "7.0\n")


def test_what_cannot_be_is_refused(openreg, lazyreg):
    x = tenon.ones(2, device="openreg")
    with pytest.raises(RuntimeError, match="openreg.*lazyreg|lazyreg.*openreg"):
        x + tenon.ones(2, device="lazyreg")
    with pytest.raises(MemoryError, match="not to be had.*GiB"):
        tenon.empty(1 << 40, device="openreg")
    with pytest.raises(ValueError, match="no loaded device is called 'gizmo'"):
        tenon.ones(1, device="gizmo")
    with pytest.raises(RuntimeError, match="cannot open shared object"):
        tenon.load_device("/nowhere/device.so")


@pytest.mark.parametrize("mode", ["thread", "sync", "lazy", "random"])
def test_digits_train_to_the_same_bits(mode, tmp_path):
    program = """
import sys, struct, tenon
sys.path.insert(0, sys.argv[1])
import digits
tenon.load_device(sys.argv[2], options={"mode": sys.argv[3], "devices": 1})
pixels, labels = digits.load_digits(digits.DATA)
digits.EPOCHS = 2
host = digits.train(pixels, labels, 0, progress=False)
there = digits.train(pixels.to("openreg"), labels.to("openreg"), 0, progress=False)
assert struct.pack(f"{len(host[0])}f", *host[0]) == struct.pack(f"{len(there[0])}f", *there[0])
assert host[1] == there[1]
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "examples/digits"), str(OPENREG), mode], capture_output=True, text=True
    )
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.parametrize("mode", ["thread", "sync", "lazy", "random"])
def test_exit_with_work_pending_and_tensors_alive(mode):
    run(f"""
openreg = tenon.load_device(sys.argv[1], options={{"mode": "{mode}"}})
kept = [tenon.ones(1000, device="openreg") * i for i in range(20)]
with openreg.stream(openreg.Stream()):
    kept.append(tenon.ones(100000, device="openreg:0").copy_(tenon.zeros(100000)))
event = openreg.current_stream().record_event()
""")


@pytest.mark.parametrize("device", ["thread", "opencl"])
def test_a_child_of_fork_computes_on_the_host_and_is_refused_the_device(device):
    """S17"""
    out = run_on(device, """
x = tenon.ones(3, device=NAME) * 2
child = os.fork()
if child == 0:
    try:
        x + 1
    except RuntimeError as error:
        assert "belongs to the process that loaded it" in str(error), error
        assert tenon.ones(3).add_(1).sum().item() == 6
        del x
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(x.tolist())
""")
    assert out == "[2.0, 2.0, 2.0]\n"


def test_loading_by_name():
    out = run("print(tenon.ones(2, device='openreg:1').tolist(), tenon.openreg.device_count())", TENON_PLUGIN_PATH=str(OPENREG.parent))
    assert out == "[1.0, 1.0] 2\n"
    out = run("""
try:
    tenon.ones(2, device="openreg")
except ValueError as error:
    print("refused")
""", TENON_PLUGIN_PATH=":.:backends")
    assert out == "refused\n"


def test_the_first_device_adopts_privateuse1():
    run("""
library = tenon.library.Library("mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x, "CUDA")
library.impl("twice", lambda x: x * 2, "PrivateUse1")
tenon.load_device(sys.argv[1])
assert tenon.ops.mine.twice(tenon.ones(2, device="openreg")).tolist() == [2, 2]
assert str(tenon._C.dispatch.key_set(tenon.ones(1, device="openreg"))) == "DispatchKeySet(OpenReg)"
""")


def test_a_stub_of_the_plugin_serves_its_dtype_and_declines_others(openreg):
    tenon.reset_fallbacks()
    assert tenon.full((2, 3), 1.5, device="openreg").t().fill_(2.5).tolist() == [[2.5, 2.5]] * 3
    assert not [f for f in tenon.fallbacks() if "fill" in str(f)]
    assert tenon.full((2, 3), 7, dtype=tenon.int16, device="openreg").tolist() == [[7] * 3] * 2


def test_the_stub_of_abs(openreg):
    filled = {s.name: s.devices for s in tenon.dispatch.stubs()}
    assert "openreg" in filled["abs"] and "openreg" in filled["fill"] and "openreg" not in filled["sort"]
    assert "cpu" in filled["abs"] and "cpu" in filled["sort"]
    a = np.random.default_rng(3).normal(size=(4, 6)).astype(np.float32)
    x = tenon.tensor(a, device="openreg")
    for view in (lambda t: t, lambda t: t.T, lambda t: t[1:, ::2]):
        np.testing.assert_array_equal(view(x).abs().cpu().numpy(), np.abs(view(a)))
    np.testing.assert_array_equal(x.double().abs().cpu().numpy(), np.abs(a.astype(np.float64)))  # declined: by its expression
    y = x.clone().requires_grad_()
    y.abs().sum().backward()
    np.testing.assert_array_equal(y.grad.cpu().numpy(), np.sign(a))
    x[:, 1:].abs_()
    assert x[0, 0].item() == a[0, 0] and (x[:, 1:] >= 0).all().item()


def test_kernels_of_the_plugin(openreg, lazyreg):
    for name in ("openreg", "lazyreg"):
        x = tenon.tensor([[1.0, -2.0], [-3.0, 4.0]], device=name)
        assert tenon.ops.openreg.custom_abs(x.t()).tolist() == [[1, 3], [2, 4]]
        x.requires_grad_()
        y = tenon.ops.openreg.custom_abs(x)
        with pytest.raises(RuntimeError, match="custom_abs"):
            y.sum().backward()
    with pytest.raises(NotImplementedError, match="openreg::custom_abs"):
        tenon.ops.openreg.custom_abs(tenon.ones(2))


def test_indices_that_do_not_exist_are_refused(openreg):
    for call in (openreg.mem_get_info, openreg.reset_peak_memory_stats, openreg.reset_accumulated_memory_stats,
                 openreg.memory_stats, openreg.synchronize, openreg.current_stream, openreg.Stream, openreg.Event):  # fmt: skip
        with pytest.raises(RuntimeError, match="there is no device openreg:7; backend openreg has 2"):
            call(7)


@pytest.mark.parametrize("name", ["__init__", "_x", "state_dict", "nn", "float"])
def test_names_that_are_taken_elsewhere_are_refused(name):
    with pytest.raises(ValueError, match="name"):
        tenon.load_device(OPENREG, name=name)


def test_a_device_in_the_place_of_one_that_was_not_there():
    """tenon.xpu answers for a device that is not there until one of that name is; unloading leaves what tensors always have."""
    run("""
assert not tenon.xpu.is_available() and not tenon.ones(1).is_xpu
xpu = tenon.load_device(sys.argv[1], name="xpu")
assert tenon.xpu is xpu and xpu.is_available()
x = tenon.ones(2).xpu()
assert x.is_xpu and not x.is_cpu and not tenon.ones(1).is_xpu
del x
tenon.unload_device("xpu")
assert tenon.ones(1).is_xpu is False and not hasattr(tenon.Tensor, "xpu") and not tenon.xpu.is_available()
""")


def test_a_failed_load_takes_no_place():
    run("""
for i in range(40):
    try:
        tenon.load_device(sys.argv[1], name=f"device{i}", options={"memory": "none"})
    except ValueError:
        pass
    else:
        raise AssertionError
assert tenon.load_device(sys.argv[1], name="last").device_count() == 2
""")


def test_a_copy_of_the_file_is_another_device(tmp_path):
    import shutil

    copied = tmp_path / "copied.so"
    shutil.copy(OPENREG, copied)
    run(f"""
tenon.load_device(sys.argv[1])
tenon.load_device({str(copied)!r}, name="copied")
for name in ("openreg", "copied"):
    assert tenon.ops.openreg.custom_abs(tenon.tensor([-1.0], device=name)).item() == 1
""")


def test_copies_between_devices_follow_the_destinations_stream():
    run("""
openreg = tenon.load_device(sys.argv[1], options={"mode": "lazy"})
a, b = openreg.Stream(0), openreg.Stream(1)
with openreg.stream(a):
    u = tenon.zeros(4, device="openreg:0")
    openreg.synchronize(0)
    u.add_(7)
b.wait_stream(a)
with openreg.stream(b):
    v = u.to("openreg:1")
b.synchronize()
assert v.cpu().tolist() == [7] * 4
with openreg.stream(a):
    u.add_(1)
openreg.synchronize(0)
assert u.cpu().tolist() == [8] * 4, "synchronize waits for all streams"
while not a.query():
    pass
""")
