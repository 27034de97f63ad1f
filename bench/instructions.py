"""Counts the instructions of one call of each path, with callgrind, and compares them with the kept table.

Usage: instructions.py [--update] [--program PROGRAM]

Counts do not depend on the machine's load, so that a change that costs instructions is seen. They do depend on compiler
and libraries: the table names them, and a difference of other versions says nothing. The exit status is 0 either way.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = ROOT / "bench" / "instructions.txt"


def count(program):
    """{path: instructions of one call}."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(program)],
            capture_output=True,
            text=True,
            # valgrind knows no AVX-512, and another instruction set would have another count.
            env={"PATH": "/usr/bin:/bin", "TENON_CPU_TARGET": "AVX2", "OMP_NUM_THREADS": "1"},
        )
        if run.returncode != 0:
            sys.exit(f"instructions.py: {program} failed under valgrind:\n{run.stderr}")
        report = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    found = re.findall(r"^\s*([\d,]+) .*?[: ]measure_(\d+)_(\w+)", report, re.MULTILINE)
    return {name: int(total.replace(",", "")) / int(calls) for total, calls, name in found}


def kept():
    """The table's rows, and the versions that it was counted with."""
    if not TABLE.exists():
        return {}, ""
    lines = TABLE.read_text().splitlines()
    rows = dict(line.rsplit(maxsplit=1) for line in lines if not line.startswith("#"))
    return {name.strip(): float(value) for name, value in rows.items()}, lines[0]


def versions():
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    return f"# Instructions of one call, callgrind, AVX2 kernels, release build; {compiler}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the counts into the table")
    parser.add_argument("--program", default=ROOT / "build/release/bench/bench_instructions")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("instructions.py: needs valgrind (Debian's package valgrind)")
    before, counted_with = kept()
    now = count(args.program)
    if before and counted_with != versions():
        print("other versions than the table's; differences say nothing:", counted_with.lstrip("# "), sep="\n  ")
    print(f"{'path':32}{'kept':>8}{'now':>8}")
    for name, value in now.items():
        old = before.get(name)
        change = "" if old is None or old == 0 else f"{(value / old - 1) * 100:+7.1f} %"
        print(f"{name:32}{'-' if old is None else f'{old:.0f}':>8}{value:8.0f}{change:>10}")
    if args.update:
        rows = [f"{name:32}{value:8.0f}" for name, value in now.items()]
        TABLE.write_text("\n".join([versions(), *rows]) + "\n")
        print(f"written to {TABLE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
