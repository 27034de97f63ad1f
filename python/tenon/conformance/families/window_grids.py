"""Images at the places of a grid, and grids of affine maps. References take one axis after the other in NumPy."""

from itertools import product

import numpy as np

from ..rows import Row
from ..samples import sample
from .window import _FLOATS, _absent, _images

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_BORDER, _REFLECTION = 1, 2


def _padded(x, size, padding, align):
    if padding == _REFLECTION:
        low, span = (0, size - 1) if align else (-0.5, size)
        away = np.abs(x - low) % (2 * span) if span else 0 * x
        x = np.minimum(away, 2 * span - away) + low
    return np.clip(x, 0, size - 1) if padding else x


def _cubic(t):
    t, a = np.abs(t), -0.75
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    return np.where(t <= 1, near, a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a)


def _taps(g, size, mode, padding, align):
    """Places of elements and their weights."""
    x = (g + 1) * (size - 1) / 2 if align else ((g + 1) * size - 1) / 2
    if mode == _BICUBIC:
        below = np.floor(x)
        return [(_padded(below + i, size, padding, align), _cubic(x - below - i)) for i in range(-1, 3)]
    x = _padded(x, size, padding, align)
    if mode == _NEAREST:
        return [(np.rint(x), np.ones_like(x))]
    below = np.floor(x)
    return [(below, below + 1 - x), (below + 1, x - below)]


def _sampled(image, grid, mode, padding, align):
    rank = image.ndim - 2
    batch = np.arange(image.shape[0]).reshape(-1, *[1] * rank)
    taps = [_taps(grid[..., rank - 1 - d], image.shape[2 + d], mode, padding, align) for d in range(rank)]
    out = np.zeros((image.shape[0], *grid.shape[1:-1], image.shape[1]), image.dtype)
    for chosen in product(*taps):
        inside, weight, index = True, 1.0, [batch, slice(None)]
        for (place, part), size in zip(chosen, image.shape[2:]):
            inside = inside & (place >= 0) & (place <= size - 1)
            weight = weight * part
            index.append(np.clip(place, 0, size - 1).astype(int))
        values = image[tuple(index)]
        out += np.where(inside[..., None], values * weight[..., None], 0)
    return np.moveaxis(out, -1, 1)


def _grid_samples(rank):
    def make(m):
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

    return make


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

ROWS = [
    Row("grid_sampler_2d", _grid_samples(2), _sampled, refuse=_FLOATS, one_dtype=(0, 1), result="self", absent=_REASONS, **_LARGEST),
    Row("grid_sampler_3d", _grid_samples(3), _sampled, refuse=_FLOATS, one_dtype=(0, 1), result="self",
        absent={**_REASONS, "channels_last": "five dimensions"}, **_LARGEST),
    Row("grid_sampler", _grid_samples(2), _sampled, refuse=_FLOATS, one_dtype=(0, 1), result="self", absent=_REASONS, **_LARGEST),
    Row("affine_grid_generator", _affine_samples, _affine, refuse=_FLOATS, result="self", ulps=8,
        magnitude=lambda theta, *_: np.max(np.abs(theta).sum(-1), initial=0.0),
        absent={**_REASONS, "channels_last": "three dimensions"}),
]  # fmt: skip
