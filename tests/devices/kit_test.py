"""The conformance kit: what it says of openreg, and that it catches planted faults by operator and kind."""

import csv
import os
import pathlib
import subprocess
import sys

import pytest

from tenon.conformance import families, large, report, runner, table
from tenon.conformance.check import tensors_of
from tenon.conformance.faults import CRASH
from tenon.conformance.library import TENON
from tests.devices.conftest import BUILD, OPENREG

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A device that is right, or has the fault that plant=NAME asks for."""
    library = tmp_path_factory.mktemp("planted") / "planted.so"
    subprocess.run(["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fPIC", "-shared",
                    f"-I{ROOT}", *sorted((HERE / "planted").glob("*.cc")), "-o", library], check=True)  # fmt: skip
    return library


def faults(library, plant, *ops):
    """{operator: (its faults in words, the kinds of differences)}"""
    found = runner.run("planted", library, {"plant": plant}, ops, dtypes=["float32"])
    return {op: (said, set(kinds)) for op, (said, kinds) in report.faults(found).items()}


OPERATORS = ("abs", "add", "add_", "sigmoid", "exp", "neg")

LAST = "it computes the last elements of some sizes wrongly: multiples of 256, or one more or less"

#: plant: the operator that shows it, what the kit says of it, kinds among the differences, kinds that are not.
FAULTS = {
    "contiguity": ("abs", "it takes tensors to be contiguous", {"transposed", "expanded", "negative", "sliced"}, {"offset"}),
    "offset": ("abs", "it loses the storage offset", {"offset", "sliced"}, {"transposed", "expanded"}),
    "negative stride": ("abs", "it reads negative strides as positive", {"negative"}, {"transposed", "offset", "sliced"}),
    "promotion": ("add.Tensor", "its results have another dtype: wrong promotion", {"dtype"}, {"values"}),
    "host access": ("abs", CRASH, {"crash"}, set()),
    "large": ("abs", "it leaves out elements of large tensors", {"large"}, {"values", "transposed"}),
    "half of a copy": ("abs", "it leaves out elements of large tensors", {"large"}, {"values", "transposed"}),
    "index of streams": ("abs", "it takes the first device for the second", {"index"}, {"values", "order"}),
    "stream order": ("abs", "it does not run in stream order", {"order"}, {"values", "transposed"}),
    "record_stream": ("abs", "it uses memory after it went back, on another stream without record_stream", {"lifetime"}, {"values"}),
    "result strides": ("abs", "its results have other strides", {"strides"}, {"values"}),
    "aliasing": ("add_.Tensor", "it ignores that arguments share memory", {"aliasing"}, {"values"}),
    "out size": ("abs.out", "it does not resize out=", {"out size"}, {"values", "out strides"}),
    "nan": ("abs", "it loses NaN", {"nan"}, {"values", "special"}),
    "gradient stride": ("sigmoid", "it reads strides of incoming gradients wrongly", {"gradient strides"}, {"gradient", "values"}),
    "second derivative": ("sigmoid", "the gradients of its gradients are wrong", {"second gradient"}, {"gradient", "values"}),
    "claim": ("abs", "it claims what it does not serve", {"claim"}, {"values"}),
    "rounding": ("sigmoid", "it rounds where the CPU does not, or not where it does", {"bits"}, {"values"}),
    "last of a block": ("abs", LAST, {"edges"}, {"values", "large"}),
    "last of a program's block": ("sigmoid", LAST, {"edges"}, {"values", "large"}),
    "five dimensions": ("abs", "it takes fewer than five dimensions", {"dimensions"}, {"values", "large", "sliced"}),
    "scratch buffer": ("abs", "two streams share its scratch memory", {"streams"}, {"values", "order"}),
    "kept results": ("neg", "it keeps tensors of its calls: some reference to an argument or a result is not released", {"memory"}, {"values"}),
    "remembered results": ("neg", "it returns what an earlier call has computed, by address or size", {"remembered"}, {"dtype"}),
}  # fmt: skip


#: plant: the check of the device's table that shows it, and a part of what it says.
TABLE_FAULTS = {
    "stream id": ("streams", "stream_new gives an id that is taken: 7, 7"),
    "query yes": ("event_query", "event_query says yes before the marked work has run"),
    "query no": ("event_query", "event_query says no"),
    "event at once": ("event_sync", "event_sync returns before the marked work has run"),
    "wait for event": ("stream_wait_event", "work that waits for an event runs before the work that the event marks"),
    "elapsed time": ("event_elapsed", "ms from an event to a later one"),
    "seconds": ("event_elapsed", "on the host: it counts milliseconds"),
    "memory info": ("memory_info", "memory_info says that 268435456 bytes of 2"),
    "index of figures": ("memory_info", "what is free on planted:1 follows what planted:0 takes"),
    "index of memory": ("memory_info", "bytes for planted:1 are missing on planted:0"),
    "out of memory": ("out_of_memory", "fails with RuntimeError, not as out of memory"),
    "raw_free": ("raw_free", "raw_free, memory_info: 33554432 bytes are missing on planted:0 after 33554432 were taken and given back"),
    "raw_free without figures": ("raw_free", "raw_free: blocks of 33554432 bytes were taken and given back, "),
    "unmap": ("mapping", "reserve, map, unmap, unreserve, memory_info: 33554432 bytes are missing"),
    "unmap too much": ("mapping", "map, unmap: memory has lost its values while other memory was unmapped and mapped"),
    "capture begin": ("capture_begin", "capture_begin: work that is captured ran at once"),
    "capture launch": ("capture_launch", "capture_launch: a replay of z = y, y = x: values are [[1.0], [2.0], [3.0]]"),
    "last capture": ("capture_launch", "capture_launch: a replay of z = y, y = x: values are"),
    "capture free": ("capture_free", "capture_free: y = x was launched before it was freed"),
    "capture end": ("capture_end", "capture_end with out NULL: y = x was captured, and thrown away: values are [[1.0], [1.0]]"),
    "import": ("exchange", "memory_export, memory_import, dlpack_type: a tensor that went out and came in again by DLPack is"),
}

#: plant: the program that shows it, and a part of what the kit says of it.
REGION_FAULTS = {
    "region": ("two_outputs", "pointwise: of a program with two outputs, x * y and relu(x * y) - 3, output 0 is not written"),
    "second output": ("two_outputs", "pointwise: of a program with two outputs, x * y and relu(x * y) - 3, output 0 is [-3.0, -3.0,"),
    "ninth operand": ("operands_9", "pointwise: of a program of 9 operands, input 6 of 8 counts -15.0, expected -7.0"),
}


@pytest.mark.parametrize("plant", [*TABLE_FAULTS, *REGION_FAULTS])
def test_a_fault_that_no_operator_shows_is_caught(plant, planted):
    part, faults = ("table", TABLE_FAULTS) if plant in TABLE_FAULTS else ("regions", REGION_FAULTS)
    check, said = faults[plant]
    found = runner.run("planted", planted, {"plant": plant}, [f"{part}.{check}"])
    wrong = {c.operator: c.differences[part] for c in found.wrong()}
    assert said in wrong[f"{part}.{check}"], wrong
    assert found.checks[part][check] == "wrong"
    words = {"table": "a function of its table does not keep what the interface says", "regions": "it runs programs of several operators wrongly"}
    assert report.faults(found)[f"{part}.{check}"][0] == [words[part]]


def test_what_a_table_has_not_is_not_wrong(planted):
    found = runner.run("planted", planted, {}, ["table", "regions"])
    table = found.checks["table"]
    assert set(table.values()) == {"kept", "not offered"} and [c for c in table if table[c] == "not offered"] == ["host_alloc"]
    assert set(found.checks["regions"].values()) == {"kept"}
    assert not found.wrong() and any(line.startswith("functions of the table, kept: streams") for line in report.summary(found))


@pytest.mark.parametrize("plant, seen", [("", {"streams_apart", "devices_apart"}), ("one device's queues", {"streams_apart"}), ("one queue", set())])
def test_queues_that_are_one_are_told_and_not_wrong(plant, seen, planted):
    """Streams promise order, which a device with one queue for all of them keeps."""
    found = runner.run("planted", planted, {"plant": plant}, ["table"])
    apart = {"streams_apart", "devices_apart"}
    assert not found.wrong() and {name for name in apart if found.checks["table"][name] == "kept"} == seen
    assert {name for name in apart if found.checks["table"][name] == "not seen"} == apart - seen
    said = [line for line in report.summary(found) if line.startswith("functions of the table, not seen, nor promised")]
    assert len(said) == (seen != apart)


@pytest.mark.parametrize("plant", ["float32 alone", "typed kernels"])
def test_a_device_without_a_dtype_is_right(plant, planted):
    """It lists dtypes. Operands of others are none of its business, and a kernel need not compute in all that it lists."""
    found = runner.run("planted", planted, {"plant": plant}, ["abs", "add", "sigmoid", "exp"], dtypes=["float32", "float64"])
    assert not report.faults(found)
    assert any(c.claimed for c in found.cells if c.operator == ("exp" if plant == "float32 alone" else "abs"))


@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_caught_by_operator_and_kind(plant, planted):
    operator, said, kinds, others = FAULTS[plant]
    found = faults(planted, plant, *OPERATORS)
    assert found[operator][0] == [said]
    assert kinds <= found[operator][1] and not others & found[operator][1]


@pytest.mark.parametrize("plant", ["", "scratch tensor"])
def test_a_device_without_a_fault_is_right(plant, planted):
    """A function of the table may take memory for a tensor of its own, as docs/backends.md says."""
    assert not faults(planted, plant, *OPERATORS, "sgn", "mul*", "sum")


@pytest.mark.parametrize("operator", [
    "mm", "dot", "baddbmm", "conv2d", "convolution_backward", "native_layer_norm", "batch_norm", "scaled_dot_product_attention", "embedding",
    "embedding_dense_backward", "max_pool2d", "zeros", "arange", "eye", "new_ones", "rand", "abs", "sort"])  # fmt: skip
def test_large_samples_are_of_operators_of_all_families(operator):
    """Those that fix the rank, and those that take no tensor, too."""
    entry = next(e for e in table.entries().values() if e.main.full_name == operator)
    samples = large.samples_of(entry.main, families.row_of(entry), "float32", quick=True)
    assert 1 <= len(samples) <= 3
    for s in samples:
        args, kwargs = TENON.arguments(s)
        results = TENON.function(entry.main, families.row_of(entry))(*args, **kwargs)
        tensors = tensors_of([*args, *(results if isinstance(results, tuple) else [results])])
        assert 1000 < max(t.numel() for t in tensors) <= 2**19 and len(tensors) <= 64


def test_forms_that_know_no_call_without_out_are_tried():
    found = runner.run("openreg", OPENREG, {"mode": "sync"}, ["norm.out", "tensordot.out", "fill.Scalar_out"], dtypes=["float32"])
    assert {c.operator: c.state for c in found.cells} == {"norm.out": "fallback", "tensordot.out": "fallback", "fill.Scalar_out": "native"}


def test_openregs_kernels_of_a_network_are_right():
    operators = ["_log_softmax*", "cross_entropy_loss", "nll_loss*", "mm", "addmm", "sum.dim_IntList"]
    found = runner.run("openreg", OPENREG, {"mode": "lazy", "kernels": "network"}, operators, dtypes=["float32"], jobs=2)
    assert not report.faults(found), report.text(found)
    assert {"_log_softmax", "mm", "addmm", "sum.dim_IntList"} <= {c.operator for c in found.cells if c.native}


def test_a_crash_does_not_end_the_run(planted):
    found = runner.run("planted", planted, {"plant": "host access"}, ["abs*", "exp"], dtypes=["float32"])
    states = {c.operator: c.state for c in found.cells}
    assert states["abs"] == "wrong" and states["exp"] == "native" and states["abs.out"] == "wrong"
    assert states["abs_"] == "native"


def command(*arguments, cwd=None):
    # A relative path would not lead to the package from another folder.
    environment = os.environ | {"PYTHONPATH": str((BUILD / "python").absolute())}
    return subprocess.run(
        [sys.executable, "-m", "tenon", "conformance", *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment
    )


def test_the_command(planted, tmp_path):
    table = tmp_path / "table.csv"
    done = command("openreg", "--plugin", OPENREG, "--option", "mode=lazy", "--ops", "mul", "--ops", "sort", "--quick", "--csv", table)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong" in done.stdout and "0 without one" in done.stdout
    with table.open(newline="") as file:
        rows = {(r["operator"], r["dtype"]): r for r in csv.DictReader(file)}
    assert rows["mul.Tensor", "float32"]["state"] == "native" and rows["sort", "float32"]["state"] == "fallback"
    assert rows["mul.Tensor", "float32"]["same_bits"] == "True" and rows["mul.Tensor", "float32"]["claimed"] == "True"
    done = command("planted", "--plugin", planted, "--option", "plant=nan", "--ops", "abs", "--dtypes", "float32")
    assert done.returncode == 1 and "WRONG abs: it loses NaN" in done.stdout
    for arguments, said in (
        (["gizmo"], "there is no device gizmo"),
        (["gizmo", "--option", "plant=nan"], "gizmo is looked for by its name, which takes no options"),
        (["openreg", "--plugin", OPENREG, "--ops", "openreg::waits"], "openreg::waits: no samples are declared"),
        (["openreg", "--plugin", OPENREG, "--ops", "nothing"], "no operator matches nothing"),
        (["openreg", "--plugin", OPENREG, "--dtypes", "float3"], "there is no dtype float3"),
        (["openreg", "--plugin", "/nowhere.so"], "cannot open shared object"),
    ):
        done = command(*arguments)
        assert done.returncode == 1 and said in done.stderr, done.stderr


DECLARING = """
import tenon
from tenon.conformance import declare, unary_samples
library = tenon.library.Library("mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeImplicit")
library.define("wrong(Tensor x) -> Tensor")
library.impl("wrong", lambda x: x * 2, "CPU")
library.impl("wrong", lambda x: x * 3, "PrivateUse1")
declare("mine::twice", unary_samples())
declare("mine::wrong", unary_samples())
"""


def test_operators_of_users_take_part(tmp_path, monkeypatch):
    (tmp_path / "declaring.py").write_text(DECLARING)
    monkeypatch.chdir(tmp_path)
    found = runner.run("openreg", OPENREG, {"mode": "sync"}, ["mine::*"], modules=["declaring"], dtypes=["float32", "int64"])
    states = {(c.operator, c.dtype): c.state for c in found.cells}
    assert not found.absent
    assert states["mine::twice", "float32"] == "native" and states["mine::wrong", "int64"] == "wrong"
    assert report.faults(found)["mine::wrong"][0] == ["its values are wrong"]
    assert [c.gradients > 0 for c in found.cells if (c.operator, c.dtype) == ("mine::twice", "float32")] == [True]


#: It speaks of an operator that the plug-in declares, when it is imported.
EXTENDING = """
from tenon.conformance import declare, unary_samples
from tenon.library import register_autograd, register_kernel
register_kernel("openreg::custom_abs", "cpu", lambda x: x.abs())
register_autograd("openreg::custom_abs", lambda ctx, grad: grad * ctx.saved_tensors[0].sign(),
                  setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
declare("openreg::custom_abs", unary_samples())
"""


def test_modules_are_imported_when_the_device_is_there(tmp_path):
    (tmp_path / "extending.py").write_text(EXTENDING)
    done = command(
        "openreg", "--plugin", OPENREG, "--option", "devices=1", "-i", "extending", "--ops", "openreg::custom_abs",
        "--dtypes", "float32", "--jobs", "1", "-v", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0 and "0 wrong" in done.stdout, done.stdout + done.stderr
    assert "float32:native" in done.stdout and " 10 incoming gradients" in done.stdout
    done = command("openreg", "--plugin", OPENREG, "--ops", "table", "--jobs", "1")
    assert "not tried: openreg::" not in done.stdout  # nobody asked for them


def test_a_library_that_is_loaded_may_be_a_device(planted, tmp_path):
    """As with the other commands: -l, whatever the library is."""
    (tmp_path / "looking.py").write_text('import tenon\nassert tenon.ones(2, device="planted:1").cpu().tolist() == [1, 1]\n')
    done = command("openreg", "--plugin", OPENREG.absolute(), "-l", planted, "-i", "looking", "--ops", "abs_", "--dtypes", "float32", cwd=tmp_path)
    assert done.returncode == 0 and "1 native" in done.stdout, done.stdout + done.stderr


def test_an_option_has_a_value(planted):
    done = command("planted", "--plugin", planted, "--option", "plant", "--ops", "abs")
    assert done.returncode == 2 and "--option plant: expected NAME=VALUE" in done.stderr


def test_which_of_two_refusals_comes_first_is_not_promised():
    """An in-place result that does not fit, of a dtype that is refused: the CPU speaks of the dtype, openreg of the sizes."""
    found = runner.run("openreg", OPENREG, {"mode": "sync"}, ["hypot_"], dtypes=["int32"])
    assert [c.state for c in found.cells] == ["refused"], report.text(found)


def test_importing_tenon_does_not_import_the_kit():
    program = "import sys, tenon; assert not [m for m in sys.modules if m.startswith(('tenon.conformance', 'scipy'))]"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_dtypes_are_claimed(tmp_path):
    program = f"""
import tenon
said = tenon.load_device({str(OPENREG)!r}).get_device_properties()
assert said.pointwise and said.operations and said.total_memory == 1 << 30 and not said.dtypes and "openreg" in said.name
try:
    tenon.openreg.get_device_properties(7)
except RuntimeError as error:
    assert "there is no device openreg:7" in str(error)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
