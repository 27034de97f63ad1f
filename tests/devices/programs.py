"""Programs in processes of their own, for what ends a process or needs devices of its own."""

import os
import subprocess
import sys

import pytest

from tests.devices.conftest import BUILD, OPENCL, OPENCL_ENVIRONMENT, OPENREG

#: From CPython 3.12 on, a fork of a process that has threads warns; some programs fork on purpose.
FORKS = "ignore:This process:DeprecationWarning"


def run(program, *arguments, timeout=None, **environment):
    """Runs a program with openreg's path as its first argument; what it printed."""
    done = start(program, *arguments, timeout=timeout, **environment)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
    return done.stdout


def start(program, *arguments, timeout=None, **environment):
    command = [sys.executable, "-W", FORKS, "-c", "import os, sys, threading, tenon\n" + program, str(OPENREG), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def run_on(device, program, *arguments):
    """Runs a program on "opencl", or on openreg in a mode of it. There `device` is the module, and `NAME` what it is called."""
    if device != "opencl":
        load = f'NAME = "openreg"\ndevice = tenon.load_device(sys.argv[1], options={{"mode": {device!r}, "devices": 1}})\n'
        return run(load + program, *arguments)
    if not OPENCL.exists():
        pytest.skip("opencl is not built: its headers are not installed")
    load = f'NAME = "opencl"\ndevice = tenon.load_device({str(OPENCL)!r})\n'
    return run(load + program, *arguments, **OPENCL_ENVIRONMENT)
