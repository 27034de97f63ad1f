"""Kullback-Leibler divergences of pairs of distributions, in a table to which programs add theirs."""

from __future__ import annotations

import warnings
from functools import total_ordering
from typing import Any, Callable

from .. import _C as tn
from .._C import Tensor
from .distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator that registers a function of two distributions, of `type_p` and of `type_q`, for `kl_divergence`."""
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type) or not issubclass(given, Distribution):
            raise TypeError(f"register_kl: expected {name} to be a Distribution subclass but got {given}")

    def decorator(fun: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


@total_ordering
class _Match:
    """How near a registered pair is, by the places of its types in the order of the wanted types' bases."""

    __slots__ = ["types"]

    def __init__(self, *types: type) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: Any) -> bool:
        for x, y in zip(self.types, other.types):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True

    __hash__ = None  # type: ignore[assignment]


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(*m) for m in matches).types
    right_q, right_p = min(_Match(*reversed(m)) for m in matches).types
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of q from p: the mean of log p(x) - log q(x) over x of p."""
    for name, given in (("p", p), ("q", q)):
        if not isinstance(given, Distribution):
            raise NotImplementedError(f"kl_divergence: {name} must be a Distribution, got {type(given).__name__}")
    pair = type(p), type(q)
    fun = _KL_MEMOIZE.get(pair)
    if fun is None:
        fun = _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    if fun is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type {pair[1].__name__}; register_kl one")
    return fun(p, q)


def _x_log_x(tensor: Tensor) -> Tensor:
    return tn.xlogy(tensor, tensor)


from . import _kl  # noqa: E402, F401  registers the pairs
