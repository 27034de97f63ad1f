"""utils.data: datasets, samplers, batches, and worker processes, also those that raise or are killed."""

import collections
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import tenon
from tenon.utils import data
from tenon.utils.data import DataLoader


class Squares(data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return i * i


class Counting(data.IterableDataset):
    """0 to n - 1, shared among the workers: worker k has every number that leaves k."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        yield from range(first, self.n, step)


def flat(loader):
    return [v for batch in loader for v in batch.tolist()]


@pytest.mark.parametrize("kind", [list, np.array, tenon.tensor], ids=["list", "NumPy", "tensor"])
def test_samplers_and_subsets_take_numbers_of_each_kind(kind):
    certain = data.WeightedRandomSampler(kind([0.0, 0.0, 1.0]), 5)
    assert list(certain) == 5 * [2]
    assert sorted(int(i) for i in data.SubsetRandomSampler(kind([4, 2, 7]))) == [2, 4, 7]
    some = data.Subset(Squares(), kind([5, 2]))
    assert [some[0], some[1], len(some)] == [25, 4, 2]


@pytest.mark.parametrize("kind", [list, tuple, np.array, tenon.tensor], ids=["list", "tuple", "NumPy", "tensor"])
def test_any_sequence_is_a_dataset(kind):
    rows = kind([3, 1, 2])
    parts = data.random_split(rows, [1, 2])
    assert [len(part) for part in parts] == [1, 2] and sorted(int(row) for part in parts for row in part) == [1, 2, 3]
    assert int(data.Subset(rows, [2])[0]) == 2
    with pytest.raises(TypeError, match=r"Subset: dataset must be a Dataset, got 3 \(int\)"):
        data.Subset(3, [0])


def test_datasets_of_datasets():
    both = Squares(3) + Squares(4)
    assert [both[i] for i in range(-7, 7)] == 2 * [0, 1, 4, 0, 1, 4, 9] and len(both) == 7
    with pytest.raises(IndexError, match="index 7 is out of range"):
        both[7]
    assert list(Counting(2) + Counting(3)) == [0, 1, 0, 1, 2]
    with pytest.raises(TypeError, match="use ChainDataset"):
        data.ConcatDataset([Counting(2)])
    some = data.Subset(Squares(), [5, 2])
    assert [some[0], some[1], len(some)] == [25, 4, 2] and some.__getitems__([1, 0]) == [4, 25]
    pairs = data.StackDataset(Squares(4), data.TensorDataset(tenon.arange(4)))
    assert pairs[3][0] == 9 and pairs[3][1][0].item() == 3
    assert data.StackDataset(a=Squares(4), b=Squares(4)).__getitems__([2]) == [{"a": 4, "b": 4}]
    with pytest.raises(ValueError, match=r"same length, got \[4, 5\]"):
        data.StackDataset(Squares(4), Squares(5))


def test_random_split_takes_every_row_once():
    for lengths in ([7, 3], [0.72, 0.28], [0.5, 0.2, 0.3]):
        parts = data.random_split(Squares(), lengths, generator=tenon.Generator().manual_seed(3))
        assert sorted(v for part in parts for v in (part[i] for i in range(len(part)))) == [i * i for i in range(10)]
    assert [len(p) for p in data.random_split(Squares(), [0.34, 0.33, 0.33])] == [4, 3, 3]
    again = data.random_split(Squares(), [7, 3], generator=tenon.Generator().manual_seed(3))
    other = data.random_split(Squares(), [7, 3], generator=tenon.Generator().manual_seed(3))
    assert [p.indices for p in again] == [p.indices for p in other]
    with pytest.raises(ValueError, match="add up to 9, and the dataset has 10 rows"):
        data.random_split(Squares(), [5, 4])


def test_rows_have_whole_numbers():
    rows = data.TensorDataset(tenon.arange(5.0))
    with pytest.raises(TypeError, match="float"):
        list(DataLoader(rows, sampler=[2.7, 1.0], batch_size=2))


def test_samplers_give_the_numbers_they_say():
    assert list(data.SequentialSampler(Squares(3))) == [0, 1, 2]
    assert sorted(data.RandomSampler(Squares(50))) == list(range(50))
    drawn = list(data.RandomSampler(Squares(5), replacement=True, num_samples=4000))
    counts = np.bincount(drawn, minlength=5)
    assert len(drawn) == 4000 and np.all(np.abs(counts - 800) < 5 * np.sqrt(800)), counts
    g = tenon.Generator().manual_seed(1)
    with_generator = list(data.RandomSampler(Squares(5), True, 3000, generator=g))
    assert set(with_generator) == set(range(5)) and len(with_generator) == 3000
    assert len(list(data.RandomSampler(Squares(5), num_samples=12))) == 12
    assert sorted(data.SubsetRandomSampler([4, 8, 1])) == [1, 4, 8]
    batches = data.BatchSampler(range(7), 3, False)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6]] and len(batches) == 3
    assert list(data.BatchSampler(range(7), 3, True)) == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, got 0"):
        data.RandomSampler(Squares(), num_samples=0)
    with pytest.raises(ValueError, match="cannot|empty"):
        list(data.RandomSampler(Squares(0), num_samples=1))


def test_batches_keep_the_structure_of_rows():
    Point = collections.namedtuple("Point", "x y")
    row = {"a": 1, "b": (2.5, [True, "text"]), "c": Point(tenon.ones(2), np.arange(3, dtype=np.int32))}
    batch = data.default_collate([row, row])
    assert batch["a"].dtype is tenon.int64 and batch["a"].tolist() == [1, 1]
    assert batch["b"][0].dtype is tenon.float64 and batch["b"][1][0].dtype is tenon.bool
    assert batch["b"][1][1] == ("text", "text") or batch["b"][1][1] == ["text", "text"]
    assert type(batch["c"]).__name__ == "Point" and batch["c"].x.shape == (2, 2)
    assert batch["c"].y.dtype is tenon.int32 and batch["c"].y.shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"same length, got \[1, 2\]"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="not of builtins.object; give the DataLoader a collate_fn"):
        data.default_collate([object()])
    assert data.default_convert({"a": np.ones(2), "b": "text"})["a"].dtype is tenon.float64


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_loaders_give_every_row_in_order(workers):
    loader = DataLoader(Squares(), batch_size=3, num_workers=workers)
    assert flat(loader) == [i * i for i in range(10)] and len(loader) == 4
    assert [b.shape[0] for b in DataLoader(Squares(), 3, drop_last=True, num_workers=workers)] == [3, 3, 3]
    assert flat(DataLoader(Squares(), sampler=[3, 1], num_workers=workers)) == [9, 1]
    assert [b.tolist() for b in DataLoader(Squares(), batch_sampler=[[1, 2], [3]], num_workers=workers)] == [[1, 4], [9]]
    assert list(DataLoader(Squares(3), batch_size=None, num_workers=workers)) == [0, 1, 4]
    assert list(DataLoader(Squares(4), batch_size=2, collate_fn=sum, num_workers=workers)) == [1, 13]
    assert sorted(flat(DataLoader(Squares(), 2, num_workers=workers, in_order=False))) == [i * i for i in range(10)]
    assert sorted(flat(DataLoader(Counting(11), 2, num_workers=workers))) == list(range(11))
    pairs = DataLoader(data.TensorDataset(tenon.arange(5), tenon.arange(5.0)), 2, num_workers=workers)
    assert [[t.tolist() for t in b] for b in pairs] == [[[0, 1], [0.0, 1.0]], [[2, 3], [2.0, 3.0]], [[4], [4.0]]]
    assert list(DataLoader(Squares(0), num_workers=workers)) == []


def test_a_shuffled_order_depends_on_the_seed_alone():
    def order(workers, generator=None):
        return flat(DataLoader(Squares(40), 4, shuffle=True, num_workers=workers, generator=generator))

    orders = []
    for workers in (0, 2):
        tenon.manual_seed(5)
        orders.append((order(workers), order(workers)))
    assert orders[0] == orders[1] and orders[0][0] != orders[0][1]
    assert order(0, tenon.Generator().manual_seed(1)) == order(2, tenon.Generator().manual_seed(1))


def test_a_batch_of_a_tensor_dataset_is_a_copy():
    x = tenon.arange(4)
    for (batch,) in DataLoader(data.TensorDataset(x), 2):
        batch.zero_()
    assert x.tolist() == [0, 1, 2, 3]


class Seeds(data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        info = data.get_worker_info()
        draw = float(tenon.rand(1).item())
        return info.id, info.seed, info.num_workers, draw, random.random(), float(np.random.rand()), len(info.dataset)


def test_workers_have_numbers_and_seeds_of_their_own():
    assert data.get_worker_info() is None
    tenon.manual_seed(1)
    loader = DataLoader(Seeds(), num_workers=2, collate_fn=lambda rows: rows[0])
    first, second = list(loader), list(loader)
    assert [row[0] for row in first] == [0, 1, 0, 1, 0, 1] and {row[2] for row in first} == {2}
    assert len({row[1] for row in first}) == 2 and len({row[3:6] for row in first + second}) == 12
    tenon.manual_seed(1)
    assert list(DataLoader(Seeds(), num_workers=2, collate_fn=lambda rows: rows[0])) == first


def test_persistent_workers_stay():
    class Who(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return os.getpid()

    loader = DataLoader(Who(), num_workers=2, persistent_workers=True, prefetch_factor=1)
    first = flat(loader)
    next(iter(loader))  # a pass that is left early
    assert flat(loader) == first and len(set(first)) == 2 and os.getpid() not in first
    assert sorted(flat(DataLoader(Counting(7), 2, num_workers=2, persistent_workers=True))) == list(range(7))
    iterable = DataLoader(Counting(7), 2, num_workers=2, persistent_workers=True)
    assert sorted(flat(iterable)) == sorted(flat(iterable)) == list(range(7))
    assert set(flat(DataLoader(Who(), num_workers=2))).isdisjoint(first)


class Failing(Squares):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def __getitem__(self, i):
        if i == 5:
            raise self.error
        return super().__getitem__(i)


class OwnError(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("bad row"), ValueError), (KeyError("bad row"), KeyError), (OwnError("bad row", 2), RuntimeError), (StopIteration("bad row"), RuntimeError)],
)
def test_the_traceback_of_a_worker_arrives(error, kind, persistent):
    loader = DataLoader(Failing(error), 2, num_workers=2, persistent_workers=persistent)
    with pytest.raises(kind) as caught:
        list(loader)
    text = str(caught.value)
    assert f"Caught {type(error).__name__} in DataLoader worker process 0" in text
    assert "raise self.error" in text and "bad row" in text and "data_test.py" in text
    with pytest.raises(kind):
        list(loader)


def init_that_fails(worker):
    if worker == 1:
        raise LookupError(f"no room for worker {worker}")


def test_what_else_fails_in_a_worker_arrives():
    with pytest.raises(LookupError, match="no room for worker 1"):
        list(DataLoader(Squares(), num_workers=2, worker_init_fn=init_that_fails))
    with pytest.raises(Exception, match="Can't (pickle|get) local object .*lambda") as caught:
        list(DataLoader(Squares(), num_workers=1, collate_fn=lambda rows: lambda: rows))
    assert "worker process 0" in str(caught.value)
    started = []
    loader = DataLoader(Squares(4), num_workers=2, worker_init_fn=started.append)
    assert flat(loader) == [0, 1, 4, 9] and started == []  # in the workers alone


class Killed(Squares):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def __getitem__(self, i):
        if i == 3:
            if self.how == "exit":
                os._exit(7)
            os.kill(os.getpid(), self.how)
            time.sleep(60)
        return tenon.zeros(100_000) if i == 1 else i


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (signal.SIGKILL, r"DataLoader worker 1 \(pid \d+\) was killed by signal SIGKILL"),
        (signal.SIGTERM, r"worker 1 \(pid \d+\) was killed by signal SIGTERM"),
        ("exit", r"worker 1 \(pid \d+\) exited unexpectedly with status 7"),
    ],
)
def test_a_worker_that_is_killed_is_named(how, message):
    loader = DataLoader(Killed(how), num_workers=2, collate_fn=lambda rows: rows[0])
    with pytest.raises(RuntimeError, match=message):
        list(loader)
    with pytest.raises(RuntimeError, match=message):
        list(loader)


def test_a_worker_that_is_killed_while_it_writes_is_named():
    loader = DataLoader(Large(), num_workers=1, collate_fn=lambda rows: rows[0])
    batches = iter(loader)
    (worker,) = batches._pool.workers
    assert worker.results.poll(300)
    os.kill(worker.process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="worker 0 .* was killed by signal SIGKILL"):
        list(batches)


class Large(Squares):
    def __getitem__(self, i):
        return tenon.zeros(1 << 20)


class Endless(Squares):
    def __getitem__(self, i):
        threading.Event().wait()


def test_a_worker_that_takes_too_long_is_an_error():
    with pytest.raises(RuntimeError, match=r"timed out after 0.2 seconds waiting for worker 0"):
        list(DataLoader(Endless(), num_workers=1, timeout=0.2))


def test_workers_end_with_the_pass_that_uses_them():
    loader = DataLoader(Squares(100), num_workers=2)
    batches = iter(loader)
    next(batches)
    processes = [w.process for w in batches._pool.workers]
    del batches
    assert not any(p.is_alive() for p in processes)


def run(code, **kwargs):
    # From CPython 3.12 on, a fork of a process that has threads warns.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **kwargs)


PROGRAM = """
    import os, sys, time
    import tenon
    from tenon.utils import data

    class Rows(data.Dataset):
        def __len__(self):
            return 50

        def __getitem__(self, i):
            return tenon.mm(tenon.ones(64, 64), tenon.ones(64, 64)).sum() + i

    tenon.set_num_threads(2)
    tenon.mm(tenon.ones(300, 300), tenon.ones(300, 300)) + 1
    loader = data.DataLoader(Rows(), num_workers=2, persistent_workers=True)
    batches = iter(loader)
    next(batches)
"""


def test_a_program_may_end_while_workers_work():
    done = run(PROGRAM + "    print([w.process.pid for w in loader._pool.workers])\n")
    assert (done.returncode, done.stderr) == (0, "")
    for pid in eval(done.stdout):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_end_when_their_parent_is_killed():
    killed = run(PROGRAM + "    print([w.process.pid for w in loader._pool.workers], flush=True)\n    os.kill(os.getpid(), 9)\n")
    assert killed.returncode == -9
    deadline = time.monotonic() + 300
    left = eval(killed.stdout)
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if os.path.exists(f"/proc/{pid}") and "Z" not in open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]]
        time.sleep(0.05)
    assert not left


def test_a_forked_child_may_use_loaders_of_its_own():
    done = run(
        PROGRAM
        + """
    pid = os.fork()
    if pid == 0:
        del batches  # the parent's workers are not the child's to end
        total = sum(1 for _ in data.DataLoader(Rows(), num_workers=1))
        os._exit(0 if total == 50 else 1)
    _, status = os.waitpid(pid, 0)
    print(status, sum(1 for _ in batches))
"""
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "0 49", "")


def test_workers_can_be_spawned():
    loader = DataLoader(Squares(6), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    assert flat(loader) == [i * i for i in range(6)]


def test_what_is_no_dataset_is_refused():
    for wrong, shown in ((None, r"None \(NoneType\)"), (3, r"3 \(int\)"), (iter([1]), "list_iterator")):
        with pytest.raises(TypeError, match=f"^DataLoader: dataset must have __getitem__ and __len__, or be an IterableDataset, got .*{shown}"):
            DataLoader(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_workers": -1}, "num_workers must be a non-negative int, got -1"),
        ({"timeout": -1}, "timeout must not be negative"),
        ({"prefetch_factor": 2}, "prefetch_factor is for workers, and num_workers is 0"),
        ({"persistent_workers": True}, "persistent_workers is for workers"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor must be positive, got 0"),
        ({"sampler": [1], "shuffle": True}, "sampler and shuffle exclude each other"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler excludes batch_size"),
        ({"batch_size": 0}, "batch_size must be positive, got 0"),
        ({"batch_size": None, "drop_last": True}, "without a batch_size there are no batches"),
    ],
)
def test_arguments_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Squares(), **arguments)
    if "sampler" in arguments:
        with pytest.raises(ValueError, match="has an order of its own; shuffle must not be given"):
            DataLoader(Counting(3), shuffle=True)
