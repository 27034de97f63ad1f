"""Random programs over tensors: mixed dtypes and strides, views, writes in place, reductions, products, several results.

`run(seed)` runs one and returns its tensors and errors; the same seed always makes the same program. As a program of its
own it prints a digest of what many seeds give: `random_programs.py FIRST COUNT THREADS [compiled]`."""

import hashlib
import random
import sys

import tenon
import tenon.nn.functional as F

DTYPES = [tenon.float32] * 6 + [tenon.float64, tenon.float16, tenon.bfloat16, tenon.int64, tenon.int32, tenon.uint8, tenon.bool]

UNARY = ["neg", "exp", "tanh", "sigmoid", "relu", "sin", "abs", "sqrt", "floor", "sign", "square", "erf", "logical_not", "log1p",
         "reciprocal", "isnan", "round", "expm1"]  # fmt: skip
FUNCTIONS = [F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.softplus, F.leaky_relu, F.hardswish]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "eq", "lt", "ge", "atan2", "fmod", "logical_and"]
IN_PLACE = ["add_", "mul_", "sub_", "copy_"]
REDUCTIONS = [
    lambda x, d: x.sum(d), lambda x, d: x.sum(d, keepdim=True), lambda x, d: x.amax(d, keepdim=True), lambda x, d: x.mean(d),
    lambda x, d: x.var(d), lambda x, d: x.softmax(d), lambda x, d: x.log_softmax(d), lambda x, d: x.logsumexp(d),
    lambda x, d: x.sum(), lambda x, d: x.cumsum(d), lambda x, d: x.argmax(d), lambda x, d: x.max(d)[0], lambda x, d: x.prod(d),
]  # fmt: skip


class Program:
    """Draws its steps as it runs, from a generator of its own: what it draws depends on headers alone, never on values."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.pool = []
        self.told = []
        rows, columns = self.draw.choice([(3, 4), (5, 7), (1, 6), (8, 1), (33, 20), (64, 130), (0, 3), (300, 70)])
        self.sides = rows, columns

    def value(self):
        rows, columns = self.sides
        shape = self.draw.choice([(rows, columns)] * 4 + [(columns,), (rows, 1), (1, columns), (), (columns, rows), (2, rows, columns)])
        count = 1
        for side in shape:
            count *= side
        x = ((tenon.arange(count) * self.draw.randrange(1, 1000)) % 37 - self.draw.randrange(37)) / self.draw.choice([1, 7, 16, 3.7])
        x = x.reshape(shape).to(self.draw.choice(DTYPES))
        layout = self.draw.randrange(6)
        if layout == 0 and x.dim() == 2:
            x = x.t().contiguous().t()
        elif layout == 1 and x.dim():
            x = tenon.stack([x, x + 1 if x.dtype != tenon.bool else x], -1)[..., 0]
        elif layout == 2 and x.dim():
            x = tenon.cat([x, x])[x.shape[0] :]
        return x

    def step(self):
        draw, pool = self.draw, self.pool
        x, y = draw.choice(pool), draw.choice(pool)
        kind = draw.randrange(20)
        if kind < 5:
            return getattr(x, draw.choice(UNARY))()
        if kind < 9:
            return getattr(x, draw.choice(BINARY))(y)
        if kind == 9:
            number = draw.choice([2, 0.5, -1, 3, 1.7, True])
            return draw.choice([lambda: x * number, lambda: x + number, lambda: number - x, lambda: x / number, lambda: x > number])()
        if kind == 10:
            return x.to(draw.choice(DTYPES))
        if kind == 11:
            return tenon.where(x > y if not draw.randrange(2) else x == x, x, y)
        if kind == 12:
            return draw.choice(FUNCTIONS)(x)
        if kind == 13:
            return draw.choice(REDUCTIONS)(x, draw.choice([0, -1]))
        if kind < 16:
            return self.view(x)
        if kind < 18:
            method = draw.choice(IN_PLACE)
            target = self.view(x) if draw.randrange(2) else x
            return getattr(target, method)(y if draw.randrange(3) else draw.choice([2, 0.5]) if method != "copy_" else y)
        if kind == 18:
            return draw.choice([lambda: x @ y, lambda: x @ y.t(), lambda: F.linear(x, y), lambda: tenon.addmm(x, x, y.t())])()
        if draw.randrange(3):
            return draw.choice([lambda: tenon.cat([x, y]), lambda: tenon.stack([x, x]), lambda: x.clone(), lambda: x.contiguous()])()
        self.told.append(x.flatten()[0].item())
        return x

    def view(self, x):
        return self.draw.choice([
            lambda: x.t(), lambda: x[1:], lambda: x[..., ::2], lambda: x.unsqueeze(0), lambda: x.flatten(), lambda: x[..., :1],
            lambda: x.expand(2, *x.shape), lambda: x.transpose(0, -1), lambda: x[0], lambda: x.detach(), lambda: x.reshape(-1),
        ])()  # fmt: skip

    def run(self):
        """All that is left of the tensors, and what it was told."""
        self.pool = [self.value() for _ in range(3)]
        for _ in range(self.draw.randrange(4, 28)):
            try:
                self.pool.append(self.step())
            except Exception as e:  # whose text is part of what is compared
                self.told.append(f"{type(e).__name__}: {e}")
            if len(self.pool) > 4 and self.draw.randrange(4) == 0:
                self.pool.pop(self.draw.randrange(len(self.pool)))
        return self.pool, self.told


def run(seed):
    return Program(seed).run()


def digest(first, count):
    from beside_eager import bits

    seen = hashlib.sha256()
    for seed in range(first, first + count):
        tensors, told = run(seed)
        for t in tensors:
            seen.update(repr((t.dtype, tuple(t.shape), t.stride())).encode())
            # Which of the NaNs it is differs between instruction sets.
            seen.update(bits(t.nan_to_num(1e30) if t.is_floating_point() else t))
            seen.update(bits(t.isnan()))
        seen.update(repr(told).encode())
    return seen.hexdigest()


if __name__ == "__main__":
    tenon.set_num_threads(int(sys.argv[3]))
    if sys.argv[4:] == ["compiled"]:
        run = tenon.compile(run, threshold=0)
    print(digest(int(sys.argv[1]), int(sys.argv[2])))
