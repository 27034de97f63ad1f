"""What building costs; see build_cost.sh."""

import argparse
import contextlib
import io
import itertools
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ["tenon", "tenon_python", "tenon_stubs"]
ENTRY = """
- schema: build_cost(Tensor self, Scalar other) -> Tensor
  expr: self * sigmoid(self) + other
  result: float
  doc: What one more operator costs.
"""


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def copy_tree(commit, to):
    """The files of a commit, or of the working tree as it is."""
    if commit:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        tarfile.open(fileobj=io.BytesIO(archive)).extractall(to)
        return
    for name in run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).write_bytes((ROOT / name).read_bytes())
            (to / name).chmod((ROOT / name).stat().st_mode)


def add_operators(tree, count):
    """Copies of entries of every kind under other names: `abs` becomes `abs_copy0`, its body stays that of `abs`.

    Expressions run in the interpreter: compiled kernels are for hot operators, which does not grow with their number.
    """
    families = {file: file.read_text() for file in sorted((tree / "tenon/ops/yaml").glob("*.yaml"))}
    entries = [
        (file, entry)
        for file, text in families.items()
        for entry in re.findall(r"^- schema:.*\n(?:(?!- schema:).*\n)*", text, re.MULTILINE)
        if not re.match(r"- schema: \w*_[.(]", entry)  # written in place by name
    ]
    # Round and round by entry, so that every number of operators is a mixture of kinds.
    for turn in itertools.count():
        for file, entry in entries:
            if count == 0:
                break
            count -= 1
            copied = re.sub(r"^- schema: (\w+)", rf"- schema: \1_copy{turn}", entry.rstrip() + "\n")
            copied = re.sub(r"^  aliases:.*\n", "", copied, flags=re.MULTILINE)
            if re.search(r"^  expr:", copied, re.MULTILINE) and "\n  compiled:" not in copied:
                copied += "  compiled: false\n"
            families[file] = families[file].rstrip() + "\n\n" + copied
        if count == 0:
            break
    for file, text in families.items():
        file.write_text(text)


class Build:
    def __init__(self, tree):
        self.tree, self.folder = tree, tree / "build" / "release"
        self.environment = {**os.environ, "CCACHE_DISABLE": "1"}
        self.figures = {}

    def configure(self):
        run("cmake", "-S", self.tree, "-B", self.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTENON_PYTHON=ON",
            "-DTENON_BENCH=ON", f"-DPython_EXECUTABLE={sys.executable}", env=self.environment)  # fmt: skip

    def log(self):
        file = self.folder / ".ninja_log"
        return set(file.read_text().splitlines()) if file.exists() else set()

    def measure(self, name, targets=()):
        """Steps, seconds and seconds of all tasks together of building `targets`, or everything."""
        before, start = self.log(), time.monotonic()
        run("ninja", "-C", self.folder, "-j2", *targets, env=self.environment)
        seconds = time.monotonic() - start
        # start, end, time of the file, file, hash of the command; a step with several outputs has several lines.
        steps = {}
        for line in self.log() - before:
            if line.startswith("#"):
                continue
            begin, end, _, _, command = line.split("\t")
            steps[begin, command] = int(end) - int(begin)
        self.figures[name] = (len(steps), seconds, sum(steps.values()) / 1000)
        print(f"{name:50} {len(steps):5} steps {seconds:7.0f} s {sum(steps.values()) / 1000:7.0f} task s", flush=True)

    def edit(self, file, text):
        path = self.tree / file
        path.write_text(path.read_text() + text)

    def sizes(self):
        stripped = self.folder / "stripped.so"
        run("strip", "-o", stripped, self.folder / "tenon/libtenon.so")
        size = stripped.stat().st_size / 1e6
        program = "import time; t = time.perf_counter(); import tenon; print((time.perf_counter() - t) * 1e3)"
        environment = {**self.environment, "PYTHONPATH": str(self.folder / "python")}
        imports = min(float(run(sys.executable, "-c", program, env=environment)) for _ in range(9))
        self.figures["library, stripped, MB"], self.figures["import, ms"] = (0, size, 0), (0, imports, 0)
        print(f"{'library, stripped':50} {size:.2f} MB\n{'import, best of 9':50} {imports:.1f} ms", flush=True)


def costs(commit, operators):
    print(f"== {commit or 'this tree'}{f', {operators} further operators' if operators else ''}", flush=True)
    with tempfile.TemporaryDirectory(prefix="build_cost") as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        copy_tree(commit, tree)
        if operators:
            add_operators(tree, operators)
        build = Build(tree)
        build.configure()
        build.measure("clean, with tests and benchmarks")
        build.sizes()
        build.edit("tenon/ops/yaml/activation.yaml", ENTRY)
        build.measure("one more YAML entry: library and Python", PACKAGE)
        build.measure("  ... and then all tests and benchmarks")
        build.edit("tenon/core/tensor_impl.h", "// An edit.\n")
        build.measure("a header of core (tensor_impl.h)")
        build.edit("backends/cpu/ops/softmax.cc", "// An edit.\n")
        build.measure("a kernel (softmax.cc)")
        return build.figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=int, default=0, help="add so many copies of operators first")
    parser.add_argument("--base", metavar="COMMIT", help="measure this commit too, and print the ratio to it")
    options = parser.parse_args()
    here = costs(None, options.operators)
    if options.base:
        base = costs(options.base, options.operators)
        print(f"== this tree / {options.base}: steps, seconds, task seconds")
        for name, figures in here.items():
            with contextlib.suppress(KeyError):
                ratios = [f"{a / b:8.2f}" if b else " " * 8 for a, b in zip(figures, base[name])]
                print(f"{name:50} {' '.join(ratios)}")


if __name__ == "__main__":
    main()
