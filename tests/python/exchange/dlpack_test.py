"""DLPack with NumPy, and with PyTorch where it is installed."""

import ctypes
import gc
import importlib.util

import numpy as np
import pytest
from hypothesis import given
from tests.python.support import arrays, assert_same, view_of

import tenon

EXCHANGED = (np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64)


@given(arrays(dtypes=EXCHANGED))
def test_numpy_arrays_come_in_at_any_stride(array):
    array = array if array.flags.writeable else array.copy("K")
    t = tenon.from_dlpack(array)
    assert_same(t, array)
    if array.size:
        assert t.data_ptr() == array.ctypes.data


@given(arrays(dtypes=EXCHANGED))
def test_tensors_go_out_without_a_copy(array):
    t = view_of(array)
    if array.size and any(s < 0 for s in t.strides()):
        with pytest.raises(BufferError, match="negative"):
            np.from_dlpack(t)
        return
    back = np.from_dlpack(t)
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
    if array.size:
        assert back.ctypes.data == t.data_ptr()


def test_negative_strides_go_out_as_a_copy():
    t = tenon.arange(4).flip(0)
    capsule = t.__dlpack__(max_version=(1, 0), copy=True)
    assert tenon.from_dlpack(capsule).tolist() == [3, 2, 1, 0]


def test_a_capsule_is_used_once():
    t = tenon.arange(3)
    for capsule in [t.__dlpack__(), t.__dlpack__(max_version=(1, 0))]:
        assert tenon.from_dlpack(capsule).tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="used"):
            tenon.from_dlpack(capsule)


def test_unused_capsules_free_their_tensor():
    t = tenon.zeros(1000)
    before = t.untyped_storage().use_count()
    capsules = [t.__dlpack__(), t.__dlpack__(max_version=(1, 1))]
    assert t.untyped_storage().use_count() >= before
    del capsules
    gc.collect()
    assert t.untyped_storage().use_count() == before


def test_memory_lives_as_long_as_the_importer():
    array = np.from_dlpack(tenon.arange(1000))
    junk = [tenon.zeros(1000) for _ in range(20)]
    assert (array == np.arange(1000)).all() and len(junk) == 20
    t = tenon.from_dlpack(np.arange(1000))
    gc.collect()
    assert t.sum().item() == 499500


def test_refusals():
    with pytest.raises(BufferError, match="grad"):
        tenon.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="meta"):
        tenon.empty(2, device="meta").__dlpack__()
    with pytest.raises(TypeError, match="from_dlpack"):
        tenon.from_dlpack([1, 2])
    assert tenon.ones(1).__dlpack_device__() == (1, 0)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_pytorch_both_ways():
    import torch

    theirs = torch.arange(6).view(2, 3).T
    ours = tenon.from_dlpack(theirs)
    assert ours.tolist() == theirs.tolist() and ours.data_ptr() == theirs.data_ptr()
    back = torch.from_dlpack(tenon.arange(6, dtype=tenon.bfloat16).view(2, 3).T)
    assert back.dtype is torch.bfloat16 and back.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("code, bits, lanes", [(2, 128, 1), (3, 64, 1), (17, 32, 1), (255, 8, 1), (0, 0, 1), (2, 32, 2), (255, 0, 1)])
def test_a_dtype_that_is_not_ours_is_refused(code, bits, lanes):
    t = tenon.arange(4)
    capsule = t.__dlpack__()
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    at = ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor")
    # DLTensor begins with an address, a device of two int32 and an int32 of dimensions; then the dtype.
    ctypes.memmove(at + 20, bytes([code, bits]) + lanes.to_bytes(2, "little"), 4)
    with pytest.raises(BufferError, match=f"no dtype has code {code}, {bits} bits and {lanes} lanes"):
        tenon.from_dlpack(capsule)
