"""Padding layers: widths before and after each spatial dimension, from the last one on."""

from __future__ import annotations

from ..arguments import check_module as _check_module, checked as _checked
from . import spatial as F
from .module import TensorModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from ..types import Ints


class _Padding(TensorModule):
    _rank: Any = None
    _mode: Any = None

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        given = isinstance(padding, (list, tuple))
        self.padding: Any = tuple(padding) if given else (padding,) * (2 * self._rank)  # type: ignore[arg-type]

    @_checked
    def forward(self, input: Tensor) -> Tensor:
        if self._mode == "circular" and input.dim() not in (self._rank + 1, self._rank + 2):
            raise ValueError(
                f"{type(self).__name__}: expected an input of {self._rank + 1} or {self._rank + 2} dimensions, "
                f"got {input.dim()}"
            )
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadding(_Padding):
    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadding(_ConstantPadding):
    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPadding):
    """Pads the last dimension with a value."""

    _rank = 1


class ConstantPad2d(_ConstantPadding):
    """Pads the last two dimensions with a value."""

    _rank = 2


class ConstantPad3d(_ConstantPadding):
    """Pads the last three dimensions with a value."""

    _rank = 3


class ZeroPad1d(_ZeroPadding):
    """Pads the last dimension with zeros."""

    _rank = 1


class ZeroPad2d(_ZeroPadding):
    """Pads the last two dimensions with zeros."""

    _rank = 2


class ZeroPad3d(_ZeroPadding):
    """Pads the last three dimensions with zeros."""

    _rank = 3


class ReflectionPad1d(_Padding):
    """Pads [.., C, W] with its elements, reflected at the border."""

    _rank, _mode = 1, "reflect"


class ReflectionPad2d(_Padding):
    """Pads [.., C, H, W] with its elements, reflected at the border."""

    _rank, _mode = 2, "reflect"


class ReflectionPad3d(_Padding):
    """Pads [.., C, D, H, W] with its elements, reflected at the border."""

    _rank, _mode = 3, "reflect"


class ReplicationPad1d(_Padding):
    """Pads [.., C, W] with the elements at its border."""

    _rank, _mode = 1, "replicate"


class ReplicationPad2d(_Padding):
    """Pads [.., C, H, W] with the elements at its border."""

    _rank, _mode = 2, "replicate"


class ReplicationPad3d(_Padding):
    """Pads [.., C, D, H, W] with the elements at its border."""

    _rank, _mode = 3, "replicate"


class CircularPad1d(_Padding):
    """Pads [.., C, W] with the elements of the other end."""

    _rank, _mode = 1, "circular"


class CircularPad2d(_Padding):
    """Pads [.., C, H, W] with the elements of the other end."""

    _rank, _mode = 2, "circular"


class CircularPad3d(_Padding):
    """Pads [.., C, D, H, W] with the elements of the other end."""

    _rank, _mode = 3, "circular"


_check_module(globals())
