"""Methods of Tensor that are written in Python: PyTorch's other names for what is there, and changes of a tensor's own geometry."""

from __future__ import annotations

from .. import _C
from ..arguments import describe as _describe, named as _named
from ..autograd.grad_mode import no_grad as _no_grad
from .results import check_tensor as _check_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .._C import Tensor

_T = _C.Tensor


def with_geometry(function: str, tensor: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """The tensor itself, with the sizes, strides and offset of a view of it."""
    if tensor.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(
            f"{function}: the tensor requires a gradient, whose history cannot be changed in place; write x = x.{function.rstrip('_')}(...), "
            "or use no_grad()"
        )
    found = view(tensor.detach())
    if tensor._base is not None:  # type: ignore[attr-defined]
        tensor.data_ptr()  # what was recorded knows the former geometry
        return tensor._take_geometry(found)  # type: ignore[attr-defined]
    with _no_grad():
        return tensor.set_(tensor.untyped_storage(), found.storage_offset(), found.shape, found.stride())


def _function(name: str) -> Any:
    """A function of tenon._functions, whose module loads now."""
    import importlib

    from . import LATER

    return getattr(importlib.import_module(f"{__package__.rpartition('.')[0]}.{LATER[name]}"), name)


def _of_module(name: str, alone: bool = False) -> Any:
    """A method that is a function of tenon._functions; `alone`: it takes no arguments."""

    def method(self, *args, **kwargs):
        return _function(name)(self, *args, **kwargs)

    def of_tensor(self):
        return _function(name)(self)

    found = of_tensor if alone else method
    found.__doc__ = f"tenon.{name}, of this tensor."
    return found


def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """squeeze, of the tensor itself."""
    return with_geometry("squeeze_", self, lambda x: x.squeeze() if dim is None else x.squeeze(dim))


def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """unsqueeze, of the tensor itself."""
    return with_geometry("unsqueeze_", self, lambda x: x.unsqueeze(dim))


def t_(self: Tensor) -> Tensor:
    """t, of the tensor itself."""
    return with_geometry("t_", self, lambda x: x.t())


def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """transpose, of the tensor itself."""
    return with_geometry("transpose_", self, lambda x: x.transpose(dim0, dim1))


def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """transpose_, under NumPy's name."""
    return with_geometry("swapaxes_", self, lambda x: x.transpose(axis0, axis1))


def swapdims_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """transpose_"""
    return with_geometry("swapdims_", self, lambda x: x.transpose(dim0, dim1))


def arctan2_(self: Tensor, other: Tensor) -> Tensor:
    """atan2_"""
    return self.atan2_(other)


def cdouble(self: Tensor, memory_format: Any = _C.preserve_format) -> Tensor:
    """to(tenon.complex128)"""
    return self.to(_C.complex128, memory_format=memory_format)


def cfloat(self: Tensor, memory_format: Any = _C.preserve_format) -> Tensor:
    """to(tenon.complex64)"""
    return self.to(_C.complex64, memory_format=memory_format)


def _check_apply(function: str, self: Tensor, callable_: Any) -> None:
    if self.device.type != "cpu":
        raise TypeError(f"{function}: the tensor must be on the CPU, where Python is, got {self.device}")
    if self.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(f"{function}: the tensor requires a gradient, and a function of Python has none; use detach()")
    if not callable(callable_):
        raise TypeError(f"{function}: callable must be callable, got {_describe(callable_)}")


def _called(function: str, callable_: Any, rows: Any) -> list[Any]:
    try:
        return [callable_(*row) for row in rows]
    except TypeError as e:
        raise TypeError(f"{function}: callable raised TypeError: {e}") from e


def _filled(self: Tensor, numbers: list[Any]) -> Tensor:
    return self.copy_(_C.tensor(numbers, dtype=self.dtype).reshape(self.shape)) if numbers else self


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Each element x replaced by callable(x), one after the other. Slow; for the CPU."""
    _check_apply("apply_", self, callable)
    return _filled(self, _called("apply_", callable, ((x,) for x in self.flatten().tolist())))


def _mapped(function: str, self: Tensor, others: tuple[Any, ...], callable: Any) -> Tensor:
    _check_apply(function, self, callable)
    for other in others:
        _check_tensor(function, "tensor", other)
        if other.dtype is not self.dtype:
            raise TypeError(f"{function}: tensor must be {self.dtype}, as the tensor itself, got {other.dtype}")
    columns = [x.expand(self.shape).flatten().tolist() for x in others]
    return _filled(self, _called(function, callable, zip(self.flatten().tolist(), *columns)))


def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Each element x replaced by callable(x, y), with y of `tensor`, which broadcasts. Slow; for the CPU."""
    return _mapped("map_", self, (tensor,), callable)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Each element replaced by callable(element, a, b), with a of `x` and b of `y`, which broadcast. Slow; for the CPU."""
    return _mapped("map2_", self, (x, y), callable)


def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of this dtype and device: new() empty, new(2, 3) uninitialised, new([1, 2]) of data, new(x) of a tensor's elements."""
    device = self.device if device is None else device
    if len(args) == 1 and isinstance(args[0], _T):
        if args[0].dtype is not self.dtype:
            raise TypeError(f"new: expected a tensor of {self.dtype}, got {args[0].dtype}; convert it")
        return _C.alias(args[0])
    if len(args) == 1 and isinstance(args[0], _C.Size):
        return _C.empty(args[0], dtype=self.dtype, device=device)
    if len(args) == 1 and not isinstance(args[0], int):
        return _C.tensor(args[0], dtype=self.dtype, device=device)
    return _C.empty(list(args) if args else [0], dtype=self.dtype, device=device)


def is_shared(self: Tensor) -> bool:
    """Whether other processes share the memory: no."""
    return False


def share_memory_(self: Tensor) -> NoReturn:
    """Moves the memory to where other processes share it; raises NotImplementedError, as none is shared."""
    raise NotImplementedError("share_memory_: memory is not shared with other processes; send a tensor as bytes, or by numpy() through multiprocessing.shared_memory")


def storage_type(self: Tensor) -> Any:
    """The class of storages of the tensor's dtype, such as tenon.FloatStorage."""
    from .. import storage

    for name, dtype in storage._DTYPES.items():
        if dtype is self.dtype:
            return getattr(storage, name)
    raise TypeError(f"storage_type: no class of storages has the dtype {self.dtype}; TypedStorage takes any")


def const_data_ptr(self: Tensor) -> int:
    """data_ptr(), for what only reads."""
    return self.data_ptr()


def _resized(function: str, self: Tensor, sizes: Any) -> Tensor:
    from ..callers import warn

    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(f"{function}: sizes must be ints, got {_describe(list(sizes))}")
    warn(f"{function}: use reshape; {function} is a former name of it in PyTorch")
    count = 1
    for size in sizes:
        count *= size
    if count != self.numel():
        raise RuntimeError(f"{function}: the sizes {list(sizes)} have {count} elements, but the tensor has {self.numel()}; resize_ makes room for more")
    return self.reshape(sizes)


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """reshape to sizes with as many elements, under a former name that warns. resize_ changes the tensor itself."""
    return _resized("resize", self, sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """reshape to the sizes of another tensor with as many elements, under a former name that warns."""
    _check_tensor("resize_as", "tensor", tensor)
    return _resized("resize_as", self, tensor.shape)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether a tensor has the same storage, offset, sizes and strides."""
    _check_tensor("is_set_to", "tensor", tensor)
    same = self.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr() and self.storage_offset() == tensor.storage_offset()
    return same and self.shape == tensor.shape and self.stride() == tensor.stride()


def index_reduce_(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """index_reduce in place."""
    from .statistics import index_reduce

    return self.copy_(index_reduce(self, dim, index, source, reduce, include_self=include_self))


def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """tenon.nonzero_static, of this tensor."""
    return _function("nonzero_static")(self, size=size, fill_value=fill_value)


def unique(self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """tenon.unique, of this tensor."""
    from ..functional import unique as function

    return function(self, sorted, return_inverse, return_counts, dim)


def unique_consecutive(self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """tenon.unique_consecutive, of this tensor."""
    from ..functional import unique_consecutive as function

    return function(self, return_inverse, return_counts, dim)


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """tenon.lu, of this tensor."""
    from ..functional import lu as function

    return function(self, pivot, get_infos)


def dim_order(self: Tensor, ambiguity_check: bool = False) -> tuple[int, ...]:
    """The dimensions in the order of memory, the one with the largest stride first."""
    strides = self.stride()
    return tuple(sorted(range(len(strides)), key=lambda d: (-strides[d], d)))


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """float_power in place, of float64 or complex128."""
    found = _C.float_power(self, exponent)
    if found.dtype is not self.dtype:
        raise RuntimeError(f"float_power_: the tensor must be {found.dtype}, got {self.dtype}; use float_power")
    return self.copy_(found)


def _in_place_of(name: str) -> Any:
    def method(self, *args, **kwargs):
        from .small import _in_place

        return self.copy_(_in_place(name + "_", self, getattr(self, name)(*args, **kwargs)))

    method.__doc__ = f"{name} in place."
    return method


_METHODS = {
    function.__name__: function
    for function in (
        squeeze_, unsqueeze_, t_, transpose_, swapaxes_, swapdims_, arctan2_, cdouble, cfloat, apply_, map_, map2_, new, is_shared, share_memory_,
        is_set_to, index_reduce_, nonzero_static, storage_type, const_data_ptr, resize, resize_as, unique, unique_consecutive, lu, dim_order, float_power_,
    )
}  # fmt: skip
_METHODS |= {
    name: _of_module(name)
    for name in (
        "arctan2", "cross", "ger", "is_same_size", "index_reduce", "resize_as_", "as_strided_", "ldexp_", "logit_", "slice_inverse", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
        "eig", "lstsq", "solve", "symeig",
    )
}  # fmt: skip
_METHODS |= {name: _of_module(name, True) for name in ("adjoint", "get_device", "is_conj", "is_distributed", "is_neg", "resolve_neg")}
_METHODS |= {name + "_": _in_place_of(name) for name in ("mvlgamma", "polygamma", "renorm")}

#: Functions that they are given raise errors of their own, which name what those call.
_LEFT_ALONE = {"apply_", "map_", "map2_"}
for _name, _method in _METHODS.items():
    _method.__name__ = _method.__qualname__ = _name
    setattr(_T, _name, _method if _name in _LEFT_ALONE else _named(_method, _name))

setattr(_T, "H", property(lambda self: _hermitian(self), doc="The transpose of a matrix, with complex elements conjugated."))


def _hermitian(x: Tensor) -> Tensor:
    if x.dim() not in (0, 2):
        raise RuntimeError(f"H: expected a matrix, got shape {list(x.shape)}; use mH for batches")
    return x.mH if x.dim() == 2 else x.conj()
