"""Functions of the standard that search, sort, and find distinct elements."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from .. import _C
from .._C import Tensor
from ..arguments import check_module as _check_module
from ._base import Operand, promoted


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    if x.dim() == 0:
        raise ValueError("nonzero: expected an array of at least 1 dimension, got 0")
    return _C.nonzero(x, as_tuple=True)


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        return _C.where(condition, x1, x2)
    return _C.where(condition, *promoted("where", x1, x2))


def searchsorted(
    x1: Tensor, x2: Operand, /, *, side: Literal["left", "right"] = "left", sorter: Tensor | None = None
) -> Tensor:
    a, b = promoted("searchsorted", x1, x2)
    return _C.searchsorted(a, b, side=side, sorter=sorter if sorter is None else sorter.to(_C.int64))


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    sides: Any = (x1, x2)
    return _C.isin(*sides, invert=invert)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    return _C.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


class UniqueAllResult(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _complex_unique_all(x: Tensor) -> UniqueAllResult:
    """Complex numbers by their real parts, equal ones of these by their imaginary parts. Zeros of either sign are equal."""
    flat = x.reshape(-1)
    order = _C.argsort(flat.imag + 0.0, stable=True)
    order = order[_C.argsort(flat.real[order] + 0.0, stable=True)]
    ordered = flat[order]
    is_first = _C.ones_like(ordered, dtype=_C.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    inverse = _C.empty_like(order)
    inverse[order] = _C.cumsum(is_first, 0) - 1
    first = _C.nonzero(is_first).reshape(-1)
    counts = _C.diff(first, append=first.new_full((1,), flat.numel()))
    return UniqueAllResult(ordered[first], order[first], inverse.reshape(x.shape), counts)


def unique_all(x: Tensor, /) -> UniqueAllResult:
    if x.is_complex():
        return _complex_unique_all(x)
    values, inverse, counts = _C._unique2(x, True, True, True)
    # Equal elements keep their order, so that the first of each comes first.
    first = _C.argsort(x.reshape(-1))[_C.cumsum(counts, 0) - counts]
    return UniqueAllResult(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    if x.is_complex():
        found = _complex_unique_all(x)
        return UniqueCountsResult(found.values, found.counts)
    values, _, counts = _C._unique2(x, True, False, True)
    return UniqueCountsResult(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    if x.is_complex():
        found = _complex_unique_all(x)
        return UniqueInverseResult(found.values, found.inverse_indices)
    values, inverse, _ = _C._unique2(x, True, True, False)
    return UniqueInverseResult(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    return _complex_unique_all(x).values if x.is_complex() else _C._unique2(x)[0]


_check_module(globals())
