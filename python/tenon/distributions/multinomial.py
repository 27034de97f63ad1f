"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..autograd.grad_mode import no_grad
from ..functional import broadcast_tensors
from . import constraints
from .binomial import Binomial
from .categorical import Categorical, CategoricalParameter

__all__ = ["Multinomial"]


class Multinomial(CategoricalParameter):
    """How often each category is drawn in `total_count` draws of a `Categorical`."""

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(f"Multinomial: total_count must be an int, the same for the whole batch, got {type(total_count).__name__}")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits, validate_args=validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs, validate_args=False)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Multinomial:
        new = self._expanded(Multinomial, batch_shape, (), _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = Binomial(total_count=self.total_count, probs=new._categorical.probs, validate_args=False)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            drawn = self._categorical.sample((self.total_count,) + tuple(sample_shape))
            places = drawn.movedim(0, -1) if drawn.dim() > 1 else drawn
            counts = tn.zeros(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            return counts.scatter_add(-1, places, tn.ones(places.shape, dtype=counts.dtype, device=counts.device))

    def entropy(self) -> Tensor:
        n = tn.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        chances = tn.exp(self._binomial.log_prob(self._binomial.enumerate_support(True)))[1:]
        support = self._binomial.enumerate_support(False)[1:]
        expected = (chances * tn.lgamma(support + 1)).sum((0, -1))
        return n * self._categorical.entropy() - tn.lgamma(n + 1) + expected

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_tensors(self.logits, value)
        ways = tn.lgamma(value.sum(-1) + 1) - tn.lgamma(value + 1).sum(-1)
        # Categories of probability 0 that are not drawn count nothing.
        powers = tn.where((value == 0) & (logits == -float("inf")), 0.0, logits * value)
        return ways + powers.sum(-1)
