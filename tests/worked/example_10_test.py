"""Worked example 10 of the documentation, the long way and out of tree: examples/custom_operator, against the installed
library, from C++ and from Python. The way through one YAML entry, and the long way in the tree, are
tests/integration/add_operator_test.py."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("custom_operator")
    for command in (
        ["cmake", "-S", ROOT / "examples" / "custom_operator", "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_PREFIX_PATH={ROOT / 'build/install'}"],
        ["cmake", "--build", folder],
    ):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def op(build):
    if not hasattr(tenon.ops.example, "scaled_abs"):
        tenon.ops.load_library(build / "libscaled_abs.so")
    return tenon.ops.example.scaled_abs


def test_in_cpp(build):
    done = subprocess.run([build / "use_scaled_abs"], capture_output=True, text=True)
    assert done.returncode == 0 and "all good" in done.stdout, done.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_for_every_stride(op, dtype):
    base = np.random.default_rng(10).standard_normal((6, 10)).astype(dtype)
    for x in (base, base.T, base[::-1, ::-1], base[::2, 1::3], np.broadcast_to(base[:1], (4, 10)).copy(), base[:0], base[0, 0]):
        x = np.asarray(x)
        got = op(tenon.from_numpy(x), 0.5)
        np.testing.assert_array_equal(got.numpy(), np.abs(x) * dtype(0.5))
    spread = tenon.from_numpy(base[:1]).expand(4, 10)
    np.testing.assert_array_equal(op(spread, 2.0).numpy(), np.abs(np.broadcast_to(base[:1], (4, 10))) * dtype(2))


def test_derivative(op):
    x = tenon.tensor([-2.0, 3.0, 0.0], dtype=tenon.float64, requires_grad=True)
    y = op(x, scale=0.5)
    assert y.grad_fn.name() == "ScaledAbsBackward0"
    (grad,) = tenon.autograd.grad(y, x, tenon.tensor([1.0, 10.0, 100.0], dtype=tenon.float64), create_graph=True)
    assert grad.tolist() == [-0.5, 5.0, 0.0]  # sign(x) * scale * grad
    with tenon.no_grad():
        assert not op(x).requires_grad


def test_meta_and_errors(op):
    assert op(tenon.empty(2, 3, device="meta")).shape == (2, 3)
    for dtype in (tenon.int64, tenon.bool):
        with pytest.raises(NotImplementedError, match=f"scaled_abs: not implemented for {str(dtype)[6:]}"):
            op(tenon.ones(2, dtype=dtype))
    with pytest.raises(TypeError, match="argument 'self' must be Tensor"):
        op(1.0)


def test_as_a_method(op):
    tenon.Tensor.scaled_abs = lambda self, scale=1.0: op(self, scale)
    try:
        assert tenon.tensor([-2.0]).scaled_abs(0.5).item() == 1.0
        assert tenon.nn.Parameter(tenon.tensor([-2.0])).scaled_abs().item() == 2.0
    finally:
        del tenon.Tensor.scaled_abs
    assert not hasattr(tenon.tensor([1.0]), "scaled_abs")


def test_the_command_knows_it(build):
    library = build / "libscaled_abs.so"
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(tenon.__file__).absolute().parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "tenon", "where", "--load", library, "example::scaled_abs"],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    source = ROOT / "examples" / "custom_operator" / "scaled_abs.cc"
    lines = source.read_text().splitlines()
    for what, key in (("TENON_LIBRARY_IMPL(example, CPU", "CPU"), ("TENON_LIBRARY_IMPL(example, Meta", "Meta")):
        line = next(i for i, text in enumerate(lines, 1) if text.startswith(what))
        assert f"{key}: {source}:{line} [typed]" in done.stdout
