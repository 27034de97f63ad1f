"""to, cpu and the casts: what they return, and their arguments."""

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
    assert x.to(tenon.zeros(1, dtype=tenon.int64), non_blocking=flag).dtype == tenon.int64
    assert tenon.zeros(2).copy_(x, flag).tolist() == [1, 1]
    with pytest.raises(TypeError, match="non_blocking|flag|bool"):
        x.to("cpu", non_blocking="yes")
