"""Pinned host memory: where it comes from, what is refused, and copies from and to it that do not wait (S5)."""

import collections

import numpy as np
import pytest

import tenon
from tests.devices.programs import run


Pair = collections.namedtuple("Pair", "x y")


class Rows(tenon.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"pair": Pair(tenon.full((2,), float(i)), i), "name": "row", "list": [tenon.tensor(i)]}


def test_every_way_to_pinned_memory(openreg):
    a = np.arange(12.0).reshape(3, 4)
    made = [
        tenon.empty(3, 4, pin_memory=True),
        tenon.zeros(3, 4, pin_memory=True),
        tenon.full((3, 4), 2.0, pin_memory=True),
        tenon.arange(12.0, pin_memory=True),
        tenon.rand(3, 4, pin_memory=True),
        tenon.empty_strided((3, 4), (1, 3), pin_memory=True),
        tenon.empty((2, 3, 4, 5), pin_memory=True, memory_format=tenon.channels_last),
        tenon.empty_like(tenon.ones(3, 4), pin_memory=True),
        tenon.zeros_like(tenon.ones(3, 4).t(), pin_memory=True),
        tenon.ones(2).new_full((2, 2), 3.0, pin_memory=True),
        tenon.tensor(a, pin_memory=True),
        tenon.ops.aten._to_copy(tenon.tensor(a), dtype=tenon.float32, pin_memory=True),
        tenon.empty(0, pin_memory=True),
    ]
    for x in made:
        assert x.is_pinned() and x.device.type == "cpu"
        assert x.data_ptr() % 64 == 0 and x[:1].is_pinned(), "a view is in the memory of its base"
        assert not x.clone().is_pinned()
    assert made[1].tolist() == [[0] * 4] * 3 and made[2].sum().item() == 24
    assert made[3].tolist() == list(range(12)) and made[5].stride() == (1, 3) and made[8].stride() == (1, 4)
    assert made[8].tolist() == [[0] * 3] * 4 and made[6].is_contiguous(memory_format=tenon.channels_last)
    np.testing.assert_array_equal(made[10].numpy(), a)
    assert not tenon.ones(3).is_pinned() and not tenon.ones(3, device="openreg").is_pinned()


def test_pin_memory_copies_once_and_is_differentiable(openreg):
    x = tenon.arange(6.0).view(2, 3).t()
    y = x.pin_memory()
    assert y.is_pinned() and not x.is_pinned() and y.equal(x) and y.stride() == x.stride()
    assert y.pin_memory() is y and y.pin_memory("openreg").is_pinned()
    z = tenon.ones(2, requires_grad=True)
    (z.pin_memory() * 3).sum().backward()
    assert z.grad.tolist() == [3, 3]
    w = tenon.ones(2, pin_memory=True, requires_grad=True)
    assert w.is_pinned() and w.is_leaf


def test_pinned_memory_of_devices_and_other_layouts_is_refused(openreg):
    for call in (tenon.empty, tenon.zeros, tenon.rand):
        for device in ("openreg", "openreg:1", "meta"):
            with pytest.raises(RuntimeError, match="Pin memory can only be on CPU"):
                call(2, device=device, pin_memory=True)
    with pytest.raises(RuntimeError, match="Pin memory can only be on CPU"):
        tenon.ops.aten._to_copy(tenon.ones(2), device="openreg", pin_memory=True)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        tenon.ones(2, device="openreg").pin_memory()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        tenon.tensor([1.0], device="openreg", pin_memory=True)
    for pin_memory in (False, True):
        with pytest.raises(NotImplementedError, match="Non strided layout not supported"):
            tenon.empty(2, layout=tenon.sparse_coo, pin_memory=pin_memory)


def test_without_a_device_there_is_no_pinned_memory():
    run("""
for make in (lambda: tenon.empty(2, pin_memory=True), lambda: tenon.ones(2).pin_memory(), lambda: tenon.tensor([1], pin_memory=True)):
    try:
        make()
    except RuntimeError as error:
        assert "none is loaded" in str(error), error
    else:
        raise AssertionError
assert not tenon.ones(2).is_pinned()
""")


def test_copies_of_pinned_memory_do_not_wait():
    """In lazy mode work runs only when somebody waits."""
    run("""
lazy = tenon.load_device(sys.argv[1], options={"mode": "lazy"})
waits = lambda: tenon.ops.openreg.waits(x)
source = tenon.full((1000,), 3.0, pin_memory=True)
x = tenon.empty(1000, device="openreg")
before = waits()
x.copy_(source, non_blocking=True)
y = source.to("openreg", non_blocking=True) * 2
back = tenon.zeros(1000, pin_memory=True)
back.copy_(y, non_blocking=True)
moved = y.to("cpu", non_blocking=True)
assert waits() == before and back[0].item() == 0, "nothing has run"
assert moved.is_pinned()
source.fill_(4.0)  # the program's mistake, which shows that the copy reads later
lazy.synchronize()
assert waits() > before and back[0].item() == 8 and moved[999].item() == 8 and x[0].item() == 4
before = waits()
plain = tenon.ones(1000)
x.copy_(plain, non_blocking=True)
plain.fill_(9.0)
assert x[0].item() == 1, "memory that is not pinned has been read when the call returns"
x.copy_(tenon.ones(1000, pin_memory=True) * 2)
z = x.cpu()
assert not z.is_pinned() and z[0].item() == 2
""")


def test_a_source_that_is_dropped_is_not_handed_out_before_its_copy_has_run():
    """S5"""
    run("""
lazy = tenon.load_device(sys.argv[1], options={"mode": "lazy"})
def active():
    return lazy.host_memory_stats()["active.all.current"]
x = tenon.empty(1 << 18, device="openreg")
source = tenon.full((1 << 18,), 3.0, pin_memory=True)
address = source.data_ptr()
def queue():
    for _ in range(20):     # each question about an event runs a task
        x.add_(1)
queue()
x.copy_(source, non_blocking=True)
del source
assert active() == 1
taken = tenon.full((1 << 18,), 7.0, pin_memory=True)
assert taken.data_ptr() != address
lazy.synchronize()
assert x[0].item() == x[-1].item() == 3
again = tenon.full((1 << 18,), 8.0, pin_memory=True)
assert again.data_ptr() == address, "the copy has run"
# A target that is dropped: the device still writes to it.
target = tenon.zeros(1 << 18, pin_memory=True)
address = target.data_ptr()
queue()
target.copy_(x, non_blocking=True)
del target
assert tenon.zeros(1 << 18, pin_memory=True).data_ptr() != address
lazy.synchronize()
del taken, again
stats = lazy.host_memory_stats()
assert stats["allocated_bytes.all.current"] == 0 and stats["reserved_bytes.all.current"] >= 2 << 20
assert len([k for k in stats if not k.startswith(("fragmentation", "waste"))]) == 122
""")


def test_pinned_memory_of_one_device_serves_another(openreg, lazyreg):
    """Its blocks wait for any device's stream."""
    other, x = tenon.zeros(10, device="lazyreg"), tenon.empty(1 << 18, device="lazyreg")
    source = tenon.full((1 << 18,), 5.0, pin_memory=True)
    address = source.data_ptr()
    for _ in range(20):     # each question about an event runs a task
        other.add_(1)
    x.copy_(source, non_blocking=True)
    del source
    assert tenon.empty(1 << 18, pin_memory=True).data_ptr() != address
    lazyreg.synchronize()
    assert x[3].item() == 5


def test_pinned_memory_resizes_and_is_lent(openreg):
    x = tenon.arange(4.0).pin_memory()
    x.resize_(1000)
    assert x.is_pinned() and x[:4].tolist() == [0, 1, 2, 3]
    a = x.numpy()
    del x
    a[:] = 6
    assert a.sum() == 6000


def test_dataloader_pins_its_batches(openreg):
    for workers in (0, 1):
        loader = tenon.utils.data.DataLoader(Rows(), batch_size=4, pin_memory=True, num_workers=workers)
        batches = list(loader)
        assert [len(b["name"]) for b in batches] == [4, 2]
        for b in batches:
            assert type(b["pair"]).__name__ == "Pair" and b["pair"].x.is_pinned() and b["pair"].y.is_pinned()
            assert b["list"][0].is_pinned() and b["name"][0] == "row"
        assert batches[1]["pair"].x.tolist() == [[4, 4], [5, 5]]


def test_dataloader_warns_where_there_is_no_pinned_memory():
    run("""
import warnings
from tenon.utils.data import DataLoader, TensorDataset
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    batches = list(DataLoader(TensorDataset(tenon.arange(4)), batch_size=2, pin_memory=True))
assert "no loaded device has pinned memory" in str(caught[0].message) and len(caught) == 1
assert caught[0].filename == "<string>"  # this program
assert [b[0].tolist() for b in batches] == [[0, 1], [2, 3]]
""")
