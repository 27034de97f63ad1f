"""docs/style.md: words that it advises against become fewer."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).parent / "words.txt"
ROOMS = ["tenon", "backends", "python", "tools", "docs", "README.md", "CONTRIBUTING.md"]
#: The page that lists them, and pages that say what was once decided.
EXCEPT = ("docs/style.md", "docs/decisions/")


def texts():
    listed = subprocess.run(["git", "ls-files", *ROOMS], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a clone")
    names = [n for n in listed.stdout.split("\n") if n.endswith((".h", ".cc", ".py", ".yaml", ".md")) and not n.startswith(EXCEPT)]
    return [(ROOT / name).read_text() for name in names if (ROOT / name).exists()]


def kept():
    rows = [line.rsplit(None, 1) for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return {word: int(count) for word, count in rows}


def test_no_word_has_become_more_frequent():
    everything = texts()
    now = {word: sum(len(re.findall(rf"\b{word}\b", text, re.I)) for text in everything) for word in kept()}
    more = {word: f"{now[word]}, was {count}" for word, count in kept().items() if now[word] > count}
    assert not more, "docs/style.md says what to write instead; where there are fewer, lower the count in tests/docs/words.txt"


def test_the_page_lists_the_words():
    page = (ROOT / "docs" / "style.md").read_text()
    listed = {word for row in re.findall(r"^\| (.+?) \|", page, re.M)[2:] for word in row.split(", ")}
    assert listed == {*kept()}
