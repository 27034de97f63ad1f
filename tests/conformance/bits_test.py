"""The same bits everywhere: one and two threads, every instruction set, five layouts of strides, strict or not."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import tenon
from conformance import bits
from conformance.chosen import SAMPLE, is_chosen
from conformance.values_test import ENTRIES


def targets():
    """The instruction sets that this machine and this build can run; the preset dev has one."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    found = ["SSE4"]
    if tenon.cpu_target_name() == "SSE4":
        return found
    if " avx2 " in flags:
        found.append("AVX2")
    if all(f" {flag} " in flags for flag in ("avx512f", "avx512vl", "avx512dq", "avx512bw")):
        found.append("AVX3")
    return found


def start(target, names):
    """A process that measures the operators by these names, or all, on an instruction set, or on what is fastest ("")."""
    package = pathlib.Path(tenon._C.__file__).resolve().parent.parent
    # Threads that wait actively would take the cores that the others need.
    environment = {**os.environ, "TENON_CPU_TARGET": target, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "2",
                   "PYTHONPATH": str(package)}  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "conformance.bits", *names], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=pathlib.Path(__file__).resolve().parents[1], text=True,
    )  # fmt: skip


def result(run):
    out, err = run.communicate()
    assert run.returncode == 0, err[-4000:]
    return json.loads(out)


@pytest.fixture(scope="module")
def measured():
    """What each instruction set computes: (digests, differences, operators with large samples, products)."""
    names = [name for name in ENTRIES if is_chosen(name)] if SAMPLE else []
    runs = {target: start(target, names) for target in targets()}
    found = {}
    for target, run in runs.items():
        name, *rest = result(run)
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


def test_matrix_units_change_no_bits(measured):
    """Processors that have them multiply bfloat16 by them where no instruction set is asked for."""
    want, *_, products = measured[targets()[0]]
    names = sorted({case.split()[0] for case in want} & {"mm", "addmm", "bmm", "baddbmm", "linear", "mv", "dot"})
    _, got, wrong, _, large = result(start("", names or ["mm"]))
    assert not wrong and large == products
    assert got and all(got[case] == want[case] for case in got if case in want)


def test_every_operator_was_measured(measured):
    """But those that have no bits of their own, and those that take over a storage."""
    digests, _, large, _ = measured[targets()[0]]
    assert not set(bits.UNLIKE) - set(ENTRIES) and not set(bits.OWN) - set(ENTRIES)
    seen = {case.split()[0] for case in digests}
    left = {name for name in ENTRIES if is_chosen(name) and name not in seen and not name.startswith("set_.")}
    assert left == {name for name in bits.UNLIKE if is_chosen(name)}
    own = {name for name in bits.OWN if is_chosen(name)}
    assert own <= set(large) and (SAMPLE or len(large) > 520), sorted(own - set(large))


def test_large_products_have_the_same_bits_everywhere(measured):
    """Of 512^3 multiplications and more: with one thread and two, strict or not, and on every instruction set."""
    of_targets = [products for *_, products in measured.values()]
    assert all(len(products) == 3 * 4 * len(bits.PRODUCTS) for products in of_targets)
    for case in of_targets[0]:
        digests = {target: found[-1][case] for target, found in measured.items()}
        assert len({d for several in digests.values() for d in several}) == 1, f"{case}: {digests}"


def test_the_layout_of_operands_changes_no_bits_of_large_products(measured):
    products = measured[targets()[0]][-1]
    by_shape = {}
    for case, (digest, *_) in products.items():
        if case.startswith("mm "):
            by_shape.setdefault(case.rpartition(" ")[0], set()).add(digest)
    assert len(by_shape) == 3 * len(bits.PRODUCTS) and all(len(digests) == 1 for digests in by_shape.values())
