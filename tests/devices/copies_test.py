"""Copies between any two tensors (S28), what mixes devices (S27), and what shows a tensor's elements (S30)."""

import copy
import itertools

import numpy as np
import pytest

import tenon


def elements(dtype):
    x = (tenon.arange(24) * 5) % 17
    return x.to(dtype) if dtype != tenon.bool else x > 8


#: Views of 24 elements of shape [4, 3]; the reference has them by NumPy.
LAYOUTS = {
    "contiguous": (lambda x: x[:12].reshape(4, 3), lambda a: a[:12].reshape(4, 3)),
    "transposed": (lambda x: x[:12].reshape(3, 4).t(), lambda a: a[:12].reshape(3, 4).T),
    "flipped": (lambda x: x[:12].reshape(4, 3).flip(0, 1), lambda a: a[:12].reshape(4, 3)[::-1, ::-1]),
    "sliced": (lambda x: x.reshape(4, 6)[:, 1::2], lambda a: a.reshape(4, 6)[:, 1::2]),
    "expanded": (lambda x: x[2:5].expand(4, 3), lambda a: np.broadcast_to(a[2:5], (4, 3))),
    "overlapping": (lambda x: x.as_strided([4, 3], [1, 2], 3),
                    lambda a: np.stack([a[3 + i : 9 + i : 2] for i in range(4)])),
}  # fmt: skip
WRITABLE = ("contiguous", "transposed", "flipped", "sliced")
ROUTES = [("cpu", "openreg:0"), ("openreg:0", "cpu"), ("openreg:0", "openreg:0"), ("openreg:0", "openreg:1"),
          ("openreg:1", "lazyreg:0"), ("lazyreg:0", "openreg:0"), ("lazyreg:0", "lazyreg:0")]  # fmt: skip
DTYPES = [("float32", "float32"), ("float32", "int64"), ("int16", "float64"), ("bool", "bfloat16"), ("float64", "float16"),
          ("int64", "bool"), ("float32", "complex64")]  # fmt: skip


def on(device, x):
    return x if device == "cpu" else x.to(device)


@pytest.mark.parametrize("route", ROUTES, ids="-".join)
@pytest.mark.parametrize("dtypes", DTYPES, ids="-".join)
def test_s28_copies_of_every_layout(route, dtypes, openreg, lazyreg):
    source_dtype, dtype = (getattr(tenon, d) for d in dtypes)
    flat = elements(source_dtype)
    numbers = flat.to(tenon.float64).numpy() if source_dtype == tenon.bfloat16 else flat.numpy()
    for (name, (view, of_array)), into in itertools.product(LAYOUTS.items(), WRITABLE):
        source = view(on(route[0], flat))
        base = on(route[1], tenon.zeros(24, dtype=dtype))
        target = LAYOUTS[into][0](base) if into != "flipped" else base[:12].reshape(4, 3).as_strided([4, 3], [-3, -1], 11)
        assert target.copy_(source, non_blocking=True) is target
        want = tenon.tensor(np.ascontiguousarray(of_array(numbers))).to(dtype)
        assert target.device == tenon.device(route[1]) and target.cpu().equal(want), (name, into)
        kept = base.cpu() if base.device.type != "cpu" else base
        assert int((kept != 0).sum()) == int((want != 0).sum()), "elements beside the target were written"


@pytest.mark.parametrize("route", ROUTES, ids="-".join)
def test_s28_to_another_device_keeps_strides(route, openreg, lazyreg):
    x = on(route[0], elements(tenon.float32)[:12].reshape(3, 4)).t()
    moved = x.to(route[1], copy=True)
    assert moved.stride() == (1, 4) and moved.cpu().equal(x.cpu()) and moved.data_ptr() != x.data_ptr()


def test_s28_broadcast_and_refused_shapes(device):
    x = tenon.zeros(3, 4, device=device)
    assert x.copy_(tenon.arange(4)).cpu().equal(tenon.arange(4.0).expand(3, 4))
    with pytest.raises(RuntimeError, match="copy_"):
        x.copy_(tenon.zeros(5))
    with pytest.raises(RuntimeError, match="copy_"):
        tenon.zeros(1, device=device).expand(4).copy_(tenon.zeros(4))


def test_s28_a_copy_onto_itself_and_onto_a_neighbour(device):
    x = tenon.arange(6.0).to(device)
    assert x.copy_(x) is x and x.tolist() == [0, 1, 2, 3, 4, 5]
    try:
        host = tenon.arange(6.0)
        host[1:].copy_(host[:-1])
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as there:
            x[1:].copy_(x[:-1])
        assert str(there.value) == str(error)
    else:
        x[1:].copy_(x[:-1])
        assert x.cpu().equal(host)


# ---- S27 ----


def mixed():
    """What mixes devices, and the arguments that the error names."""
    a, b = tenon.ones(3, device="openreg:0"), tenon.ones(3, device="openreg:1")
    host, other = tenon.ones(3), tenon.ones(3, device="lazyreg")
    rows = tenon.tensor([0, 2])
    square = a.expand(3, 3).clone()
    return {
        "two operands": (lambda: a + host, ("`self`", "`other`"), ("openreg:0", "cpu")),
        "in place": (lambda: host.add_(a), ("`self`", "`other`"), ("openreg:0", "cpu")),
        "two indices": (lambda: a * b, ("`self`", "`other`"), ("openreg:0", "openreg:1")),
        "two plug-ins": (lambda: a - other, (), ("openreg", "lazyreg")),
        "a fallback": (lambda: tenon.mm(square, host.expand(3, 3)), ("`self`", "`mat2`"), ("openreg:0", "cpu")),
        "a list": (lambda: tenon.cat([a, host]), ("`tensors[0]`", "`tensors[1]`"), ("openreg:0", "cpu")),
        "out": (lambda: tenon.mul(a, a, out=tenon.empty(3)), ("`out`", "`self`"), ("openreg:0", "cpu")),
        "out of a fallback": (lambda: tenon.cumsum(a, 0, out=tenon.empty(3)), ("`out`", "`self`"), ("openreg:0", "cpu")),
        "indices": (lambda: a.index_select(0, rows.to("openreg:1")), ("`index`",), ("openreg:0", "openreg:1")),
        "a 0-dim tensor of another index": (lambda: a + b[0], ("`self`", "`other`"), ("openreg:0", "openreg:1")),
        "written host numbers": (lambda: tenon.tensor(1.0).add_(a[0]), ("`self`", "`other`"), ("openreg:0", "cpu")),
    }


@pytest.mark.parametrize("name", ["two operands", "in place", "two indices", "two plug-ins", "a fallback", "a list", "out",
                                  "out of a fallback", "indices", "a 0-dim tensor of another index", "written host numbers"])  # fmt: skip
def test_s27_mixed_devices_are_refused_by_name(name, openreg, lazyreg):
    call, arguments, devices = mixed()[name]
    with pytest.raises(RuntimeError) as error:
        call()
    said = str(error.value)
    assert all(d in said for d in devices) and all(a in said for a in arguments), said


def test_s27_numbers_of_the_host_may_be_beside_a_device(openreg, lazyreg):
    x = tenon.arange(3.0).to("openreg:1")
    assert (x + tenon.tensor(2.0)).tolist() == [2, 3, 4]
    assert tenon.tensor(2.0).mul(x).device == tenon.device("openreg:1")
    assert x.mul_(tenon.tensor(3.0)).tolist() == [0, 3, 6]
    assert x[tenon.tensor([2, 0])].tolist() == [6, 0]  # positions of the host
    assert tenon.mm(x.reshape(1, 3), x.reshape(3, 1)).device == x.device


# ---- S30 ----


def test_s30_what_shows_elements(device):
    x = tenon.tensor([[1.0, -2.5], [float("nan"), 4.0]]).to(device).t()
    assert repr(x) == f"tensor([[ 1.0000,     nan],\n        [-2.5000,  4.0000]], device='{device}:0')"
    assert f"{device}:0" in tenon.describe(x) and "float32" in tenon.describe(x)
    assert str(x.tolist()) == "[[1.0, nan], [-2.5, 4.0]]"
    assert bool(x[0, 0]) and not bool(tenon.zeros(1, device=device)) and float(x[1, 0]) == -2.5 and int(x[1, 1]) == 4
    with pytest.raises(RuntimeError, match="bool|ambiguous"):
        bool(x)
    with pytest.raises(RuntimeError, match=f"the tensor is on {device}:0; move it"):
        x.numpy()
    with pytest.raises(RuntimeError, match=f"the tensor is on {device}:0; move it"):
        np.asarray(x)
    assert [row.tolist() for row in x[:, 1:]] == [pytest.approx([float("nan")], nan_ok=True), [4.0]]
    assert tenon.equal(x[1], x[1].clone()) and (4.0 in x) and len(x) == 2


def test_s30_deepcopy_keeps_views_and_devices(device):
    base = tenon.arange(6.0).to(device)
    model = tenon.nn.Linear(2, 2).to(device)
    found = copy.deepcopy({"base": base, "model": model, "again": base})
    assert found["again"] is found["base"] and found["base"].data_ptr() != base.data_ptr()
    assert found["model"].weight.device.type == device and found["model"].weight.requires_grad
    found["base"].add_(1)
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    assert copy.copy(base).data_ptr() == base.data_ptr()
