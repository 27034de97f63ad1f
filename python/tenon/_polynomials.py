"""Orthogonal polynomials by their recurrences, over operators: `tenon.special` has them."""

from __future__ import annotations

import math

from typing import Any, Callable

from . import _C
from .arguments import describe, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._C import Tensor

__all__ = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
]  # fmt: skip

#: The third term of a recurrence from degree k, the two terms before, and the argument.
_Step = Callable[[int, Any, Any, Any], Any]


def _operands(name: str, x: Any, n: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(x, _C.Tensor) and not isinstance(n, _C.Tensor):
        raise TypeError(f"{name}: input or n must be a Tensor, got {type(x).__name__} and {type(n).__name__}")
    like = x if isinstance(x, _C.Tensor) else n
    dtype = like.dtype if like.dtype.is_floating_point else _C.get_default_dtype()
    if isinstance(x, _C.Tensor) and isinstance(n, _C.Tensor) and n.dtype.is_floating_point:
        dtype = _C.promote_types(dtype, n.dtype)
    for argument, given in (("input", x), ("n", n)):
        if not isinstance(given, (_C.Tensor, int, float)):
            raise TypeError(f"{name}: {argument} must be a Tensor or a number, got {describe(given)}")
        if isinstance(given, _C.Tensor) and given.dtype.is_complex:
            raise TypeError(f"{name}: not implemented for {given.dtype}; take real numbers")
    return _C.as_tensor(x, dtype=dtype, device=like.device), _C.as_tensor(n, device=like.device)


#: The highest degree; steps are calls, of some microseconds each.
_MOST = 100_000


def _polynomial(name: str, x: Any, n: Any, first: Callable[[Any], Any], step: _Step, out: Tensor | None) -> Tensor:
    """The polynomial of degree n at x; 0 for a degree below 0. Fractions of n are cut off. Errors name the polynomial."""
    return named(_computed, name)(name, x, n, first, step, out)


def _computed(name: str, x: Any, n: Any, first: Callable[[Any], Any], step: _Step, out: Tensor | None) -> Tensor:
    x, n = _operands(name, x, n)
    lost = None
    if n.dtype.is_floating_point:
        lost = ~_C.isfinite(n)
        n = _C.where(lost, 0, _C.trunc(n))
    before, term = _C.ones_like(x), first(x)
    result = _C.where(n == 0, before, _C.where(n < 0, _C.zeros_like(x), term))
    most = int(n.max().item()) if n.numel() and not n.is_meta else 0
    if most > _MOST:
        raise ValueError(f"{name}: n must be at most {_MOST:,}, for it takes a step for each degree, got {most}")
    for k in range(2, most + 1):
        before, term = term, step(k, x, term, before)
        result = _C.where(n == k, term, result)
    if lost is not None:
        result = _C.where(lost, math.nan, result)
    return result if out is None else _C.mul(result, 1, out=out)


def _chebyshev(k: int, x: Any, term: Any, before: Any) -> Any:
    return 2 * x * term - before


def chebyshev_polynomial_t(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the first kind, T_n."""
    return _polynomial("chebyshev_polynomial_t", input, n, lambda x: x, _chebyshev, out)


def chebyshev_polynomial_u(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the second kind, U_n."""
    return _polynomial("chebyshev_polynomial_u", input, n, lambda x: 2 * x, _chebyshev, out)


def chebyshev_polynomial_v(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the third kind, V_n."""
    return _polynomial("chebyshev_polynomial_v", input, n, lambda x: 2 * x - 1, _chebyshev, out)


def chebyshev_polynomial_w(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Chebyshev polynomial of the fourth kind, W_n."""
    return _polynomial("chebyshev_polynomial_w", input, n, lambda x: 2 * x + 1, _chebyshev, out)


def _shifted(k: int, x: Any, term: Any, before: Any) -> Any:
    return 2 * (2 * x - 1) * term - before


def shifted_chebyshev_polynomial_t(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """T_n(2 x - 1)"""
    return _polynomial("shifted_chebyshev_polynomial_t", input, n, lambda x: 2 * x - 1, _shifted, out)


def shifted_chebyshev_polynomial_u(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """U_n(2 x - 1)"""
    return _polynomial("shifted_chebyshev_polynomial_u", input, n, lambda x: 2 * (2 * x - 1), _shifted, out)


def shifted_chebyshev_polynomial_v(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """V_n(2 x - 1)"""
    return _polynomial("shifted_chebyshev_polynomial_v", input, n, lambda x: 2 * (2 * x - 1) - 1, _shifted, out)


def shifted_chebyshev_polynomial_w(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """W_n(2 x - 1)"""
    return _polynomial("shifted_chebyshev_polynomial_w", input, n, lambda x: 2 * (2 * x - 1) + 1, _shifted, out)


def hermite_polynomial_h(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Hermite polynomial of physicists, H_n."""
    step: _Step = lambda k, x, term, before: 2 * x * term - 2 * (k - 1) * before  # noqa: E731
    return _polynomial("hermite_polynomial_h", input, n, lambda x: 2 * x, step, out)


def hermite_polynomial_he(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Hermite polynomial of probability, He_n."""
    step: _Step = lambda k, x, term, before: x * term - (k - 1) * before  # noqa: E731
    return _polynomial("hermite_polynomial_he", input, n, lambda x: x, step, out)


def laguerre_polynomial_l(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Laguerre polynomial L_n."""
    step: _Step = lambda k, x, term, before: ((2 * k - 1 - x) * term - (k - 1) * before) / k  # noqa: E731
    return _polynomial("laguerre_polynomial_l", input, n, lambda x: 1 - x, step, out)


def legendre_polynomial_p(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The Legendre polynomial P_n."""
    step: _Step = lambda k, x, term, before: ((2 * k - 1) * x * term - (k - 1) * before) / k  # noqa: E731
    return _polynomial("legendre_polynomial_p", input, n, lambda x: x, step, out)
