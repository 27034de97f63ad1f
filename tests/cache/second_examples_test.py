"""The second process of an example plans nothing and tunes nothing, and computes the same."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

ADAM = """
import tenon
from tenon import nn

tenon.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
optimizer = tenon.optim.Adam(model.parameters(), lr=1e-2)
scheduler = tenon.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)

@tenon.compile(threshold=0, pure={pure})
def step(x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

x, y = tenon.randn(64, 16), tenon.randint(0, 4, (64,))
for _ in range(10):
    print(step(x, y).item().hex())
    scheduler.step()
"""

PROGRAMS = {
    "digits": [sys.executable, str(ROOT / "examples/digits/digits.py"), "--compile"],
    "digits in C++": [str(ROOT / "build/digits/digits"), "--compile"],
    "convnet": [sys.executable, str(ROOT / "examples/convnet.py"), "--compile", "--epochs", "1"],
    "gpt": [sys.executable, str(ROOT / "examples/gpt.py"), "--compile", "--steps", "4", "--batch", "8", "--samples", "1", "--words", "{words}"],
    "Adam with a scheduler": [sys.executable, "-c", ADAM.replace("{pure}", "False")],
    "Adam with a scheduler, replayed": [sys.executable, "-c", ADAM.replace("{pure}", "True")],
}


def run(program, folder):
    words = folder / "words.txt"
    words.write_text("\n".join(f"{a}{b}{c}ing" for a in "bdrst" for b in "aeiou" for c in "lmnpr"))
    environment = {**os.environ, "TENON_CACHE": str(folder / "plans"), "TENON_CACHE_REPORT": "1"}
    done = subprocess.run([str(words) if part == "{words}" else part for part in PROGRAMS[program]],
                          env=environment, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, re.search(r"tenon: plans: (.*)", done.stderr).group(1)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_second_process_plans_and_tunes_nothing(program, tmp_path):
    said, first = run(program, tmp_path)
    planned = int(re.match(r"(\d+) planned, 0 tuned, 0 loaded", first).group(1))
    assert planned > 0
    again, second = run(program, tmp_path)
    assert (again, second) == (said, f"0 planned, 0 tuned, {planned} loaded")
