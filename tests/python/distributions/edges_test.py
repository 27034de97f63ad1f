"""Distributions and transforms at the ends of what they take: edges of supports, pickles."""

import math
import pickle

import numpy as np
import pytest
import tenon
from tenon import distributions as D

inf = math.inf


def t(x):
    return tenon.tensor(x, dtype=tenon.float64)


@pytest.mark.parametrize("a, b, at_0, at_1", [
    (2.0, 3.0, -inf, -inf), (0.5, 0.7, inf, inf), (1.0, 1.0, 0.0, 0.0), (1.0, 2.5, math.log(2.5), -inf), (3.0, 1.0, -inf, math.log(3)),
])  # fmt: skip
def test_the_kumaraswamy_distribution_has_densities_at_its_ends(a, b, at_0, at_1):
    d = D.Kumaraswamy(t(a), t(b))
    np.testing.assert_allclose([d.log_prob(t(0.0)).item(), d.log_prob(t(1.0)).item()], [at_0, at_1], rtol=1e-14)
    x = np.array([1e-300, 1e-9, 0.3, 0.999, 1 - 1e-12])
    exact = np.log(a) + np.log(b) + (a - 1) * np.log(x) + (b - 1) * np.log(-np.expm1(a * np.log(x)))
    np.testing.assert_allclose(d.log_prob(t(x)).numpy(), exact, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("a, b", [(2.0, 3.0), (1.5, 2.0), (2.0, 1.5), (1.0, 2.0), (2.0, 1.0), (7.0, 30.0)])
def test_the_kumaraswamy_distribution_is_densest_at_its_mode(a, b):
    np.testing.assert_allclose(D.Kumaraswamy(t(a), t(b)).mode.item(), ((a - 1) / (a * b - 1)) ** (1 / a), rtol=1e-14)


TRANSFORMS = {
    "exp": lambda: D.ExpTransform(), "sigmoid": lambda: D.SigmoidTransform(), "affine": lambda: D.AffineTransform(t(2.0), t(3.0)),
    "compose": lambda: D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)]),
    "independent": lambda: D.IndependentTransform(D.ExpTransform(), 1), "power": lambda: D.PowerTransform(t(2.0)), "tanh": lambda: D.TanhTransform(),
    "cached": lambda: D.ExpTransform(cache_size=1), "stick": lambda: D.StickBreakingTransform(),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_inverses_of_transforms_are_pickled(name):
    transform = TRANSFORMS[name]()
    x = t([0.3, 0.4, 0.2])
    y = transform(x)
    inverse = pickle.loads(pickle.dumps(transform.inv))
    np.testing.assert_allclose(inverse(y).numpy(), x.numpy(), rtol=1e-12)
    np.testing.assert_allclose(inverse.inv(x).numpy(), y.numpy(), rtol=1e-12)
    assert inverse.inv.inv is inverse
    d = pickle.loads(pickle.dumps(D.TransformedDistribution(D.Normal(t(0.0), t(1.0)), [D.ExpTransform().inv.inv, D.AffineTransform(1.0, 2.0).inv])))
    exact = -0.5 * math.log(2 * math.pi) - 0.5 * math.log(2.0) ** 2 - math.log(2.0) + math.log(2.0)
    np.testing.assert_allclose(d.log_prob(t(0.5)).item(), exact, rtol=1e-12)


def test_densities_are_zero_outside_of_the_support():
    for d, points in ((D.Kumaraswamy(t(2.0), t(3.0), validate_args=False), [-1.0, 1.5, inf, -inf]), (D.Pareto(t(1.0), t(2.0), validate_args=False), [0.5, 0.0, -3.0, -inf])):
        assert d.log_prob(t(points)).tolist() == [-inf] * 4 and math.isnan(d.log_prob(t(math.nan)).item())


@pytest.mark.parametrize("make, args, edges", [
    (D.Gamma, (2.0, 1.0), [0.0]), (D.Beta, (2.0, 3.0), [0.0, 1.0]), (D.Chi2, (3.0,), [0.0]), (D.Pareto, (1.0, 2.0), [0.0, -1.0]),
    (D.Kumaraswamy, (2.0, 3.0), [0.0, 1.0, -1.0, 2.0]),
])  # fmt: skip
def test_values_at_an_edge_leave_the_gradients_of_others_alone(make, args, edges):
    def slopes(values):
        parameters = [t(a).requires_grad_(True) for a in args]
        inside = make(*parameters, validate_args=False).log_prob(t(values))[0]
        return [g.item() for g in tenon.autograd.grad(inside, parameters)]

    value = 1.5 if make is D.Pareto else 0.5
    np.testing.assert_allclose(slopes([value, *edges]), slopes([value]), rtol=1e-14)


@pytest.mark.parametrize("f, edge", [(tenon.xlogy, 0.0), (tenon.special.xlog1py, -1.0)])
def test_a_gradient_of_zero_stays_zero_where_a_logarithm_is_infinite(f, edge):
    x, y = t([2.0, 0.0, 3.0]).requires_grad_(True), t([edge, edge, edge + 2])
    (slope,) = tenon.autograd.grad(f(x, y), x, t([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(slope.numpy(), [0, 0, math.log(2)], rtol=1e-14)
    x, y = t([2.0, 0.5]).requires_grad_(True), t([0.7, 1.5]).requires_grad_(True)
    assert tenon.autograd.gradcheck(f, (x, y)) and tenon.autograd.gradgradcheck(f, (x, y))


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16, tenon.float32, tenon.float64])
def test_draws_of_small_concentrations_are_above_zero(dtype):
    tenon.manual_seed(3)
    smallest = tenon.finfo(dtype).tiny
    small = tenon.tensor(1e-3, dtype=dtype)
    for draws in (D.Beta(small, small).sample((500,)), D.Dirichlet(small.expand(3)).sample((500,)), D.Beta(small, tenon.tensor(900.0, dtype=dtype)).sample((500,))):
        assert draws.dtype is dtype and (draws.min().item() >= smallest if dtype is tenon.float64 else draws.min().item() == smallest) and draws.max().item() <= 1


@pytest.mark.parametrize("make", [D.Bernoulli, D.Geometric])
def test_densities_promote_float64_values(make):
    d = make(tenon.tensor([0.3, 0.6]), validate_args=False)
    for dtype, expected in ((tenon.float64, tenon.float64), (tenon.float32, tenon.float32), (tenon.int64, tenon.float32), (tenon.bool, tenon.float32)):
        assert d.log_prob(tenon.tensor([1, 0], dtype=dtype)).dtype is expected


def test_the_incomplete_gamma_function_of_shape_0_is_constant():
    x = t([0.5, 3.0]).requires_grad_(True)
    for f in (tenon.special.gammainc, tenon.special.gammaincc):
        (slope,) = tenon.autograd.grad(f(tenon.zeros_like(x), x).sum(), x)
        assert slope.tolist() == [0, 0]


def test_even_odds_have_the_derivative_of_the_binomial_distribution():
    logits = t([0.0, 0.0, 1.0, -40.0, 40.0]).requires_grad_()
    value = t([3.0, 0.0, 5.0, 2.0, 4.0])
    log_prob = D.Binomial(t(5.0), logits=logits).log_prob(value)
    log_prob.sum().backward()
    p = 1 / (1 + np.exp(-logits.detach().numpy()))
    np.testing.assert_allclose(logits.grad.numpy(), value.numpy() - 5 * p, rtol=1e-14)
    ways = np.log([10, 1, 1, 10, 5])
    want = ways + value.numpy() * logits.detach().numpy() - 5 * np.logaddexp(0, logits.detach().numpy())
    np.testing.assert_allclose(log_prob.detach().numpy(), want, rtol=1e-14)
