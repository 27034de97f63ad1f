"""to, cpu and the casts: what they return, and their arguments."""

import array
import ctypes

import numpy as np
import pytest

import tenon

CASTS = {
    "float": tenon.float32, "double": tenon.float64, "half": tenon.float16, "bfloat16": tenon.bfloat16, "int": tenon.int32,
    "long": tenon.int64, "short": tenon.int16, "char": tenon.int8, "byte": tenon.uint8, "bool": tenon.bool,
}  # fmt: skip


def channels_last(dtype=tenon.float32):
    return tenon.arange(120).reshape(2, 3, 4, 5).to(dtype).contiguous(memory_format=tenon.channels_last)


@pytest.mark.parametrize("name", CASTS)
def test_casts_take_a_memory_format(name):
    x = tenon.arange(120).reshape(2, 3, 4, 5).to(tenon.int64 if name != "long" else tenon.int32) % 100
    cast = getattr(x, name)
    want = x.numpy().astype(np.float32)
    for out in (cast(), cast(memory_format=None), cast(memory_format=tenon.preserve_format)):
        assert out.dtype == CASTS[name] and out.stride() == x.stride()
    out = cast(memory_format=tenon.channels_last)
    assert out.dtype == CASTS[name] and out.is_contiguous(memory_format=tenon.channels_last)
    assert np.array_equal(out.to(tenon.float32).numpy(), want != 0 if name == "bool" else want)
    # Where nothing changes it is the tensor itself; another format is a change.
    assert getattr(out, name)() is out and getattr(out, name)(memory_format=tenon.channels_last) is out
    back = getattr(out, name)(memory_format=tenon.contiguous_format)
    assert back.is_contiguous() and tenon.equal(back, out)
    with pytest.raises(TypeError, match="memory_format"):
        cast(memory_format=3)
    with pytest.raises(TypeError):
        cast(tenon.channels_last)


def test_cpu_takes_a_memory_format():
    x = channels_last()
    assert x.cpu() is x and x.cpu(memory_format=tenon.channels_last) is x
    assert x.cpu(memory_format=tenon.contiguous_format).is_contiguous()


def test_to_compares_layouts_and_formats():
    x = channels_last()
    assert x.to(layout=tenon.strided) is x
    assert x.to(memory_format=tenon.channels_last) is x
    y = x.to(memory_format=tenon.contiguous_format)
    assert y.is_contiguous() and tenon.equal(x, y)
    for layout in (tenon.sparse_coo, tenon.sparse_csr):
        with pytest.raises((NotImplementedError, RuntimeError), match="layout|sparse"):
            x.to(layout=layout)
    with pytest.raises(TypeError, match="layout"):
        x.to(layout="strided")


def test_a_device_with_and_without_its_index_is_one():
    x = tenon.ones(2)
    assert x.to("cpu:0") is x and x.to(device=tenon.device("cpu", 0)) is x
    y = tenon.ones(2, device="cpu:0")
    assert y.to("cpu") is y and y.cpu() is y
    assert tenon.as_tensor(x, device="cpu:0") is x
    m = tenon.ones(2, device="meta")
    assert m.to("meta:0") is m


@pytest.mark.parametrize("flag", [True, False])
def test_non_blocking_is_taken_and_must_be_a_flag(flag):
    x = tenon.ones(2)
    assert x.to("cpu", non_blocking=flag) is x
    assert x.to(tenon.float64, flag).tolist() == [1, 1]
    assert x.to("cpu", tenon.float64, flag, True).dtype == tenon.float64
    copy = x.to("cpu", None, flag, True)
    assert copy is not x and copy.dtype == x.dtype and copy.equal(x)
    assert x.to(tenon.zeros(1, dtype=tenon.int64), non_blocking=flag).dtype == tenon.int64
    assert tenon.zeros(2).copy_(x, flag).tolist() == [1, 1]
    with pytest.raises(TypeError, match="non_blocking|flag|bool"):
        x.to("cpu", non_blocking="yes")


# Whatever has a buffer

MAKERS = (tenon.tensor, tenon.as_tensor, tenon.asarray)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "data, dtype, values",
    [
        (lambda: (ctypes.c_int * 3)(1, 2, 3), tenon.int32, [1, 2, 3]),
        (lambda: (ctypes.c_double * 2 * 3)((1, 2), (3, 4), (5, 6)), tenon.float64, [[1, 2], [3, 4], [5, 6]]),
        (lambda: (ctypes.c_byte * 0)(), tenon.int8, []),
        (lambda: (ctypes.c_bool * 2)(True, False), tenon.bool, [True, False]),
        (lambda: ctypes.c_int64(4), tenon.int64, 4),
        (lambda: array.array("h", [1, -2]), tenon.int16, [1, -2]),
        (lambda: memoryview(b"abcd").cast("b", (2, 2)), tenon.int8, [[97, 98], [99, 100]]),
        (lambda: memoryview(b"abcd")[::-2], tenon.uint8, [100, 98]),
        (lambda: memoryview(b""), tenon.uint8, []),
    ],
)
def test_arrays_of_c_and_other_buffers_are_data(make, data, dtype, values):
    result = make(data())
    assert result.dtype is dtype and result.tolist() == values


def test_an_array_of_c_is_shared():
    memory = (ctypes.c_float * 3)(1, 2, 3)
    tenon.asarray(memory)[1] = 7
    assert list(memory) == [1, 7, 3]


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int), ("second", ctypes.c_double)]


DATE = np.datetime64("2020-01-01")


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "data, said",
    [
        (DATE, "datetime64"), (np.datetime64("NaT"), "datetime64"), (np.timedelta64(3, "s"), "timedelta64"),
        (np.array([DATE]), "datetime64"), ([DATE, DATE], "datetime64"), ([np.array([DATE])], "datetime64"),
        (np.zeros(2, "i4,f8"), "format"), (np.zeros(2, "i4,f8")[0], "f1"), (np.zeros(2, "V3"), "format"), (np.zeros(2, "V3")[0], "V3"),
        (np.zeros(2, "V0"), "format"), (np.array([object()]), "'O'"), (np.array(["a"]), "format"), (np.array([b"a"]), "format"),
        (np.array(["a"])[0], "U1"), (np.zeros(2, np.longdouble), "'g'"),
        ((Pair * 2)(), "format"), (Pair(), "format"), ((ctypes.c_void_p * 2)(), "format"),
        (memoryview(b"ab").cast("c"), "'c'"),
    ],
)  # fmt: skip
def test_elements_that_are_no_numbers_are_refused(make, data, said):
    with pytest.raises(TypeError, match=f"^(tensor|as_tensor|asarray): .*{said}"):
        make(data)


def test_a_long_double_is_a_number_for_operators():
    assert (tenon.ones(2) * np.longdouble(2.5)).tolist() == [2.5, 2.5]
    assert (tenon.ones(2) + np.clongdouble(1 + 2j)).tolist() == [2 + 2j] * 2


def test_an_array_interface_that_lies_is_refused():
    class Lies:
        def __init__(self, **more):
            self.__array_interface__ = {"shape": (2,), "typestr": "<f4", "version": 3, **more}

    for interface in (
        {"data": b"ab"}, {"data": (0, False)}, {"data": b"x" * 8, "strides": (2**62,)}, {"data": b"x" * 16, "offset": 2**63 - 4},
        {"data": b"x" * 8, "shape": (2**62, 4)}, {"data": b"x" * 8, "shape": (-1,)}, {"data": b"x" * 8, "typestr": 3},
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            tenon.tensor(Lies(**interface))


# Copies


@pytest.mark.parametrize("memo", [0, [], "memo", None])
def test_a_deep_copy_keeps_its_memo_in_a_dict(memo):
    with pytest.raises(TypeError, match="'memo' must be a dict, not"):
        tenon.ones(2).__deepcopy__(memo)


@pytest.mark.parametrize("spec", [3, None, b"", []])
def test_a_format_is_a_text(spec):
    for x in (tenon.ones(2), tenon.tensor(1.5)):
        with pytest.raises(TypeError, match="'format_spec' must be a str, not"):
            x.__format__(spec)
    assert format(tenon.tensor(1.5), ".2f") == "1.50"
