"""Order statistics, sets, histograms and their kin beside NumPy: what rows of conformance do not ask."""

import math

import numpy as np
import pytest

import tenon


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 511, 512, 5000, 70_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "float16"])
def test_ranks_are_those_of_a_sort(n, dtype):
    x = tenon.tensor((drawn(n, seed=n) * 50).astype(dtype))
    ordered, order = tenon.sort(x)
    for k in sorted({1, n, n // 2 + 1, n // 10 + 1}):
        value, place = tenon.kthvalue(x, k)
        assert value == ordered[k - 1] and place == order[k - 1]
    assert tenon.median(x) == ordered[(n - 1) // 2]


def test_a_median_with_nan_is_nan_and_nanmedian_leaves_it_out():
    x = tenon.tensor([3.0, float("nan"), 1.0, 2.0])
    assert x.isnan().any() and tenon.median(x).isnan() and tenon.median(x, 0).indices == 1
    assert tenon.nanmedian(x) == 2 and tenon.nanmedian(x, 0).indices == 3
    assert tenon.nanmedian(tenon.full((2, 2), float("nan")), 1).values.isnan().all()


@pytest.mark.parametrize("shape", [(0,), (7,), (3, 4), ()])
def test_unique_and_its_inverse(shape):
    x = np.random.default_rng(1).integers(0, 4, shape)
    values, inverse, counts = tenon.unique(tenon.tensor(x), return_inverse=True, return_counts=True)
    want = np.unique(x, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), want[0])
    np.testing.assert_array_equal(counts.numpy(), want[1])
    np.testing.assert_array_equal(values.numpy()[inverse.numpy()], x)
    assert isinstance(tenon.unique(tenon.tensor(x)), tenon.Tensor)


def test_unique_rows_and_runs():
    x = np.array([[2, 1], [1, 3], [2, 1], [1, -3]])
    values, inverse, counts = tenon.unique(tenon.tensor(x), return_inverse=True, return_counts=True, dim=0)
    want = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    for ours, theirs in zip((values, inverse, counts), want):
        np.testing.assert_array_equal(ours.numpy(), np.reshape(theirs, ours.shape))
    runs, counts = tenon.unique_consecutive(tenon.tensor([1, 1, 2, 1]), return_counts=True)
    assert runs.tolist() == [1, 2, 1] and counts.tolist() == [2, 1, 1]
    rows = tenon.unique_consecutive(tenon.tensor([[1, 1], [1, 1], [0, 1]]), dim=0)
    assert rows.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize("right", [False, True])
def test_places_in_long_sorted_rows(right):
    rows = np.sort(drawn(3, 10_001), -1)
    x = drawn(3, 1000, seed=1)
    x[:, :50] = rows[:, 100:150]  # elements that are there
    found = tenon.searchsorted(tenon.tensor(rows), tenon.tensor(x), right=right)
    want = np.stack([np.searchsorted(r, e, "right" if right else "left") for r, e in zip(rows, x)])
    np.testing.assert_array_equal(found.numpy(), want)
    order = np.argsort(-rows[0])[::-1]
    assert tenon.searchsorted(tenon.tensor(rows[0]), 0.25, sorter=tenon.tensor(order.copy())) == np.searchsorted(rows[0], 0.25, sorter=order)


def test_elements_are_searched_for_in_the_common_dtype():
    halves = tenon.tensor([1.5, 2.5])
    for whole in (tenon.tensor([2]), tenon.tensor([2], dtype=tenon.uint8)):
        assert tenon.searchsorted(halves, whole).tolist() == tenon.bucketize(whole, halves).tolist() == [1]
    assert tenon.searchsorted(tenon.tensor([1, 2]), tenon.tensor([1.5])).tolist() == [1]
    assert tenon.searchsorted(tenon.tensor([1, 3], dtype=tenon.int32), tenon.tensor([2])).tolist() == [1]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("number", [-1, 7, 7.5, 127.5, 300, -300.5, 2**40])
def test_a_number_is_searched_for_as_it_is(dtype, number):
    edges = np.array([0, 7, 8, 100], dtype)
    place = int(np.searchsorted(edges.astype(np.float64), number, "right"))
    assert tenon.searchsorted(tenon.tensor(edges), number, right=True) == place
    assert tenon.bucketize(number, tenon.tensor(edges), right=True) == place


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 511, 512, 1000, 100_003])
def test_medians_of_mixed_signs(dtype, n):
    """Most neighbours differ by sign, and some are equal, zero or infinite."""
    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    x[::7], x[::11] = 0, np.inf
    values, places = tenon.tensor(x).median(0)
    assert values.item() == np.sort(x)[(n - 1) // 2] == x[places.item()]
    assert tenon.kthvalue(tenon.tensor(x), n).values.item() == x.max()


@pytest.mark.parametrize(
    "x, bins, low, high, want",
    [
        ([1e30, 1e30], 3, 0, 0, [0, 2, 0]), ([1e38], 3, 0, 0, [0, 1, 0]), ([2.0**25], 3, 0, 0, [0, 1, 0]), ([2.0**54], 3, 0, 0, [0, 1, 0]),
        ([-3e38, 3e38, 0.0], 4, -3e38, 3e38, [1, 0, 1, 1]), ([-3e38, 3e38, 0.0], 1, 0, 0, [3]), ([2.0**25, 2.0**25 + 4], 2, 2**25, 2**25 + 4, [1, 1]),
        ([], 2, 0, 0, [0, 0]), ([math.nan, 1.0], 2, 0, 2, [0, 1]),
    ],
)  # fmt: skip
def test_counts_where_the_range_is_wide_or_nothing(x, bins, low, high, want):
    for dtype in (tenon.float32, tenon.float64):
        assert tenon.histc(tenon.tensor(x, dtype=dtype), bins, low, high).tolist() == want
    assert tenon.histc(tenon.tensor([2**60, 2**60]), 3).tolist() == [0, 2, 0]
    assert tenon.histc(tenon.tensor([1e308, -1e308], dtype=tenon.float64), 4).tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(tenon.histogram(tenon.tensor([]), 3).bin_edges.numpy(), np.histogram([], 3)[1], rtol=1e-6)


@pytest.mark.parametrize("density", [False, True])
def test_histograms(density):
    x, weight = drawn(1000), np.abs(drawn(1000, seed=2))
    hist, edges = tenon.histogram(tenon.tensor(x), 7, weight=tenon.tensor(weight), density=density)
    want = np.histogram(x, 7, weights=weight, density=density)
    np.testing.assert_allclose(hist.numpy(), want[0], rtol=1e-4)
    np.testing.assert_allclose(edges.numpy(), want[1], rtol=1e-5)
    np.testing.assert_array_equal(tenon.histc(tenon.tensor(x), 10).numpy(), np.histogram(x, 10)[0])


def test_quantiles_of_several_shapes():
    x = drawn(3, 4, 5)
    q = np.array([0.1, 0.5, 1.0], np.float32)
    for dim in (None, 0, -1):
        for keep in (False, True):
            found = tenon.quantile(tenon.tensor(x), tenon.tensor(q), dim, keep)
            np.testing.assert_allclose(found.numpy(), np.quantile(x, q, dim, keepdims=keep), rtol=1e-5, atol=1e-6)
            assert tenon.quantile(tenon.tensor(x), 0.3, dim, keep).shape == np.quantile(x, 0.3, dim, keepdims=keep).shape


def test_covariances_with_weights():
    x = drawn(3, 9)
    f, a = np.arange(9) % 3 + 1, np.abs(drawn(9, seed=3)) + 0.5
    for correction in (0, 1):
        found = tenon.cov(tenon.tensor(x), correction=correction, fweights=tenon.tensor(f), aweights=tenon.tensor(a))
        np.testing.assert_allclose(found.numpy(), np.cov(x, ddof=correction, fweights=f, aweights=a), rtol=1e-4)
    np.testing.assert_allclose(tenon.corrcoef(tenon.tensor(x)).numpy(), np.corrcoef(x), rtol=1e-4, atol=1e-6)


def test_distances_have_gradients_at_zero():
    x = tenon.zeros(30, 3, requires_grad=True)
    tenon.cdist(x, x.detach()).sum().backward()
    assert x.grad.isfinite().all()
    y = tenon.rand(40, 3, dtype=tenon.float64, requires_grad=True)
    z = tenon.rand(30, 3, dtype=tenon.float64)
    tenon.cdist(y, z).sum().backward()
    d = y.detach().numpy()[:, None] - z.numpy()[None]
    np.testing.assert_allclose(y.grad.numpy(), (d / np.linalg.norm(d, axis=-1, keepdims=True)).sum(1), rtol=1e-8)


def test_positions_and_powers():
    shape = (3, 4, 5)
    for ours, theirs in zip(tenon.unravel_index(tenon.arange(60), shape), np.unravel_index(np.arange(60), shape)):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    for dtype in (tenon.uint8, tenon.int32):
        found = tenon.unravel_index(tenon.tensor([0, 200], dtype=dtype), (2, 300))
        assert [(places.dtype, places.tolist()) for places in found] == [(tenon.int64, [0, 0]), (tenon.int64, [0, 200])]
    x = drawn(4)
    for count in (None, 0, 3, 6):
        for increasing in (False, True):
            np.testing.assert_allclose(tenon.vander(tenon.tensor(x), count, increasing).numpy(), np.vander(x, count, increasing), rtol=1e-5)


@pytest.mark.parametrize("dtype", [tenon.int64, tenon.uint8, tenon.float16, tenon.float64])
def test_integrals_and_powers_of_nothing_have_pytorchs_dtypes(dtype):
    floating = dtype if dtype.is_floating_point else tenon.float32
    for shape in ((0,), (3, 0)):
        y = tenon.zeros(shape, dtype=dtype)
        for integral in (tenon.trapezoid(y), tenon.trapezoid(y, dx=0.5), tenon.trapezoid(y, tenon.zeros(shape)), tenon.trapz(y, dx=0.5)):
            assert integral.dtype is dtype and tuple(integral.shape) == shape[:-1]
        for running in (tenon.cumulative_trapezoid(y), tenon.cumulative_trapezoid(y, tenon.zeros(shape))):
            assert running.dtype is floating and tuple(running.shape) == shape
    assert tenon.trapezoid(tenon.zeros(1, dtype=dtype)).dtype is floating
    for powers in (tenon.vander(tenon.zeros(0, dtype=dtype)), tenon.vander(tenon.ones(3, dtype=dtype), 0)):
        assert powers.dtype is (dtype if dtype.is_floating_point else tenon.int64) and powers.numel() == 0


def test_neighbours_of_floating_numbers():
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 3.4028235e38], np.float32)
    a, b = np.meshgrid(x, x)
    found = tenon.nextafter(tenon.tensor(a), tenon.tensor(b))
    np.testing.assert_array_equal(found.numpy(), np.nextafter(a, b))
    assert tenon.nextafter(tenon.tensor(1.0, dtype=tenon.bfloat16), tenon.tensor(2.0, dtype=tenon.bfloat16)).item() == 1.0078125


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: tenon.kthvalue(tenon.zeros(3), 4), IndexError, "kthvalue: selected number k out of range: 4"),
        (lambda: tenon.gradient(tenon.zeros(3, 4), spacing=[1.0]), ValueError, "gradient: expected spacing to be a number or a list .* 2 dimensions, got 1"),
        (lambda: tenon.gradient(tenon.zeros(3, 4), spacing=[1.0, 2.0], dim=1), ValueError, "gradient: expected spacing .* 1 dimensions, got 2"),
        (lambda: tenon.gradient(tenon.zeros(3, 3), spacing=(tenon.arange(3),)), ValueError, "gradient: expected spacing .* 2 dimensions, got 1"),
        (lambda: tenon.gradient(tenon.zeros(3, 3), spacing=[1.0], dim=(0, 1)), ValueError, "gradient: expected spacing .* 2 dimensions, got 1"),
        (lambda: tenon.median(tenon.zeros(2, 0), 1), IndexError, "median: dimension 1 of `self`"),
        (lambda: tenon.mode(tenon.zeros(3, dtype=tenon.complex64)), NotImplementedError, "mode"),
        (lambda: tenon.quantile(tenon.zeros(3), 1.5), ValueError, "quantile: `q` must be in"),
        (lambda: tenon.quantile(tenon.zeros(3), 0.5, interpolation="cubic"), ValueError, "interpolation must be one of"),
        (lambda: tenon.quantile(tenon.arange(3), 0.5), TypeError, "quantile: `self` must be float32 or float64"),
        (lambda: tenon.searchsorted(tenon.zeros(2, 3), tenon.zeros(3)), ValueError, "searchsorted: `sorted_sequence`"),
        (lambda: tenon.searchsorted(tenon.zeros(3), tenon.zeros(3), side="left", right=True), ValueError, "contradict"),
        (lambda: tenon.histc(tenon.zeros(3), 0), ValueError, "histc: bins must be positive"),
        (lambda: tenon.histc(tenon.tensor([1.0, float("inf")])), ValueError, "is not finite"),
        (lambda: tenon.histogram(tenon.zeros(3), 3, range=(1.0, 0.0)), ValueError, "max must not be below min"),
        (lambda: tenon.diff(tenon.tensor(1.0)), IndexError, "diff: `self` is 0-dim"),
        (lambda: tenon.gradient(tenon.zeros(1)), ValueError, "gradient: dimension 0 has 1 samples"),
        (lambda: tenon.gradient(tenon.zeros(4), edge_order=3), ValueError, "edge_order must be 1 or 2"),
        (lambda: tenon.cdist(tenon.zeros(2, 3), tenon.zeros(2, 4)), ValueError, "cdist: expected lists of vectors"),
        (lambda: tenon.cov(tenon.zeros(2, 3), fweights=tenon.tensor([1, -1, 1])), ValueError, "fweights must not be negative"),
        (lambda: tenon.gcd(tenon.zeros(3), tenon.zeros(3)), TypeError, "gcd: expected integers"),
        (lambda: tenon.unravel_index(tenon.tensor([60]), (3, 4, 5)), ValueError, "unravel_index: indices must be in"),
        (lambda: tenon.unravel_index(tenon.tensor([6.0]), (3, 4, 5)), TypeError, "unravel_index: expected a tensor of integers, got tenon.float32"),
        (lambda: tenon.nn.functional.embedding_bag(tenon.tensor([[1]]), tenon.ones(3)), ValueError, "embedding_bag: weight must have 2 dim"),
        (lambda: tenon.linalg.cond(tenon.ones(2, 2), 0.5), ValueError, "cond: expected `p` of 'fro', 'nuc', inf"),
        (lambda: tenon.renorm(tenon.zeros(3), 2, 0, 1.0), ValueError, "renorm: expected at least 2 dimensions"),
        (lambda: tenon.logcumsumexp(tenon.arange(3), 0), TypeError, "logcumsumexp: expected a floating point or complex dtype"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text.replace("[", r"\[")):
        call()


def test_sets_of_the_array_api():
    xp = tenon.ones(1).__array_namespace__()
    x = tenon.tensor([[3, 1, 3], [2, 1, 3]])
    found = xp.unique_all(x)
    want = np.unique(x.numpy(), return_index=True, return_inverse=True, return_counts=True)
    for ours, theirs in zip(found, want):
        np.testing.assert_array_equal(ours.numpy(), np.reshape(theirs, ours.shape))
    assert found.indices.tolist() == [1, 3, 0] and xp.unique_counts(x).counts.tolist() == [2, 1, 3]
    assert xp.unique_values(x).tolist() == [1, 2, 3] and xp.unique_inverse(x).inverse_indices.shape == x.shape
    assert xp.searchsorted(tenon.tensor([1, 3]), tenon.tensor([3]), side="right").tolist() == [2]
    assert xp.signbit(tenon.tensor([-0.0, 0.0])).tolist() == [True, False] and xp.isin(x, 3).sum() == 3


def test_an_empty_view_that_is_resized_begins_in_its_storage():
    out = tenon.zeros(4).as_strided((2, 0, 0), (-2, 2, -2)).flip(0)
    assert tenon.histc(tenon.tensor([1.0, 2.0]), 4, out=out).tolist() == [1, 0, 0, 1] and out.storage_offset() >= 0
