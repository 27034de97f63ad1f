"""The worked examples 1 to 6 and 9 of the documentation, in Python; their C++ twins are beside this file."""

import gc
import weakref

import tenon
from tenon._C import dispatch


def test_1_a_tensor_is_a_view_over_a_storage():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.dtype is tenon.float32 and x.storage().nbytes() == 16
    assert x.shape == (2, 2) and x.strides() == (2, 1)
    assert dispatch.key_set(x) == "DispatchKeySet(CPU)"
    x = tenon.arange(12.0).view(3, 4)
    assert x.stride() == (4, 1)
    assert x[2, 3].storage_offset() == 11
    assert x.T.data_ptr() == x.data_ptr() and x.T.strides() == (1, 4)
    column, row = x[:, 2], x[1, :]
    assert column.shape == (3,) and column.stride() == (4,) and column.storage_offset() == 2
    assert row.storage_offset() == 4


def test_2_expand_and_flip_copy_nothing():
    x = tenon.randn(1, 4)
    assert x.expand(3, 4).strides() == (0, 1)
    big = x.expand(1000, 4)
    assert big.storage() == x.storage() and big.storage().nbytes() == 16
    v = tenon.arange(5)
    f = v.flip(0)
    assert f.stride() == (-1,) and f.storage_offset() == 4 and f.storage() == v.storage()
    assert f.tolist() == [4, 3, 2, 1, 0]


def test_3_contiguous_copies_exactly_when_needed():
    x = tenon.randn(1000, 1000)
    y = x.T
    assert not y.is_contiguous() and y.strides() == (1, 1000)
    c = y.contiguous()
    assert c.data_ptr() != y.data_ptr() and c.strides() == (1000, 1)
    assert x.contiguous() is x
    before = tenon.hidden_copies()
    tenon.mm(y, x)
    assert tenon.hidden_copies() == before


def test_4_a_small_view_keeps_a_large_storage():
    big = tenon.empty(100_000_000)
    small = big[:5]
    gone = weakref.ref(big)
    del big
    gc.collect()
    assert gone() is None or small.storage().nbytes() == 400_000_000
    assert small.storage().nbytes() == 400_000_000
    assert small.clone().storage().nbytes() == 20


def test_5_gradients_and_their_graph():
    x, w, b = (tenon.tensor(v, requires_grad=True) for v in (2.0, 3.0, 1.0))
    y = (x * w + b).sum()
    assert y.grad_fn.name() == "SumBackward0"
    add = y.grad_fn.next_functions[0][0]
    assert [add.name(), add.next_functions[0][0].name()] == ["AddBackward0", "MulBackward0"]
    y.backward()
    assert [t.grad.item() for t in (x, w, b)] == [3.0, 2.0, 1.0]
    x = tenon.tensor(2.0, requires_grad=True)
    (first,) = tenon.autograd.grad(x**3, x, create_graph=True)
    assert first.item() == 12.0
    assert tenon.autograd.grad(first, x)[0].item() == 12.0


def test_6_broadcasting_and_promotion():
    assert (tenon.ones(3, 1) + tenon.ones(1, 4)).shape == (3, 4)
    assert (tenon.ones(3, 1, 4) + tenon.ones(2, 4)).shape == (3, 2, 4)
    assert (tenon.ones(2) + tenon.ones(2, dtype=tenon.int32)).dtype is tenon.float32


def test_9_traces_and_key_sets():
    lines = []
    dispatch.set_sink(lines.append)
    dispatch.trace(True)
    try:
        tenon.randn(3, 3)
    finally:
        dispatch.trace(False)
        dispatch.set_sink(None)
    calls = [line.strip() for line in "".join(line + "\n" for line in lines).splitlines() if line.strip()]
    assert "[call]" in calls[0] and "randn" in calls[0] and "BackendSelect" in calls[0]
    assert "[redispatch]" in calls[1] and "randn" in calls[1] and "CPU" in calls[1]
    assert any("empty.memory_format" in line for line in calls[2:])
    assert any("normal_" in line for line in calls[2:])
    x = tenon.ones(1, requires_grad=True)
    assert dispatch.key_set(x) == "DispatchKeySet(CPU, AutogradCPU)"
    assert dispatch.key_set(x.detach()) == "DispatchKeySet(CPU)"
