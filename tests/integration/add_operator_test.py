"""Adding an operator, by one YAML entry and the long way: what docs/adding-an-operator.md says, in a copy of the tree.

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
long = tenon.tensor([-2.0, 3.0, 0.0, float("nan")], dtype=tenon.float64, requires_grad=True)
out = long.scaled_abs_long(scale=0.5)
out.sum().backward()
target = tenon.zeros(4, dtype=tenon.float64)
try:
    tenon.scaled_abs_long(tenon.arange(3))
    long_error = "none"
except TypeError as e:
    long_error = str(e)
print(json.dumps({
    "long": {
        "value": out.tolist(), "grad": long.grad.tolist(), "node": out.grad_fn.name(), "error": long_error,
        "out": tenon.scaled_abs_long(long.detach(), 2.0, out=target).tolist(), "same": target.tolist(),
        "strided": tenon.scaled_abs_long(tenon.arange(6, dtype=tenon.float32).reshape(2, 3).t().flip(0) - 3, 2.0).tolist(),
        "meta": list(tenon.scaled_abs_long(tenon.empty(2, 3, device="meta")).shape),
    },
    "value": y.tolist(), "grad": x.grad.tolist(), "node": y.grad_fn.name(), "error": error,
    "default": tenon.scaled_abs(x.detach()).tolist(), "strided": strided.tolist(),
    "meta": list(tenon.scaled_abs(tenon.empty(2, 3, device="meta")).shape),
}))
"""


def entry(name: str) -> str:
    """The YAML of the page, as a reader would copy it."""
    return re.search(rf"```yaml\n(- schema: {name}\(.*?)```", DOCS.read_text(), re.DOTALL).group(1)


def sources() -> dict[str, str]:
    """The C++ files of the page: a sentence ends with the path, and the text follows."""
    return dict(re.findall(r"`([\w/]+\.cc)`:\n\n```cpp\n(.*?)```", DOCS.read_text(), re.DOTALL))


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    tree = tmp_path_factory.mktemp("add_operator") / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build", ".git", ".venv", "__pycache__", ".cache"))
    family = tree / "tenon" / "ops" / "yaml" / "activation.yaml"
    family.write_text("\n".join([family.read_text(), entry("scaled_abs"), entry("scaled_abs_long")]))
    assert len(sources()) == 2
    for path, text in sources().items():
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(text)
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
    assert re.search(r"def scaled_abs\(input: Tensor, scale: _?float = 1(\.0?)?(, .*)?\) -> Tensor", stub)
    header = (build / "generated" / "tenon" / "generated" / "activation" / "functions.h").read_text()
    assert "Tensor scaled_abs(const Tensor& self, double scale = 1.0);" in header
    assert "scale * |self|, element by element." in (build / "generated" / "docs" / "operators.md").read_text()


def test_the_long_way(result):
    got = result["long"]
    np.testing.assert_array_equal(got["value"], [1.0, 1.5, 0.0, np.nan])
    np.testing.assert_array_equal(got["grad"][:3], [-0.5, 0.5, 0.0])
    np.testing.assert_array_equal(got["out"], [4.0, 6.0, 0.0, np.nan])
    np.testing.assert_array_equal(got["same"], got["out"])
    np.testing.assert_array_equal(got["strided"], np.abs(np.arange(6.0).reshape(2, 3).T[::-1] - 3) * 2)
    assert got["meta"] == [2, 3] and got["node"] == "ScaledAbsLongBackward0"
    assert "scaled_abs_long: not implemented for int64" in got["error"]


def test_the_long_way_in_the_index(build):
    op = json.loads((build / "python" / "tenon" / "_operators.json").read_text())["aten::scaled_abs_long"]
    assert op["body"] == {"shape": "tenon::ops::shape::scaled_abs_long", "kernel": "tenon::cpu::scaled_abs_long"}
    assert op["formulas"] == {"self": "mul(mul(grad, sign(self)), scale)"}
    assert "tenon.Tensor.scaled_abs_long" in op["python"]


def test_the_page_s_own_lines(build):
    """What a reader types with the operator that was added: Python's lines with the comments' values, and C++'s."""
    page = DOCS.read_text()
    lines = re.findall(r"^>>> (.*?)\s+# (.*)$|^>>> (.*)$", re.search(r"```pycon\n(.*?)```", page, re.DOTALL).group(1), re.MULTILINE)
    lines = [(code or plain, comment) for code, comment, plain in lines]
    assert len(lines) == 5 and "TypeError" in lines[-1][1]
    program = "\n".join(["import tenon", *(code for code, _ in lines[:3]), "assert y.tolist() == [1.0, 1.5]",
                         "assert y.grad_fn.name() == 'ScaledAbsBackward0'", f"assert ({lines[3][0]}).tolist() == {lines[3][1]}",
                         f"try:\n    {lines[4][0]}\nexcept TypeError as e:\n    print(e)"])  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(build / "python")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    first, *rest = lines[4][1].removeprefix("TypeError: ").split(" ... ")
    assert done.stdout.startswith(first.split(" ...")[0]) and "convert it to a floating-point type" in done.stdout
    (text,) = re.findall(r"```cpp\n(tenon::Tensor y = .*?)```", page, re.DOTALL)
    source = build / "page.cc"
    source.write_text(
        f"#include <tenon/generated/operators.h>\n#include <tenon/tenon.h>\nvoid f(const tenon::Tensor& x) {{\n{text}}}\n"
    )
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{build.parents[1]}", f"-I{build / 'generated'}", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
