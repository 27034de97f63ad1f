"""MixtureSameFamily: mixtures whose components are the last batch dimension of one distribution."""

from __future__ import annotations

from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution
from .utils import same_as

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The distribution of `component_distribution`, whose last batch dimension is picked by `mixture_distribution`."""

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(self, mixture_distribution: Categorical, component_distribution: Any, validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(f"MixtureSameFamily: mixture_distribution needs to be a Categorical, got {type(mixture_distribution).__name__}")
        if not isinstance(component_distribution, Distribution):
            raise ValueError(f"MixtureSameFamily: component_distribution needs to be a Distribution, got {type(component_distribution).__name__}")
        mdbs, cdbs = tuple(mixture_distribution.batch_shape), tuple(component_distribution.batch_shape)[:-1]
        for size1, size2 in zip(reversed(mdbs), reversed(cdbs)):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(f"MixtureSameFamily: mixture_distribution.batch_shape {mdbs} does not fit component_distribution.batch_shape[:-1] {cdbs}")
        km = mixture_distribution.logits.shape[-1]
        kc = component_distribution.batch_shape[-1] if len(component_distribution.batch_shape) else None
        if kc is None or km != kc:
            raise ValueError(f"MixtureSameFamily: mixture_distribution has {km} components, component_distribution.batch_shape[-1] is {kc}")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = km
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(cdbs, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MixtureSameFamily:
        new = self._expanded(MixtureSameFamily, batch_shape, (), _instance)
        new._component_distribution = self._component_distribution.expand(tuple(batch_shape) + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution: Categorical = same_as("_mixture_distribution", "What picks the component.")
    component_distribution = same_as("_component_distribution", "The components.")

    @property
    def mean(self) -> Tensor:
        return (self._pad_mixture(self.mixture_distribution.probs) * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # By the law of total variance.
        probs, at = self._pad_mixture(self.mixture_distribution.probs), -1 - self._event_ndims
        within = (probs * self.component_distribution.variance).sum(at)
        off = self.component_distribution.mean - self._pad(self.mean)
        return within + (probs * (off * off)).sum(at)

    def cdf(self, x: Tensor) -> Tensor:
        cdf_x = self.component_distribution.cdf(self._pad(x))
        return (cdf_x * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check(x)
        log_prob_x = self.component_distribution.log_prob(self._pad(x))
        return tn.logsumexp(log_prob_x + tn.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            gather_dim = len(sample_shape) + len(self.batch_shape)
            es = tuple(self.event_shape)
            picked = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            components = self.component_distribution.sample(sample_shape)
            index = picked.reshape(tuple(picked.shape) + (1,) * (len(es) + 1))
            index = index.expand(tuple(picked.shape) + (1,) + es)
            return components.gather(gather_dim, index).squeeze(gather_dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture(self, x: Tensor) -> Tensor:
        return x.reshape(tuple(x.shape) + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
