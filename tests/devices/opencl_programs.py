"""What the tests of opencl share: programs in processes of their own, and what its tensors are compared by."""

import os
import subprocess
import sys

import numpy as np

import tenon
from tests.devices.conftest import OPENCL, OPENCL_ENVIRONMENT


def run(program, *arguments, **environment):
    """Runs a program, with opencl's path as `path`; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, tenon\npath = {str(OPENCL)!r}\n{program}", *map(str, arguments)],
        capture_output=True, text=True, env={**os.environ, **OPENCL_ENVIRONMENT, **environment},
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def same(there, here):
    """The bits, all NaNs being one."""
    assert there.device.type == "opencl" and there.dtype == here.dtype and there.shape == here.shape
    a, b = (t.detach().cpu().contiguous() for t in (there, here))
    if a.dtype == tenon.bfloat16:
        a, b = a.to(tenon.float32), b.to(tenon.float32)
    a, b = a.numpy(), b.numpy()
    assert np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") and (
        a.dtype.kind not in "fc" or np.array_equal(np.signbit(a.real[~np.isnan(a)]), np.signbit(b.real[~np.isnan(b)]))
    ), f"{a}, expected {b}"
