"""Padding, pooling and resizing of an axis as a matrix in float64: one row for each output. References of the families."""

from math import ceil, floor

import numpy as np


def along(matrix, x, axis):
    """Sums of products, where factors of zero count nothing."""
    x = np.moveaxis(x, axis, -1)[..., None, :]
    return np.moveaxis(np.where(matrix != 0, matrix * x, 0).sum(-1), -1, axis)


def apply(matrices, x):
    matrices = list(matrices)
    for i, matrix in enumerate(matrices):
        x = along(matrix, x, x.ndim - len(matrices) + i)
    return x


def back(matrices, g):
    return apply([matrix.T for matrix in matrices], g)


def each(value, rank):
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * rank if len(value) == 1 else value


def window_starts(size, kernel, stride, padding, dilation, ceil_mode):
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    starts = [o * stride - padding for o in range((ceil if ceil_mode else floor)(room / stride) + 1)]
    return [s for s in starts if s < size] if ceil_mode else starts


def averages(sizes, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    rank, matrices = len(sizes), []
    kernel, padding = each(kernel, rank), each(padding, rank)
    stride = each(stride, rank) if stride else kernel
    for i, size in enumerate(sizes):
        k, p = kernel[i], padding[i]
        starts = window_starts(size, k, stride[i], p, 1, ceil_mode)
        matrix = np.zeros((len(starts), size))
        for o, start in enumerate(starts):
            inside = range(max(start, 0), min(start + k, size))
            count = min(start + k, size + p) - start if count_include_pad else len(inside)
            matrix[o, list(inside)] = 1 / count if divisor is None else 1 / divisor if i == 0 else 1
        matrices.append(matrix)
    return matrices


def parts(size, outputs):
    return [(o * size // outputs, -(-(o + 1) * size // outputs)) for o in range(outputs)]


def adaptive(sizes, outputs):
    matrices = []
    for size, count in zip(sizes, each(outputs, len(sizes))):
        matrix = np.zeros((count, size))
        for o, (begin, end) in enumerate(parts(size, count)):
            matrix[o, begin:end] = 1 / (end - begin)
        matrices.append(matrix)
    return matrices


def pad_places(size, before, after, mode):
    """The places that a padded axis shows."""
    places = np.arange(size)
    if mode == "wrap":  # of what negative widths leave
        places = places[max(-before, 0) : size - max(-after, 0)]
        return np.pad(places, (max(before, 0), max(after, 0)), mode)
    places = np.pad(places, (max(before, 0), max(after, 0)), mode)
    return places[max(-before, 0) : len(places) - max(-after, 0)]


def places_matrix(places, size):
    return np.eye(size)[np.asarray(places, int)]


def nearest_places(size, outputs, scale, exact):
    step = np.float32(1 / scale) if scale else np.float32(size) / np.float32(outputs)
    found = [floor(np.float32((o + 0.5) * float(step)) if exact else np.float32(o) * step) for o in range(outputs)]
    return [min(p, size - 1) for p in found]


def keys(x, a=-0.75):
    """The cubic kernel of Keys (1981)."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def weighed(distance, cubic):
    """Keys (1981) with a = -0.5, or a triangle."""
    x = np.abs(distance)
    if not cubic:
        return np.maximum(1 - x, 0)
    near, far = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def means(size, count, cubic, align_corners, scale):
    """Resizing with antialias: weights by the distance in outputs, at least one input each."""
    step = ((size - 1) / (count - 1) if count > 1 else 0.0) if align_corners else 1 / scale if scale else size / count
    centers = step * (np.arange(count) + 0.5)
    weights = weighed((np.arange(size) + 0.5 - centers[:, None]) / max(step, 1.0), cubic)
    return weights / weights.sum(1, keepdims=True)


def resized(sizes, outputs, mode, align_corners, scales):
    if mode > 3:
        factors = scales or [None] * len(sizes)
        return [means(*axis[:2], mode == 5, align_corners, axis[2]) for axis in zip(sizes, outputs, factors)]
    matrices = []
    for i, (size, count) in enumerate(zip(sizes, outputs)):
        scale = scales[i] if scales else 0
        if mode < 2:
            matrices.append(places_matrix(nearest_places(size, count, scale, mode == 1), size))
            continue
        matrix = np.zeros((count, size))
        for o in range(count):
            if align_corners:
                x = o * (size - 1) / (count - 1) if count > 1 else 0.0
            else:
                x = (o + 0.5) * (1 / scale if scale else size / count) - 0.5
            if mode == 2:
                x = min(max(x, 0.0), size - 1)
            for t in range(floor(x) - 1, floor(x) + 3):
                weight = keys(x - t) if mode == 3 else max(1 - abs(x - t), 0.0)
                matrix[o, min(max(t, 0), size - 1)] += weight
        matrices.append(matrix)
    return matrices
