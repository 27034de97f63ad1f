"""docs/decisions: every page has a status, and the index has every page."""

import pathlib
import re

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))


def head(page):
    """(number, title, status) of a page."""
    found = re.match(r"# (\d{4}): (.+)\n\nStatus: (.+)\n\n", page.read_text())
    assert found, f"{page.name} begins with '# NUMBER: title', an empty line and 'Status: ...'"
    return found.groups()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_number_and_a_status(page):
    number, _, status = head(page)
    assert page.name.startswith(number + "-")
    change = re.fullmatch(r"accepted|(?:amended|superseded) by (\d{4})", status)
    assert change, status
    if change[1]:
        assert change[1] in {p.name[:4] for p in PAGES} and change[1] > number


def test_the_index_has_every_page_as_it_is():
    rows = re.findall(r"^\| \[(\d{4})\]\((.+?)\) \| (.+) \| (.+) \|$", (FOLDER / "README.md").read_text(), re.M)
    wanted = [(number, page.name, title[0].upper() + title[1:], status) for page in PAGES for number, title, status in [head(page)]]
    assert rows == wanted


def test_numbers_have_no_gap():
    assert [page.name[:4] for page in PAGES] == [f"{n:04}" for n in range(1, len(PAGES) + 1)]
