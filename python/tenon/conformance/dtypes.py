"""The dtype axis: what exists, how NumPy holds it, how precise it is, how dtypes promote. Independent of Tenon."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import tenon


@dataclass(frozen=True)
class DType:
    name: str
    category: str  # bool, integral, floating, complex
    storage: type  # NumPy's dtype for the elements; bfloat16 has none and is held in float32
    compute: type  # what references compute in
    digits: int = 0  # bits of the significand, of floating dtypes
    smallest: float = 0.0  # the smallest positive number
    largest: float = 0.0

    @property
    def tenon(self):
        return getattr(tenon, self.name)

    @property
    def limits(self):
        """The range of an integral dtype."""
        if self.category == "bool":
            return 0, 1
        info = np.iinfo(self.storage)
        return int(info.min), int(info.max)

    @property
    def floating(self):
        return self.category in ("floating", "complex")

    def store(self, array):
        """Values rounded to what the dtype can hold, in the dtype that references compute in."""
        with np.errstate(all="ignore"):
            if self.name == "bfloat16":
                return round_bfloat16(np.asarray(array, np.float64)).astype(np.float64)
            return np.asarray(array).astype(self.storage).astype(self.compute)


def round_bfloat16(array):
    """float64 values rounded once, half to even, to 8 bits of significand."""
    array = np.asarray(array, np.float64)
    fraction, exponent = np.frexp(array)
    # Below the smallest normal number the step stays 2**-133.
    shift = np.maximum(exponent - 8, -133)
    with np.errstate(all="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(array, -shift)), shift)
        rounded = np.where(np.abs(rounded) > 3.3895313892515355e38, np.copysign(np.inf, array), rounded)
    return np.where(np.isfinite(array), rounded, array)


_ALL = [
    DType("bool", "bool", np.bool_, np.bool_),
    DType("uint8", "integral", np.uint8, np.int64),
    DType("int8", "integral", np.int8, np.int64),
    DType("int16", "integral", np.int16, np.int64),
    DType("int32", "integral", np.int32, np.int64),
    DType("int64", "integral", np.int64, np.int64),
    DType("float16", "floating", np.float16, np.float64, 11, 2.0**-24, 65504.0),
    DType("bfloat16", "floating", np.float32, np.float64, 8, 2.0**-133, 3.3895313892515355e38),
    DType("float32", "floating", np.float32, np.float64, 24, 2.0**-149, float(np.finfo(np.float32).max)),
    DType("float64", "floating", np.float64, np.float64, 53, 5e-324, float(np.finfo(np.float64).max)),
    DType("complex64", "complex", np.complex64, np.complex128, 24, 2.0**-149, float(np.finfo(np.float32).max)),
    DType("complex128", "complex", np.complex128, np.complex128, 53, 5e-324, float(np.finfo(np.float64).max)),
]
BY_NAME = {d.name: d for d in _ALL}
#: The dtype of the parts of a complex dtype.
PARTS = {"complex64": "float32", "complex128": "float64"}


def real_of(name):
    """The dtype of the parts of a complex dtype; any other one as it is."""
    return PARTS.get(name, name)


@cache
def axis():
    """The dtypes that operators are tried on."""
    return tuple(_ALL)


# Promotion, as PyTorch documents it (tensor_attributes.html#type-promotion-doc).

_ORDER = ("bool", "integral", "floating", "complex")


def promote(a, b):
    """The smallest dtype that holds two others."""
    if a == b:
        return a
    x, y = BY_NAME[a], BY_NAME[b]
    if x.category != y.category:
        low, high = sorted((x, y), key=lambda d: _ORDER.index(d.category))
        if high.category == "complex" and low.name == "float64":
            return "complex128"
        return high.name
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if x.category == "integral" and "uint8" in (a, b):
        other = b if a == "uint8" else a
        return "int16" if other == "int8" else other
    return a if np.dtype(x.storage).itemsize >= np.dtype(y.storage).itemsize and a != "bfloat16" else b


def number_dtype(value):
    if isinstance(value, bool):
        return "bool"
    return "int64" if isinstance(value, int) else "complex64" if isinstance(value, complex) else "float32"


def result_type(operands):
    """The dtype of an operation on `operands`: (dtype name, has dimensions) of tensors, or plain numbers.

    Tensors with dimensions decide; 0-dim ones, and numbers after them, only where their category is higher.
    """
    groups = [[], [], []]
    for o in operands:
        if isinstance(o, tuple):
            groups[0 if o[1] else 1].append(o[0])
        else:
            groups[2].append(number_dtype(o))
    result = None
    for group in groups:
        if not group:
            continue
        lower = group[0]
        for g in group[1:]:
            lower = promote(lower, g)
        if result is None:
            result = lower
        elif _ORDER.index(BY_NAME[lower].category) > _ORDER.index(BY_NAME[result].category):
            # A complex number with floating tensors has their precision.
            parts = BY_NAME[result].category == "floating" and BY_NAME[lower].category == "complex"
            result = lower if not parts else "complex128" if result == "float64" else "complex64"
    return result
