"""Names of PyTorch's for what operators of other names compute, and short compositions of them."""

from __future__ import annotations

from numbers import Complex as _Complex, Integral as _Integral, Real as _Real

from .. import _C
from ..arguments import check_module as _check_module, describe as _describe
from ..callers import warn as _warn
from .results import check_tensor as _check_tensor, into as _into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType, Ints, Number

_numbers_to = range
#: None, which adds a dimension of size 1 where it is an index.
newaxis = None
arctan2 = _C.atan2
ger = _C.outer
native_channel_shuffle = _C.channel_shuffle


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, and complex elements conjugated. Raises for fewer than two dimensions."""
    _check_tensor("adjoint", "input", input)
    return input.mH


def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of 3 elements along `dim`: unless given, the first dimension of that size, with a warning.

    linalg.cross has the last one.
    """
    _check_tensor("cross", "input", input)
    _check_tensor("cross", "other", other)
    if dim is None:
        _warn("cross: give `dim`, or use linalg.cross; the choice of a dimension without it is deprecated")
        sizes = _C.broadcast_tensors([input, other])[0].shape
        if 3 not in sizes:
            raise RuntimeError(f"cross: expected a dimension of size 3, got {list(sizes)}")
        dim = list(sizes).index(3) - len(sizes)
    from ..linalg import cross as along

    return along(input, other, dim=dim, out=out)


def logspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DType = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` powers of `base`, whose exponents are evenly spaced from start to end: [steps].

    Computed in float64, or of complex bounds in complex128, and rounded once.
    """
    if out is not None:
        dtype, device = out.dtype, out.device
    elif dtype is None:
        whole = any(isinstance(_number("logspace", n), complex) for n in (start, end))
        dtype = _C.promote_types(_C.get_default_dtype(), _C.complex64) if whole else _C.get_default_dtype()
    _check_plain("logspace", layout)
    wide = _C.complex128 if getattr(dtype, "is_complex", False) else _C.float64
    exponents = _C.linspace(_number("logspace", start), _number("logspace", end), steps, dtype=wide)
    result = _C.pow(_C.tensor(base, dtype=wide), exponents).to(dtype=dtype, device=device)
    if pin_memory:
        result = result.pin_memory()
    return _into("logspace", result, out) if out is not None else result.requires_grad_(requires_grad)


def _number(function: str, value: Any) -> Any:
    if isinstance(value, _C.Tensor):
        if value.dim():
            raise RuntimeError(f"{function}: a bound must be a number or a 0-dim tensor, got shape {list(value.shape)}")
        return value.item()
    # Those of NumPy become Python's, whose types say whether a bound is whole or complex.
    kinds: Any = ((_Integral, int), (_Real, float), (_Complex, complex))
    for kind, convert in kinds:
        if isinstance(value, kind):
            return convert(value)
    raise TypeError(f"{function}: a bound must be a number, got {_describe(value)}")


def _check_plain(function: str, layout: Any) -> None:
    if layout is not None and layout is not _C.strided:
        raise NotImplementedError(f"{function}: layout must be tenon.strided, got {_describe(layout)}")


def range(
    start: Number = 0,
    end: Number | None = None,
    step: Number = 1,
    *,
    out: Tensor | None = None,
    dtype: DType = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from start up to end, which is one of them: a former function of PyTorch's; arange leaves the end out."""
    if end is None:
        start, end = 0, start
    _warn("range: use arange, whose results are without the end; range is deprecated, and will be removed from PyTorch")
    _check_plain("range", layout)
    first, last, by = (_number("range", n) for n in (start, end, step))
    if isinstance(first, complex) or isinstance(last, complex) or isinstance(by, complex):
        raise TypeError(f"range: bounds must be real, got {first}, {last} and {by}")
    if not all(abs(n) < float("inf") for n in (first, last)):
        raise RuntimeError(f"range: bounds must be finite, got {first} and {last}")
    if by == 0:
        raise RuntimeError("range: step must not be 0")
    if (last - first) * by < 0:
        raise RuntimeError(f"range: step {by} leads away from {last}; give it the sign of end - start")
    if out is not None:
        dtype, device = out.dtype, out.device
    elif dtype is None:
        dtype = _C.get_default_dtype()
    count = int((last - first) / by) + 1
    numbers = _C.arange(count, dtype=_C.float64) * by + first if isinstance(first + by, float) else _C.arange(count) * by + first
    result = numbers.to(dtype=dtype, device=device)
    return _into("range", result, out) if out is not None else result.requires_grad_(requires_grad)


def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: DType = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An uninitialised tensor without gaps, whose dimensions are in memory in the order that `physical_layout` lists."""
    _check_plain("empty_permuted", layout)
    order = [int(d) for d in physical_layout]
    if sorted(order) != [*_numbers_to(len(size))]:
        raise RuntimeError(f"empty_permuted: physical_layout must list the dimensions 0 to {len(size) - 1}, got {order}")
    there = _C.empty([size[d] for d in order], dtype=dtype, device=device, pin_memory=pin_memory)
    back = [order.index(d) for d in _numbers_to(len(order))]
    return there.permute(back).requires_grad_(requires_grad)


def frobenius_norm(input: Tensor, dim: Ints, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The root of the sum of squares along one or two dimensions, or for an empty list of all elements."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    if len(dims) > 2:
        raise RuntimeError(f"frobenius_norm: dim must have at most 2 dimensions, got {dims}; linalg.vector_norm takes more")
    options: dict[str, Any] = {} if out is None else {"out": out}
    return _C.linalg_vector_norm(input, 2, dims or None, keepdim, **options)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of singular values of a matrix, or of the matrices in two dimensions."""
    from ..functional import norm

    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = None, dim
    if dim is None and input.dim() != 2:
        raise RuntimeError(f"nuclear_norm: expected a matrix, or dim, got shape {list(input.shape)}")
    return norm(input, "nuc", dim, keepdim, out=out)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but `dim`, which keep size 1; with -1 the norm of all elements."""
    if dim == -1:
        return _C.linalg_vector_norm(v, pow)
    if not 0 <= dim < v.dim():
        raise IndexError(f"norm_except_dim: dim must be -1 or between 0 and {v.dim() - 1}, got {dim}")
    others = [d for d in _numbers_to(v.dim()) if d != dim]
    return _C.linalg_vector_norm(v, pow, others, True) if others else v.abs()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    _check_tensor("is_same_size", "other", other)
    return input.shape == other.shape


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input.is_signed()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference_mode()."""
    return input.is_inference()


def is_conj(input: Tensor) -> bool:
    """Whether a conjugate waits to be computed: never, conjugates are computed when they are asked for."""
    _check_tensor("is_conj", "input", input)
    return False


def is_neg(input: Tensor) -> bool:
    """Whether a negation waits to be computed: never."""
    _check_tensor("is_neg", "input", input)
    return False


def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: no negation waits to be computed."""
    _check_tensor("resolve_neg", "input", input)
    return input


def is_distributed(input: Tensor) -> bool:
    """Whether the tensor is spread over several processes: no."""
    _check_tensor("is_distributed", "input", input)
    return False


def is_vulkan_available() -> bool:
    """Whether Vulkan computes: no."""
    return False


def cudnn_is_acceptable(input: Tensor) -> bool:
    """Whether cuDNN computes with this tensor: no."""
    _check_tensor("cudnn_is_acceptable", "input", input)
    return False


def get_device(input: Tensor) -> int:
    """The number of the tensor's device; -1 on the CPU."""
    _check_tensor("get_device", "input", input)
    return -1 if input.device.index is None else input.device.index


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule for from_dlpack of this or another library, which takes it once. Newer programs hand over the tensor itself."""
    _check_tensor("to_dlpack", "tensor", tensor)
    return tensor.__dlpack__()


def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """gcd in place."""
    return input.gcd_(other)


def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """lcm in place."""
    return input.lcm_(other)


def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """ldexp in place."""
    return input.copy_(_in_place("ldexp_", input, _C.ldexp(input, other)))


def logit_(input: Tensor, eps: float | None = None) -> Tensor:
    """logit in place."""
    return input.copy_(_in_place("logit_", input, _C.logit(input, eps)))


def clamp_max_(input: Tensor, max: Number | Tensor) -> Tensor:
    """clamp_max in place."""
    return input.clamp_max_(max)


def clamp_min_(input: Tensor, min: Number | Tensor) -> Tensor:
    """clamp_min in place."""
    return input.clamp_min_(min)


def _in_place(function: str, input: Tensor, result: Tensor) -> Tensor:
    """A result that is to be written to `input`; raises where its shape or dtype does not fit."""
    if result.shape != input.shape:
        raise RuntimeError(f"{function}: the result has shape {list(result.shape)}, which does not fit the tensor of shape {list(input.shape)}")
    if not _C.can_cast(result.dtype, input.dtype):
        raise RuntimeError(f"{function}: the result is {result.dtype}, which the tensor of {input.dtype} cannot hold; convert the tensor first")
    return result


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: _C.memory_format | None = None) -> Tensor:
    """The tensor with the shape of another: resize_."""
    _check_tensor("resize_as_", "the_template", the_template)
    if memory_format is None:
        return input.resize_(the_template.shape)
    return input.resize_(the_template.shape, memory_format=memory_format)


def as_strided_(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Gives the tensor itself other sizes, strides and offset in its storage."""
    from .methods import with_geometry

    return with_geometry("as_strided_", input, lambda x: _C.as_strided(x, size, stride, storage_offset))


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: DType = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
) -> Tensor:
    """`size` elements at the beginning of a file, read into memory that is mapped; shared=True writes what changes to the file,
    which is made as large as that."""
    import mmap

    from ..arguments import path_of

    _check_plain("from_file", layout)
    path = path_of("from_file", filename)
    if pin_memory:
        raise NotImplementedError("from_file: memory of a file cannot be pinned; copy it by pin_memory()")
    if not isinstance(size, int) or size < 0:
        raise ValueError(f"from_file: size must not be negative, got {_describe(size)}")
    kind = _C.get_default_dtype() if dtype is None else _C.empty(0, dtype=dtype).dtype
    if size == 0:
        return _C.empty(0, dtype=kind, device=device)
    wanted = size * kind.itemsize
    with open(path, "a+b" if shared else "rb") as file:
        length = file.seek(0, 2)
        if length < wanted and not shared:
            raise RuntimeError(f"from_file: {filename!r} has {length} bytes, but {size} elements of {kind} need {wanted}")
        if length < wanted:
            file.truncate(wanted)
        memory = mmap.mmap(file.fileno(), wanted, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return _C.frombuffer(memory, dtype=kind).to(device=device)


_check_module(globals())
