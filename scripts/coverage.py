"""Writes docs/coverage.md from the build on the path: which operators there are, and which of PyTorch's names.

    PYTHONPATH=build/release/python python scripts/coverage.py          # writes docs/coverage.md
    PYTHONPATH=build/release/python python scripts/coverage.py --check  # says what has changed; exit code 1
"""

import difflib
import importlib
import json
import pathlib
import re
import sys

import tenon
from tenon._names.absent import pytorch_names

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"

# Modules whose names are listed, in this order. The rest of PyTorch's are absent as a whole.
MODULES = (
    "torch",
    "torch.Tensor",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.Module",
    "torch.optim",
    "torch.optim.Optimizer",
    "torch.optim.lr_scheduler",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.random",
    "torch.autograd",
    "torch.accelerator",
    "torch.amp",
    "torch.cuda",
    "torch.linalg",
    "torch.fft",
    "torch.signal.windows",
    "torch.special",
)
# Core schemas whose work Tenon does without an operator of that name.
WITHOUT_OPERATOR = {
    "sym_is_contiguous": "Tensor.is_contiguous",
    "sym_numel": "Tensor.numel",
    "sym_size.int": "Tensor.size",
    "sym_storage_offset": "Tensor.storage_offset",
    "sym_stride.int": "Tensor.stride",
}


def operators():
    path = pathlib.Path(tenon.__file__).parent / "_operators.json"
    return json.loads(path.read_text(encoding="utf-8"))


def stands(name, index):
    return "aten::" + name in index


def here(module, name):
    if module in ("torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer"):
        owner = {"torch.Tensor": tenon.Tensor, "torch.nn.Module": tenon.nn.Module, "torch.optim.Optimizer": tenon.optim.Optimizer}
        return hasattr(owner[module], name)
    try:
        found = importlib.import_module("tenon" + module.removeprefix("torch"))
    except ImportError:
        return False
    return hasattr(found, name)


def wrapped(names, width=120):
    lines, line = [], ""
    for name in names:
        word = f"`{name}`"
        if line and len(line) + len(word) + 2 > width:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    return lines + ([line] if line else [])


def module_section(module, names):
    present = sorted(n for n in names if here(module, n))
    absent = sorted(n for n in names if n not in set(present))
    yield f"### {module}: {len(present)} of {len(names)}"
    yield ""
    for title, some in (("There", present), ("Not yet", absent)):
        if some:
            yield f"{title}:"
            yield from wrapped(some)
            yield ""


def read_refusals():
    """What the fields `refuse` of the YAML files say, by the place of the entry."""
    found = {}
    for path in sorted((ROOT / "tenon" / "ops" / "yaml").glob("*.yaml")):
        start = 0
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("- schema:"):
                start = number
            match = re.search(r"refuse: \{\s*dtypes: \[([^\]]*)\]", line)
            if match:
                found[f"tenon/ops/yaml/{path.name}", start] = [d.strip() for d in match.group(1).split(",")]
    return found


def computed_by(body):
    for kind, text in (
        ("expr", "expression"),
        ("rows", "row expression"),
        ("view", "view"),
        ("composite", "other operators"),
        ("kernel", "kernel"),
        ("explicit", "C++"),
        ("dispatch", "C++"),
        ("body", "C++"),
    ):
        if kind in body:
            return text
    return next(iter(body), "")


def differences():
    """The operators that docs/differences.md names, in the first column of its table."""
    found = set()
    for line in (ROOT / "docs" / "differences.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            found.update(re.findall(r"`(?:\w+\.)*(\w+?)_?(?:\([^`]*\))?`", line.split("|")[1]))
    return found


def operator_rows(index):
    refusals, differ = read_refusals(), differences()
    by_name = {}
    for full, entry in index.items():
        name = full.removeprefix("aten::").partition(".")[0]
        if name.startswith("_") or name.endswith("backward"):
            continue
        base = name[:-1] if name.endswith("_") and f"aten::{name[:-1]}" in {f.partition(".")[0] for f in index} else name
        by_name.setdefault(base, []).append((full, entry))
    for name in sorted(by_name):
        entries = [entry for _, entry in by_name[name]]
        first = entries[0]
        derivatives = {e["derivative"] for e in entries}
        derivative = "yes" if derivatives & {"from the expression", "by formula", "through what it calls"} else "no" if derivatives == {"none"} else ""
        refused = sorted({r for e in entries for r in refusals.get((e["file"], e["line"]), ())})
        difference = "[yes](differences.md)" if name in differ else ""
        kinds = ", ".join(dict.fromkeys(computed_by(e["body"]) for e in entries))
        yield f"| `{name}` | {len(entries)} | {'all but ' + ', '.join(refused) if refused else ''} | {derivative} | {kinds} | {difference} |"


def page():
    index, names = operators(), pytorch_names()
    core = sorted(names["core"])
    standing = [n for n in core if stands(n, index)]
    by_other = [n for n in core if n not in standing and n in WITHOUT_OPERATOR]
    absent = [n for n in core if n not in standing and n not in by_other]
    rows = list(operator_rows(index))
    yield "# What is there, and what of PyTorch is not"
    yield ""
    yield "Written by [`scripts/coverage.py`](../scripts/coverage.py) from the build; `tests/docs/coverage_test.py` checks that it is so. PyTorch's names are"
    yield f"those of {pytorch_version()}: public ones, by module. [`docs/differences.md`](differences.md) says where the same name does something else."
    yield ""
    yield f"## Core ATen schemas: {len(standing) + len(by_other)} of {len(core)}"
    yield ""
    if by_other:
        yield "By a method instead of an operator: " + ", ".join(f"`{n}` (`{WITHOUT_OPERATOR[n]}`)" for n in by_other) + "."
        yield ""
    if absent:
        yield "Not yet:"
        yield from wrapped(absent)
        yield ""
    yield "## Public names"
    yield ""
    for module in MODULES:
        yield from module_section(module, names[module])
    yield f"## Operators: {len(rows)}"
    yield ""
    yield "Overloads count in-place and `out` forms. Where dtypes are empty, the operator takes all of them, or what its kernel"
    yield "says in its error; `tests/conformance` has every pair. Operators for gradients and those with a leading underscore are left out."
    yield ""
    yield "| operator | overloads | dtypes | derivative | computed by | differs |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from rows


def pytorch_version():
    with open(ROOT / "python" / "tenon" / "_names" / "pytorch_names.txt", encoding="utf-8") as file:
        return file.readline().removeprefix("# ").partition(":")[0]


def main():
    text = "\n".join(page()) + "\n"
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    old = PAGE.read_text(encoding="utf-8")
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), "docs/coverage.md", "the build"))
    return int(old != text)


if __name__ == "__main__":
    sys.exit(main())
