"""Host copies as the fallback of a key: the file of docs/stubs.md, built outside the tree's targets and loaded next to a device."""

import pathlib
import re
import subprocess

import pytest

from tests.devices.conftest import BUILD
from tests.devices.programs import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/stubs.md").read_text()
(EXAMPLE,) = [text for text in re.findall(r"```cpp\n(.*?)```", PAGE, re.DOTALL) if text.startswith("// host_copies.cc")]
#: MISSION's own line: Tenon's function for a key.
OWN = """
#include "tenon/dispatch/library.h"
#include "tenon/ops/fallback/cpu_fallback.h"
TENON_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(tenon::CppFunction::make_from_boxed_function<&tenon::cpu_fallback>());
}
"""


def built(text, folder, name):
    source, library = folder / f"{name}.cc", folder / f"{name}.so"
    source.write_text(text)
    subprocess.run(["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{ROOT}", f"-I{BUILD}/generated", source,
                    f"-L{BUILD}/tenon", "-ltenon", f"-Wl,-rpath,{BUILD}/tenon", "-o", library], check=True)  # fmt: skip
    return library


@pytest.fixture(scope="module")
def nothing_falls_back(tmp_path_factory):
    """The device in plain C, which runs nothing but subtractions on host copies."""
    library = tmp_path_factory.mktemp("policy") / "policy.so"
    source = ROOT / "tests/devices/policy/policy.c"
    subprocess.run(["cc", "-std=c11", "-fPIC", "-shared", f"-I{ROOT}", source, "-o", library], check=True)
    return library


PROGRAM = """
tenon.load_device(sys.argv[2], name="strict", options={"fallback": "selective"})
x = tenon.arange(4.0).to("strict")
def refused():
    try:
        x.cumsum(0)
    except NotImplementedError as error:
        return "is not implemented for device strict" in str(error)
assert refused()
tenon.ops.load_library(sys.argv[3])
assert x.cumsum(0).tolist() == [0, 1, 3, 6] and tenon.fallbacks("strict")["aten::cumsum"]["calls"] == 1
"""


def test_tenons_function_for_a_key(nothing_falls_back, tmp_path):
    run(PROGRAM + "tenon._C._unload_library(sys.argv[3])\nassert refused()", nothing_falls_back, built(OWN, tmp_path, "own"))


def test_a_function_of_ones_own_that_calls_it(nothing_falls_back, tmp_path):
    run(PROGRAM + "assert tenon.ops.host_copies.count() == 1", nothing_falls_back, built(EXAMPLE, tmp_path, "host_copies"))
