"""LAPACK, where it is found: results within the same bounds, off when it is asked to be, and who computes with it."""

import glob
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import tenon

HERE = pathlib.Path(__file__).parent
#: OpenBLAS as NumPy's wheel has it.
FILES = glob.glob(str(pathlib.Path(numpy.__file__).parents[1] / "numpy.libs/libscipy_openblas*.so"))
COUNTS = """
import sys, tenon
L = tenon.linalg
tenon.manual_seed(1)
a = tenon.randn(20, 20, dtype=tenon.float64)
tenon.set_kernel_reporting(True)
def names(f):
    tenon.set_kernel_reporting(False)  # forgets what was counted
    tenon.set_kernel_reporting(True)
    f()
    return sorted({kernel for _, kernel, _ in tenon.kernel_counts()})
calls = {
    "cholesky": lambda: L.cholesky(a @ a.mT + tenon.eye(20)), "cond": lambda: L.cond(a), "det": lambda: L.det(a), "eig": lambda: L.eig(a),
    "eigh": lambda: L.eigh(a), "eigvals": lambda: L.eigvals(a), "eigvalsh": lambda: L.eigvalsh(a), "inv": lambda: L.inv(a),
    "lstsq": lambda: L.lstsq(a, a), "lu": lambda: L.lu(a), "matrix_exp": lambda: L.matrix_exp(a), "matrix_norm 2": lambda: L.matrix_norm(a, 2),
    "matrix_norm nuc": lambda: L.matrix_norm(a, "nuc"), "matrix_power": lambda: L.matrix_power(a, 3), "matrix_rank": lambda: L.matrix_rank(a),
    "pinv": lambda: L.pinv(a), "qr": lambda: L.qr(a), "slogdet": lambda: L.slogdet(a), "solve": lambda: L.solve(a, a), "svd": lambda: L.svd(a),
    "svdvals": lambda: L.svdvals(a),
}
"""


@pytest.fixture(params=FILES[:1], ids=["numpy"] * len(FILES[:1]))
def file(request):
    return request.param


def run(code, lapack):
    environment = {**os.environ, "TENON_LAPACK": lapack, "PYTHONPATH": str(pathlib.Path(tenon.__file__).parents[1])}
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_spectra_are_as_good_with_it_as_without(file):
    environment = {**os.environ, "TENON_LAPACK": file}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "linalg_spectral_test.py")]
    made = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-4000:]


def test_what_it_computes_is_listed(file):
    """The named exceptions from the same bits everywhere."""
    code = COUNTS + "print([name for name, f in calls.items() if 'lapack' in names(f)])"
    found = ["cond", "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matrix_norm 2", "matrix_norm nuc", "matrix_rank", "pinv", "svd", "svdvals"]
    assert run(code, file) == f"{found}\n"
    assert run(code, "off") == "[]\n"
    assert run("import tenon; tenon.set_strict(True)\n" + code, file) == "[]\n"


def test_strict_mode_has_the_bits_that_are_without_it(file):
    code = COUNTS + "print([t.tolist() for f in (L.eigh, L.svd) for t in f(a)])"
    assert run("import tenon; tenon.set_strict(True)\n" + code, file) == run(code, "off") != run(code, file)


def test_a_file_that_is_no_lapack_is_none(file):
    assert run(COUNTS + "print('lapack' in names(calls['eigh']))", "/nowhere/liblapack.so") == "False\n"
    assert run(COUNTS + "print('lapack' in names(calls['eigh']))", "libm.so.6") == "False\n"


def test_its_number_of_threads_is_put_back(file):
    """NumPy has the same library, and threads of a program call it at once."""
    code = COUNTS + f"""
import ctypes, threading
library = ctypes.CDLL({file!r})
library.scipy_openblas_set_num_threads64_(3)
batch = tenon.randn(6, 20, 20)
threads = [threading.Thread(target=lambda x=x: [L.eigh(x) for _ in range(20)]) for x in (a, batch, a)]
for t in threads: t.start()
for t in threads: t.join()
print(library.scipy_openblas_get_num_threads64_())
"""
    assert run(code, file) == "3\n"
