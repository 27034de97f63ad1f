"""Functions over spatial dimensions: padding, pooling, resizing, folding. nn.functional has them all."""

from __future__ import annotations

import math

from .. import _C
from ..arguments import checked as _checked, named as _named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Ints

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "channel_shuffle",
    "fold",
    "interpolate",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

channel_shuffle, pixel_shuffle, pixel_unshuffle = _C.channel_shuffle, _C.pixel_shuffle, _C.pixel_unshuffle
max_pool1d_with_indices = _C.max_pool1d_with_indices
max_pool2d_with_indices = _C.max_pool2d_with_indices
max_pool3d_with_indices = _C.max_pool3d_with_indices
adaptive_avg_pool1d = _C.adaptive_avg_pool1d


@_checked
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads dimensions from the last one on; `pad` has two widths for each. Modes: constant, reflect, replicate, circular."""
    return _C.pad(input, pad, mode, value)


def _listed(stride: Any) -> Any:
    return [] if stride is None else stride


def _max_pool(values: Any, both: Any) -> Callable[..., Any]:
    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        """The maxima of windows; `stride` is the kernel's size unless given. With return_indices also their places."""
        return (both if return_indices else values)(input, kernel_size, _listed(stride), padding, dilation, ceil_mode)

    both = _named(both, values.__name__)
    max_pool.__name__ = max_pool.__qualname__ = values.__name__
    return max_pool


max_pool1d = _max_pool(_C.max_pool1d, _C.max_pool1d_with_indices)
max_pool2d = _max_pool(_C.max_pool2d, _C.max_pool2d_with_indices)
max_pool3d = _max_pool(_C.max_pool3d, _C.max_pool3d_with_indices)


def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The means of windows [.., C, W]; `stride` is the kernel's size unless given."""
    return _C.avg_pool1d(input, kernel_size, _listed(stride), padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The means of windows [.., C, H, W]; `stride` is the kernel's size unless given."""
    return _C.avg_pool2d(input, kernel_size, _listed(stride), padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The means of windows [.., C, D, H, W]; `stride` is the kernel's size unless given."""
    return _C.avg_pool3d(input, kernel_size, _listed(stride), padding, ceil_mode, count_include_pad, divisor_override)


def _lp_pool(average: Any, largest: Any, rank: int) -> Callable[..., Tensor]:
    def lp_pool(input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False) -> Tensor:
        """The norms of windows: the sum of x ** norm_type, to the power of 1 / norm_type; of infinity the largest absolute value."""
        if norm_type == 0:
            raise ValueError(f"lp_pool{rank}d: norm_type must not be 0")
        if norm_type == math.inf:
            return largest(input.abs(), kernel_size, [] if stride is None else stride, 0, 1, ceil_mode)
        count = math.prod(kernel_size) if isinstance(kernel_size, (list, tuple)) else kernel_size**rank  # type: ignore[operator]
        means = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (_C.sign(means) * _C.relu(_C.abs(means))).mul(count).pow(1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = f"lp_pool{rank}d"
    return _checked(lp_pool)


lp_pool1d = _lp_pool(avg_pool1d, _C.max_pool1d, 1)
lp_pool2d = _lp_pool(avg_pool2d, _C.max_pool2d, 2)
lp_pool3d = _lp_pool(avg_pool3d, _C.max_pool3d, 3)


def _filled(output_size: Any, input: Tensor, rank: int) -> Any:
    """One number for each axis, None standing for the input's size."""
    sizes = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * rank
    if len(sizes) != rank or input.dim() <= rank:
        return sizes  # which the operator refuses
    return [n if s is None else s for s, n in zip(sizes, input.shape[-rank:])]


@_checked
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that divide [.., C, H, W] into `output_size` parts; None keeps a size."""
    return _C.adaptive_avg_pool2d(input, _filled(output_size, input, 2))


@_checked
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that divide [.., C, D, H, W] into `output_size` parts; None keeps a size."""
    return _C.adaptive_avg_pool3d(input, _filled(output_size, input, 3))


def _adaptive_max_pool(function: Any, rank: int) -> Any:
    def with_indices(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> Any:
        """The maxima of windows that divide the input into `output_size` parts, and their places."""
        return function(input, _filled(output_size, input, rank))

    def adaptive_max_pool(input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> Any:
        """The maxima of windows that divide the input into `output_size` parts; with return_indices also their places."""
        both = with_indices(input, output_size)
        return both if return_indices else both[0]

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = function.__name__
    with_indices.__name__ = with_indices.__qualname__ = f"{function.__name__}_with_indices"
    return _checked(adaptive_max_pool), _checked(with_indices)


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(_C.adaptive_max_pool1d, 1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(_C.adaptive_max_pool2d, 2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(_C.adaptive_max_pool3d, 3)

_NEAREST = {
    "nearest": (_C.upsample_nearest1d, _C.upsample_nearest2d, _C.upsample_nearest3d),
    "nearest-exact": (_C._upsample_nearest_exact1d, _C._upsample_nearest_exact2d, _C._upsample_nearest_exact3d),
}
_AREA = (_C.adaptive_avg_pool1d, _C.adaptive_avg_pool2d, _C.adaptive_avg_pool3d)
#: The number of spatial dimensions and the operator.
_SMOOTH = {
    "linear": (1, _C.upsample_linear1d),
    "bilinear": (2, _C.upsample_bilinear2d),
    "bicubic": (2, _C.upsample_bicubic2d),
    "trilinear": (3, _C.upsample_trilinear3d),
}
_ANTIALIAS = {"bilinear": _C._upsample_bilinear2d_aa, "bicubic": _C._upsample_bicubic2d_aa}


def _for_each_axis(value: Any, rank: int, name: str) -> Any:
    if not isinstance(value, (list, tuple)):
        return [value] * rank
    if len(value) != rank:
        raise ValueError(f"interpolate: {name} must have {rank} numbers, one for each spatial dimension, got {value}")
    return list(value)


@_checked
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes [N, C, W], [N, C, H, W] or [N, C, D, H, W] to `size`, or by `scale_factor`.

    Modes: nearest, nearest-exact, linear, bilinear, bicubic, trilinear, area. With antialias, bilinear and bicubic take
    weighted means of all input elements that an element of a smaller result covers.
    """
    if mode not in _SMOOTH and mode not in _NEAREST and mode != "area":
        raise NotImplementedError(f"interpolate: mode must be one of {[*_NEAREST, *_SMOOTH, 'area']}, got {mode!r}")
    if mode not in _SMOOTH and align_corners is not None:
        raise ValueError(f"interpolate: align_corners is for the modes {' | '.join(_SMOOTH)}, got mode {mode!r}")
    if antialias and mode not in _ANTIALIAS:
        raise ValueError(f"interpolate: antialias is for the modes {' | '.join(_ANTIALIAS)}, got mode {mode!r}")
    rank = input.dim() - 2
    if rank not in (1, 2, 3):
        raise NotImplementedError(f"interpolate: input must have 3, 4 or 5 dimensions, got {input.dim()}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: exactly one of size and scale_factor must be given")
    if recompute_scale_factor and size is not None:
        raise ValueError("interpolate: recompute_scale_factor is for scale_factor, but size was given")
    if mode in _SMOOTH and _SMOOTH[mode][0] != rank:
        raise NotImplementedError(
            f"interpolate: mode {mode!r} needs an input of {_SMOOTH[mode][0] + 2} dimensions, got {input.dim()}"
        )
    sizes: Any
    factors: Any
    sizes = factors = None
    if size is not None:
        sizes = _for_each_axis(size, rank, "size")
    else:
        factors = [float(f) for f in _for_each_axis(scale_factor, rank, "scale_factor")]
        if recompute_scale_factor or mode == "area":
            sizes, factors = [math.floor(n * f) for n, f in zip(input.shape[2:], factors)], None
    if mode == "area":
        return _AREA[rank - 1](input, sizes)
    if mode in _NEAREST:
        return _NEAREST[mode][rank - 1](input, sizes, factors)
    function = _ANTIALIAS[mode] if antialias else _SMOOTH[mode][1]
    return function(input, sizes, bool(align_corners), factors)


@_checked
def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The same as `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@_checked
def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """The same as `interpolate` in mode nearest."""
    return interpolate(input, size, scale_factor, "nearest")


@_checked
def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """The same as `interpolate` of [N, C, H, W] in mode bilinear with align_corners."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


@_checked
def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Windows of [.., C, H, W] as columns [.., C * kernel, L]."""
    return _C.im2col(input, kernel_size, dilation, padding, stride)


@_checked
def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Adds columns [.., C * kernel, L] up to images [.., C, H, W] of `output_size`."""
    return _C.col2im(input, output_size, kernel_size, dilation, padding, stride)
