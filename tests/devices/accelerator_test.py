"""tenon.accelerator, in processes of their own, because it is the first device that was loaded."""

from tests.devices.openreg_test import run


def test_without_a_device_everything_is_on_the_cpu():
    run("""
a = tenon.accelerator
assert not a.is_available() and a.device_count() == 0 and a.current_accelerator() is None
for call in (a.current_device_index, a.synchronize, a.current_stream, a.empty_cache, lambda: a.set_device_index(0)):
    try:
        call()
    except RuntimeError as error:
        assert "there is no accelerator" in str(error)
    else:
        raise AssertionError(call)
""")


def test_the_first_loaded_device_is_the_accelerator():
    run("""
a = tenon.accelerator
openreg = tenon.load_device(sys.argv[1], name="openreg", options={"devices": 2})
tenon.load_device(sys.argv[1], name="second", options={"devices": 1})
assert a.is_available() and a.device_count() == 2
assert a.current_accelerator() == tenon.device("openreg") and a.current_accelerator(check_available=True).index is None
assert a.current_device_index() == a.current_device_idx() == 0
a.set_device_index(1)
assert a.current_device_index() == openreg.current_device() == 1 and tenon.ones(1, device="openreg").device.index == 1
a.set_device_index(-1)
assert a.current_device_index() == 1
with a.device_index(0):
    assert a.current_device_index() == 0
with a.device_index(None):
    assert a.current_device_index() == 1
a.set_device_index("openreg:0")
assert a.current_device_index() == 0
stream = openreg.Stream(1)
a.set_stream(stream)
assert a.current_stream() == a.current_stream(1) == a.current_stream("openreg:1") == stream and a.current_device_index() == 1
assert a.current_stream(tenon.device("openreg:0")) == openreg.default_stream(0)
x = tenon.ones(1000, device="openreg") * 2
a.synchronize()
a.synchronize("openreg:1")
assert stream.query() and a.memory_allocated() == openreg.memory_allocated(1) > 0 and a.memory_allocated(0) == 0
assert a.memory_stats(1)["allocated_bytes.all.current"] == a.memory_allocated(1) <= a.memory_reserved(1)
assert a.get_memory_info(1) == openreg.mem_get_info(1)
peak = a.max_memory_allocated()
del x
a.reset_peak_memory_stats()
assert a.max_memory_allocated() < peak
a.empty_cache()
assert a.memory_reserved() == 0
for call in (lambda: a.synchronize("second"), lambda: a.set_device_index("cpu")):
    try:
        call()
    except ValueError as error:
        assert "doesn't match the current accelerator openreg" in str(error)
    else:
        raise AssertionError
try:
    a.synchronize("second")
except ValueError as error:
    assert str(error).endswith("which is the first of the loaded devices (openreg, second); use tenon.second"), error
try:
    a.set_device_index(7)
except RuntimeError as error:
    assert "there is no device openreg:7" in str(error)
else:
    raise AssertionError
""")
