"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..autograd.grad_mode import no_grad
from ..nn.functional import logsigmoid
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import BinaryParameter, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameter, Distribution):
    """The number of successes, of probability `probs` or log odds `logits`, before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _repeated = ("total_count", "probs", "logits", "_param")

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * tn.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * tn.exp(self.logits)).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / tn.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, tn.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return tn.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        chances = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = tn.lgamma(n + value) - tn.lgamma(1.0 + value) - tn.lgamma(n)
        return chances + tn.where(n + value == 0, 0.0, ways)
