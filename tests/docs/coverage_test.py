"""docs/coverage.md says what the build has, and PyTorch's core schemas are there but for those named."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_build_says():
    script = ROOT / "scripts" / "coverage.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nwrite the page anew: python scripts/coverage.py"
