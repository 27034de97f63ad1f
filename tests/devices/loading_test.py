"""What is said of a plug-in that cannot be loaded: exceptions and crashes while it is, and the version that it needs."""

import subprocess

import pytest

import tenon
from tests.devices.conftest import OPENREG
from tests.devices.programs import run, start


@pytest.mark.parametrize(
    "option, function, text",
    [
        ({"throw": "open:1"}, "tenon_plugin_v1", "a failure of open that was asked for"),
        ({"throw_int": "open:1"}, "tenon_plugin_v1", "an object that is no std::exception"),
        ({"fail": "open:1"}, "tenon_plugin_v1", "a failure of open that was asked for"),
        ({"throw": "device_count:1"}, "device_count", "a failure of device_count that was asked for"),
    ],
)
def test_what_an_exception_out_of_loading_says_is_told(option, function, text):
    with pytest.raises(RuntimeError) as error:
        tenon.load_device(OPENREG, name="unloadable", options=option)
    assert f"load_device: '{OPENREG}': {function} let an exception out: {text}" in str(error.value)


@pytest.mark.parametrize("function", ["shutdown", "close"])
def test_what_an_exception_out_of_unloading_says_is_told(function):
    tenon.load_device(OPENREG, name="leaving", options={"throw": f"{function}:1", "devices": 1})
    with pytest.raises(RuntimeError, match=f"device leaving: {function} let an exception out: a failure of {function} that was asked for"):
        tenon.unload_device("leaving")
    assert not hasattr(tenon.Tensor, "leaving") and not hasattr(tenon, "leaving")


#: What a library does when it is opened, or when it is asked for a device; the signal; where the note says that it happened.
CRASHES = {
    "constructor": ("__attribute__((constructor)) static void f(void) { *(volatile int*)8 = 1; }", "SIGSEGV", "what its library runs when it is opened"),
    "entry": ("void* tenon_plugin_v1(void* a, void* b, void* c) { return *(void* volatile*)8; }", "SIGSEGV", "tenon_plugin_v1"),
    "abort": ("#include <stdlib.h>\nvoid* tenon_plugin_v1(void* a, void* b, void* c) { abort(); }", "SIGABRT", "tenon_plugin_v1"),
}  # fmt: skip


def built(folder, text):
    source, library = folder / "crashing.c", folder / "crashing.so"
    source.write_text(text)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


@pytest.mark.parametrize("case", CRASHES)
def test_a_crash_while_loading_names_the_file(case, tmp_path):
    text, signal, where = CRASHES[case]
    library = built(tmp_path, text)
    done = start("tenon.load_device(sys.argv[2])", library)
    assert f"load_device: '{library}' crashed ({signal}) in {where}\n" in done.stderr
    assert done.returncode == {"SIGSEGV": -11, "SIGABRT": -6}[signal], "it dies as it would have"


def test_a_library_of_operators_that_crashes_is_named(tmp_path):
    library = built(tmp_path, CRASHES["constructor"][0])
    done = start("tenon.ops.load_library(sys.argv[2])", library)
    assert f"load_library: '{library}' crashed (SIGSEGV) in what it runs when it is opened\n" in done.stderr and done.returncode == -11


def test_other_handlers_of_a_crash_still_run(tmp_path):
    """Python's faulthandler, which was there first."""
    library = built(tmp_path, CRASHES["entry"][0])
    done = start("import faulthandler\nfaulthandler.enable()\ntenon.load_device(sys.argv[2])", library)
    assert "crashed (SIGSEGV) in tenon_plugin_v1" in done.stderr and "Fatal Python error: Segmentation fault" in done.stderr


def test_a_crash_after_loading_is_none_of_loading():
    done = start("tenon.load_device(sys.argv[1])\nimport ctypes\nctypes.string_at(8)")
    assert done.returncode == -11 and "crashed" not in done.stderr


def test_openreg_needs_the_version_that_has_the_default_dtype():
    """Its factories ask for it (tenon/abi/factory.h), and the host has it since 1.2. Its entry is called as a host would."""
    run("""
import ctypes
class Plugin(ctypes.Structure):    # the beginning of TenonPlugin
    _fields_ = [("struct_size", ctypes.c_uint32), ("needs_minor", ctypes.c_uint32), ("rest", ctypes.c_uint8 * 128)]
library = ctypes.CDLL(sys.argv[1])
library.tenon_plugin_v1.restype = ctypes.c_void_p
host, plugin = (ctypes.c_uint32 * 256)(1024), Plugin(struct_size=64)
assert library.tenon_plugin_v1(host, None, ctypes.byref(plugin)) is None
assert plugin.needs_minor == 2, plugin.needs_minor
""")
