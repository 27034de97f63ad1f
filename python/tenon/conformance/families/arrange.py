"""Elements in another order or place, and tables made of vectors."""

import itertools

import numpy as np

from ..rows import ONE_OPERAND as _ONE, Row, binary_samples, shape_calls, unary_calls, unary_samples
from ..samples import sample, with_options

_RANK = {**_ONE, "zero_dim": "it needs dimensions"}


@with_options
def _of_shapes(m, *shapes, more=()):
    for shape in m.ranked(*shapes) or ():
        yield sample(m.tensor([m.size(n) for n in shape]), *more)


def _combinations(x, r=2, with_replacement=False):
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(pick(range(len(x)), r))
    return x[np.array(rows, np.int64).reshape(len(rows), r)]


def _vectors(m):
    for n in (5, 3):
        for r, again in ((2, False), (3, True), (1, False)):
            yield sample(m.tensor((m.size(n),)), r, again)


def _inner_samples(m):
    for a, b in (((3, 4), (2, 4)), ((4,), (4,)), ((2, 3, 4), (4,))) if m.kind not in ("zero_dim", "channels_last") else (((), (3,)),):
        yield sample(m.tensor([m.size(n) for n in a]), m.tensor([m.size(n) for n in b]))


def _strided_samples(m):
    for shape in m.ranked((4, 6)) or ():
        if m.kind != "empty":
            yield sample(m.tensor(shape, layout="contiguous"), m.tensor((2, 3)), (2, 3), (6, 2), 1)


def _strided_put(x, src, size, stride, offset):
    out = np.array(x)
    flat = out.reshape(-1)
    np.lib.stride_tricks.as_strided(flat[offset:], size, [s * out.itemsize for s in stride])[...] = src
    return out


def _squares(m):
    for shape in m.ranked((3, 5), (7, 2), (3, 3, 3)) or ():
        if m.kind not in ("empty", "expanded", "overlapping"):
            yield sample(m.tensor(shape), 1, bool(m.rng.integers(2)))


def _filled(x, value, wrap):
    out = np.array(x)
    np.fill_diagonal(out, value, wrap)
    return out


_FLAT = {**_ONE, "zero_dim": "a vector is asked for", "channels_last": "its rank is fixed"}
_FIXED = {**_ONE, "channels_last": "its rank is fixed", "zero_dim": "its rank is fixed"}

ROWS = [
    Row("argwhere", unary_samples(), np.argwhere, result="int64", absent=_ONE),
    Row("as_strided_scatter", _strided_samples, _strided_put, result="self",
        absent={**_FIXED, "empty": "no elements to show", "overlapping": "the copy is dense", "expanded": "the copy is dense",
                "promotion": "one dtype"}),
    Row("combinations", _vectors, _combinations, result="self", absent=_FLAT),
    Row("diagflat", unary_calls((0,), (-1,)), np.diagflat, result="self", absent=_ONE),
    Row("fill_diagonal_", _squares, _filled, result="self", absent={**_FIXED, "empty": "no diagonal", **dict.fromkeys(("expanded", "overlapping"), "what shares the memory of the diagonal changes too")}),
    Row("fliplr", unary_calls((), least=2), np.fliplr, result="self", absent=_RANK),
    Row("flipud", unary_calls((), least=1), np.flipud, result="self", absent=_RANK),
    Row("inner", _inner_samples, np.inner, result="self", one_dtype=(0, 1), ulps=16, magnitude=True, flushed=("bfloat16",), extremes=False, infinite="class",
        absent={"bool": "products of truth values have no sum", "promotion": "operands must have one dtype", "channels_last": "its ranks are fixed",
                "zero_dim": "mul covers it", "special": "matmul covers it"}),
    Row("kron", binary_samples(), np.kron, result="self", infinite="class", ulps=2, absent={"special": "mul covers it", "promotion": "mul covers it"}),
    # Of the first dimension, the last slice or none.
    Row("narrow_copy", shape_calls(lambda s: [(0, max(s[0] - 1, 0), min(s[0], 1)), (0, 0, 0)], 1), lambda x, d, a, n: np.take(x, range(a, a + n), d), result="self", absent=_RANK),
    Row("ravel", unary_samples(), np.ravel, result="self", absent=_ONE),
    Row("rot90", unary_calls((1, (0, 1)), (-1, (1, 0)), (2, (0, -1)), (4, (0, 1)), least=2), lambda x, k, d: np.rot90(x, k, d), result="self",
        absent=_RANK),
    Row("trace", _of_shapes((3, 4), (5, 2)), np.trace, result="sum", ulps=4, magnitude=True, infinite="class", extremes=False,
        absent=_FIXED),
]  # fmt: skip
