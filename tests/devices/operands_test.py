"""What a plug-in's kernel is called with: the stream of its tensors' device, and tensors of that device."""

import pathlib
import re
import subprocess
import sys

import pytest

import tenon
from tests.devices.programs import run

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def operands(tmp_path_factory):
    """Two devices, whose mm fills its result with the number of its stream: 1000 for each device, and the stream's id."""
    library = tmp_path_factory.mktemp("operands") / "operands.so"
    subprocess.run(["c++", "-std=c++20", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", f"-I{HERE.parents[1]}",
                    HERE / "operands/operands.cc", "-o", library], check=True)  # fmt: skip
    return tenon.load_device(library, name="operands")


def test_a_kernel_gets_the_stream_of_its_tensors_device(operands):
    x = tenon.ones(1, 1).to("operands:1")
    assert operands.current_device() == 0
    result = tenon.mm(x, x)
    assert (result.device, result.item()) == (tenon.device("operands:1"), 1000)
    assert tenon.ops.operands.stream_of(x) == 1000 and tenon.ops.operands.stream_of(x.to("operands:0")) == 0
    stream = operands.Stream(1)
    with operands.stream(stream), operands.device(0):
        assert tenon.mm(x, x).item() == 1000 + stream.stream_id
        assert operands.current_device() == 0
    with operands.device(1):
        assert tenon.ops.operands.stream_of(x.to("operands:0")) == 0


def test_the_current_device_is_what_it_was_after_a_kernel_that_fails(operands):
    x = tenon.ones(1, 1, dtype=tenon.float64).to("operands:1")
    with pytest.raises(ValueError, match="mm: device operands:1: not in float64"):
        tenon.mm(x, x)
    assert operands.current_device() == 0


def test_a_kernel_without_tensors_gets_a_stream_of_the_device_that_is_named(operands):
    stream_for = tenon.ops.operands.stream_for
    assert stream_for(3, device="operands:1") == 1000 and stream_for(3, device="operands") == 0
    with operands.device(1):
        assert stream_for(3, device="operands") == 1000 and stream_for(3, device="operands:0") == 0


def test_kernels_and_launches_of_a_device_that_is_not_current_are_in_order():
    """In lazy mode nothing runs that nobody waits for."""
    assert run("""
reg = tenon.load_device(sys.argv[1], options={"mode": "lazy", "devices": 2, "kernels": "network"})
x = tenon.ones(3, 4).to("openreg:1")
print((x * 2).sum(0).tolist(), tenon.fallbacks())
""") == "[6.0, 6.0, 6.0, 6.0] {}\n"


def test_a_kernel_gets_no_tensors_of_other_devices(operands):
    here, there, host = (tenon.ones(1, 1).to(d) for d in ("operands:0", "operands:1", "cpu"))
    for a, b, text in (
        (here, there, "`mat2` is on operands:1, expected the same device as `self`, operands:0"),
        (here, host, "`mat2` is on cpu, expected the same device as `self`, operands:0"),
        (host, there, "`self` is on cpu, expected the same device as `mat2`, operands:1"),
    ):
        with pytest.raises(RuntimeError, match=f"^mm: {text}; move one with .to()"):
            tenon.mm(a, b)
    with pytest.raises(RuntimeError, match="^add: `other` is on operands:1, expected the same device as `self`"):
        here + there[0, 0]
    with pytest.raises(RuntimeError, match="^add: `self` is on cpu, expected the same device as `other`"):
        host + there


def test_numbers_of_the_host_come_to_a_kernel_on_its_device(operands):
    x = tenon.ones(2).to("operands:1")
    tenon.reset_fallbacks()
    for number in (tenon.tensor(2.5), tenon.tensor(2.5, dtype=tenon.float64)):
        result = x + number
        assert (result.tolist(), result.dtype, result.device) == ([3.5, 3.5], tenon.float32, x.device)
    assert tenon.fallbacks() == {}


def test_kernels_of_other_operators_get_whatever_is_passed(operands):
    x = tenon.ones(1).to("operands:1")
    assert tenon.ops.operands.on_host(x, tenon.ones(3)) and not tenon.ops.operands.on_host(x, x.to("operands:0"))


def test_an_own_operator_that_declines_and_has_no_kernel_for_the_cpu_says_what_it_declined(operands):
    x = tenon.ones(2, device="operands")
    assert tenon.ops.operands.picky(x, x).shape == (2,)
    with pytest.raises(NotImplementedError, match="^operands::picky: the kernel of device operands has declined a call with tensors of "
                       "float32, int64, and there is no kernel for cpu, where it would run instead$"):  # fmt: skip
        tenon.ops.operands.picky(x, x.long())


@pytest.mark.parametrize(
    "function, said",
    [
        ("abi::Tensor f(const abi::Tensor&, int)", "Value<int>.*cannot take or return the T of this Value<T>; it may be Tensor, int64_t"),
        ("abi::Tensor f(float)", "Value<float>.*cannot take or return"),
        ("std::vector<abi::Tensor> f(abi::Tensor)", "cannot return the R of this Boxed<R, ...>; it may be void, Tensor"),
        ("std::tuple<abi::Tensor, abi::IntList> f(abi::Tensor)", "cannot return the R of this Boxed"),
        ("std::tuple<abi::Tensor&, int64_t> f(abi::Call&, abi::Tensor&, std::optional<double>, std::vector<abi::Tensor>)", ""),
        ("void f(const abi::Tensor&)", ""),
    ],
)  # fmt: skip
def test_types_that_a_kernel_cannot_have_do_not_compile(function, said, tmp_path):
    source = tmp_path / "kernel.cc"
    source.write_text(f"""#include "tenon/abi/kernel.h"
namespace abi = tenon::abi;
{function};
TENON_LIBRARY_IMPL(aten, PrivateUse1, m) {{ m.impl("f", &f); }}
""")
    done = subprocess.run(["c++", "-std=c++17", "-fsyntax-only", f"-I{HERE.parents[1]}", source], capture_output=True, text=True)
    assert (done.returncode == 0) == (said == ""), done.stderr
    assert re.search(said, done.stderr, re.DOTALL)


def test_the_command_loads_a_device(operands, tmp_path):
    library = next(path for name, path, _ in tenon.devices.loaded() if name == "operands")
    for command in ("table", "where"):
        done = subprocess.run([sys.executable, "-m", "tenon", command, "-l", library, "operands::picky"], capture_output=True, text=True)
        assert done.returncode == 0 and "operands.cc" in done.stdout, (done.stdout, done.stderr)
    (tmp_path / "broken.so").write_bytes(b"\0tenon_plugin_v1\0")
    done = subprocess.run([sys.executable, "-m", "tenon", "ops", "-l", tmp_path / "broken.so"], capture_output=True, text=True)
    assert done.returncode == 1 and "load_file" in done.stderr and "Traceback" not in done.stderr
