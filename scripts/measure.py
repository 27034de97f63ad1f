"""Runs a command and prints its wall time and the peak memory of its largest process.

Usage: measure.py NAME COMMAND...
"""

import resource
import subprocess
import sys
import time


def main() -> int:
    name, *command = sys.argv[1:]
    start = time.monotonic()
    code = subprocess.call(command)
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if code == 0:
        print(f"{name}: {seconds:.0f} s, largest process {peak:.0f} MB", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
