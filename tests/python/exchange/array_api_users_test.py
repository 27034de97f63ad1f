"""SciPy and scikit-learn compute with tensors as they do with NumPy's arrays: tensors come in, tensors come out."""

import json
import pathlib
import subprocess
import sys

import pytest


# stats.quantile is there from SciPy 1.16 on, which needs Python 3.11.
@pytest.mark.parametrize(("package", "version", "calls"), [("scipy", "1.16", 130), ("sklearn", None, 50)])
def test_programs_that_dispatch_take_tensors(package, version, calls):
    pytest.importorskip(package, minversion=version)
    script = pathlib.Path(__file__).parent / "array_api_users.py"
    done = subprocess.run([sys.executable, str(script), package], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["problems"] == {} and found["count"] >= calls
