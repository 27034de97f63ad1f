"""Memory of compiled programs: at most eager's, and what recording holds."""

import gc

import pytest

import tenon
from tenon import nn

MIB = 1 << 20


def peak_of(work):
    """The most that tensors held while `work()` ran, above what they held before."""
    gc.collect()
    tenon.cpu.empty_cache()
    before = tenon.cpu.memory_allocated()
    tenon.cpu.reset_peak_memory_stats()
    work()
    return tenon.cpu.max_memory_allocated() - before


def add_up(f, chunks, size):
    acc = tenon.zeros(size)
    for i in range(chunks):
        chunk = tenon.full((size,), float(i))
        acc += f(chunk)
        del chunk
    return acc


@pytest.mark.parametrize("inside", ["the loop", "the body"])
def test_chunks_that_are_added_up(inside):
    """100 chunks of 64 MiB: what recording holds is bounded."""

    def f(chunk):
        return (chunk * 2).sin_()

    chunks, size = 100, 16 * MIB
    eager = peak_of(lambda: add_up(f, 8, size))
    if inside == "the loop":
        compiled = peak_of(lambda: tenon.compile(add_up)(f, chunks, size))
    else:
        compiled = peak_of(lambda: add_up(tenon.compile(f), chunks, size))
    assert compiled <= eager * 1.05 + 256 * MIB


def test_the_sum_of_chunks_is_eagers():
    f = lambda chunk: (chunk * 2).sin_()  # noqa: E731
    expected = add_up(f, 20, 1000)
    assert tenon.compile(add_up, threshold=0)(f, 20, 1000).tolist() == expected.tolist()


def block_step(dropout, activation, norm_first, optimizer):
    tenon.manual_seed(0)
    block = nn.TransformerEncoderLayer(64, 4, 256, dropout, activation, batch_first=True, norm_first=norm_first)
    x = tenon.randn(8, 128, 64)
    optimizer = optimizer(block.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        loss = block(x).square().mean()
        loss.backward()
        optimizer.step()

    return step


@pytest.mark.parametrize("kind", [
    (0.0, "relu", False, tenon.optim.SGD), (0.1, "relu", False, tenon.optim.Adam), (0.1, "gelu", True, tenon.optim.AdamW),
], ids=["plain", "dropout", "norm first"])  # fmt: skip
def test_a_training_step_of_a_transformer_block(kind):
    step = block_step(*kind)
    step()
    eager = peak_of(step)
    for options in ({}, {"threshold": 0}):
        step = tenon.compile(block_step(*kind), **options)
        step()
        assert step.explain().planned == 1, "attention is recorded with the rest"
        for _ in range(2):
            assert peak_of(step) <= eager * 1.05


def test_intermediate_results_that_die_take_no_memory():
    def f(x):
        for _ in range(20):
            x = x * 1.01 + 1
        return x

    x = tenon.ones(4 * MIB)
    eager = peak_of(lambda: f(x))
    assert peak_of(lambda: tenon.compile(f)(x)) <= eager


def test_calls_leave_nothing_behind():
    model = nn.Sequential(nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 3))
    compiled = tenon.compile(lambda x: model(x).sum().backward(), threshold=0)
    compiled(tenon.ones(700, 20))
    gc.collect()
    before = tenon.cpu.memory_allocated()
    for n in (700, 900, 700, 1100):
        compiled(tenon.ones(n, 20))
    gc.collect()
    assert tenon.cpu.memory_allocated() == before
