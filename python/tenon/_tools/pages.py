"""The pages of the documentation, which docstrings and messages name as docs/compile.md: where they are, and their text."""

from __future__ import annotations

import difflib
import os

from .. import _C


def _folders() -> list[str]:
    """Those of an installed package; or those of a clone, and of the reference that its build has generated."""
    package = os.path.dirname(os.path.abspath(_C.__file__))
    installed = os.path.join(package, "share", "tenon", "docs")
    if os.path.isdir(installed):
        return [installed]
    clone = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "docs")
    return [os.path.normpath(clone), os.path.normpath(os.path.join(package, "..", "..", "generated", "docs"))]


def pages() -> dict[str, str]:
    """The files by the pages' names: {"compile": "/.../docs/compile.md"}."""
    files = (os.path.join(folder, name) for folder in _folders() if os.path.isdir(folder) for name in os.listdir(folder))
    return {os.path.basename(file).removesuffix(".md"): file for file in sorted(files) if file.endswith(".md")}


def text_of(page: str) -> str:
    """The text of a page: "compile", "compile.md" or "docs/compile.md". Raises LookupError, which suggests similar names."""
    name, found = page.removeprefix("docs/").removesuffix(".md"), pages()
    if name not in found:
        near = difflib.get_close_matches(name, found, n=2)
        hint = f"did you mean {' or '.join(near)}? There are" if near else "there are"
        raise LookupError(f"there is no page '{page}'; {hint} {', '.join(found)}")
    with open(found[name], encoding="utf-8") as file:
        return file.read()
