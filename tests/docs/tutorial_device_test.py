"""docs/tutorial-device.md, from top to bottom: its files are written as they come, its commands run, what they print is there."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial-device.md"
TITLE = re.compile(r"(?://|#) (\S+?)(, continued|, in place of the last)?\n")


def blocks():
    return re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


class Files:
    """The files of the page, as far as it has been read: name to the blocks that they consist of."""

    def __init__(self, folder):
        self.folder, self.parts = folder, {}

    def take(self, text):
        name, how = TITLE.match(text).groups()
        if "/" in name:  # a quotation
            assert text.partition("\n")[2] in (ROOT / name).read_text(), f"not in {name}:\n{text}"
            return
        parts = self.parts.setdefault(name, [])
        if how is None:
            parts.clear()
        elif "in place" in how:
            parts.pop()
        parts.append(text)
        (self.folder / name).write_text("\n".join(parts))

    def lines(self):
        return sum(len(text.splitlines()) for name, parts in self.parts.items() if name.endswith(".cc") for text in parts)


def run(script, folder):
    environment = {**os.environ, "TENON": str(ROOT / "build/install"), "PYTHONPATH": str(ROOT / "build/release/python")}
    environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode


def expected(line, printed):
    """Whether some line of the output has all parts of a line of the page, `...` standing for anything."""
    parts = [re.escape(part.strip()) for part in line.split("...")]
    return re.search(".*".join(parts), printed) is not None


def test_the_page_builds_a_device_that_the_kit_is_content_with(tmp_path):
    files, printed, code = Files(tmp_path), "", 0
    for language, text in blocks():
        if language in ("cpp", "cmake"):
            files.take(text)
        elif language == "sh":
            printed, code = run("set -e\n" + text, tmp_path)
        else:
            missing = [line for line in text.splitlines() if not expected(line, printed)]
            assert not missing, f"{missing} is not in\n{printed}"
            assert code == (1 if "WRONG" in text else 0), printed
    assert files.lines() <= 200
