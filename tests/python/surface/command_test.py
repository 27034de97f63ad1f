"""The `tenon` command, as a person at a terminal runs it."""

import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import tenon


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(pathlib.Path(tenon.__file__).absolute().parents[1])}


def run(*args, code=0, cwd=None, env=ENVIRONMENT):
    done = subprocess.run([sys.executable, "-m", "tenon", *args], capture_output=True, text=True, cwd=cwd, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def test_version():
    assert run("--version") == f"tenon {tenon.__version__}\n"


def test_docs_has_every_page_that_the_package_names():
    listed = dict(line.split() for line in run("docs").splitlines())
    package = pathlib.Path(tenon.__file__).parent
    named = {n for file in [*package.rglob("*.py"), package / "_C.pyi"] for n in re.findall(r"\bdocs/([a-z-]+)\.md", file.read_text())}
    assert {"compile", "differences"} <= named and named | {"operators"} <= set(listed)
    assert all(pathlib.Path(file).is_file() for file in listed.values())
    for page in ("compile", "compile.md", "docs/compile.md"):
        assert run("docs", page) == pathlib.Path(listed["compile"]).read_text()
    every = ", ".join(listed)
    assert run("docs", "compil", code=1) == f"tenon docs: there is no page 'compil'; did you mean compile? There are {every}\n"
    assert run("docs", "qqq", code=1) == f"tenon docs: there is no page 'qqq'; there are {every}\n"


def test_ops_lists_by_part_and_by_pattern():
    assert run("ops", "silu").split() == ["aten::silu", "aten::silu.out", "aten::silu_"]
    assert run("ops", "add.*").split() == [o for o in run("ops").split() if o.startswith("aten::add.")]
    assert "aten::add.Tensor" in run("ops", "aten::add.*").split()
    assert "aten::silu(Tensor self) -> Tensor" in run("ops", "-s", "silu").splitlines()
    assert {"name": "aten::silu", "schema": "aten::silu(Tensor self) -> Tensor"} in json.loads(run("ops", "--json", "silu"))
    assert "did you mean 'softmax'" in run("ops", "sofmax", code=1)


def test_where_shows_an_operator_from_end_to_end():
    text = run("where", "silu")
    root = pathlib.Path(__file__).resolve().parents[3]
    file, line = re.search(r"declared at +(\S+):(\d+)", text).groups()
    assert (root / file).read_text().splitlines()[int(line) - 1].startswith("- schema: silu(")
    for part in (
        "aten::silu(Tensor self) -> Tensor",
        "silu(self)",
        "from the expression, node SiluBackward0",
        "Tensor tenon::silu(const Tensor& self)",
        "tenon::operators::silu",
        "tenon.Tensor.silu",
        "tenon.ops.aten.silu.default",
        f"on cpu       default backend kernel {file}:{line}",
    ):
        assert part in text, part
    assert "aten::silu.out" in text  # all overloads of the name
    assert "mm(grad, t(conjugated(mat2)))" in run("where", "aten::mm")
    (op,) = json.loads(run("where", "--json", "aten::add.Tensor"))
    assert op["derivative"]["formulas"].keys() == {"self", "other"} and op["kernels"]["cpu"]["line"] > 0
    assert op["name"] == "aten::add.Tensor" and op["registrations"]


@pytest.mark.parametrize(
    "name, operators",
    [
        ("torch.softmax", ["aten::softmax.int", "aten::softmax.int_out"]),
        ("tenon.softmax", ["aten::softmax.int", "aten::softmax.int_out"]),
        ("Tensor.softmax", ["aten::softmax.int"]),
        ("torch.Tensor.softmax", ["aten::softmax.int"]),
        ("silu", ["aten::silu", "aten::silu.out"]),
        ("torch.silu_", ["aten::silu_"]),
    ],
)
def test_where_knows_the_bindings_of_operators(name, operators):
    assert sorted(op["name"] for op in json.loads(run("where", "--json", name))) == sorted(operators)


def test_where_knows_what_is_written_in_python():
    root = pathlib.Path(__file__).resolve().parents[3]
    text = run("where", "nn.Linear", cwd=root)
    file, line = re.search(r"written at +(\S+):(\d+)", text).groups()
    assert (root / file).read_text().splitlines()[int(line) - 1].startswith("class Linear(")
    assert "Linear(in_features, out_features, bias=True" in text and re.search(rf"forward: {file}:\d+", text)
    (relu,) = json.loads(run("where", "--json", "F.relu"))
    assert relu["name"] == "tenon.nn.functional.relu" and relu["kind"] == "function" and relu["line"] > 0
    assert json.loads(run("where", "--json", "torch.nn.functional.relu")) == [relu]
    assert "kind        dtype" in run("where", "torch.float32") and "the extension module" in run("where", "manual_seed")


def test_where_lists_what_matches_a_pattern():
    assert [line.split()[0] for line in run("where", "silu*").splitlines()] == run("ops", "silu*").split()
    norms = {line.split()[0] for line in run("where", "nn.*Norm*").splitlines()}
    assert {"tenon.nn.LayerNorm", "tenon.nn.BatchNorm2d"} <= norms and all(n.startswith("tenon.nn.") for n in norms)
    line = run("where", "Tensor.softm*")
    assert re.match(r"aten::softmax.int  tenon/ops/yaml/softmax.yaml:\d+  exp\(self\)", line) and line.count("\n") == 1


@pytest.mark.parametrize(
    "name, message",
    [
        ("torch.sofmax", "'tenon' has no 'sofmax'; did you mean 'softmax' or"),
        ("nn.Linea", "'tenon.nn' has no 'Linea'; did you mean 'Linear'"),
        ("Tensor.foo_bar", "'tenon.Tensor' has no 'foo_bar'"),
        ("torch.vmap", "torch.vmap of PyTorch is not in Tenon yet"),
        ("nn.Zz*", "nothing matches 'nn.Zz*'"),
        ("users::g", "operator 'users::g' does not exist"),
    ],
)
def test_where_says_what_there_is_not(name, message):
    assert message in run("where", name, code=1)


def test_where_names_every_operator():
    index = json.loads((pathlib.Path(tenon._C.__file__).parent / "_operators.json").read_text())
    assert set(index) == {o for o in tenon.dispatch.operators("aten")}
    assert all(entry["file"].startswith("tenon/ops/yaml/") and entry["line"] > 0 and entry["body"] for entry in index.values())
    made = tenon.ones(2, requires_grad=True)
    assert (made * 2).grad_fn.name() == index["aten::mul.Tensor"]["node"]


USERS = """
import tenon
lib = tenon.library.Library("users", "DEF")
lib.define("f(Tensor x) -> Tensor")
lib.impl("f", lambda x: x * 2, "CPU")
tenon.library.register_autograd("users::f", lambda ctx, g: g * 2, lib=lib)
"""


def test_operators_of_a_users_module(tmp_path):
    (tmp_path / "users_ops.py").write_text(USERS)
    file = str(tmp_path / "users_ops.py")
    text = run("where", "-i", "users_ops", "users::f", cwd=tmp_path)
    assert "schema       users::f(Tensor x) -> Tensor" in text and f"on cpu       kernel {file}:5" in text
    assert f"registered at {file}:6" in text and "on meta      missing" in text
    assert f"CPU: {file}:5" in run("dump", "--import", "users_ops", "users::f", cwd=tmp_path)
    assert "cannot import 'no_such_module'" in run("ops", "-i", "no_such_module", code=1)
    assert "no_such.so" in run("ops", "-l", "no_such.so", code=1)


def test_dump_and_table():
    assert "Autograd: tenon/ops" in run("dump", "add.Tensor") and "schema: aten::add.Tensor(" in run("dump", "add.Tensor")
    rows = run("table", "add.Tensor").splitlines()
    assert rows[0] == "table of aten::add.Tensor"
    assert re.match(r"  CPU +\[default backend kernel\] +tenon/ops/yaml/\S+:\d+$", rows[1])
    cells = json.loads(run("table", "--json", "add.Tensor"))["aten::add.Tensor"]
    assert {"key": "BackendSelect", "source": "fallthrough", "file": "", "line": 0} in cells
    assert json.loads(run("dump", "--json", "add.Tensor"))["aten::add.Tensor"][0]["active"]


def test_keys():
    assert run("keys", "CPU") == "CPU: runtime key\n"
    assert "Autograd: alias of AutogradCPU, AutogradMeta" in run("keys", "Autograd")
    assert run("keys", "CatchAll").startswith("CompositeImplicit: alias of CPU")
    assert run("keys", "tenon.ones(2, requires_grad=True)") == "DispatchKeySet(CPU, AutogradCPU)\n"
    assert json.loads(run("keys", "--json", "tenon.ones(2)")) == ["CPU"]
    listed = run("keys").split()
    assert listed.index("CPU") < listed.index("BackendSelect") < listed.index("AutogradCPU")
    assert all(tenon.dispatch.is_alias_key(k) == (kind == "alias") for k, kind in zip(listed[::2], listed[1::2]))
    assert "did you mean 'AutogradCPU'" in run("keys", "AutogradCPUU", code=1)
    assert "ZeroDivisionError" in run("keys", "1/0", code=1)
    assert "is a int, not a Tensor" in run("keys", "1+1", code=1)


def test_keys_that_nobody_registered_anything_for():
    used = run("keys")
    assert "QuantizedCPU" not in used and "AutogradMeta" in used
    rest = run("keys", "--all").splitlines()
    assert any(re.match(r"QuantizedCPU +no kernel or fallback is registered for it", line) for line in rest)
    assert run("keys", "QuantizedCPU") == "QuantizedCPU: runtime key, no kernel or fallback is registered for it\n"
    assert "QuantizedCPU" not in run("keys", "CompositeImplicit")
    rows = run("table", "reshape").splitlines()
    assert rows[-1].startswith("  no kernel or fallback is registered for ") and "QuantizedCPU" in rows[-1]
    assert not any(row.startswith("  QuantizedCPU") for row in rows)
    assert any(row.startswith("  QuantizedCPU") for row in run("table", "--all", "reshape").splitlines())


def test_operators_by_key_and_check(tmp_path):
    assert run("ops", "--key", "BackendSelect").split() == tenon.dispatch.operators_with_kernel("BackendSelect")
    assert run("ops", "addbm", "--key", "CompositeDense").split() == ["aten::addbmm.out", "aten::baddbmm.out"]
    assert "no operator has a kernel for Profiler" in run("ops", "--key", "Profiler", code=1)
    assert "is no dispatch key" in run("ops", "--key", "Profilers", code=1)
    assert run("check") == "nothing is wrong\n" == run("check", "add")
    (tmp_path / "dangling_ops.py").write_text("import tenon\nlib = tenon.library.Library('late', 'IMPL')\nlib.impl('f', lambda x: x, 'CPU')\n")
    done = subprocess.run([sys.executable, "-m", "tenon", "check", "-i", "dangling_ops"], capture_output=True, text=True,
                          cwd=tmp_path, env=ENVIRONMENT)  # fmt: skip
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout == f"late::f has a kernel for CPU ({tmp_path / 'dangling_ops.py'}:3) and no declaration\n"
    assert "schema: none" in run("dump", "-i", "dangling_ops", "late::f", cwd=tmp_path)
    assert "did you mean" in run("check", "aten::softmx", code=1)
    facts = json.loads(run("info", "--json"))
    assert facts["backends"] == 2 and facts["included keys"] == facts["excluded keys"] == []


def test_traces_with_shapes_times_and_as_json(tmp_path):
    text = run("trace", "--shapes", "--times", "-c", "tenon.ones(2, 3) + tenon.ones(3)")
    assert "shapes=[[2, 3], [3]]" in text and re.search(r"\[return\] op=\[aten::add.Tensor\], us=\[\d+\.\d\]", text)
    file = tmp_path / "trace.json"
    assert run("trace", "--chrome", str(file), "-c", "tenon.ones(2) + 1") == ""
    assert "aten::ones" in {e["name"] for e in json.loads(file.read_text())["traceEvents"]}
    assert "ValueError: oops" in run("trace", "--chrome", str(file), "-c", "tenon.zeros(1)\nraise ValueError('oops')", code=1)
    assert "aten::zeros" in {e["name"] for e in json.loads(file.read_text())["traceEvents"]}
    # What cannot be written is refused before the code runs.
    done = subprocess.run([sys.executable, "-m", "tenon", "trace", "--chrome", str(tmp_path / "no/file"), "-c", "print('ran')"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1 and "ran" not in done.stdout
    assert f"--chrome {tmp_path / 'no/file'}: No such file or directory" in done.stderr


def test_trace_of_code_and_of_a_script(tmp_path):
    lines = run("trace", "-c", "tenon.randn(3, 3)").splitlines()
    assert lines[0].strip().startswith("[call] op=[aten::randn], key=[BackendSelect]")
    assert lines[1].strip().startswith("[redispatch] op=[aten::randn], key=[CPU]")
    script = tmp_path / "script.py"
    script.write_text("import sys, tenon\nprint(sys.argv[1:], __name__)\ntenon.ones(2)\n")
    text = run("trace", str(script), "a", "--b")
    assert "['a', '--b'] __main__" in text and "[call] op=[aten::ones]" in text
    script.write_text("raise SystemExit(3)")
    run("trace", str(script), code=3)
    assert "ValueError: oops" in run("trace", "-c", "raise ValueError('oops')", code=1)
    assert "there is no file" in run("trace", "no_such_script.py", code=1)
    assert "give a script, or code with -c" in run("trace", code=2)


def test_stubs_and_info():
    found = run("stubs")
    assert re.search(r"^mm +cpu +\(Tensor self, .*\) -> \(\)$", found, re.MULTILINE)
    assert not re.search(r", *,| +$", found, re.MULTILINE)
    assert any(s["name"] == "mm" and s["devices"] == ["cpu"] for s in json.loads(run("stubs", "--json")))
    facts = json.loads(run("info", "--json", env={**ENVIRONMENT, "TENON_STRICT": "1"}))
    assert facts["tenon"] == tenon.__version__ and facts["cpu target"] == tenon.cpu_target_name()
    assert facts["environment"] == {"TENON_CACHE": "0", "TENON_LAPACK": "off", "TENON_STRICT": "1"} and facts["devices"][0] == "cpu"
    assert facts["module"] == tenon._C.__file__ and facts["operators"] >= len(tenon.dispatch.operators("aten"))
    assert re.search(r"^threads +\d+$", run("info"), re.MULTILINE)


@pytest.mark.parametrize(
    "args, message",
    [
        (["op"], "there is no command 'op'; did you mean 'ops'?"),
        (["wher", "add"], "did you mean 'where'?"),
        (["table"], "required: OP"),
        (["ops", "--jsn"], "did you mean '--json'?"),
        ([], "required: COMMAND"),
    ],
)
def test_bad_use(args, message):
    error = run(*args, code=2)
    assert message in error and "usage: tenon" in error


@pytest.mark.parametrize("command", ["where", "dump", "table"])
def test_an_unknown_operator_is_one_clear_line(command):
    error = run(command, "aten::softmx", code=1)
    assert error == f"tenon {command}: operator 'aten::softmx' does not exist; did you mean 'aten::softmax'?\n" or (
        error.count("\n") == 1 and "did you mean" in error and "softmax" in error
    )


def test_a_reader_that_stops_early_is_no_error():
    # More than a pipe holds, so that the writer meets the closed end.
    writer = subprocess.Popen(
        [sys.executable, "-m", "tenon", "where", "--json", "add"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    writer.stdout.close()
    error = writer.stderr.read()
    assert writer.wait() in (0, 141) and error == b""


def test_the_console_script_is_declared():
    # Before Python 3.11, pytest brings the same as tomli.
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = tomllib.loads((pathlib.Path(__file__).resolve().parents[3] / "pyproject.toml").read_text())
    module, _, function = project["project"]["scripts"]["tenon"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert tenon.where(tenon.tensor(True), 1, 2).item() == 1, "no module of the package has an operator's name"


def with_closed_pipe(*args):
    """What a command writes to stderr, and its exit code, where its reader reads one line or none and goes."""
    with subprocess.Popen([sys.executable, "-u", "-m", "tenon", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        process.stdout.close()
        error = process.stderr.read()
        return error, process.wait()


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["ops", "--help"],
        ["--version"],
        ["ops", "-a", "-s"],
        ["where", "add"],
        ["info", "--json"],
        ["docs", "compile"],
        ["trace", "-c", "print(tenon.__version__)"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_a_command_without_a_word(args):
    assert with_closed_pipe(*args) == ("", 141)


def test_a_traced_program_ends_when_no_one_reads():
    assert with_closed_pipe("trace", "-c", "while True: tenon.ones(1) + 1") == ("", -signal.SIGPIPE)


def test_ctrl_c_ends_a_command_without_a_traceback(tmp_path):
    (tmp_path / "waits.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "tenon", "trace", str(tmp_path / "waits.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
        assert (process.stderr.read(), process.wait()) == ("tenon: interrupted\n", 130)


def test_a_traceback_of_a_traced_program_begins_with_the_program(tmp_path):
    (tmp_path / "fails.py").write_text("def f():\n    raise ValueError('no')\nf()\n")
    error = run("trace", str(tmp_path / "fails.py"), code=1)
    assert error.splitlines()[:2] == ["Traceback (most recent call last):", f'  File "{tmp_path}/fails.py", line 3, in <module>']
    assert "File \"<code>\", line 1" in run("trace", "-c", "1 / 0", code=1).splitlines()[1]


def test_suggestions_are_alike_and_choices_are_listed():
    assert run("where", "zzz", code=1) == "tenon where: operator 'aten::zzz' does not exist\n"
    assert "did you mean 'aten::add" in run("dump", "addd", code=1)
    assert "there is no action 'latency'; there is overhead" in run("bench", "latency", code=2)
    assert "there is no action 'purge'; there are show, list, clear" in run("plans", "purge", code=2)
