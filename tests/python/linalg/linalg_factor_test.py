"""Cholesky, LU, LDL, QR and what is solved by them: residuals by LAPACK's measure, against products in float64."""

import numpy as np
import pytest
import scipy.linalg
import tenon

from linalg_matrices import DTYPES, ORDERS, adjoint, kinds, random_matrix, ratio, wide

L = tenon.linalg


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_lu_leaves_little_of_every_kind_of_matrix(n, dtype):
    for name, a in kinds(n, dtype).items():
        p, low, up = (wide(t.numpy()) for t in L.lu(tenon.tensor(a)))
        assert ratio(p @ low @ up - wide(a), a, n, dtype) < 30, name
        assert np.abs(low).max() <= 1.5 and (np.triu(low, 1) == 0).all() and (np.tril(up, -1) == 0).all()
        assert ((p == 0) | (p == 1)).all() and (p.sum(0) == 1).all()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (70, 20), (20, 70), (40, 33), (33, 90), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_lu_and_qr_of_matrices_that_are_not_square(shape, dtype):
    a = random_matrix((2, *shape), dtype)
    p, low, up = (wide(t.numpy()) for t in L.lu(tenon.tensor(a)))
    assert low.shape == (2, shape[0], min(shape)) and up.shape == (2, min(shape), shape[1])
    for i in range(2):
        assert ratio(p[i] @ low[i] @ up[i] - wide(a[i]), a[i], max(shape), dtype) < 30
    for mode in ("reduced", "complete"):
        q, r = (wide(t.numpy()) for t in L.qr(tenon.tensor(a), mode))
        k = shape[0] if mode == "complete" else min(shape)
        assert q.shape == (2, shape[0], k) and r.shape == (2, k, shape[1])
        for i in range(2):
            assert ratio(q[i] @ r[i] - wide(a[i]), a[i], max(shape), dtype) < 30
            assert ratio(adjoint(q[i]) @ q[i] - np.eye(k), np.eye(k), max(shape), dtype) < 30
    assert tuple(L.qr(tenon.tensor(a), "r").R.shape) == (2, min(shape), shape[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_qr_has_the_signs_of_lapack(n, dtype):
    for name, a in kinds(n, dtype).items():
        q, r = (wide(t.numpy()) for t in L.qr(tenon.tensor(a)))
        assert ratio(q @ r - wide(a), a, n, dtype) < 30, name
        assert ratio(adjoint(q) @ q - np.eye(n), np.eye(n), n, dtype) < 30, name
        if name == "random":
            expected = np.linalg.qr(wide(a))
            np.testing.assert_allclose(np.sign(np.diag(r).real), np.sign(np.diag(expected.R).real))
            np.testing.assert_allclose(r, expected.R, atol=3000 * n * float(tenon.finfo(getattr(tenon, dtype)).eps))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_cholesky_leaves_little(n, dtype):
    for name, x in kinds(n, dtype).items():
        a = (x @ adjoint(x) + (1e-2 if name != "random" else 0.1) * n * np.eye(n)).astype(dtype)
        read = np.where(np.tri(n, dtype=bool), a, 99).astype(dtype)  # the other triangle is not read
        low = wide(L.cholesky(tenon.tensor(read)).numpy())
        assert ratio(low @ adjoint(low) - wide(a), a, n, dtype) < 30, name
        up = wide(L.cholesky(tenon.tensor(adjoint(read)), upper=True).numpy())
        assert (np.triu(low, 1) == 0).all() and (np.tril(up, -1) == 0).all()
        np.testing.assert_array_equal(up, adjoint(low))
        b = random_matrix((n, 3), dtype)
        x = tenon.cholesky_solve(tenon.tensor(b), L.cholesky(tenon.tensor(a))).numpy()
        assert ratio(wide(a) @ wide(x) - wide(b), np.abs(wide(a)).sum() * np.abs(wide(x)).max(), n, dtype) < 30
        if n > 33:
            continue
        inverse = tenon.cholesky_inverse(L.cholesky(tenon.tensor(a), upper=True), upper=True).numpy()
        np.testing.assert_allclose(wide(inverse) @ wide(a), np.eye(n), atol=1e4 * np.finfo(dtype).eps * np.linalg.cond(wide(a)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_solutions_leave_little(n, dtype):
    a = kinds(n, dtype)["random"]
    scale = np.abs(wide(a)).sum()
    for columns in (1, 3, 80):
        b = random_matrix((n, columns), dtype)
        x = wide(L.solve(tenon.tensor(a), tenon.tensor(b)).numpy())
        assert ratio(wide(a) @ x - wide(b), scale * np.abs(x).max(), n, dtype) < 30
        x = wide(L.solve(tenon.tensor(a), tenon.tensor(adjoint(b).copy()), left=False).numpy())
        assert ratio(x @ wide(a) - adjoint(wide(b)), scale * np.abs(x).max(), n, dtype) < 30
        factors, pivots = L.lu_factor(tenon.tensor(a))
        for left in (True, False):
            for turned in (True, False):
                right = b if left else adjoint(b).copy()
                x = wide(L.lu_solve(factors, pivots, tenon.tensor(right), left=left, adjoint=turned).numpy())
                used = adjoint(wide(a)) if turned else wide(a)
                rest = (used @ x if left else x @ used) - wide(right)
                assert ratio(rest, scale * np.abs(x).max(), n, dtype) < 30, (left, turned)
        triangle = a + n * np.eye(n, dtype=dtype)
        for upper in (True, False):
            for unit in (True, False):
                t = wide(np.triu(triangle) if upper else np.tril(triangle))
                if unit:
                    t = t / n
                    np.fill_diagonal(t, 1)
                given = (triangle / n if unit else triangle).astype(dtype)
                x = wide(L.solve_triangular(tenon.tensor(given), tenon.tensor(b), upper=upper, unitriangular=unit).numpy())
                assert ratio(t @ x - wide(b), np.abs(t).sum() * np.abs(x).max(), n, dtype) < 30
    inverse = wide(L.inv(tenon.tensor(a)).numpy())
    assert ratio(inverse @ wide(a) - np.eye(n), scale * np.abs(inverse).sum(), n, dtype) < 30


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16, 40])
def test_determinants(n, dtype):
    a = random_matrix((4, n, n), dtype)
    expected, tolerance = np.linalg.det(wide(a)), 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(L.det(tenon.tensor(a)).numpy(), expected, rtol=tolerance)
    sign, log = np.linalg.slogdet(wide(a))
    result = L.slogdet(tenon.tensor(a))
    np.testing.assert_allclose(result.sign.numpy(), sign, rtol=tolerance)
    np.testing.assert_allclose(result.logabsdet.numpy(), log, rtol=tolerance, atol=tolerance)
    logdet = tenon.logdet(tenon.tensor(a)).numpy()
    if not np.iscomplexobj(a):
        np.testing.assert_array_equal(np.isnan(logdet), sign < 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 33])
@pytest.mark.parametrize("hermitian", [True, False])
def test_ldl_solves_indefinite_systems(n, dtype, hermitian):
    x = random_matrix((3, n, n), dtype)
    a = x + (adjoint(x) if hermitian else np.swapaxes(x, -1, -2))
    a[1] -= np.diag(np.diag(a[1]))  # a zero diagonal takes blocks of order 2
    if n == 1:
        a[1] = 1
    read = np.where(np.tri(n, dtype=bool), a, 99).astype(dtype)
    factors, pivots = L.ldl_factor(tenon.tensor(read), hermitian=hermitian)
    assert n == 1 or (pivots.numpy()[1] < 0).any()
    b = random_matrix((3, n, 2), dtype, 5)
    solution = wide(L.ldl_solve(factors, pivots, tenon.tensor(b), hermitian=hermitian).numpy())
    for i in range(3):
        assert ratio(wide(a[i]) @ solution[i] - wide(b[i]), np.abs(a[i]).sum() * np.abs(solution[i]).max(), n, dtype) < 30
    if not hermitian and dtype == "float64":
        expected, expected_pivots, _ = scipy.linalg.lapack.dsytrf(a[0], lower=1)
        np.testing.assert_array_equal(pivots.numpy()[0], expected_pivots)
        np.testing.assert_allclose(np.tril(factors.numpy()[0]), np.tril(expected), atol=1e-10)


@pytest.mark.parametrize("n", [4, 40])
def test_reflections_make_q(n):
    for dtype in DTYPES:
        a = random_matrix((2, n, n - 1), dtype)
        packed, tau = tenon.geqrf(tenon.tensor(a))
        q = L.householder_product(packed, tau)
        np.testing.assert_allclose(q.numpy(), L.qr(tenon.tensor(a)).Q.numpy(), atol=1e-5)
        whole = wide(L.qr(tenon.tensor(a), "complete").Q.numpy())
        c = random_matrix((2, n, 3), dtype, 3)
        for transpose in (False, True):
            used = adjoint(whole) if transpose else whole
            product = tenon.ormqr(packed, tau, tenon.tensor(c), True, transpose).numpy()
            np.testing.assert_allclose(product, used @ wide(c), atol=1e-5)


def test_batches_broadcast_and_strides_do_not_matter():
    a, b = random_matrix((3, 1, 4, 4), "float64"), random_matrix((2, 4, 5), "float64", 1)
    expected = np.linalg.solve(np.broadcast_to(a, (3, 2, 4, 4)), np.broadcast_to(b, (3, 2, 4, 5)))
    np.testing.assert_allclose(L.solve(tenon.tensor(a), tenon.tensor(b)).numpy(), expected, rtol=1e-9)
    t, u = tenon.tensor(a).transpose(0, -1).contiguous().transpose(0, -1), tenon.tensor(b).flip([-1])
    assert tenon.equal(L.solve(t, u), L.solve(tenon.tensor(a), u.contiguous()))
    once = tenon.tensor(a[0, 0])
    many = L.solve(once.expand(20, 4, 4), tenon.tensor(b[0]))
    assert all(tenon.equal(many[i], L.solve(once, tenon.tensor(b[0]))) for i in range(20))
    vectors = random_matrix((3, 4), "float64", 2)
    given = tenon.tensor(a[:, 0])
    np.testing.assert_allclose(L.solve(given, tenon.tensor(vectors)).numpy(), np.linalg.solve(a[:, 0], vectors[..., None])[..., 0])


@pytest.mark.parametrize("call", ["inv", "lu_factor", "cholesky", "qr", "eigh", "svd", "det"])
@pytest.mark.parametrize("n", [3, 16])
def test_a_matrix_has_the_same_bits_in_any_batch(call, n):
    x = random_matrix((37, n, n), "float32")
    a = tenon.tensor((x @ adjoint(x) + np.eye(n)).astype("float32"))
    f = getattr(L, call)
    for whole, one in zip(_listed(f(a)), _listed(f(a[5])), strict=True):
        assert tenon.equal(whole[5], one)


def _listed(result):
    return [result] if isinstance(result, tenon.Tensor) else list(result)


@pytest.mark.parametrize("call", ["inv", "cholesky", "qr", "eigh", "svd", "eig", "slogdet", "lu", "matrix_exp", "pinv"])
def test_matrices_and_batches_without_elements(call):
    for shape in ((0, 0), (3, 0, 0), (0, 4, 4), (2, 0, 5, 5)):
        for result in _listed(getattr(L, call)(tenon.zeros(shape))):
            assert result.numel() == 0 or result.shape == shape[:-2] or call == "slogdet"
    assert L.solve(tenon.zeros(0, 0), tenon.zeros(0, 3)).shape == (0, 3)
    assert L.det(tenon.zeros(2, 0, 0)).tolist() == [1.0, 1.0]
