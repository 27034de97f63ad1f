"""The worker processes of a DataLoader, seen from the process that uses it: tasks out, results in, and their end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from .worker import RemoteError, Work, run_worker

_SECONDS_TO_END = 5.0

# A process that is forked gets copies of all pipes; what it must not hold open is here. The lock keeps workers of two loaders
# from being forked at once, which would give one the ends of the other that are about to be closed.
_open: weakref.WeakSet[Connection] = weakref.WeakSet()
_starting = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_starting=threading.Lock()))


class _Worker:
    """One process with its two pipes."""

    def __init__(self, context: Any, work: Work, number: int, seed: int) -> None:
        self.number = number
        with _starting:
            task_end, self.tasks = context.Pipe(duplex=False)
            self.results, result_end = context.Pipe(duplex=False)
            _open.update((self.tasks, self.results))
            inherited = list(_open) if context.get_start_method() == "fork" else []
            self.process = context.Process(
                target=run_worker,
                args=(work, number, seed, task_end, result_end, os.getpid(), inherited),
                name=f"DataLoader worker {number}",
                daemon=True,
            )
            try:
                self.process.start()
            finally:
                task_end.close()
                result_end.close()
        self.ended = False  # an iterable dataset has no more rows here

    def send(self, task: Any) -> None:
        try:
            self.tasks.send(task)
        except OSError:
            pass  # that the worker is no more is found when its result is waited for

    def dead(self) -> RuntimeError:
        """The error for a worker that has ended by itself."""
        self.process.join(_SECONDS_TO_END)
        code = self.process.exitcode
        if code is not None and code < 0:
            try:
                how = f"was killed by signal {signal.Signals(-code).name}"
            except ValueError:
                how = f"was killed by signal {-code}"
            if -code == signal.SIGKILL:
                how += " (the system does so when memory runs out)"
        else:
            how = f"exited unexpectedly with status {code}"
        return RuntimeError(f"DataLoader worker {self.number} (pid {self.process.pid}) {how}")


class WorkerPool:
    """The workers of a DataLoader."""

    def __init__(self, work: Work, seed: int, context: Any, timeout: float) -> None:
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        self._timeout = timeout
        self._pid = os.getpid()
        self.workers: list[_Worker] = []
        self.passes = 0
        self._grace = _SECONDS_TO_END
        self.closed = False
        try:
            for number in range(work.num_workers):
                self.workers.append(_Worker(context, work, number, seed))
        except BaseException:
            self.close()
            raise

    def start_epoch(self, seed: int) -> None:
        """Restarts every worker. Results of a pass that was left early are dropped."""
        try:
            self.passes += 1
            for worker in self.workers:
                worker.ended = False
                worker.send(("epoch", seed))
            waiting = list(self.workers)
            while waiting:
                worker, (number, kind, value) = self.receive(waiting)
                if number == "epoch":
                    if kind == "error":
                        value.reraise()
                    waiting.remove(worker)
        except BaseException:
            self.close()
            raise

    def batches(self, indices: Iterator[Any], ahead: int, in_order: bool) -> Pass:
        """The batches of all indices. Each worker gets `ahead` tasks now, and another one for each that it has done."""
        self.passes += 1
        return Pass(self, self.passes, indices, ahead, in_order)

    def receive(self, wanted: Any) -> tuple[_Worker, tuple[Any, str, Any]]:
        """The next result of one of the workers `wanted`. Raises RuntimeError if one has ended or none answers in time."""
        workers = list(wanted)
        by_end = {worker.results: worker for worker in workers}
        by_process = {worker.process.sentinel: worker for worker in workers}
        signalled = wait([*by_end, *by_process], self._timeout or None)
        if not signalled:
            self._grace = 0.0  # those that do not answer would not end by themselves
            numbers = ", ".join(str(worker.number) for worker in workers)
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds waiting for worker {numbers}")
        # Results first: a worker may have written one and then ended.
        for one in signalled:
            if one in by_end:
                worker = by_end[one]  # type: ignore[index]
                try:
                    return worker, worker.results.recv()
                except (EOFError, OSError):
                    raise worker.dead() from None
        worker = by_process[signalled[0]]  # type: ignore[index]
        if worker.results.poll():
            try:
                return worker, worker.results.recv()
            except (EOFError, OSError):
                pass
        raise worker.dead()

    def close(self) -> None:
        """Ends all workers: each after the batch that it is working on, or after some seconds by a signal."""
        if self.closed or self._pid != os.getpid():  # a forked copy of this object has no workers
            return
        self.closed = True
        for worker in self.workers:
            worker.send(None)
            worker.tasks.close()
            worker.results.close()
        deadline = time.monotonic() + self._grace
        for worker in self.workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join(_SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def __del__(self) -> None:
        # getattr: __init__ may not have come that far.
        if not getattr(self, "closed", True):
            self.close()


class Pass:
    """The batches of one pass over the dataset."""

    def __init__(self, pool: WorkerPool, number: int, indices: Iterator[Any], ahead: int, in_order: bool) -> None:
        self._pool, self._number, self._indices, self._in_order = pool, number, indices, in_order
        self._sent = self._taken = 0
        self._owner: dict[int, _Worker] = {}  # of each task whose result is still to come
        self._ready: dict[int, Any] = {}  # results that came before their turn
        self._turn = 0
        for _ in range(ahead * len(pool.workers)):
            self._send_one()

    def _send_one(self) -> None:
        """Gives the next task to the next worker that still has rows."""
        workers = self._pool.workers
        for _ in workers:
            worker = workers[self._turn]
            self._turn = (self._turn + 1) % len(workers)
            if not worker.ended:
                break
        else:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._owner[self._sent] = worker
        worker.send((self._sent, index))
        self._sent += 1

    def __iter__(self) -> Pass:
        return self

    def __next__(self) -> Any:
        if self._pool.passes != self._number:
            raise RuntimeError("DataLoader: a new pass with the same persistent workers has begun; this one is over")
        while self._taken < self._sent:
            value = self._next_value()
            if value is _NOTHING:
                continue
            self._send_one()
            if isinstance(value, RemoteError):
                value.reraise()
            return value
        raise StopIteration

    def _next_value(self) -> Any:
        """What the next task has given, or with in_order=False any task; _NOTHING where a dataset had ended."""
        while not (self._in_order and self._taken in self._ready):
            wanted = {self._owner[self._taken]} if self._in_order else set(self._owner.values())
            worker, (number, kind, value) = self._pool.receive(wanted)
            del self._owner[number]
            if kind == "ended":
                value = _NOTHING
                worker.ended = True  # the tasks that it has already will end so too
                self._send_one()
            self._ready[number] = value
            if not self._in_order:
                self._taken += 1
                return self._ready.pop(number)
        self._taken += 1
        return self._ready.pop(self._taken - 1)


_NOTHING = object()
