"""Storages with a dtype, with the names of torch.storage: TypedStorage, and one class for each dtype, such as FloatStorage.

An older way to hold numbers. The bytes are an UntypedStorage, which tensors share.
"""

from __future__ import annotations

from . import _C
from ._C import UntypedStorage as UntypedStorage
from ._names.absent import add_module_getattr
from .arguments import check_module as _check_module, describe as _describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._C import Tensor

_DTYPES = {
    "DoubleStorage": _C.float64,
    "FloatStorage": _C.float32,
    "HalfStorage": _C.float16,
    "BFloat16Storage": _C.bfloat16,
    "LongStorage": _C.int64,
    "IntStorage": _C.int32,
    "ShortStorage": _C.int16,
    "CharStorage": _C.int8,
    "ByteStorage": _C.uint8,
    "BoolStorage": _C.bool,
    "ComplexDoubleStorage": _C.complex128,
    "ComplexFloatStorage": _C.complex64,
}
_CASTS = {
    "double": _C.float64, "float": _C.float32, "half": _C.float16, "bfloat16": _C.bfloat16, "long": _C.int64, "int": _C.int32,
    "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool, "complex_double": _C.complex128, "complex_float": _C.complex64,
}  # fmt: skip


class TypedStorage:
    """Numbers of one dtype in a row: TypedStorage(3, dtype=tenon.float32) uninitialised, TypedStorage([1, 2], dtype=...) of numbers,
    TypedStorage(wrap_storage=s, dtype=...) over the bytes of another storage."""

    dtype: _C.dtype

    def __init__(self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False) -> None:
        name = type(self).__name__
        own = _DTYPES.get(name)
        if own is not None and dtype is not None and dtype is not own:
            raise RuntimeError(f"{name}: dtype is {own}, got {dtype}; TypedStorage takes any")
        kind = own or dtype or _C.get_default_dtype()
        if not isinstance(kind, _C.dtype):
            raise TypeError(f"{name}: dtype must be a dtype, got {_describe(dtype)}")
        if len(args) > 1 or (args and wrap_storage is not None):
            raise TypeError(f"{name}: expected a size, a sequence of numbers or wrap_storage, got {len(args)} arguments")
        self.dtype = kind
        if wrap_storage is not None:
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"{name}: wrap_storage must be an UntypedStorage, got {_describe(wrap_storage)}")
            if device is not None and _C.device(device) != wrap_storage.device:
                raise RuntimeError(f"{name}: device must be that of wrap_storage, {wrap_storage.device}, got {device}")
            self._bytes = wrap_storage
        elif not args or (isinstance(args[0], int) and not isinstance(args[0], bool)):
            if args and args[0] < 0:
                raise RuntimeError(f"{name}: the size must not be negative, got {args[0]}")
            self._bytes = _C.empty(args[0] if args else 0, dtype=kind, device=device).untyped_storage()
        elif isinstance(args[0], (list, tuple)):
            self._bytes = _C.tensor(args[0], dtype=kind, device=device).reshape(-1).untyped_storage()
        else:
            raise TypeError(f"{name}: expected a size or a sequence of numbers, got {_describe(args[0])}")

    def _tensor(self) -> Tensor:
        """A tensor over the numbers."""
        return _C.empty(0, dtype=self.dtype, device=self._bytes.device).set_(self._bytes)

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._bytes

    @property
    def device(self) -> _C.device:
        """Where the numbers are."""
        return self._bytes.device

    @property
    def is_cuda(self) -> bool:
        """Whether a GPU of NVIDIA has the numbers."""
        return self.device.type == "cuda"

    def get_device(self) -> int:
        """The number of the device; -1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    def element_size(self) -> int:
        """Bytes of a number."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Bytes of all numbers."""
        return self._bytes.nbytes()

    def size(self) -> int:
        """How many numbers there are."""
        return self.nbytes() // self.element_size()

    def __len__(self) -> int:
        return self.size()

    def data_ptr(self) -> int:
        """The address of the first number."""
        return self._bytes.data_ptr()

    def resizable(self) -> bool:
        """Whether the storage may grow."""
        return self._bytes.resizable()

    def tolist(self) -> list[Any]:
        """The numbers as a list."""
        return self._tensor().tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError(f"{type(self).__name__}: slices are for assignment; a tensor over the storage has them")
        if not isinstance(index, int) or not -len(self) <= index < len(self):
            raise IndexError(f"{type(self).__name__}: index {_describe(index)} is not one of {len(self)} numbers")
        return self._tensor()[index].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if not isinstance(index, slice) and (not isinstance(index, int) or not -len(self) <= index < len(self)):
            raise IndexError(f"{type(self).__name__}: index {_describe(index)} is not one of {len(self)} numbers")
        self._tensor()[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every number."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Takes the numbers of a storage of the same length."""
        if not isinstance(source, TypedStorage) or len(source) != len(self):
            raise RuntimeError(f"{type(self).__name__}: source must be a TypedStorage of {len(self)} numbers, got {_describe(source)}")
        self._tensor().copy_(source._tensor())
        return self

    def _with(self, tensor: Tensor) -> Any:
        kind = next((classes for name, classes in _CLASSES.items() if _DTYPES[name] is tensor.dtype), TypedStorage)
        if type(self) is TypedStorage or kind is TypedStorage:
            return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)
        return kind(wrap_storage=tensor.untyped_storage())

    def clone(self) -> Any:
        """The numbers in new memory."""
        return self._with(self._tensor().clone())

    def cpu(self) -> Any:
        """The storage, or a copy on the CPU."""
        return self if self.device.type == "cpu" else self._with(self._tensor().cpu())

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """The storage, or a copy on another device."""
        return self if _C.device(device) == self.device else self._with(self._tensor().to(device))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the storage's type; or a copy of another dtype."""
        if dtype is None:
            return next((f"tenon.{name}" for name, kind in _DTYPES.items() if kind is self.dtype), "tenon.TypedStorage")
        wanted = dtype
        if isinstance(dtype, str):
            wanted = _DTYPES.get(dtype.rpartition(".")[2])
        elif isinstance(dtype, _Class) and issubclass(dtype, TypedStorage):
            wanted = _DTYPES.get(dtype.__name__)
        if not isinstance(wanted, _C.dtype):
            raise TypeError(f"type: dtype must be a dtype, a class of storages or its name, got {_describe(dtype)}")
        return self if wanted is self.dtype else self._with(self._tensor().to(wanted))

    def is_shared(self) -> bool:
        """Whether other processes share the memory: no."""
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """Whether a device may read the memory of the host directly."""
        return self._tensor().is_pinned()

    def pin_memory(self, device: Any = None) -> Any:
        """A copy in memory of the host that a device may read directly."""
        return self._with(self._tensor().pin_memory())

    def __copy__(self) -> Any:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> Any:
        return memo.setdefault(id(self), self.clone())

    def __reduce__(self) -> Any:
        return _remade, (type(self), self.dtype, self._tensor())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other.dtype is self.dtype and other.data_ptr() == self.data_ptr()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        numbers = "\n".join(f" {number}" for number in self.tolist())
        return f"{numbers}\n[tenon.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


_Class = type


def _remade(kind: Any, dtype: _C.dtype, tensor: Tensor) -> Any:
    return kind(wrap_storage=tensor.untyped_storage(), dtype=dtype)


def _cast(name: str, dtype: _C.dtype) -> Any:
    def convert(self):
        return self.type(dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"The storage, or a copy in {dtype}."
    return convert


for _name, _kind in _CASTS.items():
    setattr(TypedStorage, _name, _cast(_name, _kind))

if TYPE_CHECKING:

    class DoubleStorage(TypedStorage): ...

    class FloatStorage(TypedStorage): ...

    class HalfStorage(TypedStorage): ...

    class BFloat16Storage(TypedStorage): ...

    class LongStorage(TypedStorage): ...

    class IntStorage(TypedStorage): ...

    class ShortStorage(TypedStorage): ...

    class CharStorage(TypedStorage): ...

    class ByteStorage(TypedStorage): ...

    class BoolStorage(TypedStorage): ...

    class ComplexDoubleStorage(TypedStorage): ...

    class ComplexFloatStorage(TypedStorage): ...


# UntypedStorage itself calls these.


def _bytes_of(storage: UntypedStorage) -> Tensor:
    return _C.empty(0, dtype=_C.uint8, device=storage.device).set_(storage)


def _all_bytes(storage: UntypedStorage) -> list[int]:
    return _bytes_of(storage).tolist()


def _place(storage: UntypedStorage, index: Any) -> int:
    try:
        place: int = index.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"UntypedStorage: an index must be an int, got {_describe(index)}") from None
    if not -len(storage) <= place < len(storage):
        raise IndexError(f"UntypedStorage: index {_describe(index)} is not one of {len(storage)} bytes")
    return place


def _byte(storage: UntypedStorage, index: Any) -> int:
    if isinstance(index, slice):
        raise RuntimeError("UntypedStorage: slices are for assignment; a uint8 tensor over the storage has them: tensor.set_(storage)[1:3]")
    return int(_bytes_of(storage)[_place(storage, index)].item())


def _set_bytes(storage: UntypedStorage, index: Any, *value: Any) -> None:
    if not value:
        raise TypeError("UntypedStorage: bytes cannot be deleted; resize_ of a tensor over the storage takes some away")
    place = index if isinstance(index, slice) else _place(storage, index)
    if not isinstance(value[0], int) or not 0 <= value[0] <= 255:
        raise ValueError(f"UntypedStorage: a byte is an int from 0 to 255, got {_describe(value[0])}")
    _bytes_of(storage)[place] = value[0]


def _reduced(storage: UntypedStorage) -> Any:
    return _untyped, (_bytes_of(storage),)


def _copied(storage: UntypedStorage) -> UntypedStorage:
    return _bytes_of(storage).clone().untyped_storage()


def _untyped(tensor: Tensor) -> UntypedStorage:
    return tensor.untyped_storage()


_check_module(globals())
_CLASSES: dict[str, Any] = {
    name: type(name, (TypedStorage,), {"__module__": "tenon", "__doc__": f"TypedStorage of {dtype}."}) for name, dtype in _DTYPES.items()
}
globals().update(_CLASSES)
Storage = _CLASSES["FloatStorage"]
__all__ = ["Storage", "TypedStorage", "UntypedStorage", *_CLASSES]
add_module_getattr(__name__)
