"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution of `df` degrees of freedom: a gamma distribution of shape df / 2 and rate 1/2."""

    arg_constraints = {"df": constraints.positive}
    _repeated = Gamma._repeated

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
