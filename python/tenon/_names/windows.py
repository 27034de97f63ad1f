"""Window functions: hann_window and its kin, computed in float64."""

from __future__ import annotations

import math

from .. import _C
from ..arguments import _is_int, check_module as _check_module, describe as _describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType


def _window(
    name: str, length: int, periodic: bool, dtype: DType | None, layout: Any, device: Device, requires_grad: bool, value: Callable[..., Tensor]
) -> Tensor:
    """`value` of the places of a window from 0 to 1."""
    wanted = _C.get_default_dtype() if dtype is None else dtype
    if not _is_int(length):
        raise TypeError(f"{name}: window_length must be an int, got {_describe(length)}")
    if not isinstance(periodic, bool):
        raise TypeError(f"{name}: periodic must be a bool, got {_describe(periodic)}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if not (isinstance(wanted, _C.dtype) and wanted.is_floating_point):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {wanted}")
    if layout not in (None, _C.strided):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    steps = length - (not periodic)
    window = value(_C.arange(length, dtype=_C.float64) / steps) if length > 1 else _C.ones(length)
    return window.to(device=device, dtype=wanted).requires_grad_(requires_grad)


def kaiser_shape(x: Tensor, beta: float) -> Tensor:
    """I0(beta sqrt(1 - x²)) / I0(beta) for x from -1 to 1, by scaled functions: for a large `beta` both are beyond the dtype."""
    root = abs(beta) * (1 - x.square()).clamp_min(0).sqrt()
    return _C.special_i0e(root) / _C.special_i0e(_C.full_like(x, abs(beta))) * (root - abs(beta)).exp()


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """A triangle from 0 to 1 and back: [window_length]. A periodic window is the beginning of one that is longer by one."""
    value = lambda x: 1 - (2 * x - 1).abs()
    return _window("bartlett_window", window_length, periodic, dtype, layout, device, requires_grad, value)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """0.42 - 0.5 cos 2πx + 0.08 cos 4πx for x from 0 to 1: [window_length]."""
    value = lambda x: 0.42 - 0.5 * (2 * math.pi * x).cos() + 0.08 * (4 * math.pi * x).cos()
    return _window("blackman_window", window_length, periodic, dtype, layout, device, requires_grad, value)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - beta cos 2πx for x from 0 to 1: [window_length]."""
    value = lambda x: alpha - beta * (2 * math.pi * x).cos()
    return _window("hamming_window", window_length, periodic, dtype, layout, device, requires_grad, value)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """(1 - cos 2πx) / 2 for x from 0 to 1: [window_length]."""
    value = lambda x: 0.5 - 0.5 * (2 * math.pi * x).cos()
    return _window("hann_window", window_length, periodic, dtype, layout, device, requires_grad, value)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *,
    dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2x - 1)²)) / I0(beta) for x from 0 to 1, with the modified Bessel function: [window_length]."""
    value = lambda x: kaiser_shape(2 * x - 1, beta)
    return _window("kaiser_window", window_length, periodic, dtype, layout, device, requires_grad, value)


_check_module(globals())
