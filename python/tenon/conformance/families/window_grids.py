"""Images at the places of a grid, and grids of affine maps. References take one axis after the other in NumPy."""

from itertools import product

import numpy as np

from ..rows import Row
from ..samples import sample, with_options
from .window import _FLOATS, _absent, _images

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_BORDER, _REFLECTION = 1, 2


def _padded(x, size, padding, align):
    """A place in the image, and the slope of that place by x."""
    slope = np.ones_like(x)
    if padding == _REFLECTION:
        low, span = (0, size - 1) if align else (-0.5, size)
        away = np.abs(x - low) % (2 * span) if span else 0 * x
        slope = np.where((x > low) == (away < span), 1.0, -1.0) if span else 0 * x
        x = np.minimum(away, 2 * span - away) + low
    if padding:
        slope = np.where((x > 0) & (x < size - 1), slope, 0.0)
        x = np.clip(x, 0, size - 1)
    return x, slope


def _cubic(t):
    """The weight of an element at a distance, and its slope."""
    sign, t, a = np.sign(t), np.abs(t), -0.75
    weight = np.where(t <= 1, (a + 2) * t**3 - (a + 3) * t**2 + 1, a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a)
    return weight, sign * np.where(t <= 1, 3 * (a + 2) * t**2 - 2 * (a + 3) * t, 3 * a * t**2 - 10 * a * t + 8 * a)


def _taps(g, size, mode, padding, align):
    """Places of elements, their weights, and the slopes of those by the coordinate."""
    half = (size - 1) / 2 if align else size / 2
    x = (g + 1) * (size - 1) / 2 if align else ((g + 1) * size - 1) / 2
    if mode == _BICUBIC:
        below = np.floor(x)
        parts = [(below + i, *_cubic(x - below - i)) for i in range(-1, 3)]
        return [(_padded(place, size, padding, align)[0], weight, slope * half) for place, weight, slope in parts]
    x, slope = _padded(x, size, padding, align)
    if mode == _NEAREST:
        return [(np.rint(x), np.ones_like(x), 0 * x)]
    below, slope = np.floor(x), slope * half
    return [(below, below + 1 - x, -slope), (below + 1, x - below, slope)]


def _elements(shape, grid, mode, padding, align):
    """For each element that the places are made of: its index in the image, whether it is inside, its weight, the slopes of that."""
    rank = len(shape) - 2
    batch = np.arange(shape[0]).reshape(-1, *[1] * rank)
    taps = [_taps(grid[..., rank - 1 - d], shape[2 + d], mode, padding, align) for d in range(rank)]
    for chosen in product(*taps):
        inside, weight, index = True, 1.0, [batch, slice(None)]
        for (place, part, _), size in zip(chosen, shape[2:]):
            inside = inside & (place >= 0) & (place <= size - 1)
            weight = weight * part
            index.append(np.clip(place, 0, size - 1).astype(int))
        slopes = [np.prod([part[2 if d == e else 1] for e, part in enumerate(chosen)], 0) for d in range(rank)]
        yield tuple(index), inside[..., None], weight[..., None], np.stack(slopes[::-1], -1)


def _sampled(image, grid, mode, padding, align):
    out = np.zeros((image.shape[0], *grid.shape[1:-1], image.shape[1]), image.dtype)
    for index, inside, weight, _ in _elements(image.shape, grid, mode, padding, align):
        out += np.where(inside, image[index] * weight, 0)
    return np.moveaxis(out, -1, 1)


def _by_input(grad, image, grid, mode, padding, align):
    out, grad = np.zeros_like(image), np.moveaxis(grad, 1, -1)
    for index, inside, weight, _ in _elements(image.shape, grid, mode, padding, align):
        np.add.at(out, index, np.where(inside, grad * weight, 0))
    return out


def _by_grid(grad, image, grid, mode, padding, align):
    out, grad = np.zeros_like(grid), np.moveaxis(grad, 1, -1)
    for index, inside, _, slopes in _elements(image.shape, grid, mode, padding, align):
        out += np.where(inside, image[index] * grad, 0).sum(-1, keepdims=True) * slopes
    return out


@with_options
def _grid_samples(m, rank):
    if m.kind == "grad":
        # Places between elements are then between whole and half numbers of the grid.
        shape, counts = (1, 2, *[3] * rank), [2] * rank
    else:
        shape, counts = next(iter(_images(m, rank)), None), [3, 2, 2][:rank]
    if shape is None:
        return
    modes = (_BILINEAR, _NEAREST, _BICUBIC) if m.kind in ("plain", "grad") else (_BILINEAR,)
    for mode, padding, align in product(modes, range(3), (True, False)):
        if m.kind == "grad" and (not align or (mode == _NEAREST and padding)):
            continue
        yield sample(m.tensor(shape), m.tensor((shape[0], *counts, rank), domain=(-1.7, 1.7)), mode, padding, align)


@with_options
def _gradient_samples(m, rank):
    """Gradients of the result, before the arguments of the samples."""
    for s in _grid_samples(rank)(m):
        image, grid = s.args[:2]
        yield sample(m.tensor([*image.shape[:2], *grid.shape[1:-1]]), *s.args)


def _affine(theta, size, align):
    """Coordinates of every element, the last axis first, and 1; times the maps."""
    lines = [np.linspace(-1, 1, n) * (1 if align else (n - 1) / n) if n > 1 else np.zeros(1) for n in size[2:]]
    axes = np.meshgrid(*lines, indexing="ij")
    places = np.stack([*axes[::-1], np.ones_like(axes[0])], -1)
    return np.einsum("...k,njk->n...j", places, theta)


def _affine_samples(m):
    if m.kind in ("zero_dim", "channels_last"):
        return
    for rank, align in product((2, 3), (True, False)):
        n = m.size(2)
        yield sample(m.tensor((n, rank, rank + 1)), [n, 3, 4, 1, 3][: rank + 2], align)


_REASONS = {"special": "places of no image", **_absent(2)}
#: The largest element, which bounds every weighted mean, and cubic ones nearly.
_LARGEST = {"magnitude": lambda x, g, *_: np.max(np.abs(x), initial=0.0), "ulps": 64}
_BACKWARD = {"refuse": _FLOATS, "one_dtype": (0, 1, 2), "absent": _REASONS}


def _slope_scale(grad, image, grid, *_):
    return grad.size * max(image.shape) * np.max(np.abs(grad), initial=0.0) * np.max(np.abs(image), initial=0.0)


ROWS = [
    Row("grid_sampler_2d grid_sampler", _grid_samples(2), _sampled, refuse=_FLOATS, one_dtype=(0, 1), result="self", absent=_REASONS, **_LARGEST),
    Row("grid_sampler_3d", _grid_samples(3), _sampled, refuse=_FLOATS, one_dtype=(0, 1), result="self",
        absent={**_REASONS, "channels_last": "five dimensions"}, **_LARGEST),
    Row("_grid_sampler_input_backward", _gradient_samples(2), _by_input, result="self",
        magnitude=lambda grad, *_: grad.size * np.max(np.abs(grad), initial=0.0), ulps=64, **_BACKWARD),
    Row("_grid_sampler_grid_backward", _gradient_samples(3), _by_grid, result="self", magnitude=_slope_scale, ulps=64,
        **{**_BACKWARD, "absent": {**_BACKWARD["absent"], "channels_last": "five dimensions"}}),
    Row("_grid_sampler_slopes", _gradient_samples(2), _by_grid, result="self", magnitude=_slope_scale, ulps=64, **_BACKWARD),
    Row("affine_grid_generator", _affine_samples, _affine, refuse=_FLOATS, result="self", ulps=8,
        magnitude=lambda theta, *_: np.max(np.abs(theta).sum(-1), initial=0.0),
        absent={**_REASONS, "channels_last": "three dimensions"}),
]  # fmt: skip
