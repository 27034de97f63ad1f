"""Independent: batch dimensions that count as the event's."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from . import constraints
from .distribution import Distribution
from .utils import same_as, sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """`base_distribution` with its last `reinterpreted_batch_ndims` batch dimensions as dimensions of the event."""

    arg_constraints: dict[str, Any] = {}

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        shape = tuple(base_distribution.batch_shape) + tuple(base_distribution.event_shape)
        n = len(base_distribution.batch_shape)
        if not 0 <= reinterpreted_batch_ndims <= n:
            raise ValueError(f"Independent: expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), got {reinterpreted_batch_ndims} and {n}")
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        super().__init__(shape[: len(shape) - event], shape[len(shape) - event :], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Independent:
        new = self._expanded(Independent, batch_shape, (), _instance)
        new.base_dist = self.base_dist.expand(tuple(batch_shape) + tuple(self.event_shape[: self.reinterpreted_batch_ndims]))
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        return new

    has_rsample: bool = same_as("base_dist.has_rsample")

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        result = self.base_dist.support
        return constraints.independent(result, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else result

    mean: Tensor = same_as("base_dist.mean")
    mode: Tensor = same_as("base_dist.mode")
    variance: Tensor = same_as("base_dist.variance")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Independent.enumerate_support: enumeration over a product is not there; enumerate base_dist")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
