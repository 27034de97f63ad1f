"""The same bits everywhere: one and two threads, every instruction set, five layouts of strides, strict or not."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import tenon
from conformance import bits
from tenon.conformance import table
from conformance.values_test import ENTRIES

#: The operators that hand large products of float32 and float64 to OpenBLAS unless set_strict(True).
VENDORS = {"mm", "addmm", "bmm", "addbmm", "addbmm_", "baddbmm", "baddbmm_", "matmul", "linear", "einsum", "tensordot"}


def targets():
    """The instruction sets that this machine can run."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    found = ["SSE4"]
    if " avx2 " in flags:
        found.append("AVX2")
    if all(f" {flag} " in flags for flag in ("avx512f", "avx512vl", "avx512dq", "avx512bw")):
        found.append("AVX3")
    return found


@pytest.fixture(scope="module")
def measured():
    """What each instruction set computes: (digests, differences, operators with large samples, kernels of vendors)."""
    package = pathlib.Path(tenon._C.__file__).resolve().parent.parent
    runs = {}
    for target in targets():
        # Threads that wait actively would take the cores that the others need.
        environment = {**os.environ, "TENON_CPU_TARGET": target, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2",
                       "PYTHONPATH": str(package)}  # fmt: skip
        runs[target] = subprocess.Popen(
            [sys.executable, "-m", "conformance.bits"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=pathlib.Path(__file__).resolve().parents[1], text=True,
        )  # fmt: skip
    found = {}
    for target, run in runs.items():
        out, err = run.communicate()
        assert run.returncode == 0, err[-4000:]
        name, *rest = json.loads(out)
        assert name == target
        found[target] = rest
    return found


def test_layouts_threads_and_strict_change_no_bits(measured):
    for target, (_, wrong, _, _) in measured.items():
        assert not wrong, f"{target}:\n" + "\n".join(wrong[:30])


def test_instruction_sets_change_no_bits(measured):
    (first, (want, *_)), *others = measured.items()
    for target, (got, *_) in others:
        assert set(got) == set(want)
        wrong = [case for case in want if got[case] != want[case]]
        assert not wrong, f"{target} differs from {first}:\n" + "\n".join(wrong[:30])


def test_every_operator_was_measured(measured):
    """But those that have no bits of their own, and those that take over a storage."""
    digests, _, large, _ = measured[targets()[0]]
    assert not set(bits.UNLIKE) - set(ENTRIES) and not set(bits.OWN) - set(ENTRIES)
    seen = {case.split()[0] for case in digests}
    left = {name for name in ENTRIES if name not in seen and not name.startswith("set_.")}
    assert left == set(bits.UNLIKE)
    assert set(bits.OWN) <= set(large) and len(large) > 520, sorted(set(bits.OWN) - set(large))


def test_what_a_vendor_computes_is_listed(measured):
    """Of the samples above, which are small, none; of large products those of VENDORS, and under strict none either."""
    assert all(not vendors for _, _, _, vendors in measured.values())
    a = tenon.ones(520, 520)
    square, batch = (a, a), (a.reshape(1, 520, 520), a.reshape(1, 520, 520))
    calls = {
        "mm": square, "matmul": square, "linear": square, "addmm": (a, *square), "outer": (a[0], a[0]),
        "bmm": batch, "baddbmm": (batch[0], *batch), "addbmm": (a, *batch), "addbmm_": (a.clone(), *batch),
        "baddbmm_": (batch[0].clone(), *batch), "einsum": ("ij,jk->ik", list(square)), "tensordot": (*square, [1], [0]),
        "mv": (a, a[0]), "addmv": (a[0], a, a[0]), "addmv_": (a[0].clone(), a, a[0]), "addr": (a, a[0], a[0]),
        "addr_": (a.clone(), a[0], a[0]), "dot": (a.flatten(), a.flatten()), "vdot": (a.flatten(), a.flatten()),
        "scaled": (a, 2.0),
    }  # fmt: skip
    assert set(calls) == {n for n, e in ENTRIES.items() if e.main.family == "matmul"}
    assert table.operators()["mm"].family == "matmul"
    before = tenon.is_strict()
    try:
        for strict in (False, True):
            tenon.set_strict(strict)
            found = {name for name, arguments in calls.items() if "openblas" in kernels_of(name, arguments)}
            # A build without OpenBLAS, or a machine without room for it, hands nothing over.
            assert found == set() if strict else found in (VENDORS, set())
    finally:
        tenon.set_strict(before)


def kernels_of(name, arguments):
    tenon.set_kernel_reporting(True)
    getattr(tenon.ops.aten, name)(*arguments)
    found = {kernel for _, kernel, _ in tenon.kernel_counts()}
    tenon.set_kernel_reporting(False)
    return found
