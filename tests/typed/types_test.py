"""The types that checkers see: programs of users, the stubs beside the extension module, signatures, and help()."""

import doctest
import importlib.util
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenon
from tenon._names.absent import _AbsentAttribute

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = Path(tenon._C.__file__).parents[1]
EXAMPLES = [*sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "examples" / "digits").glob("*.py"))]

needs_mypy = pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed")
needs_pyright = pytest.mark.skipif(not importlib.util.find_spec("basedpyright"), reason="basedpyright is not installed")


def run(module, *arguments, **environment):
    """What a checker writes, and how it ended."""
    search = os.pathsep.join(map(str, (PACKAGE, ROOT / "examples")))
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT / "build",
        env={**os.environ, "MYPYPATH": search, "PYTHONPATH": str(PACKAGE), **environment},
    )
    return done.stdout + done.stderr, done.returncode


def mypy(config, *arguments):
    return run("mypy", "--config-file", HERE / config, "--cache-dir", ROOT / "build" / "mypy", *arguments)


@needs_mypy
def test_programs_and_examples_pass_the_strict_checker():
    text, code = mypy("mypy.ini", HERE / "program.py", *EXAMPLES)
    assert code == 0, text


@needs_mypy
def test_mistakes_are_found_and_nothing_else():
    text, _ = mypy("mypy.ini", HERE / "wrong.py")
    found = dict(re.findall(r"wrong\.py:(\d+): error: .*\[([\w-]+)\]", text))
    lines = enumerate((HERE / "wrong.py").read_text().splitlines(), 1)
    assert found == {str(n): line.rpartition("  # ")[2] for n, line in lines if "  # " in line}, text


@needs_mypy
def test_the_lines_of_the_package_are_what_its_annotations_say():
    text, code = mypy("package.ini", "-p", "tenon")
    assert code == 0, text


@needs_mypy
def test_the_stubs_are_what_the_extension_module_has(tmp_path):
    allowed = tmp_path / "allowed.txt"
    absent = [f"tenon._C.Tensor.{n}" for n, v in vars(tenon.Tensor).items() if isinstance(v, _AbsentAttribute)]
    allowed.write_text((HERE / "stubtest.txt").read_text() + "\n".join(map(re.escape, absent)))
    text, code = run(
        "mypy.stubtest", "tenon._C", "--concise", "--ignore-disjoint-bases", "--ignore-unused-allowlist", "--allowlist",
        allowed,
    )  # fmt: skip
    assert code == 0, text


@needs_pyright
def test_programs_and_examples_pass_pyright(tmp_path):
    settings = tmp_path / "pyrightconfig.json"
    files = ", ".join(f'"{f}"' for f in [HERE / "program.py", *EXAMPLES])
    settings.write_text(
        f'{{"include": [{files}], "extraPaths": ["{PACKAGE}", "{ROOT}/examples"], "typeCheckingMode": "standard", '
        f'"reportMissingModuleSource": false, "reportPossiblyUnboundVariable": false, "reportMissingImports": false, "pythonVersion": "3.11"}}'
    )
    text, code = run("basedpyright", "-p", settings)
    assert code == 0, text


def public(owner, prefix):
    """(name, function or class) of what a module or class gives out."""
    for name in getattr(owner, "__all__", None) or dir(owner):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if callable(value) and not isinstance(value, _AbsentAttribute):
            yield f"{prefix}.{name}", value


def everything_public():
    rooms = [tenon, tenon.nn, tenon.nn.functional, tenon.nn.init, tenon.nn.utils, tenon.optim, tenon.optim.lr_scheduler,
             tenon.autograd, tenon.autograd.graph, tenon.library, tenon.linalg, tenon.fft, tenon.random, tenon.utils.data,
             tenon.dispatch, tenon.devices, tenon.cpu, tenon.accelerator]  # fmt: skip
    for room in rooms:
        yield from public(room, room.__name__)
    for kind in (tenon.Tensor, tenon.Generator, tenon.nn.Module, tenon.optim.Optimizer, tenon.UntypedStorage):
        yield from public(kind, kind.__name__)


def test_every_public_function_has_a_signature():
    without = []
    for name, value in everything_public():
        if inspect.isclass(value) and not isinstance(value, type(tenon.nn.Module)):
            continue
        try:
            inspect.signature(value)
        except (TypeError, ValueError):
            if not inspect.isclass(value):
                without.append(name)
    assert not without


def test_a_signature_has_names_and_defaults():
    assert str(inspect.signature(tenon.add)) == "(input, other, alpha=1, *, out=None)"
    assert str(inspect.signature(tenon.Tensor.softmax)) == "(self, /, dim, dtype=None)"
    assert list(inspect.signature(tenon.nn.functional.conv2d).parameters)[:4] == ["input", "weight", "bias", "stride"]
    assert inspect.signature(tenon.tensor).parameters["requires_grad"].default is False


def test_help_has_types_defaults_shapes_and_an_example():
    text = tenon.add.__doc__
    assert "add(input: Tensor, other: Tensor, *, alpha: Number = 1, out: Tensor) -> Tensor" in text
    assert "Shapes: that to which the tensors broadcast" in text
    assert ">>> tenon.add(tenon.ones(2, 3), tenon.ones(3)).shape" in text


def test_the_examples_of_help_run():
    run_ones, runner = 0, doctest.DocTestRunner(verbose=False)
    for name, value in public(tenon, "tenon"):
        lines = doctest.DocTestParser().get_doctest(value.__doc__ or "", {"tenon": tenon}, name, None, 0)
        out = []
        assert runner.run(lines, out=out.append).failed == 0, "".join(out)
        run_ones += len(lines.examples)
    assert run_ones > 150
