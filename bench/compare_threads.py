"""What further threads gain: operators on one thread and on several, Tenon and PyTorch; see compare.py --threads.

A row should gain 1.7 of two threads wherever PyTorch's does.
"""

import gc

from compare_operators import Row, once, prepare

ROWS = [
    Row("mm", 1.7, "x @ y"),
    Row("conv2d 8x32x28x28 k3 to 64", 1.7, "F.conv2d(a, w)", "a, w = t.randn(8, 32, 28, 28), t.randn(64, 32, 3, 3)"),
    Row("sum", 1.7, "a.sum()", "a = t.randn(4096, 1024)"),
    Row("softmax", 1.7, "t.softmax(x, 1)"),
    Row("x + y", 1.7, "t.add(x, y, out=z)", "z = t.empty(1024, 1024)"),
    Row("sort rows of 1024", 1.7, "t.sort(x, 1)"),
]  # fmt: skip


def compare(pattern, rounds, frameworks, threads):
    """Prints the time of each row on one thread and what it gains from `threads`; returns the rows as dictionaries."""
    print(f"{'':30}{'bound':>7}" + "".join(f"{f'{n} us':>14}{f'x{threads}':>7}" for n in frameworks))
    table = []
    for row in ROWS:
        if not pattern.search(row.name):
            continue
        runs = {name: prepare(row, framework) for name, framework in frameworks.items()}
        gc.collect()
        best = {}
        for _ in range(rounds):
            for count in (1, threads):
                for name, run in runs.items():
                    frameworks[name].set_num_threads(count)
                    run(1)
                    best[name, count] = min(best.get((name, count), float("inf")), once(run, 0.06))
        gain = {name: best[name, 1] / best[name, threads] for name in frameworks}
        table.append({"row": row.name, "bound": row.bound, "one": {n: best[n, 1] for n in frameworks}, "gain": gain})
        cells = "".join(f"{best[n, 1] / 1e3:>14,.1f}{gain[n]:>7.2f}" for n in frameworks)
        below = gain["tenon"] < row.bound <= gain.get("torch", row.bound)
        print(f"{row.name:30}{row.bound:>7.2f}{cells}" + ("  below" if below else ""), flush=True)
    return table
