"""multinomial, exponential_, random_ and normal: frequencies, bounds, and what is refused. Generators can be copied."""

import copy
import math

import numpy as np
import pytest

import tenon


def test_frequencies_are_those_of_the_weights():
    tenon.manual_seed(0)
    weights = tenon.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 5.0, 0.0, 5.0]])
    drawn = tenon.multinomial(weights, 20_000, True)
    for row, w in zip(drawn.numpy(), weights.numpy()):
        p = w / w.sum()
        counts = np.bincount(row, minlength=4)
        assert np.all(np.abs(counts - 20_000 * p) <= 5 * np.sqrt(20_000 * p)), counts
    # Without replacement, pairs have the probabilities of drawing one after the other.
    first = tenon.multinomial(tenon.tensor([1.0, 2.0, 3.0]).expand(20_000, 3), 2).numpy()
    p = np.array([1, 2, 3]) / 6
    for i in range(3):
        for j in range(3):
            want = 0 if i == j else p[i] * p[j] / (1 - p[i])
            count = np.sum((first[:, 0] == i) & (first[:, 1] == j))
            assert abs(count - 20_000 * want) <= 5 * math.sqrt(20_000 * want), (i, j)


def test_all_categories_and_only_possible_ones():
    assert sorted(tenon.multinomial(tenon.rand(50) + 0.1, 50).tolist()) == list(range(50))
    for replacement in (False, True):
        assert tenon.multinomial(tenon.tensor([0.0, 1.0, 0.0]), 1, replacement).tolist() == [1]
    assert tenon.multinomial(tenon.tensor([0.25, 0.75], dtype=tenon.float16), 2).dtype is tenon.int64
    assert tenon.multinomial(tenon.empty(3, 4, device="meta"), 2).shape == (3, 2)
    a, b = (tenon.multinomial(tenon.ones(9), 4, generator=tenon.Generator().manual_seed(2)).tolist() for _ in range(2))
    assert a == b


@pytest.mark.parametrize(
    ("weights", "n", "replacement", "message"),
    [
        ([0.5, -0.1], 1, True, "must be finite and not negative, got -0.1"),
        ([0.5, math.nan], 1, True, "must be finite"),
        ([0.5, math.inf], 1, False, "must be finite"),
        ([0.0, 0.0], 1, True, "add up to 0"),
        ([1.0, 0.0], 2, False, "as many categories with a weight above 0, got 1"),
        ([1.0, 1.0], 3, False, "as many categories, got 2"),
        ([1.0], 0, True, "num_samples must be positive, got 0"),
        ([[[1.0]]], 1, True, r"expected weights \[c\] or \[m, c\]"),
        ([1, 2], 1, True, "floating-point dtype, got int64"),
    ],
)
def test_weights_that_are_none(weights, n, replacement, message):
    state = tenon.get_rng_state()
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        tenon.multinomial(tenon.tensor(weights), n, replacement)
    assert tenon.get_rng_state().equal(state)


def test_exponential_numbers():
    tenon.manual_seed(1)
    for dtype in (tenon.float64, tenon.float32, tenon.float16, tenon.bfloat16):
        x = tenon.empty(40_000, dtype=dtype).exponential_(2.0).double()
        assert (x > 0).all() and abs(x.mean().item() - 0.5) < 0.02 and abs((x > 0.5).double().mean().item() - math.exp(-1)) < 0.015
    with pytest.raises(ValueError, match="lambd must be positive, got 0"):
        tenon.empty(3).exponential_(0.0)
    with pytest.raises(TypeError, match="got int64"):
        tenon.arange(3).exponential_()


def test_integers_and_normal_numbers():
    tenon.manual_seed(2)
    assert set(tenon.empty(2000, dtype=tenon.int64).random_(3, 7).tolist()) == {3, 4, 5, 6}
    assert set(tenon.empty(2000).random_(4).tolist()) == {0.0, 1.0, 2.0, 3.0}
    assert tenon.empty(50, dtype=tenon.uint8).random_().max().item() > 100
    assert set(tenon.randint_like(tenon.empty(500), 2, 5).tolist()) == {2.0, 3.0, 4.0}
    x = tenon.normal(tenon.full((2, 1), 5.0), tenon.tensor([1.0, 2.0] * 20_000))
    assert x.shape == (2, 40_000) and abs(x.mean().item() - 5) < 0.05 and abs(x[:, 1::2].std().item() - 2) < 0.05
    assert tenon.normal(1.0, 0.0, (3,)).tolist() == [1.0] * 3 and tenon.normal(tenon.zeros(4), 0.0).tolist() == [0.0] * 4
    assert tenon.normal(3.0, tenon.zeros(2)).tolist() == [3.0, 3.0]


def test_a_generator_can_be_copied():
    g = tenon.Generator().manual_seed(7)
    tenon.rand(5, generator=g)
    for other in (copy.copy(g), copy.deepcopy(g), g.clone_state()):
        assert other is not g and other.get_state().equal(g.get_state())
    other = copy.deepcopy({"g": g})["g"]
    assert tenon.rand(3, generator=other).tolist() == tenon.rand(3, generator=g).tolist()


def test_native_dropout():
    tenon.manual_seed(0)
    x = tenon.ones(1000, requires_grad=True)
    y, mask = tenon.native_dropout(x, 0.25, True)
    assert mask.dtype is tenon.bool and y.tolist() == (mask.float() * (1 / 0.75)).tolist()
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert tenon.native_dropout(x, 0.25, False)[1].all() and not tenon.native_dropout(x, 1.0, True)[0].any()
