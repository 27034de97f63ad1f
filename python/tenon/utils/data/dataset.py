"""Datasets: what has rows by number, what gives them one after the other, and datasets made of others."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import _C
from ...arguments import check_module as _check_module, describe
from ...callers import warn as _warn

if TYPE_CHECKING:
    from ...types import Positions

T = TypeVar("T")


class Dataset(Generic[T]):
    """Rows by number: subclasses define __getitem__, and __len__ for samplers and loaders that need it.

    __getitems__, which takes a list of numbers and returns a list of rows, is used for whole batches where it is defined.
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__()")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Rows one after the other: subclasses define __iter__. Each process of a DataLoader iterates over a copy of its own:
    get_worker_info() says which part is its."""

    def __add__(self, other: Dataset[T]) -> ChainDataset[T]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[_C.Tensor, ...]]):
    """Rows of several tensors of the same length: item i is a tuple of row i of each."""

    tensors: tuple[_C.Tensor, ...]

    def __init__(self, *tensors: _C.Tensor) -> None:
        if not tensors or any(len(t) != len(tensors[0]) for t in tensors):
            raise ValueError("TensorDataset takes tensors of the same length")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[_C.Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Rows of several datasets of the same length side by side: tuples of datasets given by position, dicts of those by name."""

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets by position or by name")
        parts = list(args or kwargs.values())
        lengths = [len(part) for part in parts]  # type: ignore[arg-type, misc]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: the datasets must have the same length, got {lengths}")
        self._length = lengths[0]
        self.datasets = args or kwargs

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [_rows(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(_rows(dataset, indices) for dataset in self.datasets)))

    def __len__(self) -> int:
        return self._length


def _rows(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """The rows of these numbers, read at once where the dataset can."""
    many = getattr(dataset, "__getitems__", None)
    if not callable(many):
        return [dataset[index] for index in indices]
    rows = list(many(list(indices)))
    if len(rows) != len(indices):
        raise ValueError(f"{type(dataset).__name__}.__getitems__ returned {len(rows)} rows for {len(indices)} numbers")
    return rows


class ConcatDataset(Dataset[T]):
    """The rows of several datasets one after the other, by number."""

    datasets: list[Dataset[T]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset takes at least one dataset")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise TypeError("ConcatDataset reads rows by number, which an IterableDataset has not; use ChainDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))  # type: ignore[arg-type, misc]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for a ConcatDataset of {len(self)} rows")
        index %= len(self)
        place = bisect.bisect_right(self.cumulative_sizes, index)
        first = self.cumulative_sizes[place - 1] if place else 0
        return self.datasets[place][index - first]


class ChainDataset(IterableDataset[T]):
    """The rows of several iterable datasets one after the other."""

    def __init__(self, datasets: Iterable[Dataset[T]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise TypeError(f"ChainDataset takes IterableDatasets, got {describe(dataset)}")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)  # type: ignore[arg-type, misc]


class Subset(Dataset[T]):
    """The rows of a dataset that `indices` names, in that order."""

    dataset: Dataset[T]
    indices: Positions

    def __init__(self, dataset: Dataset[T], indices: Positions) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        return _rows(self.dataset, [self.indices[index] for index in indices])  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: _C.Generator | None = None
) -> list[Subset[T]]:
    """Random subsets without common rows, of the given lengths or, if those add up to 1, shares of the dataset."""
    rows = len(dataset)  # type: ignore[arg-type, misc]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = []
        for number, share in enumerate(lengths):
            if not 0 <= share <= 1:
                raise ValueError(f"random_split: share {number} must be between 0 and 1, got {share}")
            sizes.append(math.floor(rows * share))
        for place in range(rows - sum(sizes)):
            sizes[place % len(sizes)] += 1
        for number, size in enumerate(sizes):
            if size == 0:
                _warn(f"random_split: part {number} is empty")
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != rows:
        raise ValueError(f"random_split: the lengths add up to {sum(sizes)}, and the dataset has {rows} rows")
    order = _C.randperm(rows, generator=generator).tolist()
    ends = list(itertools.accumulate(sizes))
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]


_check_module(globals())
