"""Every family of operators over sizes from 16 to 32M elements, beside the fastest of the installed peers; see compare.py --sweep.

A row is a statement in PyTorch's names and, where NumPy has the same, in NumPy's. All run in alternated rounds, of which the fastest
counts. Sizes are elements of the first operand; a family whose cost grows faster ends earlier.
"""

import gc
import math
import sys
from dataclasses import dataclass

SIZES = (16, 256, 4096, 1 << 16, 1 << 20, 1 << 25)


@dataclass
class Row:
    family: str
    statement: str
    setup: str = "x, y = t.randn(n), t.randn(n)"
    numpy: str = ""  # with x and y as arrays
    largest: int = SIZES[-1]


def _rows_of(width):
    return f"x, y = t.randn(max(n // {width}, 1), min(n, {width})), t.randn(max(n // {width}, 1), min(n, {width}))"


MATRIX, IMAGES = "s = max(int(n ** 0.5), 1)\nx, y = t.randn(s, s), t.randn(s, s)", "s = max(int((n / 16) ** 0.5), 1)\nx = t.randn(1, 16, s, s)"

ROWS = [
    Row("activation", "t.relu(x)", numpy="np.maximum(x, 0)"),
    Row("activation", "F.gelu(x)"),
    Row("arithmetic", "x + y", numpy="x + y"),
    Row("arithmetic", "x.mul_(y)", numpy="np.multiply(x, y, out=x)"),
    Row("arithmetic", "x / y", numpy="x / y"),
    Row("attention", "F.scaled_dot_product_attention(q, q, q)", "q = t.randn(1, 4, max(n // 256, 1), 64)", largest=1 << 20),
    Row("comparison", "x > y", numpy="x > y"),
    Row("comparison", "t.where(c, x, y)", "x, y = t.randn(n), t.randn(n)\nc = x > 0", numpy="np.where(x > 0, x, y)"),
    Row("complex", "t.abs(z)", "z = t.complex(t.randn(n), t.randn(n))"),
    Row("convolution", "F.conv2d(x, w, padding=1)", IMAGES + "\nw = t.randn(16, 16, 3, 3)", largest=1 << 22),
    Row("copy", "x.clone()", numpy="x.copy()"),
    Row("copy", "x.to(t.bfloat16)"),
    Row("elementwise_loss", "F.mse_loss(x, y)", numpy="((x - y) ** 2).mean()"),
    Row("embedding", "F.embedding(i, w)", "w = t.randn(1000, 64)\ni = t.randint(0, 1000, (max(n // 64, 1),))"),
    Row("factory", "t.zeros(n)", "", numpy="np.zeros(n, np.float32)"),
    Row("factory", "t.arange(n)", "", numpy="np.arange(n)"),
    Row("indexing", "x[i]", "x = t.randn(n)\ni = t.randint(0, n, (n,))"),
    Row("indexing", "x[m]", "x = t.randn(n)\nm = x > 0"),
    Row("matmul", "x @ y", MATRIX, numpy="x @ y", largest=1 << 22),
    Row("matmul", "w @ v", "s = max(int(n ** 0.5), 1)\nw, v = t.randn(s, s), t.randn(s)"),
    Row("norm", "F.layer_norm(x, x.shape[1:])", _rows_of(512)),
    Row("random", "t.rand(n)", ""),
    Row("random", "t.randn(n)", ""),
    Row("reduction", "x.sum()", numpy="x.sum()"),
    Row("reduction", "x.sum(0)", _rows_of(512), numpy="x.sum(0)"),
    Row("reduction", "x.amax(1)", _rows_of(512), numpy="x.max(1)"),
    Row("softmax", "t.softmax(x, 1)", _rows_of(512)),
    Row("sort", "x.sort()", numpy="np.sort(x)", largest=1 << 22),
    Row("sort", "x.topk(min(n, 8))", largest=1 << 22),
    Row("unary", "t.exp(x)", numpy="np.exp(x)"),
    Row("unary", "t.tanh(x)", numpy="np.tanh(x)"),
    Row("view", "x.t().contiguous()", MATRIX, numpy="np.ascontiguousarray(x.T)"),
    Row("window", "F.max_pool2d(x, 2)", "s = max(int((n / 16) ** 0.5), 2)\nx = t.randn(1, 16, s, s)"),
]


def _function(framework, row, n):
    """`statement` as a function; NumPy's on the arrays of what the setup makes."""
    names = {"n": n, "math": math}
    if framework.__name__ == "numpy":
        import torch  # whose setup makes the operands

        names |= {"t": torch, "np": framework}
        exec(row.setup, names)
        names |= {name: value.numpy() for name, value in names.items() if isinstance(value, torch.Tensor)}
        statement = row.numpy
    else:
        names |= {"t": framework, "F": framework.nn.functional}
        exec(row.setup, names)
        statement = row.statement
    exec(f"def run():\n    {statement}", names)
    return names["run"]


def compare(pattern, rounds, frameworks):
    from compare import best_ns

    table = []
    peers = [name for name in frameworks if name != "tenon"]
    print(f"{'':52}{'elements':>10}{'tenon ns':>14}{'best peer ns':>14}  {'peer':8}{'ratio':>6}")
    for row in ROWS:
        if not pattern.search(f"{row.family}: {row.statement}"):
            continue
        for n in (n for n in SIZES if n <= row.largest):
            taken = {name: m for name, m in frameworks.items() if name != "numpy" or (row.numpy and "torch" in frameworks)}
            functions = {name: _function(m, row, n) for name, m in taken.items()}
            times = dict.fromkeys(functions, float("inf"))
            for _ in range(rounds):
                for name, function in functions.items():
                    times[name] = min(times[name], best_ns(function, 0.02))
            best = min((p for p in peers if p in times), key=times.get, default=None)
            ratio = times["tenon"] / times[best] if best else None
            table.append({"row": f"{row.family}: {row.statement}", "elements": n, **times, "ratio": ratio})
            print(
                f"{row.family + ': ' + row.statement:52}{n:>10,}{times['tenon']:>14,.0f}"
                + (f"{times[best]:>14,.0f}  {best:8}{ratio:>6.2f}{'  slower' if ratio > 1 else ''}" if best else "")
            )
            sys.stdout.flush()
            del functions
            gc.collect()
    slower = [r for r in table if r["ratio"] and r["ratio"] > 1]
    ratios = [math.log(r["ratio"]) for r in table if r["ratio"]]
    if ratios:
        print(f"{len(slower)} of {len(table)} rows above 1.0; geometric mean {math.exp(sum(ratios) / len(ratios)):.2f}")
    return table
