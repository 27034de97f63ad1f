"""The vendors' libraries that this process has loaded."""

import contextlib
import functools
import os
import sys

#: Names in the paths of vendors' libraries.
_VENDORS = ("mkl", "dnnl", "gomp", "iomp", "omp", "cudart", "cublas", "cudnn", "LLVM", "OpenCL", "openblas", "scipy_openblas", "lapack")


def vendor_libraries():
    """Their paths by file name."""
    found = {}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                path = line.split(maxsplit=5)[-1].strip() if line.count("/") else ""
                base = os.path.basename(path)
                for vendor in _VENDORS:
                    if base.lower().startswith("lib" + vendor.lower()):
                        found[base] = path
    except OSError:
        pass
    return found


@functools.cache
def find_onednn() -> None:
    """Loads oneDNN as pip installs it, where the system's loader does not look; the engine then finds it by its name."""
    path = os.path.join(sys.prefix, "lib", "libdnnl.so.3")
    if os.path.exists(path):
        import ctypes

        with contextlib.suppress(OSError):
            ctypes.CDLL(path)
