"""Random programs, compiled and eager: the same bits, headers, versions and errors; on every instruction set."""

import os
import pathlib
import subprocess
import sys

import pytest
import random_programs
from beside_eager import WAYS, difference, outcome

import tenon

COUNT = 2000
PARTS = 20


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
def test_random_programs(way, part):
    compiled = tenon.compile(random_programs.run, **WAYS[way])
    for seed in range(part * COUNT // PARTS, (part + 1) * COUNT // PARTS):
        eager = outcome(lambda: random_programs.run(seed))
        found = difference(eager, outcome(lambda: compiled(seed)))
        assert found is None, f"seed {seed}, compiled ({way}), {found}"


def supported_targets():
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    targets = ["SSE4"]
    if tenon.cpu_target_name() == "SSE4":  # of this machine, or of this build: the preset dev has one
        return targets
    if " avx2 " in flags:
        targets.append("AVX2")
    if all(f" {flag} " in flags for flag in ("avx512f", "avx512vl", "avx512dq", "avx512bw")):
        targets.append("AVX3")
    return targets


def digest(*arguments, **environment):
    """That of 400 programs, in a process of its own."""
    program = pathlib.Path(random_programs.__file__)
    done = subprocess.run(
        [sys.executable, str(program), "5000", "400", *arguments],
        env={**os.environ, "TENON_STRICT": "1", **environment}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_same_bits_on_every_instruction_set_and_engine():
    """Strict, as vendors have bits of their own. TENON_JIT=0 leaves everything to the interpreter."""
    expected = digest("1")
    assert digest("1", "compiled", TENON_JIT="0") == expected
    for target in supported_targets():
        for threads in ("1", "2"):
            assert digest(threads, "compiled", TENON_CPU_TARGET=target) == expected, (target, threads)
