"""docs/conformance.md says what the kit says of the devices of this build, and nothing there is wrong."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_kit_says():
    script = ROOT / "scripts" / "conformance.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nwrite the page anew: python scripts/conformance.py"


def test_no_row_is_wrong():
    page = (ROOT / "docs/conformance.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and line.endswith("` |")]
    assert len(rows) > 1000 and not [r for r in rows if "W" in r.partition("|")[2].partition("|")[2]]
