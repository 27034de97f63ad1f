"""The plans of one process are the next one's: it makes none, and its results have the same bits."""

import os
import re
import subprocess
import sys

PROGRAM = """
import tenon
import tenon.nn.functional as F

tenon.manual_seed(0)
x, w = tenon.randn(64, 64), tenon.randn(64, 64)
gated = tenon.compile(lambda x: (F.silu(x * 3.0 + 1.0) * x.tanh()).sum(1), threshold=0)
dense = tenon.compile(lambda x, w: tenon.relu((x * 2.0) @ w + 1.0), threshold=0)
for f, args in ((gated, (x,)), (dense, (x, w))):
    assert f(*args).equal(f.__wrapped__(*args))
    print(str(f.explain()))
"""


def run(program, folder, **variables):
    environment = {**os.environ, "TENON_CACHE": str(folder), "TENON_CACHE_REPORT": "1", **variables}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout, re.search(r"tenon: plans: (.*)", done.stderr).group(1)


def test_the_second_process_plans_nothing_and_reports_the_same(tmp_path):
    said, first = run(PROGRAM, tmp_path / "plans")
    assert first == "2 planned, 0 tuned, 0 loaded; not found: nothing was stored (2)"
    again, second = run(PROGRAM, tmp_path / "plans")
    assert second == "0 planned, 0 tuned, 2 loaded"
    assert again.replace(", 1 of them made by an earlier process", "") == said != again


def test_the_second_process_tunes_nothing(tmp_path):
    program = PROGRAM.replace("threshold=0", "threshold=0, tune=60_000")  # ms: enough on a busy machine
    said, first = run(program, tmp_path / "plans")
    assert first == "2 planned, 2 tuned, 0 loaded; not found: nothing was stored (2)"
    assert "timed: " in said
    again, second = run(program, tmp_path / "plans")
    assert second == "0 planned, 0 tuned, 2 loaded"
    assert again.replace(", 1 of them made by an earlier process", "") == said
    # Who had too little time leaves nothing behind.
    cut = program.replace("tune=60_000", "tune=1e-6")
    assert run(cut, tmp_path / "cut")[1].startswith("2 planned, 2 tuned, 0 loaded")
    assert run(program, tmp_path / "cut")[1].startswith("2 planned, 2 tuned, 0 loaded")
    # What machine code won is nothing for a process that makes none, whose plans are not for one that does.
    said, without = run(program, tmp_path / "plans", TENON_JIT="0")
    assert without.startswith("2 planned, 2 tuned, 0 loaded") and "run by jit" not in said
    # Who does not ask for it gets what models choose.
    assert run(PROGRAM, tmp_path / "plans")[1].startswith("2 planned, 0 tuned, 0 loaded")
