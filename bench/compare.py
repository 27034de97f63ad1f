"""Measures the budgets of docs/architecture.md: Tenon, its peers, and the ratio, in one run on one pinned core.

Usage: compare.py [--json FILE] [--rounds N] [--core N] [--cpp PROGRAM]
       compare.py --operators [--rows PATTERN] [--json FILE] [--rounds N] [--core N]
       compare.py --sweep [--rows PATTERN] [--json FILE] [--rounds N] [--core N]
       compare.py --models [--rows PATTERN] [--json FILE] [--rounds N] [--core N]
       compare.py --threads N [--rows PATTERN] [--json FILE] [--rounds N] [--core N]
       compare.py --base DIR [--build DIR] [--rows PATTERN] [--json FILE] [--rounds N] [--core N]

Rows measured in Python alternate between Tenon, PyTorch and NumPy (those that are installed) for several rounds, and
the minimum of the rounds counts: noise only ever adds. Rows measured in C++ come from the program bench_calls.

With --operators, operators of a million elements and small programs beside PyTorch, each with its bound; see
compare_operators.py.

With --sweep, every family of operators over sizes beside the fastest peer; see compare_sweep.py.

With --models, trained networks in ONNX files beside ONNX Runtime, those that are installed; see compare_models.py.

With --threads, what six operators gain from N threads on N cores from --core on; see compare_threads.py.

With --base, the build in this tree (or --build) is compared with the one in DIR, a build folder or a checkout with a
release build: every row of both in alternated rounds, each build in a process of its own, and which rows are more than 5 %
slower, in which case the exit status is 1; see compare_builds.py.
"""

import argparse
import importlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def best_ns(function, seconds=0.05):
    """Nanoseconds of one call: the minimum over short runs that last `seconds` together."""
    count = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(count):
            function()
        elapsed = time.perf_counter_ns() - start
        if elapsed > 2e6:
            break
        count *= 4
    best = elapsed / count
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter_ns() - start) / count)
    return best


def typical_ns(function, seconds=0.4):
    """Nanoseconds of one call: the median of single calls after the first, for calls that take memory."""
    function()
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter_ns()
        function()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def looped(statement, names):
    """A function that runs `statement` 100 times, so that the loop around it costs little."""
    body = "\n    ".join([statement] * 100)
    scope = dict(names)
    exec(f"def run():\n    {body}", scope)
    return scope["run"]


def python_rows(framework):
    """(name, function, calls in one function) of each row, for a framework with PyTorch's names."""
    t = framework
    x, y = t.ones(1), t.ones(1)
    grad = t.ones(1, requires_grad=True)
    matrix = t.ones(3, 4)
    yield "add, 1 element, Python", looped("add(x, y)", {"add": t.add, "x": x, "y": y}), 100
    yield "add recorded for autograd, Python", looped("add(x, y)", {"add": t.add, "x": grad, "y": y}), 100
    yield "transpose view, Python", looped("x.transpose(0, 1)", {"x": matrix}), 100

    model = t.nn.Sequential(
        t.nn.Linear(64, 128), t.nn.ReLU(), t.nn.Linear(128, 128), t.nn.ReLU(), t.nn.Linear(128, 10)
    )
    optimizer = t.optim.SGD(model.parameters(), lr=0.01)
    row, label = t.randn(1, 64), t.tensor([3])
    cross_entropy = t.nn.functional.cross_entropy

    def step():
        loss = cross_entropy(model(row), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    yield "MLP training step, batch 1, Python", step, 1


def large_rows(framework):
    """(name, function) of rows in which memory for results is taken and given back."""
    t = framework

    def chain():
        x, a, b = t.randn(1 << 20), t.randn(1 << 20), t.randn(1 << 20)
        silu = t.nn.functional.silu
        return lambda: silu(x * a + b) * t.tanh(x) + b

    def add():
        x, y = t.randn(1 << 24), t.randn(1 << 24)
        return lambda: x + y

    def small_add(n):
        x, y = t.randn(n), t.randn(n)
        return lambda: x + y

    yield "silu(x*a+b)*tanh(x)+b, 1M, Python", chain
    yield "x + y, 16M, Python", add
    yield "zeros(16M).sum(), Python", lambda: lambda: t.zeros(1 << 24).sum()
    yield "x + y, 1K, Python", lambda: small_add(1 << 10)
    yield "x + y, 16K, Python", lambda: small_add(1 << 14)
    yield "x + y, 64K, Python", lambda: small_add(1 << 16)


def numpy_rows(numpy):
    x, y = numpy.ones(1, numpy.float32), numpy.ones(1, numpy.float32)
    matrix = numpy.ones((3, 4), numpy.float32)
    yield "add, 1 element, Python", looped("add(x, y)", {"add": numpy.add, "x": x, "y": y}), 100
    yield "transpose view, Python", looped("x.transpose(1, 0)", {"x": matrix}), 100


def import_ms(name):
    """Milliseconds of a fresh process that imports `name`, above one that imports nothing."""

    def run(code):
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            best = min(best, time.perf_counter() - start)
        return best

    return (run(f"import {name}") - run("pass")) * 1e3


# Row, budget, unit; None where the plan gives no budget.
BUDGETS = [
    ("dispatch of a no-op kernel, C++", 5, "ns"),
    ("empty({1}), C++", 30, "ns"),
    ("add, 1 element, C++", 60, "ns"),
    ("add, 1 element, Python", 180, "ns"),
    ("add recorded for autograd, Python", 300, "ns"),
    ("transpose view, C++", 25, "ns"),
    ("transpose view, Python", 120, "ns"),
    ("MLP forward + backward, batch 1, C++", 20_000, "ns"),
    ("MLP training step, batch 1, Python", 40_000, "ns"),
    ("import", 50, "ms"),
]


def measure_cpp(program):
    """Rows of the C++ benchmark by name, in ns."""
    output = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_min_time=0.2", "--benchmark_repetitions=5"],
        check=True, capture_output=True, text=True,
    ).stdout
    rows = {}
    for run in json.loads(output)["benchmarks"]:
        if run["run_type"] == "iteration":
            name = run["run_name"]
            rows[name] = min(rows.get(name, float("inf")), run["cpu_time"])
    return rows


def measure(pattern):
    """Prints {row: ns} of Tenon's rows in Python whose name matches, for compare_builds.py."""
    import tenon

    rows = {"package": tenon.__file__}
    # First those for which it matters what the process has done with memory before.
    for name, make in large_rows(tenon):
        if re.search(pattern, name):
            rows[name] = typical_ns(make())
    for name, function, calls in python_rows(tenon):
        if re.search(pattern, name):
            rows[name] = best_ns(function, 0.1) / calls
    print(json.dumps(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the rows here")
    parser.add_argument("--rounds", type=int, help="rounds of each row: 5, or 9 with --base")
    parser.add_argument("--core", type=int, default=0, help="the core to pin to")
    parser.add_argument("--cpp", default=ROOT / "build/release/bench/bench_calls", help="the C++ benchmark")
    parser.add_argument("--operators", action="store_true", help="operators and programs instead of calls")
    parser.add_argument("--base", metavar="DIR", help="another build of Tenon, to compare with")
    parser.add_argument("--build", metavar="DIR", default=ROOT / "build/release", help="the build to compare")
    parser.add_argument("--rows", metavar="PATTERN", default=".", help="only rows that match; not without an option that names rows")
    parser.add_argument("--sweep", action="store_true", help="families of operators over sizes")
    parser.add_argument("--models", action="store_true", help="trained networks beside ONNX Runtime")
    parser.add_argument("--threads", type=int, help="what operators gain from so many threads")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        return measure(options.measure)
    if options.base:
        import compare_builds

        table, slower = compare_builds.compare(
            options.base, options.build, options.rows, options.rounds or 9, options.core
        )
        write(options.json, table)
        return 1 if slower else 0
    threads = options.threads or 1
    os.sched_setaffinity(0, range(options.core, options.core + threads))
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))

    measured = {}
    loaded = {}
    for name in ("tenon", "torch", "numpy"):
        try:
            loaded[name] = importlib.import_module(name)
        except ImportError:
            print(f"{name} is not installed: its column stays empty", file=sys.stderr)
    frameworks = {name: loaded[name] for name in ("tenon", "torch") if name in loaded}
    if options.threads:
        import compare_threads

        return write(
            options.json, compare_threads.compare(re.compile(options.rows), options.rounds or 5, frameworks, threads)
        )
    if options.operators:
        import compare_operators

        if "torch" in frameworks:
            frameworks["torch"].set_num_threads(1)
        return write(
            options.json, compare_operators.compare(re.compile(options.rows), options.rounds or 5, frameworks)
        )
    if options.models:
        import compare_models

        return write(options.json, compare_models.compare(re.compile(options.rows), options.rounds or 5))
    if options.sweep:
        import compare_sweep

        if "torch" in loaded:
            loaded["torch"].set_num_threads(1)
        return write(options.json, compare_sweep.compare(re.compile(options.rows), options.rounds or 3, loaded))
    rows = {name: list((numpy_rows if name == "numpy" else python_rows)(m)) for name, m in loaded.items()}
    for _ in range(options.rounds or 5):
        for framework, functions in rows.items():
            for name, function, calls in functions:
                ns = best_ns(function) / calls
                key = (name, framework)
                measured[key] = min(measured.get(key, float("inf")), ns)
    for framework in loaded:
        measured["import", framework] = import_ms(framework)
    if pathlib.Path(options.cpp).exists():
        for name, ns in measure_cpp(options.cpp).items():
            measured[name, "tenon"] = ns
    else:
        print(f"{options.cpp} is not built (TENON_BENCH=ON): no C++ rows", file=sys.stderr)

    table = []
    for name, budget, unit in BUDGETS:
        tenon = measured.get((name, "tenon"))
        peers = {p: measured[name, p] for p in ("torch", "numpy") if (name, p) in measured}
        table.append({"row": name, "unit": unit, "budget": budget, "tenon": tenon, **peers})
    show(table)
    write(options.json, table)


def write(path, table):
    if path:
        pathlib.Path(path).write_text(json.dumps(table, indent=1) + "\n")


def show(table):
    def cell(value):
        return f"{value:>10,.0f}" if value is not None else f"{'-':>10}"

    print(f"{'':38}{'budget':>10}{'tenon':>10}{'torch':>10}{'numpy':>10}{'torch/tenon':>13}")
    for row in table:
        ratio = row["torch"] / row["tenon"] if row.get("torch") and row["tenon"] else None
        print(
            f"{row['row']:35}{row['unit']:>3}{cell(row['budget'])}{cell(row['tenon'])}"
            f"{cell(row.get('torch'))}{cell(row.get('numpy'))}"
            + (f"{ratio:>12.1f}x" if ratio else f"{'-':>13}")
        )


if __name__ == "__main__":
    sys.exit(main())
