"""Distributions of vectors and matrices against scipy.stats in float64."""

import os

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
import tenon
from tenon import distributions as D
from tenon.autograd import gradcheck
from tenon.distributions import constraints

RNG = np.random.default_rng(9)
N = int(os.environ.get("TENON_SAMPLES", 20000))


def t(x):
    return tenon.tensor(np.asarray(x, np.float64))


def _covariance(*batch, n=3):
    a = RNG.normal(size=batch + (n, n))
    return a @ np.swapaxes(a, -1, -2) + 0.5 * np.eye(n)


LOC, COV = RNG.normal(size=(2, 3)), _covariance(2)
FACTOR, DIAG = RNG.normal(size=(2, 3, 2)), RNG.uniform(0.5, 2, (2, 3))


def sb(b):
    """The logarithm of the integral of (1 - r^2) ** (b - 1) over r."""
    return sp.betaln(b, b) + (2 * b - 1) * np.log(2)


def _kinds(cov):
    return {"covariance_matrix": cov, "precision_matrix": np.linalg.inv(cov), "scale_tril": np.linalg.cholesky(cov)}


@pytest.mark.parametrize("kind", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_multivariate_normal_agrees_with_scipy(kind):
    d = D.MultivariateNormal(t(LOC), **{kind: t(_kinds(COV)[kind])})
    x = RNG.normal(size=(5, 2, 3))
    expected = np.stack([st.multivariate_normal(LOC[i], COV[i]).logpdf(x[:, i]) for i in range(2)], 1)
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(d.entropy().numpy(), [st.multivariate_normal(LOC[i], COV[i]).entropy() for i in range(2)], rtol=1e-9)
    for name, value in _kinds(COV).items():
        np.testing.assert_allclose(getattr(d, name).numpy(), value, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(d.variance.numpy(), np.diagonal(COV, axis1=-2, axis2=-1), rtol=1e-9)
    np.testing.assert_array_equal(d.mean.numpy(), LOC)
    assert d.mode is d.mean and d.event_shape == (3,) and d.batch_shape == (2,)


def test_low_rank_multivariate_normal_agrees_with_scipy():
    d = D.LowRankMultivariateNormal(t(LOC), t(FACTOR), t(DIAG))
    cov = FACTOR @ np.swapaxes(FACTOR, -1, -2) + np.stack([np.diag(v) for v in DIAG])
    x = RNG.normal(size=(5, 2, 3))
    expected = np.stack([st.multivariate_normal(LOC[i], cov[i]).logpdf(x[:, i]) for i in range(2)], 1)
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(d.entropy().numpy(), [st.multivariate_normal(LOC[i], cov[i]).entropy() for i in range(2)], rtol=1e-9)
    for name, value in _kinds(cov).items():
        np.testing.assert_allclose(getattr(d, name).numpy(), value, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(d.variance.numpy(), np.diagonal(cov, axis1=-2, axis2=-1), rtol=1e-9)


DF = np.array([4.5, 7.0])


@pytest.mark.parametrize("kind", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_wishart_agrees_with_scipy(kind):
    d = D.Wishart(t(DF), **{kind: t(_kinds(COV)[kind])})
    x = _covariance(5, 2)
    references = [st.wishart(DF[i], COV[i]) for i in range(2)]
    expected = np.stack([[references[i].logpdf(v) for v in x[:, i]] for i in range(2)], 1)
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(d.entropy().numpy(), [r.entropy() for r in references], rtol=1e-9)
    np.testing.assert_allclose(d.mean.numpy(), [r.mean() for r in references], rtol=1e-9)
    np.testing.assert_allclose(d.variance.numpy(), [r.var() for r in references], rtol=1e-9)
    np.testing.assert_allclose(d.mode.numpy(), [r.mode() for r in references], rtol=1e-9)
    assert np.isnan(D.Wishart(3.5, t(COV[0])).mode.numpy()).all()
    x_normalizer = d._log_normalizer(*d._natural_params).numpy()
    np.testing.assert_allclose(x_normalizer, (d.df * (3 * np.log(2) / 2 + tenon.linalg.slogdet(d.covariance_matrix)[1] / 2) + tenon.mvlgamma(d.df / 2, 3)).numpy())


@pytest.mark.parametrize("n", [2, 3, 5])
def test_lkj_densities_are_those_of_the_triangle(n):
    concentration = np.array([0.7, 1.0, 3.0])
    d = D.LKJCholesky(n, t(concentration))
    x = d.sample((4,))
    assert bool(constraints.corr_cholesky.check(x).all()) and d.log_prob(x).shape == (4, 3)
    # The triangle's density is that of the correlations times the change of variables (1 - the rest of the row) ** (n - 1 - i) / 2.
    rows = 1 - np.cumsum(np.tril(x.numpy(), -1) ** 2, -1)
    factor = sum(np.log(rows[..., i, i - 1]) * (n - 1 - i) / 2 for i in range(1, n)) if n > 2 else 0
    # Joe (2006): the density of the matrix's determinant to the power c - 1 over its integral, a product of beta functions.
    betas = sum((n - k) * sb(concentration + (n - k - 1) / 2) for k in range(1, n))
    det = np.log(np.linalg.det((x @ x.mT).numpy()))
    expected = (concentration - 1) * det - betas + factor
    np.testing.assert_allclose(d.log_prob(x).numpy(), expected, rtol=1e-8, atol=1e-9)


ALL = {
    "MultivariateNormal": lambda: (t(LOC), t(COV)),
    "LowRankMultivariateNormal": lambda: (t(LOC), t(FACTOR), t(DIAG)),
    "Wishart": lambda: (t(DF), t(COV)),
}


@pytest.mark.parametrize("name", [*ALL, "LKJCholesky"])
def test_batches_expand_and_draws_are_in_the_support(name):
    make = getattr(D, name)
    d = make(3, t([0.7, 2.0])) if name == "LKJCholesky" else make(*ALL[name]())
    x = d.sample((5,))
    assert x.shape == (5, 2, *d.event_shape) and bool(d.support.check(x).all()) and not x.requires_grad
    d.log_prob(x)
    if name != "LKJCholesky":
        d.covariance_matrix, d.precision_matrix, d.scale_tril
    big = d.expand((4, 2))
    assert type(big) is type(d) and big.batch_shape == (4, 2) and big.event_shape == d.event_shape and name in repr(d)
    assert big.sample((3,)).shape == (3, 4, 2, *d.event_shape)
    np.testing.assert_allclose(big.log_prob(x[:1]).numpy()[0], d.log_prob(x[0]).numpy(), rtol=1e-12)
    if name != "LKJCholesky":
        assert big.covariance_matrix.shape[:2] == (4, 2) and big.entropy().shape == (4, 2) and big.variance.shape == (4, 2, *d.event_shape)
        assert big.scale_tril.shape[:2] == big.precision_matrix.shape[:2] == (4, 2) and big.mean.shape == big.mode.shape
    empty = d.sample((0,))
    assert empty.shape == (0, 2, *d.event_shape) and d.log_prob(empty).shape == (0, 2)
    assert D.Independent(d, 1).log_prob(x).shape == (5,)


@pytest.mark.parametrize("name", ALL)
def test_draws_and_probabilities_have_gradients(name):
    args = [a.requires_grad_() for a in ALL[name]()]
    make = getattr(D, name)

    def symmetric(*args):
        return [(a + a.mT) / 2 if a.dim() == 3 and a.shape[-1] == a.shape[-2] else a for a in args]

    def drawn(*args):
        tenon.manual_seed(4)
        return make(*symmetric(*args), validate_args=False).rsample((2,))

    if name != "Wishart":
        assert gradcheck(drawn, args)
    else:
        drawn(*args).sum().backward()
        assert all(bool(a.grad.isfinite().all()) and bool((a.grad != 0).any()) for a in args)
    value = make(*ALL[name]()).sample()
    assert gradcheck(lambda *a: make(*symmetric(*a), validate_args=False).log_prob(value), args)
    assert gradcheck(lambda *a: make(*symmetric(*a), validate_args=False).entropy(), args)


def _pairs():
    normal = D.MultivariateNormal(t(LOC), t(COV))
    other = D.MultivariateNormal(t(LOC[::-1].copy()), t(_covariance(2)))
    low = D.LowRankMultivariateNormal(t(LOC + 0.3), t(FACTOR), t(DIAG))
    lower = D.LowRankMultivariateNormal(t(LOC), t(FACTOR[..., :1] * 0.5), t(DIAG[::-1].copy()))
    return [(normal, other), (normal, low), (low, normal), (low, lower)]


def test_divergences_of_normal_distributions_are_those_of_the_matrices():
    for p, q in _pairs():
        a, b = p.covariance_matrix.numpy(), q.covariance_matrix.numpy()
        inverse, off = np.linalg.inv(b), q.loc.numpy() - p.loc.numpy()
        trace = np.trace(inverse @ a, axis1=-2, axis2=-1)
        expected = 0.5 * (trace + np.einsum("bi,bij,bj->b", off, inverse, off) - 3 + np.linalg.slogdet(b)[1] - np.linalg.slogdet(a)[1])
        np.testing.assert_allclose(D.kl_divergence(p, q).numpy(), expected, rtol=1e-9)
        np.testing.assert_allclose(D.kl_divergence(p.expand((4, 2)), q).numpy(), np.broadcast_to(expected, (4, 2)), rtol=1e-9)
        assert D.kl_divergence(p, p).abs().max().item() < 1e-12


def test_the_divergence_of_wishart_distributions_is_the_mean_difference_of_log_densities():
    tenon.manual_seed(1)
    p, q = D.Wishart(t(DF), t(COV)), D.Wishart(t(DF + 1.5), t(_covariance(2)))
    x = p.sample((20000,))
    off = (p.log_prob(x) - q.log_prob(x)).numpy()
    kl = D.kl_divergence(p, q).numpy()
    assert (np.abs(off.mean(0) - kl) < 5 * off.std(0) / 20000**0.5).all()
    one = D.kl_divergence(D.Wishart(t(DF[0]), t(COV[0])), D.Wishart(t(DF[0] + 1.5), q.covariance_matrix[0]))
    np.testing.assert_allclose(one.numpy(), kl[0])
    assert D.kl_divergence(p, p).abs().max().item() < 1e-12


def test_constraints_and_transforms_of_matrices_agree():
    x = t(RNG.normal(size=(2, 3, 3)))
    for constraint in (constraints.lower_cholesky, constraints.positive_definite):
        to = D.transform_to(constraint)
        y = to(x)
        assert bool(constraint.check(y).all()) and not bool(constraint.check(-y).any())
        np.testing.assert_allclose(to(to.inv(y)).numpy(), y.numpy(), rtol=1e-9)
    v = t(RNG.normal(size=(2, 6)))
    to = D.biject_to(constraints.corr_cholesky)
    y = to(v)
    assert y.shape == (2, 4, 4) and bool(constraints.corr_cholesky.check(y).all())
    np.testing.assert_allclose(to.inv(y).numpy(), v.numpy(), rtol=1e-7)
    jacobian = []
    for i in range(6):
        step = t(np.eye(6)[i] * 1e-6)
        jacobian.append(((to(v + step) - to(v - step)) / 2e-6).numpy()[(slice(None), *np.tril_indices(4, -1))])
    np.testing.assert_allclose(to.log_abs_det_jacobian(v, y).numpy(), np.linalg.slogdet(np.stack(jacobian, -1))[1], rtol=1e-5)


@pytest.mark.parametrize("call, text", [
    (lambda: D.MultivariateNormal(t(1.0), t(np.eye(2))), "MultivariateNormal: loc must be at least one-dimensional"),
    (lambda: D.MultivariateNormal(t([1.0, 2.0])), "MultivariateNormal: expected exactly one of covariance_matrix or precision_matrix or scale_tril, got 0 of them"),
    (lambda: D.Wishart(3.0, t(np.eye(2)), t(np.eye(2))), "Wishart: expected exactly one of .*, got 2 of them"),
    (lambda: D.MultivariateNormal(t([1.0, 2.0]), t([1.0, 2.0])), r"MultivariateNormal: covariance_matrix must be two-dimensional or more, .* got shape \(2,\)"),
    (lambda: D.MultivariateNormal(t([1.0, 2.0]), t(np.eye(3))), r"MultivariateNormal: expected covariance_matrix of shape \[..., 2, 2\] for loc of shape \(2,\), got \(3, 3\)"),
    (lambda: D.MultivariateNormal(t([1.0, 2.0]), t([[1.0, 2.0], [2.0, 1.0]])), r"MultivariateNormal: expected parameter covariance_matrix .*PositiveDefinite\(\)"),
    (lambda: D.MultivariateNormal(t([1.0, 2.0]), scale_tril=t(-np.eye(2))), r"MultivariateNormal: expected parameter scale_tril .*LowerCholesky\(\)"),
    (lambda: D.LowRankMultivariateNormal(t(1.0), t(FACTOR), t(DIAG)), "LowRankMultivariateNormal: loc must be at least one-dimensional"),
    (lambda: D.LowRankMultivariateNormal(t(LOC), t(DIAG), t(DIAG)), r"cov_factor must be a batch of matrices of shape \[3, rank\], got shape \(2, 3\)"),
    (lambda: D.LowRankMultivariateNormal(t(LOC), t(FACTOR), t(FACTOR)), r"cov_diag must be a batch of vectors of shape \[3\], got shape \(2, 3, 2\)"),
    (lambda: D.LowRankMultivariateNormal(t(LOC), t(FACTOR), t(np.ones((5, 3)))), r"incompatible batch shapes: loc \(2, 3\), cov_factor \(2, 3, 2\), cov_diag \(5, 3\)"),
    (lambda: D.LowRankMultivariateNormal(t(LOC), t(FACTOR), t(-DIAG)), "LowRankMultivariateNormal: expected parameter cov_diag .*GreaterThan"),
    (lambda: D.Wishart(1.0, t(np.eye(2))), "Wishart: expected df above p - 1 = 1, got 1.0"),
    (lambda: D.Wishart(3.0, t(np.ones((2, 3)))), r"Wishart: expected covariance_matrix of shape \[..., p, p\], got \(2, 3\)"),
    (lambda: D.LKJCholesky(1), "LKJCholesky: expected dim to be an integer greater than or equal to 2, got 1"),
    (lambda: D.LKJCholesky(3, -1.0), "LKJCholesky: expected parameter concentration .*GreaterThan"),
    (lambda: D.LKJCholesky(2).log_prob(t(np.ones((2, 2)))), r"LKJCholesky: expected value argument .*CorrCholesky\(\)"),
    (lambda: D.kl_divergence(D.MultivariateNormal(t([0.0]), t([[1.0]])), D.MultivariateNormal(t([0.0, 1.0]), t(np.eye(2)))),
     r"kl_divergence between MultivariateNormal and MultivariateNormal: expected one event shape, got \(1,\) and \(2,\)"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("call, text", [
    (lambda: D.MultivariateNormal([0.0], t([[1.0]])), "MultivariateNormal: loc must be a Tensor, got list; tenon.tensor makes one"),
    (lambda: D.MultivariateNormal(t([0.0]), scale_tril=[[1.0]]), "MultivariateNormal: scale_tril must be a Tensor, got list"),
    (lambda: D.LowRankMultivariateNormal(t([0.0]), t([[1.0]]), 1.0), "LowRankMultivariateNormal: cov_diag must be a Tensor, got float"),
    (lambda: D.Wishart(None, t([[1.0]])), "Wishart: df must be a Tensor, got NoneType"),
    (lambda: D.LKJCholesky(2.5), "LKJCholesky: expected dim to be an integer greater than or equal to 2, got 2.5"),
])  # fmt: skip
def test_what_is_no_tensor_is_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_vectors_without_elements_have_distributions():
    d = D.MultivariateNormal(tenon.ones(0), tenon.ones(0, 0))
    assert d.sample((2,)).shape == (2, 0) and d.log_prob(d.sample((2,))).tolist() == [0, 0] and d.entropy().item() == 0


def test_wishart_says_that_draws_may_be_singular():
    with pytest.warns(UserWarning, match="Wishart: draws of df below p are often singular"):
        d = D.Wishart(1.01, tenon.eye(2) * 1e-3)
    tenon.manual_seed(0)
    with pytest.warns(UserWarning, match="Wishart: singular draws are drawn again"):
        d.sample((2000,))


def _ks(x, cdf):
    """The Kolmogorov-Smirnov distance, in units of its 0.1 % bound."""
    x = np.sort(x)
    f = cdf(x)
    n = len(x)
    return max((np.arange(1, n + 1) / n - f).max(), (f - np.arange(n) / n).max()) * n**0.5 / 1.95


def test_draws_of_normal_vectors_fit():
    """Of each: the projections on three directions, and the squared distance, which is chi-square."""
    tenon.manual_seed(31)
    low = D.LowRankMultivariateNormal(t(LOC[0]), t(FACTOR[0]), t(DIAG[0]))
    for d in (D.MultivariateNormal(t(LOC[0]), t(COV[0])), D.MultivariateNormal(t(LOC[1]), precision_matrix=t(COV[1])), low):
        x, cov = d.sample((N,)).numpy() - d.loc.numpy(), d.covariance_matrix.numpy()
        for w in RNG.normal(size=(3, 3)):
            assert _ks(x @ w, st.norm(0, (w @ cov @ w) ** 0.5).cdf) < 1
        assert _ks(np.einsum("ni,ij,nj->n", x, np.linalg.inv(cov), x), st.chi2(3).cdf) < 1


def test_draws_of_wishart_matrices_fit():
    """w^T X w over w^T V w is chi-square of df; |X| / |V| is a product of them, whose logarithms' mean and variance are known."""
    tenon.manual_seed(32)
    d = D.Wishart(t(DF[0]), t(COV[0]))
    x = d.sample((N,)).numpy()
    for w in RNG.normal(size=(3, 3)):
        assert _ks(np.einsum("nij,i,j->n", x, w, w) / (w @ COV[0] @ w), st.chi2(DF[0]).cdf) < 1
    inverse = np.linalg.inv(x)
    for w in RNG.normal(size=(3, 3)):  # w^T V^-1 w over w^T X^-1 w is chi-square of df - p + 1.
        assert _ks((w @ np.linalg.inv(COV[0]) @ w) / np.einsum("nij,i,j->n", inverse, w, w), st.chi2(DF[0] - 2).cdf) < 1


@pytest.mark.parametrize("n, concentration", [(2, 0.6), (3, 1.0), (4, 2.5)])
def test_draws_of_correlations_fit(n, concentration):
    """Every correlation r has (r + 1) / 2 of a beta distribution of concentration + n / 2 - 1."""
    tenon.manual_seed(33)
    factor = D.LKJCholesky(n, t(concentration)).sample((N,)).numpy()
    r = factor @ np.swapaxes(factor, -1, -2)
    b = concentration + n / 2 - 1
    for i in range(n):
        for j in range(i):
            assert _ks((r[:, i, j] + 1) / 2, st.beta(b, b).cdf) < 1
