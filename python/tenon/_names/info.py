"""finfo and iinfo, the limits of dtypes, and the type in which values of a dtype are added up."""

from __future__ import annotations

from .. import _C

_HALF = (_C.float16, _C.bfloat16)


def sum_type(dtype: _C.dtype | None) -> _C.dtype | None:
    """The type in which values of a dtype are added up: float32 for half types, their own for others (None)."""
    return _C.float32 if dtype in _HALF else None


class finfo:
    """The limits of a floating dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    # dtype: (bits, bits of the fraction, largest exponent, digits)
    _ROWS = {
        _C.float16: (16, 10, 15, 3),
        _C.bfloat16: (16, 7, 127, 2),
        _C.float32: (32, 23, 127, 6),
        _C.float64: (64, 52, 1023, 15),
    }

    def __init__(self, type: _C.dtype | None = None) -> None:
        dtype = _C.get_default_dtype() if type is None else type
        if isinstance(dtype, _C.dtype):
            dtype = {_C.complex64: _C.float32, _C.complex128: _C.float64}.get(dtype, dtype)
        if not isinstance(dtype, _C.dtype) or dtype not in self._ROWS:
            raise TypeError(f"finfo: expected a floating dtype, got {dtype}; use iinfo for integers")
        self.bits, fraction, exponent, digits = self._ROWS[dtype]
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = 10.0**-digits
        self.dtype = repr(dtype).removeprefix("tenon.")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype: bits, max, min."""

    _INTEGERS = (_C.uint8, _C.uint16, _C.uint32, _C.uint64, _C.int8, _C.int16, _C.int32, _C.int64)

    def __init__(self, type: _C.dtype) -> None:
        if not isinstance(type, _C.dtype) or type not in self._INTEGERS:
            raise TypeError(f"iinfo: expected an integer dtype, got {type}; use finfo for floats")
        self.bits = 8 * type.itemsize
        count = 2**self.bits
        self.min = -count // 2 if type.is_signed else 0
        self.max = self.min + count - 1
        self.dtype = repr(type).removeprefix("tenon.")

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
