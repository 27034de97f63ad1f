"""Windows of images as columns, and back."""

from __future__ import annotations

from ..arguments import check_module as _check_module
from . import spatial as F
from .module import TensorModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor
    from ..types import Ints


class Unfold(TensorModule):
    """Windows of [.., C, H, W] as columns [.., C * kernel, L]."""

    _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(TensorModule):
    """Adds columns [.., C * kernel, L] up to images [.., C, H, W] of `output_size`."""

    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


_check_module(globals())
