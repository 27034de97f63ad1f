"""TransformedDistribution: what a transform makes of the samples of another distribution."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import same_as, sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = f(x), f made of `transforms`, where x is of `base_distribution`."""

    arg_constraints: dict[str, Any] = {}
    _repeated: tuple[str, ...] = ()

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list) and all(isinstance(t, Transform) for t in transforms):
            self.transforms = transforms
        else:
            raise ValueError(f"TransformedDistribution: transforms must be a Transform or list, but was {transforms!r}")
        self._arrange(base_distribution)
        super().__init__(self._shapes[0], self._shapes[1], validate_args=validate_args)

    def _arrange(self, base: Any) -> None:
        """Expands the base to what the transforms need, and splits their shape into batch and event."""
        base_shape = tuple(base.batch_shape) + tuple(base.event_shape)
        base_event = len(base.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(
                f"TransformedDistribution: base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got {base_shape}."
            )
        forward_shape = transform.forward_shape(base_shape)
        expanded = tuple(transform.inverse_shape(forward_shape))
        if base_shape != expanded:
            base = base.expand(expanded[: len(expanded) - base_event])
        reinterpreted = transform.domain.event_dim - base_event
        if reinterpreted > 0:
            base = Independent(base, reinterpreted)
        self.base_dist = base
        event = transform.codomain.event_dim + max(base_event - transform.domain.event_dim, 0)
        cut = len(forward_shape) - event
        self._shapes = tuple(forward_shape[:cut]), tuple(forward_shape[cut:])

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        owner = self._expanding_class()
        if self._repeated:
            new = self._get_checked_instance(owner, _instance)
            owner.__init__(new, *(getattr(self, name).expand(batch_shape) for name in self._repeated), validate_args=False)
            new._validate_args = self._validate_args
            return new
        new = self._expanded(owner, batch_shape, (), _instance)
        new.transforms = self.transforms
        shape = tuple(batch_shape) + tuple(self.event_shape)
        for t in reversed(self.transforms):
            shape = tuple(t.inverse_shape(shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    has_rsample: bool = same_as("base_dist.has_rsample")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim = len(self.event_shape)
        log_prob: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_prob = log_prob - sum_rightmost(transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim)
            y = x
        return log_prob + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _sign(self) -> Any:
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def _monotone(self, value: Any) -> Any:
        """A probability below, or of a falling transform above."""
        sign = self._sign()
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotone(value)))
