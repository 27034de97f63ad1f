"""Relaxed Bernoulli distributions, whose draws have gradients."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import BinaryParameter, broadcast_all, clamp_probs, same_as

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryParameter, Distribution):
    """The log odds of a `RelaxedBernoulli` (Maddison et al., 2017)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _repeated = ("probs", "logits", "_param")
    _kept = ("temperature",)

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(tn.rand(shape, dtype=probs.dtype, device=probs.device))
        return (tn.log(uniforms) - tn.log1p(-uniforms) + tn.log(probs) - tn.log1p(-probs)) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value * self.temperature
        temperature = self.temperature if isinstance(self.temperature, Tensor) else tn.tensor(float(self.temperature), dtype=diff.dtype)
        return tn.log(temperature) + diff - 2 * tn.log1p(tn.exp(diff))


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that are near the draws of a `Bernoulli` where `temperature` is small."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]
    _repeated = ()

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)

    temperature = same_as("base_dist.temperature", "How far the draws are from 0 and 1.")
    logits: Tensor = same_as("base_dist.logits", "The log odds.")
    probs: Tensor = same_as("base_dist.probs", "The probability of 1.")
