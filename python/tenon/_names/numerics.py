"""PyTorch's switches between speed and repeatable or precise results. Tenon's results are repeatable and of full precision
whatever they say, so that a program may set them, and reads what it set; `set_strict` keeps oneDNN out of relaxed programs, too."""

from __future__ import annotations

from ..arguments import describe as _describe

_PRECISIONS = ("highest", "high", "medium")
_deterministic = {"mode": False, "warn_only": False}
_precision = "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for the same results in every run, as all operators give them anyway."""
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"use_deterministic_algorithms: {name} must be a bool, got {_describe(value)}")
    _deterministic.update(mode=mode, warn_only=warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was last given; False at first."""
    return _deterministic["mode"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether warn_only was last given with a mode that is on."""
    return _deterministic["mode"] and _deterministic["warn_only"]


def set_float32_matmul_precision(precision: str) -> None:
    """Allows products of float32 to be rounded to fewer digits on the way; none are. "highest", "high" or "medium"."""
    global _precision
    if not isinstance(precision, str) or precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision: expected one of {', '.join(_PRECISIONS)}, got {precision!r}")
    _precision = precision


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was last given; "highest" at first."""
    return _precision
