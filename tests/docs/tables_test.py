"""Every table of the pages is one: a head, the line below it, and rows of as many cells."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")])


def tables(text):
    """The blocks of neighbouring lines that begin with a bar, outside of blocks of code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return [block.splitlines() for block in re.findall(r"(?:^\|.*\n?)+", text, flags=re.M)]


def cells(row):
    return len(re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row.strip()).strip("|")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables(page):
    for rows in tables(page.read_text()):
        assert len(rows) > 1 and re.fullmatch(r"\|( *:?-+:? *\|)+", rows[1].strip()), rows[0]
        assert {cells(row) for row in rows} == {cells(rows[0])}, [row for row in rows if cells(row) != cells(rows[0])]
