"""docs/architecture.md: its rooms are those that layering_test.py knows, in their order, and what it names is there."""

import pathlib
import re

from tests.layering_test import ROOMS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_rooms_are_those_of_the_layering_test_in_order():
    table = PAGE[PAGE.index("| room |") : PAGE.index("A room includes only rooms above it")]
    named = re.findall(r"`([^`]+)`", "\n".join(row.split("|")[1] for row in table.strip().split("\n")[2:]))
    rooms = [room for room in named if (ROOT / room).is_dir() and room.startswith(("tenon/", "backends/"))]
    assert rooms == [room for room in ROOMS if not room.startswith("python")]


def test_files_that_it_names_exist():
    missing = []
    for path in re.findall(r"`((?:tenon|backends|python|tools|tests|bench|scripts|docs|cmake|examples)/[\w./-]+)`", PAGE):
        at = ROOT / path
        if not at.exists() and not list(at.parent.glob(at.name + ".*")):
            missing.append(path)
    assert not missing


def test_a_symbol_is_in_the_file_that_it_is_said_to_be_in():
    wrong = []
    for symbol, path in re.findall(r"`([A-Za-z_][\w:]*)` in `([\w./-]+/[\w./-]+\.\w+)`", PAGE):
        if symbol.rpartition("::")[2] not in (ROOT / path).read_text():
            wrong.append((symbol, path))
    assert not wrong
