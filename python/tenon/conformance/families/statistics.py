"""Order statistics, sets, histograms, running extrema, differences, sums without NaN."""

import warnings
from functools import partial

import numpy as np

from ..rows import ONE_OPERAND as _ONE, Row, dim_samples, filled_samples, reduced_dims, unary_calls, unary_samples
from ..samples import sample, with_options
from .reduction import _float

_FIXED = {**_ONE, "channels_last": "its rank is fixed", "zero_dim": "its rank is fixed"}
_REAL = ("complex",)
_FLOATS = ("bool", "integral", "complex")
_PAIR = dict(result=lambda s: (s.specs()[0].dtype, "int64"), refuse=_REAL, signed_zeros=False)
_NONE = {"empty": "of no elements it is an error (errors)"}


def _with_dims(x, f, dim, keepdim=False):
    """f of each row along `dim`, as a pair of arrays."""
    rows = np.moveaxis(x.reshape(1) if x.ndim == 0 else x, dim, -1)
    pairs = [f(row) for row in rows.reshape(-1, rows.shape[-1])]
    shape = rows.shape[:-1] if x.ndim else ()
    values, places = (np.array([p[k] for p in pairs], x.dtype if k == 0 else np.int64).reshape(shape) for k in (0, 1))
    if keepdim and x.ndim:
        values, places = np.expand_dims(values, dim), np.expand_dims(places, dim)
    return values, places


def _kth(row, k):
    place = np.argsort(row, kind="stable")[k]
    return row[place], place


def _median(row):
    numbers = np.sum(~np.isnan(row)) if row.dtype.kind == "f" else len(row)
    return _kth(row, numbers if numbers < len(row) else (len(row) - 1) // 2)


def _nanmedian(row):
    numbers = np.sum(~np.isnan(row)) if row.dtype.kind == "f" else len(row)
    return _kth(row, max(numbers - 1, 0) // 2)


def _mode(row):
    order = np.argsort(row, kind="stable")
    best = (0, None)
    start = 0
    for i in range(1, len(row) + 1):
        same = i < len(row) and (row[order[i]] == row[order[start]] or (row[order[i]] != row[order[i]] and row[order[start]] != row[order[start]]))
        if not same:
            if i - start > best[0]:
                best = (i - start, order[i - 1])
            start = i
    return row[best[1]], best[1]


def _row_samples(m):
    shapes = [*m.shapes(), *([(3, 700)] if m.kind in ("plain", "special", "sliced") else [])]
    for shape in shapes:
        for dim in reduced_dims(shape):
            if not shape or shape[dim]:
                yield sample(m.tensor(shape), dim, bool(m.rng.integers(2)))


def _kth_samples(m):
    for s in _row_samples(m):
        x, dim, keep = s.args
        n = x.shape[dim] if x.shape else 1
        yield sample(x, int(m.rng.integers(1, n + 1)), dim, keep)


def _no_such(m):
    yield sample(m.tensor((2, 3)), 4), (IndexError,), "selected number k out of range"
    yield sample(m.tensor((2, 3)), 0), (IndexError,), "selected number k out of range"


@with_options
def _quantiles(m, as_tensor):
    for shape in m.shapes():
        if 0 in shape:
            continue
        for k, dim in enumerate([None, *reduced_dims(shape)]):
            how = ("linear", "lower", "higher", "nearest", "midpoint")[(k + len(shape)) % 5 if m.kind != "grad" else 0]
            x = m.tensor(shape)
            q = m.tensor((3,), x.dtype, domain=(0.05, 0.95), layout="contiguous") if as_tensor else 0.3
            if as_tensor and m.kind == "special":
                q.flat[:] = np.array([0.0, 0.25, 1.0])
            yield sample(x, q, dim, bool(k % 2), interpolation=how)


def _quantile(f, x, q, dim=None, keepdim=False, interpolation="linear"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(f(x, q, axis=dim if x.ndim else None, keepdims=keepdim, method=interpolation))


def _sorted_rows(m):
    if m.kind in ("zero_dim", "channels_last"):
        return
    for rows, elements in (((9,), (3, 4)), ((3, 9), (3, 4))):
        spec = m.tensor(rows, layout="contiguous")
        count = int(np.prod(rows))
        spec.flat[:count] = np.sort(spec.flat[:count].reshape(rows), -1).reshape(-1)
        yield sample(spec, m.tensor([m.size(n) if d == 0 and len(rows) == 1 else n for d, n in enumerate(elements)], spec.dtype))


def _searched(rows, x, out_int32=False, right=False, side=None, sorter=None):
    side = side or ("right" if right else "left")
    if rows.ndim == 1:
        return np.searchsorted(rows, x, side)
    return np.stack([np.searchsorted(r, e, side) for r, e in zip(rows, x)])


def _flagged(samples, *flags, **options):
    return lambda m: (sample(*s.args, *flags, **options) for s in samples(m))


def _edges(m):
    for s in _sorted_rows(m):
        rows, x = s.args
        if rows.dim == 1:
            yield sample(x, rows)


def _one_number(m):
    for s in _sorted_rows(m):
        if s.args[0].dim == 1:
            yield sample(s.args[0], 1)


def _place(x, low, high, bins):
    with np.errstate(all="ignore"):
        return np.where((x >= low) & (x <= high), np.minimum((x - low) * bins / (high - low), bins - 1), bins)


def _histc(x, bins, lo, hi):
    return np.histogram(x[(x >= lo) & (x <= hi)], bins, (lo, hi))[0].astype(x.dtype)


def _hist(x, bins, weight=None, density=False):
    inside = (x >= bins[0]) & (x <= bins[-1])
    w = None if weight is None else weight[inside]
    return np.histogram(x[inside], bins, weights=w, density=density)[0].astype(x.dtype), bins


def _hist_samples(m):
    for shape in m.shapes():
        x = m.tensor(shape)
        edges = m.tensor((5,), x.dtype, layout="contiguous")
        edges.flat[:5] = np.array([-3.0, -1.0, 0.5, 1.5, 4.0])
        yield sample(x, edges)
        weight = m.tensor(shape, x.dtype, domain=(0.5, 2))
        yield sample(x, edges, weight=weight)


def _sets(m):
    for a, b in m.pairs():
        x = m.tensor(a)
        yield sample(x, m.tensor(b), invert=bool(m.rng.integers(2)))
        yield sample(x, m.tensor((11,)))


def _uniques(x, ordered=True, inverse=False, counts=False):
    values, i, n = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    return values, i.reshape(x.shape), n


def _runs(x, inverse=False, counts=False, dim=None):
    flat = x.reshape(-1)
    new = np.append(np.ones(min(len(flat), 1), bool), flat[1:] != flat[:-1])
    starts = np.flatnonzero(new)
    return flat[new], (np.cumsum(new) - 1).reshape(x.shape), np.diff(np.append(starts, len(flat)))


def _unique_rows(x, dim, ordered, inverse, counts):
    values, i, n = np.unique(x, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    return values, i.reshape(-1), n


def _few_rows(m):
    for dim in (0, 1) if m.kind not in ("zero_dim", "channels_last", "empty") else ():
        yield sample(m.tensor((6, 2), domain=(0, 1)), dim, True, True, True)


_UNIQUE = dict(result=lambda s: (s.specs()[0].dtype, "int64", "int64"), refuse=_REAL, signed_zeros=False)


def _running(f, x, dim):
    """The extremum so far and its last place; a NaN stays."""
    rows = np.moveaxis(x.reshape(1) if x.ndim == 0 else x, dim, -1)
    values, places = np.empty_like(rows), np.empty(rows.shape, np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        best = 0
        for i, e in enumerate(rows[at]):
            b = rows[at][best]
            if e != e or (b == b and (e >= b if f is np.maximum else e <= b)):
                best = i
            values[at][i], places[at][i] = rows[at][best], best
    return np.moveaxis(values, -1, dim).reshape(x.shape), np.moveaxis(places, -1, dim).reshape(x.shape)


def _running_backward(grad, x, places, dim):
    if not x.ndim:
        return grad
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        to = list(at)
        to[dim] = places[at]
        out[tuple(to)] += grad[at]
    return out


def _running_backward_samples(m):
    for shape in m.shapes():
        if shape and 0 not in shape:
            x = m.tensor(shape)
            _, places = _running(np.maximum, x.array(), 0)
            yield sample(m.tensor(shape, x.dtype), x, m.positions(shape, shape[0]), 0)


def _logcumsumexp(x, dim):
    if np.iscomplexobj(x):
        return np.log(np.cumsum(np.exp(x), axis=dim if x.ndim else 0)).reshape(x.shape)
    return np.logaddexp.accumulate(x.reshape(1) if x.ndim == 0 else x, axis=dim).reshape(x.shape)


@with_options
def _slope_samples(m, **options):
    for shape in ((5, 4), (6,)) if m.kind not in ("empty", "zero_dim", "channels_last") else ((3, 4, 3, 3),) if m.kind == "channels_last" else ():
        made = {k: v(m, shape) if callable(v) else v for k, v in options.items()}
        yield sample(m.tensor(shape), **made)


def _slopes(x, spacing=1, dim=None, edge_order=1):
    dims = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    spacing = list(spacing) if isinstance(spacing, (list, tuple)) else [1 if spacing is None else spacing]
    spacing = spacing * len(dims) if len(spacing) == 1 else spacing
    return tuple(np.gradient(x, s, axis=d, edge_order=edge_order) for s, d in zip(spacing, dims))


def _slope_dtypes(s):
    dim = s.kwargs.get("dim")
    count = s.specs()[0].dim if dim is None else 1 if isinstance(dim, int) else len(dim)
    return (_float(s),) * count


def _coordinates(m, n):
    spec = m.tensor((n,), m.dtype.name if m.dtype.category == "floating" else "float32", layout="contiguous")
    spec.flat[:n] = np.arange(n) * 1.5 + (np.arange(n) % 2) * 0.25
    return spec


_SLOPES = dict(result=_slope_dtypes, ulps=32, magnitude=lambda x, *a, **k: tuple(np.full(d.shape, 16.0) for d in _slopes(x, *a, **k)),
               extremes=False, infinite="class",
               absent={**_ONE, "empty": "needs samples", "zero_dim": "needs a dimension", "special": "differences of infinities",
                       "bool": "no numbers", "complex": "numbers of two parts"})


@with_options
def _curve(m, **options):
    for shape in m.shapes():
        if shape and 0 not in shape:
            yield sample(m.tensor(shape), **options)


def _curve_at(m):
    for shape in m.shapes():
        if shape and 0 not in shape:
            y = m.tensor(shape)
            yield sample(y, m.tensor(shape, y.dtype), dim=0)


def _cumulative(y, x=None, dx=1.0, dim=-1):
    from scipy.integrate import cumulative_trapezoid

    return cumulative_trapezoid(y, x, dx, dim) if y.shape[dim] > 1 else np.take(y, range(0), dim)


def _area(y, x=None, dx=1.0, dim=-1):
    return np.asarray(np.trapezoid(y, x, dx, dim))


_AREAS = dict(ulps=16, magnitude=lambda y, *a, **k: np.full(np.shape(_area(y, *a, **k)), 100.0), extremes=False, infinite="class", result=_float,
              absent={**_ONE, "zero_dim": "needs a dimension", "empty": "needs samples", "special": "differences of infinities",
                      "bool": "no numbers", "integral": "no curve", "complex": "numbers of two parts"})
_RUNNING_AREAS = {**_AREAS, "magnitude": lambda y, *a, **k: np.full(np.shape(_cumulative(y, *a, **k)), 100.0)}


def _reduced(m):
    for shape in m.shapes():
        for dim in reduced_dims(shape):
            yield sample(m.tensor(shape), [dim], bool(m.rng.integers(2)))
        yield sample(m.tensor(shape))


def _nansum(x, dim=None, keepdim=False, dtype=None):
    x = x.astype(np.int64) if x.dtype.kind in "bi" else x
    return np.asarray(np.nansum(x, None if dim is None or not x.ndim else tuple(dim), keepdims=keepdim))


def _nanmean(x, dim=None, keepdim=False, dtype=None):
    axis = None if dim is None or not x.ndim else tuple(dim)
    with np.errstate(all="ignore"):
        return np.asarray(np.nansum(x, axis, keepdims=keepdim) / np.sum(~np.isnan(x), axis, keepdims=keepdim))


def _observations(m):
    if m.kind not in ("zero_dim", "channels_last", "empty"):
        yield sample(m.tensor((3, 6)))
        yield sample(m.tensor((7,)))


def _weighted(m):
    for s in _observations(m):
        x = s.args[0]
        n = x.shape[-1]
        fweights = m.tensor((n,), "int64", domain=(1, 4), layout="contiguous")
        fweights.flat[:n] = 1 + np.arange(n) % 3
        yield sample(x, correction=0, fweights=fweights)
        yield sample(x)


def _cov(x, correction=1, fweights=None, aweights=None):
    with np.errstate(all="ignore"):
        return np.asarray(np.cov(x, ddof=correction, fweights=fweights, aweights=aweights))


_COV = dict(ulps=64, extremes=False, infinite="class", magnitude=lambda x, *_, **__: np.full((x.shape[0],) * 2 if x.ndim > 1 else (), 20.0),
            result=_float, refuse=("bool",),
            absent={**_FIXED, "empty": "no observations", "special": "differences of infinities"})

_QUANTILE = dict(result="self", ulps=8, refuse=("bool", "integral", "complex", "float16", "bfloat16"), magnitude=True, extremes=False,
                 infinite="class", absent={**_ONE, **_NONE}, signed_zeros=False)
_SEARCH = dict(refuse=_REAL, absent={"zero_dim": "needs rows", "channels_last": "its rank is fixed", "promotion": "one dtype is asked for",
                                     "special": "a sequence with NaN has no order"})
_SET = {"special": "eq covers it"}
_HIST = dict(refuse=("bool", "integral", "complex", "float16", "bfloat16"), absent={**_ONE, "special": "weights that are not finite"}, ulps=8,
             result=lambda s: (s.specs()[0].dtype, s.specs()[0].dtype))

ROWS = [
    Row("kthvalue", _kth_samples, lambda x, k, d, keep: _with_dims(x, lambda r: _kth(r, k - 1), d, keep), errors=_no_such,
        absent={**_ONE, **_NONE}, **_PAIR),
    Row("median.dim", _row_samples, lambda x, d, keep: _with_dims(x, _median, d, keep), absent={**_ONE, **_NONE}, **_PAIR),
    Row("nanmedian.dim", _row_samples, lambda x, d, keep: _with_dims(x, _nanmedian, d, keep), absent={**_ONE, **_NONE}, **_PAIR),
    Row("mode", _row_samples, lambda x, d, keep: _with_dims(x, _mode, d, keep), absent={**_ONE, **_NONE}, **_PAIR),
    Row("median", filled_samples, lambda x: np.asarray(_median(x.reshape(-1))[0]), result="self", refuse=_REAL, signed_zeros=False,
        inner="median", absent={**_ONE, **_NONE}),
    Row("nanmedian", filled_samples, lambda x: np.asarray(_nanmedian(x.reshape(-1))[0]), result="self", refuse=_REAL, signed_zeros=False,
        inner="nanmedian", absent={**_ONE, **_NONE}),
    Row("quantile", _quantiles(True), partial(_quantile, np.quantile), grad_constant=(1,), **_QUANTILE),
    Row("quantile.scalar", _quantiles(False), partial(_quantile, np.quantile), **_QUANTILE),
    Row("nanquantile", _quantiles(True), partial(_quantile, np.nanquantile), grad_constant=(1,), **_QUANTILE),
    Row("nanquantile.scalar", _quantiles(False), partial(_quantile, np.nanquantile), **_QUANTILE),
    Row("_searchsorted", _flagged(_sorted_rows, False, True), _searched, result="int64", direct=True, no_peer="not in PyTorch", **_SEARCH),
    Row("searchsorted.Tensor", _flagged(_sorted_rows, side="right", out_int32=True), _searched, result="int32", inner="searchsorted", **_SEARCH),
    Row("searchsorted.Scalar", _one_number, _searched, result="int64", inner="searchsorted", **_SEARCH),
    Row("bucketize.Tensor", _edges, lambda x, rows: _searched(rows, x), result="int64", inner="searchsorted", **_SEARCH),
    Row("bucketize.Scalar", lambda m: (sample(1, s.args[0]) for s in _one_number(m)), lambda x, rows: _searched(rows, x), result="int64",
        inner="searchsorted", **_SEARCH),
    Row("_histogram_place", unary_samples(-0.6, 0.7, 5.0), _place, operands=(0,), result="float", ulps=8,
        magnitude=lambda x, low, high, bins: np.full(x.shape, bins), refuse=("complex",), direct=True, no_peer="not in PyTorch"),
    Row("histc", unary_samples(5, -2, 3), _histc, result="self", refuse=("bool", "complex"),
        absent={**_ONE, "integral": "parts of equal width have no equal numbers of integers", "special": "numbers next to an edge"}),
    Row("histogram.bins_tensor", _hist_samples, _hist, **_HIST),
    Row("histogram.bin_ct", unary_samples(4, range=(-2.0, 2.0)),
        lambda x, n, range: _hist(x, np.linspace(*range, n + 1)), **_HIST),
    Row("isin.Tensor_Tensor", _sets, lambda a, b, invert=False: np.isin(a, b, invert=invert), result="bool",
        absent={**_SET, "promotion": "eq covers it"}),
    Row("isin.Tensor_Scalar", unary_samples(1), np.isin, result="bool", absent={**_SET, **_ONE}),
    Row("isin.Scalar_Tensor", lambda m: (sample(1, m.tensor(s)) for s in m.shapes()), lambda a, b: np.asarray(np.isin(a, b)), result="bool",
        absent={**_SET, **_ONE}),
    Row("_unique2", unary_samples(True, True, True, domain=(0, 3)), _uniques, direct=True, inner="sort", absent={**_ONE, "special": "the order of NaN is free"}, **_UNIQUE),
    Row("unique_dim", _few_rows, _unique_rows, direct=True, inner="lexsort", absent={**_FIXED, "empty": "slices without elements"}, **_UNIQUE),
    Row("unique_consecutive", unary_samples(True, True, domain=(0, 3)), _runs, direct=True, absent=_ONE,
        result=lambda s: (s.specs()[0].dtype, "int64", "int64")),
    Row("_lexsort", lambda m: (sample(m.tensor((6, 3), domain=(0, 2))) for _ in range(m.kind not in ("zero_dim", "channels_last", "empty"))),
        lambda x: np.lexsort(x.T[::-1]), result="int64", direct=True, no_peer="not in PyTorch", refuse=_REAL,
        absent={**_FIXED, "empty": "an order of nothing"}),
    Row("cummax", dim_samples, partial(_running, np.maximum), absent=_ONE, **_PAIR),
    Row("cummin", dim_samples, partial(_running, np.minimum), absent=_ONE, **_PAIR),
    Row("cummaxmin_backward", _running_backward_samples, _running_backward, result="self", ulps=4, magnitude=True, direct=True, grad_constant=(1,),
        no_peer="PyTorch's is an operator of its own", absent={**_FIXED, "empty": "cummax covers it", "special": "sums of infinities",
        "bool": "no gradients", "integral": "no gradients", "complex": "no gradients"}),
    Row("logcumsumexp", dim_samples, _logcumsumexp, result="self", ulps=16, magnitude=lambda x, d: np.abs(x) + 3, refuse=("bool", "integral"), absent=_ONE,
        complex_ulps=64, domain=(-1.5, 1.5), extremes=False, infinite="class"),
    Row("diff", unary_calls((), (2, 0), least=1), lambda x, n=1, d=-1: np.diff(x, n, d), result="self", ulps=2, magnitude=lambda x, *_: np.full(np.diff(x, *_[:1] or [1], axis=_[1] if len(_) > 1 else -1).shape, 32.0),
        extremes=False, infinite="class", absent={**_ONE, "zero_dim": "needs a dimension"}),
    Row("gradient.scalarint", _slope_samples(spacing=2), _slopes, **_SLOPES),
    Row("gradient.scalararray", _slope_samples(spacing=0.5, dim=[0], edge_order=2), _slopes, **_SLOPES),
    Row("gradient.array", _slope_samples(dim=[-1]), _slopes, **_SLOPES),
    Row("gradient.scalarrayint", _slope_samples(spacing=lambda m, s: [2.0] * len(s)), _slopes, **_SLOPES),
    Row("gradient.scalarrayarray", _slope_samples(spacing=[2.0], dim=[0]), _slopes, **_SLOPES),
    Row("gradient.tensorarrayint", _slope_samples(spacing=lambda m, s: [_coordinates(m, n) for n in s]), _slopes,
        grad_samples=lambda m: (), **_SLOPES),
    Row("gradient.tensorarray", _slope_samples(spacing=lambda m, s: [_coordinates(m, s[0])], dim=[0], edge_order=2), _slopes,
        grad_samples=lambda m: (), **_SLOPES),
    Row("trapezoid.x trapz.x", _curve_at, _area, **_AREAS),
    Row("trapezoid.dx trapz.dx", _curve(dx=0.5), _area, **_AREAS),
    Row("cumulative_trapezoid.x", _curve_at, _cumulative, **_RUNNING_AREAS),
    Row("cumulative_trapezoid.dx", _curve(dx=0.5), _cumulative, **_RUNNING_AREAS),
    Row("nansum", _reduced, _nansum, result="sum", refuse=_REAL, ulps=4, magnitude=True, extremes=False, infinite="class", absent=_ONE),
    Row("nanmean", _reduced, _nanmean, result="self", refuse=_FLOATS, ulps=8, magnitude=True, extremes=False, infinite="class", absent=_ONE),
    Row("cov", _weighted, _cov, **_COV),
    Row("corrcoef", _observations, lambda x: np.asarray(np.corrcoef(x)), **{**_COV, "magnitude": lambda x: np.ones((x.shape[0],) * 2 if x.ndim > 1 else ())}),
]  # fmt: skip
