"""Methods of tensors that are written in Python: a tensor's own geometry changed, functions of Python by element, other names."""

import copy
import pickle

import numpy as np
import pytest

import tenon


def test_geometry_changes_in_place():
    x = tenon.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    address, version = x.data_ptr(), x._version
    assert x.t_() is x and x.shape == (3, 2) and x.stride() == (1, 3) and x.data_ptr() == address
    assert x._version > version
    assert x.unsqueeze_(1).shape == (3, 1, 2) and x.squeeze_(1).shape == (3, 2) and x.transpose_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.swapaxes_(0, 1).shape == (3, 2) and x.swapdims_(0, 1).shape == (2, 3)
    assert x.as_strided_([3], [2], 1).tolist() == [1, 3, 5] and x.resize_as_(tenon.ones(1, 2)).shape == (1, 2)
    assert tenon.ones(1, 2, 1).squeeze_().shape == (2,)


def test_the_geometry_of_a_view_changes_in_place():
    base = tenon.arange(6.0)
    view = base[2:]
    version = base._version
    assert view.unsqueeze_(0) is view and view.tolist() == [[2, 3, 4, 5]] and view.storage_offset() == 2 and view._version > version
    view[0, 1] = 9
    assert base[3] == 9 and view.t_().shape == (4, 1) and view.squeeze_().shape == (4,)
    # A history that the base gets later is that of the view as it is then.
    factor = tenon.tensor(2.0, requires_grad=True)
    rows = tenon.zeros(6).view(2, 3)
    whole = rows._base
    rows.t_()
    whole.add_(factor * tenon.arange(6.0))
    assert rows.tolist() == [[0, 6], [2, 8], [4, 10]] and rows.grad_fn is not None
    (rows * tenon.tensor([1.0, 10.0])).sum().backward()
    assert factor.grad == 0 + 1 + 2 + 10 * (3 + 4 + 5)



def test_geometry_of_what_has_history_stays():
    x = tenon.ones(2, 3, requires_grad=True)
    for change in (lambda t: t.t_(), lambda t: t.unsqueeze_(0), lambda t: t.as_strided_([2], [1])):
        with pytest.raises(RuntimeError, match=r"_: the tensor requires a gradient, .* write x = x\.\w+\(\.\.\.\), or use no_grad"):
            change(x * 2)
    with tenon.no_grad():
        assert x.t_().shape == (3, 2)


def test_a_function_of_python_for_each_element():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.t().apply_(lambda v: v * 10).tolist() == [[10, 30], [20, 40]] and x.tolist() == [[10, 20], [30, 40]]
    assert x.map_(tenon.tensor([1.0, 2.0]), lambda a, b: a + b).tolist() == [[11, 22], [31, 42]]
    assert x.map2_(x, tenon.tensor(2.0), lambda a, b, c: b * c - a).tolist() == [[11, 22], [31, 42]]
    assert tenon.empty(0).apply_(abs).shape == (0,)
    for call, kind, text in (
        (lambda: x.apply_(3), TypeError, "callable must be callable"),
        (lambda: tenon.ones(1, requires_grad=True).apply_(abs), RuntimeError, "requires a gradient"),
        (lambda: x.map_(x.double(), max), TypeError, "as the tensor itself, got tenon.float64"),
        (lambda: x.map_(3, max), TypeError, "tensor must be a Tensor"),
        (lambda: tenon.ones(1, device="meta").apply_(abs), TypeError, "must be on the CPU"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_other_names():
    x = tenon.tensor([[1 + 2j, 3.0]])
    assert x.H.tolist() == [[1 - 2j], [3]] and x.adjoint().equal(x.H) and tenon.tensor(1j).H.item() == -1j
    with pytest.raises(RuntimeError, match="H: expected a matrix"):
        tenon.ones(2, 2, 2).H
    a, b = tenon.tensor([3.0, 4.0, 5.0]), tenon.tensor([1.0, 2.0, 3.0])
    np.testing.assert_allclose(a.arctan2(b).numpy(), np.arctan2(a.numpy(), b.numpy()), rtol=1e-6)
    assert a.clone().arctan2_(b).equal(a.arctan2(b)) and a.ger(b).shape == (3, 3) and a.cross(b, 0).tolist() == [2, -4, 2]
    assert a.cfloat().dtype is tenon.complex64 and a.cdouble().dtype is tenon.complex128
    assert a.get_device() == -1 and a.is_same_size(b) and not (a.is_conj() or a.is_neg() or a.is_distributed() or a.is_shared())
    assert a.resolve_neg() is a and a.is_set_to(a.view(3)) and not a.is_set_to(b) and not a.is_set_to(a[:2])
    assert a.new().shape == (0,) and a.new(2, 3).shape == (2, 3) and a.new([1, 2]).tolist() == [1, 2] and a.new(a).is_set_to(a)
    assert a.new(tenon.Size([2])).shape == (2,)
    assert a.nonzero_static(size=1).tolist() == [[0]] and [len(t) for t in a.unsafe_chunk(2)] == [2, 1]
    assert a.unsafe_split(2)[0].tolist() == [3, 4] and a.unsafe_split_with_sizes([1, 2])[1].tolist() == [4, 5]
    assert tenon.tensor([2, 1, 2]).unique().tolist() == [1, 2] and tenon.tensor([2, 2, 1]).unique_consecutive().tolist() == [2, 1]
    assert len(tenon.eye(2).lu()) == 2 and tenon.ones(2, 3, 4).transpose(0, 1).dim_order() == (1, 0, 2)
    assert tenon.tensor([4.0], dtype=tenon.float64).float_power_(0.5).tolist() == [2.0] and a.clone().ldexp_(b.long()).tolist() == [6, 16, 40]
    assert tenon.tensor([0.5]).logit_().tolist() == [0] and tenon.tensor([1.0]).polygamma_(1).item() == tenon.tensor([1.0]).polygamma(1).item()
    assert tenon.tensor([[3.0, 4.0]]).renorm_(2, 0, 1.0).norm().item() == pytest.approx(1) and tenon.tensor([3.0]).mvlgamma_(1).item() == pytest.approx(np.log(2))
    y = a.clone().requires_grad_() * 2
    assert not y.retains_grad and not a.retains_grad
    y.retain_grad()
    assert y.retains_grad


def test_former_names():
    x = tenon.arange(6.0)
    assert x.storage_type() is tenon.FloatStorage and x.const_data_ptr() == x.data_ptr()
    with pytest.warns(UserWarning, match="resize: use reshape"):
        assert x.resize(2, 3).shape == x.resize([2, 3]).shape == (2, 3)
    with pytest.warns(UserWarning, match="resize_as: use reshape"):
        assert x.resize_as(tenon.ones(3, 2)).shape == (3, 2)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match=r"resize: the sizes \[4\] have 4 elements, but the tensor has 6"):
        x.resize(4)
    with pytest.raises(TypeError, match="storage_type: no class of storages"):
        tenon.empty(1, dtype=tenon.float8_e5m2).storage_type()
    with pytest.raises(TypeError, match="resize: sizes must be ints"):
        x.resize("a")
    with pytest.raises(TypeError, match="resize_as: tensor must be a Tensor"):
        x.resize_as([6])


def test_what_cannot_be_done_says_so():
    for call, kind, text in (
        (lambda x: x.share_memory_(), NotImplementedError, "memory is not shared"),
        (lambda x: x.float_power_(2), RuntimeError, "float_power_: the tensor must be tenon.float64"),
        (lambda x: x.new(x.double()), TypeError, "new: expected a tensor of tenon.float32"),
        (lambda x: x.is_set_to(1), TypeError, "tensor must be a Tensor"),
        (lambda x: x.eig(), RuntimeError, "now removed; use linalg.eig"),
        (lambda x: x.symeig(), RuntimeError, "now removed; use linalg.eigh"),
        (lambda x: x.solve(x), RuntimeError, "now removed; use linalg.solve"),
        (lambda x: x.lstsq(x), RuntimeError, "now removed; use linalg.lstsq"),
        (lambda x: x.long().polygamma_(1), RuntimeError, "polygamma_: the result is"),
    ):
        with pytest.raises(kind, match=text):
            call(tenon.ones(2, 2))


def test_a_storage_is_a_sequence_of_bytes():
    x = tenon.tensor([1.0, -2.0])
    storage = x.untyped_storage()
    wanted = list(np.array([1.0, -2.0], np.float32).tobytes())
    assert len(storage) == 8 and list(storage) == storage.tolist() == wanted
    assert [storage[i] for i in range(-8, 8)] == wanted * 2
    storage[3] = 64  # the high byte of 1.0
    assert x.tolist() == [4.0, -2.0]
    storage[:4] = 0
    assert x.tolist() == [0.0, -2.0]
    assert list(tenon.ones(0).untyped_storage()) == []
    for made in (pickle.loads(pickle.dumps(storage)), copy.copy(storage), copy.deepcopy(storage)):
        assert type(made) is tenon.UntypedStorage and made.tolist() == storage.tolist() and made.data_ptr() != storage.data_ptr()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda s: s[4], IndexError, r"UntypedStorage: index 4 \(int\) is not one of 4 bytes"),
        (lambda s: s["x"], TypeError, "UntypedStorage: an index must be an int, got 'x'"),
        (lambda s: s[1:2], RuntimeError, "UntypedStorage: slices are for assignment; a uint8 tensor"),
        (lambda s: s.__setitem__(0, 256), ValueError, "UntypedStorage: a byte is an int from 0 to 255, got 256"),
        (lambda s: s.__setitem__(-5, 1), IndexError, "UntypedStorage: index -5"),
        (lambda s: s.__delitem__(0), TypeError, "UntypedStorage: bytes cannot be deleted"),
    ],
)
def test_what_bytes_of_a_storage_cannot_do(call, kind, text):
    with pytest.raises(kind, match=f"^{text}"):
        call(tenon.ones(1).untyped_storage())


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        ((), {}, r"new_tensor\(\) missing 1 required positional argument: 'data'"),
        (([1],), {"bad": 3}, r"new_tensor\(\) got an unexpected keyword argument 'bad'"),
        (([1],), {"dtype": "x"}, "new_tensor: argument 'dtype' must be a dtype, not str"),
        (([1],), {"device": 3.5}, "new_tensor: argument 'device' must be a device or str, not float"),
        (("xyz",), {}, "new_tensor: a str is no number"),
    ],
)
def test_new_tensor_says_its_name(args, options, said):
    with pytest.raises(TypeError, match=f"^{said}"):
        tenon.ones(2).new_tensor(*args, **options)
