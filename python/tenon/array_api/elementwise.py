"""Elementwise functions of the standard. Where PyTorch's conventions differ from the standard's special cases, these are the standard's."""

from __future__ import annotations

from .. import _C
from .._C import Tensor
from ..arguments import check_module as _check_module
from ._base import Operand, of_one, of_two, promoted

abs = of_one("abs", _C.abs)
acos, acosh = of_one("acos", _C.acos), of_one("acosh", _C.acosh)
asin, asinh = of_one("asin", _C.asin), of_one("asinh", _C.asinh)
atan, atanh = of_one("atan", _C.atan), of_one("atanh", _C.atanh)
bitwise_invert = of_one("bitwise_invert", _C.bitwise_not)
ceil, floor, trunc = of_one("ceil", _C.ceil), of_one("floor", _C.floor), of_one("trunc", _C.trunc)
conj, imag, real = of_one("conj", _C.conj), of_one("imag", _C.imag), of_one("real", _C.real)
cos, cosh, exp = of_one("cos", _C.cos), of_one("cosh", _C.cosh), of_one("exp", _C.exp)
isfinite, isinf, isnan = of_one("isfinite", _C.isfinite), of_one("isinf", _C.isinf), of_one("isnan", _C.isnan)
log, log1p = of_one("log", _C.log), of_one("log1p", _C.log1p)
log2, log10 = of_one("log2", _C.log2), of_one("log10", _C.log10)
logical_not = of_one("logical_not", _C.logical_not)
negative, positive = of_one("negative", _C.negative), of_one("positive", _C.clone)
reciprocal, signbit = of_one("reciprocal", _C.reciprocal), of_one("signbit", _C.signbit)
sin, sinh = of_one("sin", _C.sin), of_one("sinh", _C.sinh)
sqrt, square, tan = of_one("sqrt", _C.sqrt), of_one("square", _C.square), of_one("tan", _C.tan)

add, subtract = of_two("add", _C.add), of_two("subtract", _C.subtract)
multiply, divide = of_two("multiply", _C.multiply), of_two("divide", _C.divide)
atan2, copysign = of_two("atan2", _C.atan2), of_two("copysign", _C.copysign)
hypot, logaddexp = of_two("hypot", _C.hypot), of_two("logaddexp", _C.logaddexp)
bitwise_and = of_two("bitwise_and", _C.bitwise_and)
bitwise_or = of_two("bitwise_or", _C.bitwise_or)
bitwise_xor = of_two("bitwise_xor", _C.bitwise_xor)
bitwise_left_shift = of_two("bitwise_left_shift", _C.bitwise_left_shift)
bitwise_right_shift = of_two("bitwise_right_shift", _C.bitwise_right_shift)
equal, not_equal = of_two("equal", _C.eq), of_two("not_equal", _C.not_equal)
greater, greater_equal = of_two("greater", _C.greater), of_two("greater_equal", _C.greater_equal)
less, less_equal = of_two("less", _C.less), of_two("less_equal", _C.less_equal)
logical_and = of_two("logical_and", _C.logical_and)
logical_or = of_two("logical_or", _C.logical_or)
logical_xor = of_two("logical_xor", _C.logical_xor)
maximum, minimum = of_two("maximum", _C.maximum), of_two("minimum", _C.minimum)
nextafter, pow = of_two("nextafter", _C.nextafter), of_two("pow", _C.pow)


def expm1(x: Tensor, /) -> Tensor:
    y = _C.expm1(x)
    # The real part of expm1(-0 + 0j) is +0.
    return _C.complex(y.real + 0.0, y.imag) if y.is_complex() else y


def tanh(x: Tensor, /) -> Tensor:
    y = _C.tanh(x)
    if not y.is_complex():
        return y
    # The limit keeps the sign of the imaginary part.
    limit = _C.complex(_C.copysign(_C.ones_like(x.real), x.real), _C.copysign(_C.zeros_like(x.imag), x.imag))
    return _C.where(_C.isinf(x.real), limit, y)


def round(x: Tensor, /) -> Tensor:
    return _C.complex(_C.round(x.real), _C.round(x.imag)) if x.is_complex() else _C.round(x)


def sign(x: Tensor, /) -> Tensor:
    """NaN for NaN, and a zero without a sign for zeros."""
    if x.is_complex():
        return _C.where(x == 0, _C.zeros_like(x), _C.sgn(x))
    return _C.where(_C.isnan(x), x, _C.sign(x)) if x.is_floating_point() else _C.sign(x)


def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """The quotient itself where an operand is infinite."""
    a, b = promoted("floor_divide", x1, x2)
    quotient = _C.floor_divide(a, b)
    return _C.where(_C.isinf(a) | _C.isinf(b), a / b, quotient) if a.is_floating_point() else quotient


def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """With the sign of x2, also where it is zero."""
    a, b = promoted("remainder", x1, x2)
    rest = _C.remainder(a, b)
    return _C.where(rest == 0, _C.copysign(rest, b), rest) if a.is_floating_point() else rest


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    if min is None and max is None:
        return _C.clone(x)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        low, high = (b if b is None else b.to(x.dtype) if isinstance(b, Tensor) else x.new_full((), b) for b in (min, max))
        return _C.clip(x, low, high)
    return _C.clip(x, min, max)


_check_module(globals())
