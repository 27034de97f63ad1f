"""The rooms of the tree include only rooms below them, as docs/architecture.md draws them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]

# From the lowest to the highest. A room may include itself and every room before it.
ROOMS = [
    "tenon/core",
    "tenon/schema",
    "tenon/expr",
    "tenon/dispatch",
    "tenon/iter",
    "tenon/random",
    "tenon/ops",
    "tenon/autograd",
    "tenon/nn",
    "tenon/optim",
    "python/src",
]
# Generated declarations belong to the operators; core includes the method declarations alone.
GENERATED_BELOW = {"tenon/generated/tensor_methods.inc"}
# What a room may include besides the rooms below it, and why.
EXCEPTIONS = {
    # The interface of the CPU backend that the iterator and the operators call.
    ("tenon/iter", "backends/cpu"),
    ("tenon/ops", "backends/cpu"),
    ("tenon/random", "backends/cpu"),
    # Which instruction set runs, shown to people.
    ("python/src", "backends/cpu"),
}

# Text that the printers print is not theirs.
RAW_STRING = re.compile(r'R"([^(]*)\(.*?\)\1"', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path: str) -> str | None:
    for room in [*ROOMS, "backends/cpu"]:
        if path.startswith(room + "/"):
            return room
    return None


def includes():
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*")):
            if file.suffix in {".h", ".cc", ".inc"}:
                for target in INCLUDE.findall(RAW_STRING.sub('""', file.read_text())):
                    yield room, file.relative_to(ROOT), target


def test_every_room_includes_only_rooms_below_it():
    wrong = []
    for room, file, target in includes():
        other = room_of(target)
        if other is None or other == room or (room, other) in EXCEPTIONS:
            continue
        if other not in ROOMS or ROOMS.index(other) > ROOMS.index(room):
            wrong.append(f"{file} includes {target}")
    assert not wrong, "\n".join(wrong)


def test_core_includes_no_generated_file_but_the_method_declarations():
    wrong = [
        f"{file} includes {target}"
        for room, file, target in includes()
        if room in {"tenon/core", "tenon/schema", "tenon/expr", "tenon/dispatch"}
        and target.startswith("tenon/generated/")
        and target not in GENERATED_BELOW
    ]
    assert not wrong, "\n".join(wrong)
