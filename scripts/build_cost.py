"""What building costs; see build_cost.sh."""

import argparse
import collections
import contextlib
import io
import itertools
import os
import re
import resource
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
# Compiles, and writes down what that took the processor and which object it made.
LAUNCHER = r"""#!/usr/bin/env bash
TIMEFORMAT='%U %S'
used=$({ time "$@" 1>&4 2>&3; } 4>&1 3>&2 2>&1)
code=$?
object=
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then object=$2; fi
  shift
done
echo "$object $used" >>"${BASH_SOURCE[0]}.log"
exit $code
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


def processor_seconds():
    """Of all processes that this one has started and waited for, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def group_of(object_file):
    """Where an object belongs: `tests`, `generated`, `tenon/core`."""
    folders = re.sub(r"CMakeFiles/\w+\.dir/|__/", "", object_file).split("/")
    if "generated" in folders:
        return "generated"
    return "/".join(folders[:2]) if folders[0] == "tenon" else folders[0]


class Build:
    """A build of a tree without ccache, of one preset's options."""

    def __init__(self, tree, preset="release"):
        self.tree, self.folder, self.preset = tree, tree / "build" / preset, preset
        self.environment = {**os.environ, "CCACHE_DISABLE": "1"}
        self.launcher = tree / f"build_cost_{preset}"
        self.launcher.write_text(LAUNCHER)
        self.launcher.chmod(0o755)
        self.figures = {}

    def configure(self):
        run("cmake", "--preset", self.preset, "-DTENON_PYTHON=ON", "-DTENON_BENCH=ON", f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={self.launcher}", cwd=self.tree, env=self.environment)  # fmt: skip

    def log(self):
        file = self.folder / ".ninja_log"
        return set(file.read_text().splitlines()) if file.exists() else set()

    def objects(self):
        """Processor seconds of each object compiled since the last call."""
        file = self.launcher.with_name(self.launcher.name + ".log")
        if not file.exists():
            return {}
        seconds = {}
        for line in file.read_text().splitlines():
            name, user, system = line.split(" ")
            seconds[name] = float(user) + float(system)
        file.unlink()
        return seconds

    def measure(self, name, targets=(), dearest=3):
        """Steps, processor seconds and seconds of building `targets`, or everything; and which objects were dearest.

        Processor seconds repeat on a machine that others use as well; half of them is what two idle cores need.
        """
        before, start, start_processor = self.log(), time.monotonic(), processor_seconds()
        run("ninja", "-C", self.folder, "-j2", *targets, env=self.environment)
        seconds, processor = time.monotonic() - start, processor_seconds() - start_processor
        # start, end, time of the file, file, hash of the command; a step with several outputs has several lines.
        lines = [line.split("\t") for line in self.log() - before if not line.startswith("#")]
        steps = len({(line[0], line[4]) for line in lines})
        self.figures[name] = (steps, processor, seconds)
        print(f"{name:50} {steps:5} steps {processor:7.0f} s processor {seconds:7.0f} s", flush=True)
        objects, groups = self.objects(), collections.Counter()
        for file, cost in objects.items():
            groups[group_of(file)] += cost
        groups["linking, opgen and others"] = processor - sum(objects.values())
        if dearest > 3:
            print("    " + ", ".join(f"{group} {cost:.0f}" for group, cost in groups.most_common()), flush=True)
        for file, cost in sorted(objects.items(), key=lambda item: -item[1])[:dearest]:
            print(f"    {cost:6.1f} {file}", flush=True)

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

    def users_file(self):
        """A file of a user, which has no precompiled headers: the program of docs/custom-operators.md."""
        page = (self.tree / "docs/custom-operators.md").read_text()
        source = self.folder / "custom_operator.cc"
        source.write_text(re.search(r"```cpp\n(.*?)```", page, re.DOTALL).group(1))
        seconds = []
        for _ in range(5):
            start = processor_seconds()
            run("c++", "-std=c++20", "-O2", "-fPIC", f"-I{self.tree}", f"-I{self.folder / 'generated'}", "-c", source,
                "-o", source.with_suffix(".o"), env=self.environment)  # fmt: skip
            seconds.append(processor_seconds() - start)
        self.figures["a custom operator"] = (0, min(seconds), 0)
        print(f"{'a custom operator, best of 5':50} {'':11} {min(seconds):7.2f} s processor", flush=True)


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
        build.measure("clean, with tests and benchmarks", dearest=20)
        build.sizes()
        build.users_file()
        build.edit("tenon/ops/yaml/activation.yaml", ENTRY)
        build.measure("one more YAML entry: library and Python", PACKAGE)
        build.measure("  ... and then all tests and benchmarks")
        build.edit("tenon/core/tensor_impl.h", "// An edit.\n")
        build.measure("a header of core (tensor_impl.h)")
        build.edit("backends/cpu/ops/nll_loss.cc", "// An edit.\n")
        build.measure("a kernel (nll_loss.cc)")
        if "dev" in (tree / "CMakePresets.json").read_text() and not operators:
            dev = Build(tree, "dev")
            dev.configure()
            dev.measure("clean, preset dev")
            build.figures.update(dev.figures)
        return build.figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=int, default=0, help="add so many copies of operators first")
    parser.add_argument("--base", metavar="COMMIT", help="measure this commit too, and print the ratio to it")
    options = parser.parse_args()
    here = costs(None, options.operators)
    if options.base:
        base = costs(options.base, 0)
        print(f"== this tree / {options.base} as it is: steps, processor seconds, seconds")
        for name, figures in here.items():
            with contextlib.suppress(KeyError):
                ratios = [f"{a / b:8.2f}" if b else " " * 8 for a, b in zip(figures, base[name])]
                print(f"{name:50} {' '.join(ratios)}")


if __name__ == "__main__":
    main()
