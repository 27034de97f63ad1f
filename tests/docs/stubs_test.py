"""docs/stubs.md has every stub of this build, with its signature and what it does."""

import pathlib
import subprocess
import sys

import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_has_every_stub():
    done = subprocess.run([sys.executable, ROOT / "scripts/stubs.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nwrite the lists again: python scripts/stubs.py"


def test_every_row_says_what_its_stub_does():
    rows = [line.split(" | ") for line in (ROOT / "docs/stubs.md").read_text().splitlines() if line.startswith("| `")]
    names = {row[0].strip("|` ") for row in rows}
    assert names == {s.name for s in tenon.dispatch.stubs()}
    assert all(len(row[2]) > 10 for row in rows if len(row) == 3)
