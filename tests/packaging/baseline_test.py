"""A processor that cannot run the kernels is named when tenon is imported, before anything runs on it."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import tenon

PACKAGE = pathlib.Path(tenon.__file__).absolute().parents[1]
LIBRARY = next((PACKAGE.parent / "tenon").glob("libtenon.so.*"))

#: What the compiler's runtime has asked the processor lies in __cpu_model: vendor, type, subtype, features.
PROGRAM = """
import ctypes, sys
library, offset = sys.argv[1], int(sys.argv[2])
with open("/proc/self/maps") as maps:
    base = min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(library))
words = (ctypes.c_uint32 * 4).from_address(base + offset)
assert words[0] and words[3]
words[3] = int(sys.argv[3], 0) & words[3]
try:
    import tenon
except ImportError as e:
    print(e)
else:
    print(tenon.ones(2).add(1).tolist())
"""


def imported(mask):
    """What a process prints whose processor has the features in `mask` alone; the library is there before it is imported."""
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    symbols = subprocess.run(["nm", LIBRARY], capture_output=True, text=True).stdout
    found = [line.split()[0] for line in symbols.splitlines() if line.endswith(" __cpu_model")]
    if not found:
        pytest.skip("the compiler keeps what it knows of the processor elsewhere")
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, LIBRARY.resolve(), str(int(found[0], 16)), mask],
        env={"PYTHONPATH": str(PACKAGE), "LD_PRELOAD": str(LIBRARY.resolve())}, capture_output=True, text=True,
    )  # fmt: skip


def test_a_processor_below_the_baseline():
    done = imported("0")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "tenon: this processor lacks SSE4.2, PCLMULQDQ or AES, the least that Tenon's kernels need; "
        "processors have had them since 2010\n"
    )


def test_one_above_it():
    done = imported("0xffffffff")
    assert done.stdout == "[2.0, 2.0]\n", done.stderr
