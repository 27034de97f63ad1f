"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Size, Tensor
from .._names.info import finfo
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits, same_as

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of k categories, by probabilities `probs` [..., k], which are normalized, or by `logits`, log probabilities up to a constant."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Categorical: either `probs` or `logits` must be specified, but not both.")
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        if not isinstance(given, Tensor) or given.dim() < 1:
            raise ValueError(f"Categorical: `{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = given / given.sum(-1, True)
        else:
            self.logits = given - given.logsumexp(-1, True)
        self._param = self.logits if probs is None else self.probs
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(Categorical, batch_shape, ("probs", "logits", "_param"), _instance, extra=(self._num_events,))
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    param_shape = same_as("_param.shape", "The shape of the parameter.")

    @property
    def mean(self) -> Tensor:
        return tn.full(self._extended_shape(), math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    variance: Tensor = same_as("mean")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        if any(size < 0 for size in sample_shape):
            raise RuntimeError(f"Categorical.sample: sizes cannot be negative, got {list(sample_shape)}")
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = tn.multinomial(rows, max(sample_shape.numel(), 1), True)
            if sample_shape.numel() == 0:
                drawn = drawn[:, :0]
            return drawn.transpose(0, 1).reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        from ..functional import broadcast_tensors

        value, log_pmf = broadcast_tensors(value.to(tn.int64).unsqueeze(-1), self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = tn.arange(self._num_events, dtype=tn.int64, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values


class CategoricalParameter(Distribution):
    """What distributions made of a `Categorical`, their `_categorical`, have of it."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    logits: Tensor = same_as("_categorical.logits", "The logarithms of the probabilities.")
    probs: Tensor = same_as("_categorical.probs", "The probabilities.")
    param_shape = same_as("_categorical.param_shape", "The shape of the parameter.")
