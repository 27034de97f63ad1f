"""Relaxed one-hot categorical distributions, whose draws have gradients."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..functional import broadcast_tensors
from . import constraints
from .categorical import Categorical, CategoricalParameter
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import clamp_probs, same_as

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(CategoricalParameter):
    """The logarithm of a `RelaxedOneHotCategorical` (Maddison et al., 2017; Jang et al., 2017)."""

    support = constraints.real_vector  # The true support is a submanifold of it.
    has_rsample = True
    _repeated = ("_categorical",)
    _kept = ("temperature",)

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(tn.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - tn.log(-tn.log(uniforms))) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_tensors(self.logits, value)
        k = float(self._event_shape[0])
        temperature = tn.as_tensor(self.temperature, dtype=value.dtype, device=value.device)
        log_scale = tn.lgamma(tn.full_like(temperature, k)) + tn.log(temperature) * (k - 1)
        score = logits - value * temperature
        return (score - score.logsumexp(-1, True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex that are near the draws of a `OneHotCategorical` where `temperature` is small."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]
    _repeated = ()

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = same_as("base_dist.temperature", "How far the draws are from one-hot vectors.")
    logits: Tensor = same_as("base_dist.logits", "The logarithms of the probabilities.")
    probs: Tensor = same_as("base_dist.probs", "The probabilities.")
