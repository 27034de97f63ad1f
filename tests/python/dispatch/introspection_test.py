"""tenon._C.dispatch, kernel reports, threads, and what importing costs."""

import os
import subprocess
import sys

import pytest

import tenon
from tenon._C import dispatch


def test_key_sets():
    assert dispatch.key_set(tenon.ones(1)) == "DispatchKeySet(CPU)"
    assert dispatch.key_set(tenon.ones(1, requires_grad=True)) == "DispatchKeySet(CPU, AutogradCPU)"


def test_tables_and_schemas():
    assert "aten::add.Tensor" in dispatch.operators()
    assert dispatch.schema("add.Tensor").endswith("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    assert "CPU" in dispatch.table("aten::add.Tensor") and dispatch.dump("add.Tensor")
    assert dispatch.has_kernel("aten::empty.memory_format", "BackendSelect")
    with pytest.raises(NotImplementedError):
        dispatch.schema("aten::nothing")
    with pytest.raises(ValueError):
        dispatch.has_kernel("add.Tensor", "no such key")


def test_the_trace_goes_to_the_sink():
    lines = []
    dispatch.set_sink(lines.append)
    dispatch.trace(True)
    try:
        tenon.randn(3, 3)
    finally:
        dispatch.trace(False)
        dispatch.set_sink(None)
    text = "\n".join(lines)
    assert "randn" in text and "BackendSelect" in text and "normal_" in text


def test_kernels_report_what_ran():
    tenon.set_kernel_reporting(True)
    try:
        tenon.ones(4).exp()
        assert tenon.last_kernel()[0] == "exp"
        assert any(op == "exp" and tenon.cpu_target_name() in kernel for op, kernel, _ in tenon.kernel_counts())
    finally:
        tenon.set_kernel_reporting(False)


THREADS = """
import os, tenon
tenon.set_num_threads(1)
x = tenon.ones(600, 600)
for n in (1, 2, 4):
    tenon.set_num_threads(n)
    assert (x @ x)[0, 0].item() == 600
    print(n, len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize("environment", [None, "1", "3"])
def test_large_products_have_the_threads_that_were_set(environment):
    """The threads are OpenMP's, which are there once a product ran; those that go take their time."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    if environment:
        variables["OMP_NUM_THREADS"] = environment
    done = subprocess.run([sys.executable, "-c", THREADS], env=variables, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["1 1", "2 2", "4 4"], done.stdout + done.stderr


def test_threads_and_strict():
    n = tenon.get_num_threads()
    tenon.set_num_threads(1)
    assert tenon.get_num_threads() == 1
    tenon.set_num_threads(n)
    with pytest.raises(ValueError):
        tenon.set_num_threads(0)
    was = tenon.is_strict()
    tenon.set_strict(True)
    assert tenon.is_strict()
    tenon.set_strict(was)


def test_importing_does_not_bring_numpy():
    code = "import sys, tenon; assert 'numpy' not in sys.modules; print(tenon.ones(1).item())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "1.0\n"


def test_stubs_name_what_there_is():
    """Every name in the stub's annotations is defined in it, or is Python's; and nothing is defined twice but overloads."""
    import ast
    import builtins
    import pathlib

    tree = ast.parse((pathlib.Path(tenon._C.__file__).parent / "_C.pyi").read_text())
    known = set(dir(builtins))
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            known |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.Assign):
            known |= {t.id for t in node.targets}
        elif isinstance(node, ast.AnnAssign):
            known.add(node.target.id)
        else:
            known.add(node.name)
    asked = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for part in [node.returns, *(a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg))]:
                asked |= {n.id for n in ast.walk(part) if isinstance(n, ast.Name)} if part else set()
    assert not asked - known
    for scope in [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]:
        plain = [n.name for n in scope.body if isinstance(n, ast.FunctionDef) and not n.decorator_list]
        assert len(plain) == len(set(plain)), sorted(n for n in plain if plain.count(n) > 1)


def test_stubs_know_every_operator():
    import pathlib

    text = (pathlib.Path(tenon._C.__file__).parent / "_C.pyi").read_text()
    compile(text, "_C.pyi", "exec")
    functions = [n for n, f in vars(tenon._C).items() if callable(f) and not n.startswith("_") and not isinstance(f, type)]
    missing = [n for n in functions if f"def {n}(" not in text]
    assert not missing
    devices = [name for name, _, _ in tenon.devices.loaded()]  # of other tests: x.openreg(), x.is_openreg
    methods = [n for n in vars(tenon.Tensor) if not n.startswith("_") and hasattr(tenon.Tensor, n) and n.removeprefix("is_") not in devices]
    body = text[text.index("class Tensor:") :]
    assert not [n for n in methods if f"def {n}(" not in body and f" {n}:" not in body]


def test_operators_carry_their_documentation():
    assert "Sigmoid-weighted" in tenon.silu.__doc__ and "Sigmoid-weighted" in tenon.Tensor.silu.__doc__
    assert tenon.silu.__module__ == "tenon"
