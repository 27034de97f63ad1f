"""Every program of the documentation runs, in a process of its own: Python blocks, and C++ blocks against the installed library.
What is no program is tests/docs/blocks_test.py's."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language):
    for page in PAGES:
        for i, text in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)):
            yield pytest.param(text, id=f"{page.name}-{i}")


def run_python(text, tmp_path):
    """Devices that it loads and what it registers stay in its process."""
    # What registers something for openreg's operators is imported when the device is there (docs/conformance.md).
    load = 'import tenon\ntenon.load_device("build/release/backends/openreg/openreg.so")\n' if '"openreg::' in text else ""
    (tmp_path / "example.py").write_text(load + text)
    # Where a page loads a device from the build tree, its path is relative.
    folder = ROOT if "build/release/" in load + text else tmp_path
    build = ROOT / "build/release"
    variables = {**os.environ, "PYTHONPATH": str(build / "python"), "TENON_PLUGIN_PATH": str(build / "backends/openreg")}
    done = subprocess.run([sys.executable, tmp_path / "example.py"], cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


#: By the name of a file that blocks of a page share: the first of them, which writes it.
WRITERS = {}
for block in blocks("python"):
    for path in re.findall(r'"(/tmp/[^"]+)"', block.values[0]):
        WRITERS.setdefault((block.id.rpartition("-")[0], path), block.values[0])


def write_files(text, tmp_path, request):
    """Those that earlier blocks of the page write, and that are not there."""
    page = request.node.callspec.id.rpartition("-")[0]
    for path in re.findall(r'"(/tmp/[^"]+)"', text):
        writer = WRITERS.get((page, path), text)
        if writer != text and not pathlib.Path(path).exists():
            run_python(writer, tmp_path)


@pytest.mark.parametrize("text", list(blocks("python")))
def test_python_example(text, tmp_path, request):
    write_files(text, tmp_path, request)
    run_python(text, tmp_path)


CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX)
find_package(Tenon REQUIRED)
add_executable(example main.cc)
target_link_libraries(example PRIVATE Tenon::tenon)
"""


@pytest.mark.parametrize("text", [block for block in blocks("cpp") if "int main()" in block.values[0]])
def test_cpp_example(text, tmp_path, request):
    write_files(text, tmp_path, request)
    (tmp_path / "main.cc").write_text(text)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    build = tmp_path / "build"
    for command in (
        ["cmake", "-S", tmp_path, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={ROOT / 'build/install'}"],
        ["cmake", "--build", build],
        [build / "example"],
    ):
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
