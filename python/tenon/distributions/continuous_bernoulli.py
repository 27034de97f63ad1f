"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .exp_family import ExponentialFamily
from .utils import BinaryParameter, broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """The density C(p) p^x (1 - p)^(1 - x) on [0, 1] (Loaiza-Ganem and Cunningham, 2019). `lims` bound where series around 1/2 serve."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _repeated = ("probs", "logits", "_param")
    _kept = ("_lims",)

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        if probs is not None:
            if validate_args and not bool(self.arg_constraints["probs"].check(self.probs).all()):
                raise ValueError("ContinuousBernoulli: the parameter probs has invalid values, outside [0, 1]")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        return tn.where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """log C(p); log(2 artanh(1 - 2 p) / (1 - 2 p)), by its series near 1/2."""
        p = self._cut_probs()
        value = tn.log((tn.log1p(-p) - tn.log(p)).abs()) - tn.log((1 - 2 * p).abs())
        x = (self.probs - 0.5) * (self.probs - 0.5)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return tn.where(self._outside(), value, taylor)

    @property
    def mean(self) -> Tensor:
        p = self._cut_probs()
        value = p / (2 * p - 1) + 1 / (tn.log1p(-p) - tn.log(p))
        x = self.probs - 0.5
        return tn.where(self._outside(), value, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut_probs()
        log_odds = tn.log1p(-p) - tn.log(p)
        value = p * (p - 1) / ((1 - 2 * p) * (1 - 2 * p)) + 1 / (log_odds * log_odds)
        x = (self.probs - 0.5) * (self.probs - 0.5)
        return tn.where(self._outside(), value, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    @property
    def stddev(self) -> Tensor:
        return tn.sqrt(self.variance)

    @lazy_property
    def probs(self) -> Tensor:
        """p"""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(tn.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        p = self._cut_probs()
        powers = tn.pow(p, value) * tn.pow(1 - p, 1 - value) + p - 1
        cdfs = tn.where(self._outside(), powers / (2 * p - 1), value)
        return tn.where(value <= 0, 0.0, tn.where(value >= 1, 1.0, cdfs))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        inner = (tn.log1p(-p + value * (2 * p - 1)) - tn.log1p(-p)) / (tn.log(p) - tn.log1p(-p))
        return tn.where(self._outside(), inner, value)

    def entropy(self) -> Tensor:
        log_p, log_q = tn.log(self.probs), tn.log1p(-self.probs)
        return self.mean * (log_q - log_p) - self._cont_bern_log_norm() - log_q

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x = natural_params[0]
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = tn.where(outside, x, self._lims[0] - 0.5)
        taylor = 0.5 * x + x * x / 24.0 - x**4 / 2880.0
        return tn.where(outside, tn.log(tn.expm1(cut).abs()) - tn.log(cut.abs()), taylor)
