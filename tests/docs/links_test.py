"""What the pages name is there: links lead somewhere, pages are found from the README, paths in the text exist."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
TRACKED = set(subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split())
#: What is for readers, and therefore one click away wherever it is named; sources are named by their paths.
LINKED = ("docs/", "examples/", "bench/", "scripts/", "data/")
#: Where a path in the text may begin.
ROOTS = [ROOT, ROOT / "tenon", ROOT / "tenon/ops", ROOT / "python", ROOT / "python/src", ROOT / "backends/cpu", ROOT / "docs",
         ROOT / "build/release/generated", ROOT / "build/install", ROOT / "build/install/lib"]  # fmt: skip
#: Files that a reader makes while following a page, or that stand for many.
MADE = re.compile(r"FAMILY|scaled_abs_long|^build/|OTHER|NAME")


def text_of(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```|^    \S.*?$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def links(page):
    """(text, target) of the links to files."""
    found = re.findall(r"(?<!\\)\[([^\]]*)\]\(([^)\s]+)\)", text_of(page))
    return [(text, target) for text, target in found if not re.match(r"https?:|mailto:", target)]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for text, target in links(page):
        file, _, anchor = target.partition("#")
        to = (page.parent / file).resolve() if file else page
        path = os.path.relpath(to, ROOT)
        assert path in TRACKED or any(t.startswith(path + "/") for t in TRACKED), f"[{text}]({target}): no file of the repository"
        assert not anchor or anchor in anchors(to), f"[{text}]({target}): the page has no such heading"


def test_every_page_is_found_from_the_readme():
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for _, target in links(page):
            to = (page.parent / target.partition("#")[0]).resolve()
            todo += to.glob("*.md") if to.is_dir() else [to] if to.suffix == ".md" and to.exists() else []
    assert not [str(page.relative_to(ROOT)) for page in PAGES if page not in seen]


def named(page):
    """The paths that a page has as code: (path, whether it is the text of a link)."""
    for opening, name in re.findall(r"(\[?)`([\w./-]+)`", text_of(page)):
        if "/" in name.rstrip("/") or name.endswith(".md"):
            yield name, bool(opening)


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "decisions"], ids=lambda page: page.name)
def test_what_a_page_names_is_linked(page):
    for name, linked in named(page):
        for base in (ROOT, page.parent):
            path = os.path.relpath(base / name, ROOT)
            there = path in TRACKED or any(t.startswith(path + "/") for t in TRACKED)
            if there and not linked and base / name != page and (path.startswith(LINKED) or path.endswith(".md")):
                pytest.fail(f"`{name}` is named and not linked")


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "decisions"], ids=lambda page: page.name)
def test_paths_in_the_text_exist(page):
    first = {path.name for root in ROOTS for path in root.iterdir() if path.is_dir()}
    for name, _ in named(page):
        if name.partition("/")[0] in first and not MADE.search(name):
            assert any((root / name).exists() for root in [*ROOTS, page.parent]), f"`{name}` is not there"
