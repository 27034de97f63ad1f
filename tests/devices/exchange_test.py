"""S30 to S32: tensors of devices in checkpoints, pickles, deep copies and DLPack, and what is printed of them."""

import collections
import copy
import io
import pickle

import numpy as np
import pytest
from tests.devices.conftest import OPENREG
from tests.devices.openreg_test import run

import tenon


def saved(value):
    file = io.BytesIO()
    tenon.save(value, file)
    file.seek(0)
    return file


def test_a_checkpoint_keeps_the_device(openreg, lazyreg):
    x = tenon.arange(6.0, device="openreg:1").view(2, 3).t()
    state = {"x": x, "deep": [(x * 2, tenon.ones(2))], "lazy": tenon.ones(2, dtype=tenon.bfloat16, device="lazyreg"),
             "leaf": tenon.ones(2, device="openreg").requires_grad_(), "none": tenon.empty(0, 3, device="openreg")}  # fmt: skip
    got = tenon.load(saved(state))
    assert got["x"].device == x.device and got["x"].equal(x) and got["x"].cpu().tolist() == x.tolist()
    assert [t.device.type for t in got["deep"][0]] == ["openreg", "cpu"] and got["deep"][0][0].equal(x * 2)
    assert got["lazy"].device.type == "lazyreg" and got["lazy"].dtype is tenon.bfloat16
    assert got["leaf"].requires_grad and got["leaf"].is_leaf and got["none"].shape == (0, 3)
    assert pickle.loads(pickle.dumps(x)).device == x.device
    parameter = tenon.nn.Parameter(tenon.ones(2, device="openreg"))
    assert isinstance(tenon.load(saved(parameter)), tenon.nn.Parameter)
    with pytest.raises(RuntimeError, match="a tensor on meta has no elements"):
        tenon.save(tenon.empty(2, device="meta"), io.BytesIO())


@pytest.mark.parametrize(
    "where, want",
    [
        ("cpu", ["cpu", "cpu", "cpu"]), (tenon.device("cpu"), ["cpu", "cpu", "cpu"]), ("openreg:1", ["openreg:1"] * 3),
        ({"openreg:1": "cpu"}, ["cpu", "lazyreg:0", "cpu"]), ({"openreg:1": "openreg:0", "cpu": "lazyreg"}, ["openreg:0", "lazyreg:0", "lazyreg:0"]),
        ({}, ["openreg:1", "lazyreg:0", "cpu"]), (lambda storage, location: storage, ["cpu", "cpu", "cpu"]),
        (lambda storage, location: None, ["openreg:1", "lazyreg:0", "cpu"]),
        (lambda storage, location: storage.to("openreg:0") if location == "openreg:1" else storage.cpu(), ["openreg:0", "cpu", "cpu"]),
    ],
)  # fmt: skip
def test_map_location(openreg, lazyreg, where, want):
    """As torch.load: a device, a dict from saved to other devices, or a function of the storage and its device."""
    x = tenon.arange(6.0).view(2, 3)
    values = [x.to("openreg:1").requires_grad_(), x.t().to("lazyreg"), tenon.nn.Parameter(x)]
    got = tenon.load(saved(values), map_location=where)
    assert [str(t.device) for t in got] == want
    assert [t.tolist() for t in got] == [x.tolist(), x.t().tolist(), x.tolist()]
    assert [t.requires_grad for t in got] == [True, False, True] and all(t.is_leaf for t in got)
    assert type(got[2]) is tenon.nn.Parameter


def test_what_map_location_refuses(openreg):
    file = saved(tenon.ones(2, device="openreg:1"))

    def load(where):
        file.seek(0)
        return tenon.load(file, map_location=where)

    with pytest.raises(TypeError, match="map_location must be a device, its name, a dict or a function, got int"):
        load(3)
    with pytest.raises(TypeError, match="map_location must return an UntypedStorage or None, got str"):
        load(lambda storage, location: "cpu")
    with pytest.raises(TypeError, match="map_location must name devices, got int for 'openreg:1'"):
        load({"openreg:1": 0})
    with pytest.raises(RuntimeError, match="map_location: .*gizmo"):
        load("gizmo")
    with pytest.raises(RuntimeError, match="map_location: there is no device openreg:5: openreg has openreg:0 to openreg:1"):
        load("openreg:5")
    with pytest.raises(ZeroDivisionError):
        load(lambda storage, location: 1 / 0)
    assert load(collections.OrderedDict({"openreg:1": "cpu"})).tolist() == [1, 1]


def test_a_device_that_is_not_loaded(openreg, tmp_path):
    tenon.save({"x": tenon.arange(3.0, device="openreg:1"), "y": tenon.ones(1)}, tmp_path / "checkpoint")
    out = run(f"""
path = {str(tmp_path / "checkpoint")!r}
for case in range(2):
    try:
        tenon.load(path)
    except RuntimeError as error:
        print(error)
    if case == 0:
        print(tenon.load(path, map_location="cpu")["x"].tolist())
        tenon.load_device(sys.argv[1], options={{"devices": 1}})
""")
    first, values, second = out.splitlines()
    assert values == "[0.0, 1.0, 2.0]"
    for line, problem in ((first, "no loaded device is called 'openreg'"), (second, "there is no device openreg:1: openreg has openreg:0")):
        assert line.startswith(f"load: {tmp_path / 'checkpoint'}: a tensor was saved on openreg:1: ") and problem in line
        assert "tenon.load_device" in line and "tenon.load(f, map_location='cpu')" in line


def test_state_dicts_and_optimizers_follow(device):
    def model(where):
        tenon.manual_seed(3)
        return tenon.nn.Sequential(tenon.nn.Linear(4, 8), tenon.nn.BatchNorm1d(8), tenon.nn.Linear(8, 2)).to(where)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()

    x = tenon.randn(6, 4)
    here, there = model("cpu"), model(device)
    adam = tenon.optim.Adam(here.parameters(), lr=0.1)
    step(here, adam, x)
    file = saved({"model": here.state_dict(), "adam": adam.state_dict()})
    loaded = tenon.load(file, map_location=device)
    assert {t.device.type for t in loaded["model"].values()} == {device}
    there.load_state_dict(loaded["model"])
    for state in (loaded["adam"], adam.state_dict()):  # on the device, and on the host
        other = tenon.optim.Adam(there.parameters(), lr=0.1)
        other.load_state_dict(state)
        kept = [v for s in other.state.values() for v in s.values() if isinstance(v, tenon.Tensor)]
        assert kept and {v.device.type for v in kept} == {device}
    step(here, adam, x)
    step(there, other, x.to(device))
    for a, b in zip(here.parameters(), there.parameters()):
        assert b.device.type == device and b.cpu().equal(a)
    back = tenon.load(saved(other.state_dict()), map_location="cpu")
    assert {v.device.type for s in back["state"].values() for v in s.values()} == {"cpu"}
    here.load_state_dict(there.state_dict())
    assert {p.device.type for p in here.parameters()} == {"cpu"}


def test_deep_copies_share_as_the_originals_do(device):
    x = tenon.arange(6.0, device=device)
    a, b = copy.deepcopy([x, x[2:]])
    a.zero_()
    assert b.tolist() == [0] * 4 and x.tolist() == [0, 1, 2, 3, 4, 5] and a.device == b.device == x.device
    module = copy.deepcopy(tenon.nn.Linear(2, 2).to(device))
    assert module.weight.device.type == device and module.weight.requires_grad


def test_what_is_printed_and_read(device):
    """S30."""
    x = tenon.tensor([[1.5, -2.0], [0.0, 4.0]], device=device)
    assert repr(x) == f"tensor([[ 1.5000, -2.0000],\n        [ 0.0000,  4.0000]], device='{device}:0')"
    assert f"on {device}:0, strided" in tenon.describe(x)
    assert x.tolist() == [[1.5, -2.0], [0.0, 4.0]] and x.t()[1].tolist() == [-2, 4] and x[0, 0].tolist() == 1.5
    assert bool(x[0, 0]) and not x[1, 0] and float(x[1, 1]) == 4 and int(x[1, 1]) == 4 and f"{x[0, 0]:.2f}" == "1.50"
    for call in (lambda: x.numpy(), lambda: np.asarray(x)):
        with pytest.raises((RuntimeError, TypeError), match=f"the tensor is on {device}:0; move it"):
            call()
    with pytest.raises(RuntimeError, match="4 elements has no single value"):
        bool(x)
    assert [row.sum().item() for row in x] == [-0.5, 4]


def test_the_state_of_the_generator(device):
    module = getattr(tenon, device)
    module.manual_seed(7)
    tenon.rand(3, device=device)
    state = module.get_rng_state()
    assert state.dtype is tenon.uint8 and state.device.type == "cpu"
    first = tenon.randn(5, device=device)
    after = module.get_rng_state()
    module.set_rng_state(tenon.load(saved(state)))
    assert tenon.randn(5, device=device).equal(first) and module.get_rng_state().equal(after) and not state.equal(after)
    tenon.set_rng_state(state)
    assert tenon.randn(5).equal(first.cpu()), "one stream of numbers for all devices"


# DLPack: https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html

EXT_DEV = 12


class Foreign:
    """A producer of another library: what a tensor exports, under names that are not Tenon's."""

    def __init__(self, tensor):
        self.tensor, self.asked = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **asked):
        self.asked.append(asked)
        return self.tensor.__dlpack__(**asked)


def test_dlpack_shares_memory_of_a_device(openreg):
    x = tenon.arange(24.0, device="openreg:1").view(4, 6)[1:, ::2]
    assert x.__dlpack_device__() == (EXT_DEV, 1)
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), x.__dlpack__(dl_device=(EXT_DEV, 1), copy=False)):
        y = tenon.from_dlpack(capsule)
        assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.stride() == x.stride() and y.equal(x)
        with pytest.raises(ValueError, match="used already"):
            tenon.from_dlpack(capsule)
    y.add_(1)
    assert x[0].tolist() == [7, 9, 11], "one memory"
    z = tenon.from_dlpack(x, copy=True)
    assert z.device == x.device and z.data_ptr() != x.data_ptr() and z.equal(x)
    assert tenon.from_dlpack(x).equal(x) and tenon.from_dlpack(x, device="cpu").tolist() == x.tolist()
    del x
    assert y[0].tolist() == [7, 9, 11], "memory lives as long as the importer"


def test_dlpack_copies_to_the_host_when_asked(openreg):
    x = tenon.arange(6.0, device="openreg").view(2, 3).t()
    host = tenon.from_dlpack(x.__dlpack__(dl_device=(1, 0)))
    assert host.device.type == "cpu" and host.equal(x.cpu())
    with pytest.raises(BufferError, match="on openreg:0, and copy=False forbids"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="the tensor is on openreg:0; move it"):
        x.__dlpack__(dl_device=(EXT_DEV, 1))
    with pytest.raises(BufferError, match="the tensor is on the host; move it"):
        tenon.ones(1).__dlpack__(dl_device=(EXT_DEV, 0))


def test_dlpack_orders_streams(lazyreg):
    """On a device that runs work only when somebody waits for it, a missing order shows."""
    producer, consumer = lazyreg.Stream(), lazyreg.Stream()

    def made(stream):
        """A tensor whose last write waits in the producer's stream, exported to a consumer's."""
        with lazyreg.stream(producer):
            x = tenon.zeros(4, device="lazyreg")
            lazyreg.synchronize()
            x.add_(7)
            return tenon.from_dlpack(x.__dlpack__(stream=stream))

    def read(y):
        with lazyreg.stream(consumer):
            z = y * 1
        consumer.synchronize()
        with lazyreg.stream(consumer):
            return z.tolist()

    assert read(made(consumer.stream_id)) == [7] * 4
    assert read(made(-1)) == [0] * 4, "the consumer sees to it, and did not"
    y = made(None)  # the default stream
    assert (y * 1).tolist() == [7] * 4
    with lazyreg.stream(consumer):
        foreign = Foreign(tenon.ones(2, device="lazyreg"))
        tenon.from_dlpack(foreign, device="lazyreg")
    assert foreign.asked == [{"max_version": (1, 0), "stream": consumer.stream_id}]
    with pytest.raises(BufferError, match="has no stream -5"):
        y.__dlpack__(stream=-5)
    with pytest.raises(TypeError, match="'stream' must be int or None"):
        y.__dlpack__(stream="first")


def test_dlpack_from_another_library_names_its_device(openreg, lazyreg):
    """A capsule whose producer is not Tenon: both devices have the number 12, and the caller says which."""
    import ctypes

    x = tenon.arange(6.0, device="openreg").view(2, 3)[:, 1:]
    capsule = x.__dlpack__()
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    at = ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor")
    # DLTensor is 48 bytes; then the context and the deleter. The context of Tenon's stays behind another's deleter.
    released = []
    kept = ctypes.c_void_p.from_address(at + 56).value
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    theirs = free(lambda managed: (released.append(managed), free(kept)(managed)))
    ctypes.c_void_p.from_address(at + 56).value = ctypes.cast(theirs, ctypes.c_void_p).value
    assert ctypes.c_uint64.from_address(at + 40).value == 4, "the offset in bytes"
    with pytest.raises(BufferError, match="several devices have DLPack's type 12.*say which by device="):
        tenon.from_dlpack(capsule)
    y = tenon.from_dlpack(capsule, device="openreg")
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.tolist() == [[1, 2], [4, 5]]
    y.mul_(2)
    assert x.tolist() == [[2, 4], [8, 10]] and not released
    del y
    assert released == [at]


def test_what_dlpack_refuses(openreg):
    with pytest.raises(BufferError, match="grad"):
        tenon.ones(2, device="openreg", requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="negative"):
        tenon.arange(3, device="openreg").flip(0).__dlpack__()
    for call in ("__dlpack__", "__dlpack_device__"):
        with pytest.raises(BufferError, match="DLPack has no meta"):
            getattr(tenon.empty(2, device="meta"), call)()
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(tenon.ones(2, device="openreg"))


def test_the_array_api_computes_where_its_arrays_are(openreg):
    xp = tenon.ones(1).__array_namespace__()
    info = xp.__array_namespace_info__()
    assert info.default_device() == tenon.device("cpu") and {tenon.device("cpu"), tenon.device("openreg:1")} <= set(info.devices())
    x = np.arange(12.0).reshape(3, 4) - 5
    t = xp.asarray(x, device="openreg:1")
    assert t.to_device("cpu").device.type == "cpu" and t.to_device("openreg:1") is t
    for call in (
        lambda a: xp.add(a, 2), lambda a: xp.pow(2.0, a), lambda a: xp.where(a > 0, a, 0.5), lambda a: xp.sum(a, axis=0), lambda a: xp.remainder(a, 3),
        lambda a: xp.clip(a, -1, xp.abs(a)), lambda a: xp.unique_values(a), lambda a: xp.sort(a, descending=True), lambda a: xp.concat([a, a]),
        lambda a: xp.take(a, xp.asarray([0, -1], device=a.device), axis=1), lambda a: xp.linalg.svdvals(a), lambda a: xp.fft.rfft(a), lambda a: a[a > 0],
        lambda a: xp.zeros_like(a), lambda a: xp.searchsorted(a[0], a), lambda a: xp.linalg.vector_norm(a, axis=1),
    ):  # fmt: skip
        got, want = call(t), call(tenon.tensor(x))
        assert got.device == t.device and got.dtype is want.dtype
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-12)
