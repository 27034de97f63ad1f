"""Initialisation of parameters. Each function fills a tensor in place, outside autograd, and returns it.

The formulas are those of tenon/nn/init.cc, operation by operation, so that a seed gives the same model in C++.
"""

from __future__ import annotations

import math

from .. import _C
from .._names.absent import add_module_getattr
from ..arguments import check_module as _check_module
from ..callers import warn as _warn
from ..autograd.grad_mode import no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Generator, Tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(f"init: fans need at least 2 dimensions, got shape {list(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"init: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    return fan_in if mode == "fan_in" else fan_out


_WITHOUT_GAIN = ("linear", "sigmoid", *(f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a layer must scale its weights so that a nonlinearity keeps the variance of the values."""
    if nonlinearity in _WITHOUT_GAIN:
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: the slope of leaky_relu must be a number, got {slope!r}")
        return math.sqrt(2.0 / (1 + slope * slope))
    raise ValueError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}")


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in [a, b)."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with the given mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal with the given mean and standard deviation, of values within [a, b] alone."""
    below, above = _normal_cdf((a - mean) / std), _normal_cdf((b - mean) / std)
    if not a <= b:
        raise ValueError(f"trunc_normal_: a must not be above b, got {a} and {b}")
    if mean < a - 2 * std or mean > b + 2 * std:
        _warn("trunc_normal_: the mean is more than 2 std away from [a, b]; values may be inexact")
    quantiles = _C.empty_like(tensor, dtype=_C.float64).uniform_(below, above, generator=generator)
    return tensor.copy_(_normal_quantile(quantiles).mul_(std).add_(mean).clamp_(a, b))


def _normal_cdf(x: Any) -> Any:
    return math.erfc(-x / math.sqrt(2.0)) / 2


# Wichura (1988), algorithm AS 241: the quantiles of the normal distribution to about 16 digits, as three quotients of
# polynomials: around the median, in the tails, and far out.
_MIDDLE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
_TAIL = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


def _quotient(x: Any, coefficients: Any) -> Any:
    values = []
    for row in coefficients:
        value = _C.full_like(x, row[-1])
        for coefficient in reversed(row[:-1]):
            value.mul_(x).add_(coefficient)
        values.append(value)
    return values[0].div_(values[1])


def _normal_quantile(p: Any) -> Any:
    q = p - 0.5
    middle = q * _quotient(0.180625 - q * q, _MIDDLE)
    r = (-(_C.minimum(p, 1 - p).clamp(min=1e-300).log())).sqrt()
    tail = _C.where(r <= 5, _quotient(r - 1.6, _TAIL), _quotient(r - 5.0, _FAR))
    return _C.where(q.abs() <= 0.425, middle, _C.where(q < 0, -tail, tail))


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """He et al. (2015): uniform within gain * sqrt(3 / fan)."""
    if tensor.numel() == 0:
        return tensor
    deviation = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * deviation
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """He et al. (2015): normal with standard deviation gain / sqrt(fan)."""
    if tensor.numel() == 0:
        return tensor
    deviation = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, deviation, generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Glorot and Bengio (2010): uniform within gain * sqrt(6 / (fan_in + fan_out))."""
    if tensor.numel() == 0:
        return tensor
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    deviation = gain * math.sqrt(2.0 / (fan_in + fan_out))
    bound = math.sqrt(3.0) * deviation
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Glorot and Bengio (2010): normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    if tensor.numel() == 0:
        return tensor
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _matrix(name: str, tensor: Tensor) -> Tensor:
    if tensor.dim() != 2:
        raise ValueError(f"{name}: expected 2 dimensions, got shape {list(tensor.shape)}")
    return tensor


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix, cut or filled up with zeros."""
    _matrix("eye_", tensor).zero_().diagonal().fill_(1)
    return tensor


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution [out, in, ...] that pass each channel on, as many as there are; so in each of `groups`."""
    if not 3 <= tensor.dim() <= 5:
        raise ValueError(f"dirac_: expected 3, 4 or 5 dimensions, got shape {list(tensor.shape)}")
    out = tensor.shape[0]
    if out % groups:
        raise ValueError(f"dirac_: {out} channels cannot be divided into {groups} groups")
    tensor.zero_()
    middle = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(out // groups, tensor.shape[1])):
            tensor[(group * (out // groups) + channel, channel) + middle] = 1
    return tensor


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Orthogonal rows or columns of the matrix [n, all the rest], whichever are fewer, times `gain`.

    Saxe et al. (2013), arXiv:1312.6120. The matrix is the Q of a normal one by Householder's reflections in float64, with the
    signs that make the diagonal of R positive.
    """
    if tensor.dim() < 2:
        raise ValueError(f"orthogonal_: expected at least 2 dimensions, got shape {list(tensor.shape)}")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    start = _C.empty(rows, columns, dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
    q = _orthonormal(start.to(_C.float64) if rows >= columns else start.to(_C.float64).t())
    return tensor.copy_((q if rows >= columns else q.t()).mul(gain).reshape(tensor.shape))


def _orthonormal(a: Tensor) -> Tensor:
    """The Q of a = QR, [m, n] with m >= n, where R has a positive diagonal."""
    m, n = a.shape
    a = a.clone()
    reflections = []
    for k in range(min(m - 1, n)):
        v = a[k:, k].clone()
        norm = v.dot(v).sqrt()
        sign = 1.0 if v[0].item() >= 0 else -1.0
        v[0] += sign * norm
        square = v.dot(v).item()
        if square > 0:
            a[k:, k:].sub_(_C.outer(v, a[k:, k:].t().mv(v)), alpha=2 / square)
        reflections.append((v, square))
    q = _C.eye(m, n, dtype=a.dtype)
    for k, (v, square) in reversed(list(enumerate(reflections))):
        if square > 0:
            q[k:].sub_(_C.outer(v, q[k:].t().mv(v)), alpha=2 / square)
    signs = a.diagonal().sgn()
    return q.mul(_C.where(signs == 0, _C.ones_like(signs), signs))


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal with mean 0, but a share of `sparsity` in each column is zero. Martens (2010)."""
    rows, columns = _matrix("sparse_", tensor).shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[_C.randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


_check_module(globals())


def _deprecated(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__.removesuffix("_")

    def old(*args, **kwargs):
        _warn(f"nn.init.{name} is deprecated in favor of nn.init.{name}_.", FutureWarning)
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = name
    old.__doc__ = f"The old name of {name}_."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)

add_module_getattr(__name__)
