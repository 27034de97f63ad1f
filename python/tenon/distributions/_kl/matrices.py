"""The divergences of multivariate normal and Wishart distributions."""

from __future__ import annotations

from typing import Any

from ... import _C as tn, linalg
from ..._C import Tensor
from ..kl import register_kl
from ..lowrank_multivariate_normal import LowRankMultivariateNormal, _log_det, _low_rank_mahalanobis
from ..multivariate_normal import MultivariateNormal, _half_log_det, _mahalanobis
from ..wishart import Wishart, _mvdigamma


def _same_event(p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence between {type(p).__name__} and {type(q).__name__}: expected one event shape, got {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )


def _trace(factor: Tensor, *parts: Tensor) -> Tensor:
    """The trace of (L L^T)^-1 M, M being the sum of products of the parts with their transposes."""
    found = [linalg.solve_triangular(factor, part, upper=False).square().sum((-2, -1)) for part in parts]
    return found[0] if len(found) == 1 else found[0] + found[1]


def _parts(p: Any) -> tuple[Tensor, ...]:
    """Matrices whose products with their transposes sum to the covariance."""
    if isinstance(p, LowRankMultivariateNormal):
        return p._unbroadcasted_cov_factor, tn.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    return (p._unbroadcasted_scale_tril,)


def _log_determinant(p: Any) -> Tensor:
    if isinstance(p, LowRankMultivariateNormal):
        return _log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)
    return 2 * _half_log_det(p._unbroadcasted_scale_tril)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _to_multivariate_normal(p: Any, q: Any) -> Tensor:
    _same_event(p, q)
    factor = q._unbroadcasted_scale_tril
    spread = _trace(factor, *_parts(p)) + _mahalanobis(factor, q.loc - p.loc)
    return 0.5 * (_log_determinant(q) - _log_determinant(p) + spread - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _to_low_rank(p: Any, q: Any) -> Tensor:
    # tr((W W^T + D)^-1 M) by Woodbury's identity.
    _same_event(p, q)
    factor, diag = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    across = factor.mT / diag.unsqueeze(-2)
    parts = _parts(p)
    whole = (p.variance / diag).sum(-1)
    trace = whole - _trace(q._capacitance_tril, *(across @ part for part in parts))
    spread = _low_rank_mahalanobis(factor, diag, q.loc - p.loc, q._capacitance_tril)
    return 0.5 * (_log_determinant(q) - _log_determinant(p) + trace + spread - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Tensor:
    _same_event(p, q)
    n = p.event_shape[-1]
    logs = q.df * (_half_log_det(q._unbroadcasted_scale_tril) - _half_log_det(p._unbroadcasted_scale_tril))
    trace = 0.5 * p.df * (_trace(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril) - n)
    gammas = tn.mvlgamma(0.5 * q.df, n) - tn.mvlgamma(0.5 * p.df, n)
    return logs + trace + gammas + 0.5 * (p.df - q.df) * _mvdigamma(0.5 * p.df, n)
