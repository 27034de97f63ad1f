"""What a plug-in's kernel is called with: the stream of its tensors' device, and tensors of that device."""

import pathlib
import subprocess

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
