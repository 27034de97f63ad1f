"""Distribution: the base of all distributions, with the shapes of batches and events, and the checks of parameters and samples."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C as tn
from .._C import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .utils import broadcast_all, lazy_property, same_as

__all__ = ["Distribution"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self


def _place(valid: Tensor) -> str:
    """Where the first False is, as an index of the batch."""
    if valid.dim() == 0:
        return ""
    flat = int(valid.reshape(-1).logical_not().to(tn.int64).argmax())
    index = []
    for size in reversed(valid.shape):
        index.append(flat % size)
        flat //= size
    return str(list(reversed(index)))


def _offender(value: Tensor, valid: Tensor) -> tuple[Any, str]:
    place = _place(valid)
    found = value[tuple(int(i) for i in place[1:-1].split(","))] if place else value
    return (found.tolist() if isinstance(found, Tensor) else found), (f" at {place} of the batch" if place else "")


class Distribution:
    """A probability distribution over events of shape `event_shape`, one for each place of a batch of shape `batch_shape`."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    #: The parameters that expand() repeats, and the attributes that it keeps. A class with a constructor of its own that lists
    #: them, or that there are none besides its base's, needs no expand() of its own.
    _repeated: tuple[str, ...] = ()
    _kept: tuple[str, ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Says whether distributions check their parameters and samples where `validate_args` is not given."""
        if value not in [True, False]:
            raise ValueError(f"set_default_validate_args: value must be True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `arg_constraints`; set validate_args=False to turn off validation.", stacklevel=3)
            return
        for param, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if param not in self.__dict__ and isinstance(getattr(type(self), param), lazy_property):
                continue
            value = getattr(self, param)
            valid = constraint.check(value)
            if value.is_meta or bool(valid.all()):
                continue
            found, place = _offender(value, valid)
            raise ValueError(
                f"{type(self).__name__}: expected parameter {param} (Tensor of shape {tuple(value.shape)}) to satisfy the constraint "
                f"{constraint!r}, but found {found}{place}; validate_args=False leaves the check out"
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The distribution with its batch expanded to `batch_shape`."""
        owner = self._expanding_class()
        if owner is Distribution:
            raise NotImplementedError(f"{type(self).__name__}.expand is not there")
        return self._expanded(owner, batch_shape, self._repeated, _instance, self.event_shape)

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The value of the largest probability or density."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws of shape sample_shape + batch_shape + event_shape, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws as `sample` gives, with gradients by the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: its draws have no gradients; call sample")

    def sample_n(self, n: int) -> Tensor:
        """n draws; `sample((n,))` is the same."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability or density at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise NotImplementedError(f"{type(self).__name__}.cdf is not there")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError(f"{type(self).__name__}.icdf is not there")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a first dimension; repeated for the batch if `expand`."""
        raise NotImplementedError(f"{type(self).__name__} does not enumerate its support")

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__}.entropy is not there")

    def perplexity(self) -> Tensor:
        """e to the power of the entropy."""
        return tn.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: the value argument to log_prob must be a Tensor, got {type(value).__name__}")
        event_start = value.dim() - len(self._event_shape)
        if tuple(value.shape[max(event_start, 0) :]) != tuple(self._event_shape):
            raise ValueError(f"{name}: the rightmost sizes of value must be the event shape {tuple(self._event_shape)}, got {tuple(value.shape)}")
        expected = tuple(self._batch_shape) + tuple(self._event_shape)
        for i, j in zip(reversed(tuple(value.shape)), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"{name}: value of shape {tuple(value.shape)} does not broadcast with batch_shape + event_shape {expected}")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support`; set validate_args=False to turn off validation.", stacklevel=3)
            return
        valid = support.check(value)
        if not value.is_meta and not bool(valid.all()):
            found, place = _offender(value.expand(valid.shape) if support.event_dim == 0 else value, valid)
            raise ValueError(
                f"{name}: expected value argument (Tensor of shape {tuple(value.shape)}) to be within the support {support!r}, "
                f"but found {found}{place}; validate_args=False leaves the check out"
            )

    def _check(self, value: Tensor) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(f"{type(self).__name__} has an __init__ of its own and must define .expand() as well")
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanding_class(self) -> Any:
        return next(cls for cls in type(self).__mro__ if "_repeated" in vars(cls))

    def _expanded(self, cls: type, batch_shape: Any, names: Any, _instance: Any, event: Any = (), extra: Any = ()) -> Any:
        """An instance with the parameters `names`, those that are there, expanded; its checks are not made again.

        Parameters have the dimensions of the event, or `extra` ones, at the end.
        """
        new = self._get_checked_instance(cls, _instance)
        shape = Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                value = self.__dict__[name]
                new.__dict__[name] = value.expand(shape if isinstance(value, Distribution) else (*shape, *event, *extra))
        for name in self._kept:
            new.__dict__[name] = self.__dict__[name]
        Distribution.__init__(new, shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self) -> str:
        names = [k for k in self.arg_constraints if k in self.__dict__]
        shown = (f"{p}: {self.__dict__[p] if self.__dict__[p].numel() == 1 else self.__dict__[p].shape}" for p in names)
        return f"{self.__class__.__name__}({', '.join(shown)})"


class LocationScale(Distribution):
    """What distributions of real numbers around `loc`, stretched by `scale`, have in common."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _repeated = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mode: Tensor = same_as("loc")
