"""The names of a device's module, and what they say to arguments that are wrong."""

import pytest

import tenon
from tests.devices.programs import run


def test_dir_lists_functions_and_loaded_devices(device):
    names = dir(getattr(tenon, device))
    assert {"Stream", "Event", "Graph", "device_count", "memory_stats", "synchronize", "manual_seed"} <= set(names)
    assert all(hasattr(getattr(tenon, device), name) for name in names) and device in dir(tenon)


def test_statistics_as_nested_dicts(device):
    module = getattr(tenon, device)
    x = tenon.ones(1000, device=device)
    flat, nested = module.memory_stats(), module.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"] >= x.nbytes
    assert nested["num_ooms"] == flat["num_ooms"]

    def leaves(values):
        return sum(leaves(v) if isinstance(v, dict) else 1 for v in values.values())

    assert leaves(nested) == len(flat)


def test_what_is_no_stream_is_refused(openreg, lazyreg):
    current = openreg.current_stream()
    for call, name in ((openreg.stream, "stream"), (openreg.set_stream, "set_stream")):
        with pytest.raises(TypeError, match=rf"openreg.{name}: expected a Stream, such as openreg.Stream\(\), but got 3"):
            call(3)
        with pytest.raises(ValueError, match=f"openreg.{name}: expected a stream of openreg, but got one of lazyreg:0"):
            call(lazyreg.current_stream())
    with openreg.stream(None):
        assert openreg.current_stream() == current


def test_a_device_as_a_context_is_the_current_one(openreg, lazyreg):
    assert openreg.current_device() == 0
    with tenon.device("openreg:1") as entered:
        assert entered == tenon.device("openreg:1") and openreg.current_device() == 1
        assert tenon.ones(1, device="openreg").device.index == 1 and tenon.ones(1).openreg().device.index == 1
        with tenon.device("openreg:0"), tenon.device("lazyreg"), tenon.device("cpu"):
            assert openreg.current_device() == 0 and lazyreg.current_device() == 0
        assert openreg.current_device() == 1
    with pytest.raises(KeyError), tenon.device("openreg", 1):
        raise KeyError
    assert openreg.current_device() == 0
    with pytest.raises(RuntimeError, match="there is no device openreg:7"):
        with tenon.device("openreg:7"):
            pass
    assert openreg.current_device() == 0


def test_an_unloaded_device_is_not_available():
    run("""
device = tenon.load_device(sys.argv[1])
assert device.is_available() and device.is_initialized()
tenon.unload_device("openreg")
assert not device.is_available() and not device.is_initialized() and "openreg" not in dir(tenon)
assert "device_count" in dir(device)
for call in (device.device_count, device.current_stream, device.memory_stats, device.synchronize):
    try:
        call()
    except ValueError as error:
        assert "no loaded device is called 'openreg'" in str(error), error
    else:
        raise AssertionError(call)
again = tenon.load_device(sys.argv[1])
assert again.is_available() and not device.is_available()
""")


def test_a_list_of_several_devices_names_its_elements(openreg):
    here, there = tenon.ones(2), tenon.ones(2, device="openreg")
    other = tenon.ones(2, device="openreg:1")
    for call, name in ((tenon.cat, "cat"), (tenon.stack, "stack"), (tenon.hstack, r"\w+")):
        with pytest.raises(RuntimeError, match=rf"{name}: `tensors\[2\]` is on openreg:1, expected .* as `tensors\[0\]`, openreg:0"):
            call([there, there, other])
    with pytest.raises(RuntimeError, match=r"cat: `tensors\[1\]` is on openreg:0, expected the same device as `tensors\[0\]`, cpu"):
        tenon.cat([here, there])


def test_a_device_that_was_named_before_it_came():
    """`cuda` is PyTorch's name: it is a device without one until a plug-in is loaded under it."""
    run("""
named = tenon.device("cuda")
try:
    tenon.ones(2, device=named)
except RuntimeError as error:
    assert "Device: no tensor can be made on cuda: no loaded device is called 'cuda'; there are cpu, meta." in str(error), error
else:
    raise AssertionError(named)
tenon.load_device(sys.argv[1], name="cuda")
x = tenon.ones(2, device=named) + 1
assert x.tolist() == [2, 2] and x.device == tenon.device("cuda", 0) and tenon.device("cuda") == named
""")
