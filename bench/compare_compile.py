"""Compiled programs beside the same lines eager, PyTorch eager and compiled, JAX's jit, MLX's compile, and oneDNN called directly;
each row with its bounds.

Usage: compare_compile.py [--rows PATTERN] [--columns PATTERN] [--rounds N] [--core N] [--json FILE]

Each column is a process of its own, all on one pinned core; they take turns for several rounds, and the minimum counts:
noise only ever adds. Frameworks that cannot be imported are left out: PYTHONPATH may name the site-packages of an
environment that has them. The C library is told to keep large blocks, as Tenon does, so that no column pays for page faults
that another one is spared.

Columns of Tenon: eager; compiled; interpreter (compiled, without machine code); strict; relaxed (compiled so that oneDNN may take
part, where it is installed).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

from compile_rows import BOUNDS, PEERS, rows_of

TENON = {
    "eager": {},
    "compiled": {},
    "interpreter": {"TENON_JIT": "0"},
    "tuned": {},
    "strict": {"TENON_STRICT": "1"},
    "relaxed": {},
    "pure": {},
}
KEEP_LARGE_BLOCKS = {"MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_MMAP_THRESHOLD_": str(1 << 34)}


def once(function, seconds):
    """The fewest nanoseconds of one call, from as many calls as fit into `seconds`, three at least."""
    count, best, calls, end = 1, float("inf"), 0, time.perf_counter() + seconds
    while calls < 3 or time.perf_counter() < end:
        start = time.perf_counter_ns()
        for _ in range(count):
            function()
        elapsed = time.perf_counter_ns() - start
        best, calls = min(best, elapsed / count), calls + 1
        if elapsed < 2e5:
            count *= 4
    return best


def work(column):
    """A column's process: reads names of rows and prints, for each, the nanoseconds of a call, or why there are none."""
    rows = rows_of(column)
    made = {}
    print("ready", flush=True)
    for line in sys.stdin:
        name, seconds = json.loads(line)
        try:
            if name not in rows:
                answer = None
            else:
                if name not in made:
                    made[name] = rows[name]()
                    for _ in range(5):  # plans, machine code, caches
                        made[name]()
                # Rows that measure themselves have the function that does.
                own = getattr(made[name], "nanoseconds", None)
                answer = own() if own else once(made[name], seconds)
        except Exception as e:
            answer = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        print(json.dumps(answer), flush=True)


class Column:
    def __init__(self, name, core):
        self.name, self.problem = name, {}
        environment = {
            **os.environ, **KEEP_LARGE_BLOCKS, **TENON.get(name, {}), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment, preexec_fn=lambda: os.sched_setaffinity(0, {core}), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.there = self.process.stdout.readline() == "ready\n"

    def measure(self, row, seconds):
        if not self.there or row in self.problem:
            return None
        self.process.stdin.write(json.dumps([row, seconds]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else "the process ended"
        self.there = bool(line)
        if isinstance(answer, str):
            self.problem[row] = answer
            return None
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def judged(name, best):
    """(what a bound says, whether it holds) of each bound of a row that can be judged."""
    for column, factor, reference in BOUNDS[name]:
        if column not in best:
            continue
        if reference == "us":
            yield f"{column} <= {factor} us", best[column] <= factor * 1e3
        elif reference in best:
            ratio = best[column] / best[reference]
            yield f"{column} {ratio:.2f} <= {factor} of {reference}", ratio <= factor


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", metavar="PATTERN", default=".", help="only rows that match")
    parser.add_argument("--columns", metavar="PATTERN", default=".", help="only columns that match")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="of each turn")
    parser.add_argument("--core", type=int, default=0, help="the core to pin to")
    parser.add_argument("--json", help="write the rows here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.worker)

    columns = [Column(name, options.core) for name in [*TENON, "floor", *PEERS] if re.search(options.columns, name)]
    for column in columns:
        if not column.there:
            print(f"{column.name} is not installed", file=sys.stderr)
    table = []
    print(f"{'us':44}" + "".join(f"{c.name:>13}" for c in columns if c.there))
    for name in BOUNDS:
        if not re.search(options.rows, name):
            continue
        best = {}
        for _ in range(options.rounds):
            for column in columns:
                ns = column.measure(name, options.seconds)
                if ns is not None:
                    best[column.name] = min(best.get(column.name, float("inf")), ns)
        cells = "".join(f"{best[c.name] / 1e3:>13,.2f}" if c.name in best else f"{'-':>13}" for c in columns if c.there)
        bounds = list(judged(name, best))
        print(f"{name:44}{cells}")
        for text, holds in bounds:
            print(f"    {'' if holds else 'ABOVE: '}{text}")
        for column in columns:
            if name in column.problem:
                print(f"    {column.name}: {column.problem[name][:150]}")
        sys.stdout.flush()
        table.append({"row": name, "ns": best, "bounds": [{"bound": text, "holds": holds} for text, holds in bounds]})
    for column in columns:
        column.close()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
