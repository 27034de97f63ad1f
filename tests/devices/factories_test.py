"""openreg's own kernels of empty and empty_strided, made of the helpers in tenon/abi/factory.h. What they make is what Tenon's own
make on the CPU."""

import pytest

import tenon

aten = tenon.ops.aten


def test_the_kernels_are_openregs(device):
    (key,) = [key for name, key in tenon.dispatch.backends() if name == device]
    for name in ("empty.memory_format", "empty_strided"):
        cell = {c.key: c for c in tenon.dispatch.computed_table(name)}[key]
        assert cell.file.endswith("backends/openreg/factories.cc"), cell


def test_absent_options_are_the_defaults(device):
    for dtype in (tenon.float64, tenon.bfloat16, tenon.float32):
        tenon.set_default_dtype(dtype)
        try:
            for made in (aten.empty.memory_format([2, 3], device=device), aten.empty_strided([2, 3], [1, 2], device=device)):
                assert made.dtype is dtype and made.device == tenon.device(device, 0) and made.layout is tenon.strided
                assert not made.is_pinned()
        finally:
            tenon.set_default_dtype(tenon.float32)
    assert tenon.empty(2, dtype=tenon.int8, device=device).dtype is tenon.int8


def test_the_device_is_the_one_asked_for_or_the_current_one(openreg):
    with openreg.device(1):
        assert tenon.empty(2, device="openreg").device == tenon.device("openreg", 1)
        assert tenon.empty(2, device="openreg:0").device == tenon.device("openreg", 0)
        assert tenon.empty_strided((2,), (3,), device="openreg").device == tenon.device("openreg", 1)
    assert tenon.empty(2, device="openreg:1").device == tenon.device("openreg", 1)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 3, 1, 1), (2, 0, 4, 5), (2, 3, 4, 5, 6), (7,), ()])
@pytest.mark.parametrize("name", ["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"])
def test_memory_formats_are_the_cpus(device, size, name):
    format = getattr(tenon, name)

    def made(where):
        try:
            x = tenon.empty(size, memory_format=format, device=where)
        except (RuntimeError, ValueError) as error:
            return type(error), "dimensions" in str(error), "preserve" in str(error)
        return x.shape, x.stride(), x.storage_offset(), x.untyped_storage().nbytes()

    assert made(device) == made("cpu")


@pytest.mark.parametrize("size, stride", [((2, 3), (1, 4)), ((3,), (0,)), ((0, 2), (5, 5)), ((), ()), ((2,), (1, 1)), ((-1,), (1,)), ((2, 3), (3, -1))])
def test_strides_are_the_cpus(device, size, stride):
    def made(where):
        try:
            x = tenon.empty_strided(size, stride, device=where)
        except (RuntimeError, ValueError) as error:
            return type(error)
        return x.shape, x.stride(), x.storage_offset(), x.untyped_storage().nbytes()

    assert made(device) == made("cpu")


def test_other_memory_is_refused(device):
    for call in (lambda **how: tenon.empty(2, device=device, **how), lambda **how: tenon.empty_strided((2,), (1,), device=device, **how)):
        with pytest.raises(RuntimeError, match="Pin memory can only be on CPU"):
            call(pin_memory=True)
        with pytest.raises(NotImplementedError, match="Non strided layout not supported"):
            call(layout=tenon.sparse_coo)
        call(pin_memory=False, layout=tenon.strided)
