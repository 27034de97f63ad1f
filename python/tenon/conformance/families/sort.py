"""Sorting: by value, then by position, with NaN last."""

import numpy as np

from ..rows import Row, reduced_dims
from ..samples import sample, with_options


def _order(x, dim, descending):
    """The positions of a stable sort. Of the reversed rows, an ascending order read backwards is a descending one."""
    if descending:
        order = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
        return np.flip(x.shape[dim] - 1 - order, dim)
    return np.argsort(x, axis=dim, kind="stable")


def _sorted(x, dim=-1, descending=False, count=None):
    rows = x.reshape(1) if x.ndim == 0 else x
    order = _order(rows, dim, descending)
    if count is not None:
        order = np.take(order, range(count), axis=dim)
    shape = () if x.ndim == 0 else order.shape
    return np.take_along_axis(rows, order, dim).reshape(shape), order.reshape(shape)


@with_options
def _samples(m, *arguments, longer=True, **options):
    """Of all dims, in both orders; and rows long enough to be sorted by digits."""
    shapes = [*m.shapes(), *([(3, 130), (1030, 2)] if longer and m.kind in ("plain", "special", "sliced") else [])]
    for shape in shapes:
        for dim in reduced_dims(shape):
            t = m.tensor(shape, distinct=m.kind == "grad")
            yield sample(t, *arguments, dim=dim, descending=bool(m.rng.integers(2)), **options)


def _msort_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape, distinct=m.kind == "grad"))


def _topk_samples(m):
    for shape in [*m.shapes(), *([(2, 300), (300, 3)] if m.kind in ("plain", "special", "sliced") else [])]:
        for dim in reduced_dims(shape):
            n = shape[dim] if shape else 1
            for k in sorted({min(2, n), n}):
                t = m.tensor(shape, distinct=m.kind == "grad")
                yield sample(t, k, dim, bool(m.rng.integers(2)), True)


def _too_many(m):
    yield sample(m.tensor((2, 3)), 4), (RuntimeError,), "selected index k out of range"
    yield sample(m.tensor((2, 3)), -1), (RuntimeError,), "selected index k out of range"


_ONE = dict(refuse=("complex",), absent={"promotion": "one operand"})
_PAIR = dict(result=lambda s: (s.specs()[0].dtype, "int64"), **_ONE)

ROWS = [
    Row("sort", _samples(), _sorted, **_PAIR),
    Row("sort.stable", _samples(stable=True), lambda x, stable, **how: _sorted(x, **how), **_PAIR),
    Row("argsort", _samples(), lambda x, **how: _sorted(x, **how)[1], result="int64", inner="sort", **_ONE),
    Row("argsort.stable", _samples(stable=True), lambda x, stable, **how: _sorted(x, **how)[1], result="int64",
        inner="sort", **_ONE),
    Row("_sort_values", _samples(), lambda x, **how: _sorted(x, **how)[0], result="self", no_peer="not in PyTorch", **_ONE),
    Row("msort", _msort_samples, lambda x: _sorted(x, 0)[0], result="self", inner="_sort_values", **_ONE),
    Row("topk", _topk_samples, lambda x, k, dim, largest, ordered: _sorted(x, dim, largest, k), errors=_too_many, **_PAIR),
]  # fmt: skip
