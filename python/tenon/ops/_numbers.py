"""What graphs of the shipped operators share: in which type they add up."""

from __future__ import annotations

from .. import _C

_HALF = (_C.float16, _C.bfloat16)


def sum_type(dtype: _C.dtype | None) -> _C.dtype | None:
    """The type in which values of a dtype are added up: float32 for half types, their own for others (None)."""
    return _C.float32 if dtype in _HALF else None
