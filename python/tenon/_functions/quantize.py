"""Rounding to a grid of integers and back, with the gradient of the identity: what trains a network for quantized arithmetic."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from .results import check_tensor as _check_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor


def _check_range(function: str, input: Tensor, quant_min: int, quant_max: int) -> None:
    _check_tensor(function, "input", input)
    if not input.is_floating_point():
        raise TypeError(f"{function}: input must have a floating-point dtype, got {input.dtype}")
    if quant_min > quant_max:
        raise RuntimeError(f"{function}: quant_min {quant_min} must not be above quant_max {quant_max}")


def _rounded(input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int) -> Tensor:
    """The nearest numbers of the grid; the gradient goes to elements within it."""
    x = input.detach()
    by_scale = 1.0 / scale
    at = x.double() if x.dtype == _C.float64 else x.float()
    steps = _C.round(at * by_scale) + zero_point
    if isinstance(zero_point, _C.Tensor) and zero_point.is_floating_point():
        steps = _C.round(at * by_scale + zero_point)
    inside = (steps >= quant_min) & (steps <= quant_max)
    found = ((_C.where(steps.isnan(), quant_min, steps).clamp(quant_min, quant_max) - zero_point) * scale).to(input.dtype)
    if not (_C.is_grad_enabled() and input.requires_grad):
        return found
    through = _C.where(inside, input, 0)
    return found + (through - through.detach())


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int, quant_max: int
) -> Tensor:
    """(clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale, with the gradient 1 where nothing is
    clamped and 0 elsewhere. Jacob et al. (2018), arXiv:1712.05877."""
    _check_range("fake_quantize_per_tensor_affine", input, quant_min, quant_max)
    for name, value in (("scale", scale), ("zero_point", zero_point)):
        if isinstance(value, _C.Tensor) and value.numel() != 1:
            raise RuntimeError(f"fake_quantize_per_tensor_affine: {name} must be one number, got shape {list(value.shape)}")
    point = zero_point.item() if isinstance(zero_point, _C.Tensor) else zero_point
    if not quant_min <= point <= quant_max:
        raise RuntimeError(f"fake_quantize_per_tensor_affine: zero_point must be between quant_min and quant_max, got {point}")
    step = scale.detach().reshape([]) if isinstance(scale, _C.Tensor) else _C.tensor(scale, dtype=_C.float32)
    return _rounded(input, step, int(point), quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """fake_quantize_per_tensor_affine with a scale and a zero_point for each slice along `axis`."""
    function = "fake_quantize_per_channel_affine"
    _check_range(function, input, quant_min, quant_max)
    _check_tensor(function, "scale", scale)
    _check_tensor(function, "zero_point", zero_point)
    if zero_point.dtype not in (_C.int32, _C.float32, _C.float16):
        raise RuntimeError(f"{function}: zero_point must be int32, float32 or float16, got {zero_point.dtype}")
    if not 0 <= axis < input.dim():
        raise IndexError(f"{function}: axis must be between 0 and {input.dim() - 1}, got {axis}")
    for name, value in (("scale", scale), ("zero_point", zero_point)):
        if list(value.shape) != [input.shape[axis]]:
            raise RuntimeError(f"{function}: {name} must be [{input.shape[axis]}], one for each slice, got {list(value.shape)}")
    if zero_point.numel() and not bool(((zero_point >= quant_min) & (zero_point <= quant_max)).all()):
        raise RuntimeError(f"{function}: zero_point must be between quant_min and quant_max")
    shape = [1] * input.dim()
    shape[axis] = -1
    return _rounded(input, scale.detach().reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


_check_module(globals())
