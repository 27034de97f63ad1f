"""DataLoader: batches of a dataset, read by this process or ahead of time by worker processes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import _C
from ...arguments import check_module as _check_module, describe
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetch import Fetcher, make_fetcher
from .pin_memory import pin_batches
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .worker import Work
from .workers import WorkerPool


class _Endless(Sampler[None]):
    """The row numbers of an iterable dataset, which has none: None without end."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Batches of a dataset, in order, shuffled for each pass, or in the order of a sampler. Arguments as in PyTorch.

    With `num_workers`, that many processes read batches ahead of time, prefetch_factor each. The order of batches does not
    depend on their number. Workers get seeds of their own, which follow from the generator's state and the pass.
    An exception in a worker is raised here with the worker's traceback; a worker that ends without one (killed, out of
    memory) is named in a RuntimeError. `pin_memory` gives batches in memory that devices copy from without a wait.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: _C.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        iterable = isinstance(dataset, IterableDataset)
        if not iterable and not hasattr(dataset, "__getitem__"):
            raise TypeError(
                f"DataLoader: dataset must have __getitem__ and __len__, or be an IterableDataset, got {describe(dataset)}"
            )
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        _check_order(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader: without a batch_size there are no batches, so drop_last must be False")
        if sampler is None:
            if iterable:
                sampler = _Endless()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]  # _Endless has None
        self.dataset, self.num_workers, self.generator = dataset, num_workers, generator
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.collate_fn = collate_fn or (default_collate if batch_sampler is not None else default_convert)
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self._passes = 0
        self._pool: WorkerPool | None = None

    def __iter__(self) -> Iterator[Any]:
        self._passes += 1
        batches = self._here() if self.num_workers == 0 else self._of_workers()
        return pin_batches(batches) if self.pin_memory else batches

    def _indices(self) -> Iterable[Any]:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _here(self) -> Iterator[Any]:
        fetcher = make_fetcher(self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last)
        if isinstance(fetcher, Fetcher):
            whole = _whole_batches(self.batch_sampler) if fetcher.whole else None
            for index in whole or self._indices():
                yield fetcher.fetch(index)
            return
        for index in self._indices():
            try:
                batch = fetcher.fetch(index)
            except StopIteration:
                return
            yield batch

    def _of_workers(self) -> Iterator[Any]:
        pool, self._pool = self._pool, None
        seed = self._base_seed()
        if pool is None or pool.closed:
            work = Work(
                self.dataset,
                self.batch_sampler is not None,
                self.collate_fn,
                self.drop_last,
                self.worker_init_fn,
                self.num_workers,
            )
            pool = WorkerPool(work, seed, self.multiprocessing_context, self.timeout)
        else:
            pool.start_epoch(seed)
        if self.persistent_workers:
            self._pool = pool
        assert self.prefetch_factor is not None
        batches = pool.batches(iter(self._indices()), self.prefetch_factor, self.in_order)
        return _OwnedBatches(batches, pool, self.persistent_workers)

    def _base_seed(self) -> int:
        # Not drawn: a shuffled order must not depend on whether there are workers.
        state = (self.generator or _C.default_generator).get_state()
        text = repr((state.tolist(), self._passes)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")

    def __len__(self) -> int:
        """How many batches a pass has."""
        if not isinstance(self.dataset, IterableDataset):
            return len(self._indices())  # type: ignore[arg-type]
        rows = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return rows
        return rows // self.batch_size if self.drop_last else math.ceil(rows / self.batch_size)


class _OwnedBatches:
    """The batches of one pass, which ends its workers with itself unless they stay for the next."""

    def __init__(self, batches: Iterator[Any], pool: WorkerPool, keep: bool) -> None:
        self._batches, self._pool, self._keep = batches, pool, keep

    def __iter__(self) -> _OwnedBatches:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except BaseException as error:
            if not (self._keep and isinstance(error, StopIteration)):
                self._pool.close()
            raise

    def __del__(self) -> None:
        # getattr: __init__ may not have come that far.
        if not getattr(self, "_keep", True):
            self._pool.close()


def _whole_batches(batch_sampler: Any) -> Iterator[Any] | None:
    """The batches of the samplers that a DataLoader makes itself, as slices or tensors of numbers; None for others."""
    if type(batch_sampler) is not BatchSampler:
        return None
    sampler = batch_sampler.sampler
    if type(sampler) is SequentialSampler:
        return _slices(batch_sampler, len(sampler), None)
    if type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == len(sampler.data_source):
        rows = len(sampler.data_source)
        return _slices(batch_sampler, rows, _C.randperm(rows, generator=sampler.generator))
    return None


def _slices(batch_sampler: BatchSampler, rows: int, order: _C.Tensor | None) -> Iterator[Any]:
    size = batch_sampler.batch_size
    for first in range(0, len(batch_sampler) * size, size):
        some = slice(first, min(first + size, rows))
        yield some if order is None else order[some]


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, context: Any
) -> None:
    if isinstance(num_workers, bool) or not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError(f"DataLoader: num_workers must be a non-negative int, got {num_workers!r}")
    if timeout < 0:
        raise ValueError(f"DataLoader: timeout must not be negative, got {timeout}")
    if num_workers == 0:
        for name, value in (("prefetch_factor", prefetch_factor), ("multiprocessing_context", context)):
            if value is not None:
                raise ValueError(f"DataLoader: {name} is for workers, and num_workers is 0")
        if persistent_workers:
            raise ValueError("DataLoader: persistent_workers is for workers, and num_workers is 0")
    elif prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError(f"DataLoader: prefetch_factor must be positive, got {prefetch_factor}")


def _check_order(
    iterable: bool, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if iterable:
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ValueError(f"DataLoader: an IterableDataset has an order of its own; {name} must not be given")
    if sampler is not None and shuffle:
        raise ValueError("DataLoader: sampler and shuffle exclude each other")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("DataLoader: batch_sampler excludes batch_size, shuffle, sampler, and drop_last")
    if batch_sampler is None and batch_size is not None and batch_size < 1:
        raise ValueError(f"DataLoader: batch_size must be positive, got {batch_size}")


_check_module(globals())
