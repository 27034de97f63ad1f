"""From numbers of rows to a batch: what a DataLoader does in this process, and its workers in theirs."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ... import _C
from .collate import default_collate
from .dataset import IterableDataset, TensorDataset, _rows

Collate = Callable[[Any], Any]


class Fetcher:
    """Reads batches of a dataset with rows by number. `auto_collation`: `index` is a list of numbers, not one."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn
        # Rows of a TensorDataset are read at once: as many indexings as it has tensors, not as there are rows.
        self.whole = auto_collation and type(dataset) is TensorDataset and collate_fn is default_collate

    def fetch(self, index: Any) -> Any:
        if self.whole:
            return self._of_tensors(index)
        if self.auto_collation:
            return self.collate_fn(_rows(self.dataset, index))
        return self.collate_fn(self.dataset[index])

    def _of_tensors(self, index: Any) -> list[_C.Tensor]:
        if isinstance(index, slice):
            return [t[index].clone() for t in self.dataset.tensors]
        places = index if isinstance(index, _C.Tensor) else _C.tensor(list(map(operator.index, index)), dtype=_C.int64)
        return [t[places] for t in self.dataset.tensors]


class IterableFetcher:
    """Reads the next rows of an iterable dataset, as many as `index` has. Raises StopIteration at the end."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool) -> None:
        self.rows: Iterator[Any] = iter(dataset)
        self.auto_collation, self.collate_fn, self.drop_last = auto_collation, collate_fn, drop_last
        self.ended = False

    def fetch(self, index: Sequence[int] | None) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation or index is None:
            return self.collate_fn(next(self.rows))
        batch = list(itertools.islice(self.rows, len(index)))
        self.ended = len(batch) < len(index)
        if not batch or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(batch)


def make_fetcher(
    dataset: Any, auto_collation: bool, collate_fn: Collate, drop_last: bool
) -> Fetcher | IterableFetcher:
    """The fetcher for a dataset."""
    kind = IterableFetcher if isinstance(dataset, IterableDataset) else Fetcher
    return kind(dataset, auto_collation, collate_fn, drop_last)
