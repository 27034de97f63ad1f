"""Threads: each records on its own; weights are shared; pending tensors are read by others."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from beside_eager import alike, bits

import tenon
import tenon.nn.functional as F
from tenon import nn

THREADS = 8


def in_threads(work):
    """The results of `work(i)` of eight threads that start together."""
    barrier = threading.Barrier(THREADS)

    def run(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_one_compiled_function_on_eight_threads_with_shared_weights():
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
    compiled = tenon.compile(model, threshold=0)
    inputs = [tenon.linspace(-i, i + 1, 30).reshape(5, 6) for i in range(THREADS)]
    expected = [bits(model(x)) for x in inputs]
    for _ in range(5):
        assert in_threads(lambda i: [bits(compiled(inputs[i])) for _ in range(20)][-1]) == expected


def test_eight_models_on_eight_threads_train():
    def train(c, seed):
        g = tenon.Generator().manual_seed(seed)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        with tenon.no_grad():
            for p in model.parameters():
                p.uniform_(-0.5, 0.5, generator=g)
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.05)
        x, y = tenon.linspace(-1, 1, 42).reshape(7, 6), tenon.tensor([0, 1, 2, 0, 1, 2, 1])

        @c
        def step():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return [step().item() for _ in range(20)]

    expected = [train(lambda f: f, i) for i in range(THREADS)]
    assert in_threads(lambda i: train(lambda f: tenon.compile(f, threshold=0), i)) == expected


def test_gradients_of_shared_weights_from_threads():
    weight = tenon.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    x = tenon.linspace(0, 1, 15).reshape(5, 3)

    def gradient(i):
        loss = tenon.compile(lambda: ((x * (i + 1)) @ weight).exp().sum(), threshold=0)()
        return bits(tenon.autograd.grad(loss, weight)[0])

    expected = [bits(tenon.autograd.grad(((x * (i + 1)) @ weight).exp().sum(), weight)[0]) for i in range(THREADS)]
    assert in_threads(gradient) == expected


def test_another_thread_reads_what_this_one_records():
    def program(c):
        def f(x):
            y = x * 2
            seen = []
            thread = threading.Thread(target=lambda: seen.append(y.sum().item()))
            thread.start()
            thread.join()
            y.add_(1)
            return seen, y

        g = c(f)
        return g(tenon.arange(5.0)), g(tenon.arange(5.0))

    alike(program)


def test_another_thread_writes_what_this_one_records():
    def program(c):
        def f(x):
            y = x * 2
            thread = threading.Thread(target=lambda: (y.add_(100), x.sub_(1)))
            thread.start()
            thread.join()
            return y * 1, x + y

        g = c(f)
        return g(tenon.arange(5.0)), g(tenon.arange(5.0))

    alike(program)


def test_another_thread_records_on_what_this_one_records():
    def program(c):
        def f(x):
            y = x * 2
            got = []
            thread = threading.Thread(target=lambda: got.append(c(lambda: y.add_(1) * 3)()))
            thread.start()
            thread.join()
            return got, y - 1

        return c(f)(tenon.arange(5.0))

    alike(program)


def test_a_pending_tensor_outlives_its_thread():
    def program(c):
        got = []

        def work():
            got.append(c(lambda x: (x * 2, x[1:] + 1))(tenon.arange(5.0)))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return got

    alike(program)


def test_a_thread_that_ends_inside_its_scope_hands_its_tensors_on():
    got = []

    def work():
        scope = tenon.recording(threshold=0)
        scope.__enter__()
        x = tenon.arange(5.0)
        got.append(x * 2)
        got.append(x)
        x.add_(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    try:
        assert [t.tolist() for t in got] == [[0.0, 2.0, 4.0, 6.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0]]
    except RuntimeError as e:
        pytest.fail(f"pending tensors of a thread that has ended: {e}")


def test_threads_that_read_each_others_pending_tensors_do_not_wait_for_each_other():
    """Two threads record, hand over, and read what the other has not computed."""
    first, second = threading.Barrier(2), threading.Barrier(2)
    handed, results = [None, None], [None, None]

    def work(i):
        def f(x):
            y = x * (i + 2)
            handed[i] = y
            first.wait()
            other = handed[1 - i].sum().item()
            second.wait()
            return y.sum().item(), other

        results[i] = tenon.compile(f, threshold=0)(tenon.arange(5.0))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == [(20.0, 30.0), (30.0, 20.0)]


def test_many_readers_of_one_pending_tensor():
    for _ in range(10):
        y = None
        with tenon.recording(threshold=0):
            y = tenon.arange(1000.0).exp().log() * 2
            assert len(set(in_threads(lambda i: y.sum().item()))) == 1
        assert y.tolist() == (tenon.arange(1000.0).exp().log() * 2).tolist()
