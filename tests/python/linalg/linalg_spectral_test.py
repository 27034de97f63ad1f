"""Eigenvalues, singular values and what follows from them, against LAPACK in float64; and the rule of signs."""

import numpy as np
import pytest
import scipy.linalg
import tenon

from linalg_matrices import DTYPES, EPS, adjoint, kinds, random_matrix, ratio, wide

L = tenon.linalg
ORDERS = (1, 2, 3, 16, 17)


def check_phases(vectors):
    """The largest element of each column, the first of those that are nearly so, is real and positive."""
    for v in np.swapaxes(wide(vectors), -1, -2).reshape(-1, vectors.shape[-2]):
        size = np.abs(v)
        first = v[np.argmax(size >= size.max() * 0.998**0.5)]
        assert first.real > 0 and first.imag == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_eigenvectors_of_hermitian_matrices(n, dtype):
    for name, x in kinds(n, dtype).items():
        a = (x + adjoint(x)).astype(dtype)
        read = np.where(np.tri(n, dtype=bool), a, 99).astype(dtype)
        values, vectors = (wide(t.numpy()) for t in L.eigh(tenon.tensor(read)))
        assert ratio(wide(a) @ vectors - vectors * values, a, n, dtype) < 30, name
        assert ratio(adjoint(vectors) @ vectors - np.eye(n), np.eye(n), n, dtype) < 30, name
        assert (np.diff(values) >= 0).all()
        np.testing.assert_allclose(values, np.linalg.eigvalsh(wide(a)), atol=30 * n * EPS[dtype] * np.abs(a).sum())
        check_phases(vectors)
        upper = L.eigh(tenon.tensor(adjoint(read)), "U")
        np.testing.assert_allclose(upper.eigenvalues.numpy(), values, atol=30 * n * EPS[dtype] * np.abs(a).sum())
        np.testing.assert_allclose(L.eigvalsh(tenon.tensor(read)).numpy(), values, atol=30 * n * EPS[dtype] * np.abs(a).sum())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(n, n) for n in ORDERS] + [(5, 3), (3, 5), (16, 60), (70, 12), (20, 30), (40, 18)])
def test_singular_vectors(shape, dtype):
    m, n = shape
    given = kinds(n, dtype) if m == n else {"random": random_matrix(shape, dtype)}
    if m != n:
        given["deficient"] = (random_matrix((m, 2), dtype) @ random_matrix((2, n), dtype)).astype(dtype)
    given["zero"] = np.zeros(shape, dtype)
    for name, a in given.items():
        for full in (False, True):
            u, s, vh = (wide(t.numpy()) for t in L.svd(tenon.tensor(a), full_matrices=full))
            k, most = min(shape), max(shape)
            assert u.shape == (m, m if full else k) and vh.shape == (n if full else k, n)
            assert ratio((u[:, :k] * s) @ vh[:k] - wide(a), a, most, dtype) < 30, name
            assert ratio(adjoint(u) @ u - np.eye(u.shape[1]), np.eye(2), most, dtype) < 30, name
            assert ratio(vh @ adjoint(vh) - np.eye(vh.shape[0]), np.eye(2), most, dtype) < 30, name
            assert (np.diff(s) <= 0).all() and (s >= 0).all()
            check_phases(adjoint(vh)[:, :k])
        expected = np.linalg.svd(wide(a), compute_uv=False)
        np.testing.assert_allclose(s, expected, atol=30 * most * EPS[dtype] * max(expected[0], 1e-300))
        np.testing.assert_allclose(L.svdvals(tenon.tensor(a)).numpy(), expected, atol=30 * most * EPS[dtype] * max(expected[0], 1e-300))
    left, values, right = tenon.svd(tenon.tensor(given["random"]))
    np.testing.assert_allclose((left.numpy() * values.numpy()) @ adjoint(right.numpy()), given["random"], atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 25])
def test_eigenvectors_of_any_matrix(n, dtype):
    a = random_matrix((3, n, n), dtype)
    values, vectors = (wide(t.numpy()) for t in L.eig(tenon.tensor(a)))
    for i in range(3):
        assert ratio(wide(a[i]) @ vectors[i] - vectors[i] * values[i], a[i], n, dtype) < 30
        np.testing.assert_allclose(np.sort_complex(values[i]), np.sort_complex(np.linalg.eigvals(wide(a[i]))), rtol=2e4 * EPS[dtype])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-6)
    check_phases(vectors)
    alone = L.eigvals(tenon.tensor(a)).numpy()
    np.testing.assert_allclose(np.sort_complex(alone[0]), np.sort_complex(values[0]), rtol=2e4 * EPS[dtype])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_of_large_and_small_elements_stay_in_range(scale):
    a = random_matrix((5, 5), "float32") * np.float32(scale)
    for f, expected in (
        (L.svdvals, np.linalg.svd(wide(a), compute_uv=False)),
        (lambda t: L.eigvalsh(t + t.mT), np.linalg.eigvalsh(wide(a + a.T))),
        (lambda t: L.qr(t).R.diagonal().abs(), np.abs(np.diag(np.linalg.qr(wide(a)).R))),
    ):
        np.testing.assert_allclose(f(tenon.tensor(a)).numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 6), (20, 30)])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_pseudoinverses_and_ranks(shape, dtype):
    a = random_matrix((2, *shape), dtype)
    a[1, :, 1] = a[1, :, 0]
    t, tolerance = tenon.tensor(a), 1e4 * EPS[dtype]
    np.testing.assert_allclose(L.pinv(t).numpy(), np.linalg.pinv(wide(a), rcond=1e-5), atol=tolerance)
    np.testing.assert_allclose(tenon.pinverse(t, 1e-5).numpy(), np.linalg.pinv(wide(a), rcond=1e-5), atol=tolerance)
    bounds = tenon.tensor([1e-5, 0.5], dtype=tenon.float64)
    both = L.pinv(t, rtol=bounds).numpy()
    np.testing.assert_allclose(both[1], np.linalg.pinv(wide(a[1]), rcond=0.5), atol=tolerance)
    assert L.matrix_rank(t).tolist() == [min(shape), min(shape[0], shape[1] - 1)]
    assert L.matrix_rank(t, atol=1e9).tolist() == [0, 0]
    symmetric = tenon.tensor(a @ adjoint(a))
    np.testing.assert_allclose(
        L.pinv(symmetric, hermitian=True, rtol=1e-4).numpy(), np.linalg.pinv(wide(a @ adjoint(a)), rcond=1e-4), atol=1e-2
    )
    assert L.matrix_rank(symmetric, hermitian=True, rtol=1e-4).tolist() == np.linalg.matrix_rank(wide(a @ adjoint(a)), rtol=1e-4).tolist()


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4), (50, 40)])
def test_least_squares(shape, driver):
    for dtype in ("float64", "complex64"):
        a, b = random_matrix((2, *shape), dtype), random_matrix((2, shape[0], 3), dtype, 1)
        result = L.lstsq(tenon.tensor(a), tenon.tensor(b), driver=driver)
        for i in range(2):
            expected = np.linalg.lstsq(wide(a[i]), wide(b[i]), rcond=None)
            np.testing.assert_allclose(result.solution.numpy()[i], expected[0], rtol=1e5 * EPS[dtype], atol=1e5 * EPS[dtype])
            if driver in ("gelsd", "gelss", "gels") and shape[0] > shape[1]:
                np.testing.assert_allclose(result.residuals.numpy()[i], expected[1].real, rtol=1e5 * EPS[dtype])
        if driver != "gels":
            assert result.rank.tolist() == [min(shape)] * 2
    deficient = np.ones((5, 3))
    result = L.lstsq(tenon.tensor(deficient), tenon.ones(5, 1, dtype=tenon.float64), driver="gelsd")
    np.testing.assert_allclose(result.solution.numpy(), np.full((3, 1), 1 / 3))
    assert result.rank.item() == 1 and result.residuals.numel() == 0
    np.testing.assert_allclose(result.singular_values.numpy(), np.linalg.svd(deficient, compute_uv=False), atol=1e-14)


@pytest.mark.parametrize("ord", ["fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf])
@pytest.mark.parametrize("dim", [(-2, -1), (0, 2), (2, 0)])
def test_norms_of_matrices(ord, dim):
    for dtype in ("float64", "complex128"):
        a = random_matrix((3, 4, 5), dtype)
        expected = np.linalg.norm(a, ord, dim)
        np.testing.assert_allclose(L.matrix_norm(tenon.tensor(a), ord, dim).numpy(), expected, rtol=1e-12)
        kept = L.norm(tenon.tensor(a), ord, dim, True).numpy()
        np.testing.assert_allclose(kept, np.linalg.norm(a, ord, dim, keepdims=True), rtol=1e-12)
        assert L.matrix_norm(tenon.tensor(a[0]), ord, dtype=getattr(tenon, dtype)).dim() == 0


def test_norms_of_vectors_by_norm():
    a = random_matrix((3, 4), "float64")
    t = tenon.tensor(a)
    for args in ((), (None, 1), (3, 0), (np.inf, 1), ("fro",), (2,), (1,)):
        np.testing.assert_allclose(L.norm(t, *args).numpy(), np.linalg.norm(a, *args), rtol=1e-12)
    np.testing.assert_allclose(tenon.norm(t, "nuc").numpy(), np.linalg.norm(a, "nuc"), rtol=1e-12)


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_condition_numbers(p):
    a = random_matrix((3, 4, 4), "float64")
    np.testing.assert_allclose(L.cond(tenon.tensor(a), p).numpy(), np.linalg.cond(a, p), rtol=1e-10)
    assert L.cond(tenon.zeros(2, 2) + 1.0, 1).item() == np.inf


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials(n, dtype):
    for scale in (1e-3, 1, 10):
        a = (random_matrix((2, n, n), dtype) * scale / n).astype(dtype)
        expected = np.stack([scipy.linalg.expm(wide(x)) for x in a])
        result = L.matrix_exp(tenon.tensor(a)).numpy()
        np.testing.assert_allclose(result, expected, atol=300 * EPS[dtype] * max(1, scale) * np.abs(expected).max())
    many = np.stack([np.zeros((3, 3)), np.diag([1.0, 2.0, 30.0])])
    np.testing.assert_allclose(L.matrix_exp(tenon.tensor(many)).numpy(), [scipy.linalg.expm(x) for x in many], rtol=1e-13)


def test_powers_chains_and_tensors():
    a = random_matrix((2, 4, 4), "float64")
    t = tenon.tensor(a)
    for n in (0, 1, 2, 5, -1, -3):
        np.testing.assert_allclose(L.matrix_power(t, n).numpy(), np.linalg.matrix_power(a, n), rtol=1e-8, atol=1e-8)
    chain = [random_matrix(s, "float64") for s in ((7,), (7, 2), (2, 30), (30, 3), (3,))]
    np.testing.assert_allclose(L.multi_dot([tenon.tensor(x) for x in chain]).numpy(), np.linalg.multi_dot(chain))
    np.testing.assert_allclose(L.multi_dot([tenon.tensor(x) for x in chain[1:4]]).numpy(), np.linalg.multi_dot(chain[1:4]))
    x = random_matrix((4, 6, 8, 3), "float64")
    np.testing.assert_allclose(L.tensorinv(tenon.tensor(x)).numpy(), np.linalg.tensorinv(x), atol=1e-9)
    y, b = random_matrix((2, 3, 6), "float64"), random_matrix((2, 3), "float64")
    np.testing.assert_allclose(L.tensorsolve(tenon.tensor(y), tenon.tensor(b)).numpy(), np.linalg.tensorsolve(y, b), atol=1e-12)
    z = random_matrix((6, 2, 3), "float64")
    np.testing.assert_allclose(L.tensorsolve(tenon.tensor(z), tenon.tensor(b), (0,)).numpy(), np.linalg.tensorsolve(z, b, (0,)), atol=1e-9)
    v = random_matrix((5,), "float64")
    np.testing.assert_allclose(L.vander(tenon.tensor(v)).numpy(), np.vander(v, increasing=True))
    np.testing.assert_allclose(L.vander(tenon.tensor(v), N=3).numpy(), np.vander(v, 3, increasing=True))
    p, q = random_matrix((5, 3), "complex128"), random_matrix((5, 3), "complex128", 1)
    np.testing.assert_allclose(L.cross(tenon.tensor(p), tenon.tensor(q)).numpy(), np.cross(p, q))
    np.testing.assert_allclose(L.vecdot(tenon.tensor(p), tenon.tensor(q)).numpy(), np.vecdot(p, q) if hasattr(np, "vecdot") else (p.conj() * q).sum(-1))
    np.testing.assert_array_equal(L.diagonal(t).numpy(), np.diagonal(a, axis1=-2, axis2=-1))
    out = tenon.empty(0, dtype=tenon.float64)
    assert L.multi_dot([tenon.tensor(chain[1]), tenon.tensor(chain[2])], out=out) is out and out.shape == (7, 30)


def test_roots_and_polar_factors():
    x = random_matrix((5, 3), "complex128")
    a = adjoint(x) @ x
    root = L.matrix_sqrth(tenon.tensor(a)).numpy()
    np.testing.assert_allclose(root @ root, a, atol=1e-12)
    unitary, positive = (t.numpy() for t in L.polar(tenon.tensor(x)))
    np.testing.assert_allclose(unitary @ positive, x, atol=1e-12)
    np.testing.assert_allclose(positive, scipy.linalg.sqrtm(a), atol=1e-8)


@pytest.mark.parametrize("kind", [float, tenon.tensor])
def test_only_a_bound_above_zero_replaces_the_relative_one(kind):
    """Of PyTorch 2: atol <= 0 keeps the default rtol."""
    a = tenon.tensor([[1.0, 0.0, 0.0], [0.0, 1e-8, 0.0], [0.0, 0.0, 0.0]])
    for atol, rank in ((-1.0, 1), (0.0, 1), (1e-12, 2), (0.5, 1)):
        assert L.matrix_rank(a, atol=kind(atol)).item() == rank
        assert (L.pinv(a, atol=kind(atol)) != 0).sum().item() == rank
