"""The digits example end to end: the same bits in Python and C++, on every instruction set and thread count."""

import functools
import os
import pathlib
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = [sys.executable, str(ROOT / "examples/digits/digits.py")]
CPP = [str(ROOT / "build/digits/digits")]


def run(program, tmp_path, *flags, **environment):
    losses = tmp_path / "losses"
    result = subprocess.run(
        [*program, "--losses", str(losses), *flags],
        env={**os.environ, **environment}, capture_output=True, text=True,
    )
    assert result.returncode == 0, result.stderr
    return losses.read_bytes()


def accuracy(run_bytes):
    return struct.unpack("<d", run_bytes[-8:])[0]


@functools.cache
def supported_targets():
    """The instruction sets of the build that this machine has; the preset dev has one."""

    def runs(target):
        call = [sys.executable, "-c", "import tenon; tenon.cpu_target_name()"]
        return subprocess.run(call, env={**os.environ, "TENON_CPU_TARGET": target}, capture_output=True).returncode == 0

    return [target for target in ("SSE4", "AVX2", "AVX3") if runs(target)]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return run(CPP, tmp_path_factory.mktemp("reference"))


def test_both_reach_the_accuracy(reference, tmp_path):
    assert accuracy(reference) >= 0.96
    assert run(PYTHON, tmp_path) == reference


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("target", ["SSE4", "AVX2", "AVX3"])
@pytest.mark.parametrize("program", [PYTHON, CPP], ids=["python", "cpp"])
def test_same_bits_everywhere(program, target, threads, reference, tmp_path):
    if target not in supported_targets():
        pytest.skip(f"this machine or this build cannot run {target}")
    assert run(program, tmp_path, "--threads", threads, TENON_CPU_TARGET=target) == reference


@pytest.mark.parametrize("program", [PYTHON, CPP], ids=["python", "cpp"])
def test_every_operator_ran_a_kernel_of_tenon(program, tmp_path):
    for target in supported_targets():
        output = subprocess.run(
            [*program, "--kernels"], env={**os.environ, "TENON_CPU_TARGET": target},
            capture_output=True, text=True, check=True,
        ).stdout
        # The name of an operator may hold spaces.
        rows = [line.rsplit(None, 2) for line in output.splitlines() if line.split()[-1].isdigit()]
        kernels = {kernel for _, kernel, _ in rows}
        assert {"addmm", "mm", "relu", "log_softmax", "nll_loss_forward"} <= {operator for operator, _, _ in rows}
        # Where a build has more, it has no printed kernels for SSE4.
        pointwise = "interpreter" if target == "SSE4" and len(supported_targets()) > 1 else "simd"
        assert f"gemm:{target}" in kernels and f"{pointwise}:{target}" in kernels
        for kernel in kernels:
            assert kernel.split(":")[0] in {pointwise, "gemm", "reduce", "rows", "philox", "scan", "copy", "indexed"}, kernel
            assert ":" not in kernel or kernel.endswith(":" + target)


def test_one_changed_weight_changes_both_alike(reference, tmp_path):
    python, cpp = run(PYTHON, tmp_path, "--perturb"), run(CPP, tmp_path, "--perturb")
    assert python == cpp
    assert python != reference


def test_ten_other_seeds(tmp_path):
    result = subprocess.run([*CPP, "--seeds", "10"], capture_output=True, text=True, check=True)
    assert float(result.stdout.split()[-1]) >= 0.96


@pytest.mark.parametrize("program", [PYTHON, CPP], ids=["python", "cpp"])
@pytest.mark.parametrize(
    "content, what",
    [
        (None, "nowhere"),
        (b"", "no rows"),
        (b"1,2,3\n", ":1"),
        (b",".join([b"1"] * 65) + b"\n" + b",".join([b"17"] * 64 + [b"1"]) + b"\n", ":2"),
        (b",".join([b"1"] * 64 + [b"x"]) + b"\n", ":1"),
        (b",".join([b"1"] * 66) + b"\n", ":1"),
    ],
    ids=["missing", "empty", "short", "too large", "not a number", "long"],
)
def test_bad_files_are_reported(program, content, what, tmp_path):
    import gzip

    path = tmp_path / "nowhere.csv.gz"
    if content is not None:
        path.write_bytes(gzip.compress(content))
    result = subprocess.run([*program, "--data", str(path)], capture_output=True, text=True)
    assert result.returncode == 1
    assert what in result.stderr
    assert "Traceback" not in result.stderr
