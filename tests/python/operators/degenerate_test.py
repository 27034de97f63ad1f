"""Calls at the ends of their domains: one slice, a range without a width, exponents and degrees beyond the dtype's, results given."""

import math

import numpy as np
import pytest

import tenon


@pytest.mark.parametrize("n", [0, 1])
def test_one_slice_or_none_is_unique(n):
    x = tenon.ones(n, 3)
    values, inverse, counts = tenon.unique(x, dim=0, return_inverse=True, return_counts=True)
    assert values.shape == (n, 3) and inverse.tolist() == [0] * n and counts.tolist() == [1] * n
    assert tenon.unique_consecutive(x, dim=0).shape == (n, 3) and tenon.unique(tenon.ones(3, n), dim=1).shape == (3, n)


def test_a_range_without_a_width_is_widened():
    x = np.array([0.0, 1.0, 2.0], np.float32)
    found, edges = tenon.histogram(tenon.tensor(x), 3, range=(1.0, 1.0))
    expected, at = np.histogram(x, 3, (1.0, 1.0))
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_allclose(edges.numpy(), at, rtol=1e-6)


def test_no_difference_is_the_tensor():
    assert tenon.diff(tenon.tensor([1.0, 2.0]), n=0, prepend=tenon.tensor([5.0])).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponents_beyond_the_range_of_the_dtype(dtype):
    """Of ldexp, whose results are in it."""
    x = np.array([1e-30, 0.0, math.inf, 1e30, 3.0, -math.inf, 0.1], dtype)
    e = np.array([150, 5000, -5000, -150, -300, 5000, 5], np.int64)
    np.testing.assert_array_equal(tenon.ldexp(tenon.tensor(x), tenon.tensor(e)).numpy(), np.ldexp(x, e))
    large = tenon.tensor([3e38 if dtype == "float32" else 1e308], dtype=getattr(tenon, dtype))
    assert tenon.equal(tenon.ldexp(*tenon.frexp(large)), large)
    assert tenon.ldexp(tenon.ones(1, dtype=tenon.bfloat16), tenon.tensor([1])).dtype is tenon.bfloat16


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tenon.nn.functional.affine_grid(tenon.ones(1, 2, 3), [1, 1, 2**31, 2**31], True), r"affine_grid: .*more elements than int64"),
        (lambda: tenon.nn.functional.affine_grid(tenon.ones(1, 2, 3), [1, 1, 2**31, 2**20], True), "affine_grid: .* not to be had"),
        (lambda: tenon.combinations(tenon.arange(2**17), 2), "combinations: .* not to be had"),
        (lambda: tenon.eye(2**25), "eye: .* not to be had"),
        (lambda: tenon.tril_indices(2**26, 2**26), "tril_indices: .* not to be had"),
        (lambda: tenon.nn.functional.one_hot(tenon.tensor([0, 1]), 2**45), "one_hot: .* not to be had"),
        (lambda: tenon.bincount(tenon.tensor([2**45])), "bincount: .* not to be had"),
        (lambda: tenon.repeat_interleave(tenon.ones(3), 2**45), "repeat_interleave: .* not to be had"),
        (lambda: tenon.linspace(0, 1, 2**45), "linspace: .* not to be had"),
        (lambda: tenon.hann_window(2**45), "hann_window: .* not to be had"),
    ],
)
def test_what_has_no_room_says_so_before_memory_is_filled(call, text):
    with pytest.raises((MemoryError, ValueError), match=f"^{text}"):
        call()


def test_more_combinations_than_memory_holds():
    with pytest.raises(ValueError, match=r"^combinations: 5\.04e\+30 elements are too many, of 50 among 100$"):
        tenon.combinations(tenon.arange(100), 50)
    assert tenon.combinations(tenon.arange(3), 2**63 - 1).shape[0] == 0


def test_degrees_that_are_no_numbers_or_too_many():
    found = tenon.special.legendre_polynomial_p(tenon.tensor(0.5), tenon.tensor([math.nan, math.inf, 2.0]))
    np.testing.assert_array_equal(found.numpy(), [math.nan, math.nan, -0.125])
    with pytest.raises(ValueError, match="^chebyshev_polynomial_t: n must be at most 100,000, .*, got 100000000$"):
        tenon.special.chebyshev_polynomial_t(tenon.tensor([0.5]), 1e8)


def test_a_very_narrow_von_mises_distribution_is_a_normal_one():
    tenon.manual_seed(1)
    concentration = tenon.tensor([1e14, 1e19], dtype=tenon.float64)
    x = tenon.distributions.VonMises(tenon.zeros(2, dtype=tenon.float64), concentration).sample((4000,))
    np.testing.assert_allclose((x.square().mean(0) * concentration).numpy(), 1, rtol=0.1)


def test_windows_of_the_largest_values():
    x = tenon.tensor([[[-1.0, -2.0, 3.0, 0.0]]])
    assert tenon.nn.functional.lp_pool1d(x, math.inf, 2).tolist() == [[[2, 3]]]


def test_the_square_root_of_matrices_with_equal_eigenvalues_or_none():
    a = (4 * tenon.eye(2, dtype=tenon.float64)).requires_grad_()
    (grad,) = tenon.autograd.grad(tenon.linalg.matrix_sqrth(a).sum(), a)
    np.testing.assert_allclose(grad.numpy(), np.full((2, 2), 0.25))
    v = tenon.tensor(np.random.default_rng(1).standard_normal((5, 2)))
    root = tenon.linalg.matrix_sqrth(v @ v.T)
    np.testing.assert_allclose((root @ root).numpy(), (v @ v.T).numpy(), atol=1e-12)


def test_array_api_is_a_name_of_the_package():
    assert tenon.array_api.asarray([1]).tolist() == [1]


def test_results_that_are_written_into_tensors_have_their_names():
    x, values, indices = tenon.tensor([3.0, 1.0]), tenon.empty(0), tenon.empty(0, dtype=tenon.int64)
    found = tenon.sort(x, out=(values, indices))
    assert found.values is values and found.indices is indices and values.tolist() == [1, 3]


def test_cdist_takes_the_words_of_its_modes():
    a, b = tenon.tensor([[0.0, 0.0]]), tenon.tensor([[3.0, 4.0]])
    for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", None, 2):
        assert tenon.cdist(a, b, compute_mode=mode).item() == 5
    with pytest.raises(ValueError, match="^cdist: compute_mode must be one of 'use_mm_for_euclid_dist_if_necessary', .*, got 'fast'$"):
        tenon.cdist(a, b, compute_mode="fast")


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_second_derivatives_of_a_distance_of_nothing_are_numbers(p):
    """By differences of the first ones they are 0 between equal points, as PyTorch has it, and those of the others stay what they are."""
    a = tenon.tensor([[1.0, 2.0], [0.0, 0.5]], dtype=tenon.float64, requires_grad=True)
    b = tenon.tensor([[1.0, 2.0]], dtype=tenon.float64)
    (slope,) = tenon.autograd.grad(tenon.cdist(a, b, p=p).sum(), a, create_graph=True)
    (second,) = tenon.autograd.grad((slope * slope).sum(), a)
    assert second[0].tolist() == [0, 0]
    alone = a.detach()[1:].requires_grad_()
    (slope,) = tenon.autograd.grad(tenon.cdist(alone, b, p=p).sum(), alone, create_graph=True)
    (wanted,) = tenon.autograd.grad((slope * slope).sum(), alone, allow_unused=True)
    np.testing.assert_allclose(second[1].numpy(), 0 if wanted is None else wanted[0].numpy(), rtol=1e-12)
    points = tenon.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], dtype=tenon.float64, requires_grad=True)
    (slope,) = tenon.autograd.grad(tenon.pdist(points, p=p).sum(), points, create_graph=True)
    assert tenon.isfinite(tenon.autograd.grad(slope.sum(), points)[0]).all()
