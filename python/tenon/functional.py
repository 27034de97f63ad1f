"""Functions over operators whose arguments PyTorch's Python writes in several ways: any number of tensors, one list, or ints."""

from __future__ import annotations

import copyreg
import itertools
from numbers import Integral as _Integral

from . import _C
from .arguments import check_module as _check_module, checked as _checked, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ._C import Size, Tensor
    from .types import Device, DType, Ints, Number


def _listed(tensors: Sequence[Any]) -> list[Any]:
    """The tensors of a call f(a, b) or f([a, b])."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


def _atleast(operator: Callable[..., Any]) -> Callable[..., Any]:
    def function(*tensors):
        if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
            return operator(tensors[0])
        return tuple(operator(_listed(tensors)))

    function.__name__ = function.__qualname__ = operator.__name__
    function.__doc__ = operator.__doc__
    return function


atleast_1d = _atleast(_C.atleast_1d)
atleast_2d = _atleast(_C.atleast_2d)
atleast_3d = _atleast(_C.atleast_3d)


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of the tensors, all of the shape that they broadcast to."""
    return tuple(_C.broadcast_tensors(_listed(tensors)))


def broadcast_shapes(*shapes: Ints) -> Size:
    """The shape that tensors of these shapes broadcast to. A shape may be an int."""
    result: list[int] = []
    for shape in shapes:
        if not isinstance(shape, (int, list, tuple)) or not all(isinstance(n, int) for n in ([shape] if isinstance(shape, int) else shape)):
            raise TypeError(f"broadcast_shapes: a shape must be an int or a sequence of ints, got {describe(shape)}")
        sizes = [shape] if isinstance(shape, int) else list(shape)
        if any(size < 0 for size in sizes):
            raise RuntimeError(f"broadcast_shapes: sizes must not be negative, got {shape}")
        result = [1] * (len(sizes) - len(result)) + result
        for place in range(1, len(sizes) + 1):
            size = sizes[-place]
            if size != 1 and result[-place] not in (1, size):
                raise RuntimeError(f"broadcast_shapes: the shapes {', '.join(map(str, shapes))} do not broadcast")
            if size != 1:
                result[-place] = size
    return _C.Size(result)


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates on a grid: result i has the elements of vector i along dimension i, and repeats them along all others.
    `indexing` is "ij", the default, or "xy", which swaps the first two dimensions of results."""
    if indexing is None or indexing == "ij":
        return tuple(_C.meshgrid(_listed(tensors)))
    return tuple(_C.meshgrid(_listed(tensors), indexing=indexing))


def einsum(*args: Any) -> Tensor:
    """einsum("ij,jk->ik", a, b): sums of products by Einstein's convention. Dimensions may be numbered instead of named:
    einsum(a, [0, 1], b, [1, 2], [0, 2]); `...` is Ellipsis there."""
    if len(args) < 2:
        raise TypeError("einsum: expected an equation and tensors")
    if isinstance(args[0], _C.Tensor):
        terms = [_letters(term) for term in args[1::2]]
        operands = args[0 : 2 * (len(args) // 2) : 2]
        equation = ",".join(terms) if len(args) % 2 == 0 else ",".join(terms) + "->" + _letters(args[-1])
        return _C.einsum(equation, list(operands))
    return _C.einsum(args[0], _listed(args[1:]))


def _letters(numbers: Any) -> str:
    if not isinstance(numbers, (list, tuple)):
        raise TypeError(f"einsum: an operand's dimensions must be a list of ints and Ellipsis, got {describe(numbers)}")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    text = ""
    for number in numbers:
        if number is not Ellipsis and not (isinstance(number, _Integral) and 0 <= int(number) < len(letters)):
            raise ValueError(f"einsum: a dimension's number must be from 0 to {len(letters) - 1}, got {number!r}")
        text += "..." if number is Ellipsis else letters[number]
    return text


def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Any] | Tensor = 2, out: Tensor | None = None) -> Tensor:
    """The sum of products over pairs of dimensions: the last `dims` of `a` with the first of `b`, or dims = (those, these)."""
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot: dims must not be negative, got {dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot: dims is {dims}, and the tensors have {a.dim()} and {b.dim()} dimensions")
        mine, theirs = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        mine, theirs = ([d] if isinstance(d, int) else list(d) for d in dims)
    if out is None:
        return _C.tensordot(a, b, mine, theirs)
    return _C.tensordot(a, b, mine, theirs, out=out)


_vector_norm = _C.linalg_vector_norm


def _nuclear_norm(input: Tensor, dims: list[int], keepdim: bool, out: Tensor | None) -> Tensor:
    if len(dims) != 2:
        raise RuntimeError(f"norm: p='nuc' is a norm of matrices; expected `dim` of two dimensions, got {dims}")
    result = _C.linalg_svdvals(input.movedim(dims, [-2, -1])).sum(-1)
    for dim in sorted(d % input.dim() for d in dims) if keepdim else ():
        result = result.unsqueeze(dim)
    return result if out is None else out.resize_(result.shape).copy_(result)


def norm(
    input: Tensor,
    p: Number | str | None = "fro",
    dim: Ints | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType = None,
) -> Tensor:
    """sum(|x| ** p) ** (1 / p) of all elements, or along `dim`, an int or several; p may be inf, -inf, 0 and "fro", which is 2.

    The nuclear norm ("nuc") is that of the matrices in two dimensions. "fro" along three or more dimensions raises RuntimeError.
    """
    dims = [dim] if isinstance(dim, int) else dim
    if isinstance(p, str):
        if p == "nuc":
            return _nuclear_norm(input if dtype is None else input.to(dtype), [-2, -1] if dims is None else list(dims), keepdim, out)
        if p != "fro":
            raise RuntimeError(f"norm: expected p to be a number, 'fro' or 'nuc', got {p!r}")
        if dims is not None and len(dims) > 2:
            raise RuntimeError(f"norm: p='fro' takes one or two dimensions, got {list(dims)}; give p=2 for more")
        p = 2
    options = {} if out is None else {"out": out}
    return _vector_norm(input, 2 if p is None else p, dims, keepdim, dtype=dtype, **options)


def _norm_method(
    self: Tensor, p: Number | str | None = "fro", dim: Ints | None = None, keepdim: bool = False, dtype: DType = None
) -> Tensor:
    return norm(self, p, dim, keepdim, dtype=dtype)


_norm_method.__name__ = _norm_method.__qualname__ = "norm"
_norm_method.__doc__ = norm.__doc__
_C.Tensor.norm = _norm_method  # type: ignore[method-assign]


#: How `cdist` computes for p = 2, as the operator numbers it: by a matrix product for more than 25 rows, always or never.
_CDIST_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | int | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norms of the differences of each row of x1 [..., n, d] and each row of x2 [..., m, d]: [..., n, m]."""
    if isinstance(compute_mode, str):
        if compute_mode not in _CDIST_MODES:
            raise ValueError(f"cdist: compute_mode must be one of {', '.join(map(repr, _CDIST_MODES))}, got {compute_mode!r}")
        compute_mode = _CDIST_MODES[compute_mode]
    return _C.cdist(x1, x2, p, compute_mode)


def chain_matmul(*matrices: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor:
    """The product of the matrices in the order of the fewest operations, as linalg.multi_dot."""
    listed = _listed(matrices)
    if len(listed) == 1:
        return listed[0]
    return _C.linalg_multi_dot(listed) if out is None else _C.linalg_multi_dot(listed, out=out)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, ...]:
    """linalg.lu_factor, and with `get_infos` the `info` of each matrix in place of an error."""
    LU, pivots, info = _C.linalg_lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    results = (LU, pivots, info) if get_infos else (LU, pivots)
    if out is None:
        return results
    for to, result in zip(out, results, strict=True):
        to.resize_(result.shape).copy_(result)
    return tuple(out)


def _check_dims(function: str, tensors: list[Any], most: int) -> None:
    """Raises an error that names the function for what is no tensor of at most so many dimensions."""
    for number, tensor in enumerate(tensors):
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(f"{function}: tensors must be Tensors, but element {number} is {describe(tensor)}")
        if tensor.dim() > most:
            raise RuntimeError(f"{function}: tensors must have at most {most} dimensions, but element {number} has {tensor.dim()}")


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every combination of elements of the vectors, in rows."""
    vectors = _listed(tensors)
    _check_dims("cartesian_prod", vectors, 1)
    if not vectors:
        raise ValueError("cartesian_prod: expected at least one tensor")
    if len(vectors) == 1:
        return vectors[0].flatten()
    return _C.stack([grid.flatten() for grid in meshgrid(*vectors)], 1)


def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """The tensors, as matrices, one below and right of the other, and zeros elsewhere; [1, 0] of no tensors."""
    given = _listed(tensors)
    _check_dims("block_diag", given, 2)
    if not given:
        return _C.empty(1, 0)
    blocks = [_C.atleast_2d(t) for t in given]
    columns = [block.shape[1] for block in blocks]
    rows = []
    for block, left in zip(blocks, itertools.accumulate([0, *columns])):
        right = sum(columns) - left - block.shape[1]
        parts = [block.new_zeros(block.shape[0], left), block, block.new_zeros(block.shape[0], right)]
        rows.append(_C.cat(parts, 1))
    return _C.cat(rows, 0)


def _asked(values: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool, return_counts: bool) -> Any:
    """What a call of unique returns: the values alone, or with what was asked for."""
    found = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return found if len(found) > 1 else values


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements that differ, in ascending order, or the slices along `dim`; `sorted=False` may give the same order.
    `return_inverse`: where each element of `input` is among them; `return_counts`: how often each occurs. A NaN differs
    from every NaN."""
    if dim is None:
        found = _C._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = _C.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _asked(*found, return_inverse, return_counts)


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The first of each run of equal elements, or of equal slices along `dim`; see `unique`."""
    return _asked(*_C.unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


def unravel_index(indices: Tensor, shape: Ints) -> tuple[Tensor, ...]:
    """The positions in a tensor of `shape` of elements that are counted in order: one tensor of coordinates for each dimension.
    Raises ValueError for indices that are out of range."""
    sizes = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    if not isinstance(indices, _C.Tensor) or indices.is_floating_point() or indices.is_complex() or indices.dtype == _C.bool:
        given = f"{indices.dtype}" if isinstance(indices, _C.Tensor) else describe(indices)
        raise TypeError(f"unravel_index: expected a tensor of integers, got {given}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"unravel_index: sizes must not be negative, got {tuple(sizes)}")
    total = 1
    for size in sizes:
        total *= size
    if indices.numel() and (int(indices.min()) < 0 or int(indices.max()) >= total):
        raise ValueError(f"unravel_index: indices must be in [0, {total}), the elements of {tuple(sizes)}")
    indices = indices.to(_C.int64)
    coordinates = []
    for size in reversed(sizes):
        coordinates.append(indices % size)
        indices = indices // size
    return tuple(reversed(coordinates))


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: its powers n - 1, ..., 1, 0 in columns, or in ascending order. [n], N -> [n, N]."""
    if x.dim() != 1:
        raise RuntimeError(f"vander: expected a vector, got shape {tuple(x.shape)}")
    count = x.numel() if N is None else N
    if count < 0:
        raise RuntimeError(f"vander: N must not be negative, got {count}")
    if count == 0:
        return _C.empty(x.numel(), 0, dtype=x.dtype if x.is_floating_point() or x.is_complex() else _C.int64, device=x.device)
    columns = x.unsqueeze(1).expand(x.numel(), count).clone()
    columns[:, 0] = 1
    powers = columns.cumprod(1)
    return powers if increasing else powers.flip(1)


@_checked
def new_tensor(
    self: Tensor, data: Any, *, dtype: DType = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of this data with the dtype and device of `self`, unless others are given."""
    device = self.device if device is None else device
    return _C.tensor(data, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


_C.Tensor.new_tensor = new_tensor  # type: ignore[method-assign]
del new_tensor
# The first two protocols of pickle cannot make a tuple of another type.
copyreg.pickle(_C.Size, lambda size: (_C.Size, (tuple(size),)))


def _splitting(name: str) -> Callable[..., Any]:
    """hsplit and its kin as methods: one int is a number of sections, where a method would take it for a list of one index."""
    operator = getattr(_C, name)

    def method(self, indices_or_sections):
        return operator(self, indices_or_sections)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = operator.__doc__
    return method


for _name in ("hsplit", "vsplit", "dsplit"):
    setattr(_C.Tensor, _name, _splitting(_name))


_check_module(globals())
