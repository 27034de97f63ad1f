"""Matrix products."""

import numpy as np

from .. import complex_numbers
from ..rows import Row
from ..samples import sample, with_options

_ABSENT = {"zero_dim": "the rank is fixed", "channels_last": "the rank is fixed"}
_SIZES = ((2, 3, 4), (5, 1, 3))
_FLUSHED = ("bfloat16",)


@with_options
def _fixed(m, *letters):
    """Operands whose dimensions are letters of b, m, k, n."""
    for rows, inner, columns in ((2, 3, 2),) if m.kind == "grad" else _SIZES[:1] if m.kind == "empty" else _SIZES:
        sizes = {"b": 2, "m": m.size(rows), "k": inner, "n": columns}
        if m.kind == "large" and "m" not in "".join(letters):
            sizes["k"] = m.size(inner)
        if m.ranked(*([0] * len(word) for word in letters)) is None:
            return
        yield sample(*(m.tensor([sizes[c] for c in word]) for word in letters))
    if m.kind == "empty":  # and each other size is 0 by itself
        for none in sorted(set("".join(letters)) - {"m"}, reverse=True):
            sizes = {"b": 2, "m": 2, "k": 3, "n": 4, none: 0}
            yield sample(*(m.tensor([sizes[c] for c in word]) for word in letters))


def _addmm_samples(m):
    for s in _fixed("mk", "kn")(m):
        a, b = s.args
        for shape in ([b.shape[1]], [a.shape[0], b.shape[1]], [1, 1]):
            yield sample(m.tensor(shape), a, b)
        yield sample(m.tensor([b.shape[1]]), a, b, beta=2, alpha=3)
        yield sample(m.tensor([b.shape[1]]), a, b, beta=0)


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
    return Row(name, samples, reference, result="self", ulps=4, magnitude=True, flushed=_FLUSHED, absent=_ABSENT, refuse=("bool",),
               one_dtype=(0, 1, 2), complex_ulps=8, infinite="class", **options)


def _plus(product):
    """beta * self + alpha * product."""

    def reference(c, *operands, beta=1, alpha=1):
        value = alpha * product(*operands)
        return value if beta == 0 else beta * c + value

    return reference


@with_options
def _plus_samples(m, product, *letters):
    """`self`, which broadcasts, and the operands."""
    for s in _fixed(*letters)(m):
        shape = product(*(np.zeros(x.shape) for x in s.args)).shape
        for of_self in (shape, [1] * len(shape), shape[-1:]):
            yield sample(m.tensor(of_self), *s.args)
        yield sample(m.tensor(shape), *s.args, beta=2, alpha=3)
        yield sample(m.tensor(shape), *s.args, beta=0)


@with_options
def _whole(m, make):
    """Samples where self has the shape of the result, as in place."""
    return (s for k, s in enumerate(make(m)) if k % 5 in (0, 3, 4))


def _sum_mm(a, b):
    return np.matmul(a, b).sum(0)


_EQUATIONS = (
    ("ij,jk->ik", [2, 3], [3, 4]),
    ("bij,bjk", [2, 2, 3], [2, 3, 2]),
    ("...i,ij->...j", [2, 2, 3], [3, 4]),
    ("ii->i", [3, 3]),
    ("ij->", [2, 3]),
    ("i,j->ji", [2], [3]),
    ("ij,jk,kl->il", [2, 3], [3, 2], [2, 4]),
    ("bhqd,bhkd->bhqk", [1, 2, 2, 3], [1, 2, 4, 3]),
    ("ij,ij->j", [2, 3], [2, 3]),
)


def _einsum_samples(m):
    if m.kind in ("zero_dim", "channels_last") or m.dtype.category == "bool":
        return
    for equation, *shapes in _EQUATIONS:
        if m.kind == "empty":
            shapes = [[0 if n == 3 else n for n in shape] for shape in shapes]
        yield sample(equation, [m.tensor(shape) for shape in shapes])


def _dot_samples(m):
    if m.ranked([0] * 2) is None:
        return
    n = m.size(3)
    yield sample(m.tensor([2, n]), m.tensor([n, 4]), [1], [0])
    yield sample(m.tensor([2, n, 2]), m.tensor([2, n]), [0, 1], [0, 1])
    yield sample(m.tensor([2]), m.tensor([n]), [], [])


# Products of packed matrices: panels of 128 bytes of columns, whose last one may have columns that are not used.


def packed_product_samples(m, shapes):
    for rows, k, n in shapes:
        width = 16 if m.dtype.name == "float64" else 32
        for bias in (None, m.tensor([n])):
            yield sample(m.tensor([rows, k]), m.tensor([-(-n // width), k, width]), n, bias)


def _packed_product_samples(m):
    if m.kind not in ("zero_dim", "channels_last", "promotion"):
        yield from packed_product_samples(m, ((0, 5, 3), (2, 0, 40), (2, 3, 0)) if m.kind == "empty" else ((m.size(3), 9, 33), (2, m.size(7), 64)))


def _packed_product(matrix, panels, columns, bias=None):
    b = panels.transpose(1, 0, 2).reshape(panels.shape[1], panels.shape[0] * panels.shape[2])[:, :columns]
    return matrix @ b + (0 if bias is None else bias)


# Products of integers of 8 bits. A packed matrix has panels of 16 columns: the sums of their differences from their zeros
# and the zeros, both int32, and for each four k and each column four elements, as int8.


def packed_bytes(centered, zeros):
    """The bytes for a matrix [*, k, n] of what it counts from `zeros`, [n]."""
    *batch, k, n = centered.shape
    panels, groups = -(-n // 16), -(-k // 4)
    grown = np.zeros((*batch, groups * 4, panels * 16), np.int64)
    grown[..., :k, :n] = centered + zeros
    header = np.zeros((*batch, 2, panels * 16), np.int32)
    header[..., 0, :n], header[..., 1, :n] = centered.sum(-2), zeros
    header = np.moveaxis(header.reshape(*batch, 2, panels, 16), -2, -3).copy().view(np.int8)
    body = np.moveaxis(grown.reshape(*batch, groups, 4, panels, 16), (-2, -1), (-4, -2)).astype(np.int8)
    return np.concatenate([header, body.reshape(*batch, panels, groups, 64)], -2)


def unpacked_bytes(packed, k, n):
    """What a matrix counts from its zeros; fails where the sums are not theirs."""
    *batch, panels, rows, _ = packed.shape
    header = np.ascontiguousarray(packed[..., :2, :].astype(np.int8)).view(np.int32).astype(np.int64)
    body = packed[..., 2:, :].astype(np.int64).reshape(*batch, panels, rows - 2, 16, 4)
    body = np.moveaxis(body, (-4, -2), (-2, -1)).reshape(*batch, (rows - 2) * 4, panels * 16)[..., :k, :n]
    sums, zeros = (header[..., i, :].reshape(*batch, 1, panels * 16)[..., :n] for i in range(2))
    assert np.array_equal(sums, (body - zeros).sum(-2, keepdims=True))
    return body - zeros


def _int8_sizes(m):
    """(m, k, n) of matrices, and None or the size of a batch."""
    if m.kind not in ("zero_dim", "channels_last", "promotion"):
        yield from (((0, 5, 3), None), ((2, 0, 3), 2), ((2, 3, 0), None)) if m.kind == "empty" else (((m.size(3), 9, 21), None), ((2, 7, m.size(4)), 2))


def _int8_pack_samples(m):
    """Integers of both halves of the dtype, by which the reference knows it."""
    wide = dict(domain=(-128, 255))
    for (_, k, n), batch in _int8_sizes(m):
        for zeros in ((n,), (1,), None) if k and n else ((n,),):
            zero = m.tensor(zeros, dtype=m.dtype.name, **wide) if zeros else None
            if zeros and m.dtype.category == "integral":
                zero.flat[...] = m.dtype.limits[m.dtype.limits[0] == 0]
            yield sample(m.tensor([batch, k, n] if batch else [k, n], dtype=m.dtype.name, **wide), zero)
    if m.kind not in ("zero_dim", "channels_last", "promotion", "empty"):
        yield sample(m.tensor([2, 2, 3, m.size(1), 3, 7], **wide), m.tensor([21], dtype=m.dtype.name))


def _int8_pack(matrix, zero=None):
    if matrix.ndim == 6:
        matrix = matrix.reshape(len(matrix), -1, matrix.shape[4] * matrix.shape[5])
    zero = np.int64(0) if zero is None else zero
    is_signed = min(matrix.min(initial=0), zero.min(initial=0)) < 0
    return packed_bytes(matrix - zero, np.broadcast_to(zero if is_signed else zero - 128, matrix.shape[-1:]))


def _int8_product_samples(m):
    for (rows, k, n), batch in _int8_sizes(m):
        for own, other, zeros in ((batch, batch, (rows,)), (None, batch, (1,)), (batch, None, None)):
            a = m.tensor([own, rows, k] if own else [rows, k])
            zeros = m.tensor(zeros, dtype=m.dtype.name) if zeros else None
            at = m.rng.integers(-128, 128, n)
            values = packed_bytes(m.rng.integers(-128, 128, (other, k, n) if other else (k, n)) - at, at)
            packed = m.tensor(values.shape, dtype="int8", layout="contiguous")
            packed.flat[: values.size] = values.reshape(-1)
            yield sample(a, packed, n, zeros)


def _int8_product(a, packed, columns, zero=None):
    zero = 0 if zero is None else zero.reshape(-1, 1)
    return np.matmul(a.astype(np.int64) - zero, unpacked_bytes(packed, a.shape[-1], columns))


_OF_BYTES = dict(absent={**_ABSENT, "promotion": "the dtypes are fixed"}, no_peer="PyTorch has others", grad_constant=(0, 1),
                 refuse=("bool", "floating", "complex", "int16", "int32", "int64", "uint16", "uint32", "uint64"))  # fmt: skip


_ADDED = {name: (_plus_samples(product, *letters), _plus(product)) for name, product, letters in (
    ("baddbmm", np.matmul, ("bmk", "bkn")), ("addbmm", _sum_mm, ("bmk", "bkn")), ("addmv", np.matmul, ("mk", "k")),
    ("addr", _outer, ("m", "n")))}  # fmt: skip

ROWS = [
    _row("addmm", _addmm_samples, _plus(np.matmul)),
    *(_row(name, samples, reference) for name, (samples, reference) in _ADDED.items()),
    *(_row(name + "_", _whole(samples), reference) for name, (samples, reference) in _ADDED.items()),
    Row("einsum", _einsum_samples, lambda equation, operands: np.einsum(equation, *operands), result=lambda s: s.args[1][0].dtype, ulps=8, magnitude=True, flushed=_FLUSHED, absent={**_ABSENT, "promotion": "one dtype", "bool": "products of truth values are refused by bmm"},
        complex_ulps=16, infinite="class"),
    _row("tensordot", _dot_samples, lambda a, b, mine, theirs: np.tensordot(a, b, (mine, theirs)), direct=True),
    _row("bmm", _fixed("bmk", "bkn"), np.matmul),
    _row("dot", _fixed("k", "k"), np.matmul),
    _row("linear", _linear_samples, _linear),
    _row("matmul", _matmul_samples, np.matmul),
    _row("mm", _fixed("mk", "kn"), np.matmul),
    _row("mv", _fixed("mk", "k"), np.matmul),
    Row("outer", _fixed("m", "n"), _outer, operands=(0, 1), complex_ulps=4, infinite="class",
        absent=_ABSENT),
    Row("_packed_product", _packed_product_samples, _packed_product, result=lambda s: s.args[0].dtype, ulps=4, magnitude=True, infinite="class",
        absent={**_ABSENT, "promotion": "one dtype"}, refuse=("bool", "integral", "complex", "float16", "bfloat16"), one_dtype=(0, 1, 3),
        no_peer="PyTorch has none", grad_constant=(0, 1, 3)),
    Row("_int8_pack", _int8_pack_samples, _int8_pack, result=lambda s: "int8", **_OF_BYTES),
    Row("_int8_product", _int8_product_samples, _int8_product, result=lambda s: "int32", **_OF_BYTES),
]  # fmt: skip
