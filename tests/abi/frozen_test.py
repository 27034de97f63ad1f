"""Plug-ins that were built from the headers of version 1, as they were released (frozen_v1), load and compute."""

import pathlib
import subprocess

import tenon

FROZEN = pathlib.Path(__file__).parent / "frozen_v1"


def built(source, tmp_path, *flags):
    library = tmp_path / "device.so"
    subprocess.run([*flags, "-Wall", "-Wextra", "-fPIC", "-shared", f"-I{FROZEN}", FROZEN / source, "-o", library], check=True)
    return library


def test_a_plugin_of_version_1_loads(tmp_path):
    frozen = tenon.load_device(built("plugin.cc", tmp_path, "c++", "-std=c++17", "-fno-gnu-unique"))
    assert frozen.device_count() == 2
    x = tenon.tensor([[-1.5, 2.0], [-3.0, 0.5]], device="frozen")
    tenon.reset_fallbacks()
    assert tenon.ops.frozen.cube(x).tolist() == [[-3.375, 8], [-27, 0.125]]
    assert x.floor().tolist() == [[-2, 2], [-3, 0]]
    assert x.abs().tolist() == [[1.5, 2], [3, 0.5]]
    assert tenon.full((2,), 2.5, device="frozen:1").tolist() == [2.5, 2.5]
    assert not tenon.fallbacks()
    assert x.t().abs().tolist() == [[1.5, 3], [2, 0.5]], "declined"
    assert (x @ x).tolist() == [[-3.75, -2], [3, -5.75]]
    assert tenon.fallbacks()
    y = x.clone().requires_grad_()
    (y * y).sum().backward()
    assert y.grad.equal(2 * x)
    del x, y
    tenon.unload_device("frozen")


def test_a_plugin_of_version_1_in_plain_c_loads(tmp_path):
    tenon.load_device(built("plugin.c", tmp_path, "cc", "-std=c11"), name="frozen_c")
    x = tenon.arange(4.0, device="frozen_c")
    assert (x * 2 + 1).flip(0).tolist() == [7, 5, 3, 1]
    del x
    tenon.unload_device("frozen_c")
