"""Norms, distances and cosines of half types and integers, whose squares leave the dtype: NumPy in float64."""

import warnings

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F

INF = float("inf")
LARGE, SMALL = (300.0, -400.0, 120.0, 250.0), (1e-4, -2e-4, 3e-4, 1e-4)


def half(values, **options):
    return tenon.tensor(values, dtype=tenon.float16, **options)


def wide(t):
    return t.detach().double().numpy()


def norm(x, p):
    return np.linalg.norm(np.asarray(x, np.float64).ravel(), p)


def slope(f, *args):
    """The gradients of a number by each argument, by central differences."""
    out = []
    for i, x in enumerate(args):
        grad = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            by = 1e-6 * max(1e-6, np.abs(x).max())
            low, high = (x.copy() for _ in range(2))
            low[at] -= by
            high[at] += by
            grad[at] = (f(*args[:i], high, *args[i + 1 :]) - f(*args[:i], low, *args[i + 1 :])) / (2 * by)
        out.append(grad)
    return out


def compare(ours, reference, *args, rtol=4e-3):
    """A function of half tensors beside the same of float64: the value, rounded once, and gradients."""
    leaves = [a.detach().requires_grad_() for a in args]
    value = ours(*leaves)
    assert value.dtype == tenon.float16
    value.backward()
    arrays = [wide(a) for a in args]
    np.testing.assert_allclose(wide(value), reference(*arrays), rtol=2e-3, atol=2.0**-24)
    for leaf, expected in zip(leaves, slope(reference, *arrays)):
        np.testing.assert_allclose(wide(leaf.grad), expected, rtol=rtol, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 2.5, 0.5, INF])
@pytest.mark.parametrize("values", [LARGE, SMALL], ids=["large", "small"])
def test_vector_norms(values, p):
    compare(lambda x: x.norm(p), lambda x: norm(x, p), half(values), rtol=8e-3)


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16], ids=str)
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 0.5, INF, -INF])
@pytest.mark.parametrize("size", [300.0, 1e-4])
def test_clip_grad_norm(size, p, dtype):
    leaf = tenon.zeros(4, dtype=dtype, requires_grad=True)
    leaf.grad = tenon.tensor([1.0, -2.0, 3.0, 0.5], dtype=dtype) * size
    before = wide(leaf.grad)
    total = tenon.nn.utils.clip_grad_norm_([leaf], size / 2, norm_type=p)
    expected = norm(before, p)
    assert total.dtype == dtype
    rtol = 2.0**-10 if dtype == tenon.float16 else 2.0**-7
    np.testing.assert_allclose(wide(total), expected, rtol=rtol, atol=2.0**-24)
    clipped = before * min(1, size / 2 / (expected + 1e-6))
    np.testing.assert_allclose(wide(leaf.grad), clipped, rtol=2 * rtol, atol=2.0**-24)


def test_clip_grad_norm_where_the_norm_is_beyond_float16():
    leaf = tenon.zeros(200, 200, dtype=tenon.float16, requires_grad=True)
    leaf.grad = tenon.full((200, 200), 500.0, dtype=tenon.float16)  # a norm of 100,000
    assert tenon.nn.utils.clip_grad_norm_(leaf, 1000.0, error_if_nonfinite=True).item() == INF
    np.testing.assert_allclose(wide(leaf.grad), np.full((200, 200), 5.0), rtol=1e-3)


def test_products_of_vectors_leave_the_dtype():
    assert tenon.linalg.vecdot(half([300.0, 300.0, 2.0]), half([300.0, -300.0, 3.0])).item() == 6
    x, y = tenon.randn(2, 3, 1000, generator=tenon.Generator().manual_seed(1)).bfloat16()
    np.testing.assert_allclose(wide(tenon.linalg.vecdot(x, y)), (wide(x) * wide(y)).sum(1), rtol=2.0**-8)


def test_total_norm_of_several_dtypes():
    """Each tensor's norm counts unrounded, and the result has the dtype that they promote to."""
    parts = [half([300.0] * 4), tenon.tensor([1e-3], dtype=tenon.float32), tenon.tensor([3e2 + 4e2j])]
    expected = norm(np.concatenate([wide(parts[0]), wide(parts[1]), [500.0]]), 3)
    total = tenon.nn.utils.get_total_norm(parts, 3.0)
    assert total.dtype == tenon.float32
    np.testing.assert_allclose(total.item(), expected, rtol=1e-6)
    assert tenon.nn.utils.get_total_norm([tenon.ones(2, dtype=tenon.float64), parts[1]]).dtype == tenon.float64


def cosine(a, b):
    return (a * b).sum() / max(norm(a, 2), 1e-8) / max(norm(b, 2), 1e-8)


@pytest.mark.parametrize("values", [LARGE, SMALL], ids=["large", "small"])
def test_cosine_similarity(values):
    a, b = half(values), half(values[::-1])
    compare(lambda a, b: F.cosine_similarity(a, b, dim=0), cosine, a, b)
    compare(lambda a, b: tenon.nn.CosineSimilarity(dim=0)(a, b), cosine, a, b)


def test_cosine_similarity_beside_integers():
    a, b = tenon.tensor([[200, 100]], dtype=tenon.uint8), [[100.0, 200.0]]
    for dtype in (tenon.float16, tenon.float32, tenon.float64):
        out = F.cosine_similarity(a, tenon.tensor(b, dtype=dtype))
        assert out.dtype == dtype
        np.testing.assert_allclose(wide(out), [0.8], rtol=1e-3)
    # Dtypes alone decide, not which tensor has dimensions; 70,000 is beyond float16, its direction is not.
    out = F.cosine_similarity(half(300.0), tenon.tensor([70_000, 2]), dim=0)
    assert out.dtype == tenon.float16
    np.testing.assert_allclose(out.item(), cosine(np.full(2, 300.0), np.array([7e4, 2.0])), rtol=1e-3)
    with pytest.raises(TypeError, match="cosine_similarity: expected floating-point"):
        F.cosine_similarity(a, a)


def test_cosine_embedding_loss():
    a, b = half([LARGE]), half([LARGE[::-1]])
    for values in (LARGE, SMALL):
        # PyTorch's formula: 1e-12 is added to the squares of both lengths.
        compare(
            lambda a, b: F.cosine_embedding_loss(a, b, tenon.tensor(1)),
            lambda a, b: 1 - (a * b).sum() / np.sqrt(((a * a).sum() + 1e-12) * ((b * b).sum() + 1e-12)),
            half(values),
            half(values[::-1]),
        )
    assert F.cosine_embedding_loss(a, b, tenon.tensor([1])).dtype == tenon.float16
    bytes_ = [tenon.tensor([[200, 100]], dtype=tenon.uint8), tenon.tensor([[100, 200]], dtype=tenon.uint8)]
    np.testing.assert_allclose(F.cosine_embedding_loss(*bytes_, tenon.tensor([1])).item(), 0.2, rtol=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 0.5, INF])
@pytest.mark.parametrize("values", [LARGE, SMALL], ids=["large", "small"])
def test_pairwise_distance(values, p):
    far = tuple(-x / 2 for x in values)
    compare(lambda a, b: F.pairwise_distance(a, b, p), lambda a, b: norm(a - b + 1e-6, p), half(values), half(far), rtol=8e-3)


def test_pairwise_distance_of_equal_points_has_the_slope_zero():
    a = half([1.0, 2.0], requires_grad=True)
    F.pairwise_distance(a, half([1.0, 2.0]), eps=0.0).backward()
    assert a.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_triplet_margin_loss(p):
    def reference(a, b, c):
        return max(0.0, 1.0 + norm(a - b + 1e-6, p) - norm(a - c + 1e-6, p))

    for scale in (1.0, 2.0**-20):
        points = [half(v) * scale for v in ((300.0, 310.0), (0.0, 10.0), (200.0, 0.0))]
        compare(lambda *x: F.triplet_margin_loss(*x, p=p), reference, *points, rtol=8e-3)


def test_embedding_limits_the_norms_of_rows():
    for p in (2.0, 3.0, 1.0, INF):
        weight = half([LARGE, SMALL])
        expected = wide(weight)
        expected[0] *= 1.0 / (norm(expected[0], p) + 1e-7)
        out = F.embedding(tenon.tensor([0, 1]), weight, max_norm=1.0, norm_type=p)
        np.testing.assert_allclose(wide(out), expected, rtol=2e-3)
        np.testing.assert_allclose(wide(weight), expected, rtol=2e-3)


NARROW = [("l1_loss", np.abs), ("mse_loss", np.square)]


@pytest.mark.parametrize(("name", "of"), NARROW, ids=[n for n, _ in NARROW])
def test_losses_broadcast_before_they_promote(name, of):
    """A 0-dim tensor counts as one of the other's shape, as PyTorch's broadcast_tensors makes it."""
    with pytest.warns(UserWarning, match="target size"):
        out = getattr(F, name)(tenon.tensor(256, dtype=tenon.int32), tenon.tensor([253, 1], dtype=tenon.uint8), reduction="none")
    assert out.dtype == tenon.int32
    np.testing.assert_array_equal(out.numpy(), of(256 - np.array([253, 1])))


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_a_number_in_float64(name):
    with pytest.warns(UserWarning, match="target size"):
        out = getattr(F, name)(tenon.tensor(1.0, dtype=tenon.float64), half([1.0, 3.0]), reduction="none")
    assert out.dtype == tenon.float64
    assert out.tolist() == [0.0, {"l1_loss": 2.0, "mse_loss": 4.0}.get(name, 1.5)]


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_other_sizes_warn_at_the_line(name):
    input, target = tenon.zeros(2, 1), tenon.ones(2)
    with pytest.warns(UserWarning, match=r"Using a target size .*\[2\].* different to the input size .*\[2, 1\].*" + name) as caught:
        value = getattr(F, name)(input, target)
    assert caught[0].filename == __file__
    assert value.item() == (1.0 if name in ("l1_loss", "mse_loss") else 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(F, name)(input, target[:, None])


@pytest.mark.parametrize("name", ["addmm", "addmv", "addbmm", "baddbmm"])
def test_what_is_added_to_products_is_added_before_rounding(name):
    # The products alone, 480,000 and 90,000, are infinite in float16.
    for left, right, added, alpha, expected in ((40, 40, 0, 0.01, 4800), (20, 15, -60000, 1, 30000)):
        a, b, c = (tenon.full(s, v, dtype=tenon.float16) for s, v in (((1, 300), left), ((300, 1), right), ((1, 1), added)))
        arguments = {
            "addmm": (c, a, b), "addmv": (c[0], a, b[:, 0]), "addbmm": (c, a[None], b[None]), "baddbmm": (c[None], a[None], b[None]),
        }[name]  # fmt: skip
        got = getattr(tenon, name)(*arguments, alpha=alpha)
        assert got.dtype == tenon.float16 and abs(got.item() - expected) <= expected / 500, (name, got)
