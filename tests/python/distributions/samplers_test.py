"""Samplers: what they draw fits the distribution, and depends on the seed and the element alone. TENON_SAMPLES says how many are drawn."""

import os

import numpy as np
import pytest
import scipy.stats as st
import tenon
from tenon import distributions as D

N = int(os.environ.get("TENON_SAMPLES", 20000))


def t(x):
    return tenon.tensor(x, dtype=tenon.float64)


def empty():
    return tenon.empty(N, dtype=tenon.float64)


def _ks(draws, cdf):
    """The Kolmogorov-Smirnov distance, in units of its 0.1 % bound."""
    x = np.sort(draws.reshape(-1).to(tenon.float64).numpy())
    n = len(x)
    f = cdf(x)
    return max((np.arange(1, n + 1) / n - f).max(), (f - np.arange(n) / n).max()) * n**0.5 / 1.95


def _chi2(draws, pmf, cells):
    """The chi-square sum of counts over a 0.1 % bound; rare cells are joined."""
    x = draws.reshape(-1).to(tenon.int64).numpy()
    expected = np.array([pmf(k) for k in cells]) * len(x)
    keep = expected >= 20
    found = np.array([(x == k).sum() for k in np.array(cells)[keep]])
    found, expected = np.append(found, len(x) - found.sum()), np.append(expected[keep], len(x) - expected[keep].sum())
    if expected[-1] < 5:
        found, expected = found[:-1], expected[:-1]
    return ((found - expected) ** 2 / expected).sum() / st.chi2.ppf(0.999, len(found) - 1)


@pytest.fixture(autouse=True)
def _seed():
    tenon.manual_seed(20)


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.5, 200.0])
def test_gamma_draws_fit(shape):
    draws = tenon._standard_gamma(tenon.full((N,), shape, dtype=tenon.float64))
    assert _ks(draws, st.gamma(shape).cdf) < 1


@pytest.mark.parametrize("mean", [0.3, 6.0, 12.0, 300.0])
def test_poisson_draws_fit(mean):
    draws = tenon.poisson(tenon.full((N,), mean))
    assert _chi2(draws, st.poisson(mean).pmf, range(int(mean + 12 * mean**0.5 + 10))) < 1


@pytest.mark.parametrize("n, p", [(5, 0.3), (40, 0.5), (100, 0.93), (5000, 0.01), (400, 0.2)])
def test_binomial_draws_fit(n, p):
    draws = tenon.binomial(tenon.full((N,), float(n)), tenon.full((N,), p))
    assert _chi2(draws, st.binom(n, p).pmf, range(n + 1)) < 1


@pytest.mark.parametrize("name, args, reference", [
    ("Normal", (1.0, 2.0), st.norm(1, 2)), ("Laplace", (1.0, 2.0), st.laplace(1, 2)), ("Cauchy", (1.0, 2.0), st.cauchy(1, 2)),
    ("Exponential", (2.0,), st.expon(scale=0.5)), ("Gumbel", (1.0, 2.0), st.gumbel_r(1, 2)), ("Beta", (0.5, 3.0), st.beta(0.5, 3)),
    ("StudentT", (3.0,), st.t(3)), ("Weibull", (2.0, 1.5), st.weibull_min(1.5, scale=2)), ("Pareto", (1.0, 3.0), st.pareto(3)),
    ("HalfNormal", (2.0,), st.halfnorm(scale=2)), ("HalfCauchy", (2.0,), st.halfcauchy(scale=2)), ("LogNormal", (0.0, 0.5), st.lognorm(0.5)),
    ("InverseGamma", (3.0, 2.0), st.invgamma(3, scale=2)), ("VonMises", (0.0, 2.0), st.vonmises(2)), ("FisherSnedecor", (4.0, 7.0), st.f(4, 7)),
    ("Chi2", (3.0,), st.chi2(3)), ("Uniform", (-1.0, 2.0), st.uniform(-1, 3)), ("GeneralizedPareto", (0.0, 1.0, 0.3), st.genpareto(0.3)),
])  # fmt: skip
def test_draws_of_continuous_distributions_fit(name, args, reference):
    draws = getattr(D, name)(*(tenon.tensor(a, dtype=tenon.float64) for a in args)).sample((N,))
    assert _ks(draws, reference.cdf) < 1


@pytest.mark.parametrize("draw, cdf", [
    (lambda: D.ContinuousBernoulli(t(0.3)).sample((N,)), lambda x: (0.3**x * 0.7 ** (1 - x) - 0.7) / (2 * 0.3 - 1)),
    (lambda: D.Kumaraswamy(t(2.0), t(1.5)).sample((N,)), lambda x: 1 - (1 - x**2.0) ** 1.5),
    (lambda: D.Dirichlet(t([0.7, 2.0, 1.3])).sample((N,))[:, 1], st.beta(2.0, 2.0).cdf),
    (lambda: D.LogisticNormal(t([0.5, -0.3]), t([1.0, 2.0])).sample((N,)), None),
    (lambda: D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])), D.Normal(t([-1.0, 2.0]), t([1.0, 0.5]))).sample((N,)),
     lambda x: 0.3 * st.norm(-1, 1).cdf(x) + 0.7 * st.norm(2, 0.5).cdf(x)),
    (lambda: tenon.logit(D.RelaxedBernoulli(t(0.7), logits=t(0.4)).sample((N,))) * 0.7, st.logistic(0.4).cdf),
    (lambda: 0.7 * D.RelaxedOneHotCategorical(t(0.7), logits=t([0.4, 0.1, -1.0])).sample((N,)).log()[:, :2].diff(dim=-1), st.logistic(-0.3).cdf),
], ids=["ContinuousBernoulli", "Kumaraswamy", "Dirichlet", "LogisticNormal", "MixtureSameFamily", "RelaxedBernoulli", "RelaxedOneHotCategorical"])  # fmt: skip
def test_draws_of_further_distributions_fit(draw, cdf):
    x = draw()
    if cdf is None:  # Parts of a stick: the log odds of each part and of those that follow are normal, moved so that zeros give equal parts.
        assert _ks(tenon.logit(x[:, 0]) + np.log(2), st.norm(0.5, 1).cdf) < 1
        assert _ks(x[:, 1].log() - x[:, 2].log(), st.norm(-0.3, 2).cdf) < 1
    else:
        assert _ks(x, cdf) < 1


@pytest.mark.parametrize("draw, reference", [
    (lambda: tenon.rand(N, dtype=tenon.float64), st.uniform()), (lambda: tenon.randn(N, dtype=tenon.float64), st.norm()),
    (lambda: empty().uniform_(-1, 2), st.uniform(-1, 3)), (lambda: empty().normal_(1, 2), st.norm(1, 2)),
    (lambda: empty().exponential_(2.0), st.expon(scale=0.5)), (lambda: empty().cauchy_(1.0, 2.0), st.cauchy(1, 2)),
    (lambda: empty().log_normal_(0.0, 0.5), st.lognorm(0.5)),
], ids=["rand", "randn", "uniform_", "normal_", "exponential_", "cauchy_", "log_normal_"])  # fmt: skip
def test_draws_of_numbers_fit(draw, reference):
    assert _ks(draw(), reference.cdf) < 1


@pytest.mark.parametrize("draw, pmf, cells", [
    (lambda: empty().geometric_(0.3), st.geom(0.3).pmf, range(60)), (lambda: empty().bernoulli_(0.3), st.bernoulli(0.3).pmf, range(2)),
    (lambda: tenon.bernoulli(tenon.full((N,), 0.3)), st.bernoulli(0.3).pmf, range(2)), (lambda: tenon.randint(3, 10, (N,)), lambda k: 1 / 7, range(3, 10)),
    (lambda: tenon.multinomial(t([0.2, 0.5, 0.3]), N, replacement=True), lambda k: [0.2, 0.5, 0.3][k], range(3)),
    (lambda: tenon.stack([tenon.randperm(5)[1] for _ in range(N // 20)]), lambda k: 0.2, range(5)),
    (lambda: D.Bernoulli(0.3).sample((N,)), st.bernoulli(0.3).pmf, range(2)),
    (lambda: D.OneHotCategorical(t([0.2, 0.5, 0.3])).sample((N,)).argmax(-1), lambda k: [0.2, 0.5, 0.3][k], range(3)),
    (lambda: D.Multinomial(9, t([0.2, 0.5, 0.3])).sample((N,))[:, 1], st.binom(9, 0.5).pmf, range(10)),
], ids=["geometric_", "bernoulli_", "bernoulli", "randint", "multinomial", "randperm", "Bernoulli", "OneHotCategorical", "Multinomial"])  # fmt: skip
def test_draws_of_counts_fit(draw, pmf, cells):
    assert _chi2(draw(), pmf, cells) < 1


@pytest.mark.parametrize("d, reference", [
    (lambda: D.Geometric(0.3), st.geom(0.3, loc=-1)), (lambda: D.NegativeBinomial(5, 0.4), st.nbinom(5, 0.6)),
    (lambda: D.Categorical(tenon.tensor([0.2, 0.5, 0.3])), st.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3]))),
])  # fmt: skip
def test_draws_of_discrete_distributions_fit(d, reference):
    assert _chi2(d().sample((N,)), reference.pmf, range(40)) < 1


@pytest.mark.parametrize("draw", [
    lambda x: tenon._standard_gamma(x), lambda x: tenon.poisson(20 * x), lambda x: tenon.binomial(tenon.full_like(x, 50.0), x / 2),
])  # fmt: skip
def test_an_element_depends_on_its_place_alone(draw):
    x = tenon.linspace(0.1, 1, 3000, dtype=tenon.float64)
    threads = tenon.get_num_threads()
    tenon.manual_seed(5)
    whole = draw(x)
    try:
        tenon.set_num_threads(1)
        tenon.manual_seed(5)
        assert tenon.equal(whole, draw(x))
    finally:
        tenon.set_num_threads(threads)
    tenon.manual_seed(5)
    assert tenon.equal(whole[:700], draw(x[:700]))
    tenon.manual_seed(5)
    assert tenon.equal(whole[:700], draw(tenon.stack([x, x], 1)[:700, 0]))


def test_parameters_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"poisson: expected means of 0 or more in `self`, got -1 at element 1"):
        tenon.poisson(tenon.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"binomial: expected counts of 0 or more in `count`, got -2 at element 0"):
        tenon.binomial(tenon.tensor([-2.0]), tenon.tensor([0.5]))
    with pytest.raises(ValueError, match=r"binomial: expected probabilities from 0 to 1 in `prob`, got 1.5 at element 0"):
        tenon.binomial(tenon.tensor([2.0]), tenon.tensor([1.5]))
    with pytest.raises(TypeError, match="binomial: expected `count` and `prob` of one dtype"):
        tenon.binomial(tenon.tensor([2.0]), tenon.tensor([0.5], dtype=tenon.float64))
    with pytest.raises(TypeError, match="poisson: expected `self` of a floating-point dtype, got int64"):
        tenon.poisson(tenon.arange(3))
    with pytest.raises(RuntimeError, match="_sample_dirichlet: expected one dimension or more"):
        tenon._sample_dirichlet(tenon.tensor(1.0))


@pytest.mark.parametrize("a, x", [(0.02, 1e-9), (0.3, 0.2), (1.0, 0.7), (2.5, 6.0), (40.0, 35.0), (900.0, 930.0), (1e5, 1.001e5)])
def test_the_gradient_of_gamma_draws_is_that_of_the_inverse_distribution_function(a, x):
    import mpmath as mp

    mp.mp.dps = 40
    with mp.workdps(40):
        step = mp.mpf(a) * mp.mpf(10) ** -12
        mid = mp.mpf(a)
        rise = (mp.gammainc(mid + step, 0, x, regularized=True) - mp.gammainc(mid - step, 0, x, regularized=True)) / (2 * step)
        density = mp.exp((mid - 1) * mp.log(x) - x - mp.loggamma(mid))
        expected = float(-rise / density)
    found = tenon._standard_gamma_grad(tenon.tensor(a, dtype=tenon.float64), tenon.tensor(x, dtype=tenon.float64)).item()
    assert found == pytest.approx(expected, rel=1e-10 if a < 30000 else 1e-5)


def test_pathwise_gradients_are_those_of_the_mean():
    """E[x] of gamma, beta, Dirichlet and Student numbers has a known slope by the parameter."""
    for make, mean, at in [
        (lambda a: D.Gamma(a, tenon.full_like(a, 2.0)), lambda a: a / 2, 1.7),
        (lambda a: D.Beta(a, tenon.full_like(a, 2.0)), lambda a: a / (a + 2), 0.8),
        (lambda a: D.Dirichlet(tenon.stack([a, 2 * a, a * 0 + 1], -1)), None, 1.3),
        (lambda a: D.Chi2(a), lambda a: a, 3.0),
    ]:
        a = tenon.full((N,), at, dtype=tenon.float64, requires_grad=True)
        value = make(a).rsample()
        (value if value.dim() == 1 else value[..., 0]).sum().backward()
        slope = a.grad.mean().item()
        if mean is None:
            expected = 1 / (3 * at + 1) - 3 * at / (3 * at + 1) ** 2
        else:
            expected = (mean(at + 1e-6) - mean(at - 1e-6)) / 2e-6
        assert slope == pytest.approx(expected, abs=6 * a.grad.std().item() / N**0.5 + 1e-9)


def test_von_mises_draws_have_gradients():
    k = tenon.full((N,), 1.5, dtype=tenon.float64, requires_grad=True)
    x = D.VonMises(tenon.zeros_like(k), k).rsample()
    tenon.cos(x).sum().backward()
    from scipy.special import i0, i1

    expected = (i1(1.5 + 1e-5) / i0(1.5 + 1e-5) - i1(1.5 - 1e-5) / i0(1.5 - 1e-5)) / 2e-5
    assert k.grad.mean().item() == pytest.approx(expected, abs=6 * k.grad.std().item() / N**0.5)
