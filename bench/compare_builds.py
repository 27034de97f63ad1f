"""Compares two builds of Tenon: every row of both, their ratio, and which rows are slower. `compare.py --base` calls it.

The builds take turns, and each turn is a process of its own on one pinned core. A row's figure is the minimum of its
rounds: noise only ever adds. A row counts as slower when it is more than 5 % above the base in two runs of all rounds, one
after the other; the second run measures only what was slower in the first.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Those of google-benchmark; compile_budget_bench measures the compiler.
PROGRAMS = [
    "bench_calls",
    "dispatch_bench",
    "autograd_bench",
    "pointwise_bench",
    "reduce_bench",
    "gemm_bench",
    "maths_bench",
]
SLOWER = 1.05


class Build:
    """A build folder: its Python package and its benchmark programs."""

    def __init__(self, folder):
        folder = pathlib.Path(folder).resolve()
        # A checkout stands for its release build.
        self.folder = folder if (folder / "CMakeCache.txt").exists() else folder / "build" / "release"
        if not (self.folder / "python" / "tenon").is_dir():
            sys.exit(f"compare.py: {folder} is no build of Tenon with its Python package (TENON_PYTHON=ON)")

    def program(self, name):
        path = self.folder / "bench" / name
        return path if path.exists() else None


def environment(core):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TENON_BENCH_CORE": str(core)}


def output_of(command, core, **variables):
    run = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=environment(core) | variables,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    if run.returncode != 0:
        sys.exit(f"compare.py: {' '.join(map(str, command))} failed:\n{run.stderr}")
    return run.stdout


def python_rows(build, pattern, core):
    """{row: ns} of one fresh process that runs rows of compare.py on a build."""
    command = [sys.executable, HERE / "compare.py", "--measure", pattern]
    rows = json.loads(output_of(command, core, PYTHONPATH=str(build.folder / "python")))
    loaded = pathlib.Path(rows.pop("package")).parent.parent
    if loaded != build.folder / "python":
        sys.exit(f"compare.py: measured {loaded} instead of {build.folder / 'python'}")
    return rows


def cpp_rows(build, program, names, core):
    """{row: ns} of one run of a benchmark program; `names` are rows to measure, all without it."""
    command = [build.program(program), "--benchmark_format=json", "--benchmark_min_time=0.02"]
    if names is not None:
        command.append("--benchmark_filter=^(" + "|".join(escaped(name) for name in names) + ")$")
    found = {}
    try:
        runs = json.loads(output_of(command, core))["benchmarks"]
    except json.JSONDecodeError as e:
        sys.exit(f"compare.py: {' '.join(map(str, command))} printed no JSON: {e}")
    for run in runs:
        if run.get("run_type") == "iteration" and not run.get("error_occurred"):
            scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[run["time_unit"]]
            found[run["run_name"]] = min(found.get(run["run_name"], float("inf")), run["cpu_time"] * scale)
    return found


def escaped(name):
    """A name as part of a regular expression of any dialect: a point stands for what may have a meaning in one."""
    return re.sub(r"[^\w ,:/<>-]", ".", name)


def listed(build, program):
    return output_of([build.program(program), "--benchmark_list_tests"], 0).split("\n")[:-1]


def sources(builds, pattern):
    """(label, measure(build, rows or None, core)) of all that has rows which match."""
    yield "Python", lambda build, names, core: python_rows(build, any_of(names) if names else pattern, core)
    for program in PROGRAMS:
        if not all(build.program(program) for build in builds):
            missing = [str(build.folder) for build in builds if not build.program(program)]
            print(f"{program} is not built in {', '.join(missing)} (TENON_BENCH=ON): no such rows", file=sys.stderr)
            continue
        common = [name for name in listed(builds[0], program) if name in set(listed(builds[1], program))]
        wanted = [name for name in common if re.search(pattern, f"{program}: {name}")]
        if wanted:
            yield program, lambda build, names, core, p=program, w=wanted: cpp_rows(build, p, names or w, core)


def any_of(names):
    return "^(" + "|".join(escaped(name) for name in names) + ")$"


def run_rounds(builds, measure, names, rounds, core):
    """{row: (base, new)}: minima over alternated rounds; the build that starts alternates too."""
    best = [{}, {}]
    for number in range(rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            for row, ns in measure(builds[side], names, core).items():
                best[side][row] = min(best[side].get(row, float("inf")), ns)
    return {row: (best[0].get(row), best[1].get(row)) for row in best[0] | best[1]}


def ratio(pair):
    return pair[1] / pair[0] if pair[0] and pair[1] else None


def compare(base, new, pattern=".", rounds=9, core=0):
    """Prints the table. Returns [{row, base, new, ratio, again}], times in ns; `again` is the second run's ratio."""
    builds = (Build(base), Build(new))
    print(f"base {builds[0].folder}\nnew  {builds[1].folder}\n{rounds} alternated rounds, minima, core {core}\n")
    print(f"{'':58}{'base':>12}{'new':>12}{'new/base':>10}{'again':>8}")
    table = []
    for label, measure in sources(builds, pattern):
        first = run_rounds(builds, measure, None, rounds, core)
        suspects = [row for row, pair in first.items() if (ratio(pair) or 0) > SLOWER]
        second = run_rounds(builds, measure, suspects, rounds, core) if suspects else {}
        for row, pair in first.items():
            entry = {
                "row": f"{label}: {row}",
                "base": pair[0],
                "new": pair[1],
                "ratio": ratio(pair),
                "again": ratio(second.get(row, (None, None))),
            }
            table.append(entry)
            show(entry)
    slower = [entry for entry in table if entry["again"] and entry["again"] > SLOWER]
    print(f"\n{len(table)} rows; more than 5 % slower than the base in both of two runs: {len(slower)}")
    for entry in slower:
        print(f"  {entry['row']}: {entry['ratio']:.2f}, then {entry['again']:.2f}")
    return table, slower


def show(entry):
    def cell(ns):
        if ns is None:
            return f"{'-':>12}"
        return f"{ns / 1e6:>9,.2f} ms" if ns >= 1e6 else f"{ns / 1e3:>9,.1f} us" if ns >= 1e4 else f"{ns:>9,.1f} ns"

    ratios = "".join(
        f"{entry[key]:>{width}.2f}" if entry[key] else f"{'-' if key == 'ratio' else '':>{width}}"
        for key, width in (("ratio", 10), ("again", 8))
    )
    print(f"{entry['row'][:57]:58}{cell(entry['base'])}{cell(entry['new'])}{ratios}", flush=True)
