"""Rows of a dataset as one batch: tensors are stacked, numbers become tensors, tuples, lists and dicts go part by part."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _C
from ...arguments import check_module as _check_module


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "__array__")


def _from_array(value: Any) -> Any:
    if value.dtype.kind in "SUO":
        return None
    return _C.as_tensor(value)


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like(original: Any, values: list[Any]) -> Any:
    """Values in a container of the kind of another; a list where that kind cannot be made so."""
    try:
        if isinstance(original, list) and type(original) is not list:
            clone = copy.copy(original)
            clone[:] = values
            return clone
        return type(original)(values)
    except TypeError:
        return values


def _dict_like(original: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    try:
        if type(original) is not dict and hasattr(original, "update"):
            clone = copy.copy(original)
            clone.update(values)
            return clone
        return type(original)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """NumPy's arrays and numbers as tensors, in whatever tuples, lists and dicts they are; everything else as it is."""
    if isinstance(data, _C.Tensor):
        return data
    if _is_array(data):
        converted = _from_array(data)
        return data if converted is None else converted
    if isinstance(data, Mapping):
        return _dict_like(data, {key: default_convert(value) for key, value in data.items()})
    if _is_named(data):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """The rows of a batch as one value.

    Tensors and NumPy's arrays are stacked, int, float and bool become a tensor (float64 for float), text stays a list. Rows
    that are dicts, tuples or lists give a dict or list of their parts, each collated.
    """
    first = batch[0]
    if isinstance(first, _C.Tensor):
        return _C.stack(list(batch))
    if _is_array(first):
        rows = [_from_array(row) for row in batch]
        if rows[0] is None:
            raise TypeError(f"default_collate: the dtype {first.dtype} of the arrays cannot be a tensor's")
        return _C.stack(rows)
    if isinstance(first, float):
        return _C.tensor(batch, dtype=_C.float64)
    if isinstance(first, int):
        return _C.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _dict_like(first, {key: default_collate([row[key] for row in batch]) for key in first})
    if _is_named(first):
        return type(first)(*(default_collate(part) for part in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(row) != len(first) for row in batch):
            raise RuntimeError(f"default_collate: the rows of a batch must have the same length, got {[len(r) for r in batch]}")
        parts = [default_collate(part) for part in zip(*batch)]
        return parts if isinstance(first, tuple) else _like(first, parts)
    raise TypeError(
        "default_collate: a batch must consist of tensors, NumPy's arrays, numbers, text, dicts, tuples or lists, "
        f"not of {type(first).__module__}.{type(first).__qualname__}; give the DataLoader a collate_fn"
    )


_check_module(globals())
