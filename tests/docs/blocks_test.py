"""The blocks of code that are no whole programs: commands run, fragments compile, quotations and output are as they are printed.
Programs are tests/docs/examples_test.py's; two pages have tests that follow them from top to bottom."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTALL = ROOT / "build/install"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
#: tests/docs/tutorial_device_test.py, tests/integration/add_operator_test.py
ELSEWHERE = ("tutorial-device.md", "adding-an-operator.md")


def blocks(page):
    """(language, text) of the blocks of a page."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def is_program(language, text):
    """Whether examples_test.py runs the block."""
    return language == "python" or language == "cpp" and "int main()" in text


def block(page, language, begin):
    """The text of the one block of a page that begins so."""
    (found,) = [text for lang, text in blocks(ROOT / page) if (lang, text[: len(begin)]) == (language, begin)]
    return found


def run(script, folder=ROOT, **variables):
    """What a script of bash prints; it runs with this build's package, which is `python`'s."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/release/python"), "TENON": str(INSTALL), **variables}
    environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def holds(printed, text):
    """Whether each line of `text` is in what was printed, in order; `...` stands for anything."""
    at = 0
    for line in text.splitlines():
        found = re.compile(".*".join(re.escape(part) for part in line.split("..."))).search(printed, at)
        assert found, f"{line!r} is not in\n{printed}"
        at = found.end()


def compiles(text, folder, root=INSTALL / "include"):
    """Whether a file of C++ compiles with the installed headers alone."""
    (folder / "fragment.cc").write_text(text)
    run(f"g++ -std=c++20 -fsyntax-only -Wall -Werror -Wno-unused-function -I{root} fragment.cc", folder)


def lines_of(text):
    return [line.strip() for line in text.splitlines()]


#: What checks a block, by page, language and the beginning of its text. Each is a function of a temporary folder.
CHECKED = {}


def checks(page, language, begin):
    def register(function):
        CHECKED[page, language, begin] = function
        return function

    return register


@checks("README.md", "cmake", "find_package(Tenon")
def readme_cmake(folder):
    """The README's program, as its CMake file builds it; install.md has the same lines."""
    text = block("README.md", "cmake", "find_package(Tenon")
    assert text == block("docs/install.md", "cmake", "find_package(Tenon")
    app = folder / "app"
    app.mkdir(exist_ok=True)
    (app / "main.cc").write_text(block("README.md", "cpp", "#include <tenon/nn.h>"))
    lines = ["cmake_minimum_required(VERSION 3.25)", "project(app LANGUAGES CXX)", "add_executable(app main.cc)", text]
    (app / "CMakeLists.txt").write_text("\n".join(lines))
    return run(block("docs/install.md", "sh", "cmake -S app"), folder)


@checks("install.md", "cmake", "find_package(Tenon")
@checks("install.md", "sh", "cmake -S app")
def install_for_cpp(folder):
    assert "-ltenon" in readme_cmake(folder)


@checks("compile.md", "text", "1 plan, run once")
def the_first_report(folder):
    """What the page's first program prints."""
    (folder / "gated.py").write_text(block("docs/compile.md", "python", "import tenon\nimport tenon.nn.functional as F\n\n@tenon.compile\ndef gated"))
    holds(run(f"python {folder}/gated.py"), block("docs/compile.md", "text", "1 plan, run once"))


def generated(entry, folder):
    """What the generator prints of one entry, which it differentiates and checks first: the file of operators."""
    (folder / "yaml").mkdir()
    (folder / "yaml/page.yaml").write_text(entry)
    run(f"{ROOT}/build/release/tools/opgen/opgen yaml out", folder)
    return (folder / "out/page/operators.cc").read_text()


@checks("README.md", "yaml", "- schema: silu(")
def the_operator_of_the_readme(folder):
    assert "SiluBackward0" in generated(block("README.md", "yaml", "- schema: silu("), folder)


@checks("expressions.md", "", "let t = exp")
def an_expression(folder):
    lines = "".join(f"    {line}\n" for line in lines_of(block("docs/expressions.md", "", "let t = exp")))
    entry = f"- schema: logistic(Tensor self) -> Tensor\n  result: float\n  variants: [function]\n  expr: |\n{lines}"
    assert "LogisticBackward0" in generated(entry, folder)


@checks("adding-an-operator.md", "", "opgen: ")
def what_the_generator_refuses(folder):
    """The operator that the page means: silu, written so that its derivative is lost far from 0."""
    entry = "- schema: lost(Tensor self) -> Tensor\n  result: float\n  variants: [function]\n  expr: self / (1 + exp(-self))\n"
    with pytest.raises(AssertionError) as refused:
        generated(entry, folder)
    shown = " ".join(block("docs/adding-an-operator.md", "", "opgen: ").split())
    sentence = shown[shown.index("`expr`: the derivative") : shown.rindex(".")]
    assert sentence in str(refused.value)


@checks("adding-an-operator.md", "yaml", "  derivative:")
def formulas(folder):
    head = "- schema: product(Tensor self, Tensor mat2) -> Tensor\n  variants: [function]\n  shape: mm\n  kernel: mm\n"
    printed = generated(head + block("docs/adding-an-operator.md", "yaml", "  derivative:"), folder)
    assert "ProductBackward0" in printed


@checks("adding-an-operator.md", "text", "unary(")
def a_row_of_the_kit(folder):
    """Without the comma behind it, which the list of rows has."""
    row = block("docs/adding-an-operator.md", "text", "unary(").strip().rstrip(",")
    imports = "import numpy as np\nfrom tenon.conformance.rows import unary"
    (folder / "row.py").write_text(f"{imports}\nassert {row}.name == 'scaled_abs'\n")
    run("python row.py", folder)


@checks("expressions.md", "", '{.name = "sigmoid"')
def a_row_of_functions(folder):
    row = lines_of(block("docs/expressions.md", "", '{.name = "sigmoid"'))
    source = "\n".join(lines_of("\n".join(p.read_text() for p in ROOT.glob("tenon/expr/functions_*.cc"))))
    assert "\n".join(row) in source


@checks("introspection.md", "", "$ tenon trace")
def a_trace(folder):
    command, _, printed = block("docs/introspection.md", "", "$ tenon trace").partition("\n")
    assert run(command.replace("$ tenon", "python -m tenon")) == printed


def with_my_ops(begin, folder, after=""):
    """What a command about the page's `my_ops.py` prints; `after` follows the command."""
    page = "docs/custom-operators.md"
    (program,) = [text for language, text in blocks(ROOT / page) if language == "python" and 'Library("my", "DEF")' in text]
    (folder / "my_ops.py").write_text(program)
    return run(block(page, "sh", begin).rstrip() + after, folder)


@checks("custom-operators.md", "sh", "python -m tenon check-op")
@checks("custom-operators.md", "text", "1  pass")
def check_op(folder):
    printed = with_my_ops("python -m tenon check-op", folder, " || true")  # the last point is about time
    holds(printed, block("docs/custom-operators.md", "text", "1  pass"))


@checks("custom-operators.md", "sh", "python -m tenon bench overhead")
def overhead(folder):
    printed = with_my_ops("python -m tenon bench overhead", folder)
    assert all(step in printed for step in ("One call of my::norm", "key and look-up", "dispatch", "total"))


@checks("install.md", "text", "Sequential(")
def printed_module(folder):
    """What the program before it prints."""
    (program,) = [text for language, text in blocks(ROOT / "docs/install.md") if language == "cpp" and "cout << model" in text]
    (folder / "main.cc").write_text(program)
    run(f"g++ -std=c++20 main.cc -I{INSTALL}/include -L{INSTALL}/lib -ltenon -Wl,-rpath,{INSTALL}/lib -o program", folder)
    holds(run("./program", folder), block("docs/install.md", "text", "Sequential("))


@checks("stubs.md", "cpp", "// host_copies.cc")
def host_copies_of_a_key(folder):
    """Built against what is installed, and loaded next to a device."""
    (folder / "host_copies.cc").write_text(block("docs/stubs.md", "cpp", "// host_copies.cc"))
    run("g++ -std=c++20 -Wall -Werror -fPIC -shared -I$TENON/include host_copies.cc -L$TENON/lib -ltenon -o host_copies.so", folder)
    openreg = ROOT / "build/release/backends/openreg/openreg.so"
    program = f"""
import tenon
tenon.load_device({str(openreg)!r})
tenon.ops.load_library("./host_copies.so")
assert tenon.ones(3, device="openreg").cumsum(0).tolist() == [1, 2, 3] and tenon.ops.host_copies.count() == 1
"""
    (folder / "program.py").write_text(program)
    run("python program.py", folder)


@checks("conformance.md", "sh", "python -m tenon conformance openreg")
def the_kit_with_a_users_operator(folder):
    (folder / "extending.py").write_text(block("docs/conformance.md", "python", "# extending.py"))
    (folder / "openreg.so").symlink_to(ROOT / "build/release/backends/openreg/openreg.so")
    assert "WRONG" not in run(block("docs/conformance.md", "sh", "python -m tenon conformance openreg"), folder)


@checks("backends.md", "text", "$ python -m tenon conformance gizmo")
def what_the_kit_prints(folder):
    """Of a device that is wrong; its sentences are the kit's."""
    text = block("docs/backends.md", "text", "$ python -m tenon conformance gizmo")
    source = "".join(path.read_text() for path in (ROOT / "python/tenon/conformance").glob("*.py"))
    for sentence in ("it loses the storage offset", "contiguous tensors that begin inside of their storage", "WRONG"):
        assert sentence in text and sentence in source


ABI = '#include "tenon/abi/kernel.h"\n'


@checks("backends.md", "cpp", '#include "tenon/abi/kernel.h"\n\nnamespace abi = tenon::abi;\n\nabi::Tensor my_abs')
def a_kernel(folder):
    text = block("docs/backends.md", "cpp", '#include "tenon/abi/kernel.h"\n\nnamespace abi = tenon::abi;\n\nabi::Tensor my_abs')
    device = "struct MyDevice {};\nvoid launch_abs(MyDevice&, TenonStream, const TenonTensorView&, const TenonTensorView&);\n"
    compiles(ABI + device + text, folder)


@checks("backends.md", "cpp", "abi::Tensor empty(")
def a_factory(folder):
    before = '#include "tenon/abi/factory.h"\nnamespace abi = tenon::abi;\nvoid check_memory(abi::Layout, bool);\n'
    compiles(ABI + before + block("docs/backends.md", "cpp", "abi::Tensor empty("), folder)


@checks("backends.md", "cpp", '#include "tenon/abi/kernel.h"\n#include "tenon/abi/operator.h"')
def a_call_of_an_operator(folder):
    compiles(block("docs/backends.md", "cpp", '#include "tenon/abi/kernel.h"\n#include "tenon/abi/operator.h"'), folder)


@checks("backends.md", "cpp", "void my_abs(")
def a_stub(folder):
    compiles(ABI + "namespace abi = tenon::abi;\n" + block("docs/backends.md", "cpp", "void my_abs("), folder)


@pytest.mark.parametrize("what", CHECKED, ids=lambda what: f"{what[0]}-{what[1] or 'plain'}-{what[2].split()[0]}")
def test_block(what, tmp_path):
    CHECKED[what](tmp_path)


def test_every_block_of_every_page_is_tested():
    left = []
    for page in PAGES:
        for language, text in blocks(page):
            listed = any((page.name, language) == key[:2] and text.startswith(key[2]) for key in CHECKED)
            if not (listed or is_program(language, text) or page.name in ELSEWHERE):
                left.append(f"{page.name}: {text.splitlines()[0]}")
    assert not left


@pytest.mark.parametrize("page", ["backends.md", "opencl.md"])
def test_the_commands_that_build_a_device(page, tmp_path):
    """Against what is installed, in a folder of the test's."""
    (line,) = re.findall(r"^    (cmake -S backends/.*)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    run(line.replace("build/openreg", str(tmp_path)).replace("build/opencl", str(tmp_path)))
    assert list(tmp_path.glob("*.so"))
