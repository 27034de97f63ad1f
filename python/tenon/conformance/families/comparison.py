"""Comparisons, logic and tests: the result is bool."""

import numpy as np

from ..rows import binary, unary, with_number

_COMPARISONS = {"eq": np.equal, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less,
                "ne": np.not_equal}  # fmt: skip


def _refused(name):
    """Complex numbers are equal or not; there is no order among them."""
    return () if name in ("eq", "ne") else ("complex",)


ROWS = [
    *(binary(f"{name}.Tensor", f, result="bool", refuse=_refused(name)) for name, f in _COMPARISONS.items()),
    *(with_number(f"{name}.Scalar", f, (1, 0.5), result="bool", refuse=_refused(name))
      for name, f in _COMPARISONS.items()),
    unary("isfinite", np.isfinite, result="bool"),
    unary("isinf", np.isinf, result="bool"),
    unary("isnan", np.isnan, result="bool"),
    unary("logical_not", np.logical_not, result="bool"),
    binary("logical_and", np.logical_and, result="bool"),
    binary("logical_or", np.logical_or, result="bool"),
    binary("logical_xor", np.logical_xor, result="bool"),
]
