"""How large things may get: files, functions, folders and rooms, in lines. budgets.txt has the exceptions and the rooms' totals.

A file has at most 600 lines, a function 100, a folder 48 files. An exception may only shrink. A room's total is a limit: a change that
needs more edits it and says why. `python tests/budgets_test.py` prints the table as it would be now.
"""

import ast
import functools
import pathlib
import re
import subprocess
from collections import Counter

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "budgets.txt"
LIMITS = {"file": 600, "function": 100, "folder": 48}
#: A room's total is rounded up to so many lines, so that not every change meets it.
STEP = 250
CPP_FUNCTION = re.compile(r"(  )?(?!(?:class|struct|enum|union|namespace|extern|public|private|switch|for|while|if|do|else|return)\b)[A-Za-z_~:\[].*\{$")


def sources():
    """{name: text} of the tracked sources."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a clone")
    names = [n for n in listed.stdout.split("\n") if n.endswith((".h", ".cc", ".py", ".yaml")) and (ROOT / n).exists()]
    return {name: (ROOT / name).read_text() for name in names}


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def cpp_functions(text):
    """Those of a namespace and of a class, by the indentation that clang-format gives them."""
    open_at = {}  # indentation -> (line, name)
    for number, line in enumerate(text.split("\n")):
        found = CPP_FUNCTION.fullmatch(line)
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip().startswith("}") and indent in open_at:
            begin, name = open_at.pop(indent)
            yield name, number - begin + 1
        elif found and "(" in line and indent in ("", "  "):
            open_at[indent] = (number, re.search(r"([\w:~]+)\(", line)[1] if re.search(r"([\w:~]+)\(", line) else line)


def room_of(name):
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in ("tenon", "backends", "python") and len(parts) > 2 else parts[0]


@functools.cache
def measured():
    """{("file" | "function" | "folder" | "room", name): size}; of what is no room, only what is above its limit."""
    sizes, totals, folders = {}, Counter(), Counter()
    for name, text in sources().items():
        lines = text.count("\n")
        totals[room_of(name)] += lines
        folders[str(pathlib.PurePath(name).parent)] += 1
        sizes["file", name] = lines
        for function, length in python_functions(text) if name.endswith(".py") else cpp_functions(text):
            key = ("function", f"{name}:{function}")
            sizes[key] = max(sizes.get(key, 0), length)
    sizes |= {("folder", name): count for name, count in folders.items()}
    above = {key: size for key, size in sizes.items() if size > LIMITS[key[0]]}
    return above | {("room", name): total for name, total in totals.items()}


def allowed():
    rows = [line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return {(kind, name): int(size) for kind, name, size in rows}


def table():
    rows = {key: -(-size // STEP) * STEP if key[0] == "room" else size for key, size in measured().items()}
    lines = [f"{kind:9}{name:78}{rows[kind, name]:6}" for kind, name in sorted(rows)]
    return "\n".join(["# What tests/budgets_test.py allows: exceptions, which may only shrink, and the lines of each room.", *lines, ""])


def test_nothing_is_larger_than_its_budget():
    limits = allowed()
    over = {f"{kind} {name}": (size, limits.get((kind, name), LIMITS.get(kind))) for (kind, name), size in measured().items()}
    over = {what: f"{size}, allowed are {limit}" for what, (size, limit) in over.items() if limit is None or size > limit}
    assert not over, "split what has grown, or edit tests/budgets.txt and say why"


def test_exceptions_are_still_needed():
    now = measured()
    assert not [f"{kind} {name}" for kind, name in allowed() if (kind, name) not in now]


if __name__ == "__main__":
    print(table(), end="")
