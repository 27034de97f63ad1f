"""Reading and writing by positions and masks."""

import numpy as np

from conformance.complex_numbers import multiply
from conformance.rows import Row
from conformance.samples import sample

#: Positions and masks have dtypes of their own.
_FIXED = {"promotion": "one operand"}
_COUNTS = {**{k: "numbers of repetitions: a vector of int32 or int64" for k in
              ("promotion", "transposed", "expanded", "negative", "sliced", "channels_last", "overlapping", "zero_dim", "special", "grad")},
           **{d: "numbers of repetitions are int32 or int64" for d in
              ("bool", "floating", "complex", "uint8", "int8", "int16")}}  # fmt: skip


def _shapes(m):
    """Shapes with at least one dimension."""
    for shape in m.shapes():
        if shape:
            yield shape


def _gather_samples(m):
    for shape in _shapes(m):
        for dim in (0, len(shape) - 1):
            counts = list(shape)
            counts[dim] = 0 if 0 in shape else 2
            yield sample(m.tensor(shape), dim, m.positions(counts, shape[dim]))


def _take(x, dim, index):
    return np.take_along_axis(x, index, dim)


def _rows_samples(m):
    for shape in _shapes(m):
        for dim in (0, -1):
            count = 0 if shape[dim] == 0 else 4
            yield sample(m.tensor(shape), dim, m.positions([count], shape[dim]))
            if m.kind == "plain":
                yield sample(m.tensor(shape), dim, m.positions([count], shape[dim], "int32"))


def _add_samples(m):
    for shape in _shapes(m):
        for dim in (0, -1):
            count = 0 if shape[dim] == 0 else 4
            wide = list(shape)
            wide[dim] = count
            yield sample(m.tensor(shape), dim, m.positions([count], shape[dim]), m.tensor(wide))
            if m.dtype.category != "bool":
                yield sample(m.tensor(shape), dim, m.positions([count], shape[dim]), m.tensor(wide), alpha=2)


def _add_at(x, dim, index, source, alpha=1):
    out = x.copy()
    source = np.moveaxis(source, dim, 0)
    np.add.at(np.moveaxis(out, dim, 0), index, source if alpha == 1 else multiply(alpha, source))
    return out


def _index_samples(m):
    for shape in _shapes(m):
        n = shape[0]
        count = 0 if n == 0 else 3
        yield sample(m.tensor(shape), [m.positions([count], n)])
        yield sample(m.tensor(shape), [m.mask(shape)])
        if len(shape) > 1:
            last = shape[1]
            count = 0 if 0 in (n, last) else 2
            yield sample(m.tensor(shape), [None, m.positions([count], last)])
            yield sample(m.tensor(shape), [m.positions([count, 1], n), m.positions([count], last)])
            yield sample(m.tensor(shape), [m.mask([n])])


def _key(indices):
    return tuple(slice(None) if i is None else i for i in indices)


def _index(x, indices):
    return x[_key(indices)]


def _put_samples(m):
    for s in _index_samples(m):
        x, indices = s.args
        if m.kind != "grad":  # places that are written twice keep one of the values
            yield sample(x, indices, m.tensor(()))
        if m.dtype.category != "bool":
            yield sample(x, indices, m.tensor(()), True)


def _put(x, indices, values, accumulate=False):
    out = x.copy()
    if accumulate:
        np.add.at(out, _key(indices), values)
    else:
        out[_key(indices)] = values
    return out


def _fill_samples(m):
    for a, b in m.pairs():
        if np.broadcast_shapes(a, b) == a:
            yield sample(m.tensor(a), m.mask(b), 1)
            if m.dtype.category == "complex":
                yield sample(m.tensor(a), m.mask(b), 1 - 2j)


def _masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value, x.dtype), x)


def _masked_samples(m):
    for a, b in m.pairs():
        yield sample(m.tensor(a), m.mask(b))


def _masked_select(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def _nonzero_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape))


def _row(name, samples, reference, **options):
    options.setdefault("absent", {})
    one = {} if "one_dtype" in options else _FIXED
    options["absent"] = {**one, "zero_dim": "needs a dimension", **options["absent"]}
    options.setdefault("result", "self")
    return Row(name, samples, reference, **options)


def _nonzero(x):
    return np.argwhere(x)


def _repeat_by_tensor(m):
    for shape in _shapes(m):
        yield sample(m.tensor(shape), m.positions([shape[0]], 3), 0)
        yield sample(m.tensor(shape), m.positions([1], 3), -1)


def _counts(m):
    if m.kind in ("plain", "empty") and m.dtype.name in ("int32", "int64"):
        yield sample(m.tensor([m.size(5)], domain=(0, 4)))


ROWS = [
    _row("gather", _gather_samples, _take),
    _row("index.Tensor", _index_samples, _index, call=None),
    _row("index_add", _add_samples, _add_at, ulps=4, magnitude=True, infinite="class", one_dtype=(0, 3)),
    _row("index_add_", _add_samples, _add_at, ulps=4, magnitude=True, infinite="class", one_dtype=(0, 3)),
    _row("index_put_", _put_samples, _put, ulps=4, magnitude=True, infinite="class", one_dtype=(0, 2)),
    _row("index_select", _rows_samples, lambda x, dim, index: np.take(x, index, dim)),
    Row("masked_fill.Scalar", _fill_samples, _masked_fill, result="self",
        absent=_FIXED),
    Row("masked_select", _masked_samples, _masked_select, result="self", absent=_FIXED),
    Row("nonzero_numpy", _nonzero_samples, lambda x: np.nonzero(np.atleast_1d(x)), absent=_FIXED,
        result=lambda s: ("int64",) * max(s.args[0].dim, 1)),
    Row("repeat_interleave.Tensor", _counts, lambda n: np.repeat(np.arange(len(n)), n), result="self", refuse=("bool", "floating", "complex"), absent=_COUNTS),
    Row("repeat_interleave.self_Tensor", _repeat_by_tensor, np.repeat, result="self", absent={**_FIXED, "zero_dim": "needs a dimension"}),
    Row("where", _nonzero_samples, lambda x: np.nonzero(np.atleast_1d(x)), absent=_FIXED,
        result=lambda s: ("int64",) * max(s.args[0].dim, 1)),
    Row("nonzero", _nonzero_samples, _nonzero, result="int64", absent=_FIXED),
]  # fmt: skip
