"""What `cmake --install` leaves in build/install: public headers alone, and targets that programs of others build against."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTALL = ROOT / "build/install"
MAIN = ROOT / "tests/packaging/consumer/main.cc"


def run(*command, code=0, **keywords):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **keywords)
    assert (done.returncode == 0) == (code == 0), done.stdout + done.stderr
    return done.stdout + done.stderr


def compiler(name):
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


@functools.cache
def flags():
    """Of pkg-config, where there is one; tenon.pc is read by hand elsewhere."""
    assert "-ltenon" in (INSTALL / "lib/pkgconfig/tenon.pc").read_text()
    if not shutil.which("pkg-config"):
        return [f"-I{INSTALL}/include", f"-L{INSTALL}/lib", "-ltenon"]
    return run("pkg-config", "--cflags", "--libs", "tenon", env={**os.environ, "PKG_CONFIG_PATH": f"{INSTALL}/lib/pkgconfig"}).split()


@pytest.mark.parametrize("options", ["g++ -std=c++20 -Wall -Wextra", "g++ -std=c++23", "g++ -std=c++20 -fno-rtti", "clang++ -std=c++20 -Wall -Wextra"])
def test_a_program_compiles_and_runs(options, tmp_path):
    name, *options = options.split()
    printed = run(compiler(name), *options, MAIN, "-o", tmp_path / "program", *flags(), f"-Wl,-rpath,{INSTALL}/lib")
    assert "tenon/" not in printed  # no warnings about headers
    assert run(tmp_path / "program") == "all good\n"


def test_python_meets_nodes_without_type_information(tmp_path):
    library = tmp_path / "function.so"
    run("g++", "-std=c++20", "-fno-rtti", "-fPIC", "-shared", MAIN.with_name("function.cc"), "-o", library, *flags())
    program = f"""
import gc, tenon
tenon.ops.load_library({str(library)!r})
x = tenon.ones(2, requires_grad=True)
y = tenon.ops.consumer.doubled(x)
assert y.grad_fn.name() == "ScaledBackward" and len(y.grad_fn.next_functions) == 1
gc.collect()
y.sum().backward()
print(x.grad.tolist())
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/release/python")}
    assert run(sys.executable, "-c", program, env=environment) == "[2.0, 2.0]\n"


@pytest.mark.parametrize("standard", ["c++17", "c++14"])
@pytest.mark.parametrize("header", ["tenon.h", "nn.h", "record/compile.h", "core/tensor.h"])
def test_an_older_language_is_named(standard, header, tmp_path):
    (tmp_path / "old.cc").write_text(f"#include <tenon/{header}>\n")
    printed = run("g++", f"-std={standard}", "-fsyntax-only", f"-I{INSTALL}/include", tmp_path / "old.cc", code=1)
    first = next(line for line in printed.splitlines() if "error" in line)
    assert "Tenon needs C++20: compile with -std=c++20 or newer" in first


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """tests/packaging/consumer, against what was moved somewhere else."""
    folder = tmp_path_factory.mktemp("consumer")
    shutil.copytree(INSTALL, folder / "moved", symlinks=True)
    run("cmake", "-S", MAIN.parent, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={folder / 'moved'}")
    run("cmake", "--build", folder / "build")
    return folder


@pytest.mark.parametrize("target", ["shared", "archive", "whole"])
def test_targets_of_the_package(built, target):
    """The archive has all that registers itself, and needs no library of Tenon's; linked wholly statically, none at all."""
    program = built / "build" / target
    assert run(program) == "all good\n"
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", program))
    assert any("libtenon" in name for name in needed) == (target == "shared")
    assert (target == "whole") == (not needed)


def test_installed_libraries_are_stripped():
    """The shared one has the symbols that the loader reads. The archive has those that linkers read, and no names of source files."""
    (library,) = (path for path in (INSTALL / "lib").glob("libtenon.so.*") if not path.is_symlink())
    sections = run("readelf", "-SW", library)
    assert ".symtab" not in sections and ".dynsym" in sections
    assert not re.search(r"\bFILE +LOCAL\b", run("readelf", "-sW", INSTALL / "lib/libtenon.a"))


def test_nothing_installed_knows_where_it_was_built():
    for path in INSTALL.rglob("*"):
        if path.suffix in (".cmake", ".pc") and path.is_file():
            found = re.findall(r"[\"; =](/[\w./-]+)", re.sub(r"#.*", "", path.read_text()))
            assert not [name for name in found if name.startswith(("/usr", "/lib", str(ROOT), "/home", "/tmp"))], path


def test_the_headers_are_those_that_programs_include(tmp_path):
    """What the documented headers include, as the compiler sees it, is what is installed; each header stands alone."""
    there = {str(path.relative_to(INSTALL / "include")) for path in (INSTALL / "include").rglob("*") if path.is_file()}
    assert all(name.startswith("tenon/") for name in there) and len(there) < 200
    listed = re.search(r"TENON_PUBLIC_HEADERS\n(.*?)\)", (ROOT / "cmake/TenonInstall.cmake").read_text(), re.DOTALL)
    public = listed.group(1).split()
    public += [str(path.relative_to(ROOT)) for folder in ("tenon", "tenon/abi") for path in (ROOT / folder).glob("*.h")]
    needed = set()
    for name in public:
        source = tmp_path / "header.cc"
        source.write_text(f"#include <{name}>\n")
        printed = run("g++", "-std=c++20", "-M", f"-I{INSTALL}/include", source)
        needed |= set(re.findall(rf"{INSTALL}/include/(\S+)", printed))
    assert needed == there
    # Those for devices and Tenon's own do not go together (docs/backends.md).
    for folder in ("abi", ""):
        group = [name for name in public if name.startswith("tenon/abi/") == (folder == "abi")]
        source.write_text("".join(f"#include <{name}>\n" for name in sorted(group)))
        run("g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{INSTALL}/include", source)


def test_headers_that_documents_and_examples_name_are_installed():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.cc"), *ROOT.glob("examples/**/*.h")]
    for page in pages:
        for name in re.findall(r"#include <(tenon/[\w/]+\.h)>", page.read_text()):
            assert (INSTALL / "include" / name).exists(), f"{page.relative_to(ROOT)} includes {name}, which is not installed"


def test_licences_are_installed():
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
        assert (INSTALL / "share/tenon/licenses" / name).read_bytes() == (ROOT / name).read_bytes()
