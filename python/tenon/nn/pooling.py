"""Pooling layers. An input is [C, ..] or [N, C, ..], with one to three spatial dimensions."""

from __future__ import annotations

from ..arguments import check_module as _check_module
from . import spatial as F
from .module import Module, TensorModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Ints


class _MaxPool(Module):
    _function: Any = None
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool1d(_MaxPool):
    """The maxima of windows of [.., C, W]."""

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The maxima of windows of [.., C, H, W]."""

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The maxima of windows of [.., C, D, H, W]."""

    _function = staticmethod(F.max_pool3d)


class _AvgPool(TensorModule):
    _function: Any = None
    _shown = ("kernel_size", "stride", "padding")
    #: The attributes that the function takes.
    _options: tuple[str, ...] = (*_shown, "ceil_mode", "count_include_pad")

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, *(getattr(self, name) for name in self._options))


def _single(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class AvgPool1d(_AvgPool):
    """The means of windows of [.., C, W]."""

    _function = staticmethod(F.avg_pool1d)

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad


class AvgPool2d(_AvgPool):
    """The means of windows of [.., C, H, W]."""

    _function = staticmethod(F.avg_pool2d)
    _options = (*_AvgPool._options, "divisor_override")

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override


class AvgPool3d(AvgPool2d):
    """The means of windows of [.., C, D, H, W]."""

    _function = staticmethod(F.avg_pool3d)


class _LPPool(TensorModule):
    _function: Any = None
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """The norms of windows of [.., C, W]."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The norms of windows of [.., C, H, W]."""

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The norms of windows of [.., C, D, H, W]."""

    _function = staticmethod(F.lp_pool3d)


class _Adaptive(TensorModule):
    _function: Any = None
    _shown = ("output_size",)

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)


class AdaptiveAvgPool1d(_Adaptive):
    """The means of windows that divide [.., C, W] into `output_size` parts."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """The means of windows that divide [.., C, H, W] into `output_size` parts; None keeps a size."""

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """The means of windows that divide [.., C, D, H, W] into `output_size` parts; None keeps a size."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The maxima of windows that divide [.., C, W] into `output_size` parts."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The maxima of windows that divide [.., C, H, W] into `output_size` parts; None keeps a size."""

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The maxima of windows that divide [.., C, D, H, W] into `output_size` parts; None keeps a size."""

    _function = staticmethod(F.adaptive_max_pool3d)


_check_module(globals())
