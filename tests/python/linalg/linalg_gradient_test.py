"""Derivatives, first and second, against finite differences; and what has none."""

import numpy as np
import pytest
import tenon
from tenon.autograd import gradcheck, gradgradcheck

from linalg_matrices import adjoint, random_matrix

L = tenon.linalg


def symmetric(t):
    return t + t.mH


def positive(t):
    return t @ t.mH + 3 * tenon.eye(t.shape[-1], dtype=t.dtype)


#: Vectors are determined up to a phase: what does not depend on it.
CASES = {
    "cholesky": lambda t: L.cholesky(positive(t)),
    "cholesky upper": lambda t: L.cholesky(positive(t), upper=True),
    "cholesky_inverse": lambda t: tenon.cholesky_inverse(L.cholesky(positive(t))),
    "inv": L.inv,
    "det": L.det,
    "slogdet": lambda t: L.slogdet(t).logabsdet,
    "slogdet sign": lambda t: L.slogdet(t).sign * 2,
    "solve": lambda t: L.solve(t, t[..., :2]),
    "solve vector": lambda t: L.solve(t, t[..., 0]),
    "solve right": lambda t: L.solve(t, t[..., :2, :], left=False),
    "solve_triangular": lambda t: L.solve_triangular(t, t[..., :2], upper=True),
    "solve_triangular right": lambda t: L.solve_triangular(t, t[..., :2, :], upper=False, left=False, unitriangular=True),
    "lu_factor": lambda t: L.lu_factor(t)[0],
    "lu": lambda t: L.lu(t)[1:],
    "lu_solve": lambda t: L.lu_solve(*L.lu_factor(t), t[..., :2]),
    "lu_solve adjoint right": lambda t: L.lu_solve(*L.lu_factor(t), t[..., :2, :], left=False, adjoint=True),
    "qr": lambda t: tuple(L.qr(t)),
    "eigvalsh": lambda t: L.eigvalsh(symmetric(t)),
    "eigh": lambda t: (lambda p: p.eigenvectors.abs())(L.eigh(symmetric(t))),
    "svdvals": L.svdvals,
    "svd": lambda t: (lambda p: (p[0].abs(), p[2].abs()))(L.svd(t, full_matrices=False)),
    "nuclear": lambda t: L.matrix_norm(t, "nuc"),
    "cond": lambda t: L.cond(t, 1),
    "eigvals": lambda t: L.eigvals(t).abs(),
    "eig": lambda t: L.eig(t).eigenvectors.abs(),
    "pinv": L.pinv,
    "pinv hermitian": lambda t: L.pinv(symmetric(t), hermitian=True),
    "lstsq": lambda t: L.lstsq(t, t[..., :2].sin() if not t.is_complex() else t[..., :2] * 2 + 1).solution,
    "matrix_exp": L.matrix_exp,
    "matrix_power": lambda t: L.matrix_power(t, -2),
    "multi_dot": lambda t: L.multi_dot([t[0], t[1], t[0, :, :2]]),
    "householder_product": lambda t: L.householder_product(t[..., :2], t[..., 0, :2] * 0.5),
    "matrix_sqrth": lambda t: L.matrix_sqrth(positive(t)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_first_and_second_order(name, dtype):
    x = random_matrix((2, 3, 3), dtype, 7) + np.diag([1.0, 2.0, 3.5])
    t = tenon.tensor(x[:1] if name.startswith("eig") else x, requires_grad=True)
    assert gradcheck(CASES[name], (t,), atol=1e-4, rtol=1e-3)
    assert gradgradcheck(CASES[name], (t,), atol=1e-3, rtol=1e-2)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_matrices_that_are_not_square(shape, dtype):
    t = tenon.tensor(random_matrix(shape, dtype, 3), requires_grad=True)
    for f in (
        lambda t: tuple(L.qr(t)),
        lambda t: L.lu_factor(t)[0],
        lambda t: (lambda p: (p[0].abs(), p[1], p[2].abs()))(L.svd(t, full_matrices=False)),
        L.pinv,
        lambda t: L.lstsq(t, t[:, :1] * 2 + 1, driver="gels").solution,
    ):
        assert gradcheck(f, (t,), atol=1e-5, rtol=1e-4)
        assert gradgradcheck(f, (t,), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_determinant_of_a_singular_matrix_has_a_derivative(n):
    a = random_matrix((n, n), "float64")
    a[-1] = a[0]
    t = tenon.tensor(a, requires_grad=True)
    L.det(t).backward()
    minors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(t.grad.numpy(), minors, atol=1e-12)


def test_equal_values_have_derivatives_by_values_alone():
    for values in (lambda t: L.eigvalsh(t), lambda t: L.svdvals(t)):
        t = tenon.eye(3, dtype=tenon.float64, requires_grad=True)
        values(t).sum().backward()
        np.testing.assert_allclose(t.grad.numpy(), np.eye(3), atol=1e-15)
    weights = tenon.tensor(random_matrix((3, 3), "float64"))
    for f in (lambda t: L.eigh(t).eigenvectors, lambda t: L.svd(t)[0], lambda t: L.eig(t).eigenvectors.real):
        t = tenon.eye(3, dtype=tenon.float64, requires_grad=True)
        with pytest.raises(L.LinAlgError, match="does not exist where .* are equal"):
            (f(t) * weights).sum().backward()
    # A loss that does not depend on the choice has its derivative: V V^T is the identity.
    t = tenon.eye(3, dtype=tenon.float64, requires_grad=True)
    vectors = L.eigh(t).eigenvectors
    (vectors @ vectors.mT).sum().backward()
    assert not t.grad.isnan().any()


def test_what_has_no_derivative_says_so():
    a = tenon.tensor(random_matrix((4, 2), "float64"), requires_grad=True)
    with pytest.raises(RuntimeError, match="full_matrices=False"):
        L.svd(a)[0].sum().backward()
    with pytest.raises(RuntimeError, match="mode='reduced'"):
        L.qr(a, "complete").Q.sum().backward()
    with pytest.raises(RuntimeError, match="needs Q"):
        L.qr(a, "r").R.sum().backward()
    singular = tenon.ones(2, 2, dtype=tenon.float64, requires_grad=True)
    with pytest.raises(L.LinAlgError, match="singular"):
        L.slogdet(singular).logabsdet.backward()


def test_low_rank_pseudoinverses_are_differentiated_at_their_rank():
    x = random_matrix((4, 2), "float64")
    direction = random_matrix((2, 4), "float64", 2)

    def f(s):
        return L.pinv(tenon.tensor(x) @ s, rtol=1e-8)

    assert gradcheck(f, (tenon.tensor(direction, requires_grad=True),), atol=1e-5)
    assert adjoint(x).shape == (2, 4)
