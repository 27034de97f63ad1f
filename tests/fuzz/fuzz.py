#!/usr/bin/env python3
"""Calls every operator with random well- and ill-typed arguments: a right result or a clear error, nothing else.

    python tests/fuzz/fuzz.py --seconds 60 --seed 1     until the time is over
    python tests/fuzz/fuzz.py --count 100000            so many calls
    python tests/fuzz/fuzz.py --seed 7 --only 1234      one call of one batch, in this process
    python tests/fuzz/fuzz.py --wrong --count 100000    every public function with some fifty kinds of wrong arguments

Calls run in batches, each in a process of its own, so that a crash or a hang is reported with its seed and the call that
was under way. Nothing but PYTHONPATH is needed, so it runs as it is with a sanitizer's build, as ./test does:

    scripts/fuzz_sanitized.sh --count 20000 --jobs 2

What counts as wrong: a signal, an exception that is no clear error (SystemError, AssertionError, ...), an error without a
text, with --wrong one whose text names neither a function or operator nor an argument, an argument changed by a call that failed or that writes nothing, a result outside of its storage, and a result that
depends on the strides of the arguments.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BATCH = 2000
#: Seconds of processor time that a batch may take, however slow the machine is at the moment: about a second is usual,
#: a sanitizer's build takes some twenty times as long.
PROCESSOR_SECONDS = 600
#: A batch that waits for ever takes no processor time; seconds until it is given up.
HANG = 3600


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, help="stop after the batch that ends later than this")
    parser.add_argument("--count", type=int, help="how many calls")
    parser.add_argument("--seed", type=int, default=1, help="of the first batch; the next ones follow")
    parser.add_argument("--jobs", type=int, default=1, help="how many batches run at a time")
    parser.add_argument("--only", type=int, help="run this one call of the batch, in this process")
    parser.add_argument("--operator", help="only operators, or functions, whose name contains this")
    parser.add_argument("--wrong", action="store_true", help="wrong arguments for every public function")
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


# The parent


def last_call(name):
    text = Path(name).read_bytes().partition(b"\0")[0]
    return text.decode(errors="replace")


def sanitized():
    return "libasan" in os.environ.get("LD_PRELOAD", "")


def environment():
    """What a batch runs under. A sanitizer cannot run below a limit of the address space, but has one of its own."""
    # A batch runs in a folder of its own, where files of odd names do no harm.
    paths = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    base = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if not sanitized():
        return base
    # Python leaves objects behind on purpose; that is no leak of Tenon's.
    asan = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048"
    return {**base, "ASAN_OPTIONS": asan, "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}


def batch(seed, count, operator, wrong):
    with tempfile.NamedTemporaryFile() as progress, tempfile.NamedTemporaryFile() as answers, tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.abspath(__file__), "--batch", str(count), "--seed", str(seed)]
        command += ["--progress", progress.name, "--answer", answers.name]
        command += ["--operator", operator] if operator else []
        command += ["--wrong"] if wrong else []
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=HANG, env=environment(), cwd=folder
            )
        except subprocess.TimeoutExpired:
            return [f"seed {seed}: hangs in {last_call(progress.name)}"], {}
        if done.returncode:
            tail = "\n".join(done.stderr.splitlines()[-40:])
            return [f"seed {seed}: ended with {done.returncode} in {last_call(progress.name)}\n{tail}"], {}
        answer = json.loads(Path(answers.name).read_text())
    return [f"seed {seed} {p}" for p in answer["problems"]], answer["counts"]


def fuzz(seed, count=None, seconds=None, operator=None, jobs=1, wrong=False):
    """(problems, counts) of as many batches as asked for."""
    start, problems, counts, done, under_way = time.monotonic(), [], {}, 0, deque()

    def wanted():
        return (count is None or done < count) and (seconds is None or time.monotonic() - start < seconds)

    with ThreadPoolExecutor(jobs) as pool:
        while wanted() or under_way:
            while len(under_way) < jobs and wanted():
                size = BATCH if count is None else min(BATCH, count - done)
                under_way.append(pool.submit(batch, seed, size, operator, wrong))
                done += size
                seed += 1
            found, answer = under_way.popleft().result()
            problems += found
            for key, n in answer.items():
                counts[key] = counts.get(key, 0) + n
    return problems, counts


# The child


def child(arguments):
    from runner import Runner  # the folder of this script is on the path

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    if not sanitized():
        # Sizes that lie ask for terabytes; what the system would hand out lazily is refused at once.
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    runner = Runner(arguments.seed, arguments.operator, arguments.progress, arguments.wrong)
    if arguments.only is not None:
        runner.verbose = True
        runner.call(arguments.only)
    else:
        for i in range(arguments.batch):
            runner.call(i)
    answer = json.dumps({"problems": runner.problems, "counts": dict(runner.counts)})
    # Not by stdout: save(x, 1) writes there, and closes it.
    if arguments.answer:
        Path(arguments.answer).write_text(answer)
    else:
        print(answer)
    return 0


def main(arguments):
    options = parse(arguments)
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    if options.batch is not None or options.only is not None:
        return child(options)
    if options.count is None and options.seconds is None:
        options.seconds = 30
    problems, counts = fuzz(options.seed, options.count, options.seconds, options.operator, options.jobs, options.wrong)
    print(", ".join(f"{key} {n}" for key, n in sorted(counts.items())))
    print("\n".join(problems).encode(errors="backslashreplace").decode())
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
