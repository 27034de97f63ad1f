"""PyTorch's former types of tensors, which older programs name: one for each dtype, such as LongTensor."""

from __future__ import annotations

from numbers import Integral

from .. import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor

_DTYPES = {
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "ByteTensor": _C.uint8,
    "CharTensor": _C.int8,
    "ShortTensor": _C.int16,
    "IntTensor": _C.int32,
    "LongTensor": _C.int64,
    "BoolTensor": _C.bool,
}


class _Kind(type):
    """The type of these: an instance is a Tensor of its dtype, and a call makes one."""

    dtype: _C.dtype

    def __instancecheck__(cls, o: object) -> bool:
        return isinstance(o, _C.Tensor) and o.dtype is cls.dtype

    def __call__(cls, *args: Any) -> Any:
        """Of sizes, uninitialised; or of data."""
        if len(args) == 1 and not isinstance(args[0], Integral):
            return _C.tensor(args[0], dtype=cls.dtype) if not isinstance(args[0], _C.Size) else _C.empty(args[0], dtype=cls.dtype)
        return _C.empty(list(args) if args else [0], dtype=cls.dtype)

    def __repr__(cls) -> str:
        return f"<class 'tenon.{cls.__name__}'>"


globals().update({name: _Kind(name, (), {"dtype": dtype, "__module__": "tenon"}) for name, dtype in _DTYPES.items()})


def type_of(tensor: Tensor, dtype: Any = None) -> Any:
    """The name of a tensor's type, "tenon.FloatTensor"; or the tensor with another dtype, given as one, as a type or a name."""
    if dtype is None:
        (name,) = [n for n, d in _DTYPES.items() if d is tensor.dtype] or ["Tensor"]
        return f"tenon.{name}"
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2]
        if name not in _DTYPES:
            raise ValueError(f"type: unknown type {dtype!r}; there are {', '.join(_DTYPES)}")
        dtype = _DTYPES[name]
    elif isinstance(dtype, _Kind):
        dtype = dtype.dtype
    elif not isinstance(dtype, _C.dtype):
        raise TypeError(f"type: dtype must be a dtype, a type of tensor or its name, got {dtype!r}")
    return tensor.to(dtype)
