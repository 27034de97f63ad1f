"""Window functions of `M` points, computed in float64. With `sym` False a window is the beginning of one that is longer by one."""

from __future__ import annotations

import math

from .. import _C
from .._names.absent import add_module_getattr
from .._names.windows import kaiser_shape as _kaiser_shape
from ..arguments import _is_int, check_module as _check_module, describe as _describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(
    name: str, M: int, dtype: DType | None, layout: Any, device: Device, requires_grad: bool, value: Callable[[Tensor], Tensor]
) -> Tensor:
    """`value` of 0, 1, ... M - 1."""
    wanted = _C.get_default_dtype() if dtype is None else dtype
    if not _is_int(M):
        raise TypeError(f"{name}: M must be an int, got {_describe(M)}")
    if M < 0:
        raise ValueError(f"{name}: expected M of at least 0, got {M}")
    if layout not in (None, _C.strided):
        raise ValueError(f"{name}: expected layout strided, got {layout}")
    if wanted not in (_C.float32, _C.float64):
        raise ValueError(f"{name}: expected dtype float32 or float64, got {wanted}; convert the result")
    window = value(_C.arange(M, dtype=_C.float64))
    return window.to(device=device, dtype=wanted).requires_grad_(requires_grad)


def _positive(name: str, argument: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{name}: expected {argument} above 0, got {value}")


def _steps(M: int, sym: bool) -> int:
    """How many steps there are from one end to the other."""
    return max(M - 1 if sym else M, 1)


def bartlett(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """A triangle from 0 to 1 and back: [M]."""
    value = lambda k: 1 - (2 * k / _steps(M, sym) - 1).abs() if M > 1 else k + 1
    return _window("bartlett", M, dtype, layout, device, requires_grad, value)


def blackman(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """`general_cosine` with 0.42, 0.5 and 0.08: [M]."""
    return _cosines("blackman", M, (0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


def cosine(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """Half a period of the sine, sin(π (k + 1/2) / M): [M]."""
    points = max(M if sym or M < 2 else M + 1, 1)
    return _window("cosine", M, dtype, layout, device, requires_grad, lambda k: ((k + 0.5) * (math.pi / points)).sin())


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
    dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|k - center| / tau), about the middle unless `center` is given, which takes `sym` False: [M]."""
    _positive("exponential", "tau", tau)
    if sym and center is not None:
        raise ValueError(f"exponential: expected center only with sym=False, got {center}; a symmetric window has its centre in the middle")
    middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
    return _window("exponential", M, dtype, layout, device, requires_grad, lambda k: (-(k - middle).abs() / tau).exp())


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True,
    dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-x² / (2 std²)) of the distance x from the middle: [M]."""
    _positive("gaussian", "std", std)
    middle = (M if not sym and M > 1 else M - 1) / 2
    return _window("gaussian", M, dtype, layout, device, requires_grad, lambda k: (-((k - middle) / std).square() / 2).exp())


def _cosines(
    name: str, M: int, a: Iterable[float], sym: bool, dtype: DType | None, layout: Any, device: Device, requires_grad: bool
) -> Tensor:
    def value(k: Tensor) -> Tensor:
        if M == 1:
            return k + 1
        angle = k * (2 * math.pi / _steps(M, sym))
        total = _C.zeros_like(k)
        for i, weight in enumerate(a):
            total = total + (-weight if i % 2 else weight) * (i * angle).cos()
        return total

    return _window(name, M, dtype, layout, device, requires_grad, value)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True,
    dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """a[0] - a[1] cos 2πx + a[2] cos 4πx - ... for x from 0 to 1: [M]."""
    if not hasattr(a, "__iter__"):
        raise TypeError(f"general_cosine: expected a, a list of numbers, got {type(a).__name__}")
    weights = tuple(a)
    if not weights:
        raise ValueError("general_cosine: expected at least one number in a, got none")
    return _cosines("general_cosine", M, weights, sym, dtype, layout, device, requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True,
    dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos 2πx for x from 0 to 1: [M]."""
    return _cosines("general_hamming", M, (alpha, 1 - alpha), sym, dtype, layout, device, requires_grad)


def hamming(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """0.54 - 0.46 cos 2πx for x from 0 to 1: [M]."""
    return _cosines("hamming", M, (0.54, 1 - 0.54), sym, dtype, layout, device, requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """(1 - cos 2πx) / 2 for x from 0 to 1: [M]."""
    return _cosines("hann", M, (0.5, 0.5), sym, dtype, layout, device, requires_grad)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True,
    dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2x - 1)²)) / I0(beta) for x from 0 to 1, with the modified Bessel function: [M]."""
    if beta < 0:
        raise ValueError(f"kaiser: expected beta of at least 0, got {beta}")

    def value(k: Tensor) -> Tensor:
        return _kaiser_shape(2 * k / _steps(M, sym) - 1, beta) if M > 1 else k + 1

    return _window("kaiser", M, dtype, layout, device, requires_grad, value)


def nuttall(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """`general_cosine` with Nuttall's four numbers: [M]."""
    return _cosines("nuttall", M, (0.3635819, 0.4891775, 0.1365995, 0.0106411), sym, dtype, layout, device, requires_grad)


_check_module(globals())
add_module_getattr(__name__)
