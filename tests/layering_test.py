"""The rooms of the tree include only rooms below them, as docs/architecture.md draws them: C++, and the Python package."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

# From the lowest to the highest. A room may include itself and every room before it.
ROOMS = [
    # Headers alone, which plug-ins include and nothing else.
    "tenon/abi",
    # Built outside the tree, from those headers.
    "backends/openreg",
    "backends/opencl",
    "tenon/core",
    "tenon/schema",
    "tenon/expr",
    "tenon/dispatch",
    "tenon/iter",
    "tenon/ops",
    "tenon/cache",
    "tenon/graph",
    "tenon/record",
    "tenon/builder",
    # Fills in the tables that the rooms before it declare; reached through them alone.
    "backends/cpu",
    "tenon/autograd",
    "tenon/io",
    "tenon/nn",
    "tenon/optim",
    "tenon/onnx",
    "tenon/plugin",
    "python/src",
]
# The sub-rooms of a room, from the lowest to the highest: a file of one includes headers of itself and of those before it.
SUB_ROOMS = {
    "tenon/graph": ["ir", "text", "fuse", "engine", "plan"],
    "tenon/ops": [
        "elements",
        "forms",
        "copy",
        "view",
        "activation",
        "arithmetic",
        "attention",
        "complex",
        "convolution",
        "elementwise_loss",
        "reduction",
        "norm",
        "factory",
        "indexing",
        "embedding",
        "matmul",
        "linalg",
        "random",
        "recurrent",
        "softmax",
        "sort",
        "special",
        "window",
        "fft",
        "arrange",
        "numeric",
        "distance",
        "statistics",
        "fallback",
    ],
    "backends/cpu": ["copy", "pointwise", "jit", "reduce", "gemm", "linalg", "rows", "conv", "window", "sort", "fft", "attention", "region", "onednn", "lapack", "ops"],
    "python/src": ["interpreter", "tensor", "call", "autograd", "ops", "exchange", "methods", "replay", "modules"],
}
# The gradient of as_strided adds up by index, as index_add does.
EXCEPTIONS = {("tenon/ops/view/gradients.cc", "tenon/ops/indexing/indexed.h")}
# What opgen prints belongs to the operators, save the declarations of Tensor's methods, which name types of core alone.
GENERATED = "tenon/ops"
GENERATED_ANYWHERE = {"tenon/generated/tensor_methods.inc"}
# The generator runs before the library exists: it is made of these rooms alone.
BELOW_OPGEN = {"tenon/abi", "tenon/core", "tenon/schema", "tenon/expr"}

# The Python package, from the lowest to the highest: modules and folders of python/tenon, and the modules of SHELVES. Each imports
# itself and what is before it; those of one row do not import each other.
SHELVES = {"_names", "_program", "_tools"}
PYTHON = [
    {"_C"},
    {"types", "callers", "arguments"},
    {"_names", "_program", "_tools", "_names.instead", "version"},
    {"_names.absent", "_polynomials"},
    {"autograd"},
    {"amp", "no_device", "_roots"},
    {"backends", "cpu", "cuda", "mps", "xpu", "functional", "dispatch", "_tools.imports", "_names.info", "infer_schema", "tags", "_names.legacy",
     "_tools.loaded", "linalg", "fft", "_names.numerics", "_tools.pages", "prefix", "random", "namespaces", "safetensors", "special", "testing", "_names.html",
     "_names.windows", "futures", "return_types", "storage", "distributed", "mtia"},
    {"array_api", "einops_backend", "signal"},
    {"library", "serialization", "utils", "nn", "optim"},
    {"distributions", "einops_layers", "jit", "_functions"},
    {"_names.borders"},
    {"graph", "_program.report", "plans", "_replay"},
    {"_program.cached_plans", "_program.inference"},
    {"_program.compile", "onnx"},
    {"ops", "opcheck", "compiler"},
    {"devices", "_names.pytorch_dispatch"},
    {"accelerator"},
    {"__init__"},
    {"_tools.op_watch", "_tools.op_arguments"},
    {"_tools.key_probe"},
    {"conformance", "_tools.overhead", "_tools.places", "_tools.traced"},
    {"check_op"},
    {"_tools.command"},
    {"__main__"},
]

# Text that the printers print is not theirs.
RAW_STRING = re.compile(r'R"([^(]*)\(.*?\)\1"', re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def room_of(path: str) -> str | None:
    if path.startswith("tenon/generated/"):
        return GENERATED
    if re.fullmatch(r"tenon/\w+\.h", path):
        return "tenon/onnx"  # tenon.h and its kin bring all of the library
    for room in [*ROOMS, "tools/opgen", "bench", "tests", "examples", "python"]:
        if path.startswith(room + "/"):
            return room
    return None


def includes(room: str):
    """(file, what it includes) of a room, names of Tenon alone."""
    for file in sorted((ROOT / room).rglob("*")):
        if file.suffix in {".h", ".cc", ".inc"}:
            for target in INCLUDE.findall(RAW_STRING.sub('""', file.read_text())):
                yield file.relative_to(ROOT).as_posix(), target


def test_every_room_of_the_library_is_in_the_list():
    rooms = {f.relative_to(ROOT).as_posix() for f in (ROOT / "tenon").iterdir() if [*f.rglob("*.h")]}
    rooms |= {f.relative_to(ROOT).as_posix() for f in (ROOT / "backends").iterdir() if f.is_dir()}
    assert rooms | {"python/src"} == set(ROOMS)


def violations():
    for room in ROOMS:
        for file, target in includes(room):
            other = room_of(target)
            # Without a room: other libraries.
            if other is None or other == room or target in GENERATED_ANYWHERE:
                continue
            if (room, other) == ("python/src", "python"):
                continue  # printed for the extension
            if other not in ROOMS or ROOMS.index(other) > ROOMS.index(room):
                yield file, target


def test_every_room_includes_only_rooms_below_it():
    wrong = sorted(set(violations()))
    assert not wrong, "\n".join(f"{file} includes {target}" for file, target in wrong)


def sub_room_of(room: str, path: str) -> str | None:
    """The folder of a room that a file is in; None for the files that a room has beside its folders."""
    parts = path.removeprefix(room + "/").split("/")
    return parts[0] if path.startswith(room + "/") and len(parts) > 1 else None


@pytest.mark.parametrize("room", SUB_ROOMS)
def test_a_sub_room_includes_only_sub_rooms_below_it(room):
    order = SUB_ROOMS[room]
    folders = {f.name for f in (ROOT / room).iterdir() if f.is_dir() and [*f.rglob("*.h"), *f.rglob("*.cc")]}
    assert folders == set(order)
    wrong = []
    for file, target in includes(room):
        own, other = sub_room_of(room, file), sub_room_of(room, target)
        if own and other and order.index(other) > order.index(own) and (file, target) not in EXCEPTIONS:
            wrong.append(f"{file} includes {target}")
    assert not wrong, "\n".join(wrong)


def test_a_room_of_operators_has_the_name_of_its_family():
    families = {f.stem for f in (ROOT / "tenon/ops/yaml").glob("*.yaml")}
    assert set(SUB_ROOMS["tenon/ops"]) - {"elements", "forms", "fallback"} <= families


def test_the_generator_knows_nothing_of_tensors():
    wrong = [
        f"{file} includes {target}"
        for file, target in includes("tools/opgen")
        if room_of(target) not in BELOW_OPGEN | {"tools/opgen", None}
    ]
    assert not wrong, "\n".join(wrong)


def module_of(file: pathlib.Path) -> str:
    """The module or folder of python/tenon that a file is part of."""
    return place_of([part.removesuffix(".py") for part in file.relative_to(ROOT / "python" / "tenon").parts])


def place_of(path: list[str]) -> str:
    """What PYTHON calls a module: of SHELVES each module by itself, of other folders the folder."""
    return ".".join(path[:2]) if path[0] in SHELVES and path[1:2] not in ([], ["__init__"]) else path[0]


def imports(file: pathlib.Path):
    """The modules and folders of the package that a file imports, wherever in the file."""
    package = file.relative_to(ROOT / "python").parts[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "tenon":
                yield place_of(name[1:]) if len(name) > 1 else "__init__"


def test_rooms_that_know_no_operator_by_name():
    # What they must know of one is a trait, or a constant of tenon::operators, which a rename breaks.
    rooms = ["tenon/graph", "tenon/record", "tenon/builder", "tenon/plugin", "backends/cpu"]
    files = [f for room in rooms for f in (ROOT / room).rglob("*") if f.suffix in (".h", ".cc")]
    named = [f"{f.relative_to(ROOT)}: {line.strip()}" for f in files for line in f.read_text().splitlines() if '"aten::' in line.split("//")[0]]
    assert len(files) > 100 and not named


def test_the_modules_of_the_package_import_only_modules_below_them():
    level = {module: i for i, row in enumerate(PYTHON) for module in row}
    files = sorted((ROOT / "python" / "tenon").rglob("*.py"))
    assert {module_of(file) for file in files} == set(level) - {"_C"}, "every module has its place in PYTHON"
    wrong = []
    for file in files:
        module = module_of(file)
        for other in imports(file):
            # A name of the package itself, `from tenon import x`, is a module or comes from __init__.
            other = other if other in level else "__init__"
            if other != module and level[other] >= level[module]:
                wrong.append(f"{file.relative_to(ROOT)} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_only_compiled_functions_reach_replays():
    """A replay has one door: the type of compiled functions in C++, tenon.compile in Python."""
    inside = [file for file, target in includes("python/src") if target.startswith("python/src/replay/") and "/replay/" not in file]
    assert set(inside) == {"python/src/modules/compiled_function.cc"}
    outside = [f for f in (ROOT / "python" / "tenon").rglob("*.py") if "_replay" not in f.parts and "_replay" in imports(f)]
    assert [f.name for f in outside] == ["compile.py"]
