"""Adding an operator is one YAML entry: the entry of docs/adding-an-operator.md, in a copy of the tree.

The copy compiles what the entry changes; the rest comes from ccache, so without it this takes as long as a clean build.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "adding-an-operator.md"

PROGRAM = """
import json, tenon
x = tenon.tensor([-2.0, 3.0, 0.0, float("nan")], requires_grad=True)
y = tenon.scaled_abs(x, scale=0.5)
y.sum().backward()
try:
    tenon.scaled_abs(tenon.arange(3))
    error = "none"
except TypeError as e:
    error = str(e)
strided = tenon.scaled_abs(tenon.arange(6, dtype=tenon.float64).reshape(2, 3).t()[::1], 2.0)
print(json.dumps({
    "value": y.tolist(), "grad": x.grad.tolist(), "node": y.grad_fn.name(), "error": error,
    "default": tenon.scaled_abs(x.detach()).tolist(), "strided": strided.tolist(),
    "meta": list(tenon.scaled_abs(tenon.empty(2, 3, device="meta")).shape),
}))
"""


def entry() -> str:
    """The YAML of the page, as a reader would copy it."""
    return re.search(r"```yaml\n(- schema: scaled_abs.*?)```", DOCS.read_text(), re.DOTALL).group(1)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    tree = tmp_path_factory.mktemp("add_operator") / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build", ".git", ".venv", "__pycache__", ".cache"))
    family = tree / "tenon" / "ops" / "yaml" / "activation.yaml"
    family.write_text(family.read_text() + "\n" + entry())
    folder = tree / "build" / "release"
    configure = ["cmake", "-S", str(tree), "-B", str(folder), "-G", "Ninja", "-DTENON_PYTHON=ON", "-DTENON_TESTS=OFF",
                 f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, ["cmake", "--build", str(folder)]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    yield folder
    shutil.rmtree(tree)


@pytest.fixture(scope="module")
def result(build):
    environment = {**os.environ, "PYTHONPATH": str(build / "python")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_value_and_default(result):
    np.testing.assert_array_equal(result["value"], [1.0, 1.5, 0.0, np.nan])
    np.testing.assert_array_equal(result["default"], [2.0, 3.0, 0.0, np.nan])
    np.testing.assert_array_equal(result["strided"], 2.0 * np.arange(6.0).reshape(2, 3).T)
    assert result["meta"] == [2, 3]


def test_derivative(result):
    np.testing.assert_array_equal(result["grad"][:3], [-0.5, 0.5, 0.0])
    assert result["node"] == "ScaledAbsBackward0"


def test_integer_input_names_the_dtype(result):
    assert "scaled_abs" in result["error"] and "int64" in result["error"]
    assert "convert it to a floating-point type" in result["error"]


def test_stub_header_and_documentation(build):
    stub = (build / "python" / "tenon" / "_C.pyi").read_text()
    assert re.search(r"def scaled_abs\(input: Tensor, scale: float = 1(\.0?)?\) -> Tensor", stub)
    header = (build / "generated" / "tenon" / "generated" / "functions.h").read_text()
    assert "Tensor scaled_abs(const Tensor& self, double scale = 1.0);" in header
    assert "scale * |self|, element by element." in (build / "generated" / "docs" / "operators.md").read_text()
