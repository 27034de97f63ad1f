"""Matrix products."""

import numpy as np

from conformance import complex_numbers
from conformance.rows import Row
from conformance.samples import sample

_ABSENT = {"zero_dim": "the rank is fixed", "channels_last": "the rank is fixed"}
_SIZES = ((2, 3, 4), (5, 1, 3))


def _fixed(*letters):
    """Operands whose dimensions are letters of b, m, k, n."""

    def make(m):
        for rows, inner, columns in _SIZES if m.kind != "grad" else ((2, 3, 2),):
            sizes = {"b": 2, "m": m.size(rows), "k": inner, "n": columns}
            if m.ranked(*([0] * len(word) for word in letters)) is None:
                return
            yield sample(*(m.tensor([sizes[c] for c in word]) for word in letters))
        if m.kind == "empty":
            sizes = {"b": 2, "m": 2, "k": 0, "n": 3}
            yield sample(*(m.tensor([sizes[c] for c in word]) for word in letters))

    return make


def _addmm(c, a, b, beta=1, alpha=1):
    product = alpha * _mm(a, b)
    return product if beta == 0 else beta * c + product


def _addmm_samples(m):
    for s in _fixed("mk", "kn")(m):
        a, b = s.args
        for shape in ([b.shape[1]], [a.shape[0], b.shape[1]], [1, 1]):
            yield sample(m.tensor(shape), a, b)
        yield sample(m.tensor([b.shape[1]]), a, b, beta=2, alpha=3)
        yield sample(m.tensor([b.shape[1]]), a, b, beta=0)


def _mm(a, b):
    """Matrix product where 0 * inf counts, as in a sum of products."""
    return np.matmul(a, b)


def _linear(x, w, b=None):
    y = np.matmul(x, np.swapaxes(w, 0, 1) if w.ndim == 2 else w)
    return y if b is None else y + b


def _linear_samples(m):
    if m.ranked([0] * 2) is None:
        return
    rows, inner, out = m.size(3), 4, 2
    yield sample(m.tensor([rows, inner]), m.tensor([out, inner]), m.tensor([out]))
    yield sample(m.tensor([2, rows, inner]), m.tensor([out, inner]))
    yield sample(m.tensor([inner]), m.tensor([out, inner]), m.tensor([out]))


def _matmul_samples(m):
    if m.ranked([0] * 2) is None:
        return
    r = m.size(2)
    for a, b in (([3], [3]), ([r, 3], [3]), ([3], [3, r]), ([r, 3], [3, 2]), ([2, r, 3], [3, 2]), ([2, 1, r, 3], [3, 3, 2])):
        yield sample(m.tensor(a), m.tensor(b))


def _outer(a, b):
    return complex_numbers.multiply(a[:, None], b)


def _row(name, samples, reference, **options):
    return Row(name, samples, reference, result="self", ulps=4, magnitude=True, absent=_ABSENT, refuse=("bool",),
               one_dtype=(0, 1, 2),                complex_ulps=8, infinite="class", **options)


ROWS = [
    _row("addmm", _addmm_samples, _addmm),
    _row("bmm", _fixed("bmk", "bkn"), _mm),
    _row("dot", _fixed("k", "k"), _mm),
    _row("linear", _linear_samples, _linear),
    _row("matmul", _matmul_samples, _mm),
    _row("mm", _fixed("mk", "kn"), _mm),
    _row("mv", _fixed("mk", "k"), _mm),
    Row("outer", _fixed("m", "n"), _outer, operands=(0, 1), complex_ulps=4, infinite="class",
        absent=_ABSENT),
]  # fmt: skip
