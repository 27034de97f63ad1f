"""Padding, pooling, resizing, folding. References are matrices along each axis, or NumPy's own padding and indexing."""

from functools import partial
from itertools import product
from math import floor, prod

import numpy as np

from .. import axis_matrices as axes
from ..rows import ONE_OPERAND as _ONE, Row, shape_calls, unary_calls
from ..samples import sample, with_options

_FLOATS = ("bool", "integral", "complex")
_WHOLE = ("bool", "integral")


def _absent(rank, **more):
    fixed = {"zero_dim": "the rank is fixed", "promotion": "one operand, or one dtype", **more}
    return fixed if rank > 1 else {**fixed, "channels_last": "the rank is fixed"}


def _images(m, rank, single=True):
    """Shapes with `rank` spatial dimensions: a batch, and unless `single` is false where the kind allows it none."""
    spatial = {1: (7,), 2: (5, 6), 3: (4, 5, 4)}[rank]
    if m.kind == "grad":
        spatial = {1: (5,), 2: (4, 3), 3: (2, 3, 2)}[rank]  # a Jacobian has the product of two sizes
    if m.kind == "zero_dim" or (m.kind == "channels_last" and rank == 1):
        return
    yield (m.size(2), 2, *spatial)
    if single and m.kind not in ("channels_last", "empty", "grad"):
        yield (3, *spatial)


@with_options
def _image_samples(m, rank, calls, *extra, single=True):
    """An image with each of `calls(m, rank)`."""
    for shape in _images(m, rank, single):
        for call in calls(m, rank):
            yield sample(m.tensor(shape), *call, *extra)


# Padding

_MODES = {"reflection": ("reflect", 0), "replication": ("edge", 1), "circular": ("wrap", 2)}


def _pads(m, rank):
    if m.kind == "grad" and rank == 3:
        yield ([1, 0, 0, 1, 1, 0],)
        yield ([-1, 1, 1, -1, -1, 1],)
        return
    yield ([1, 2] * rank,)
    if m.kind in ("plain", "grad"):
        yield ([0, 1] + [2, 0] * (rank - 1),)
        yield ([-1, 1] + [1, -1] * (rank - 1),)


def _padded(mode, x, pad, *_):
    for i in range(len(pad) // 2):
        places = axes.pad_places(x.shape[-1 - i], pad[2 * i], pad[2 * i + 1], mode)
        x = np.take(x, places, x.ndim - 1 - i)
    return x


def _pad_matrices(sizes, pad, mode):
    rank = len(pad) // 2
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in range(rank)][::-1]
    return [axes.places_matrix(axes.pad_places(n, *p, mode), n) for n, p in zip(sizes[-rank:], pairs)]


def _grown(shape, pad):
    shape = list(shape)
    for i in range(len(pad) // 2):
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    return shape


@with_options
def _pad_back_samples(m, rank, mode, with_self):
    for shape in _images(m, rank):
        for (pad,) in _pads(m, rank):
            grad = m.tensor(_grown(shape, pad))
            yield sample(grad, m.tensor(shape), pad) if with_self else sample(grad, list(shape), pad, _MODES[mode][1])


def _constant_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), [])
        if shape:
            yield sample(m.tensor(shape), [1, 2], m.number(1, 0))
            yield sample(m.tensor(shape), [2, -1] if shape[-1] else [2, 0])
        if len(shape) > 1:
            yield sample(m.tensor(shape), [1, 0, 2, 1])
            yield sample(m.tensor(shape), [0, 1] + [1, 0] * (len(shape) - 1), 1)
        if m.dtype.floating and shape and m.kind != "empty":
            yield sample(m.tensor(shape), [1, 1], -0.5 if m.dtype.category == "floating" else 1 - 2j)


def _constant(x, pad, value=0):
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    if not pairs:
        return x
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    out = np.pad(x, [(max(b, 0), max(a, 0)) for b, a in pairs], constant_values=np.asarray(value).astype(x.dtype))
    return out[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(out.shape, pairs))]


def _constant_back_samples(m):
    for s in _constant_samples(m):
        if m.dtype.floating:
            x, pad = s.args[:2]
            yield sample(m.tensor(_grown(x.shape, pad)), pad)


def _mode_calls(m, rank):
    yield ([1, 2, 0, 1],)
    yield [1, 1], "constant", 1.0
    for mode in ("reflect", "replicate", "circular"):
        yield [1, 2, 2, 0], mode


def _by_mode(x, pad, mode="constant", value=None):
    if mode == "constant":
        return _constant(x, pad, value or 0)
    return _padded({"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode], x, pad)


_LINEAR = dict(ulps=16, magnitude=True, infinite="class", result="self")
_GRADIENT = dict(**_LINEAR, no_peer="other signatures")
_NO_EXTREMES = {"special": "gradients are copied and added"}


def _pad_rows():
    yield Row("constant_pad_nd", _constant_samples, _constant, result="self", absent={"promotion": "one operand"})
    yield Row("constant_pad_nd_backward", _constant_back_samples, lambda g, pad: _constant(g, [-p for p in pad]), result="self",
              no_peer="other signatures",
              absent={"promotion": "one operand", "zero_dim": "nothing is padded", **{c: "no gradients" for c in _WHOLE}})  # fmt: skip
    yield Row("pad", _image_samples(2, _mode_calls), _by_mode, result="self", inner="constant_pad_nd", absent=_absent(2), no_peer="", call=None)
    yield Row("_pad_circular", _image_samples(2, _pads), partial(_padded, "wrap"), result="self", absent=_absent(2))
    yield Row("_pad_axes", _image_samples(2, _pads, 2), partial(_padded, "wrap"), result="self", absent=_absent(2), inner="_pad_circular")
    yield Row("_pad_axes_backward", _pad_back_samples(2, "circular", False),
              lambda g, sizes, pad, _: axes.back(_pad_matrices(sizes, pad, "wrap"), g), refuse=_WHOLE, inner="_pad_circular_backward",
              absent=_absent(2, **_NO_EXTREMES), **_GRADIENT)  # fmt: skip
    for name in ("reflection", "replication"):
        for rank in (1, 2, 3):
            mode = _MODES[name][0]
            yield Row(f"{name}_pad{rank}d", _image_samples(rank, _pads), partial(_padded, mode), result="self", absent=_absent(rank))
            yield Row(f"{name}_pad{rank}d_backward", _pad_back_samples(rank, name, True),
                      lambda g, x, pad, mode=mode: axes.back(_pad_matrices(x.shape, pad, mode), g), refuse=_WHOLE, one_dtype=True,
                      grad_constant=(1,), absent=_absent(rank, **_NO_EXTREMES), **_LINEAR)  # fmt: skip


# Pooling


def _average_calls(m, rank):
    """kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"""
    yield [2] * rank, [], [0] * rank, False, True, None
    yield [3] * rank, [2] * rank, [1] * rank, True, False, None
    if m.kind in ("plain", "channels_last"):
        yield [3] * rank, [1] * rank, [1] * rank, False, True, None
        yield [2, 3, 2][:rank], [3] * rank, [1] * rank, True, True, None
        if rank > 1:
            yield [2] * rank, [1] * rank, [1] * rank, False, True, 3


@with_options
def _average_samples(m, rank, inner=False):
    for shape in _images(m, rank):
        for call in _average_calls(m, rank):
            yield sample(m.tensor(shape), *(call if rank > 1 or inner else call[:-1]))


def _average(rank, x, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor=None):
    return axes.apply(axes.averages(x.shape[-rank:], kernel, stride, padding, ceil_mode, count_include_pad, divisor), x)


@with_options
def _average_back_samples(m, rank, with_self):
    for shape in _images(m, rank):
        for call in _average_calls(m, rank):
            if not call[1]:
                call = (call[0], call[0], *call[2:])
            grad = [*shape[:-rank], *(len(a) for a in axes.averages(shape[-rank:], *call))]
            yield sample(m.tensor(grad), m.tensor(shape) if with_self else list(shape), *call)


def _average_back(rank, g, x, *call):
    sizes = x.shape if isinstance(x, np.ndarray) else x
    return axes.back(axes.averages(sizes[-rank:], *call), g)


def _max_calls(m, rank):
    """kernel_size, stride, padding, dilation, ceil_mode"""
    yield [2] * rank, [], [0] * rank, [1] * rank, False
    yield [3] * rank, [2] * rank, [1] * rank, [1] * rank, True
    if m.kind in ("plain", "channels_last", "special"):
        yield [2] * rank, [1] * rank, [1] * rank, [2] * rank, False
        yield [3, 2, 2][:rank], [1, 3, 2][:rank], [1, 0, 1][:rank], [1] * rank, True


def _largest(x, rank, ranges):
    """The largest element over the product of each output's ranges, and its place; what comes first, or the last NaN."""
    sizes = x.shape[-rank:]
    batch = x.shape[:-rank]
    values = np.zeros((*batch, *map(len, ranges)), x.dtype)
    places = np.zeros(values.shape, np.int64)
    for o in product(*(range(len(r)) for r in ranges)):
        best = place = None
        for i in product(*(ranges[a][o[a]] for a in range(rank))):
            v, at = x[(..., *i)], np.ravel_multi_index(i, sizes)
            if best is None:
                best, place = v.copy(), np.full(batch, at)
            else:
                wins = (v > best) | (v != v)
                best, place = np.where(wins, v, best), np.where(wins, at, place)
        values[(..., *o)], places[(..., *o)] = best, place
    return values, places


def _maximum(rank, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
    kernel, padding, dilation = axes.each(kernel, rank), axes.each(padding, rank), axes.each(dilation, rank)
    stride = axes.each(stride, rank) if stride else kernel
    ranges = []
    for size, k, s, p, d in zip(x.shape[-rank:], kernel, stride, padding, dilation):
        starts = axes.window_starts(size, k, s, p, d, ceil_mode)
        ranges.append([[i for i in range(b, b + k * d, d) if 0 <= i < size] for b in starts])
    return _largest(x, rank, ranges)


def _adaptive_sizes(m, rank):
    return ([2] * rank,), ([3, 1, 5][:rank],)


def _adaptive_max(rank, x, size):
    parts = [axes.parts(n, count) for n, count in zip(x.shape[-rank:], size)]
    return _largest(x, rank, [[range(*p) for p in part] for part in parts])


@with_options
def _adaptive_back_samples(m, rank, with_self):
    for shape in _images(m, rank):
        for (size,) in _adaptive_sizes(m, rank):
            grad = m.tensor((*shape[:-rank], *size))
            yield sample(grad, m.tensor(shape)) if with_self else sample(grad, list(shape), size)


def _adaptive_back(rank, g, x, *_):
    sizes = x.shape if isinstance(x, np.ndarray) else x
    return axes.back(axes.adaptive(sizes[-rank:], g.shape[-rank:]), g)


def _scattered(g, sizes, places, rank):
    out = np.zeros((prod(sizes[:-rank]), prod(sizes[-rank:])), g.dtype)
    g, places = g.reshape(len(out), -1) if len(out) else g.reshape(0, 0), places.reshape(len(out), -1) if len(out) else places
    for row in range(len(out)):
        np.add.at(out[row], places[row].astype(int), g[row])
    return out.reshape(sizes)


@with_options
def _max_back_samples(m, rank, kind):
    """A gradient, and places inside of each window: those of a maximum, for `kind` in the forms of three operators."""
    for shape in _images(m, rank):
        if kind == "adaptive":
            calls = [((), partial(_adaptive_max, rank), c) for c in _adaptive_sizes(m, rank)]
        else:
            calls = [(c, partial(_maximum, rank), c) for c in _max_calls(m, rank)]
        for arguments, reference, call in calls:
            where = reference(m.rng.permutation(prod(shape)).reshape(shape), *call)[1]
            indices = m.positions(where.shape, 1)
            indices.array()[...] = where
            grad = m.tensor(where.shape)
            if kind == "inner":
                yield sample(grad, list(shape), indices, rank)
            else:
                yield sample(grad, m.tensor(shape), *arguments, indices)


def _max_back(rank, kind):
    if kind == "inner":
        return lambda g, sizes, places, _: _scattered(g, sizes, places, rank)
    return lambda g, x, *rest: _scattered(g, x.shape, rest[-1], rank)


def _pool_rows():
    pair = dict(result=lambda s: (s.specs()[0].dtype, "int64"), refuse=("bool", "complex"))
    back = dict(_LINEAR, refuse=_FLOATS)
    yield Row("_avg_pool", _average_samples(2, True), partial(_average, 2), refuse=_FLOATS, inner="avg_pool2d", absent=_absent(2), **_LINEAR)
    yield Row("_avg_pool_backward", _average_back_samples(2, False), partial(_average_back, 2), inner="avg_pool2d_backward",
              absent=_absent(2, **_NO_EXTREMES), **back)  # fmt: skip
    yield Row("_adaptive_avg_pool", _image_samples(2, _adaptive_sizes), lambda x, size: axes.apply(axes.adaptive(x.shape[-2:], size), x), refuse=_FLOATS,
              inner="adaptive_avg_pool2d", absent=_absent(2), **_LINEAR)  # fmt: skip
    yield Row("_adaptive_avg_pool_backward", _adaptive_back_samples(2, False), partial(_adaptive_back, 2),
              inner="adaptive_avg_pool2d_backward", absent=_absent(2, **_NO_EXTREMES), **back)  # fmt: skip
    yield Row("_max_pool", _image_samples(2, _max_calls), partial(_maximum, 2), inner="max_pool2d", absent=_absent(2), **pair)
    yield Row("_max_pool_values", _image_samples(2, _max_calls), lambda *a: _maximum(2, *a)[0], inner="max_pool2d", absent=_absent(2), result="self",
              refuse=("bool", "complex"))  # fmt: skip
    yield Row("_adaptive_max_pool", _image_samples(2, _adaptive_sizes), partial(_adaptive_max, 2), inner="adaptive_max_pool2d", absent=_absent(2), **pair)
    yield Row("_max_pool_backward", _max_back_samples(2, "inner"), _max_back(2, "inner"), grad_constant=(2,), inner="max_pool backward",
              absent=_absent(2, **_NO_EXTREMES, **{c: "no gradients" for c in _WHOLE}), **_GRADIENT)  # fmt: skip
    for rank in (1, 2, 3):
        absent, no_extremes = _absent(rank), _absent(rank, **_NO_EXTREMES)
        name = f"pool{rank}d"
        yield Row(f"avg_{name}", _average_samples(rank), partial(_average, rank), refuse=_FLOATS, absent=absent, **_LINEAR)
        yield Row(f"max_{name}_with_indices", _image_samples(rank, _max_calls), partial(_maximum, rank), inner=f"max_{name}", absent=absent, **pair)
        yield Row(f"max_{name}", _image_samples(rank, _max_calls), lambda *a, rank=rank: _maximum(rank, *a)[0], result="self",
                  refuse=("bool", "complex"), absent=absent)  # fmt: skip
        yield Row(f"adaptive_avg_{name}", _image_samples(rank, _adaptive_sizes), lambda x, size, rank=rank: axes.apply(axes.adaptive(x.shape[-rank:], size), x),
                  refuse=_FLOATS, absent=absent, **_LINEAR)  # fmt: skip
        yield Row(f"adaptive_max_{name}", _image_samples(rank, _adaptive_sizes), partial(_adaptive_max, rank), absent=absent, **pair)
        if rank == 1:
            continue
        one = dict(back, one_dtype=True, grad_constant=(1,))
        whole = {c: "no gradients" for c in _WHOLE}
        yield Row(f"_adaptive_avg_{name}", _image_samples(rank, _adaptive_sizes), lambda x, size, rank=rank: axes.apply(axes.adaptive(x.shape[-rank:], size), x),
                  refuse=_FLOATS, inner=f"adaptive_avg_{name}", absent=absent, **_LINEAR)  # fmt: skip
        yield Row(f"avg_{name}_backward", _average_back_samples(rank, True), partial(_average_back, rank), absent=no_extremes, **one)
        yield Row(f"_adaptive_avg_{name}_backward", _adaptive_back_samples(rank, True), partial(_adaptive_back, rank),
                  inner=f"adaptive_avg_{name}_backward", absent=no_extremes, **one)  # fmt: skip
        for kind, full in (("adaptive", f"adaptive_max_{name}_backward"), ("windows", f"max_{name}_with_indices_backward")):
            yield Row(full, _max_back_samples(rank, kind), _max_back(rank, kind), inner="max_pool backward", one_dtype=(0, 1),
                      grad_constant=(1, 2, 7), absent={**no_extremes, **whole, "complex": "the operator itself refuses it"},
                      **_LINEAR)  # fmt: skip


# Resizing


def _resize_calls(m, rank, corners):
    """output_size, [align_corners,] scales"""
    small = m.kind == "grad" and rank == 3
    sizes = ([4, 3, 3] if small else [9, 8, 3])[:rank]
    yield (sizes, *([False] if corners else []), [None] * rank)
    if m.kind in ("plain", "grad", "channels_last"):
        yield ([4, 3, 2 if small else 6][:rank], *([True] if corners else []), [None] * rank)
        yield (([2, 5, 1] if small else [6, 11, 2])[:rank], *([False] if corners else []), [1.25, 2.0, 0.5][:rank])


@with_options
def _resize_samples(m, rank, corners):
    for shape in _images(m, rank, single=False):
        for *call, scales in _resize_calls(m, rank, corners):
            yield sample(m.tensor(shape), *call, *scales)


def _resize(rank, mode, corners, of_weights, x, size, *rest):
    scales = rest[-rank:] if rest else [None] * rank
    matrices = axes.resized(x.shape[2:], size, mode, corners and rest[0], scales)
    return _take(matrices, x) if mode < 2 else axes.apply(map(of_weights, matrices), x)


def _take(matrices, x):
    """Elements, whatever they are."""
    for i, matrix in enumerate(matrices):
        x = np.take(x, matrix.argmax(1), x.ndim - len(matrices) + i)
    return x


@with_options
def _resize_back_samples(m, rank, corners):
    for shape in _images(m, rank, single=False):
        for size, *call, scales in _resize_calls(m, rank, corners):
            yield sample(m.tensor((*shape[:2], *size)), size, list(shape), *call, *scales)


def _resize_back(rank, mode, corners, of_weights, g, size, sizes, *rest):
    return axes.back(map(of_weights, axes.resized(sizes[2:], size, mode, corners and rest[0], rest[-rank:])), g)


def _vec_calls(corners):
    flags = [True] if corners else []
    return lambda m, rank: (([4, 3, 6][:rank], *flags, None), (None, *flags, [1.5, 2.0, 0.75][:rank]))


def _vec(rank, mode, corners, of_weights, x, size, *rest):
    factors = rest[-1]
    size = size or [floor(n * f) for n, f in zip(x.shape[2:], factors)]
    matrices = axes.resized(x.shape[2:], size, mode, corners and rest[0], factors)
    return _take(matrices, x) if mode < 2 else axes.apply(map(of_weights, matrices), x)


def _inner_resize(of_weights=np.asarray):
    return lambda x, size, mode, corners, scales: axes.apply(map(of_weights, axes.resized(x.shape[2:], size, mode, corners, scales)), x)


def _inner_resize_back(of_weights=np.asarray):
    return lambda g, sizes, mode, corners, scales: axes.back(map(of_weights, axes.resized(sizes[2:], g.shape[2:], mode, corners, scales)), g)


_inner_resize_samples = _image_samples(2, lambda m, rank: (([7, 4], 2, False, []), ([7, 4], 3, True, [])), single=False)


def _inner_resize_back_samples(m):
    for s in _inner_resize_samples(m):
        x, size, *rest = s.args
        yield sample(m.tensor((*x.shape[:2], *size)), list(x.shape), *rest)


#: Cubic weights at places that are rounded to float64, in the reference too.
_CUBIC = 256


def _resize_rows():
    zero = {"special": "weights of zero meet what is infinite"}
    # Weights of cubic kernels may be negative: bounds are of absolute ones.
    inner = dict(refuse=_FLOATS, inner="upsample_b", absent=_absent(2, **zero), reference_ulps=_CUBIC)
    yield Row("_upsample", _inner_resize_samples, _inner_resize(), **{**_LINEAR, **inner, "magnitude": _inner_resize(np.abs)})
    yield Row("_upsample_backward", _inner_resize_back_samples, _inner_resize_back(),
              **{**_GRADIENT, **inner, "magnitude": _inner_resize_back(np.abs)})  # fmt: skip
    names = [(f"upsample_nearest{r}d", r, 0) for r in (1, 2, 3)] + [(f"_upsample_nearest_exact{r}d", r, 1) for r in (1, 2, 3)]
    names += [("upsample_linear1d", 1, 2), ("upsample_bilinear2d", 2, 2), ("upsample_trilinear3d", 3, 2), ("upsample_bicubic2d", 2, 3)]
    names += [("_upsample_bilinear2d_aa", 2, 4), ("_upsample_bicubic2d_aa", 2, 5)]
    for name, rank, mode in names:
        corners = mode > 1
        linear = {**_LINEAR, "reference_ulps": _CUBIC if mode in (3, 5) else 0}
        options = dict(refuse=_FLOATS, absent=_absent(rank, **zero), **linear) if corners else dict(result="self", absent=_absent(rank))

        def row(own, samples, make, rank=rank, mode=mode, corners=corners, **options):
            bound = {"magnitude": partial(make, rank, mode, corners, np.abs)} if options.get("magnitude") else {}
            return Row(own, samples, partial(make, rank, mode, corners, np.asarray), direct=True, **{**options, **bound})

        yield row(name, _resize_samples(rank, corners), _resize, **options)
        yield row(f"{name}.vec", _image_samples(rank, _vec_calls(corners), single=False), _vec, inner=name, **options)
        if not name.startswith("_upsample_nearest"):
            refuse = _FLOATS if corners else _WHOLE
            yield row(f"{name}_backward", _resize_back_samples(rank, corners), _resize_back,
                      **{**linear, "refuse": refuse, "absent": _absent(rank, **zero)})  # fmt: skip


# Folding


def _fold_calls(m, rank):
    """kernel_size, dilation, padding, stride"""
    yield [2, 2], [1, 1], [0, 0], [1, 1]
    if m.kind in ("plain", "grad", "channels_last"):
        yield [2, 3], [1, 1], [1, 1], [2, 1]
        yield [2, 2], [2, 1], [1, 0], [1, 2]


def _places_of_windows(sizes, kernel, dilation, padding, stride):
    """For each place of a window and each window, the element of an image; -1 in the padding."""
    numbers = np.pad(np.arange(prod(sizes)).reshape(sizes), [(p, p) for p in padding], constant_values=-1)
    starts = [range(0, n - d * (k - 1), s) for n, k, d, s in zip(numbers.shape, kernel, dilation, stride)]
    return np.array([[numbers[y + i * dilation[0], x + j * dilation[1]] for y in starts[0] for x in starts[1]]
                     for i in range(kernel[0]) for j in range(kernel[1])])  # fmt: skip


def _im2col(x, *call):
    places = _places_of_windows(x.shape[-2:], *call)
    flat = x.reshape(*x.shape[:-2], prod(x.shape[-2:]))
    columns = np.where(places >= 0, flat[..., places], 0).astype(x.dtype)
    return columns.reshape(*x.shape[:-3], x.shape[-3] * len(places), places.shape[1])


def _col2im_samples(m):
    for shape in _images(m, 2):
        for call in _fold_calls(m, 2):
            places = _places_of_windows(shape[-2:], *call)
            columns = (*shape[:-3], shape[-3] * len(places), places.shape[1])
            yield sample(m.tensor(columns), list(shape[-2:]), *call)


def _col2im(g, sizes, *call):
    places = _places_of_windows(sizes, *call)
    g = g.reshape(*g.shape[:-2], g.shape[-2] // len(places), *places.shape)
    out = np.zeros((*g.shape[:-2], prod(sizes) + 1), g.dtype)
    for i in np.ndindex(places.shape):
        out[..., places[i]] += g[(..., *i)]  # the last one is the padding's
    return out[..., :-1].reshape(*g.shape[:-2], *sizes)


# Moving elements


def _interleave_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), 2)
        for dim in (0, -1) if shape else ():
            yield sample(m.tensor(shape), m.number(0, 1, 3), dim)


@with_options
def _shuffle_samples(m, channels, size):
    if m.kind == "zero_dim":
        return
    yield sample(m.tensor((m.size(2), channels, size, 4)), 2)
    if m.kind not in ("channels_last", "empty"):
        yield sample(m.tensor((channels, size, 2)), 2)


def _pixel_shuffle(x, r):
    *batch, c, h, w = x.shape
    n = len(batch)
    x = x.reshape(*batch, c // r**2, r, r, h, w)
    return np.transpose(x, [*range(n), n, n + 3, n + 1, n + 4, n + 2]).reshape(*batch, c // r**2, h * r, w * r)


def _pixel_unshuffle(x, r):
    *batch, c, h, w = x.shape
    n = len(batch)
    x = x.reshape(*batch, c, h // r, r, w // r, r)
    return np.transpose(x, [*range(n), n, n + 2, n + 4, n + 1, n + 3]).reshape(*batch, c * r**2, h // r, w // r)


def _channel_samples(m):
    for rank in (1, 2):
        for shape in _images(m, rank, single=False):
            yield sample(m.tensor((shape[0], 6, *shape[2:])), 3)


def _channel_shuffle(x, groups):
    n, c, *rest = x.shape
    return x.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(x.shape)


ROWS = [
    *_pad_rows(),
    *_pool_rows(),
    *_resize_rows(),
    Row("im2col", _image_samples(2, _fold_calls), _im2col, result="self", direct=True, absent=_absent(2)),
    Row("col2im", _col2im_samples, _col2im, refuse=_WHOLE, direct=True, absent=_absent(2), **_LINEAR),
    Row("repeat", shape_calls(lambda s: [([2] * len(s) or [3],), ([2, *([1] * len(s))],), ([*([1] * len(s)), 0],)]), np.tile, result="self", absent=_ONE),
    Row("tile", unary_calls(([],), ([2],), ([2, 1, 3],)), np.tile, result="self", absent=_ONE),
    Row("repeat_interleave.self_int", _interleave_samples, np.repeat, result="self", absent=_ONE),
    Row("roll", shape_calls(lambda s: [([2],)] + [([-1], [0]), ([-1], [-1])] * bool(s) + [([1, 7], [0, 1])] * (len(s) > 1)), lambda x, shift, dim=None: np.roll(x, shift, dim) if dim else np.roll(x, shift[0]),
        result="self", inner="narrow", absent=_ONE),
    Row("pixel_shuffle", _shuffle_samples(8, 3), _pixel_shuffle, result="self", absent=_absent(2)),
    Row("pixel_unshuffle", _shuffle_samples(2, 4), _pixel_unshuffle, result="self", absent=_absent(2)),
    Row("channel_shuffle", _channel_samples, _channel_shuffle, result="self", absent=_absent(2)),
]  # fmt: skip
