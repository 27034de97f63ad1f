"""Samplers: the order in which the rows of a dataset are read, as numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import _C
from ...arguments import check_module as _check_module

if TYPE_CHECKING:
    from ...types import Positions, Weights

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Base of the samplers, which define __iter__, and mostly __len__."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__()")


def _positive(who: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{who}: {name} should be a positive integer value, got {value!r}")
    return value


class SequentialSampler(Sampler[int]):
    """0, 1, ... in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A new random order for each pass; with `replacement`, each number independently of the others."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: _C.Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement should be a boolean value, got {replacement!r}")
        if num_samples is not None:
            _positive("RandomSampler", "num_samples", num_samples)
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many numbers a pass has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        rows, left = len(self.data_source), self.num_samples
        while left > 0:
            if rows == 0:
                raise ValueError(f"RandomSampler: no {left} samples can be drawn from an empty dataset")
            if self.replacement:
                some = _C.randint(0, rows, (min(left, 1024),)) if self.generator is None else _drawn(rows, left, self.generator)
            else:
                some = _C.randperm(rows, generator=self.generator)[:left]
            left -= len(some)
            yield from some.tolist()

    def __len__(self) -> int:
        return self.num_samples


def _drawn(rows: int, left: int, generator: _C.Generator) -> _C.Tensor:
    """Numbers below `rows` from a generator, at most 1,024 at a time."""
    share = _C.rand((min(left, 1024),), generator=generator, dtype=_C.float64)
    return (share * rows).to(_C.int64).clamp(max=rows - 1)


class SubsetRandomSampler(Sampler[int]):
    """The given numbers in a new random order for each pass."""

    def __init__(self, indices: Positions, generator: _C.Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in _C.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]  # type: ignore[misc]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Numbers with probabilities in proportion to `weights`; without `replacement`, each at most once."""

    def __init__(
        self,
        weights: Weights,
        num_samples: int,
        replacement: bool = True,
        generator: _C.Generator | None = None,
    ) -> None:
        _positive("WeightedRandomSampler", "num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"WeightedRandomSampler: replacement should be a boolean value, got {replacement!r}")
        self.weights = _C.as_tensor(weights, dtype=_C.float64)
        if self.weights.dim() != 1:
            raise ValueError(f"WeightedRandomSampler: weights must have one dimension, got {list(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        drawn = _C.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` numbers of another sampler; the last may be shorter, or is left out with `drop_last`."""

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last should be a boolean value, got {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + (rest > 0 and not self.drop_last)


_check_module(globals())
