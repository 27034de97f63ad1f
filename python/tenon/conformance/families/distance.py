"""Distances between vectors."""

import numpy as np

from ..rows import Row, binary_calls, unary_calls
from ..samples import sample, with_options

_FLOATS = ("bool", "integral", "complex")
_COMMON = {"zero_dim": "rows are asked for", "channels_last": "its ranks are fixed"}
#: A product of matrices cancels where vectors are near each other.
_PRODUCT = dict(ulps=64, extremes=False, infinite="class", refuse=_FLOATS)


def _norm(d, p):
    if p == 0:
        return np.sum(d != 0, -1).astype(d.dtype)
    if p == np.inf:
        return np.max(np.abs(d), -1, initial=0)
    return np.sum(np.abs(d) ** p, -1) ** (1 / p)


def _cdist(a, b, p=2.0, compute_mode=None):
    return _norm(a[..., :, None, :] - b[..., None, :, :], p)


def _pdist(x, p=2.0):
    i, j = np.triu_indices(len(x), 1)
    return _norm(x[i] - x[j], p)


@with_options
def _rows(m, *orders):
    shapes = [((2, 3, 4), (3, 4))] if m.kind in ("channels_last", "zero_dim") else [((5, 4), (3, 4)), ((2, 3, 4), (4, 4))]
    for a, b in shapes if m.kind not in ("channels_last", "zero_dim") else ():
        for p in orders:
            a_, b_ = [[m.size(n) if d == len(s) - 2 else n for d, n in enumerate(s)] for s in (a, b)]
            yield sample(m.tensor(a_), m.tensor(b_), p, 2)


@with_options
def _pairs_of(m, *orders):
    if m.kind not in ("channels_last", "zero_dim"):
        for p in orders:
            yield sample(m.tensor((m.size(5), 3)), p)


def _same_shapes(m):
    for shape in m.shapes():
        if shape:
            for p in (2.0, 1.0, 3.0, float("inf"), 0.0):
                yield sample(m.tensor(shape), m.tensor(shape), p)


@with_options
def _row_samples(m, *more):
    for shape in m.shapes():
        if shape and shape[-1]:
            yield sample(m.tensor(shape), m.tensor(shape), *more, [-1])


def _products(m):
    if m.kind not in ("channels_last", "zero_dim"):
        yield sample(m.tensor((m.size(5), 3)), m.tensor((4, 3)))


def _products_backward(grad, a, b, result):
    with np.errstate(all="ignore"):
        w = np.where(result == 0, 0, grad / result)
    return w.sum(-1, keepdims=True) * a - w @ b


def _backward_samples(m):
    if m.kind in ("channels_last", "zero_dim", "special"):
        return
    yield sample(m.tensor((3, 4)), m.tensor((3, 2)), m.tensor((4, 2)), m.tensor((3, 4), domain=(1, 2)))


def _renorm(x, p, dim, maxnorm):
    others = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    norms = np.sum(np.abs(x) ** p, others, keepdims=True) ** (1 / p)
    return x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)


def _squares(m):
    for a, b in m.pairs():
        yield sample(m.tensor(a, domain=(-4, -1)), m.tensor(b, domain=(1, 3)), m.tensor(a, domain=(1, 3)))


_DIRECT = dict(direct=True, inner="cdist", no_peer="not in PyTorch", one_dtype=True, refuse=_FLOATS, extremes=False, infinite="class")
_ALIKE = {"zero_dim": "rows are asked for", "promotion": "operands have one dtype", "empty": "cdist covers it"}
_ORDERS = (2.0, 1.0, 3.0, 0.5, float("inf"), 0.0)

ROWS = [
    Row("cdist", _rows(*_ORDERS), _cdist, operands=(0, 1), ulps=16, grad_samples=_rows(2.0, 1.0, 3.0),
        absent={**_COMMON, "special": "differences of infinities"}, refuse=_FLOATS, extremes=False),
    Row("_cdist_forward", _rows(*_ORDERS), _cdist, operands=(0, 1), ulps=16, refuse=_FLOATS, extremes=False, direct=True,
        absent={**_COMMON, "special": "differences of infinities"}, grad_samples=_rows(2.0, 1.0, 3.0)),
    Row("pdist", _pairs_of(*_ORDERS), _pdist, result="self", ulps=16, refuse=_FLOATS, extremes=False, grad_samples=_pairs_of(2.0, 1.0),
        absent={**_COMMON, "promotion": "one operand", "special": "differences of infinities"}),
    Row("_pdist_forward", _pairs_of(*_ORDERS), _pdist, result="self", ulps=16, refuse=_FLOATS, extremes=False, direct=True,
        grad_samples=_pairs_of(2.0, 1.0), absent={**_COMMON, "promotion": "one operand", "special": "differences of infinities"}),
    Row("_distances", _same_shapes, lambda a, b, p: _norm(a - b, p), ulps=16, grad_samples=lambda m: (
        sample(m.tensor((2, 3)), m.tensor((2, 3)), p) for p in (2.0, 1.0, 3.0)), **_DIRECT,
        absent={**_ALIKE, "special": "differences of infinities"}),
    Row("_distance_count", _row_samples(), lambda a, b, d: _norm(a - b, 0), **_DIRECT, absent={**_ALIKE, "special": "cdist covers it"}),
    Row("_distance_largest", _row_samples(), lambda a, b, d: _norm(a - b, np.inf), ulps=2, **_DIRECT,
        absent={**_ALIKE, "special": "cdist covers it"}),
    Row("_distance_one", _row_samples(), lambda a, b, d: _norm(a - b, 1), ulps=8, **_DIRECT, absent={**_ALIKE, "special": "cdist covers it"}),
    Row("_distance_two", _row_samples(), lambda a, b, d: _norm(a - b, 2), ulps=8, **_DIRECT, absent={**_ALIKE, "special": "cdist covers it"}),
    Row("_distance_power", _row_samples(3.0), lambda a, b, p, d: _norm(a - b, p), ulps=16, **_DIRECT,
        absent={**_ALIKE, "special": "cdist covers it"}),
    Row("_euclidean_distances", _products, lambda a, b: _cdist(a, b), direct=True, no_peer="not in PyTorch", one_dtype=True,
        magnitude=lambda a, b: np.full((*a.shape[:-1], b.shape[-2]), 30.0), **_PRODUCT,
        absent={**_COMMON, "promotion": "operands have one dtype", "special": "cdist covers it",
                "float16": "squares cancel", "bfloat16": "squares cancel"}),
    Row("_distance_of_products", _squares, lambda p, a, b: np.sqrt(np.maximum(-2 * p + a + b, 0)), operands=(0, 1, 2), result="float", ulps=8,
        refuse=("complex",), extremes=False, infinite="class", direct=True, no_peer="not in PyTorch", absent={"special": "squares cancel"}),
    Row("_euclidean_distances_backward", _backward_samples, _products_backward, direct=True, no_peer="not in PyTorch",
        result="self", magnitude=True, absent={**_COMMON, "promotion": "operands have one dtype", "special": "cdist covers it", "empty": "cdist covers it",
                                "bool": "no gradients", "integral": "no gradients", "complex": "no gradients"}, ulps=32),
    Row("dist", binary_calls((2,), (1,), (3.0,)), lambda a, b, p=2: np.sum(np.abs(a - b) ** p) ** (1 / p), operands=(0, 1), ulps=16, extremes=False,
        refuse_common=("bool", "integral"), real=True, infinite="class", absent={"special": "linalg_vector_norm covers it"}),
    Row("renorm", unary_calls((2, 0, 3.0), (1, -1, 2.0), least=2), _renorm, result="self", ulps=16, extremes=False, refuse=("bool", "integral"), infinite="class",
        absent={"promotion": "one operand", "zero_dim": "it needs two dimensions", "special": "linalg_vector_norm covers it"}),
]  # fmt: skip
