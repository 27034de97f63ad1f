"""Several interpreters in one process: Tenon belongs to the main one, and says so in the others."""

import subprocess
import sys

import pytest

if sys.version_info >= (3, 13):
    RUN = "import _interpreters as interpreters\ndef run(one, code):\n    failure = interpreters.exec(one, code)\n    assert failure is None, failure.formatted\n"
else:
    RUN = "import _xxsubinterpreters as interpreters\nrun = interpreters.run_string\n"

REFUSED = """
try:
    import tenon
except ImportError as error:
    assert "main interpreter" in str(error) and "process" in str(error), error
else:
    raise AssertionError("tenon was imported")
"""
WORKS = "import tenon\nassert (tenon.ones(3) * 2).sum().item() == 6\n"


@pytest.mark.parametrize(
    "program",
    [
        "one = interpreters.create()\nrun(one, REFUSED)\ninterpreters.destroy(one)\n" + WORKS,
        WORKS + "one = interpreters.create()\nrun(one, REFUSED)\ninterpreters.destroy(one)\n" + WORKS,
        "for _ in range(3):\n    one = interpreters.create()\n    run(one, REFUSED)\n    run(one, REFUSED)\n    interpreters.destroy(one)\n" + WORKS,
        WORKS + "one = interpreters.create()\nrun(one, REFUSED)\n" + WORKS,  # ends with the process
    ],
    ids=["before the main one", "after it", "several", "open at the end"],
)
def test_a_subinterpreter_gets_a_clear_import_error(program):
    done = subprocess.run([sys.executable, "-c", f"REFUSED = {REFUSED!r}\n{RUN}{program}"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_the_module_is_imported_again_as_the_same():
    code = """
import sys, tenon
first = tenon._C
x = tenon.ones(2)
for name in [n for n in sys.modules if n.partition(".")[0] == "tenon"]:
    del sys.modules[name]
import tenon
assert tenon._C.Tensor is first.Tensor and isinstance(x, tenon.Tensor) and (x + tenon.ones(2)).tolist() == [2, 2]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
