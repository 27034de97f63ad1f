"""Programs in processes of their own, for what ends a process or needs devices of its own."""

import os
import subprocess
import sys

from tests.devices.conftest import OPENREG


def run(program, *arguments, **environment):
    """Runs a program with openreg's path as its first argument; what it printed."""
    done = start(program, *arguments, **environment)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
    return done.stdout


def start(program, *arguments, **environment):
    command = [sys.executable, "-c", "import os, sys, tenon\n" + program, str(OPENREG), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
