"""What a build needs and pip cannot bring is named in one message, with the packages to install, before anything is compiled."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def configure(folder, *options, **variables):
    """What CMake says of a build that cannot be."""
    environment = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX", "CMAKE_ARGS")} | variables
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DTENON_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}", *options],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def header(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


# What is missing: the option that hides it, how it is named, and its package of Debian and Fedora.
MISSING = {
    "fmt": ("-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON", "fmt 9", "libfmt-dev", "fmt-devel"),
    "yaml-cpp": ("-DCMAKE_DISABLE_FIND_PACKAGE_yaml-cpp=ON", "yaml-cpp", "libyaml-cpp-dev", "yaml-cpp-devel"),
    "highway": ("-DTENON_HIGHWAY_INCLUDE=", "Highway 1.0", "libhwy-dev", "highway-devel"),
    "json": ("-DTENON_JSON_INCLUDE=", "nlohmann's JSON", "nlohmann-json3-dev", "json-devel"),
    "xxhash": ("-DTENON_XXHASH_INCLUDE=", "xxHash 0.8", "libxxhash-dev", "xxhash-devel"),
    "openmp": ("-DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON", "OpenMP for .*", "libomp-dev", "libomp-devel"),
    "python": ("-DCMAKE_DISABLE_FIND_PACKAGE_Python=ON", "Python 3.10 or newer with its headers", "python3-dev", "python3-devel"),
}


@pytest.mark.parametrize("name", MISSING)
def test_each_is_named_with_its_packages(name, tmp_path):
    option, called, debian, fedora = MISSING[name]
    said = configure(tmp_path, option)
    assert re.search(
        f"Tenon's build needs {called}, which pip cannot install. Debian, Ubuntu: apt install {debian}. Fedora: dnf install {fedora}",
        said,
    ), said


def test_all_are_named_at_once(tmp_path):
    said = configure(tmp_path, *(option for option, *_ in MISSING.values()))
    names, debian = re.search("Tenon's build needs (.*), which pip cannot install. Debian, Ubuntu: apt install (.*). Fedora", said).groups()
    for _, called, package, _ in MISSING.values():
        assert re.search(called, names) and package in debian.split()


def test_libraries_that_are_too_old_are_missing(tmp_path):
    old = header(tmp_path / "old", "xxhash.h", "#define XXH_VERSION_MAJOR 0\n#define XXH_VERSION_MINOR 7\n")
    header(tmp_path / "old", "hwy/highway.h", "#define HWY_MAJOR 0\n")
    said = configure(tmp_path / "build", f"-DTENON_XXHASH_INCLUDE={old}", f"-DTENON_HIGHWAY_INCLUDE={old}")
    assert "needs Highway 1.0, xxHash 0.8, which" in said


def test_a_newer_highway_has_its_version_elsewhere(tmp_path):
    new = header(tmp_path / "new", "hwy/highway.h", '#include "hwy/base.h"\n')
    header(new, "hwy/base.h", "#define HWY_MAJOR 1\n")
    said = configure(tmp_path / "build", f"-DTENON_HIGHWAY_INCLUDE={new}", "-DTENON_JSON_INCLUDE=")
    assert "needs nlohmann's JSON, which" in said


def test_a_compiler_that_is_too_old_is_named(tmp_path):
    # A compiler with another number: what CMake asks it is the number of its macros.
    compiler = tmp_path / "g++-11"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} -U__GNUC__ -D__GNUC__=11 "$@"\n')
    compiler.chmod(0o755)
    said = configure(tmp_path / "build", CXX=str(compiler))
    assert re.search(r"Tenon's build needs g\+\+ 12 or clang 16 or newer \(\S*g\+\+-11 is 11\.\S+\), which pip cannot install", said), said


def test_a_compiler_that_is_not_there_is_named(tmp_path):
    for program in ("cmake", "ninja"):
        (tmp_path / program).symlink_to(shutil.which(program))
    said = configure(tmp_path / "build", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", PATH=str(tmp_path))
    assert "Tenon's build needs a C++20 compiler, which pip cannot install: g++ 12 or clang 16, or newer." in said


def test_pip_shows_the_message(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command += ["-w", tmp_path, f"--config-settings=build-dir={tmp_path / 'build'}"]
    done = subprocess.run(command, env={**os.environ, "CMAKE_ARGS": MISSING["xxhash"][0]}, capture_output=True, text=True)
    assert done.returncode != 0 and not list(tmp_path.glob("*.whl"))
    assert "needs xxHash 0.8, which pip cannot install." in " ".join((done.stdout + done.stderr).split())
