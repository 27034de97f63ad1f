"""The gradients of convolutions by their inputs and weights, as functions."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, describe as _describe
from .conv import _repeated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Ints


def _by(name: str, rank: int, size: Any, other: Tensor, grad_output: Tensor, wanted: int, options: tuple[Any, ...]) -> Tensor:
    """The gradient by the input (0) or the weight (1), whose shape is `size`."""
    for argument, value in (("weight" if wanted == 0 else "input", other), ("grad_output", grad_output)):
        if not isinstance(value, _C.Tensor) or value.dim() != rank + 2:
            shape = list(value.shape) if isinstance(value, _C.Tensor) else _describe(value)
            raise RuntimeError(f"{name}: {argument} must have {rank + 2} dimensions, got {shape}")
    if not isinstance(size, (list, tuple)) or len(size) != rank + 2:
        raise ValueError(f"{name}: the size must be that of {rank + 2} dimensions, got {_describe(size)}")
    stride, padding, dilation, groups = options
    # Its elements are not read.
    absent = grad_output.new_empty([1]).expand(list(size))
    pair = (absent, other) if wanted == 0 else (other, absent)
    numbers = (_repeated(stride, rank), _repeated(padding, rank), _repeated(dilation, rank))
    found = _C.convolution_backward(
        grad_output, *pair, None, *numbers, False, [0] * rank, groups, [wanted == 0, wanted == 1, False]
    )
    return found[wanted]


def conv1d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv1d by an input of this size."""
    return _by("conv1d_input", 1, input_size, weight, grad_output, 0, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv1d by a weight of this size."""
    return _by("conv1d_weight", 1, weight_size, input, grad_output, 1, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv2d by an input of this size."""
    return _by("conv2d_input", 2, input_size, weight, grad_output, 0, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv2d by a weight of this size."""
    return _by("conv2d_weight", 2, weight_size, input, grad_output, 1, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv3d by an input of this size."""
    return _by("conv3d_input", 3, input_size, weight, grad_output, 0, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1, groups: int = 1
) -> Tensor:
    """The gradient of conv3d by a weight of this size."""
    return _by("conv3d_weight", 3, weight_size, input, grad_output, 1, (stride, padding, dilation, groups))


_check_module(globals())
