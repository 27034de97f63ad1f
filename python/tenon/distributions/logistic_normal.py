"""The logistic normal distribution."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform
from .utils import same_as

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: normal numbers of means `loc` [..., k] and standard deviations `scale`, broken as a stick into k + 1 parts."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]
    _repeated = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc: Tensor = same_as("base_dist.base_dist.loc", "The means of the normal numbers.")
    scale: Tensor = same_as("base_dist.base_dist.scale", "Their standard deviations.")
