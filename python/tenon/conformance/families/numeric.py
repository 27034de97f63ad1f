"""Functions of numbers: signs, parts, neighbours, divisors."""

import numpy as np

from ..rows import Row, binary, binary_samples, number_first, number_samples, unary, unary_samples
from ..samples import sample

_REAL = ("complex",)
_INTEGERS = ("bool", "floating", "complex")
_FLOATS = ("bool", "integral", "complex")


def _lcm(a, b):
    return np.where((a == 0) | (b == 0), 0, np.lcm(a, b))


def _power_dtype(s):
    return "complex128" if any(x.dtype.startswith("complex") for x in s.specs()) else "float64"


def _float_power(a, b):
    complex_ = any(np.iscomplexobj(x) for x in (a, b))
    to = np.complex128 if complex_ else np.float64
    return np.power(np.asarray(a).astype(to), np.asarray(b).astype(to))


_WRAPS = {"promotion": "a negative 0-dim operand next to unsigned ones wraps"}
_POWERS = dict(absent={"complex": "pow covers it", "special": "pow covers it", "bool": "pow covers it"})

ROWS = [
    unary("deg2rad", np.deg2rad, result="float", refuse=_REAL, ulps=2),
    unary("rad2deg", np.rad2deg, result="float", refuse=_REAL, ulps=2, extremes=False),
    binary("heaviside", lambda x, v: np.where(x != x, x, np.where(x == 0, v, (x > 0).astype(x.dtype))), refuse=_REAL),
    unary("isposinf", lambda x: np.isposinf(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool), result="bool", refuse=_REAL),
    unary("isneginf", lambda x: np.isneginf(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool), result="bool", refuse=_REAL),
    unary("isreal", np.isreal, result="bool"),
    unary("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0, result="bool", refuse=_REAL),
    Row("positive", unary_samples(), lambda x: +x, result="self", view=True, refuse=("bool",),
        absent={"promotion": "one operand"}),
    binary("gcd", np.gcd, refuse_common=_INTEGERS, absent=_WRAPS),
    binary("lcm", _lcm, refuse_common=_INTEGERS, samples=binary_samples(domain=(-12, 12)), absent={"special": "products wrap", **_WRAPS}),
    binary("nextafter", np.nextafter, refuse_common=_FLOATS, absent={"promotion": "its neighbours are those of the common dtype", "float16": "NumPy's neighbours are those of float64",
        "bfloat16": "NumPy's neighbours are those of float64", "float32": "NumPy's neighbours are those of float64"}),
    Row("frexp.Tensor", unary_samples(), np.frexp, result=lambda s: (s.specs()[0].dtype, "int32"),
        refuse=_FLOATS, absent={"promotion": "one operand", "special": "smaller numbers than the dtype's smallest normal one"}),
    binary("ldexp.Tensor", lambda x, y: x * 2.0**y, result="float", ulps=4, samples=lambda m: (
        sample(m.tensor(a), m.tensor(b, domain=(-4, 4))) for a, b in m.pairs()), extremes=False,
        absent={"complex": "pow covers it", "special": "pow covers it", "promotion": "pow covers it", "bool": "pow covers it"}),
    binary("logaddexp2", np.logaddexp2, refuse_common=("bool", "integral", "complex"), ulps=8, magnitude=lambda a, b: np.abs(np.logaddexp2(a, b)) + 1, extremes=False, result="same"),
    Row("float_power.Tensor_Tensor", lambda m: (sample(m.tensor(a, domain=(0.1, 4)), m.tensor(b)) for a, b in m.pairs()),
        _float_power, result=_power_dtype, ulps=4, **_POWERS),
    Row("float_power.Tensor_Scalar", number_samples(2, 0.5), _float_power, result=_power_dtype, ulps=4, domain=(0.1, 4.0),
        absent={**_POWERS["absent"], "promotion": "one operand"}),
    Row("float_power.Scalar", number_first(2.5), _float_power, result=_power_dtype, ulps=4,
        absent={**_POWERS["absent"], "promotion": "one operand"}),
]  # fmt: skip
