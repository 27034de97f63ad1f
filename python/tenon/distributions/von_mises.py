"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import _C as tn
from .._C import Tensor
from ..autograd import Function
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, same_as

__all__ = ["VonMises"]

# Up to this concentration the series of the distribution function has this many terms.
_SERIES_BELOW, _TERMS = 150.0, 120


def _log_modified_bessel(order: int, x: Tensor) -> Tensor:
    """log of I_0 or I_1."""
    return tn.log(tn.special_i0e(x) if order == 0 else tn.special_i1e(x)) + x


def _slope(x: Tensor, concentration: Tensor) -> Tensor:
    """The derivative of a draw x, of mean direction 0, by the concentration: of the distribution function over the density.

    The function is x / (2 pi) and the sum of I_j / I_0 sin(j x) / (j pi); for large concentrations x is nearly normal.
    """
    k = concentration.clamp(max=_SERIES_BELOW)
    # Ratios I_j / I_(j - 1), by the backward recurrence.
    ratios, ratio = [], tn.zeros_like(k)
    for j in range(_TERMS + 1, 0, -1):
        ratio = k / (2 * j + k * ratio)
        ratios.append(ratio)
    ratios.reverse()
    first, relative, total = ratios[0], tn.ones_like(k), tn.zeros_like(x)
    for j in range(1, _TERMS + 1):
        below, relative = relative, relative * ratios[j - 1]
        above = relative * ratios[j]
        total = total + (0.5 * (below + above) - relative * first) * tn.sin(j * x) / j
    log_density = k * (tn.cos(x) - 1) - tn.log(tn.special_i0e(k)) - math.log(2 * math.pi)
    series = -(total / math.pi) * tn.exp(-log_density)
    large = -tn.tan(0.5 * x) * (1 / concentration + 0.25 / (concentration * concentration))
    return tn.where(concentration > _SERIES_BELOW, large, series)


class _Draw(Function):
    """A draw as a function of the concentration."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, concentration: Tensor) -> Tensor:
        ctx.save_for_backward(x, concentration)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, concentration = ctx.saved_tensors
        return None, grad * _slope(x, concentration)


class VonMises(Distribution):
    """The von Mises distribution of angles around `loc`, of `concentration`. Draws are by rejection (Best and Fisher, 1979)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = True
    _repeated = ("loc", "concentration")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.concentration * tn.cos(value - self.loc) - math.log(2 * math.pi) - _log_modified_bessel(0, self.concentration)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self.concentration.to(tn.float64)
        tau = 1 + tn.sqrt(1 + 4 * kappa * kappa)
        rho = (tau - tn.sqrt(2 * tau)) / (2 * kappa)
        taylor = 1 / kappa + kappa
        return tn.where(kappa < 1e-5, taylor, (1 + rho * rho) / (2 * rho))

    def _angles(self, shape: Any) -> Tensor:
        """Draws of mean direction 0, in float64. Every try takes numbers for all elements from the stream."""
        kappa, r = (t.detach().to(tn.float64).expand(shape) for t in (self.concentration, self._proposal_r))
        # From here on the normal distribution is the same to the last bits of float32, and squares leave the range.
        narrow = kappa > 1e12
        x = tn.full(shape, math.nan, dtype=tn.float64, device=kappa.device)
        if bool(narrow.any()):
            x = tn.where(narrow, tn.randn(shape, dtype=tn.float64, device=kappa.device) / kappa.sqrt(), x)
        done = narrow | ~(kappa > 0)
        while not bool(done.all()):
            u1, u2, u3 = tn.rand((3,) + tuple(shape), dtype=tn.float64, device=kappa.device).unbind(0)
            z = tn.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accept = ((c * (2 - c) - u2) > 0) | ((tn.log(c / u2) + 1 - c) >= 0)
            angle = (u3 - 0.5).sign() * tn.acos(f.clamp(min=-1, max=1))
            x = tn.where(accept & ~done, angle, x)
            done = done | accept
        return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            x = self._angles(shape).to(self.loc.dtype)
        x = _Draw.apply(x, self.concentration.expand(shape))
        return (x + math.pi + self.loc) % (2 * math.pi) - math.pi

    mean: Tensor = same_as("loc", "The circular mean.")
    mode: Tensor = same_as("loc")

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The circular variance."""
        return 1 - tn.exp(_log_modified_bessel(1, self.concentration) - _log_modified_bessel(0, self.concentration))
