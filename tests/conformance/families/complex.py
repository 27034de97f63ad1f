"""Operators on complex numbers, on real ones; tests/python/complex_test.py has what only complex operands show."""

import numpy as np

from conformance.families.matmul import _ABSENT, _fixed
from conformance.rows import Row, binary, binary_samples, unary, unary_samples


def _sign(x):
    return x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x))


def _floating_pairs(m):
    if m.dtype.category == "floating" and m.kind != "promotion":
        yield from binary_samples()(m)


_WHOLE = {"bool": "floating dtypes only", "integral": "floating dtypes only", "promotion": "integers promote to floats"}

ROWS = [
    unary("angle", lambda x: np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0)), result="float", ulps=1),
    binary("atan2", np.arctan2, result="float", ulps=3),
    Row("conj", unary_samples(), lambda x: x),
    unary("conj_physical", lambda x: x),
    unary("cosh", np.cosh, result="float", ulps=4),
    binary("hypot", np.hypot, samples=_floating_pairs, ulps=2, absent=_WHOLE),
    Row("real", unary_samples(), lambda x: x),
    Row("resolve_conj", unary_samples(), lambda x: x),
    unary("sgn", _sign),
    unary("sinh", np.sinh, result="float", ulps=4),
    unary("tan", np.tan, result="float", ulps=4, grad_domain=(-1, 1)),
    Row("vdot", _fixed("k", "k"), np.matmul, result="self", ulps=4, magnitude=True, absent=_ABSENT, refuse=("bool",),
        inner="dot"),
]  # fmt: skip
