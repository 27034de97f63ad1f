"""Functions that read or write images at places that other tensors name: grids, places of maxima, random windows."""

from __future__ import annotations

from numbers import Integral as _Integral

from .. import _C
from ..arguments import checked as _checked, describe as _describe
from ..callers import warn as _warn
from .spatial import avg_pool2d as _avg_pool2d, avg_pool3d as _avg_pool3d

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Ints

native_channel_shuffle = _C.channel_shuffle
_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def _aligned(function: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        _warn(f"{function}: give align_corners; unless given it is False, and was True in versions of PyTorch before 1.3")
    return bool(align_corners)


@_checked
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where the elements of a result of `size` are under affine maps, for grid_sample: theta [N, 2, 3] and size [N, C, H, W] give
    [N, H, W, 2], theta [N, 3, 4] and size [N, C, D, H, W] give [N, D, H, W, 3]."""
    aligned = _aligned("affine_grid", align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid: theta must have a floating-point dtype, got {theta.dtype}")
    axes = len(size) - 2
    if axes not in (2, 3):
        raise NotImplementedError(f"affine_grid: size must have 4 or 5 numbers, got {_describe(size)}")
    if theta.dim() != 3 or list(theta.shape[1:]) != [axes, axes + 1]:
        raise ValueError(f"affine_grid: theta must be [N, {axes}, {axes + 1}] for size {list(size)}, got {list(theta.shape)}")
    if min(size) <= 0:
        raise ValueError(f"affine_grid: sizes must be greater than zero, got {list(size)}")
    return _C.affine_grid_generator(theta, size, aligned)


@_checked
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Values of input [N, C, H, W] at the places of grid [N, H2, W2, 2], or of [N, C, D, H, W] at those of [N, D2, H2, W2, 3].

    A place is (x, y) or (x, y, z); -1 and 1 are the outer edges, or with align_corners the centres of the outer elements. Modes:
    bilinear, nearest, bicubic. padding_mode says what is outside: zeros, border or reflection.
    """
    if mode not in _MODES:
        raise ValueError(f"grid_sample: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if padding_mode not in _PADDINGS:
        raise ValueError(f"grid_sample: padding_mode must be one of {', '.join(_PADDINGS)}, got {padding_mode!r}")
    return _C.grid_sampler(input, grid, _MODES[mode], _PADDINGS[padding_mode], _aligned("grid_sample", align_corners))


@_checked
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * m) ** beta, where m is the mean of squares over `size` neighbouring channels. Krizhevsky et al. (2012)."""
    if input.dim() < 3:
        raise ValueError(f"local_response_norm: expected [N, C, ...] of at least 3 dimensions, got {list(input.shape)}")
    if input.numel() == 0:
        return input
    squares = (input * input).unsqueeze(1)
    before, after = size // 2, (size - 1) // 2
    if input.dim() == 3:
        padded = _C.constant_pad_nd(squares, [0, 0, before, after])
        means = _avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        whole = squares.reshape(input.shape[0], 1, input.shape[1], input.shape[2], -1)
        padded = _C.constant_pad_nd(whole, [0, 0, 0, 0, before, after])
        means = _avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).reshape(input.shape)
    return input / (means * alpha + k).pow(beta)


@_checked
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of steps, batch and channels in this order: input [T, B, C], weight [K, C, O] and bias [O] give [T2, B, O]."""
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            f"conv_tbc: expected input [T, B, C], weight [K, C, O] and bias [O], got {list(input.shape)}, {list(weight.shape)} and "
            f"{list(bias.shape)}"
        )
    return _C.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1).contiguous()


# What max_pool undoes.


def _each(function: str, name: str, value: Any, axes: int) -> list[int]:
    """A number for each axis."""
    numbers = list(value) if isinstance(value, (list, tuple)) else [value] * axes
    if len(numbers) != axes or not all(isinstance(n, _Integral) for n in numbers):
        raise ValueError(f"{function}: {name} must be an int or {axes} of them, got {_describe(value)}")
    return numbers


def _unpooled_size(function: str, input: Tensor, kernel: list[int], stride: list[int], padding: list[int], wanted: Any) -> list[int]:
    axes = len(kernel)
    sizes = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input.shape[-axes:], stride, kernel, padding)]
    if wanted is None:
        return sizes
    given = list(wanted)[-axes:] if len(wanted) == axes + 2 else list(wanted)
    if len(given) != axes:
        raise ValueError(f"{function}: output_size must have {axes} or {axes + 2} numbers, got {len(given)}")
    if any(not n - s < g < n + s for n, s, g in zip(sizes, stride, given)):
        raise ValueError(f"{function}: output_size must be less than a stride from {sizes}, which these windows give, got {given}")
    return given


def _unpool(function: str, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any, axes: int) -> Tensor:
    for name, value in (("input", input), ("indices", indices)):
        if not isinstance(value, _C.Tensor):
            raise TypeError(f"{function}: {name} must be a Tensor, got {_describe(value)}")
    kernel = _each(function, "kernel_size", kernel_size, axes)
    strides = kernel if stride is None or stride == [] else _each(function, "stride", stride, axes)
    if min(strides) < 1:
        raise RuntimeError(f"{function}: stride must be greater than zero, got {strides}")
    pads = _each(function, "padding", padding, axes)
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(f"{function}: expected input of {axes + 1} or {axes + 2} dimensions, got {list(input.shape)}")
    if indices.dtype != _C.int64 or indices.shape != input.shape:
        raise RuntimeError(f"{function}: indices must be int64 of the shape of input, {list(input.shape)}, got {indices.dtype} {list(indices.shape)}")
    sizes = _unpooled_size(function, input, kernel, strides, pads, output_size)
    count = 1
    for size in sizes:
        count *= size
    lead = list(input.shape[:-axes])
    if count < 0 or min(sizes) < 0:
        raise RuntimeError(f"{function}: these windows give the size {sizes}; give another padding or output_size")
    if indices.numel() and not indices.is_meta and (int(indices.min()) < 0 or int(indices.max()) >= count):
        raise RuntimeError(f"{function}: indices must be from 0 to {count - 1}, the elements of {sizes}, got {int(indices.min())} to {int(indices.max())}")
    flat = input.new_zeros([*lead, count])
    return flat.scatter(-1, indices.flatten(-axes), input.flatten(-axes)).reshape([*lead, *sizes])


@_checked
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, output_size: Sequence[int] | None = None
) -> Tensor:
    """Maxima of windows [.., C, L] at the places `indices`, which max_pool1d gave, and zeros elsewhere."""
    return _unpool("max_unpool1d", input, indices, kernel_size, stride, padding, output_size, 1)


@_checked
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, output_size: Sequence[int] | None = None
) -> Tensor:
    """Maxima of windows [.., C, H, W] at the places `indices`, which max_pool2d gave, and zeros elsewhere."""
    return _unpool("max_unpool2d", input, indices, kernel_size, stride, padding, output_size, 2)


@_checked
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, output_size: Sequence[int] | None = None
) -> Tensor:
    """Maxima of windows [.., C, D, H, W] at the places `indices`, which max_pool3d gave, and zeros elsewhere."""
    return _unpool("max_unpool3d", input, indices, kernel_size, stride, padding, output_size, 3)


# Windows whose distances are drawn.


def _starts(samples: Tensor, size: int, outputs: int, kernel: int) -> Tensor:
    """Where windows begin along an axis, by a number in [0, 1) for each channel: [N, C, outputs]."""
    last = _C.full((*samples.shape, 1), size - kernel, dtype=_C.int64, device=samples.device)
    if outputs == 1:
        return last
    step = (size - kernel) / (outputs - 1)
    steps = _C.arange(outputs - 1, dtype=samples.dtype, device=samples.device)
    sample = samples.unsqueeze(-1)
    first = ((steps + sample) * step).to(_C.int64) - (sample * step).to(_C.int64)
    return _C.cat([first, last], -1)


def _fractional(
    function: str, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None, axes: int
) -> tuple[Tensor, Tensor]:
    if output_size is None and output_ratio is None:
        raise ValueError(f"{function}: output_size or output_ratio must be given")
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(f"{function}: expected input of {axes + 1} or {axes + 2} dimensions, got {list(input.shape)}")
    kernel, sizes = _each(function, "kernel_size", kernel_size, axes), list(input.shape[-axes:])
    if output_size is None:
        ratios = list(output_ratio) if isinstance(output_ratio, (list, tuple)) else [output_ratio] * axes
        if len(ratios) != axes:
            raise ValueError(f"{function}: output_ratio must be a number or {axes} of them, got {_describe(output_ratio)}")
        outputs = [int(n * r) for n, r in zip(sizes, ratios)]
    else:
        outputs = _each(function, "output_size", output_size, axes)
    if any(o < 1 or k < 1 or o + k - 1 > n for o, k, n in zip(outputs, kernel, sizes)):
        raise RuntimeError(f"{function}: windows of {kernel} cannot give {outputs} outputs of an input {list(input.shape)}; give fewer or smaller ones")
    whole = input if input.dim() == axes + 2 else input.unsqueeze(0)
    batch, channels = whole.shape[:2]
    if samples is None:
        samples = _C.rand(batch, channels, axes, dtype=input.dtype, device=input.device)
    elif list(samples.shape) != [batch, channels, axes]:
        raise RuntimeError(f"{function}: _random_samples must be {[batch, channels, axes]}, got {list(samples.shape)}")
    index = None
    for axis in range(axes):
        # Of images, the first sample is that of the last axis.
        which = axes - 1 - axis if axes == 2 else axis
        begin = _starts(samples[:, :, which], sizes[axis], outputs[axis], kernel[axis])
        at = begin.unsqueeze(-1) + _C.arange(kernel[axis], device=input.device)
        shape = [batch, channels, *([1] * (2 * axes))]
        shape[2 + axis], shape[2 + axes + axis] = outputs[axis], kernel[axis]
        index = at.reshape(shape) if index is None else index * sizes[axis] + at.reshape(shape)
    assert index is not None
    places = index.flatten(2 + axes)
    windows = whole.flatten(2).gather(2, places.flatten(2)).reshape(places.shape)
    values, which_one = windows.max(-1)
    found = places.gather(-1, which_one.unsqueeze(-1)).squeeze(-1)
    return (values, found) if whole is input else (values.squeeze(0), found.squeeze(0))


@_checked
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The maxima of windows [.., C, H, W] whose distances are drawn, and their places. Graham (2014), arXiv:1412.6071."""
    return _fractional("fractional_max_pool2d", input, kernel_size, output_size, output_ratio, _random_samples, 2)


@_checked
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maxima of windows [.., C, H, W] whose distances are drawn, so many as output_size or output_ratio ask for; with
    return_indices also their places. Graham (2014), arXiv:1412.6071."""
    both = fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return both if return_indices else both[0]


@_checked
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The maxima of windows [.., C, D, H, W] whose distances are drawn, and their places."""
    return _fractional("fractional_max_pool3d", input, kernel_size, output_size, output_ratio, _random_samples, 3)


@_checked
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maxima of windows [.., C, D, H, W] whose distances are drawn; with return_indices also their places."""
    both = fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
    return both if return_indices else both[0]
