"""What is passed to a plan is memory that it can read and write; all else is refused with the name of the tensor."""

import array

import numpy as np
import pytest

import tenon
from tenon.graph import pygraph


@pytest.fixture
def exp():
    g = pygraph()
    x = g.tensor(dim=[3], data_type=tenon.float32, uid=7, name="x")
    y = g.exp(x).set_uid(9).set_name("y").set_output(True)
    g.build()
    return g, x, y


X = tenon.tensor([0.0, 1.0, 2.0])


@pytest.mark.parametrize("value", [[0.0, 0.0, 0.0], (0.0, 0.0, 0.0), None, [None] * 3, 1.5, True, "text", object()], ids=lambda v: str(type(v)))
def test_values_without_memory(exp, value):
    g, x, y = exp
    with pytest.raises(TypeError, match=r"execute: the value for UID 9 \('y'\) is .*, which is no memory to read or write; pass a tensor, an array"):
        g.execute({x: X, y: value})
    with pytest.raises(TypeError, match=r"execute: the value for UID 7 \('x'\) is "):
        g.execute({x: value, y: tenon.empty(3)})
    with pytest.raises(TypeError, match="execute: the workspace is "):
        g.execute({x: X, y: tenon.empty(3)}, value if value is not None else [])


def test_numbers_that_are_no_addresses(exp):
    g, x, y = exp
    for value in (-8, 2**64):
        with pytest.raises(ValueError, match=rf"execute: the value for UID 9 \('y'\) is {value}, which is no address"):
            g.execute({x: X, y: value})


def test_keys_that_are_no_tensors(exp):
    g, x, y = exp
    for key in ("y", 9.0, None, True):
        with pytest.raises(TypeError, match="execute: a key of a variant pack is a tensor of the graph or its UID, not"):
            g.execute({x: X, key: tenon.empty(3)})


def test_outputs_that_may_not_be_written(exp):
    g, x, y = exp
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    for value in (frozen, memoryview(bytes(12)).cast("f")):
        with pytest.raises(RuntimeError, match=r"execute: the tensor for UID 9 \('y'\) is read-only, and the graph writes it"):
            g.execute({x: X, y: value})
    frozen_x = np.array([0, 1, 2], np.float32)
    frozen_x.flags.writeable = False
    out = tenon.empty(3)
    g.execute({x: frozen_x, y: out})  # it is read alone
    np.testing.assert_allclose(out.numpy(), np.exp(frozen_x), rtol=1e-6)


def test_memory_of_python_and_numpy_is_written(exp):
    g, x, y = exp
    for out in (array.array("f", [0] * 3), np.zeros(3, np.float32), memoryview(bytearray(12)).cast("f")):
        g.execute({x: array.array("f", [0, 1, 2]), y: out})
        np.testing.assert_allclose(np.asarray(out), np.exp([0, 1, 2]), rtol=1e-6)


def test_an_array_of_another_byte_order_is_named(exp):
    g, x, y = exp
    with pytest.raises(BufferError, match=r"execute: the value for UID 7 \('x'\) cannot be shared: .*byte order"):
        g.execute({x: np.zeros(3, ">f4"), y: tenon.empty(3)})


def test_addresses_are_aligned_to_elements(exp):
    g, x, y = exp
    room, out = tenon.zeros(5), tenon.empty(3)
    message = r"execute: the address of UID {} is 0x[0-9a-f]+, which is no multiple of the 4 bytes of one element"
    for off in (1, 2, 3):
        with pytest.raises(ValueError, match=message.format(7)):
            g.execute({x: room.data_ptr() + off, y: out})
        with pytest.raises(ValueError, match=message.format(9)):
            g._execute_with_ptrs([X.data_ptr(), room.data_ptr() + off])
    g.execute({x: room.data_ptr() + 4, y: out})
    assert out.tolist() == [1.0] * 3
    odd = np.zeros(13, np.uint8)[1:].view(np.float32)
    with pytest.raises(ValueError, match=r"execute: the value for UID 7 \('x'\) cannot be shared: .* not aligned"):
        g.execute({x: odd, y: out})


def test_addresses_of_execute_with_ptrs(exp):
    g, *_ = exp
    for value in (None, 1.5, "text", True, X, [1]):
        with pytest.raises(TypeError, match="execute: the address of UID 9 is a .*, expected an address"):
            g._execute_with_ptrs([X.data_ptr(), value])
    for value in (-8, 2**64):
        with pytest.raises(ValueError, match="execute: the address of UID 9 is an int that is no address: negative, or beyond 64 bits"):
            g._execute_with_ptrs([X.data_ptr(), value])
    for value in (None, 5, "text"):
        with pytest.raises(TypeError, match="argument 'ptrs' must be a list of addresses, not"):
            g._execute_with_ptrs(value)


def test_a_workspace_is_memory_that_may_be_written():
    g = pygraph()
    x = g.tensor(dim=[16, 16], data_type=tenon.float32)
    y = g.matmul(g.matmul(x, x), x).set_output(True)
    g.build()
    data, out, size = tenon.ones(16, 16), tenon.zeros(16, 16), g.get_workspace_size()
    assert size > 0
    room = np.zeros(size + 64, np.uint8)
    room = room[-room.ctypes.data % 64 :][:size]
    room.flags.writeable = False
    with pytest.raises(RuntimeError, match="execute: the workspace is read-only, and the plan writes it"):
        g.execute({x: data, y: out}, room)
    assert not room.any() and not out.any()
    for value in (1.5, "text", [1], True):
        with pytest.raises(TypeError, match="execute: the workspace is a .*, expected an address"):
            g._execute_with_ptrs([data.data_ptr(), out.data_ptr()], value)


def test_what_is_no_tensor_and_no_uid():
    for value in (5, None, [1.0], 1.5):
        with pytest.raises(TypeError, match="tensor_like"):
            pygraph().tensor_like(value)
    for value in (1.5, True, "text"):
        with pytest.raises(TypeError, match="uid"):
            pygraph().tensor(dim=[2], uid=value)
        with pytest.raises(TypeError, match="uid"):
            pygraph().tensor(dim=[2]).set_uid(value)
    assert pygraph().tensor(dim=[2], uid=np.int64(6)).get_uid() == 6
