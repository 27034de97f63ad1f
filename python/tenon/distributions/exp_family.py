"""ExponentialFamily: distributions whose entropy follows from their log normalizer."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from ..autograd import grad as gradient
from ..autograd.grad_mode import enable_grad
from .distribution import Distribution
from .utils import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - F(theta) + k(x)), where theta are `_natural_params` and F is `_log_normalizer`."""

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.entropy is not there")

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, by the Bregman divergence of the log normalizer (Nielsen and Nock, 2010)."""
        result = -self._mean_carrier_measure
        with enable_grad():
            nparams = [p.detach().requires_grad_() for p in self._natural_params]
            lg_normal = self._log_normalizer(*nparams)
            gradients = gradient(lg_normal.sum(), nparams, create_graph=True)
            result = result + lg_normal
            for np, g in zip(nparams, gradients):
                result = result - sum_rightmost(np * g, len(self._event_shape))
        return result
