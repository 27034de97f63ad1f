"""The structs of the plug-in interface lie in memory as layout_v1.txt says, every one of them, and those that may grow begin with
their size. A field that is appended is appended to the file, too."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ["tenon_types.h", "tenon_program.h", "tenon_abi.h"]

#: They lie in arrays or in other structs, and never grow.
FIXED = {
    "TenonDevice", "TenonStream", "TenonNode", "TenonOperand", "TenonCell", "TenonScalar", "TenonList", "TenonPhilox", "TenonOption",
}  # fmt: skip


def bodies(text):
    """(name, text between the outermost braces) of every `typedef struct X {...} X;` and union."""
    for found in re.finditer(r"typedef (?:struct|union) (\w+) \{", text):
        depth, end = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield found[1], text[found.end() : end - 1]


def fields(body):
    """The names of the members of a struct, outermost ones only."""
    body = re.sub(r"\{[^{}]*\}", "", body)  # of a union without a name
    for member in body.split(";"):
        if not member.strip():
            continue
        pointer = re.search(r"\(\*(\w+)\)\s*\(", member)
        yield pointer[1] if pointer else re.search(r"(\w+)\s*(?:\[\w+\])?\s*$", member)[1]


def structs(root=ROOT):
    found = {}
    for header in HEADERS:
        text = (root / "tenon/abi" / header).read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        found.update((name, list(fields(body))) for name, body in bodies(text))
    return found


def layout(tmp_path, include=ROOT, found=None):
    """One line for each struct: "TenonDevice 2: backend 0+1, index 1+1", as the compiler has it."""
    program = "#include <stddef.h>\n#include <stdio.h>\n" + '#include "tenon/abi/tenon_abi.h"\nint main(void) {\n'
    for name, members in (found or structs()).items():
        program += f'printf("{name} %zu:", sizeof({name}));\n'
        for i, member in enumerate(members):
            program += (
                f'printf("{"," if i else ""} {member} %zu+%zu", offsetof({name}, {member}), sizeof((({name}*)0)->{member}));\n'
            )
        program += 'puts("");\n'
    (tmp_path / "layout.c").write_text(program + "return 0;\n}\n")
    subprocess.run(["cc", "-std=c11", f"-I{include}", tmp_path / "layout.c", "-o", tmp_path / "layout"], check=True)
    return subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout


def test_every_struct_lies_as_it_did(tmp_path):
    assert layout(tmp_path) == (ROOT / "tests/abi/layout_v1.txt").read_text()


def test_released_fields_stay_where_they_were(tmp_path):
    """Those of the frozen headers have their places in today's, which may have more behind them."""
    today = structs()
    (tmp_path / "now").mkdir()
    (tmp_path / "then").mkdir()
    now = dict(line.split(" ", 1) for line in layout(tmp_path / "now").splitlines())
    for line in layout(tmp_path / "then", ROOT / "tests/abi/frozen_v1", structs(ROOT / "tests/abi/frozen_v1")).splitlines():
        name, then = line.split(" ", 1)
        fields_then, fields_now = then.split(": ")[1], now[name].split(": ")[1]
        assert fields_now.startswith(fields_then), name
        assert name in today and (name not in FIXED or now[name] == then), f"{name} never grows"


def test_what_may_grow_begins_with_its_size(tmp_path):
    found = structs()
    assert FIXED <= set(found) and len(found) > 15
    lines = {line.split()[0]: line for line in layout(tmp_path).splitlines()}
    for name in set(found) - FIXED:
        assert re.match(rf"{name} \d+: struct_size 0\+4,", lines[name]), f"{name} may grow, and says no size: {lines[name]}"


def test_a_struct_without_size_would_be_seen():
    """The parser sees members of every kind."""
    text = """
    typedef struct Grows { int32_t (*f)(void* self, int x); const uint8_t* tags; uint32_t args[3]; union { int64_t i; double d; } v; } Grows;
    """
    assert {name: list(fields(body)) for name, body in bodies(text)} == {"Grows": ["f", "tags", "args", "v"]}
