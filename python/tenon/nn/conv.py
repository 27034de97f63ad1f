"""Convolutions of one to three dimensions, and their transposed forms."""

from __future__ import annotations

import math

from .. import _C
from ..arguments import check_module as _check_module
from . import functional, init
from .module import TensorModule, changed_options
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType, Ints

_MODES = ("zeros", "reflect", "replicate", "circular")


def _repeated(value: Any, count: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _Convolution(TensorModule):
    """What all convolutions have: the weight [out, in / groups, *kernel], or [in, out / groups, *kernel] if transposed, and
    the bias [out].

    Weights are initialised by kaiming_uniform_ with a = sqrt(5), the bias uniformly within 1 / sqrt(fan in), as in PyTorch.
    """

    _spatial = 0
    _transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if in_channels < 0 or out_channels < 0:
            raise ValueError(f"{name}: in_channels and out_channels must not be negative, got {in_channels} and {out_channels}")
        if groups <= 0:
            raise ValueError(f"{name}: groups must be a positive integer, got {groups}")
        if in_channels % groups != 0:
            raise ValueError(f"{name}: in_channels {in_channels} must be divisible by groups {groups}")
        if out_channels % groups != 0:
            raise ValueError(f"{name}: out_channels {out_channels} must be divisible by groups {groups}")
        if padding_mode not in _MODES:
            raise ValueError(f"{name}: padding_mode must be one of {_MODES}, got {padding_mode!r}")
        n = self._spatial
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = (tuple(map(int, _repeated(v, n))) for v in (kernel_size, stride, dilation))
        if len(self.kernel_size) != n or not all(isinstance(k, int) and k > 0 for k in self.kernel_size):
            raise ValueError(f"{name}: kernel_size must be {n} positive integers, or one, got {kernel_size!r}")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"{name}: padding must be 'same', 'valid' or numbers, got {padding!r}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError(f"{name}: padding='same' is not supported for strides other than 1, got {self.stride}")
            self.padding: Any = padding
            totals = [d * (k - 1) if padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
            each = [(t // 2, t - t // 2) for t in totals]
        else:
            self.padding = tuple(map(int, _repeated(padding, n)))
            each = [(p, p) for p in self.padding]
        #: As functional.pad takes them: the last dimension first.
        self._reversed_padding_repeated_twice = [p for pair in reversed(each) for p in pair]
        self.output_padding = (0,) * n
        self.transposed, self.padding_mode = self._transposed, padding_mode
        channels = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(_C.empty(*channels, *self.kernel_size, device=device, dtype=dtype))
        self.bias = Parameter(_C.empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
        if self.bias is not None and fan_in > 0:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        zeros, ones = (0,) * self._spatial, (1,) * self._spatial
        text += changed_options(self, padding=zeros, dilation=ones, output_padding=zeros, groups=1)
        if self.bias is None:
            text += ", bias=False"
        return text + changed_options(self, padding_mode="zeros")


class _Conv(_Convolution):
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = _C.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        return self._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Cross-correlation of input [N, C, L] or [C, L] with each filter, plus a bias; see functional.conv1d."""

    _spatial, _function = 1, staticmethod(functional.conv1d)


class Conv2d(_Conv):
    """Cross-correlation of input [N, C, H, W] or [C, H, W] with each filter, plus a bias; see functional.conv2d."""

    _spatial, _function = 2, staticmethod(functional.conv2d)


class Conv3d(_Conv):
    """Cross-correlation of input [N, C, D, H, W] or [C, D, H, W] with each filter, plus a bias; see functional.conv3d."""

    _spatial, _function = 3, staticmethod(functional.conv3d)


class _ConvTranspose(_Convolution):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'{type(self).__name__}: only "zeros" padding mode is supported, got {padding_mode!r}')
        if isinstance(padding, str):
            raise ValueError(f"{type(self).__name__}: padding must be numbers, got {padding!r}")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.output_padding = _repeated(output_padding, self._spatial)

    def _output_padding(self, input: Tensor, output_size: Any) -> Any:
        """What makes a result of the spatial size `output_size`."""
        if output_size is None:
            return self.output_padding
        n = self._spatial
        batched = input.dim() == n + 2
        output_size = list(output_size)
        if len(output_size) == input.dim():
            output_size = output_size[input.dim() - n :]
        if len(output_size) != n:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {n} or {input.dim()} elements, got "
                f"{len(output_size)}"
            )
        least = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(
                input.shape[1 + batched :], self.stride, self.padding, self.dilation, self.kernel_size
            )
        ]
        most = [size + s - 1 for size, s in zip(least, self.stride)]
        if any(not low <= size <= high for size, low, high in zip(output_size, least, most)):
            raise ValueError(
                f"{type(self).__name__}: requested an output size of {output_size}, but valid sizes range from {least} to "
                f"{most} (for an input of {list(input.shape[1 + batched:])})"
            )
        return tuple(size - low for size, low in zip(output_size, least))

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        more = self._output_padding(input, output_size)
        return self._function(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    """The transposed convolution of input [N, C, L] or [C, L]; see functional.conv_transpose1d."""

    _spatial, _function = 1, staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The transposed convolution of input [N, C, H, W] or [C, H, W]; see functional.conv_transpose2d."""

    _spatial, _function = 2, staticmethod(functional.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """The transposed convolution of input [N, C, D, H, W] or [C, D, H, W]; see functional.conv_transpose3d."""

    _spatial, _function = 3, staticmethod(functional.conv_transpose3d)


_check_module(globals())
