"""Plug-ins built from the installed headers, outside the tree: nothing of Tenon is linked, and no C++ crosses the border."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tenon.conformance import report, runner
from tests.devices.conftest import BUILD, OPENCL, OPENCL_ENVIRONMENT

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


def python(program, *arguments):
    environment = {**os.environ, **OPENCL_ENVIRONMENT, "PYTHONPATH": str(BUILD / "python")}
    return run(sys.executable, "-c", "import sys, tenon\n" + program, *arguments, env=environment)


def undefined_symbols(library):
    return run("nm", "-D", "--undefined-only", "-C", library)


CONFIGURATIONS = {
    "as Tenon": ["-DCMAKE_CXX_STANDARD=17"],
    "old strings": ["-DCMAKE_CXX_STANDARD=17", "-DCMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0"],
    "clang": ["-DCMAKE_CXX_STANDARD=17", "-DCMAKE_CXX_COMPILER=clang++", "-DCMAKE_CXX_FLAGS=-D_GLIBCXX_USE_CXX11_ABI=0"],
}


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_openreg_builds_outside_and_computes(configuration, installed, tmp_path):
    if configuration == "clang" and not shutil.which("clang++"):
        pytest.skip("clang++ is not installed")
    run("cmake", "-S", installed / "share/tenon/examples/openreg", "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={installed}", *CONFIGURATIONS[configuration])  # fmt: skip
    run("cmake", "--build", tmp_path)
    library = tmp_path / "openreg.so"
    assert "tenon::" not in undefined_symbols(library).replace("tenon::abi::", "")
    out = python("""
tenon.load_device(sys.argv[1])
x = tenon.arange(6., device="openreg").view(2, 3)
print((x.t() * 2 + 1).tolist(), tenon.ops.openreg.custom_abs(-x).sum().item())
""", library)
    assert out == "[[1.0, 7.0], [3.0, 9.0], [5.0, 11.0]] 15.0\n"


def test_opencl_builds_outside_and_computes(installed, tmp_path):
    if not OPENCL.exists():
        pytest.skip("OpenCL's headers are not installed")
    run("cmake", "-S", ROOT / "backends/opencl", "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_STANDARD=17",
        f"-DCMAKE_PREFIX_PATH={installed}")  # fmt: skip
    run("cmake", "--build", tmp_path)
    library = tmp_path / "opencl.so"
    assert "tenon" not in undefined_symbols(library)
    out = python("""
tenon.load_device(sys.argv[1])
x = tenon.arange(6., device="opencl").view(2, 3)
print((x.t() * 2 + 1).tolist())
""", library)
    assert out == "[[1.0, 7.0], [3.0, 9.0], [5.0, 11.0]]\n"


def test_a_device_in_plain_c(installed, tmp_path):
    library = tmp_path / "plain.so"
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{installed}/include",
        ROOT / "tests/devices/plain/plain.c", "-o", library)  # fmt: skip
    assert "tenon" not in undefined_symbols(library)
    out = python("""
plain = tenon.load_device(sys.argv[1])
x = tenon.arange(4., device="plain", requires_grad=True)
(x ** 2).sum().backward()
print(x.grad.tolist(), x.flip(0)[1:].tolist(), plain.device_count())
try:
    tenon.load_device(sys.argv[1], name="other", options={"a": 1})
except ValueError as error:
    print(error)
""", library)
    lines = out.splitlines()
    assert lines[0] == "[0.0, 2.0, 4.0, 6.0] [2.0, 1.0, 0.0] 1" and "this device has no options" in lines[1]


def test_a_device_written_from_the_tutorial(installed, tmp_path):
    """Its addresses are no pointers, and a thread does its work."""
    source = ROOT / "tests/devices/pencil"
    assert len((source / "pencil.cc").read_text().splitlines()) <= 250
    run("cmake", "-S", source, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path)
    library = tmp_path / "pencil.so"
    assert "tenon::" not in undefined_symbols(library).replace("tenon::abi::", "")
    found = runner.run("pencil", library, quick=True)
    assert not report.faults(found) and not found.skips()[""] and found.states()["unsupported"] == 0
    pointwise = [c for c in found.cells if c.claimed and c.native + c.fallback]
    assert len(pointwise) > 1500 and all(c.state == "native" and c.same_bits for c in pointwise)
    out = python("""
pencil = tenon.load_device(sys.argv[1], options={"memory": 4 << 20})
x = tenon.ones(1000, device="pencil", requires_grad=True)
(x * 3).exp().log().sum().backward()
kept = [x, x.grad, tenon.zeros(10, device="pencil")]
try:
    tenon.ones(2 << 20, device="pencil")
except MemoryError as error:
    print(round(x.grad.sum().item()))
""", library)
    assert out == "3000\n"


def test_the_two_families_of_headers_do_not_mix(installed, tmp_path):
    source = tmp_path / "both.cc"
    source.write_text('#include "tenon/dispatch/library.h"\n#include "tenon/abi/plugin.h"\n')
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", f"-I{installed}/include", source], capture_output=True, text=True)
    assert done.returncode != 0 and "a file includes one of them" in done.stderr
