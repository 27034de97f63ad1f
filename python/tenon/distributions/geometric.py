"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..autograd.grad_mode import no_grad
from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from .distribution import Distribution, _offender
from .utils import BinaryParameter, broadcast_all, floating_like, rand_open

__all__ = ["Geometric"]


class Geometric(BinaryParameter, Distribution):
    """The number of failures before the first success of probability `probs`, of log odds `logits`; one of the two is given."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _repeated = ("probs", "logits", "_param")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            found, place = _offender(self.probs, self.probs > 0)
            raise ValueError(f"Geometric: expected parameter probs to be positive, but found {found}{place}; validate_args=False leaves the check out")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return tn.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            u = rand_open(self._extended_shape(sample_shape), self.probs)
            return (tn.log(u) / tn.log1p(-self.probs)).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        return tn.special_xlog1py(floating_like(value, probs), -probs) + tn.log(probs)

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
