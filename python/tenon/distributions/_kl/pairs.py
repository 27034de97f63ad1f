"""The divergences that there are formulas for. Gil (2011), "On Renyi divergence measures for continuous alphabet sources", has most."""

from __future__ import annotations

import math
from typing import Any

from ... import _C as tn
from ..._C import Tensor
from ...autograd import grad as gradient
from ...autograd.grad_mode import enable_grad
from ...nn.functional import softplus
from ..bernoulli import Bernoulli
from ..beta import Beta
from ..binomial import Binomial
from ..categorical import Categorical
from ..cauchy import Cauchy
from ..continuous_bernoulli import ContinuousBernoulli
from ..dirichlet import Dirichlet
from ..exp_family import ExponentialFamily
from ..exponential import Exponential
from ..gamma import Gamma
from ..geometric import Geometric
from ..gumbel import Gumbel
from ..half_normal import HalfNormal
from ..independent import Independent
from ..kl import _x_log_x, kl_divergence, register_kl
from ..laplace import Laplace
from ..normal import Normal
from ..one_hot_categorical import OneHotCategorical
from ..pareto import Pareto
from ..poisson import Poisson
from ..transformed_distribution import TransformedDistribution
from ..uniform import Uniform
from ..utils import euler_constant, sum_rightmost
inf = math.inf


def _infinite(type_p: type, of: str, *types_q: type) -> None:
    """p has values that q has not; `of` is a parameter of p, for the shape."""
    for type_q in types_q:
        register_kl(type_p, type_q)(lambda p, q: tn.full_like(getattr(p, of), inf))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1 = tn.where(q.probs == 0, inf, t1)
    t1 = tn.where(p.probs == 0, 0.0, t1)
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t2 = tn.where(q.probs == 1, inf, t2)
    return t1 + tn.where(p.probs == 1, 0.0, t2)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    sum_p, sum_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    t1 = tn.lgamma(q.concentration1) + tn.lgamma(q.concentration0) + tn.lgamma(sum_p)
    t2 = tn.lgamma(p.concentration1) + tn.lgamma(p.concentration0) + tn.lgamma(sum_q)
    t3 = (p.concentration1 - q.concentration1) * tn.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * tn.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (sum_q - sum_p) * tn.digamma(sum_p)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("kl_divergence of Binomials: where p has fewer trials than q there is no formula")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + tn.log1p(-p.probs) - tn.log1p(-q.probs))
    return tn.where(p.total_count > q.total_count, inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = tn.where((q.probs == 0).expand(t.shape), inf, t)
    return tn.where((p.probs == 0).expand(t.shape), 0.0, t).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    t1 = p.mean * (p.logits - q.logits)
    t2 = p._cont_bern_log_norm() + tn.log1p(-p.probs)
    return t1 + t2 - q._cont_bern_log_norm() - tn.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = tn.lgamma(sum_p) - tn.lgamma(sum_q)
    t2 = (tn.lgamma(p.concentration) - tn.lgamma(q.concentration)).sum(-1)
    t3 = tn.digamma(p.concentration) - tn.digamma(sum_p).unsqueeze(-1)
    return t1 - t2 + ((p.concentration - q.concentration) * t3).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - tn.log(ratio) - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    if not type(p) is type(q):
        raise NotImplementedError(
            f"kl_divergence: exponential families of different kinds, {type(p).__name__} and {type(q).__name__}, have no formula in common"
        )
    with enable_grad():
        p_nparams = [np.detach().requires_grad_() for np in p._natural_params]
        q_nparams = q._natural_params
        lg_normal = p._log_normalizer(*p_nparams)
        gradients = gradient(lg_normal.sum(), p_nparams, create_graph=True)
        result = q._log_normalizer(*q_nparams) - lg_normal
        for pnp, qnp, g in zip(p_nparams, q_nparams, gradients):
            result = result - sum_rightmost((qnp - pnp) * g, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    t1 = q.concentration * tn.log(p.rate / q.rate)
    t2 = tn.lgamma(q.concentration) - tn.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * tn.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ct1, ct2, ct3 = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    t1 = -tn.log(ct1) - ct2 + ct3
    t2 = ct1 * euler_constant
    t3 = tn.exp(ct2 + tn.lgamma(1 + ct1) - ct3)
    return t1 + t2 + t3 - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - tn.log1p(-q.probs) / p.probs - q.logits


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc).abs()
    return -tn.log(ratio) + apart / q.scale + ratio * tn.exp(-apart / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    t1 = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + t1 - 1 - tn.log(ratio))


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    alpha = q.alpha / p.alpha
    result = q.alpha * tn.log(ratio) - tn.log(alpha) + alpha - 1
    return tn.where(p.support.lower_bound < q.support.lower_bound, inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (tn.log(p.rate) - tn.log(q.rate)) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence of TransformedDistributions: there is a formula only where both have the same transforms")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = tn.log((q.high - q.low) / (p.high - p.low))
    return tn.where((q.low > p.low) | (q.high < p.high), inf, result)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence of Independents: reinterpreted_batch_ndims must be the same of both")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    # Chyzak and Nielsen (2019).
    t1 = tn.log((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2)
    return t1 - tn.log(4 * p.scale * q.scale)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * tn.log(q.rate) - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - tn.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
def _moments_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - tn.log(q.rate) + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Tensor:
    total = p.concentration1 + p.concentration0
    t1 = -p.entropy()
    t2 = tn.lgamma(q.concentration) - q.concentration * tn.log(q.rate)
    t3 = (q.concentration - 1) * (tn.digamma(p.concentration1) - tn.digamma(total))
    return t1 + t2 - t3 + q.rate * p.concentration1 / total


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _moments_normal(p: Any, q: Any) -> Tensor:
    """From a distribution of known entropy, mean and variance."""
    off = p.mean - q.loc
    return -p.entropy() + 0.5 * tn.log(2 * math.pi * q.scale**2) + 0.5 * (p.variance + off * off) / q.scale**2


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p: Any, q: Any) -> Tensor:
    return tn.where((q.high < 1) | (q.low > 0), inf, -p.entropy() + tn.log(q.high - q.low))


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    t1 = -q.concentration * tn.log(ratio)
    return t1 + ratio + tn.lgamma(q.concentration) + q.concentration * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    scale_rate, loc_scale = p.rate * q.scale, q.loc / q.scale
    t1 = tn.log(scale_rate) - 1
    t2 = tn.exp(loc_scale) * scale_rate / (scale_rate + 1)
    return t1 - loc_scale + t2 + scale_rate.reciprocal()


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - tn.log(q.rate) + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    beta_scale, loc_scale = p.rate * q.scale, q.loc / q.scale
    t1 = (p.concentration - 1) * tn.digamma(p.concentration) - tn.lgamma(p.concentration) - p.concentration
    t2 = tn.log(beta_scale) + p.concentration / beta_scale
    return t1 + t2 + tn.exp(loc_scale) * (1 + beta_scale.reciprocal()) ** -p.concentration - loc_scale


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    mean, variance, shift = p.loc / q.scale, (p.scale / q.scale) ** 2, q.loc / q.scale
    t2 = tn.exp(-mean + 0.5 * variance + shift)
    return mean - shift + t2 - tn.log(p.scale / q.scale) - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    off = p.loc - q.loc
    ratio, apart = p.scale / q.scale, off / p.scale
    t1 = tn.log(ratio)
    t2 = math.sqrt(2 / math.pi) * p.scale * tn.exp(-0.5 * apart**2)
    t3 = off * tn.erf(math.sqrt(0.5) * apart)
    return -t1 + (t2 + t3) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    scale_rate = p.scale * q.rate
    t1 = tn.log(p.alpha / scale_rate)
    result = t1 - p.alpha.reciprocal() + p.alpha * scale_rate / (p.alpha - 1) - 1
    return tn.where(p.alpha <= 1, inf, result)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Tensor:
    common = tn.log(p.scale) + p.alpha.reciprocal()
    t1 = tn.log(p.alpha) - common
    t2 = tn.lgamma(q.concentration) - q.concentration * tn.log(q.rate)
    t3 = (1 - q.concentration) * common
    result = t1 + t2 + t3 + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    return tn.where(p.alpha <= 1, inf, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    common = p.scale / (p.alpha - 1)
    off = p.alpha * common - q.loc
    t1 = tn.log(math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale) - p.alpha.reciprocal()
    spread = p.alpha * common**2 / (p.alpha - 2)
    result = t1 + 0.5 * (spread + off * off) / q.scale**2 - 1
    return tn.where(p.alpha <= 2, inf, result)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    t1 = tn.log(width)
    t2 = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    t3 = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    t4 = tn.lgamma(q.concentration1) + tn.lgamma(q.concentration0) - tn.lgamma(q.concentration1 + q.concentration0)
    return tn.where((p.high > 1) | (p.low < 0), inf, t3 + t4 - t1 - t2)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    result = -p.entropy() - p.mean * q.logits - tn.log1p(-q.probs) - q._cont_bern_log_norm()
    return tn.where((p.high > 1) | (p.low < 0), inf, result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - tn.log((p.high - p.low) * q.rate)
    return tn.where(p.low < 0, inf, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    t1 = tn.log(width)
    t2 = tn.lgamma(q.concentration) - q.concentration * tn.log(q.rate)
    t3 = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return tn.where(p.low < 0, inf, -t1 + t2 + t3 + q.rate * (p.high + p.low) / 2)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return tn.log(common) + 0.5 * (high + low) - common * (tn.exp(-high) - tn.exp(-low))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    t1 = tn.log(q.alpha * q.scale**q.alpha * width)
    t2 = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return tn.where(p.low < q.support.lower_bound, inf, t2 * (q.alpha + 1) - t1)


register_kl(HalfNormal, HalfNormal)(lambda p, q: _normal(p.base_dist, q.base_dist))
register_kl(OneHotCategorical, OneHotCategorical)(lambda p, q: _categorical(p._categorical, q._categorical))

_infinite(Beta, "concentration1", Pareto)
_infinite(ContinuousBernoulli, "probs", Pareto)
_infinite(Exponential, "rate", Beta, ContinuousBernoulli, Pareto, Uniform)
_infinite(Gamma, "concentration", Beta, ContinuousBernoulli, Pareto, Uniform)
_infinite(Gumbel, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_infinite(Laplace, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_infinite(Normal, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_infinite(Pareto, "scale", Beta, ContinuousBernoulli, Uniform)
_infinite(Poisson, "rate", Bernoulli, Binomial)
