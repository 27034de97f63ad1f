"""The operators that derivatives are made of. Their references put gradients where NumPy's own indexing reads values."""

from math import prod

from functools import partial

import numpy as np

from ..dtypes import real_of
from ..rows import Row, unary_calls
from ..samples import sample, with_options

_WHOLE = {c: "gradients are floating numbers" for c in ("bool", "integral")}
_ABSENT = {**_WHOLE, "promotion": "operands must have one dtype", "special": "gradients are copied and added",
           "overlapping": "the layout of a gradient, tried by the derivatives", "zero_dim": "needs a dimension"}  # fmt: skip


def _backward(name, samples, reference, **options):
    options.setdefault("absent", _ABSENT)
    return Row(name, samples, reference, result="self", ulps=8, magnitude=True, infinite="class",
               no_peer="other signatures", **options)


def _shapes(m):
    """Shapes with at least one element along dimension 0."""
    return [s for s in m.shapes() if s and s[0] > 0]


def scattered(read, sizes, grad):
    """Adds `grad` where `read`, applied to a tensor of these sizes, reads."""
    out = np.zeros(prod(sizes), np.asarray(grad).dtype)
    np.add.at(out, np.asarray(read(np.arange(prod(sizes)).reshape(sizes))).reshape(-1), np.asarray(grad).reshape(-1))
    return out.reshape(sizes)


def _of_view(read, *choices, rank):
    """Samples grad, sizes, args; and the reference."""

    def make(m):
        for shape in _shapes(m):
            for choose in choices if len(shape) >= rank else ():
                args = choose(shape)
                grad = read(np.zeros(shape), *args)
                yield sample(m.tensor(grad.shape), list(shape), *args)

    return make, lambda g, sizes, *args: scattered(lambda x: read(x, *args), sizes, g)


def _slice(x, dim, start, end, step):
    return np.moveaxis(np.moveaxis(x, dim, 0)[slice(start, end, step)], 0, dim)


def _unfold(x, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    return np.moveaxis(np.moveaxis(windows, dim, 0)[::step], 0, dim)


def _as_strided_samples(m):
    # An input of six elements from place 3 on, its columns first; the view also shows places around it.
    for size, stride, offset in [((2, 2), (1, 2), 3), ((3, 2), (0, 1), 2), ((2, 3), (2, 1), None), ((4,), (-1,), 10)]:
        yield sample(m.tensor(size), [2, 3], [1, 2], 3, list(size), list(stride), offset)


def _places(sizes, strides, offset, size, stride, view_offset):
    """The places of an input's elements in a storage, and those that a view of it shows."""

    def of(sizes, strides, offset):
        grid = np.indices(sizes).reshape(len(sizes), -1)
        return (offset + np.asarray(strides) @ grid).reshape(sizes)

    return of(sizes, strides, offset), of(size, stride, offset if view_offset is None else view_offset)


def _as_strided(g, *geometry):
    inputs, shown = _places(*geometry)
    storage = np.zeros(20, np.asarray(g).dtype)
    np.add.at(storage, shown.reshape(-1), np.asarray(g).reshape(-1))
    return storage[inputs]


def _elements_samples(m):
    for s in _as_strided_samples(m):
        yield sample(m.tensor((2, 3)), *s.args[1:])


def _elements(x, *geometry):
    inputs, shown = _places(*geometry)
    storage = np.zeros(20, np.asarray(x).dtype)
    storage[inputs] = x
    return storage[shown]


def _gather_samples(m):
    for shape in _shapes(m):
        counts = (2, *shape[1:])
        yield sample(m.tensor(counts), list(shape), 0, m.positions(counts, shape[0]))


def _select_samples(m):
    for shape in _shapes(m):
        yield sample(m.tensor((4, *shape[1:])), list(shape), 0, m.positions([4], shape[0]))


def _index_samples(m):
    for shape in _shapes(m):
        yield sample(m.tensor((3, *shape[1:])), list(shape), [m.positions([3], shape[0])])


def _key(indices):
    return tuple(slice(None) if i is None else i for i in indices)


def _scatter_src_samples(m):
    for shape in _shapes(m):
        counts = (2, *(max(n - 1, 0) for n in shape[1:]))
        yield sample(m.tensor(shape), 0, m.positions(counts, shape[0]), [3, *shape[1:]])


def _scatter_src(g, dim, index, sizes):
    out = np.zeros(sizes, g.dtype)
    for at in np.ndindex(index.shape):
        out[at] = g[(index[at], *at[1:])]
    return out


def _scatter_reduce_samples(m):
    """Gradients of sums; that of `self` is absent where it does not take part."""
    for shape in _shapes(m):
        counts = (2, *shape[1:])
        for include in (True, False):
            index, src = m.positions(counts, shape[0]), m.tensor(counts, m.dtype.name)
            yield sample(m.tensor(shape), m.tensor(shape), 0, index, src, "sum", include, m.tensor(shape))


def _without_written(g, x, dim, index, src, reduce, include, result):
    out = g.copy()
    if not include:
        np.put_along_axis(out, index, 0, dim)
    return out


def _masked_scatter_samples(m):
    for shape in _shapes(m):
        yield sample(m.tensor(shape), m.mask(shape), [prod(shape) + 1])


def _masked_scatter(g, mask, sizes):
    read = g[mask]
    return np.concatenate([read, np.zeros(sizes[0] - read.size, g.dtype)])


def _reduced(m, *extra):
    """Gradients of a reduction along dimension 0, kept and not."""
    for shape in _shapes(m):
        for keep in (False, True):
            yield sample(m.tensor((1, *shape[1:]) if keep else shape[1:]), list(shape), [0], keep)


def _spread(g, sizes, dims, keep):
    return np.broadcast_to(g if keep else np.expand_dims(g, tuple(dims)), sizes)


def _extremum_samples(m):
    for shape in _shapes(m):
        x = m.tensor(shape, domain=(0, 2))
        if m.kind != "grad":
            x.flat[:] = np.rint(x.flat)  # with ties
        top = m.tensor(shape[1:], layout="contiguous")
        top.flat[: prod(shape[1:])] = x.array().max(0).reshape(-1)
        yield sample(m.tensor(shape[1:]), x, top, [0], False)


def _extremum(g, x, top, dims, keep):
    ties = x == np.expand_dims(top, 0)
    return ties / ties.sum(0, keepdims=True) * np.expand_dims(g, 0)


def _chosen_samples(m):
    for shape in _shapes(m):
        yield sample(m.tensor(shape[1:]), 0, m.positions(shape[1:], shape[0]), list(shape), False)


def _chosen(g, dim, indices, sizes, keep):
    return scattered(lambda x: np.take_along_axis(x, np.expand_dims(indices, 0), 0), sizes, g)


def _prod_samples(m):
    for shape in _shapes(m):
        x = m.tensor(shape, domain=(0.5, 2))
        yield sample(m.tensor((), domain=(1, 2)), x, None)


def _prod(g, x, dim):
    flat = x.reshape(-1)
    others = np.array([np.prod(np.delete(flat, i)) for i in range(flat.size)]).reshape(x.shape)
    return g * np.conj(others)


def _permute_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), [*range(1, len(shape)), 0] if shape else [])


@with_options
def _parts_samples(m, sizes_of, *extra_of):
    """Gradients of the parts of a tensor; one may be missing."""
    for shape in _shapes(m):
        for missing in (None, 0):
            parts = [m.tensor(p) for p in sizes_of(shape)]
            if missing is not None and len(parts) > 1:
                parts[missing] = None
            yield sample(parts, list(shape), *(f(shape) for f in extra_of), 0)


def _filled(grads, shapes):
    """Gradients with zeros for those that are missing."""
    kind = next(g for g in grads if g is not None).dtype
    return [np.zeros(p, kind) if g is None else g for g, p in zip(grads, shapes)]


def _halves(shape):
    return [(2, *shape[1:])] * (shape[0] // 2) + ([(shape[0] % 2, *shape[1:])] if shape[0] % 2 else [])


def _first_and_rest(shape):
    return [(1, *shape[1:]), (shape[0] - 1, *shape[1:])]


def _ones(shape):
    return [tuple(shape[1:])] * shape[0]


@with_options
def _spread_samples(m, with_result):
    """Gradients of variances along dimension 0 and of all, kept and not."""
    for shape in _shapes(m):
        for dim, keep in (([0], False), ([0], True), (None, False)):
            sizes = () if dim is None else (1, *shape[1:]) if keep else shape[1:]
            real = real_of(m.dtype.name)
            g, x = m.tensor(sizes, real), m.tensor(shape, m.dtype.name)
            result = [m.tensor(sizes, real, domain=(0.5, 2))] if with_result else []
            yield sample(g, *result, x, dim, 1, keep)


def _centred(x, dim, correction, keep, sign=-1):
    """What the variance's gradient is multiplied by, and how gradients are spread over it."""
    axis = None if dim is None else tuple(dim)
    centre = x.mean(axis, keepdims=True)
    count = x.size // max(centre.size, 1) - correction
    with np.errstate(all="ignore"):
        return (x + sign * centre) / np.float64(count), lambda g: np.reshape(g, centre.shape)


def _var_backward(g, x, dim, correction, keep, sign=-1):
    slope, spread = _centred(x, dim, correction, keep, sign)
    return 2 * spread(g) * slope


def _std_backward(g, result, x, dim, correction, keep, sign=-1):
    slope, spread = _centred(x, dim, correction, keep, sign)
    return spread(g) / spread(result) * slope


_diagonal, _selected = np.diagonal, lambda x, dim, i: np.moveaxis(x, dim, 0)[i]
_wide = {k: v for k, v in _ABSENT.items() if k != "zero_dim"}


def _view_row(name, read, *choices, rank=1):
    samples, reference = _of_view(read, *choices, rank=rank)
    return _backward(name, samples, reference)


ROWS = [
    _view_row("diagonal_backward", _diagonal, lambda s: (0, 0, 1), lambda s: (1, 0, 1), rank=2),
    _view_row("select_backward", _selected, lambda s: (0, 0), lambda s: (-1, -1)),
    _view_row("slice_backward", _slice, lambda s: (0, 1, None, 2), lambda s: (-1, None, None, -1)),
    _view_row("unfold_backward", _unfold, lambda s: (0, 2, 1), lambda s: (0, 1, 1)),
    _backward("as_strided_backward", _as_strided_samples, _as_strided,
              absent={**_ABSENT, "empty": "a gradient of no elements has no places to come from"}),
    _backward("as_strided_elements", _elements_samples, _elements,
              absent={**_ABSENT, "empty": "a gradient of no elements has no places to come from"}),
    _backward("gather_backward", _gather_samples,
              lambda g, sizes, dim, index: scattered(lambda x: np.take_along_axis(x, index, dim), sizes, g)),
    _backward("index_select_backward", _select_samples,
              lambda g, sizes, dim, index: scattered(lambda x: np.take(x, index, dim), sizes, g)),
    _backward("index_backward", _index_samples, lambda g, sizes, index: scattered(lambda x: x[_key(index)], sizes, g)),
    _backward("scatter_src_backward", _scatter_src_samples, _scatter_src),
    _backward("scatter_reduce_self_backward", _scatter_reduce_samples, _without_written, grad_constant=(1, 4, 7)),
    _backward("scatter_reduce_src_backward", _scatter_reduce_samples,
              lambda g, x, dim, index, *_: np.take_along_axis(g, index, dim), grad_constant=(1, 4, 7)),
    _backward("masked_scatter_backward", _masked_scatter_samples, _masked_scatter),
    _backward("sum_backward", _reduced, _spread),
    _backward("mean_backward", _reduced, lambda g, sizes, dims, keep: _spread(g, sizes, dims, keep) / sizes[0]),
    _backward("amax_backward", _extremum_samples, _extremum, grad_constant=(1, 2)),
    _backward("value_selecting_backward", _chosen_samples, _chosen),
    _backward("prod_backward", _prod_samples, _prod),
    _backward("permute_backward", _permute_samples, lambda g, dims: np.transpose(g, np.argsort(dims)), absent=_wide),
    _backward("split_backward", _parts_samples(_halves, lambda s: 2),
              lambda g, sizes, size, dim: np.concatenate(_filled(g, _halves(sizes)))),
    _backward("split_with_sizes_backward", _parts_samples(_first_and_rest, lambda s: [1, s[0] - 1]),
              lambda g, sizes, parts, dim: np.concatenate(_filled(g, _first_and_rest(sizes)))),
    _backward("unbind_backward", _parts_samples(_ones), lambda g, sizes, dim: np.stack(_filled(g, _ones(sizes)))),
    Row("var_backward", _spread_samples(False), _var_backward, result=lambda s: s.args[1].dtype, ulps=16,
        magnitude=partial(_var_backward, sign=1),  # the mean adds to absolute values
        absent=_ABSENT, no_peer="other signatures"),
    Row("std_backward", _spread_samples(True), _std_backward, result=lambda s: s.args[2].dtype, ulps=16, magnitude=partial(_std_backward, sign=1),
        absent=_ABSENT, no_peer="other signatures"),
    _backward("scaled", unary_calls((2,), (1,)), lambda x, factor: x * factor, absent=_wide),
]  # fmt: skip
