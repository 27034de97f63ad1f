"""Arithmetic of two operands: sums, products, powers, bounds, bits, choice."""

import numpy as np
import scipy.special

from .. import complex_numbers
from ..rows import Row, binary, binary_calls, gradient_samples, number_first, unary_calls, unary_samples, with_number
from ..samples import sample, with_options

_BITS = dict(refuse=("floating", "complex"))
#: There is no order among complex numbers, and no quotient is whole.
_ORDERED = dict(refuse=("complex",))
#: Which of two zeros is the larger one is not said (ISO C leaves it to fmax).
_EXTREMA = dict(signed_zeros=False, **_ORDERED)
#: Numbers with a tensor.
_NUMBERS = (2, -3, 2.5, 1.5 - 0.5j)


def _logical(logical, arithmetic):
    """bool operands have logic in place of arithmetic."""
    return lambda a, b, *rest, **named: logical(a, b) if _bools(a, b) else arithmetic(a, b, *rest, **named)


def _bools(a, b):
    return np.asarray(a).dtype == bool and np.asarray(b).dtype == bool


def _times(b, alpha):
    return b if alpha == 1 else complex_numbers.multiply(b, alpha)


_add = _logical(np.logical_or, lambda a, b, alpha=1: complex_numbers.add(a, _times(b, alpha)))
_mul = _logical(np.logical_and, complex_numbers.multiply)


def _sub(a, b, alpha=1):
    b = np.asarray(_times(b, alpha))
    return complex_numbers.add(a, complex_numbers.negative(b)) if complex_numbers.is_complex(a, b) else a - b


def _rsub(a, b, alpha=1):
    return _sub(b, a, alpha)


def _whole(f):
    """Integer division; by zero it gives 0 (docs/differences.md)."""

    def g(a, b):
        a, b = np.broadcast_arrays(a, b)
        if a.dtype.kind == "f" or b.dtype.kind == "f":
            return f(a.astype(np.float64), b.astype(np.float64))
        a, b = a.astype(np.int64), b.astype(np.int64)
        return np.where(b == 0, 0, f(a, np.where(b == 0, 1, b)))

    return g


def _float_remainder(a, b):
    # NumPy gives nan for an infinite divisor where C's fmod, and Python's %, do not.
    r = np.fmod(a, b)
    return np.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


def _remainder(a, b):
    return _float_remainder(a, b) if a.dtype.kind == "f" else np.remainder(a, b)


def _clamp_max(a, b):
    return np.where((a > b) | np.isnan(b), b, a)


def _clamp_min(a, b):
    return np.where((a < b) | np.isnan(b), b, a)


def _clamp(a, min=None, max=None):
    a = a if min is None else _clamp_min(a, min)
    return a if max is None else _clamp_max(a, max)


def _clamp_tensor_samples(m):
    for a, b in m.pairs():
        yield sample(m.tensor(a), m.tensor(b))
        yield sample(m.tensor(a), max=m.tensor(b))
        yield sample(m.tensor(a), m.tensor(b), m.tensor(b))


def _alpha_samples(m):
    for a, b in m.pairs():
        yield sample(m.tensor(a), m.tensor(b))
        if m.dtype.category != "bool" and m.second.category != "bool" and m.kind != "special":
            yield sample(m.tensor(a), m.tensor(b), alpha=2)


def _pow(a, b):
    a, b = np.broadcast_arrays(a, b)
    if complex_numbers.is_complex(a, b):
        return complex_numbers.power(a, b)
    if a.dtype.kind in "fc" or b.dtype.kind in "fc":
        return np.power(a.astype(np.float64), b.astype(np.float64))
    return np.asarray(np.frompyfunc(_integer_power, 2, 1)(a, b), np.int64)


def _integer_power(x, y):
    """Wraps around; a negative power of all but 1 and -1 is a fraction, which truncates to 0."""
    x, y = int(x), int(y)
    if y < 0:
        return 0 if abs(x) != 1 else x if y % 2 else 1
    return (pow(x, y, 2**64) + 2**63) % 2**64 - 2**63


def _pow_samples(m):
    positive = (0.2, 4.0) if m.kind == "grad" else m.domain
    small = (-2.5, 2.5) if m.dtype.floating and m.second.floating else (-2, 5)
    for a, b in m.pairs():
        yield sample(m.tensor(a, domain=positive), m.tensor(b, domain=small))


def _base_samples(m):
    for shape in m.shapes():
        yield sample(2, m.tensor(shape, domain=(-2, 5)))
        yield sample(0.5 + 1j, m.tensor(shape, domain=(-2, 5)))
        if m.dtype.category == "floating":
            yield sample(0.5, m.tensor(shape))


def _quotient_samples(m):
    for shape in m.shapes():
        yield sample(m.tensor(shape), m.tensor(shape), 2 if m.dtype.category != "complex" else 0.5 + 1j)


def _quotient_slope(g, quotient, number):
    slope = complex_numbers.divide(complex_numbers.multiply(quotient, quotient), number)
    return complex_numbers.negative(complex_numbers.multiply(g, slope))


@with_options
def _where_samples(m, a_number, b_number):
    for a, b in m.pairs():
        first = m.number(1, 2) if a_number else m.tensor(a)
        yield sample(m.mask(a), first, m.number(3, 0.5) if b_number else m.tensor(b))


_BOOL_SUB = dict(refuse=("bool",))

_SHIFTS = dict(refuse=("floating", "complex", "bool"), no_peer="counts beyond the width are undefined there")


def _wrap(x):
    """An integer as int64 keeps it."""
    return (x + 2**63) % 2**64 - 2**63


def _shift(f):
    """Bits of integers of any length, kept to 64; what is shifted out entirely is gone."""
    one = np.frompyfunc(lambda x, n: _wrap(f(int(x), int(n) if 0 <= n < 64 else 64)), 2, 1)
    return lambda a, b: np.asarray(one(a, b), np.int64)


_left = _shift(lambda x, n: x << n)
_right = _shift(lambda x, n: x >> n)


@with_options
def _mode_samples(m, number=False):
    for a, b in m.pairs():
        for mode in ("trunc", "floor"):
            yield sample(m.tensor(a), 2 if number else m.tensor(b), rounding_mode=mode)


def _rounded(a, b, rounding_mode):
    return _whole(np.floor_divide if rounding_mode == "floor" else _trunc_divide)(a, np.asarray(b))


def _trunc_divide(a, b):
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    return np.where((a % b != 0) & ((a < 0) != (b < 0)), a // b + 1, a // b)


#: Sums of products, which may overflow on their way.
_PRODUCT = dict(complex_ulps=4, infinite="class")


def _logarithm(a, b):
    """The error of the logarithm is multiplied by the exponent, and is an error of the power's own logarithm."""
    exponent, log = np.asarray(b).astype(np.clongdouble), np.log(np.asarray(a).astype(np.clongdouble))

    def size(z):
        return sum(np.where(np.isnan(part), 0, np.abs(part)) for part in (z.real, z.imag))

    return 1 + np.nan_to_num(size(exponent) * size(log), nan=0, posinf=np.inf)


_POWER = dict(ulps=4, complex_ulps=6, infinite="class", condition=_logarithm)


def _three(m):
    for a, b in m.pairs():
        yield sample(m.tensor(a), m.tensor(b), m.tensor(b), value=2)
        yield sample(m.tensor(a), m.tensor(b), m.tensor(a))


def _lerp(a, b, w):
    return np.where(np.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))


def _lerp_bound(a, b, w):
    """Of absolute values, where nothing cancels."""
    return (1 + np.abs(w)) * (a + b)


def _numbers(x, nan=None, posinf=None, neginf=None):
    if x.dtype.kind != "f":
        return x
    return np.where(np.isnan(x), nan, np.where(x == np.inf, posinf, np.where(x == -np.inf, neginf, x)))


_numbers_samples = unary_samples(2.0, 3.0, -3.0)


def _xlogy_backward(grad, a, b):
    return np.where((a == 0) & (b <= 0), 0, scipy.special.xlogy(grad, b))


def _logaddexp(a, b):
    if not np.iscomplexobj(a) and not np.iscomplexobj(b):
        return np.logaddexp(a, b)
    first = np.real(a) >= np.real(b)
    most = np.where(first, a, b)
    return np.where(np.isinf(most.real), most, most + np.log(1 + np.exp(np.where(first, b, a) - most)))


_FLOATS = ("bool", "integral")
_THREE = dict(operands=(0, 1, 2), magnitude=True, ulps=6, infinite="class", signed_zeros=False)

ROWS = [
    binary("add.Tensor", _add, samples=_alpha_samples, complex_ulps=2),
    with_number("add.Scalar", _add, _NUMBERS),
    binary("sub.Tensor", _sub, samples=_alpha_samples, complex_ulps=2, **_BOOL_SUB),
    with_number("sub.Scalar", _sub, _NUMBERS, **_BOOL_SUB),
    binary("rsub.Tensor", _rsub, samples=_alpha_samples, complex_ulps=2, **_BOOL_SUB),
    with_number("rsub.Scalar", _rsub, _NUMBERS, **_BOOL_SUB),
    binary("mul.Tensor", _mul, **_PRODUCT),
    with_number("mul.Scalar", _mul, _NUMBERS, **_PRODUCT),
    binary("div.Tensor", complex_numbers.divide, result="float", complex_ulps=6, infinite="class"),
    with_number("div.Scalar", complex_numbers.divide, _NUMBERS, result="float", ulps=1, complex_ulps=6, infinite="class"),
    Row("div.Tensor_mode div_.Tensor_mode", _mode_samples(), _rounded, operands=(0, 1), ulps=1, **_ORDERED),
    Row("div.Scalar_mode div_.Scalar_mode", _mode_samples(True), _rounded, operands=(0, 1), ulps=1, **_ORDERED),
    binary("trunc_divide", _whole(_trunc_divide), ulps=1, **_ORDERED),
    with_number("trunc_divide.Scalar", _whole(_trunc_divide), ulps=1, **_ORDERED),
    binary("floor_divide", _whole(np.floor_divide), ulps=1, **_ORDERED),
    with_number("floor_divide.Scalar", _whole(np.floor_divide), ulps=1, **_ORDERED),
    binary("fmod.Tensor", _whole(np.fmod), ulps=1, **_ORDERED),
    with_number("fmod.Scalar", _whole(np.fmod), ulps=1, **_ORDERED),
    binary("remainder.Tensor", _whole(_remainder), ulps=1, **_ORDERED),
    with_number("remainder.Scalar", _whole(_remainder), ulps=1, **_ORDERED),
    binary("maximum", np.maximum, **_EXTREMA),
    binary("minimum", np.minimum, **_EXTREMA),
    with_number("clamp_max", _clamp_max, (1, 0.5), **_EXTREMA),
    binary("clamp_max.Tensor", _clamp_max, **_EXTREMA),
    with_number("clamp_min", _clamp_min, (1, 0.5), **_EXTREMA),
    binary("clamp_min.Tensor", _clamp_min, **_EXTREMA),
    Row("addcmul", _three, lambda a, b, c, value=1: a + value * b * c, refuse=("bool",),
        **{**_THREE, "magnitude": lambda a, b, c, value=1: np.abs(a) + np.abs(value * b * c)}),  # of integers, too
    Row("addcdiv", _three, lambda a, b, c, value=1: a + value * b / c, refuse_common=_FLOATS, domain=(0.5, 4),
        absent={"special": "quotients overflow on their way"}, complex_ulps=16, **_THREE),
    Row("lerp.Scalar", binary_calls((0.25,), (0.75,)), _lerp, operands=(0, 1), magnitude=_lerp_bound, ulps=6, infinite="class", extremes=False,
        refuse=_FLOATS, signed_zeros=False, complex_ulps=16),
    Row("lerp.Tensor", lambda m: (sample(m.tensor(a), m.tensor(b), m.tensor(b)) for a, b in m.pairs()), _lerp,
        refuse=_FLOATS, extremes=False, complex_ulps=16, **{**_THREE, "magnitude": _lerp_bound}),
    binary("logaddexp", _logaddexp, ulps=8, refuse_common=_FLOATS, magnitude=True, complex_ulps=16),
    Row("_xlogy_backward", gradient_samples, _xlogy_backward, operands=(0, 1, 2), result="float", ulps=4, refuse=("complex",), domain=(0.1, 4), direct=True,
        no_peer="not in PyTorch"),
    binary("xlogy.Tensor", scipy.special.xlogy, result="float", ulps=4, refuse=("complex",), domain=(0.1, 4)),
    with_number("xlogy.Scalar_Other", scipy.special.xlogy, (2, 0.5), result="float", ulps=4, refuse=("complex",)),
    Row("xlogy.Scalar_Self", number_first(0.5), scipy.special.xlogy, operands=(0, 1), result="float", ulps=4,
        refuse=("complex",), domain=(0.1, 4)),
    binary("fmin", np.fmin, **_EXTREMA),
    binary("fmax", np.fmax, **_EXTREMA),
    binary("copysign.Tensor", np.copysign, result="float", refuse=("complex",)),
    with_number("copysign.Scalar", np.copysign, (2, -0.5), result="float", refuse=("complex",)),
    Row("_nan_to_num", _numbers_samples, _numbers, operands=(0,), refuse=_FLOATS, direct=True, no_peer="not in PyTorch",
        absent={"complex": "no order among complex numbers"}),
    Row("nan_to_num", _numbers_samples, _numbers, operands=(0,), refuse=("complex",), inner="nan_to_num"),
    Row("nan_to_num_", _numbers_samples, _numbers, operands=(0,), refuse=("complex",), inner="nan_to_num",
        absent={(c, k): "nothing is written" for c in _FLOATS for k in ("expanded", "overlapping")}),
    Row("clamp", unary_calls((-1, 2), dict(max=1), (0.5,)), _clamp, operands=(0, 1, 2, "min", "max"), **_EXTREMA),
    Row("clamp.Tensor", _clamp_tensor_samples, _clamp, operands=(0, 1, 2, "min", "max"), **_EXTREMA),
    binary("bitwise_and.Tensor", np.bitwise_and, **_BITS),
    with_number("bitwise_and.Scalar", np.bitwise_and, (6, 1), **_BITS),
    binary("bitwise_or.Tensor", np.bitwise_or, **_BITS),
    with_number("bitwise_or.Scalar", np.bitwise_or, (6, 1), **_BITS),
    binary("bitwise_xor.Tensor", np.bitwise_xor, **_BITS),
    with_number("bitwise_xor.Scalar", np.bitwise_xor, (6, 1), **_BITS),
    binary("bitwise_left_shift.Tensor", _left, **_SHIFTS),
    with_number("bitwise_left_shift.Tensor_Scalar", _left, (3, 0), **_SHIFTS),
    binary("bitwise_right_shift.Tensor", _right, **_SHIFTS),
    with_number("bitwise_right_shift.Tensor_Scalar", _right, (3, 70), **_SHIFTS),
    Row("bitwise_not", unary_samples(), np.invert, operands=(0,), **_BITS),
    binary("pow.Tensor_Tensor", _pow, samples=_pow_samples, **_POWER),
    with_number("pow.Tensor_Scalar", _pow, (2, 3, 0.5, 0.5 + 1j), grad_domain=(0.2, 4), **_POWER),
    Row("pow.Scalar", _base_samples, _pow, operands=(0, 1), **_POWER),
    Row("div.Number", _base_samples, complex_numbers.divide, operands=(0, 1), result="float", ulps=1, complex_ulps=6,
        infinite="class", no_peer="PyTorch multiplies by the reciprocal"),
    Row("_div_number_backward", _quotient_samples, _quotient_slope, operands=(0, 1), ulps=4, complex_ulps=24, direct=True,
        refuse=("bool", "integral"), infinite="class", no_peer="not in PyTorch",
        absent={"special": "quotients overflow on their way"}),
    Row("where.self", _where_samples(False, False), np.where, operands=(1, 2)),
    Row("where.Scalar", _where_samples(True, True), np.where, operands=(1, 2)),
    Row("where.ScalarOther", _where_samples(False, True), np.where, operands=(1, 2)),
    Row("where.ScalarSelf", _where_samples(True, False), np.where, operands=(1, 2)),
]  # fmt: skip
