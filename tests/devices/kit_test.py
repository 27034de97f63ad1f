"""The conformance kit: what it says of openreg, and that it catches planted faults by operator and kind."""

import csv
import pathlib
import subprocess
import sys

import pytest

from tenon.conformance import report, runner
from tests.devices.conftest import OPENREG

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A device that is right, or has the fault that plant=NAME asks for."""
    library = tmp_path_factory.mktemp("planted") / "planted.so"
    subprocess.run(["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fPIC", "-shared",
                    f"-I{ROOT}", HERE / "planted/planted.cc", "-o", library], check=True)  # fmt: skip
    return library


def faults(library, plant, *ops):
    """{operator: (its faults in words, the kinds of differences)}"""
    found = runner.run("planted", library, {"plant": plant}, ops, dtypes=["float32"])
    return {op: (said, set(kinds)) for op, (said, kinds) in report.faults(found).items()}


OPERATORS = ("abs", "add", "add_", "sigmoid", "exp")

#: plant: the operator that shows it, what the kit says of it, kinds among the differences, kinds that are not.
FAULTS = {
    "contiguity": ("abs", "it takes tensors to be contiguous", {"transposed", "expanded", "negative", "sliced"}, {"offset"}),
    "offset": ("abs", "it loses the storage offset", {"offset", "sliced"}, {"transposed", "expanded"}),
    "negative stride": ("abs", "it reads negative strides as positive", {"negative"}, {"transposed", "offset", "sliced"}),
    "promotion": ("add.Tensor", "its results have another dtype: wrong promotion", {"dtype"}, {"values"}),
    "host access": ("abs", "it crashes: does the host touch memory of the device?", {"crash"}, set()),
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
}  # fmt: skip


@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_caught_by_operator_and_kind(plant, planted):
    operator, said, kinds, others = FAULTS[plant]
    found = faults(planted, plant, *OPERATORS)
    assert found[operator][0] == [said]
    assert kinds <= found[operator][1] and not others & found[operator][1]


def test_the_device_without_a_plant_is_right(planted):
    assert not faults(planted, "", *OPERATORS, "sgn", "mul*", "sum")


def test_a_crash_does_not_end_the_run(planted):
    found = runner.run("planted", planted, {"plant": "host access"}, ["abs*", "exp"], dtypes=["float32"])
    states = {c.operator: c.state for c in found.cells}
    assert states["abs"] == "wrong" and states["exp"] == "native" and states["abs.out"] == "wrong"
    assert states["abs_"] == "native"


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "tenon", "conformance", *map(str, arguments)], capture_output=True, text=True)


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
    assert states["mine::twice", "float32"] == "native" and states["mine::wrong", "int64"] == "wrong"
    assert report.faults(found)["mine::wrong"][0] == ["its values are wrong"]
    assert [c.gradients > 0 for c in found.cells if (c.operator, c.dtype) == ("mine::twice", "float32")] == [True]


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
