"""Reading and writing by positions and masks."""

import numpy as np

from ..complex_numbers import multiply
from ..rows import ONE_OPERAND as _FIXED, Row, unary_samples
from ..samples import sample, with_options
from .backward import _key

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


def _distinct(m, spec, size, dim=0):
    """Positions without repetitions along `dim`, where derivatives need that: only one of two writes to a place counts."""
    if m.kind == "grad" and spec.shape:
        order = np.argsort(m.rng.random([size if d == dim else n for d, n in enumerate(spec.shape)]), dim)
        spec.array()[...] = np.take(order, np.arange(spec.shape[dim]), dim)
    return spec


def _copy_samples(m):
    for shape in _shapes(m):
        for dim in (0, -1):
            count = 0 if shape[dim] == 0 else min(shape[dim], 4) if m.kind == "grad" else 4
            wide = list(shape)
            wide[dim] = count
            for dtype in ("int64", "int32"):
                index = _distinct(m, m.positions([count], shape[dim], dtype), shape[dim])
                yield sample(m.tensor(shape), dim, index, m.tensor(wide))


@with_options
def _slice_fill_samples(m, value):
    for shape in _shapes(m):
        for dim in (0, -1):
            count = 0 if shape[dim] == 0 else 3
            yield sample(m.tensor(shape), dim, m.positions([count], shape[dim]), value(m))


def _slice_fill(x, dim, index, value):
    out = x.copy()
    np.moveaxis(out, dim, 0)[index] = value
    return out


def _scatter_sizes(m):
    """(shape, dim, sizes of the index, sizes of the source)."""
    for shape in _shapes(m):
        for dim in (0, len(shape) - 1):
            count = 0 if 0 in shape else 2
            sizes = [count if d == dim else max(n - 1, min(n, 1)) for d, n in enumerate(shape)]
            yield shape, dim, sizes, sizes
            yield shape, dim, sizes, [n + 1 for n in sizes]


@with_options
def _scatter_samples(m, *more, distinct=True, domain=None, **keywords):
    for shape, dim, sizes, wide in _scatter_sizes(m):
        index = m.positions(sizes, shape[dim], m.number("int32", "int64"))
        if distinct:
            index = _distinct(m, index, shape[dim], dim)
        yield sample(m.tensor(shape, domain=domain), dim, index, m.tensor(wide, domain=domain), *more, **keywords)


@with_options
def _scatter_value_samples(m, value=2, **keywords):
    for shape, dim, sizes, _ in _scatter_sizes(m):
        yield sample(m.tensor(shape), dim, m.positions(sizes, shape[dim]), value, **keywords)


def _each(x, dim, index, src, combine):
    """Combines src[at] with what is at [at], but for index[at] along `dim`, in order."""
    out = x.copy()
    for place in np.ndindex(index.shape):
        to = list(place)
        to[dim] = index[place]
        out[tuple(to)] = combine(out[tuple(to)], src[place] if np.ndim(src) else src)
    return out


def _scatter(x, dim, index, src):
    return _each(x, dim, index, src, lambda old, new: new)


def _add(a, b):
    return a | b if isinstance(a, np.bool_) else a + b


def _scatter_add(x, dim, index, src):
    return _each(x, dim, index, src, _add)


_REDUCERS = {"sum": _add, "mean": _add, "prod": lambda a, b: a & b if isinstance(a, np.bool_) else a * b,
             "amax": np.maximum, "amin": np.minimum}  # fmt: skip


def _scatter_reduce(x, dim, index, src, reduce, include_self=True):
    def combine(old, new):
        if old is None:
            return new
        return _REDUCERS[reduce](old, new)

    start = x.astype(object) if include_self else _each(x.astype(object), dim, index, None, lambda old, new: None)
    out = _each(start, dim, index, src, combine)
    out = np.array([v for v in out.reshape(-1)], x.dtype).reshape(x.shape)
    if reduce != "mean":
        return out
    counts = _each(np.full(x.shape, int(include_self)), dim, index, 1, np.add)
    counts = np.maximum(counts, 1)
    return out // counts if x.dtype.kind == "i" else out / counts


def _scatter_reduce_samples(m):
    words = ["sum", "prod"]
    if m.dtype.category != "bool" and not (m.dtype.category == "integral" and m.kind == "special"):
        words.append("mean")
    if m.dtype.category != "complex":
        words += ["amax", "amin"]
    for reduce in words:
        for include in (True, False):
            yield from _scatter_samples(reduce, distinct=False, include_self=include)(m)


def _take_samples(m):
    for shape in m.shapes():
        size = int(np.prod(shape))
        for counts in ((0,) if size == 0 else (3,), (0, 2) if size == 0 else (2, 2), () if size else (0,)):
            index = m.positions(counts, size, m.number("int32", "int64"))
            if m.kind == "plain":
                index.array()[...] -= size * (index.array() % 2)  # from the end
            yield sample(m.tensor(shape), index)


def _put_flat_samples(m):
    for shape in m.shapes():
        size = int(np.prod(shape))
        counts = (0,) if size == 0 else (min(size, 3),)
        for accumulate in (False, True):
            index = m.positions(counts, size)
            index = index if accumulate else _distinct(m, index, size)
            yield sample(m.tensor(shape), index, m.tensor((*counts, 1)), accumulate)


def _put_flat(x, index, source, accumulate=False):
    out = x.reshape(-1).copy()
    for i, v in zip(index.reshape(-1), source.reshape(-1)):
        out[i] = _add(out[i], v) if accumulate else v
    return out.reshape(x.shape)


def _along_samples(m):
    for s in _gather_samples(m):
        x, dim, index = s.args
        yield sample(x, index, dim)
        if len(x.shape) > 1 and dim == 0:
            yield sample(x, m.positions([index.shape[0], *[1] * (len(x.shape) - 1)], x.shape[0]), 0)
        yield sample(x, m.positions([0 if 0 in x.shape else 3], int(np.prod(x.shape))))


def _along(x, indices, dim=None):
    if dim is None:
        return np.take(x.reshape(-1), indices.reshape(-1))
    sizes = [1 if d == dim else n for d, n in enumerate(np.broadcast_shapes(
        tuple(1 if d == dim else n for d, n in enumerate(x.shape)),
        tuple(1 if d == dim else n for d, n in enumerate(indices.shape))))]  # fmt: skip
    sizes[dim] = indices.shape[dim]
    wide = np.broadcast_to(indices, sizes)
    sizes[dim] = x.shape[dim]
    return np.take_along_axis(np.broadcast_to(x, sizes), wide, dim)


@with_options
def _source_samples(m, sizes):
    """A tensor, a mask that broadcasts to it, and a tensor of `sizes` of the two."""
    for a, b in m.pairs():
        if np.broadcast_shapes(a, b) == a:
            yield sample(m.tensor(a), m.mask(b), m.tensor(sizes(a, b)))


def _masked_scatter(x, mask, source):
    out, mask = x.copy(), np.broadcast_to(mask, x.shape)
    out[mask] = source.reshape(-1)[: np.count_nonzero(mask)]
    return out


def _row(name, samples, reference, **options):
    options.setdefault("absent", {})
    one = {} if "one_dtype" in options else _FIXED
    options["absent"] = {**one, "zero_dim": "needs a dimension", **options["absent"]}
    options.setdefault("result", "self")
    return Row(name, samples, reference, **options)


def _repeat_by_tensor(m):
    for shape in _shapes(m):
        yield sample(m.tensor(shape), m.positions([shape[0]], 3), 0)
        yield sample(m.tensor(shape), m.positions([1], 3), -1)


def _counts(m):
    if m.kind in ("plain", "empty") and m.dtype.name in ("int32", "int64"):
        yield sample(m.tensor([m.size(5)], domain=(0, 4)))


_SUMS = {"ulps": 4, "magnitude": True, "infinite": "class"}
# Products of few factors, which may differ by orders of magnitude; zeros of extrema have the sign of one of several.
_FOLDS = {"ulps": 8, "complex_ulps": 32, "magnitude": True, "infinite": "order", "signed_zeros": False}

ROWS = [
    Row("_masked_write", _source_samples(lambda a, b: b), lambda x, mask, value: np.where(mask, value, x), result="self",
        absent={"promotion": "one dtype"}, no_peer="made here"),
    _row("index_copy", _copy_samples, lambda x, dim, index, source: _slice_fill(x, dim, index, np.moveaxis(source, dim, 0)), one_dtype=(0, 3)),
    _row("index_fill.int_Scalar", _slice_fill_samples(lambda m: 1), _slice_fill),
    _row("index_fill.int_Tensor", _slice_fill_samples(lambda m: m.tensor((), m.dtype.name)), _slice_fill),
    _row("index_put index_put_", _put_samples, _put, one_dtype=(0, 2), **_SUMS),
    Row("masked_fill.Tensor masked_fill_.Tensor", _source_samples(lambda a, b: ()), _masked_fill, result="self", absent={"promotion": "one dtype"}),
    Row("masked_fill.Scalar masked_fill_.Scalar", _fill_samples, _masked_fill, result="self", absent=_FIXED),
    Row("masked_scatter", _source_samples(lambda a, b: (int(np.prod(a)) + 1,)), _masked_scatter, result="self", one_dtype=(0, 2)),
    Row("one_hot", unary_samples(5, domain=(0, 4)), lambda x, n: np.eye(n, dtype=np.int64)[x], result="int64",
        refuse=("bool", "uint8", "int8", "int16", "floating", "complex"), no_peer="PyTorch has it among nn.functional",
        absent={**_FIXED, "special": "classes are small numbers"}),
    Row("put", _put_flat_samples, _put_flat, result="self", one_dtype=(0, 2), **_SUMS),
    _row("scatter.src", _scatter_samples(), _scatter, one_dtype=(0, 3)),
    _row("scatter.value", _scatter_value_samples(1), _scatter),
    _row("scatter.reduce", _scatter_samples(reduce="multiply", distinct=False),
         lambda x, dim, index, src, reduce: _scatter_reduce(x, dim, index, src, "prod"), one_dtype=(0, 3), inner="scatter_reduce", **_FOLDS),
    _row("scatter.value_reduce", _scatter_value_samples(1, reduce="add"),
         lambda x, dim, index, value, reduce: _scatter_add(x, dim, index, np.asarray(value, x.dtype)), inner="scatter_reduce", **_SUMS),
    _row("scatter_.reduce", _scatter_samples(reduce="add", distinct=False),
         lambda x, dim, index, src, reduce: _scatter_add(x, dim, index, src), one_dtype=(0, 3), inner="scatter_reduce", **_SUMS),
    _row("scatter_.value_reduce", _scatter_value_samples(1, reduce="multiply"), lambda x, *_, reduce: x, inner="scatter_reduce", **_FOLDS),
    _row("scatter_add", _scatter_samples(distinct=False), _scatter_add, one_dtype=(0, 3), **_SUMS),
    _row("scatter_reduce.two", _scatter_reduce_samples, _scatter_reduce, one_dtype=(0, 3), **_FOLDS),
    Row("take", _take_samples, lambda x, index: x.reshape(-1)[index], result="self", absent=_FIXED),
    _row("take_along_dim", _along_samples, _along, inner="gather"),
    _row("gather", _gather_samples, lambda x, dim, index: np.take_along_axis(x, index, dim)),
    _row("index.Tensor", _index_samples, lambda x, indices: x[_key(indices)], call=None),
    _row("index_add", _add_samples, _add_at, one_dtype=(0, 3), **_SUMS),
    _row("index_select", _rows_samples, lambda x, dim, index: np.take(x, index, dim)),
    Row("masked_select", _masked_samples, _masked_select, result="self", absent=_FIXED),
    Row("nonzero_numpy where", unary_samples(), lambda x: np.nonzero(np.atleast_1d(x)), absent=_FIXED,
        result=lambda s: ("int64",) * max(s.args[0].dim, 1)),
    Row("bincount", _counts, np.bincount, result="int64", refuse=("bool", "floating", "complex"), absent=_COUNTS),
    Row("repeat_interleave.Tensor", _counts, lambda n: np.repeat(np.arange(len(n)), n), result="self", refuse=("bool", "floating", "complex"), absent=_COUNTS),
    Row("repeat_interleave.self_Tensor", _repeat_by_tensor, np.repeat, result="self", absent={**_FIXED, "zero_dim": "needs a dimension"}),
    Row("nonzero", unary_samples(), np.argwhere, result="int64", absent=_FIXED),
]  # fmt: skip
