"""Measures a training step over the width of an MLP and draws docs/images/step_time.svg: Tenon eager and compiled, PyTorch, JAX.

Usage: readme_chart.py [--rounds N] [--seconds S] [--core N] [--widths LIST] [--output FILE]

The model has three linear layers, as wide as its input; batch 32, SGD, float32, one pinned core. Columns are those of compare_compile.py:
a process each, in turns. A turn's figure is its fastest step, and a point of the chart is the median of the rounds. Frameworks that
cannot be imported are left out; PYTHONPATH may name the site-packages of an environment that has them.

Run it on an idle machine, with a release build:

    PYTHONPATH=build/release/python:ENVIRONMENT/lib/python3.11/site-packages .venv/bin/python bench/readme_chart.py

Then add the picture to README.md, below the table of call costs, with the printed machine and versions as its text:

    ![Time of a training step over the width of an MLP: MACHINE AND VERSIONS](docs/images/step_time.svg)
"""

import argparse
import importlib.metadata
import math
import pathlib
import re
import statistics
import sys
import xml.sax.saxutils

from compare_compile import Column
from compile_rows import WIDTHS

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "docs/images/step_time.svg"
#: Column of compare_compile.py: (label, colour that is readable on white and on black, distribution with its version). Drawn in order;
#: the last one is dashed, since it may cover the first.
LINES = {
    "eager": ("Tenon", "#c28a00", "tenon"),
    "torch": ("PyTorch", "#3b82d6", "torch"),
    "jax": ("JAX, jit", "#2f9e5b", "jax"),
    "compiled": ("Tenon, compiled", "#e8590c", "tenon"),
}
DASHED = "compiled"
GREY = "#7d7d7d"
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 48, 56
LABEL = 16  # pixels between two labels


def measure(columns, widths, rounds, seconds):
    """{column: {width: microseconds}}, for columns that could be measured."""
    points = {column.name: {} for column in columns}
    for width in widths:
        turns = {column.name: [] for column in columns}
        for _ in range(rounds):
            for column in columns:
                ns = column.measure(WIDTHS[width], seconds)
                if ns is not None:
                    turns[column.name].append(ns / 1e3)
        for name, figures in turns.items():
            if figures:
                points[name][width] = statistics.median(figures)
    return {name: line for name, line in points.items() if line}


def apart(positions, least, lowest):
    """Positions in the same order, at least `least` pixels from each other, none above `lowest`."""
    order = sorted(range(len(positions)), key=positions.__getitem__)
    placed = list(positions)
    for before, after in zip(order, order[1:]):
        placed[after] = max(placed[after], placed[before] + least)
    for at, i in enumerate(reversed(order)):
        placed[i] = min(placed[i], lowest - at * least)
    return placed


def ticks(low, high):
    """Powers of ten from `low` to `high`, which are powers themselves."""
    return [10**e for e in range(round(math.log10(low)), round(math.log10(high)) + 1)]


def shown(microseconds):
    """A tick of the time axis with its unit."""
    return f"{microseconds:g} µs" if microseconds < 1000 else f"{microseconds / 1000:g} ms"


def drawn(points, note):
    """The chart of {column: {width: microseconds}} as SVG; both axes are logarithmic."""
    widths = sorted({width for line in points.values() for width in line})
    times = [us for line in points.values() for us in line.values()]
    low, high = 10 ** math.floor(math.log10(min(times))), 10 ** math.ceil(math.log10(max(times)))
    high = high if high > low else low * 10

    def across(width):
        part = math.log(width / widths[0]) / math.log(widths[-1] / widths[0]) if len(widths) > 1 else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def down(us):
        return HEIGHT - BOTTOM - math.log(us / low) / math.log(high / low) * (HEIGHT - TOP - BOTTOM)

    def text(x, y, words, anchor="middle", colour=GREY, size=13, more=""):
        words = xml.sax.saxutils.escape(words)
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{more}>{words}</text>'

    def rule(x1, y1, x2, y2):
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GREY}" stroke-opacity="0.35"/>'

    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, sans-serif">',
        "<title>Time of a training step over the width of an MLP</title>",
        text(LEFT, 20, "Time of a training step: MLP of three layers, batch 32, SGD, float32", "start", size=15),
        text(LEFT, 38, note, "start", size=11),
    ]
    for us in ticks(low, high):
        parts += [rule(LEFT, down(us), right, down(us)), text(LEFT - 8, down(us) + 4, shown(us), "end")]
    for width in widths:
        parts += [rule(across(width), bottom, across(width), bottom + 5), text(across(width), bottom + 20, str(width))]
    parts.append(text((LEFT + right) / 2, HEIGHT - 14, "width of the layers (logarithmic; time too)"))

    names = [name for name in LINES if name in points]
    labels = apart([down(points[name][max(points[name])]) for name in names], LABEL, bottom)
    for name, label in zip(names, labels):
        words, colour, _ = LINES[name]
        line = [(across(width), down(us)) for width, us in sorted(points[name].items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        dashes = ' stroke-dasharray="7 5"' if name == DASHED else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"{dashes} stroke-linejoin="round"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in line]
        parts.append(text(line[-1][0] + 10, label + 4, words, "start", colour, more=' font-weight="600"'))
    return "\n".join([*parts, "</svg>", ""])


def machine():
    found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"one core of {found[1]}" if found else "one core"


def versions(names):
    for distribution in dict.fromkeys(LINES[name][2] for name in names):
        if distribution != "tenon":
            yield f"{LINES[distribution][0].partition(',')[0]} {importlib.metadata.version(distribution).partition('+')[0]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each turn")
    parser.add_argument("--core", type=int, default=0, help="the core to pin to")
    parser.add_argument("--widths", type=lambda s: [int(w) for w in s.split(",")], default=[*WIDTHS], help="some of the widths: 16,64")
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT)
    options = parser.parse_args()
    if unknown := [width for width in options.widths if width not in WIDTHS]:
        parser.error(f"--widths: {unknown[0]} is not measured; choose from {', '.join(map(str, WIDTHS))}")

    columns = [Column(name, options.core) for name in LINES]
    for column in columns:
        if not column.there:
            print(f"{column.name} is not installed", file=sys.stderr)
    points = measure([column for column in columns if column.there], options.widths, options.rounds, options.seconds)
    for column in columns:
        for row, problem in column.problem.items():
            print(f"{column.name}: {row}: {problem}", file=sys.stderr)
        column.close()
    if not points:
        return "no column could be measured: build Tenon and name build/release/python in PYTHONPATH"

    note = ", ".join([machine(), *versions(points)])
    print(note)
    print(f"{'us':>8}" + "".join(f"{name:>12}" for name in points))
    for width in options.widths:
        print(f"{width:>8}" + "".join(f"{line[width]:>12,.1f}" if width in line else f"{'-':>12}" for line in points.values()))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(drawn(points, note))


if __name__ == "__main__":
    sys.exit(main())
