"""What distributions share: broadcasting of parameters, probabilities and logits of each other, values computed once."""

from __future__ import annotations

import operator
from typing import Any, Callable

from .. import _C as tn
from .._C import Tensor
from .._names.info import finfo
from ..autograd.grad_mode import enable_grad
from ..functional import broadcast_tensors
from ..nn.functional import softmax

__all__ = ["broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, Tensor)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the dtype and device of the first tensor, or else the default dtype."""
    for v in values:
        if not (isinstance(v, Tensor) or is_number(v)):
            raise ValueError(f"broadcast_all: expected numbers and tensors, got {type(v).__name__}")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = tn.get_default_dtype() if first is None or not first.dtype.is_floating_point else first.dtype
    device = None if first is None else first.device
    return tuple(broadcast_tensors(*(v if isinstance(v, Tensor) else tn.tensor(float(v), dtype=dtype, device=device) for v in values)))


def floating_like(value: Tensor, like: Tensor) -> Tensor:
    """A value of integers or bool in the dtype of another tensor; floating numbers keep theirs."""
    return value if value.dtype.is_floating_point else value.to(like.dtype)


def check_tensors(name: str, **given: Any) -> None:
    """Raises TypeError unless all that are given are tensors."""
    for what, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}: {what} must be a Tensor, got {type(value).__name__}; tenon.tensor makes one")


def standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return tn.randn(shape, dtype=dtype, device=device)


def rand_open(shape: Any, like: Tensor) -> Tensor:
    """Uniform on (0, 1): never 0, whose logarithm is infinite."""
    u = tn.rand(shape, dtype=like.dtype, device=like.device)
    return u.clamp(min=finfo(like.dtype).tiny)


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.sum(tuple(range(-dim, 0)))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the dtype's eps."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: log odds where binary, else log probabilities along the last dimension, up to a constant."""
    return tn.sigmoid(logits) if is_binary else softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The reverse of `logits_to_probs`, of probabilities that are clamped first."""
    p = clamp_probs(probs)
    return tn.log(p) - tn.log1p(-p) if is_binary else tn.log(p)


class _SameAs(property):
    def __set_name__(self, owner: type, name: str) -> None:
        # By these names help() finds what a base says about the property.
        read: Any = self.fget
        read.__module__, read.__qualname__, read.__name__ = owner.__module__, f"{owner.__qualname__}.{name}", name


def same_as(path: str, doc: str | None = None) -> Any:
    """A property with the value of another attribute of the object, or of a part of it: same_as("loc"), same_as("base_dist.scale")."""
    get = operator.attrgetter(path)

    def read(self: Any) -> Any:
        return get(self)

    read.__doc__ = doc
    return _SameAs(read)


class lazy_property:
    """A property that is computed when first asked for, with gradients, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.__name__] = value
        return value


class BinaryParameter:
    """Of distributions with one of `probs` and `logits` as their parameter: the other one."""

    def _take(self, probs: Any, logits: Any, *others: Any) -> Any:
        """Keeps the one that is given. Returns `others`; all have the shape that they broadcast to."""
        if (probs is None) == (logits is None):
            raise ValueError(f"{type(self).__name__}: either `probs` or `logits` must be specified, but not both.")
        self._param, *rest = broadcast_all(logits if probs is None else probs, *others)
        setattr(self, "logits" if probs is None else "probs", self._param)
        return rest

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of 1, or of a success."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return (self.probs if "probs" in self.__dict__ else self.logits).shape


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below diagonal `diag` of square matrices, row by row."""
    n = mat.shape[-1]
    rows, columns = tn.tril_indices(n, n, offset=diag).unbind(0)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The square matrices with the elements of `vec` on and below diagonal `diag`."""
    count = vec.shape[-1]
    n = 0
    while _tril_size(n, diag) < count:
        n += 1
    if _tril_size(n, diag) != count:
        raise ValueError(f"vec_to_tril_matrix: {count} elements fill no triangle below diagonal {diag}")
    rows, columns = tn.tril_indices(n, n, offset=diag).unbind(0)
    mat = tn.zeros(vec.shape[:-1] + (n, n), dtype=vec.dtype, device=vec.device)
    mat[..., rows, columns] = vec
    return mat


def _tril_size(n: int, diag: int) -> int:
    return sum(min(max(i + 1 + diag, 0), n) for i in range(n))
