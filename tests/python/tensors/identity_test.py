"""One Python object for one tensor: identity, attributes, subclasses, weak references, copies, pickles."""

import copy
import gc
import io
import pickle
import weakref

import numpy as np
import pytest

import tenon
from tenon import nn


class Tagged(tenon.Tensor):
    pass


def tagged(values):
    return tenon._C._make_subclass(Tagged, tenon.tensor(values), True)


def test_the_same_tensor_is_the_same_object():
    x = tenon.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is x.grad
    y = x * 2
    assert y.grad_fn is y.grad_fn
    assert y.grad_fn == y.grad_fn and hash(y.grad_fn) == hash(y.grad_fn)


def test_attributes_live_as_long_as_the_tensor():
    x = tenon.ones(2, requires_grad=True)
    x.grad = tenon.ones(2)
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept"
    assert x.grad.__dict__ == {"note": "kept"}


def test_subclasses_survive_while_cpp_holds_the_tensor():
    holder = tenon.ones(2, requires_grad=True)
    holder.grad = tagged([1.0, 2.0]).detach()
    x = tenon.zeros(2, requires_grad=True)
    g = tenon._C._make_subclass(Tagged, tenon.tensor([3.0, 4.0]), False)
    g.note = [1]
    x.grad = g
    address = id(g)
    del g
    gc.collect()
    back = x.grad
    assert type(back) is Tagged and back.note == [1] and id(back) == address
    for _ in range(3):
        del back
        gc.collect()
        back = x.grad
    assert back.note == [1]


def test_weak_references_follow_the_tensor():
    x = tenon.zeros(2, requires_grad=True)
    g = tenon.ones(2)
    ref = weakref.ref(g)
    x.grad = g
    del g
    gc.collect()
    assert ref() is x.grad
    x.grad = None
    gc.collect()
    assert ref() is None
    plain = weakref.ref(tenon.ones(2))
    assert plain() is None


def test_cycles_through_attributes_are_collected():
    x = tenon.ones(2)
    x.me = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None
    p = nn.Parameter(tenon.ones(2))
    p.me = [p]
    ref = weakref.ref(p)
    del p
    gc.collect()
    assert ref() is None


def test_cycles_survive_while_cpp_holds_the_tensor():
    x = tenon.zeros(2, requires_grad=True)
    g = tenon.ones(2)
    g.me = g
    x.grad = g
    del g
    gc.collect()
    assert x.grad.me is x.grad


def test_slots_of_subclasses():
    class Slotted(tenon.Tensor):
        __slots__ = ("extra",)

    item = []
    t = tenon._C._make_subclass(Slotted, tenon.ones(1), False)
    t.extra = item
    ref = weakref.ref(t)
    del t
    assert ref() is None


def test_finalizers_run_once():
    calls = []

    class Loud(tenon.Tensor):
        def __del__(self):
            calls.append(1)

    t = tenon._C._make_subclass(Loud, tenon.ones(1), False)
    del t
    gc.collect()
    assert calls == [1]


def test_hash_is_identity():
    a, b = tenon.ones(1), tenon.ones(1)
    assert len({a: 1, b: 2, a: 3}) == 2


def test_many_short_lived_tensors():
    x = tenon.ones(1)
    for _ in range(3000):
        x = x + 1
    assert x.item() == 3001
    kept = [tenon.ones(1) for _ in range(1000)]
    del kept[::2]
    assert sum(k.item() for k in kept) == 500


def test_copies():
    x = tenon.tensor([1.0, 2.0], requires_grad=True)
    x.note = [1]
    deep, shallow = copy.deepcopy(x), copy.copy(x)
    assert deep.requires_grad and deep.note == [1] and deep.note is not x.note
    assert deep.data_ptr() != x.data_ptr() and shallow.data_ptr() == x.data_ptr()
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]
    with pytest.raises(RuntimeError):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize("dtype", [tenon.bool, tenon.int64, tenon.float16, tenon.bfloat16, tenon.float64])
def test_pickles(dtype):
    x = tenon.arange(6).to(dtype).view(2, 3)
    y = pickle.loads(pickle.dumps(x.T))
    assert y.dtype is dtype and y.tolist() == x.T.tolist()


def test_pickles_of_small_objects():
    for o in [tenon.float32, tenon.device("cpu"), tenon.strided, tenon.contiguous_format]:
        back = pickle.loads(pickle.dumps(o))
        assert back == o
    assert pickle.loads(pickle.dumps(tenon.float32)) is tenon.float32
    p = pickle.loads(pickle.dumps(nn.Parameter(tenon.ones(2))))
    assert type(p) is nn.Parameter and p.requires_grad


def test_small_objects():
    assert repr(tenon.float32) == "tenon.float32"
    assert repr(tenon.Size([2, 3])) == "tenon.Size([2, 3])"
    assert tenon.ones(2, 3).shape == (2, 3) and tenon.ones(2, 3).shape.numel() == 6
    assert isinstance(tenon.ones(2, 3).shape[:1], tenon.Size)
    assert [repr(s) for s in ((1,) + tenon.Size([2]), tenon.Size([2]) + (1,), 2 * tenon.Size([3]))] == ["tenon.Size([1, 2])", "tenon.Size([2, 1])", "tenon.Size([3, 3])"]
    assert repr(tenon.Size([True, np.int64(2), tenon.tensor(3), 4])) == "tenon.Size([1, 2, 3, 4])"
    for item, shown in (("x", "str"), (1.5, "float"), (None, "NoneType"), ([1], "list")):
        with pytest.raises(TypeError, match=f"^Size: item 1 must be an int, not {shown}$"):
            tenon.Size([1, item])
    assert repr(tenon.device("cpu")) == "device(type='cpu')"
    assert str(tenon.device("cpu:0")) == "cpu:0" and tenon.device("cpu", 0).index == 0
    assert tenon.float is tenon.float32 and tenon.long is tenon.int64
    assert tenon.finfo(tenon.float32).eps == 2**-23 and tenon.iinfo(tenon.int8).max == 127
    for name in ("finfo", "iinfo"):
        for wrong in ([], np.zeros(2, [("a", "i4"), ("b", "f8")]), "float32"):
            with pytest.raises(TypeError, match=f"^{name}: expected an? .*dtype, got "):
                getattr(tenon, name)(wrong)
    with pytest.raises(ValueError):
        tenon.device("nowhere")
    with pytest.raises(TypeError):
        tenon.device(3)


@pytest.mark.parametrize("value", [1j, 2**100, None, {"a": (1, 2.5, "x", b"y", {1}, frozenset([2]))}])
def test_checkpoints_hold_plain_values(value):
    file = io.BytesIO()
    tenon.save(value, file)
    file.seek(0)
    assert tenon.load(file) == value


@pytest.mark.parametrize("value", [tenon.nn.Linear(2, 2), np.ones(2), range(3), bytearray(b"x"), print, int, str.join, object()])
def test_save_refuses_what_load_would(value, tmp_path):
    with pytest.raises(TypeError, match="cannot be in a checkpoint"):
        tenon.save({"a": value}, tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("name", ["cuda", "mps", "xpu", "hpu", "xla"])
def test_a_device_that_is_not_here_has_a_name(name):
    device = tenon.device(name)
    assert (device.type, device.index, str(device)) == (name, None, name) and device == tenon.device(name)
    assert tenon.device(f"{name}:1") == tenon.device(name, 1) != device and pickle.loads(pickle.dumps(device)) == device
    for call in (lambda: tenon.ones(2, device=name), lambda: tenon.ones(2).to(device), lambda: tenon.tensor([1.0], device=device)):
        with pytest.raises(RuntimeError, match=rf"Device: no tensor can be made on {name}\S*: no loaded device is called '{name}'; there are cpu, .*meta"):
            call()
    with pytest.raises(ValueError, match="no loaded device is called 'tpu'") as error:
        tenon.device("tpu")
    assert name not in str(error.value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_size_goes_through_every_protocol_of_pickle(protocol):
    for size in (tenon.Size([1, 2]), tenon.Size()):
        back = pickle.loads(pickle.dumps(size, protocol))
        assert type(back) is tenon.Size and back == size and type(copy.deepcopy(size)) is tenon.Size
