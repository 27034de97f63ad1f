"""Counts and reductions of elements that other tensors group."""

from __future__ import annotations

from numbers import Integral as _Integral

from .. import _C
from ..arguments import check_module as _check_module, describe as _describe
from .results import all_into as _all_into, check_tensor as _check_tensor, into as _into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Number


def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many points, the rows of input [..., D], or how much of their `weight` [...], is in each cell of a grid of D axes.

    `bins` is a number of bins, one for each axis, or a list of tensors with the edges of each axis; `range` has the lowest and the
    highest edge of each axis, unless given those of the points. Returns (hist, bin_edges). `density` divides by the sum and by the
    cells' sizes. The last bin of an axis includes its upper edge; other points outside do not count.
    """
    from ..return_types import histogramdd as named

    _check_tensor("histogramdd", "input", input)
    if input.dim() < 2:
        raise RuntimeError(f"histogramdd: expected input [..., D] of at least 2 dimensions, got {list(input.shape)}")
    if not input.is_floating_point():
        raise TypeError(f"histogramdd: not implemented for {input.dtype}; convert it to a floating-point type")
    axes = input.shape[-1]
    points = input.reshape(-1, axes)
    if weight is not None and (weight.shape != input.shape[:-1] or weight.dtype != input.dtype):
        raise RuntimeError(
            f"histogramdd: weight must be {input.dtype} of shape {list(input.shape[:-1])}, got {weight.dtype} {list(weight.shape)}"
        )
    edges = _edges(points, bins, range, axes)
    counts = [len(line) - 1 for line in edges]
    cell = _C.zeros(points.shape[0], dtype=_C.int64, device=input.device)
    inside = _C.ones(points.shape[0], dtype=_C.bool, device=input.device)
    for axis, line in enumerate(edges):
        x = points[:, axis].contiguous()
        place = _C.searchsorted(line, x, right=True) - 1
        place = _C.where(x == line[-1], counts[axis] - 1, place)
        inside = inside & (place >= 0) & (place < counts[axis]) & ~x.isnan()
        cell = cell * counts[axis] + place.clamp(0, counts[axis] - 1)
    weights = _C.ones_like(points[:, 0]) if weight is None else weight.reshape(-1)
    total = 1
    for count in counts:
        total *= count
    hist = points.new_zeros(total).index_add(0, cell, weights * inside).reshape(counts)
    if density:
        hist = hist / hist.sum()
        for axis, line in enumerate(edges):
            hist = hist / line.diff().reshape([-1 if d == axis else 1 for d in _numbers_to(axes)])
    return named((hist, tuple(edges)))  # type: ignore[call-arg]


_numbers_to = range


def _edges(points: Tensor, bins: Any, range: Any, axes: int) -> list[Tensor]:
    """The edges of the bins along each axis."""
    if isinstance(bins, (list, tuple)) and bins and isinstance(bins[0], _C.Tensor):
        if len(bins) != axes or any(not isinstance(b, _C.Tensor) or b.dim() != 1 or len(b) < 1 or b.dtype != points.dtype for b in bins):
            raise RuntimeError(f"histogramdd: bins must be {axes} vectors of edges of dtype {points.dtype}, one for each axis of input")
        if range is not None:
            raise TypeError("histogramdd: range goes with numbers of bins, and bins has edges")
        return [line.contiguous() for line in bins]
    counts = [bins] * axes if isinstance(bins, (int, _Integral)) else bins
    if not isinstance(counts, (list, tuple)) or len(counts) != axes or not all(isinstance(n, _Integral) and int(n) > 0 for n in counts):
        raise RuntimeError(f"histogramdd: bins must be {axes} numbers above 0, one for each axis of input, got {_describe(bins)}")
    if range is not None and len(range) != 2 * axes:
        raise RuntimeError(f"histogramdd: range must have {2 * axes} numbers, the lowest and highest edge of each axis, got {_describe(range)}")
    if range is None and len(points):
        low, high = points.amin(0).tolist(), points.amax(0).tolist()
    else:
        low, high = ([0.0] * axes, [1.0] * axes) if range is None else ([*range[::2]], [*range[1::2]])
    edges = []
    for count, first, last in zip(counts, low, high):
        if not (abs(first) < float("inf") and abs(last) < float("inf")):
            raise RuntimeError(f"histogramdd: the range of an axis must be finite, got [{first}, {last}]")
        if first > last:
            raise RuntimeError(f"histogramdd: the lowest edge of an axis must not be above the highest, got [{first}, {last}]")
        if first == last:
            first, last = first - 0.5, last + 0.5
        edges.append(_C.linspace(first, last, count + 1, dtype=points.dtype, device=points.device))
    return edges


_IDENTITY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
_REDUCES = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Number | None = None,
) -> Tensor:
    """The sum, mean, prod, max or min of consecutive elements along `axis`: segments of `lengths` [..., n], or between `offsets`
    [..., n + 1], whose leading dimensions are those of data before `axis`.

    `initial` is what each segment begins with; without it an empty one gives 0, NaN, 1, -inf or inf. With `unsafe`, lengths are
    not checked.
    """
    _check_tensor("segment_reduce", "data", data)
    if reduce not in _IDENTITY:
        raise RuntimeError(f"segment_reduce: reduce must be one of {', '.join(_IDENTITY)}, got {reduce!r}")
    if indices is not None:
        raise NotImplementedError("segment_reduce: indices are not supported, as in PyTorch; give lengths or offsets")
    if offsets is not None and lengths is None:
        lengths = offsets.diff()
    if not isinstance(lengths, _C.Tensor):
        raise RuntimeError("segment_reduce: lengths or offsets must be given")
    if lengths.dtype not in (_C.int32, _C.int64):
        raise TypeError(f"segment_reduce: lengths must be int32 or int64, got {lengths.dtype}")
    if not data.is_floating_point():
        raise TypeError(f"segment_reduce: not implemented for {data.dtype}; convert it to a floating-point type")
    axis = axis + data.dim() if axis < 0 else axis
    if axis != lengths.dim() - 1 or data.dim() <= axis or data.shape[:axis] != lengths.shape[:-1]:
        raise RuntimeError(
            f"segment_reduce: lengths must be [{', '.join([*map(str, data.shape[:axis]), 'n'])}] for data {list(data.shape)} and axis {axis}, "
            f"got {list(lengths.shape)}"
        )
    if not unsafe and lengths.numel():
        if int(lengths.min()) < 0:
            raise RuntimeError("segment_reduce: lengths must not be negative")
        if not bool((lengths.sum(-1) == data.shape[axis]).all()):
            raise RuntimeError(f"segment_reduce: the sum of lengths must be the size of data along axis {axis}, {data.shape[axis]}")
    rest = data.shape[axis + 1 :]
    sizes = lengths.reshape(-1)
    flat = data.reshape(sizes.numel() and -1, *rest) if data.numel() == 0 else data.reshape(-1, *rest)
    segment = _C.repeat_interleave(_C.arange(sizes.numel(), device=data.device), sizes.to(_C.int64))
    begin = _IDENTITY[reduce] if initial is None else initial
    start = data.new_full((sizes.numel(), *rest), begin)  # type: ignore[arg-type]
    wide = segment.reshape(-1, *([1] * len(rest))).expand(segment.numel(), *rest)
    result = start.scatter_reduce(0, wide, flat[: segment.numel()], _REDUCES[reduce])
    if reduce == "mean":
        count = sizes.reshape(-1, *([1] * len(rest)))
        result = _C.where(count > 0, result / count.clamp(min=1), float("nan") if initial is None else begin)  # type: ignore[call-overload]
    return result.reshape(*lengths.shape, *rest)


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None
) -> Tensor:
    """input with the prod, mean, amax or amin of itself and of the slices of `source` along `dim` that `index` assigns to each of
    its slices; without itself where include_self is False."""
    _check_index_reduce(input, dim, index, source, reduce)
    return _into("index_reduce", _index_reduced(input, dim, index, source, reduce, include_self), out)


def _check_index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> None:
    for name, value in (("input", input), ("index", index), ("source", source)):
        _check_tensor("index_reduce", name, value)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce: reduce must be one of prod, mean, amax, amin, got {reduce!r}")
    if index.dim() > 1 or index.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(f"index_reduce: index must be a vector of int32 or int64, got {index.dtype} {list(index.shape)}")
    if source.dtype != input.dtype:
        raise RuntimeError(f"index_reduce: source must have the dtype of the tensor, {input.dtype}, got {source.dtype}")
    if input.dim() and not -input.dim() <= dim < input.dim():
        raise IndexError(f"index_reduce: dim {dim} is out of range for a tensor of {input.dim()} dimensions")
    shape = list(input.shape)
    if shape:
        shape[dim] = index.numel()
    if list(source.shape) != shape and not (not shape and source.numel() == 1 == index.numel()):
        raise RuntimeError(f"index_reduce: source must be {shape} for a tensor {list(input.shape)} and {index.numel()} indices, got {list(source.shape)}")


def _index_reduced(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool) -> Tensor:
    places = index.reshape(-1).to(_C.int64)
    if input.dim() == 0:
        return input.reshape(1).scatter_reduce(0, places, source.reshape(1), reduce, include_self=include_self).reshape([])
    shape = [1] * input.dim()
    shape[dim] = -1
    return input.scatter_reduce(dim, places.reshape(shape).expand_as(source), source, reduce, include_self=include_self)


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """The positions of elements that are not 0, as nonzero, in `size` rows: the first ones, and then rows of fill_value."""
    _check_tensor("nonzero_static", "input", input)
    if not isinstance(size, (int, _Integral)) or size < 0:
        raise RuntimeError(f"nonzero_static: size must not be negative, got {_describe(size)}")
    found = _C.nonzero(input)[:size]
    rest = found.new_full((size - found.shape[0], found.shape[1]), fill_value)
    return _into("nonzero_static", _C.cat([found, rest]), out)


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Any = None,
) -> Any:
    """batch_norm, with the mean and 1 / sqrt(variance + eps) of each channel of this batch; without training two empty tensors."""
    if running_mean is None or running_var is None:
        if not training:
            raise RuntimeError("native_batch_norm: running_mean and running_var must be given where training is False")
        results = _C._native_batch_norm_legit(input, weight, bias, True, momentum, eps)
    else:
        results = _C._native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if out is None:
        return tuple(results)
    _all_into("native_batch_norm", results, out)
    return tuple(out)


_check_module(globals())
