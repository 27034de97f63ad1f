"""Distributions against scipy.stats in float64; shapes, constraints, transforms and divergences."""

import math

import numpy as np
import pytest
import scipy.stats as st
import tenon
from tenon import distributions as D
from tenon.distributions import constraints
from tenon.distributions.kl import _KL_REGISTRY

RNG = np.random.default_rng(4)
A = RNG.uniform(0.5, 3, (3,))
B = RNG.uniform(0.5, 3, (3,))
P = RNG.dirichlet(np.ones(4), 3)


def t(x):
    return tenon.tensor(np.asarray(x, np.float64))


CONTINUOUS = {
    "Normal": ((A, B), lambda a, b: st.norm(a, b)),
    "Laplace": ((A, B), lambda a, b: st.laplace(a, b)),
    "Cauchy": ((A, B), lambda a, b: st.cauchy(a, b)),
    "Uniform": ((A, A + B), lambda a, b: st.uniform(a, b - a)),
    "Exponential": ((A,), lambda a: st.expon(scale=1 / a)),
    "Gamma": ((A, B), lambda a, b: st.gamma(a, scale=1 / b)),
    "Chi2": ((A,), lambda a: st.chi2(a)),
    "Beta": ((A, B), lambda a, b: st.beta(a, b)),
    "HalfNormal": ((A,), lambda a: st.halfnorm(scale=a)),
    "HalfCauchy": ((A,), lambda a: st.halfcauchy(scale=a)),
    "LogNormal": ((A, B), lambda a, b: st.lognorm(b, scale=np.exp(a))),
    "Gumbel": ((A, B), lambda a, b: st.gumbel_r(a, b)),
    "Weibull": ((A, B), lambda a, b: st.weibull_min(b, scale=a)),
    "Pareto": ((A, B + 2.5), lambda a, b: st.pareto(b, scale=a)),
    "StudentT": ((A + 3, B, A), lambda df, m, s: st.t(df, m, s)),
    "FisherSnedecor": ((A, B + 5), lambda a, b: st.f(a, b)),
    "InverseGamma": ((A + 3, B), lambda a, b: st.invgamma(a, scale=b)),
    "VonMises": ((A * 0, B), lambda m, k: st.vonmises(k)),
    "GeneralizedPareto": ((A, B, A / 10), lambda m, s, k: st.genpareto(k, m, s)),
}
DISCRETE = {
    "Bernoulli": ((A / 4,), lambda p: st.bernoulli(p), 2),
    "Binomial": ((np.full(3, 6.0), A / 4), lambda n, p: st.binom(n, p), 7),
    "Geometric": ((A / 4,), lambda p: st.geom(p, loc=-1), 9),
    "NegativeBinomial": ((A + 1, B / 4), lambda n, p: st.nbinom(n, 1 - p), 9),
    "Poisson": ((A,), lambda m: st.poisson(m), 9),
}


def _moments(d, reference, name):
    if name not in ("Cauchy", "HalfCauchy", "VonMises"):
        np.testing.assert_allclose(d.mean.numpy(), reference.mean(), rtol=1e-9)
        np.testing.assert_allclose(d.variance.numpy(), reference.var(), rtol=1e-8)
        np.testing.assert_allclose(d.stddev.numpy(), reference.std(), rtol=1e-8)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions_agree_with_scipy(name):
    args, make = CONTINUOUS[name]
    d, reference = getattr(D, name)(*map(t, args)), make(*args)
    u = RNG.uniform(0.05, 0.95, (5, 3))
    x = reference.ppf(u)
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), reference.logpdf(x), rtol=1e-9, atol=1e-11)
    for what, at, expected in (("cdf", x, reference.cdf(x)), ("icdf", u, x)):
        try:
            found = getattr(d, what)(t(at))
        except NotImplementedError:
            continue
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8, atol=1e-12)
    try:
        np.testing.assert_allclose(d.entropy().numpy(), reference.entropy(), rtol=1e-7, atol=1e-9)
    except NotImplementedError:
        assert name in ("FisherSnedecor", "VonMises")
    _moments(d, reference, name)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions_agree_with_scipy(name):
    args, make, n = DISCRETE[name]
    d, reference = getattr(D, name)(*map(t, args)), make(*args)
    k = np.arange(n)[:, None] * np.ones((1, 3))
    np.testing.assert_allclose(d.log_prob(t(k)).numpy(), reference.logpmf(k), rtol=1e-9, atol=1e-11)
    _moments(d, reference, name)
    if name in ("Bernoulli", "Geometric", "Binomial"):
        np.testing.assert_allclose(d.entropy().numpy(), reference.entropy(), rtol=1e-7)
    logits = np.log(args[-1]) - np.log1p(-args[-1]) if name != "Poisson" else None
    if logits is not None:
        other = getattr(D, name)(*map(t, args[:-1]), logits=t(logits))
        np.testing.assert_allclose(other.log_prob(t(k)).numpy(), reference.logpmf(k), rtol=1e-8, atol=1e-10)


def test_distributions_of_vectors_agree_with_scipy():
    x = RNG.dirichlet(np.ones(4))
    alpha = np.array([0.5, 1.5, 2.0, 3.0])
    d = D.Dirichlet(t(alpha))
    assert d.log_prob(t(x)).item() == pytest.approx(st.dirichlet(alpha).logpdf(x))
    assert d.entropy().item() == pytest.approx(st.dirichlet(alpha).entropy())
    np.testing.assert_allclose(d.variance.numpy(), st.dirichlet(alpha).var())
    m = D.Multinomial(7, t(P))
    counts = m.sample()
    assert counts.shape == (3, 4) and counts.sum(-1).tolist() == [7, 7, 7]
    np.testing.assert_allclose(m.log_prob(counts).numpy(), [st.multinomial(7, p).logpmf(c) for p, c in zip(P, counts.numpy())])
    np.testing.assert_allclose(m.entropy().numpy(), [float(st.multinomial(7, p).entropy()) for p in P])
    c = D.Categorical(logits=t(np.log(P) + 3))
    np.testing.assert_allclose(c.entropy().numpy(), st.entropy(P, axis=-1))
    np.testing.assert_allclose(c.log_prob(t([0, 1, 2])).numpy(), np.log(P[[0, 1, 2], [0, 1, 2]]))
    assert c.enumerate_support().shape == (4, 3)
    o = D.OneHotCategorical(t(P))
    assert o.sample((2,)).shape == (2, 3, 4) and o.event_shape == (4,) and o.enumerate_support(False).shape == (4, 1, 4)


ALL = {**{n: a for n, (a, _) in CONTINUOUS.items()}, **{n: a for n, (a, _, _) in DISCRETE.items()}}
ALL |= {"Categorical": (P,), "OneHotCategorical": (P,), "Dirichlet": (P + 0.3,), "Kumaraswamy": (A, B), "ContinuousBernoulli": (A / 4,), "LogisticNormal": (A, B)}


@pytest.mark.parametrize("name", ALL)
def test_shapes_batches_and_expansion(name):
    d = getattr(D, name)(*map(t, ALL[name]))
    x = d.sample((5,))
    assert x.shape == (5, *d.batch_shape, *d.event_shape) and x.requires_grad is False
    assert d.log_prob(x).shape == (5, *d.batch_shape) and bool(d.support.check(x).all())
    big = d.expand((2, *d.batch_shape))
    assert big.batch_shape == (2, *d.batch_shape) and big.sample((4,)).shape == (4, 2, *d.batch_shape, *d.event_shape)
    np.testing.assert_allclose(big.log_prob(x[:1]).numpy()[0], d.log_prob(x[0]).numpy(), rtol=1e-12)
    assert type(big) is type(d) and name in repr(d)
    if d.has_rsample:
        args = [t(a).requires_grad_() for a in ALL[name]]
        getattr(D, name)(*args).rsample((2,)).sum().backward()
        assert any(a.grad is not None for a in args)


@pytest.mark.parametrize("call, text", [
    (lambda: D.Normal(t([0.0, 0.0]), t([1.0, -2.0])), r"Normal: expected parameter scale .*GreaterThan\(lower_bound=0.0\), but found -2.0 at \[1\] of the batch"),
    (lambda: D.Uniform(t(1.0), t(0.0)), "Uniform is not defined when low >= high"),
    (lambda: D.Bernoulli(1.5), r"Bernoulli: expected parameter probs .*Interval\(lower_bound=0.0, upper_bound=1.0\), but found 1.5;"),
    (lambda: D.Bernoulli(), "either `probs` or `logits`"),
    (lambda: D.Binomial(3, 0.5, 0.5), "either `probs` or `logits`"),
    (lambda: D.Geometric(0.0), "Geometric: expected parameter probs to be positive, but found 0.0"),
    (lambda: D.Categorical(t([[0.2, 0.8], [-0.5, 1.5]])), r"Categorical: expected parameter probs .*Simplex\(\), but found .* at \[1\]"),
    (lambda: D.Categorical(t(0.3)), "must be at least one-dimensional"),
    (lambda: D.Dirichlet(t(0.3)), "must be at least one-dimensional"),
    (lambda: D.Normal(t(0.0), t(1.0)).log_prob(t(math.nan)), r"Normal: expected value argument .*Real\(\), but found nan"),
    (lambda: D.Normal(0.0, 1.0).log_prob(0.5), "must be a Tensor, got float"),
    (lambda: D.Normal(t(A), t(B)).log_prob(t([1.0, 2.0])), "does not broadcast with"),
    (lambda: D.Exponential(1.0).log_prob(t(-1.0)), r"within the support GreaterThanEq\(lower_bound=0.0\), but found -1.0"),
    (lambda: D.Dirichlet(t([1.0, 1.0])).log_prob(t([0.5])), "the rightmost sizes of value must be the event shape"),
    (lambda: D.Independent(D.Normal(t(A), t(B)), 2), "reinterpreted_batch_ndims"),
    (lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)), "mixture_distribution needs to be a Categorical"),
    (lambda: D.MixtureSameFamily(D.Categorical(t(P)), D.Normal(t(A), t(B))), "does not fit|components"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 3), "transforms must be a Transform or list"),
    (lambda: D.Distribution.set_default_validate_args(3), "must be True or False"),
    (lambda: D.transforms.ReshapeTransform((2,), (3,)), "different numbers of elements"),
    (lambda: D.transforms.ExpTransform(cache_size=2), "cache_size must be 0 or 1"),
])  # fmt: skip
def test_messages_say_what_is_wrong(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match="Gamma.icdf"):
        D.Gamma(1.0, 1.0).icdf(t(0.5))
    with pytest.raises(NotImplementedError, match="Poisson has no rsample"):
        D.Distribution.rsample(D.Poisson(1.0))
    with pytest.raises(NotImplementedError, match="register_kl one"):
        D.kl_divergence(D.Weibull(1.0, 1.0), D.Normal(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="kl_divergence: q must be a Distribution, got float"):
        D.kl_divergence(D.Normal(0.0, 1.0), 3.0)
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        D.biject_to(constraints.one_hot)
    assert D.Normal(t(0.0), t(-1.0), validate_args=False).scale.item() == -1


ARGS = {
    "Bernoulli": (0.3,), "Beta": (1.5, 2.5), "Binomial": (5.0, 0.3), "ContinuousBernoulli": (0.3,), "Exponential": (1.7,), "Gamma": (2.5, 1.3),
    "Geometric": (0.3,), "Gumbel": (0.3, 1.2), "HalfNormal": (0.8,), "Laplace": (0.4, 0.7), "Normal": (0.3, 0.9), "Pareto": (1.0, 3.5),
    "Poisson": (2.5,), "Uniform": (0.2, 0.9), "Cauchy": (0.3, 0.8),
}  # fmt: skip
OTHER = {
    "Bernoulli": (0.6,), "Beta": (0.7, 1.2), "Binomial": (5.0, 0.6), "ContinuousBernoulli": (0.7,), "Exponential": (0.6,), "Gamma": (1.5, 0.7),
    "Geometric": (0.5,), "Gumbel": (-0.2, 1.9), "HalfNormal": (1.4,), "Laplace": (-0.3, 1.3), "Normal": (-0.5, 1.4), "Pareto": (0.1, 1.5),
    "Poisson": (1.2,), "Uniform": (-0.5, 2.0), "Cauchy": (-0.4, 1.7),
}  # fmt: skip
PAIRS = sorted({(p.__name__, q.__name__) for p, q in _KL_REGISTRY if p.__name__ in ARGS and q.__name__ in OTHER})


@pytest.mark.parametrize("p, q", PAIRS, ids=lambda n: n)
def test_divergences_are_means_of_log_ratios(p, q):
    first, second = getattr(D, p)(*map(t, ARGS[p])), getattr(D, q)(*map(t, OTHER[q]))
    found = D.kl_divergence(first, second).item()
    if math.isinf(found):
        return
    if p in DISCRETE:
        x = t(np.arange(2 if p == "Bernoulli" else 6 if p == "Binomial" else 200))
        w = tenon.exp(first.log_prob(x))
    else:
        # The middles of equal parts of the distribution function.
        u, w = (np.arange(20000) + 0.5) / 20000, np.full(20000, 1 / 20000)
        args, make = (ARGS[p], CONTINUOUS[p][1]) if p in CONTINUOUS else (None, None)
        x, w = (t(make(*args).ppf(u)), t(w)) if make else (first.icdf(t(u)), t(w))
    second._validate_args = False
    terms = w * (first.log_prob(x) - second.log_prob(x))
    assert found == pytest.approx(tenon.where(w == 0, 0.0, terms).sum().item(), rel=2e-3, abs=2e-4)


def test_register_kl_takes_the_nearest_pair():
    class Mine(D.Normal):
        pass

    @D.register_kl(Mine, D.Normal)
    def _mine(p, q):
        return t(7.0)

    try:
        assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 7
        assert D.kl_divergence(D.Normal(0.0, 1.0), Mine(0.0, 1.0)).item() == 0
        ind = D.kl_divergence(D.Independent(D.Normal(t(A), t(B)), 1), D.Independent(D.Normal(t(B), t(A)), 1))
        assert ind.item() == pytest.approx(D.kl_divergence(D.Normal(t(A), t(B)), D.Normal(t(B), t(A))).sum().item())
    finally:
        del _KL_REGISTRY[Mine, D.Normal]


KINDS = {
    "real": (3,), "positive": (3,), "nonnegative": (3,), "unit_interval": (3,), "simplex": (3,), "corr_cholesky": (6,), "lower_cholesky": (3, 3),
    "positive_definite": (3, 3), "real_vector": (3,),
}  # fmt: skip
SPECIAL = [constraints.greater_than(2.0), constraints.less_than(-1.0), constraints.interval(-2.0, 3.0), constraints.half_open_interval(1.0, 2.0)]


@pytest.mark.parametrize("constraint", [*KINDS, *SPECIAL], ids=str)
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_to_constraints_reach_them_and_invert(constraint, registry):
    shape = KINDS[constraint] if isinstance(constraint, str) else (3,)
    c = getattr(constraints, constraint) if isinstance(constraint, str) else constraint
    try:
        f = getattr(D, registry)(c)
    except NotImplementedError:
        assert registry == "biject_to" and constraint in ("lower_cholesky", "positive_definite")
        return
    x = t(RNG.standard_normal((4, *shape)))
    y = f(x)
    assert bool(c.check(y).all())
    if constraint == "positive_definite":
        return
    again = f(f.inv(y))
    np.testing.assert_allclose(again.numpy(), y.numpy(), rtol=1e-8, atol=1e-10)
    if f.bijective:
        np.testing.assert_allclose(f.inv(y).numpy(), x.numpy(), rtol=1e-7, atol=1e-8)
    assert tuple(f.inverse_shape(f.forward_shape((4, *shape)))) == (4, *shape)


@pytest.mark.parametrize("f, x", [
    (D.ExpTransform(), 0.3), (D.PowerTransform(2.5), 0.7), (D.SigmoidTransform(), 0.4), (D.TanhTransform(), 0.4), (D.SoftplusTransform(), 0.4),
    (D.AffineTransform(1.0, -2.0), 0.4), (D.CumulativeDistributionTransform(D.Normal(t(0.0), t(1.0))), 0.3),
    (D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 3.0)]), 0.4), (D.ExpTransform().inv, 2.0),
])  # fmt: skip
def test_jacobians_are_slopes(f, x):
    h = 1e-6
    slope = (f(t(x + h)).item() - f(t(x - h)).item()) / (2 * h)
    assert f.log_abs_det_jacobian(t(x), f(t(x))).item() == pytest.approx(math.log(abs(slope)), abs=1e-7)
    assert f.inv(f(t(x))).item() == pytest.approx(x)
    assert f.sign * slope > 0


@pytest.mark.parametrize("f, n", [(D.StickBreakingTransform(), 3), (D.CorrCholeskyTransform(), 6)])
def test_jacobians_of_vectors_are_determinants(f, n):
    x = t(RNG.standard_normal(n))
    rows = []
    for i in range(n):
        step = t(np.eye(n)[i] * 1e-6)
        rows.append(((f(x + step) - f(x - step)) / 2e-6).numpy())
    jac = np.array(rows)
    jac = jac[:, :-1] if jac.ndim == 2 else np.array([r[np.tril_indices(4, -1)] for r in jac])
    assert f.log_abs_det_jacobian(x, f(x)).item() == pytest.approx(np.linalg.slogdet(jac)[1], abs=1e-6)


def test_transforms_side_by_side_and_reshaped():
    cat = D.CatTransform([D.ExpTransform(), D.identity_transform], dim=0, lengths=[2, 1])
    x = t([0.1, 0.2, -0.3])
    np.testing.assert_allclose(cat(x).numpy(), [math.exp(0.1), math.exp(0.2), -0.3])
    np.testing.assert_allclose(cat.inv(cat(x)).numpy(), x.numpy(), rtol=1e-12)
    stack = D.StackTransform([D.ExpTransform(), D.SigmoidTransform()], dim=0)
    y = stack(t([[0.1], [0.2]]))
    np.testing.assert_allclose(stack.inv(y).numpy(), [[0.1], [0.2]], rtol=1e-12)
    d = D.TransformedDistribution(D.Normal(t(np.zeros((3, 4))), t(np.ones((3, 4)))), [D.SigmoidTransform(), D.ReshapeTransform((4,), (2, 2))])
    assert d.batch_shape == (3,) and d.event_shape == (2, 2) and d.log_prob(d.rsample((5,))).shape == (5, 3)
    cached = D.ExpTransform(cache_size=1)
    out = cached(x)
    assert cached.inv(out) is x


def test_a_mixture_is_the_sum_of_its_components():
    mix = D.MixtureSameFamily(D.Categorical(t(P)), D.Normal(t(np.zeros((3, 4))), t(np.arange(1.0, 5.0) * np.ones((3, 4)))))
    x = RNG.standard_normal((5, 3))
    expected = (P * st.norm(0, np.arange(1.0, 5.0)).pdf(x[..., None])).sum(-1)
    np.testing.assert_allclose(mix.log_prob(t(x)).numpy(), np.log(expected))
    np.testing.assert_allclose(mix.variance.numpy(), (P * np.arange(1.0, 5.0) ** 2).sum(-1))
    assert mix.sample((7,)).shape == (7, 3) and mix.cdf(t(x)).shape == (5, 3)


def test_the_entropy_of_an_exponential_family_follows_from_its_normalizer():
    for d in (D.Normal(t(A), t(B)), D.Gamma(t(A), t(B)), D.Exponential(t(A)), D.Bernoulli(t(A / 4)), D.Dirichlet(t(P + 0.5))):
        if isinstance(d, D.Dirichlet):
            continue
        np.testing.assert_allclose(D.ExponentialFamily.entropy(d).detach().numpy(), d.entropy().numpy(), rtol=1e-9)


def test_straight_through_and_relaxed_draws_pass_gradients():
    logits = t(np.log(P)).requires_grad_()
    x = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    np.testing.assert_allclose(x.detach().sum(-1).numpy(), 1)
    (x * t(np.arange(4.0))).sum().backward()
    assert logits.grad is not None
    y = D.RelaxedOneHotCategorical(t(0.5), logits=t(np.log(P))).rsample((3,))
    assert y.shape == (3, 3, 4) and bool((y.sum(-1) - 1).abs().max() < 1e-9)
    z = D.RelaxedBernoulli(t(0.5), t(A / 4))
    assert z.log_prob(z.rsample((2,))).shape == (2, 3)
