"""The rows of compare.py --operators: one call of one operator, float32 of 1024 x 1024 unless a row says otherwise.

Each has a bound of the ratio to PyTorch's time in the same run. A row's function takes a framework with PyTorch's names and
returns the call; all frameworks get the same values.
"""

import numpy as np


def _values(t, *shape, scale=1.0):
    return t.tensor((np.random.default_rng(7).standard_normal(shape) * scale).astype(np.float32))


def _matrix(t):
    return _values(t, 1024, 1024)


def _as(dtype, call):
    def make(t):
        x = (_matrix(t) * 100).to(getattr(t, dtype))
        return lambda: call(x)

    return make


def _complex(t):
    return t.complex(_matrix(t), _matrix(t))


def _of(make_operand, call):
    def make(t):
        x = make_operand(t)
        return lambda: call(x)

    return make


def _add_out(n):
    def make(t):
        x, y, out = t.ones(n), t.ones(n), t.empty(n)
        return lambda: t.add(x, y, out=out)

    return make


#: Name, bound (None: the issue of a row has no bound of its own), function.
ROWS = [
    ("sort, rows of 16", 0.6, _of(lambda t: _matrix(t).reshape(-1, 16), lambda x: x.sort(1))),
    ("sort, rows of 128", 0.6, _of(lambda t: _matrix(t).reshape(-1, 128), lambda x: x.sort(1))),
    ("sort, rows of 1024", 0.6, _of(_matrix, lambda x: x.sort(1))),
    ("sort, columns of 1024", 0.6, _of(_matrix, lambda x: x.sort(0))),
    ("sort, one row of 1M", 0.6, _of(lambda t: _matrix(t).reshape(-1), lambda x: x.sort())),
    ("sort, int64, rows of 1024", 0.6, _as("int64", lambda x: x.sort(1))),
    ("sort, float64, rows of 1024", 0.6, _of(lambda t: _matrix(t).to(t.float64), lambda x: x.sort(1))),
    ("sort, bfloat16, rows of 1024", 0.6, _as("bfloat16", lambda x: x.sort(1))),
    ("topk 10, rows of 1024", 0.6, _of(_matrix, lambda x: x.topk(10, 1))),
    ("topk 10, one row of 1M", 0.6, _of(lambda t: _matrix(t).reshape(-1), lambda x: x.topk(10))),
    ("sum(0)", 1.0, _of(_matrix, lambda x: x.sum(0))),
    ("sum(1)", 1.0, _of(_matrix, lambda x: x.sum(1))),
    ("sum(0), bfloat16", 1.1, _as("bfloat16", lambda x: x.sum(0))),
    ("sum(1), bfloat16", 1.1, _as("bfloat16", lambda x: x.sum(1))),
    ("sum(0), float16", 1.1, _as("float16", lambda x: x.sum(0))),
    ("sum(1), float16", 1.1, _as("float16", lambda x: x.sum(1))),
    ("sum(0), int32", 1.1, _as("int32", lambda x: x.sum(0))),
    ("sum(1), int32", 1.1, _as("int32", lambda x: x.sum(1))),
    ("sum, complex64", 1.1, _of(_complex, lambda x: x.sum())),
    ("sum(0), complex64", 1.1, _of(_complex, lambda x: x.sum(0))),
    ("sum(1) of [262144, 4]", 0.9, _of(lambda t: _matrix(t).reshape(-1, 4), lambda x: x.sum(1))),
    ("sum of a flip", 0.9, _of(_matrix, lambda x: x.flip(1).sum())),
    ("sum of every other column", None, _of(_matrix, lambda x: x[:, ::2].sum())),
    ("amax(1)", 0.9, _of(_matrix, lambda x: x.amax(1))),
    ("amax(1), 1000 x 1000", 0.9, _of(lambda t: _values(t, 1000, 1000), lambda x: x.amax(1))),
    ("amax(0)", None, _of(_matrix, lambda x: x.amax(0))),
    ("max(0)", None, _of(_matrix, lambda x: x.max(0))),
    ("add, complex64", 1.1, _of(_complex, lambda x: x + x)),
    ("mul, complex64", 1.1, _of(_complex, lambda x: x * x)),
    ("add, out=, 1M", 1.0, _add_out(1 << 20)),
    ("add, out=, 4M", 1.0, _add_out(1 << 22)),
    ("add, out=, 16M", 1.0, _add_out(1 << 24)),
]
