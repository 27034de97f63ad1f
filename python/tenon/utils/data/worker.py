"""What a worker process of a DataLoader runs, and how an exception in it comes to the caller.

A worker reads tasks from one pipe and writes results to another, both its own: a killed worker holds no lock
that others wait for. A thread of the worker takes tasks out of the pipe at once, so that the caller never waits to write one.
"""

from __future__ import annotations

import os
import pickle
import queue
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

from ... import _C
from .fetch import IterableFetcher, make_fetcher

_ORPHAN_CHECK_SECONDS = 5.0


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What the worker process in which this is called is; None in any other process."""
    return _info


class _Unquoted(str):
    """A message that a KeyError prints as it is, instead of on one line in quotes."""

    def __repr__(self) -> str:
        return str(self)


class RemoteError:
    """An exception of a worker: its class, where a caller has that too, and its traceback as text."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.kind: type[BaseException] = type(error)
        try:
            pickle.loads(pickle.dumps(self.kind))
        except Exception:
            self.kind = RuntimeError
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.message = f"Caught {type(error).__name__} {where}.\nOriginal {text}"

    def reraise(self) -> NoReturn:
        """Raises an exception of the same class with the traceback in its message."""
        kind = self.kind
        if issubclass(kind, StopIteration):  # which would end the caller's loop as if all were well
            kind = RuntimeError
        try:
            error = kind(_Unquoted(self.message) if issubclass(kind, KeyError) else self.message)
        except Exception:  # a class that takes other arguments
            error = RuntimeError(self.message)
        raise error


@dataclass
class Work:
    """What all workers of a DataLoader have in common."""

    dataset: Any
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    worker_init_fn: Callable[[int], None] | None
    num_workers: int


def run_worker(
    work: Work,
    worker_id: int,
    seed: int,
    tasks: Connection,
    results: Connection,
    parent: int,
    inherited: Sequence[Connection],
) -> None:
    """The main function of a worker. Tasks are (number, index), ("epoch", seed) or None, results (number, kind, value)."""
    for connection in inherited:
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller gets it too, and ends its workers
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(tasks, inbox, parent), daemon=True).start()
    outbox = _Outbox(results)
    where = f"in DataLoader worker process {worker_id}"
    fetcher: Any = None
    failure = None
    try:
        _start(work, worker_id, seed)
        fetcher = make_fetcher(work.dataset, work.auto_collation, work.collate_fn, work.drop_last)
    except Exception as error:
        failure = RemoteError(error, where)
    while (task := inbox.get()) is not None:
        number, index = task
        if failure is not None:
            outbox.put((number, "error", failure))
        elif number == "epoch":
            try:
                _seed(index + worker_id)
                fetcher = make_fetcher(work.dataset, work.auto_collation, work.collate_fn, work.drop_last)
                outbox.put((number, "ready", None))
            except Exception as error:
                outbox.put((number, "error", RemoteError(error, where)))
        else:
            _answer(outbox, fetcher, number, index, where)
    outbox.close()


class _Outbox:
    """Writes results to the caller's pipe from a thread of its own, so that the next batch is read meanwhile."""

    def __init__(self, results: Connection) -> None:
        self._results = results
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def put(self, result: Any) -> None:
        """Raises whatever pickling raises, here."""
        self._waiting.put(ForkingPickler.dumps(result))

    def close(self) -> None:
        """Waits until everything is written."""
        self._waiting.put(None)
        self._thread.join()

    def _write(self) -> None:
        try:
            while (data := self._waiting.get()) is not None:
                self._results.send_bytes(data)
        except OSError:
            pass  # the caller has ended, or needs no more; it closes the tasks too


def _answer(outbox: _Outbox, fetcher: Any, number: int, index: Any, where: str) -> None:
    try:
        data = fetcher.fetch(index)
    except StopIteration as end:
        # Only an iterable dataset ends so; the rows of another that raises it are at fault.
        iterable = isinstance(fetcher, IterableFetcher)
        outbox.put((number, "ended", None) if iterable else (number, "error", RemoteError(end, where)))
        return
    except Exception as error:
        outbox.put((number, "error", RemoteError(error, where)))
        return
    try:
        outbox.put((number, "data", data))
    except Exception as error:  # what cannot be pickled
        outbox.put((number, "error", RemoteError(error, where)))


def _read_tasks(tasks: Connection, inbox: queue.SimpleQueue[Any], parent: int) -> None:
    """Puts tasks into the inbox. Ends the process if its parent has ended: another may hold the pipe open."""
    while True:
        try:
            if tasks.poll(_ORPHAN_CHECK_SECONDS):
                task = tasks.recv()
                inbox.put(task)
                if task is None:
                    return
            elif os.getppid() != parent:
                os._exit(1)
        except (EOFError, OSError):
            inbox.put(None)
            return


def _start(work: Work, worker_id: int, seed: int) -> None:
    global _info
    _C.set_num_threads(1)
    _seed(seed + worker_id)
    _info = WorkerInfo(worker_id, work.num_workers, seed + worker_id, work.dataset)
    if work.worker_init_fn is not None:
        work.worker_init_fn(worker_id)


def _seed(seed: int) -> None:
    """Seeds Python's, Tenon's and, where it is loaded, NumPy's random numbers."""
    random.seed(seed)
    _C.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
