"""fill_ and zero_ where elements share places: every order gives the same result."""

import numpy as np
import pytest

import tenon

ALL = [tenon.bool, tenon.uint8, tenon.int8, tenon.int16, tenon.int32, tenon.int64, tenon.float16, tenon.bfloat16,
       tenon.float32, tenon.float64, tenon.complex64, tenon.complex128]  # fmt: skip


def shared(dtype):
    """Tensors whose elements share places, with the whole of their memory."""
    for make in (
        lambda t: t[:1].expand(5),
        lambda t: t[2:5].expand(4, 3),
        lambda t: t[2:5].unsqueeze(1).expand(3, 4),
        lambda t: t[:6].reshape(2, 1, 3).expand(2, 7, 3),
        lambda t: t.as_strided((4, 3), (1, 1)),
        lambda t: t.as_strided((3, 3), (2, 1), 1),
        lambda t: t[:1].expand(0, 1),
        lambda t: t[1].expand(3, 4),
        lambda t: t[:3].flip(0).expand(2, 3),
    ):
        t = tenon.ones(10, dtype=dtype)
        yield t, make(t)


@pytest.mark.parametrize("dtype", ALL)
def test_every_place_is_filled_and_no_other(dtype):
    for whole, view in shared(dtype):
        places = {view.storage_offset() + sum(i * s for i, s in zip(index, view.stride())) for index in np.ndindex(*view.shape)}
        for write, value in (
            (lambda v: v.fill_(0), 0),
            (lambda v: v.zero_(), 0),
            (lambda v: v.fill_(tenon.zeros((), dtype=tenon.float64)), 0),
            (lambda v: v.__setitem__(slice(None), 0), 0),
        ):
            whole.fill_(1)
            version = whole._version
            result = write(view)
            assert result is None or result is view
            assert [complex(x) for x in whole.tolist()] == [0 if i in places else 1 for i in range(10)]
            assert whole._version == version + 1


def test_a_value_that_lies_in_the_tensor():
    x = tenon.arange(4.0)
    x[1:2].expand(3).fill_(x[2])
    assert x.tolist() == [0, 2, 2, 3]
    y = tenon.arange(6.0)
    y.as_strided((4, 3), (1, 1)).fill_(y[3])
    assert y.tolist() == [3] * 6


def test_values_are_converted_and_checked_as_ever():
    x = tenon.zeros(1, dtype=tenon.int64).expand(3)
    assert x.fill_(tenon.tensor(2.75, dtype=tenon.float64)).tolist() == [2, 2, 2]
    big = tenon.zeros(1, dtype=tenon.int64).as_strided((2, 2), (0, 0))
    assert big.fill_(tenon.tensor(2**62 + 1)).tolist() == [[2**62 + 1] * 2] * 2
    with pytest.raises(ValueError, match="overflow"):
        tenon.zeros(1, dtype=tenon.int8).expand(3).fill_(300)
    with pytest.raises(RuntimeError, match="dimension"):
        x.fill_(tenon.ones(2))


def test_gradients():
    x = tenon.ones(3, requires_grad=True)
    y = x * 2
    y[:1].expand(4).fill_(5)
    y.sum().backward()
    assert y.tolist() == [5, 2, 2] and x.grad.tolist() == [0, 2, 2]
    leaf = tenon.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.expand(3).fill_(1)


def test_meta_tensors():
    m = tenon.zeros(1, device="meta").expand(3)
    assert m.fill_(2) is m and m.zero_() is m


def test_an_expansion_of_any_size_is_one_write():
    x = tenon.zeros(1)
    x.expand(2**40, 2**20).fill_(3)
    assert x.item() == 3


OVERLAPPING = {
    "expanded": lambda x: x.expand(4, 3),
    "expanded twice": lambda x: x.reshape(3, 1).expand(2, 3, 5),
    "one place": lambda x: x[:1].expand(2, 4),
    "windows": lambda x: x.as_strided((2, 2), (1, 1)),
    "windows with a step": lambda x: x.as_strided((2, 2, 2), (1, 0, 1)),
    "unfolded": lambda x: x.unfold(0, 2, 1),
    "no elements": lambda x: x.expand(0, 3),
    "apart": lambda x: x[::2],
}


@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float64, tenon.complex128])
@pytest.mark.parametrize("geometry", OVERLAPPING)
def test_gradient_of_a_fill_counts_each_place_once(geometry, dtype):
    view = OVERLAPPING[geometry]
    weights = tenon.tensor([1.0, 20.0, 300.0], dtype=dtype)
    marked = tenon.zeros(3)
    view(marked).fill_(1)
    for create_graph in (False, True):
        v = tenon.tensor(2.0, dtype=dtype, requires_grad=True)
        start = tenon.zeros(3, dtype=dtype, requires_grad=True)
        x = start.clone()
        view(x).fill_(v)
        y = (x * weights).sum()
        got_v, got_start = tenon.autograd.grad(y, [v, start], tenon.ones_like(y), create_graph=create_graph)
        assert got_v.item() == (weights * marked).sum().item()
        assert got_start.tolist() == (weights * (1 - marked)).tolist()


@pytest.mark.parametrize("geometry", OVERLAPPING)
def test_gradcheck_of_a_fill_through_shared_places(geometry):
    def filled(v, start):
        x = start.clone()
        OVERLAPPING[geometry](x).fill_(v * v)
        return x * tenon.tensor([1.0, 2.0, 3.0], dtype=x.dtype)

    v = tenon.tensor(1.5, dtype=tenon.float64, requires_grad=True)
    start = tenon.tensor([0.5, -1.0, 2.0], dtype=tenon.float64, requires_grad=True)
    assert tenon.autograd.gradcheck(filled, (v, start))
    assert tenon.autograd.gradgradcheck(filled, (v, start))


def test_gradient_of_the_filled_view_itself():
    v = tenon.tensor(2.0, requires_grad=True)
    e = tenon.zeros(3).expand(4, 3)
    e.fill_(v)
    e.sum().backward()
    assert v.grad.item() == 12  # twelve elements show v


@pytest.mark.parametrize("order", ["real of complex", "complex of real"])
def test_gradient_of_a_fill_of_parts(order):
    v = tenon.tensor(2.0, dtype=tenon.float64, requires_grad=True)
    if order == "real of complex":
        x = tenon.zeros(3, dtype=tenon.complex128)
        tenon.view_as_real(x).unsqueeze(0).expand(4, 3, 2).fill_(v)
        y = tenon.view_as_real(x)
    else:
        y = tenon.zeros(3, 2, dtype=tenon.float64)
        tenon.view_as_complex(y).expand(4, 3).fill_(v)
    y.sum().backward()
    assert v.grad.item() == (6 if order == "real of complex" else 3)
