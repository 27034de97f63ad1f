"""The Python array API standard on Tenon's tensors: what Tensor.__array_namespace__ returns, with the extensions linalg and fft.

Functions have the standard's arguments, promotion and special cases. Tensors' own operators (+, //, %) are PyTorch's: arrays without
dimensions do not widen others, and -0.0 % 2 is -0.0 (docs/array-api.md). https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

from math import e, inf, nan, pi
from .. import _C
from .._C import (
    Tensor, bool, complex64, complex128, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
)  # fmt: skip
from ..arguments import check_module as _check_module
from . import fft, linalg
from ._base import result_type
from .creation import (
    arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones, ones_like, tril, triu, zeros, zeros_like,
)  # fmt: skip
from .dtypes import __array_namespace_info__, astype, can_cast, finfo, iinfo, isdtype
from .elementwise import (
    abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or, bitwise_right_shift,
    bitwise_xor, ceil, clip, conj, copysign, cos, cosh, divide, equal, exp, expm1, floor, floor_divide, greater, greater_equal, hypot, imag,
    isfinite, isinf, isnan, less, less_equal, log, log1p, log2, log10, logaddexp, logical_and, logical_not, logical_or, logical_xor, maximum,
    minimum, multiply, negative, nextafter, not_equal, positive, pow, real, reciprocal, remainder, round, sign, signbit, sin, sinh, sqrt,
    square, subtract, tan, tanh, trunc,
)  # fmt: skip
from .linalg import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import (
    broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, moveaxis, permute_dims, repeat, reshape, roll, squeeze, stack,
    take, take_along_axis, tile, unstack,
)  # fmt: skip
from .reductions import (
    all, any, argmax, argmin, count_nonzero, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum, var,
)  # fmt: skip
from .searching import (
    UniqueAllResult, UniqueCountsResult, UniqueInverseResult, argsort, isin, nonzero, searchsorted, sort, unique_all, unique_counts,
    unique_inverse, unique_values, where,
)  # fmt: skip

newaxis = None
__array_api_version__ = "2024.12"


def check_version(version: str | None) -> None:
    """Raises ValueError for a version of the standard that Tenon does not follow."""
    if version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__: version {version!r} of the array API is unknown; there are 2021.12 to 2024.12")


_check_module(globals())
