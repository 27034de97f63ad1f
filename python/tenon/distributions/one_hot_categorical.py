"""Categorical distributions whose samples are one-hot vectors."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..nn.functional import one_hot
from . import constraints
from .categorical import Categorical, CategoricalParameter
from .utils import same_as

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(CategoricalParameter):
    """`Categorical` with samples that are 1 at the category and 0 elsewhere."""

    support = constraints.one_hot
    has_enumerate_support = True
    _repeated = ("_categorical",)

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    _param: Tensor = same_as("_categorical._param")
    mean: Tensor = same_as("_categorical.probs")

    @property
    def mode(self) -> Tensor:
        return one_hot(self._categorical.mode, self._categorical._num_events).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self._categorical._num_events).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = tn.eye(n, dtype=self._param.dtype, device=self._param.device).view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + tuple(self.batch_shape) + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws pass gradients to the probabilities (Bengio et al., 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
