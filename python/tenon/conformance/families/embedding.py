"""Rows of a table, by number: embeddings and bags of them."""

import numpy as np

from .backward import scattered
from ..rows import Row
from ..samples import sample, with_options

_SUMS = {"ulps": 8, "magnitude": True, "infinite": "class"}
_ABSENT = {"promotion": "one operand", "zero_dim": "a matrix of rows", "channels_last": "a matrix of rows"}


def _table(m, rows=5, columns=3):
    return m.tensor((m.size(rows), columns))


def _indices(m, *shape):
    return m.positions([m.size(n) for n in shape], m.size(5), m.number("int32", "int64"))


def _embedding_samples(m):
    if m.ranked((5, 3)) is None:
        return
    for shape in ((4,), (2, 3), ()):
        if shape or m.kind != "empty":
            yield sample(_table(m), _indices(m, *shape))


def _dense_samples(m):
    if m.ranked((5, 3)) is None:
        return
    yield sample(m.tensor((m.size(2), 3, 4)), m.positions([m.size(2), 3], m.size(5), m.number("int32", "int64")), m.size(5), -1, False)
    if m.kind != "empty":
        yield sample(m.tensor((2, 3, 4)), _indices(m, 2, 3), 5, 1, m.dtype.floating)


def _dense(grad, indices, count, padding_idx, by_frequency):
    out = scattered(lambda x: x[indices], (count, grad.shape[-1]), grad)
    if by_frequency:
        out = out / np.maximum(np.bincount(indices.reshape(-1), minlength=count), 1)[:, None]
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def _offsets(m):
    """Bags of 2, 0, 3 and 1 rows."""
    spec = m.positions([4], 1)
    spec.array()[...] = [0, 0, 0, 0] if m.kind == "empty" else [0, 2, 2, 5]
    return spec


@with_options
def _bag_samples(m, padding):
    if m.ranked((5, 3)) is None:
        return
    modes = [0] if m.dtype.category in ("bool", "integral") else [0, 1] if m.dtype.category == "complex" else [0, 1, 2]
    for mode in modes:
        more = [m.tensor((m.size(6),), m.dtype.name)] if mode == 0 and padding is not None and m.dtype.floating else [None]
        table, indices = _table(m), _indices(m, 6)
        args = [table, indices, _offsets(m), False, mode, False, *more]
        yield sample(*args, False, padding) if padding is not None else sample(*args[:5])


def _bag(table, indices, offsets, by_frequency=False, mode=0, sparse=False, weights=None, last=False, padding_idx=None):
    bags = np.searchsorted(offsets, np.arange(indices.size), "right") - 1
    kept = np.ones(indices.size, bool) if padding_idx is None else indices != padding_idx
    sizes = np.bincount(bags[kept], minlength=offsets.size)
    out = np.zeros((offsets.size, table.shape[1]), table.dtype)
    largest = np.full(out.shape, -1)
    for i in np.flatnonzero(kept):
        row, bag = table[indices[i]] * (1 if weights is None else weights[i]), bags[i]
        if mode < 2:
            out[bag] = out[bag] | row if row.dtype == bool else out[bag] + row
            continue
        first = largest[bag] < 0
        better = first | (row > out[bag]) | (np.isnan(row) & ~np.isnan(out[bag]))
        out[bag], largest[bag] = np.where(better, row, out[bag]), np.where(better, indices[i], largest[bag])
    if mode == 1:
        out = out / np.maximum(sizes, 1)[:, None]
    return out, bags, sizes, largest if mode == 2 else np.zeros(0, np.int64)


def _bag_sum_samples(m):
    if m.ranked((5, 3)) is None:
        return
    bags = _indices(m, 6)
    bags.array()[...] %= 4
    yield sample(_table(m), _indices(m, 6), bags, 4)


def _bag_sum(table, rows, bags, count):
    out = np.zeros((count, table.shape[1]), table.dtype)
    np.add.at(out, bags, table[rows])
    return out


def _renorm_samples(m):
    if m.ranked((5, 3)) is None:
        return
    for norm in (2.0, 1.0):
        yield sample(_table(m), _indices(m, 4), 1.5, norm)


def _renorm(table, indices, most, norm):
    out = table.copy()
    for i in indices:
        size = np.linalg.norm(table[i], norm)
        if size > most:
            out[i] = table[i] * (most / (size + 1e-7))
    return out


def _bag_types(s):
    return s.args[0].dtype, "int64", "int64", "int64"


ROWS = [
    Row("embedding", _embedding_samples, lambda table, indices: table[indices], result="self", absent=_ABSENT),
    Row("embedding_dense_backward", _dense_samples, _dense, result="self", absent=_ABSENT, **_SUMS),
    Row("embedding_bag", _bag_samples(None), _bag, result=_bag_types, absent=_ABSENT, inner="_embedding_bag_sum",
        no_peer="PyTorch's further results differ in shape", **_SUMS),
    Row("embedding_bag.padding_idx _embedding_bag", _bag_samples(1), _bag, result=_bag_types, absent=_ABSENT, inner="_embedding_bag_sum",
        no_peer="PyTorch's further results differ in shape", **_SUMS),
    Row("_embedding_bag_sum", _bag_sum_samples, _bag_sum, result="self", absent=_ABSENT, no_peer="made here", **_SUMS),
    Row("embedding_renorm_", _renorm_samples, _renorm, result="self", refuse=("bool", "integral"),
        absent={**_ABSENT, "grad": "used without recording", "gradgrad": "used without recording"},
        no_peer="PyTorch's has no derivative", ulps=16, magnitude=True, infinite="class"),
]  # fmt: skip
