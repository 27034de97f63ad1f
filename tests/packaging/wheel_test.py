"""The wheel that ./test builds from the release tree, installed where nothing but Python, libstdc++ and libgomp is."""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "data/digits.csv.gz"
#: What -ltenon finds: a line of text.
LINKER_SCRIPT = "tenon/lib/libtenon.so"


def run(*command, **keywords):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **keywords)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel():
    (found,) = (ROOT / "build/wheels").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment of the plain interpreter, which has the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("wheel") / "environment"
    run(os.path.realpath(sys.executable), "-m", "venv", "--without-pip", folder)
    # A wheel is unpacked into site-packages, and its entry points become programs; pip does both.
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q", "--no-index", "--no-deps", wheel)
    return folder


def package(environment):
    return next(environment.glob("lib/python*/site-packages/tenon"))


def in_bare_root(environment, *command, show=()):
    options = [o for path in (environment, *show) for o in ("--show", path)]
    variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [ROOT / "scripts/bare_root.sh", "--python", environment / "bin/python", *options, environment / "bin/python", *command],
        env=variables, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_tag_and_its_size(wheel):
    minor = int(re.search(r"-manylinux_2_(\d+)_" + platform.machine() + r"\.whl$", wheel.name).group(1))
    # The oldest glibc with all functions that GCC 12's output needs, whatever this machine's is.
    assert minor <= 34
    # docs/decisions/0042-wheel.md says what has room in it.
    assert wheel.stat().st_size <= 8 * 2**20


def test_what_is_in_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for name in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
            (entry,) = [n for n in names if n.endswith(f".dist-info/licenses/{name}")]
            assert archive.read(entry) == (ROOT / name).read_bytes()
        assert archive.read(LINKER_SCRIPT).startswith(b"INPUT(libtenon.so.")
    libraries = [name for name in names if re.search(r"\.so(\.|$)|\.a$", name) and name != LINKER_SCRIPT]
    assert sorted(name.partition(".")[0] for name in libraries) == ["tenon/_C", "tenon/lib/libtenon"]
    for name in ("include/tenon/tenon.h", "lib/cmake/Tenon/TenonConfig.cmake", "lib/tenon/plugins/README.txt", "_C.pyi", "py.typed"):
        assert f"tenon/{name}" in names
    assert not [n for n in names if n.endswith((".cc", ".in")) and "/share/tenon/examples/" not in n]


def test_its_files_need_the_system_and_each_other_alone(environment):
    system = {"libgomp.so.1", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}
    (library,) = package(environment).glob("lib/libtenon.so.*")
    (module,) = package(environment).glob("_C*.so")
    for file, others, path in ((library, set(), []), (module, {library.name}, ["$ORIGIN/lib"])):
        dynamic = run("readelf", "-dW", file)
        assert ".symtab" not in run("readelf", "-SW", file)  # stripped
        assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) <= system | others
        assert re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic) == path


PROGRAM = """
import importlib.util, json, sys
import tenon
assert not [name for name in ("numpy", "torch", "tqdm") if importlib.util.find_spec(name)]
a, b = tenon.ones(600, 600), tenon.full((600, 600), 2.0)
assert (a @ b).eq(1200).all()
mapped = sorted({line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line or "libtenon" in line})
print(json.dumps([tenon.__file__, mapped]))
"""


def test_it_works_where_nothing_else_is(environment):
    file, mapped = json.loads(in_bare_root(environment, "-c", PROGRAM))
    assert pathlib.Path(file).parent == package(environment)
    assert len(mapped) == 2  # one copy of the library, one pool of threads
    facts = json.loads(in_bare_root(environment, "-m", "tenon", "info", "--json"))
    assert [library.split(".")[0] for library in map(os.path.basename, facts["vendor libraries"])] == ["libgomp"]
    assert "aten::silu" in in_bare_root(environment, "-m", "tenon", "where", "silu")
    assert in_bare_root(environment, "-m", "tenon", "docs", "compile") == (ROOT / "docs/compile.md").read_text()
    assert "\n## " in in_bare_root(environment, "-m", "tenon", "docs", "operators")
    (program,) = environment.glob("bin/tenon")
    assert in_bare_root(environment, program, "--version").startswith("tenon ")


def test_the_digits_are_learned(environment, tmp_path):
    losses = tmp_path / "losses"
    losses.touch()
    printed = in_bare_root(
        environment, ROOT / "examples/digits/digits.py", "--data", DATA, "--losses", losses,
        show=[ROOT / "examples/digits/digits.py", DATA, losses],
    )  # fmt: skip
    assert float(re.search(r"accuracy on \d+ held-out rows: (\d\.\d+)", printed).group(1)) > 0.95
    # The bits of the build that the wheel was made from.
    here = tmp_path / "here"
    run(sys.executable, ROOT / "examples/digits/digits.py", "--losses", here)
    assert losses.read_bytes() == here.read_bytes()


def test_it_has_all_that_an_operator_in_cpp_is_built_with(environment, tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    python = environment / "bin/python"
    prefix = run(python, "-c", "import tenon; print(tenon.cmake_prefix_path())", env={}).strip()
    include = run(python, "-c", "import tenon; print(tenon.get_include())", env={}).strip()
    assert prefix == str(package(environment)) and pathlib.Path(include, "tenon/tenon.h").exists()
    run("cmake", "-S", ROOT / "examples/custom_operator", "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    library = tmp_path / "libscaled_abs.so"
    use = f"import tenon; tenon.ops.load_library({str(library)!r}); print(tenon.ops.example.scaled_abs(tenon.tensor([-2.0]), 3).tolist())"
    assert in_bare_root(environment, "-c", use, show=[library]) == "[6.0]\n"


def test_a_program_without_cmake_builds_against_it(environment, tmp_path):
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    library = package(environment) / "lib"
    flags = run("pkg-config", "--cflags", "--libs", "tenon", env={**os.environ, "PKG_CONFIG_PATH": library / "pkgconfig"}).split()
    (tmp_path / "main.cc").write_text(
        "#include <tenon/tenon.h>\n#include <iostream>\nint main() { std::cout << tenon::ones({2}).sum(); }\n"
    )
    run("g++", "-std=c++20", tmp_path / "main.cc", *flags, f"-Wl,-rpath,{library}", "-o", tmp_path / "main")
    assert run(tmp_path / "main") == "tensor(2.)"


def test_devices_in_its_folder_are_found_by_name(environment):
    built = ROOT / "build/release/backends/openreg/openreg.so"
    placed = package(environment) / "lib/tenon/plugins/openreg.so"
    shutil.copy(built, placed)
    try:
        use = "import tenon; x = tenon.ones(2, device='openreg'); print((x + x).tolist(), tenon.devices.loaded()[0][1])"
        assert in_bare_root(environment, "-c", use) == f"[2.0, 2.0] {placed}\n"
    finally:
        placed.unlink()


def test_a_build_tree_has_no_headers_to_build_against():
    import tenon

    with pytest.raises(RuntimeError, match="cmake_prefix_path: this Tenon runs from its build tree"):
        tenon.cmake_prefix_path()
    with pytest.raises(RuntimeError, match="install it with pip"):
        tenon.get_include()
