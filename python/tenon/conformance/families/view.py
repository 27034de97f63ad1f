"""Views, and what joins tensors. NumPy's own views give the strides."""

import sys
from functools import partial

import numpy as np

from ..rows import ONE_OPERAND as _ONE, Row, shape_calls as _with, unary_samples, view
from ..samples import Spec, sample, with_options


@with_options
def _ranks(m, least, most=9):
    for shape in m.shapes():
        if least <= len(shape) <= most:
            yield shape


_strided = np.lib.stride_tricks.as_strided


def _as_strided_samples(m):
    for shape in m.shapes():
        x = m.tensor(shape)
        if len(x.flat) >= 4:
            yield sample(x, [2, 2], [1, 2], 0)
            yield sample(x, [3], [-1], 2)
            yield sample(x, [2, 3], [0, 1], 1)


def _as_strided(x, size, stride, offset):
    base = x if x.base is None else x.base
    while base.base is not None:
        base = base.base
    flat = base.reshape(-1)
    return _strided(flat[offset:], size, [s * flat.itemsize for s in stride])


def _expand_sizes(shape):
    yield ([2, *shape],)
    if not shape or shape[0] == 1:
        yield ([3, *shape[1:]] if shape else [3],)
    yield ([-1] * len(shape),)


def _expand(x, size):
    lead = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if s == -1 else s for i, s in enumerate(size)])


def _chunks(parts, x, n, dim=0):
    size = max(-(-x.shape[dim] // n), 1) if parts else n
    count = n if parts and x.shape[dim] == 0 else max(-(-x.shape[dim] // size), 1)
    return tuple(np.moveaxis(np.moveaxis(x, dim, 0)[i * size : (i + 1) * size], 0, dim) for i in range(count))


def _split_sizes(x, sizes, dim=0):
    return tuple(np.moveaxis(p, 0, dim) for p in _pieces(np.moveaxis(x, dim, 0), sizes))


def _pieces(x, sizes):
    ends = np.cumsum(sizes)
    return [x[end - size : end] for end, size in zip(ends, sizes)]


def _sizes(shape):
    yield ([0, shape[0]], 0)
    yield ([shape[-1] // 2, shape[-1] - shape[-1] // 2], -1)


def _slices(shape):
    yield (0, 1, None, 2)
    yield (-1, None, None, -1)
    yield (0, -2, 100, 1)
    yield (len(shape) - 1, 1, 1, 1)


def _slice(x, dim=0, start=None, end=None, step=1):
    at = [slice(None)] * x.ndim
    at[dim] = slice(start, end, step)
    return x[tuple(at)]


def _flat_sizes(shape):
    n = int(np.prod(shape))
    yield ([n],)
    yield ([1, n],)
    if n:
        yield ([-1, 1],)


def _reshape(x, size):
    return x.reshape(size)


def _flatten(x, start=0, end=-1):
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start % x.ndim, end % x.ndim
    return x.reshape([*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :]])


def _unflatten(x, dim, sizes):
    dim %= x.ndim
    return x.reshape([*x.shape[:dim], *sizes, *x.shape[dim + 1 :]])


def _unflatten_args(shape):
    if shape[-1]:
        yield (-1, [shape[-1], 1])
        yield (0, [1, -1]) if 0 not in shape else (-1, [1, shape[-1]])


def _unfold(x, dim, size, step):
    count = (x.shape[dim] - size) // step + 1
    strides = [*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim]]
    return _strided(x, [*x.shape[:dim], count, *x.shape[dim + 1 :], size], strides)


def _unfold_args(shape):
    if shape and shape[0] >= 2:
        yield (0, 2, 1)
        yield (0, 1, 2)


def _squeeze_dims(x, dim):
    return np.squeeze(x, tuple(d for d in {d % x.ndim for d in dim} if x.shape[d] == 1))


@with_options
def _squeeze_samples(m, *args):
    for shape in m.shapes():
        if shape:
            yield sample(m.tensor([1, *shape, 1]), *args)


def _joined(m):
    for shape in m.shapes():
        if shape and (m.kind != "promotion"):
            other = [*shape]
            other[0] += 1
            yield sample([m.tensor(shape), m.tensor(other)], 0)
            yield sample([m.tensor(shape), m.tensor(shape), m.tensor(shape)], -1)
        elif shape:
            yield sample([m.tensor(shape), m.tensor(shape)], 0)
    if m.kind == "empty":
        yield sample([m.tensor((2, 0)), m.tensor((2, 3)), m.tensor((2, 0))], 1)


def _stacked(m):
    for shape in m.shapes():
        yield sample([m.tensor(shape), m.tensor(shape)], 0)
        yield sample([m.tensor(shape), m.tensor(shape)], -1)


def _promoted(s):
    from ..dtypes import promote

    name = s.args[0][0].dtype
    for other in s.args[0][1:]:
        name = promote(name, other.dtype)
    return name


def _like(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), m.tensor([1, *shape]))


def _sized_like(x, other):
    return x.reshape(other.shape)


def _none(shape):
    yield ()


@with_options
def _lists(m, least=0, most=9, grow=None):
    """Lists of two tensors; the second is longer by one in dimension `grow`."""
    for shape in _ranks(least, most)(m):
        other = list(shape)
        if grow is not None and m.kind != "promotion":
            other[grow] += 1
        yield sample([m.tensor(shape), m.tensor(other)])


def _alone(m):
    for shape in m.shapes():
        yield sample([m.tensor(shape)])


def _of_each(s):
    return tuple(t.dtype for t in s.args[0])


def _grid_samples(m):
    if m.kind in ("channels_last", "zero_dim"):
        return
    yield sample([m.tensor([m.size(3)]), m.tensor([2])])
    yield sample([m.tensor([2]), m.tensor([m.size(3)]), m.tensor([1])])


def _grid_call(tensors, indexing="ij"):
    """By the library that the tensors are of: only its Python takes a list of any length."""
    library = sys.modules[type(tensors[0]).__module__.partition(".")[0]]
    return library.meshgrid(tensors, indexing=indexing)


def _pairs_to_broadcast(m):
    for a, b in m.pairs():
        yield sample([m.tensor(a), m.tensor(b)])


def _indices(shape):
    yield ([1, 2], 0)
    yield ([-1, 1, 9], -1)
    yield ([], 0)


@with_options
def _cubes(m, choose):
    """As _with, of three dimensions at least, which contiguous samples do not have otherwise."""
    yield from _with(choose, 3)(m)
    if m.kind in ("plain", "special"):
        for call in choose((2, 3, 4)):
            yield sample(m.tensor((2, 3, 4)), *call)


def _cut(x, indices, dim=0):
    size = x.shape[dim]
    ends = [slice(None, i).indices(size)[1] for i in indices] + [size]
    starts = [slice(i, None).indices(size)[0] for i in [0, *indices]]
    return tuple(np.moveaxis(np.moveaxis(x, dim, 0)[a:max(a, b)], 0, dim) for a, b in zip(starts, ends))


def _sections(x, count, dim=0):
    size, longer = divmod(x.shape[dim], count)
    ends = np.cumsum([size + (i < longer) for i in range(count)])
    return _cut(x, [int(e) for e in ends[:-1]], dim)


def _at_rank(dim):
    """The dimension that hsplit, vsplit and dsplit cut, and sections that divide it."""
    return lambda shape: [(n,) for n in (1, shape[dim(shape)]) if n]


def _hdim(shape):
    return 0 if len(shape) == 1 else 1


def _given_sections(m):
    for shape in _ranks(1)(m):
        for values, form in (([2], ()), ([1, 2], (2,))):
            given = Spec(np.array(values), "int64", form, (1,) * len(form), 0)
            yield sample(m.tensor(shape), given, 0)


def _by_tensor(x, given, dim=0):
    return _sections(x, int(given), dim) if given.ndim == 0 else _cut(x, given.tolist(), dim)


def _diag_embed(x, offset=0, dim1=-2, dim2=-1):
    side = x.shape[-1] + abs(offset)
    out = np.zeros([*x.shape[:-1], side, side], x.dtype)
    i = np.arange(x.shape[-1])
    out[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


@with_options
def _scatter_samples(m, part, calls, least):
    for shape in _ranks(least)(m):
        for call in calls(shape):
            yield sample(m.tensor(shape), m.tensor(part(np.empty(shape), *call).shape, layout="contiguous"), *call)


def _scattered(part, x, source, *call):
    out = x.copy()
    part(out, *call)[...] = source
    return out


def _diagonal(x, offset=0, dim1=0, dim2=1):
    view = np.moveaxis(x, (dim1, dim2), (-2, -1))
    view = view[..., max(-offset, 0):, max(offset, 0):]
    count = min(view.shape[-2:])
    return _strided(view, [*view.shape[:-2], count], [*view.strides[:-2], view.strides[-2] + view.strides[-1]])


def _select(x, dim, index):
    return np.asarray(np.moveaxis(x, dim, 0)[index])


def _put_selected(x, source, dim, index):
    out = x.copy()
    np.moveaxis(out, dim, 0)[index] = source
    return out


def _as_own_dtype(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), m.dtype.name)


_MOST = dict(absent=_ONE)
_FLAT = dict(absent={**_ONE, "channels_last": "takes two dimensions at most"})
_RANKED = dict(absent={**_ONE, "zero_dim": "needs a dimension"})

_GRID = {"promotion": "one dtype", "channels_last": "vectors", "zero_dim": "vectors"}
_FLAT_RANKED = dict(absent={**_ONE, "channels_last": "takes two dimensions at most", "zero_dim": "needs a dimension"})

_STRIDED = ("transposed", "expanded", "negative", "sliced", "channels_last", "overlapping")
_UNVIEWABLE = {**_ONE, **dict.fromkeys(_STRIDED, "strides that cannot be viewed so are refused; reshape has the sample")}


def _viewable(m):
    return (s for s in _with(_flat_sizes)(m) if m.kind not in _STRIDED)


def _aliased(m):
    """The samples of `view`, with the strides that a view has."""
    for s in _viewable(m):
        x, size = s.args
        want = _reshape(x.array(), size)
        step = x.flat.itemsize
        yield sample(x, list(want.shape), [t // step for t in want.strides])


ROWS = [
    view("alias", lambda x: x, unary_samples(), no_peer="not in PyTorch's module", **_MOST),
    view("as_strided", _as_strided, _as_strided_samples, no_peer="negative strides",
         absent={**_ONE, "empty": "too few elements", "zero_dim": "too few elements", "expanded": "too few elements"}),
    view("broadcast_to expand", _expand, _with(_expand_sizes), **_MOST),
    view("chunk", partial(_chunks, True), _with(lambda s: [(2, 0), (3, -1)], 1), **_RANKED),
    view("detach", lambda x: x, unary_samples(), **_MOST),
    view("diagonal", lambda x, *a: np.diagonal(x, *a), _with(lambda s: [(), (1, 0, 1), (-1, 1, 0)], 2), **_RANKED),
    view("expand_as", lambda x, o: np.broadcast_to(x, o.shape), _like, **_MOST),
    view("flatten.using_ints", _flatten, _with(lambda s: [(), (0, 0)]), **_MOST),
    view("flip", lambda x, dims: np.flip(x, dims), _with(lambda s: [([0],), ([-1],)], 1), no_peer="strides differ on purpose",
         **_RANKED),
    view("mT", lambda x: np.swapaxes(x, -1, -2), _with(_none, 2), call=lambda x: x.mT, **_RANKED),
    view("movedim.int", np.moveaxis, _with(lambda s: [(0, -1), (-1, 0)], 1), **_RANKED),
    view("movedim.intlist", np.moveaxis, _with(lambda s: [([0, 1], [1, 0])], 2), **_RANKED),
    view("narrow", lambda x, d, start, n: _slice(x, d, start, start + n),
         _with(lambda s: [(0, s[0] // 2, s[0] - s[0] // 2), (-1, 0, 0)], 1), **_RANKED),
    view("numpy_T", np.transpose, _with(_none, 0, 2), call=lambda x: x.T, **_FLAT),
    view("permute", np.transpose, _with(lambda s: [(list(range(len(s)))[::-1],)]), **_MOST),
    view("reshape", _reshape, _with(_flat_sizes), **_MOST),
    view("reshape_as view_as", _sized_like, _like, **_MOST),
    view("select.int", lambda x, d, i: np.moveaxis(x, d, 0)[i],
         _with(lambda s: [(0, 0), (-1, -1)] if 0 not in s else [], 1),
         absent={**_ONE, "zero_dim": "needs a dimension", "empty": "nothing to select"}),
    view("slice.Tensor", _slice, _with(_slices, 1), **_RANKED),
    view("split.Tensor", partial(_chunks, False), _with(lambda s: [(2, 0), (3, -1)], 1), **_RANKED),
    view("split.sizes split_with_sizes", _split_sizes, _with(_sizes, 1), **_RANKED),
    view("squeeze", np.squeeze, _squeeze_samples(), **_RANKED),
    view("squeeze.dim", lambda x, d: np.squeeze(x, d) if x.shape[d] == 1 else x, _squeeze_samples(0), **_RANKED),
    view("squeeze.dims", _squeeze_dims, _squeeze_samples([0, -1]), **_RANKED),
    view("t", np.transpose, _with(_none, 0, 2), **_FLAT),
    view("transpose.int", np.swapaxes, _with(lambda s: [(0, -1)], 1), **_RANKED),
    view("unbind.int", lambda x, d=0: tuple(np.moveaxis(x, d, 0)), _with(lambda s: [(), (-1,)], 1), **_RANKED),
    view("unflatten.int", _unflatten, _with(_unflatten_args, 1), **_RANKED),
    view("unfold", _unfold, _with(_unfold_args), **_RANKED),
    view("unsqueeze", lambda x, d: np.expand_dims(x, d), _with(lambda s: [(0,), (-1,)]), **_MOST),
    view("view", _reshape, _viewable, absent=_UNVIEWABLE),
    view("_reshape_alias", lambda x, size, stride: _reshape(x, size), _aliased, absent=_UNVIEWABLE,
         no_peer="not in PyTorch's module"),
    view("_unsafe_view", _reshape, _viewable, absent=_UNVIEWABLE, no_peer="not in PyTorch's module"),
    Row("cat", _joined, lambda xs, dim=0: np.concatenate(xs, dim), result=_promoted, absent={"zero_dim": "needs a dimension"}),
    Row("atleast_1d", unary_samples(), np.atleast_1d, **_MOST),
    Row("atleast_2d", unary_samples(), np.atleast_2d, **_MOST),
    Row("atleast_3d", unary_samples(), np.atleast_3d, **_MOST),
    Row("atleast_1d.Sequence", _alone, lambda xs: (np.atleast_1d(xs[0]),), result=_of_each, **_MOST),
    Row("atleast_2d.Sequence", _alone, lambda xs: (np.atleast_2d(xs[0]),), result=_of_each, **_MOST),
    Row("atleast_3d.Sequence", _alone, lambda xs: (np.atleast_3d(xs[0]),), result=_of_each, **_MOST),
    Row("broadcast_tensors", _pairs_to_broadcast, lambda xs: tuple(np.broadcast_arrays(*xs)), result=_of_each, direct=True),
    Row("column_stack", _lists(), np.column_stack, result=_promoted),
    Row("dstack", _lists(), np.dstack, result=_promoted),
    Row("hstack", _lists(), np.hstack, result=_promoted),
    Row("vstack", _lists(), np.vstack, result=_promoted),
    Row("meshgrid", _grid_samples, lambda xs: tuple(np.meshgrid(*xs, indexing="ij")), result=_of_each, call=_grid_call,
        absent=_GRID),
    Row("meshgrid.indexing", lambda m: (sample(s.args[0], indexing="xy") for s in _grid_samples(m)),
        lambda xs, indexing: tuple(np.meshgrid(*xs, indexing=indexing)), result=_of_each, absent=_GRID),
    Row("diag", _with(lambda s: [(), (1,), (-1,)], 1, 2), np.diag, **_FLAT_RANKED),
    Row("diag_embed", _with(lambda s: [(), (1,), (-2, 0, 1)], 1), _diag_embed, **_RANKED),
    Row("diagonal_scatter", _scatter_samples(_diagonal, lambda s: [(), (1, 0, 1)], 2), partial(_scattered, _diagonal), result="self", **_RANKED),
    Row("select_scatter", _scatter_samples(_select, lambda s: [(0, 0), (-1, -1)] if 0 not in s else [], 1), _put_selected, result="self",
        absent={**_ONE, "zero_dim": "needs a dimension", "empty": "nothing to select"}),
    Row("slice_scatter", _scatter_samples(_slice, lambda s: [(0, 1, None, 2), (-1, 0, -1, 1)], 1), partial(_scattered, _slice), result="self", **_RANKED),
    view("tensor_split.sections", _sections, _with(lambda s: [(2, 0), (3, -1)], 1), **_RANKED),
    view("tensor_split.indices", _cut, _with(_indices, 1), **_RANKED),
    view("tensor_split.tensor_indices_or_sections", _by_tensor, _given_sections, **_RANKED),
    view("hsplit.int", lambda x, n: _sections(x, n, _hdim(x.shape)), _with(_at_rank(_hdim), 1), **_RANKED),
    view("hsplit.array", lambda x, at: _cut(x, at, _hdim(x.shape)), _with(lambda s: [([1],)], 1), **_RANKED),
    view("vsplit.int", lambda x, n: _sections(x, n, 0), _with(_at_rank(lambda s: 0), 2), **_RANKED),
    view("vsplit.array", lambda x, at: _cut(x, at, 0), _with(lambda s: [([1],)], 2), **_RANKED),
    view("dsplit.int", lambda x, n: _sections(x, n, 2), _cubes(_at_rank(lambda s: 2)), **_RANKED),
    view("dsplit.array", lambda x, at: _cut(x, at, 2), _cubes(lambda s: [([1],)]), **_RANKED),
    view("view.dtype", lambda x, name: x, _as_own_dtype, **_MOST),
    Row("stack", _stacked, lambda xs, dim=0: np.stack(xs, dim), result=_promoted),
]  # fmt: skip
