"""The extension fft of the standard: tenon.fft by the standard's names of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from .. import _C
from .._C import Tensor
from ..arguments import check_module as _check_module
from ._base import Device, DType, dims_of, named

Norm = Literal["backward", "ortho", "forward"]

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _along_one(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Tensor:
        return function(x, n, axis, norm)

    return named(call, name)


def _along_several(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward") -> Tensor:
        return function(x, s, axes, norm)

    return named(call, name)


fft = _along_one("fft", _C.fft_fft)
ifft = _along_one("ifft", _C.fft_ifft)
rfft = _along_one("rfft", _C.fft_rfft)
irfft = _along_one("irfft", _C.fft_irfft)
hfft = _along_one("hfft", _C.fft_hfft)
ihfft = _along_one("ihfft", _C.fft_ihfft)
fftn = _along_several("fftn", _C.fft_fftn)
ifftn = _along_several("ifftn", _C.fft_ifftn)
rfftn = _along_several("rfftn", _C.fft_rfftn)
irfftn = _along_several("irfftn", _C.fft_irfftn)


def _frequencies(name: str, function: Callable[..., Tensor], n: int, d: float, dtype: DType, device: Device) -> Tensor:
    if dtype is not None and not dtype.is_floating_point:
        raise ValueError(f"{name}: expected `dtype` real and floating, got {dtype}")
    return function(n, d, dtype=dtype, device=device)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Device = None) -> Tensor:
    return _frequencies("fftfreq", _C.fft_fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType = None, device: Device = None) -> Tensor:
    return _frequencies("rfftfreq", _C.fft_rfftfreq, n, d, dtype, device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    return _C.fft_fftshift(x, dims_of(x, axes))


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    return _C.fft_ifftshift(x, dims_of(x, axes))


_check_module(globals())
