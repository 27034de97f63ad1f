"""OpenBLAS is looked for when a large product needs it; what is found and cannot be used is said, and Tenon computes."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import tenon

PROGRAM = """
import json
import numpy as np
import tenon
rng = np.random.default_rng(0)
a, b = rng.standard_normal((600, 550)), rng.standard_normal((550, 520))
tenon.set_kernel_reporting(True)
found = tenon.from_numpy(a) @ tenon.from_numpy(b)
kernels = {kernel for op, kernel, _ in tenon.kernel_counts() if "mm" in op}
print(json.dumps([tenon._C._openblas(), sorted(kernels), float(np.abs(found.numpy() - a @ b).max())]))
"""

FAKE = """
int calls;
char *openblas_get_config(void) { return "%s"; }
int openblas_get_parallel(void) { return %d; }
int openblas_get_num_threads(void) { return 1; }
void openblas_set_num_threads(int n) {}
void cblas_sgemm(void) { __builtin_trap(); }
%s
"""
DGEMM = "void cblas_dgemm(void) { __builtin_trap(); }"


def products(openblas):
    """What a process with TENON_OPENBLAS says of its library and of one large product."""
    path = str(pathlib.Path(tenon.__file__).absolute().parents[1])
    environment = {**os.environ, "PYTHONPATH": path, "TENON_OPENBLAS": str(openblas)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "config, parallel, functions, sentence",
    [
        ("NO_LAPACKE DYNAMIC_ARCH Haswell", 2, DGEMM, "is OpenBLAS older than 0.3.4; Tenon needs 0.3.10 or newer"),
        ("OpenBLAS 0.3.9 DYNAMIC_ARCH USE_OPENMP", 2, DGEMM, "is OpenBLAS 0.3.9; Tenon needs 0.3.10 or newer"),
        ("OpenBLAS 0.3.21 USE64BITINT USE_OPENMP", 2, DGEMM, "takes 64-bit integers; Tenon needs the build with 32-bit ones"),
        ("OpenBLAS 0.3.21 DYNAMIC_ARCH", 1, DGEMM, "is a build with threads of its own; Tenon needs the one for OpenMP"),
        ("OpenBLAS 0.3.21 DYNAMIC_ARCH", 0, DGEMM, "is a build without threads; Tenon needs the one for OpenMP"),
        ("OpenBLAS 0.3.21 DYNAMIC_ARCH", 2, "", "lacks functions of OpenBLAS"),
    ],
)
def test_a_library_that_does_not_fit_is_refused_in_a_sentence(tmp_path, config, parallel, functions, sentence):
    source, library = tmp_path / "fake.c", tmp_path / "libopenblas.so.0"
    source.write_text(FAKE % (config, parallel, functions))
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    said, kernels, error = products(library)
    assert said.startswith("Tenon's own, without OpenBLAS: ") and sentence in said and str(library) in said
    assert "openblas" not in kernels and kernels and error < 1e-10


def test_no_library(tmp_path):
    assert products("none")[0] == "Tenon's own, without OpenBLAS: TENON_OPENBLAS=none"
    said, kernels, error = products(tmp_path / "libopenblas.so.0")
    assert said.endswith(f"TENON_OPENBLAS: there is no file {tmp_path / 'libopenblas.so.0'}")
    assert "openblas" not in kernels and error < 1e-10
    (tmp_path / "text.so").write_text("no library")
    assert "text.so" in products(tmp_path / "text.so")[0]


def test_the_library_of_this_machine():
    said, kernels, error = products("")
    if said.startswith("Tenon's own"):
        pytest.skip(said)
    assert said.startswith("OpenBLAS ") and kernels == ["openblas"] and error < 1e-10
