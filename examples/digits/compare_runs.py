"""Compares the losses that digits.py and the C++ program wrote, bit for bit.

Usage: compare_runs.py PYTHON_LOSSES CPP_LOSSES
Exits with 1 when they differ.
"""

from __future__ import annotations

import pathlib
import struct
import sys


def main() -> int:
    python, cpp = (pathlib.Path(p).read_bytes() for p in sys.argv[1:3])
    same = python[:-8] == cpp[:-8] and len(python) > 8
    a, b = (struct.unpack("<d", run[-8:])[0] for run in (python, cpp))
    print(f"digits: python accuracy {a:.4f}, c++ accuracy {b:.4f}, losses identical: {'yes' if same else 'no'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
