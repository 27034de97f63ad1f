"""Linear, Identity, Flatten and Unflatten."""

from __future__ import annotations

import math

from .. import _C
from .._C import linear as _linear
from ..arguments import check_module as _check_module
from . import init
from .module import TensorModule
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType


class Linear(TensorModule):
    """input [..., in_features] -> input @ weight.T + bias, [..., out_features].

    Weights are initialised by kaiming_uniform_ with a = sqrt(5), the bias uniformly within 1 / sqrt(in_features), as in
    PyTorch.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Device = None, dtype: DType = None
    ) -> None:
        super().__init__()
        if in_features < 0 or out_features < 0:
            raise ValueError(f"Linear: in_features and out_features must not be negative, got {in_features} and {out_features}")
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(_C.empty(out_features, in_features, device=device, dtype=dtype))
        self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Flatten(TensorModule):
    """Merges dimensions start_dim to end_dim into one."""

    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(TensorModule):
    """Splits dimension `dim` into dimensions of the sizes `unflattened_size`; one of them may be -1."""

    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: int | str, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if isinstance(dim, str):
            raise NotImplementedError("Unflatten: dimensions with names are not in Tenon")
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError(f"Unflatten: unflattened_size must be ints, got {unflattened_size!r}")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


class Identity(TensorModule):
    """Returns its input; takes any arguments when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


_check_module(globals())
