"""Convolutions."""

from functools import partial
from itertools import islice, product

import numpy as np

from ..rows import Row
from ..samples import sample

_ABSENT = {"zero_dim": "the rank is fixed"}
_ABSENT_1D = {**_ABSENT, "channels_last": "the rank is fixed"}


def _numbers(value, spatial):
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * spatial if len(numbers) == 1 else numbers


def _products(x, w, multiply, stride, padding, dilation, groups):
    """Calls multiply(out channels, in channels, tap, window) for every tap of every group, with the window's elements at that tap."""
    spatial = w.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    sizes = [(padded.shape[i + 2] - dilation[i] * (w.shape[i + 2] - 1) - 1) // stride[i] + 1 for i in range(spatial)]
    ins, outs = w.shape[1], w.shape[0] // groups
    for g in range(groups):
        for tap in product(*map(range, w.shape[2:])):
            window = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, s, n in zip(tap, dilation, stride, sizes)
            )
            channels = slice(g * ins, (g + 1) * ins)
            multiply(slice(g * outs, (g + 1) * outs), channels, tap, padded[(slice(None), channels, *window)])
    return sizes


def _forward(x, w, bias, stride, padding, dilation, groups):
    probe = []
    sizes = _products(x, w, lambda *a: probe.append(a), stride, padding, dilation, groups)
    out = np.zeros([x.shape[0], w.shape[0], *sizes], np.result_type(x, w))
    for outs, _, tap, window in probe:
        out[:, outs] += np.einsum("nc...,oc->no...", window, w[(outs, slice(None), *tap)])
    return out if bias is None else out + bias.reshape([-1] + [1] * len(sizes))


def _transposed(x, w, bias, stride, padding, output_padding, dilation, groups):
    """Every element of x adds a multiple of the kernel to the result, and so do the zeros around x."""
    spatial, outs, ins = w.ndim - 2, w.shape[1], w.shape[0] // groups
    reach = [d * (k - 1) + 1 + more for d, k, more in zip(dilation, w.shape[2:], output_padding)]
    sizes = [(n - 1) * s + r - 2 * p for n, s, r, p in zip(x.shape[2:], stride, reach, padding)]
    around = [r // s + 1 for r, s in zip(reach, stride)]
    x = np.pad(x, [(0, 0), (0, 0), *((a, a) for a in around)])
    full = [(n - 1) * s + r for n, s, r in zip(x.shape[2:], stride, reach)]
    out = np.zeros([x.shape[0], outs * groups, *full], np.result_type(x, w))
    for g in range(groups):
        for tap in product(*map(range, w.shape[2:])):
            channels = slice(g * ins, (g + 1) * ins)
            places = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, s, n in zip(tap, dilation, stride, x.shape[2:])
            )
            where = (slice(None), slice(g * outs, (g + 1) * outs), *places)
            if x.size:
                out[where] += np.einsum("nc...,co->no...", x[:, channels], w[(channels, slice(None), *tap)])
    cut = tuple(slice(a * s + p, a * s + p + n) for a, s, p, n in zip(around, stride, padding, sizes))
    out = out[(slice(None), slice(None), *cut)]
    return out if bias is None else out + bias.reshape([-1] + [1] * spatial)


def _convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    spatial = w.ndim - 2
    stride, padding, dilation, more = (_numbers(v, spatial) for v in (stride, padding, dilation, output_padding))
    if transposed:
        return _transposed(x, w, bias, stride, padding, more, dilation, groups)
    return _forward(x, w, bias, stride, padding, dilation, groups)


def _conv(spatial, x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    batched = x if x.ndim == spatial + 2 else x[None]
    dilated = _numbers(dilation, spatial)
    if isinstance(padding, str):
        totals = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilated, w.shape[2:])]
        batched = np.pad(batched, [(0, 0), (0, 0), *((t // 2, t - t // 2) for t in totals)])
        padding = 0
    out = _convolution(batched, w, bias, stride, padding, dilation, False, 0, groups)
    return out if x.ndim == spatial + 2 else out[0]


def _conv_transpose(spatial, x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    batched = x if x.ndim == spatial + 2 else x[None]
    out = _convolution(batched, w, bias, stride, padding, dilation, True, output_padding, groups)
    return out if x.ndim == spatial + 2 else out[0]


#: (batch, in, out, groups, size, kernel) of one to three dimensions.
_SHAPES = {
    1: [(2, 3, 2, 1, [9], [3]), (1, 4, 6, 2, [7], [2])],
    2: [(2, 2, 3, 1, [5, 4], [3, 2]), (1, 2, 4, 2, [4, 5], [1, 3])],
    3: [(1, 2, 3, 1, [3, 4, 3], [2, 3, 2])],
}


def _operands(m, spatial, transposed=False):
    """input, weight, bias and groups."""
    shapes = _SHAPES[spatial] if m.kind != "grad" else [(1, 2, 4 - spatial, 1, [3, 3, 2][:spatial], [2, 2, 1][:spatial])]
    if m.ranked([0] * (spatial + 2)) is None:
        return
    shapes = shapes if m.kind in ("plain", "special") else shapes[:1]
    for n, ins, outs, groups, size, kernel in shapes:
        n = m.size(n)
        channels = [ins, outs // groups] if transposed else [outs, ins // groups]
        yield m.tensor([n, ins, *size]), m.tensor([*channels, *kernel]), m.tensor([outs]), groups
    if m.kind == "empty" and not transposed:
        yield m.tensor([2, 0, *shapes[0][4]]), m.tensor([3, 0, *shapes[0][5]]), m.tensor([3]), 1


def _ranks(m):
    """Spatial dimensions of operators that take any number of them."""
    return (1, 2, 3) if m.kind in ("plain", "special", "empty") else (2,)


def _few(samples):
    """As with_options, and one sample where dtypes are paired, which are many."""
    return lambda *options: lambda m: islice(samples(m, *options), 1 if m.kind == "promotion" else None)


@_few
def _samples(m, spatial):
    for k, (x, w, b, groups) in enumerate(_operands(m, spatial)):
        yield sample(x, w, b, groups=groups)
        yield sample(x, w, stride=[2] * spatial, padding=[1] * spatial, groups=groups)
        dilation = [1, 2, 1] if k == 0 else [1, 1, 1]
        yield sample(x, w, b, padding=list(range(spatial)), dilation=dilation[:spatial], groups=groups)


@_few
def _padding_samples(m, spatial):
    for x, w, b, groups in _operands(m, spatial):
        yield sample(x, w, b, padding="same", groups=groups)
        yield sample(x, w, padding="same", dilation=[2] * spatial, groups=groups)
        yield sample(x, w, stride=[2] * spatial, padding="valid", groups=groups)


@_few
def _transpose_samples(m, spatial):
    for x, w, b, groups in _operands(m, spatial, transposed=True):
        if m.kind != "grad":
            yield sample(x, w, b, groups=groups)
        ones = [1] * spatial
        yield sample(x, w, stride=[2] * spatial, padding=ones, output_padding=ones, groups=groups)
        if m.kind != "grad" or spatial == 1:
            yield sample(x, w, b, stride=[3] * spatial, dilation=[2] * spatial, groups=groups)


@_few
def _convolution_samples(m):
    for spatial in _ranks(m):
        ones, zeros = [1] * spatial, [0] * spatial
        for x, w, b, groups in _operands(m, spatial):
            yield sample(x, w, b, ones, zeros, ones, False, zeros, groups)
            yield sample(x, w, None, [2], [1], [1], False, [0], groups)
        for x, w, b, groups in _operands(m, spatial, transposed=True):
            yield sample(x, w, b, [2] * spatial, ones, ones, True, ones, groups)
            yield sample(x, w, None, ones, zeros, [2] * spatial, True, zeros, groups)


def _weight_gradient(grad, x, size, stride, padding, dilation, transposed, groups):
    spatial = len(size) - 2
    stride, padding, dilation = (_numbers(v, spatial) for v in (stride, padding, dilation))
    if transposed:
        grad, x = x, grad
    out = np.zeros(size, np.result_type(grad, x))

    def multiply(outs, _, tap, window):
        cut = tuple(slice(0, n) for n in grad.shape[2:])
        both = window[(slice(None), slice(None), *cut)]
        places = "xyz"[:spatial]
        out[(outs, slice(None), *tap)] = np.einsum(f"no{places},nc{places}->oc", grad[:, outs], both)

    _products(x, out, multiply, stride, padding, dilation, groups)
    return out


def _geometries(m):
    for spatial in _ranks(m):
        ones, zeros = [1] * spatial, [0] * spatial
        for transposed in (False, True):
            for x, w, _, groups in _operands(m, spatial, transposed):
                yield x, w, ones, zeros, ones, transposed, zeros, groups
                if m.kind != "grad":
                    yield x, w, [2] * spatial, ones, ones, transposed, [int(transposed)] * spatial, groups


def _result_sizes(x, w, *geometry):
    return list(_convolution(np.zeros(x.shape), np.zeros(w.shape), None, *geometry).shape)


@_few
def _gradient_samples(m):
    for x, w, *geometry, more, groups in _geometries(m):
        yield sample(m.tensor(_result_sizes(x, w, *geometry, more, groups)), x, list(w.shape), *geometry, groups)


def _backward(grad, x, w, bias_sizes, stride, padding, dilation, transposed, more, groups, mask):
    spatial = w.ndim - 2
    by_input = np.zeros(x.shape, np.result_type(grad, w))
    if transposed:
        full = _convolution(grad, np.conj(w), None, stride, padding, dilation, False, 0, groups)
        by_input = full[tuple(slice(0, n) for n in x.shape)]
    elif x.size:
        s, p, d = (_numbers(v, spatial) for v in (stride, padding, dilation))
        lacks = [
            x.shape[i + 2] - ((grad.shape[i + 2] - 1) * s[i] - 2 * p[i] + (w.shape[i + 2] - 1) * d[i] + 1)
            for i in range(spatial)
        ]
        by_input = _convolution(grad, np.conj(w), None, stride, padding, dilation, True, lacks, groups)
    by_weight = _weight_gradient(grad, np.conj(x), w.shape, stride, padding, dilation, transposed, groups)
    by_bias = grad.sum(axis=(0, *range(2, grad.ndim)))
    return by_input, by_weight, by_bias


@_few
def _backward_samples(m):
    for x, w, *geometry in _geometries(m):
        sizes = _result_sizes(x, w, *geometry)
        yield sample(m.tensor(sizes), x, w, [sizes[1]], *geometry, [True, True, True])


def _row(name, samples, reference, **options):
    options.setdefault("one_dtype", (0, 1, 2))
    absent = _ABSENT_1D if "1d" in name else _ABSENT
    return Row(name, samples, reference, result="self", ulps=4, magnitude=True, absent=absent, refuse=("bool",),
               complex_ulps=8, infinite="class", inner="convolution", **options)


ROWS = [
    _row("_convolution_weight_gradient", _gradient_samples(), _weight_gradient, one_dtype=(0, 1), direct=True),
    _row("conv1d", _samples(1), partial(_conv, 1)),
    _row("conv1d.padding", _padding_samples(1), partial(_conv, 1)),
    _row("conv2d", _samples(2), partial(_conv, 2)),
    _row("conv2d.padding", _padding_samples(2), partial(_conv, 2)),
    _row("conv3d", _samples(3), partial(_conv, 3)),
    _row("conv3d.padding", _padding_samples(3), partial(_conv, 3)),
    _row("conv_transpose1d", _transpose_samples(1), partial(_conv_transpose, 1)),
    _row("conv_transpose2d.input", _transpose_samples(2), partial(_conv_transpose, 2)),
    _row("conv_transpose3d.input", _transpose_samples(3), partial(_conv_transpose, 3)),
    _row("convolution", _convolution_samples(), _convolution),
    _row("convolution_backward", _backward_samples(), _backward),
]  # fmt: skip
