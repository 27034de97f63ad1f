"""Batches in pinned memory, from which devices copy without a wait: DataLoader(pin_memory=True)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import _C
from ...callers import warn


def pin_batches(batches: Any) -> Any:
    """The batches, each in pinned memory; as they are, with a warning, where no loaded device has any."""
    try:
        _C.empty(0, pin_memory=True)
    except RuntimeError:
        warn("DataLoader: 'pin_memory' is True, but no loaded device has pinned memory: it makes no difference")
        return batches
    return (pinned(batch) for batch in batches)


def pinned(data: Any) -> Any:
    """`data` with every tensor in it in pinned memory; other objects stay, or say themselves what they become."""
    if isinstance(data, _C.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        items = {key: pinned(value) for key, value in data.items()}
        return items if type(data) is dict else type(data)(items)  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pinned(value) for value in data))
    if isinstance(data, (list, tuple)):
        return type(data)(pinned(value) for value in data)
    if isinstance(data, Sequence):
        return [pinned(value) for value in data]
    return data
