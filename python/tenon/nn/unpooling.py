"""Layers that undo max pooling, that pool windows at random distances, and that divide by neighbouring channels."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, checked as _checked
from . import sampling as F
from .conv import _repeated
from .module import Module, TensorModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Ints


class _MaxUnpool(Module):
    _function: Any = None
    _axes = 1
    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        super().__init__()
        self.kernel_size = _repeated(kernel_size, self._axes)
        self.stride = _repeated(kernel_size if stride is None else stride, self._axes)
        self.padding = _repeated(padding, self._axes)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """The maxima that MaxPool1d gave, at their places, and zeros elsewhere."""

    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The maxima that MaxPool2d gave, at their places, and zeros elsewhere."""

    _function = staticmethod(F.max_unpool2d)
    _axes = 2


class MaxUnpool3d(_MaxUnpool):
    """The maxima that MaxPool3d gave, at their places, and zeros elsewhere."""

    _function = staticmethod(F.max_unpool3d)
    _axes = 3


class _FractionalMaxPool(Module):
    _function: Any = None
    _axes = 2

    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, axes = type(self).__name__, self._axes
        self.kernel_size = _repeated(kernel_size, self._axes)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: exactly one of output_size and output_ratio must be given")
        self.output_size = None if output_size is None else _repeated(output_size, self._axes)
        self.output_ratio = None if output_ratio is None else _repeated(output_ratio, self._axes)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"{name}: output_ratio must be between 0 and 1, got {output_ratio}")
        if any(len(n) != axes for n in (self.kernel_size, self.output_size, self.output_ratio) if n is not None):
            raise ValueError(f"{name}: kernel_size, output_size and output_ratio must be one number or {axes}")

    def forward(self, input: Tensor) -> Any:
        return self._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maxima of windows [.., C, H, W] whose distances are drawn. Graham (2014), arXiv:1412.6071."""

    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maxima of windows [.., C, D, H, W] whose distances are drawn."""

    _function = staticmethod(F.fractional_max_pool3d)
    _axes = 3


class LocalResponseNorm(TensorModule):
    """input / (k + alpha * m) ** beta, where m is the mean of squares over `size` neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(TensorModule):
    """input / (k + alpha / size * s) ** beta of images [N, C, H, W], where s is the sum of squares over (size - 1) // 2 channels on
    each side. As in PyTorch, the first channel stays in the sums of all channels that are further from it. LocalResponseNorm is
    without that, and takes other dimensions."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        if size < 1:
            raise ValueError(f"CrossMapLRN2d: size must be at least 1, got {size}")
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    @_checked
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: expected input [N, C, H, W], got {list(input.shape)}")
        squares, side = input * input, (self.size - 1) // 2
        channels = squares.shape[1]
        padded = _C.constant_pad_nd(squares, [0, 0, 0, 0, side, side])
        total = sum((padded[:, i : i + channels] for i in range(1, 2 * side + 1)), padded[:, :channels])
        far = _C.arange(channels, device=input.device).reshape(-1, 1, 1) > side
        total = total + _C.where(far, squares[:, :1], 0)
        return input * (total * (self.alpha / self.size) + self.k).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


_check_module(globals())
