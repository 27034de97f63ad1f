"""Linear algebra: factorizations, solutions, spectra and norms of batches of matrices, which are the last two dimensions.

Dtypes are float32, float64, complex64 and complex128; a result has the same bits on every machine and for any number of threads. Matrices
without a factorization, inverse or spectrum raise LinAlgError, which names the entry of the batch; functions whose names end in _ex return
`info` in its place.

Signs are those of one rule, whatever computed them: of each eigenvector, and of each column of V in A = U diag(S) V^H, the largest
element is real and positive; R of a QR factorization has LAPACK's signs.
"""

from __future__ import annotations

import math
from numbers import Integral as _Integral

from . import _C
from ._names.absent import add_module_getattr
from ._roots import SquareRoot as _SquareRoot
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor
    from .types import DType, Ints, Number

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex",
    "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_sqrth", "multi_dot", "norm", "pinv", "polar",
    "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

LinAlgError = _C._LinAlgError  # type: ignore
cholesky = _C.linalg_cholesky
cholesky_ex = _C.linalg_cholesky_ex
det = _C.linalg_det
eig = _C.linalg_eig
eigh = _C.linalg_eigh
eigvals = _C.linalg_eigvals
eigvalsh = _C.linalg_eigvalsh
householder_product = _C.linalg_householder_product
inv = _C.linalg_inv
inv_ex = _C.linalg_inv_ex
ldl_factor = _C.linalg_ldl_factor
ldl_factor_ex = _C.linalg_ldl_factor_ex
ldl_solve = _C.linalg_ldl_solve
lstsq = _C.linalg_lstsq
lu = _C.linalg_lu
lu_factor = _C.linalg_lu_factor
lu_factor_ex = _C.linalg_lu_factor_ex
lu_solve = _C.linalg_lu_solve
matmul = _C.matmul
matrix_exp = _C.linalg_matrix_exp
matrix_power = _C.linalg_matrix_power
multi_dot = _C.linalg_multi_dot
qr = _C.linalg_qr
slogdet = _C.linalg_slogdet
solve = _C.linalg_solve
solve_ex = _C.linalg_solve_ex
solve_triangular = _C.linalg_solve_triangular
svd = _C.linalg_svd
svdvals = _C.linalg_svdvals
_vector_norm = _C.linalg_vector_norm


def _into(out: Tensor | None, result: Tensor) -> Tensor:
    """`result`, written to `out` where that is given."""
    if out is None:
        return result
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def vector_norm(
    x: Tensor,
    ord: Number = 2,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
) -> Tensor:
    """sum(|x| ** ord) ** (1 / ord) of all elements, or along `dim`, an int or several: floating or complex x, a real result.

    ord inf and -inf give the largest and the smallest |x|, 0 the number of elements that are not zero. `dtype` converts x first.
    """
    dims = [dim] if isinstance(dim, int) else dim
    options = {} if out is None else {"out": out}
    return _vector_norm(x, ord, dims, keepdim, dtype=dtype, **options)


def _extreme(sums: Tensor, dim: int, ord: Any, keepdim: bool) -> Tensor:
    """The largest of numbers that are not negative, 0 of none, or for a negative order the smallest."""
    if sums.shape[dim] > 0:
        return sums.amax(dim, keepdim) if ord > 0 else sums.amin(dim, keepdim)
    if ord < 0:
        raise IndexError(f"matrix_norm: order {ord} is the smallest of the sums or singular values of a matrix, and one without elements has none")
    return sums.sum(dim, keepdim)


def _values_norm(values: Tensor, ord: Number | str, keepdim: bool, dims: list[int]) -> Tensor:
    """Of singular values along the last dimension: their sum, the largest or the smallest; `dims` are put back."""
    result = values.sum(-1) if isinstance(ord, str) else _extreme(values, -1, ord, False)
    for dim in sorted(dims) if keepdim else ():
        result = result.unsqueeze(dim)
    return result


def matrix_norm(
    A: Tensor,
    ord: Number | str = "fro",
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType = None,
    out: Tensor | None = None,
) -> Tensor:
    """A norm of the matrices in two dimensions: "fro", "nuc" (the sum of singular values), 2 and -2 (the largest and the smallest
    of them), 1 and -1 (the largest and smallest sum of a column), inf and -inf (of a row)."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    if A.dim() < 2 or len(dims) != 2:
        raise RuntimeError(f"matrix_norm: expected a tensor of at least 2 dimensions and `dim` of two, got {tuple(A.shape)} and {dims}")
    places = [d + A.dim() if d < 0 else d for d in dims]
    if not all(0 <= d < A.dim() for d in places):
        raise IndexError(f"matrix_norm: `dim` {dims} is out of range for a tensor of {A.dim()} dimensions")
    if places[0] == places[1]:
        raise RuntimeError(f"matrix_norm: expected two different dimensions in `dim`, got {dims}")
    if dtype is not None:
        A = A.to(dtype)
    if ord == "fro":
        return _into(out, _vector_norm(A, 2, dims, keepdim))
    if ord in ("nuc", 2, -2):
        return _into(out, _values_norm(svdvals(A.movedim(places, [-2, -1])), ord, keepdim, places))
    if isinstance(ord, (str, complex)) or abs(ord) not in (1, math.inf):
        raise RuntimeError(f"matrix_norm: expected `ord` of 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {ord!r}")
    added, chosen = (places[0], places[1]) if abs(ord) == 1 else (places[1], places[0])
    sums = _vector_norm(A, 1, [added], True)
    result = _extreme(sums, chosen, ord, True)
    return _into(out, result if keepdim else result.squeeze(places))


def norm(
    input: Tensor,
    ord: Number | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: DType = None,
) -> Tensor:
    """A norm of vectors or matrices: that of a matrix if `dim` has two dimensions, or if `ord` is given and `dim` is not, and input has two."""
    if dim is None and ord is None:
        result = vector_norm(input, 2, None, keepdim, dtype=dtype)
    elif isinstance(dim, (int, _Integral)) or (dim is not None and len(dim) == 1) or (dim is None and input.dim() == 1):
        if isinstance(ord, str):
            raise RuntimeError(f"norm: `ord` {ord!r} is one of matrices, and `dim` has one dimension")
        result = vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    elif dim is None and input.dim() != 2:
        raise RuntimeError(f"norm: with `ord` and without `dim`, `input` must have 1 or 2 dimensions, got {tuple(input.shape)}")
    elif ord is None:
        if dim is None or len(dim) != 2:
            raise RuntimeError(f"norm: expected `dim` of 1 or 2 dimensions, got {dim}; vector_norm takes more")
        result = vector_norm(input, 2, dim, keepdim, dtype=dtype)
    else:
        result = matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return _into(out, result)


def cond(A: Tensor, p: Number | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number in a norm of matrix_norm: of 2 unless given, by singular values; of others by the inverse. Singular matrices
    have inf."""
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"cond: expected `p` of 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {p!r}")
    if A.dim() < 2:
        raise RuntimeError(f"cond: expected a tensor of at least 2 dimensions, got {tuple(A.shape)}")
    if p is None or p in (2, -2):
        values = svdvals(A)
        if values.shape[-1] == 0:
            return _into(out, values.new_zeros(values.shape[:-1]))
        first, last = values.select(-1, 0), values.select(-1, values.shape[-1] - 1)
        return _into(out, last / first if p == -2 else first / last)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"cond: with `p` {p!r}, `A` must be batches of square matrices, got {tuple(A.shape)}")
    inverse, info = inv_ex(A)
    result = matrix_norm(A, p) * matrix_norm(inverse, p)
    return _into(out, _C.where(info != 0, math.inf, result))


def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The pseudoinverse, where singular values up to max(atol, rtol * the largest) count as 0; rtol is eps * max(m, n) unless either is
    given. `rcond` is an older name of rtol."""
    if rcond is not None:
        if atol is not None or rtol is not None:
            raise TypeError("pinv: expected rcond alone, or atol and rtol, got both")
        rtol = rcond
    if isinstance(atol, _C.Tensor) or isinstance(rtol, _C.Tensor):
        bounds = [_C.tensor(x, dtype=_C.float64) if isinstance(x, (int, float)) else x for x in (atol, rtol)]
        return _into(out, _C.linalg_pinv(A, atol=bounds[0], rtol=bounds[1], hermitian=hermitian))
    return _into(out, _C.linalg_pinv(A, atol=atol, rtol=rtol, hermitian=hermitian))


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The number of singular values above max(atol, rtol * the largest); rtol is eps * max(m, n) unless either is given. `tol` is an older
    name of atol, without rtol."""
    if tol is not None:
        if atol is not None or rtol is not None:
            raise TypeError("matrix_rank: expected tol alone, or atol and rtol, got both")
        atol, rtol = tol, 0.0
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    if values.shape[-1] == 0:
        return _into(out, _C.zeros(values.shape[:-1], dtype=_C.int64, device=A.device))
    eps = (2.0**-23 if values.dtype == _C.float32 else 2.0**-52) * max(A.shape[-2:])
    if rtol is None:
        rtol = eps if atol is None else eps * (atol.to(values.dtype) <= 0) if isinstance(atol, _C.Tensor) else eps * (atol <= 0)
    bound = values.amax(-1) * rtol
    if atol is not None:
        bound = _C.maximum(bound, atol if isinstance(atol, _C.Tensor) else _C.full_like(bound, atol))
    return _into(out, (values > bound.unsqueeze(-1)).sum(-1))


def matrix_sqrth(A: Tensor) -> Tensor:
    """The square root, positive semidefinite itself, of symmetric and Hermitian positive semidefinite matrices. Eigenvalues below 0
    count as 0, where the root has no derivative."""
    return _SquareRoot.apply(A)


def polar(A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """A = U H with orthonormal columns U and a positive semidefinite H, of matrices with at least as many rows as columns."""
    if A.dim() < 2 or A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"polar: expected `A` with at least as many rows as columns, got {tuple(A.shape)}")
    left, values, right = svd(A, full_matrices=False)
    unitary = left @ right
    positive = (right.mH * values.to(A.dtype).unsqueeze(-2)) @ right
    if out is None:
        return unitary, positive
    return _into(out[0], unitary), _into(out[1], positive)


def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse for tensordot: of the matrix whose rows are the first `ind` dimensions and whose columns are the others."""
    if ind <= 0:
        raise RuntimeError(f"tensorinv: `ind` must be a positive int, got {ind}")
    rows, columns = list(A.shape[:ind]), list(A.shape[ind:])
    if math.prod(rows) != math.prod(columns):
        raise RuntimeError(f"tensorinv: the first {ind} dimensions of `A` {tuple(A.shape)} must have as many elements as the others")
    return _into(out, inv(A.reshape(math.prod(rows), -1 if columns else 1)).reshape(columns + rows))


def tensorsolve(A: Tensor, B: Tensor, dims: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """X of tensordot(A, X, X.dim()) = B, where `dims` of A are moved to the end first."""
    if dims is not None:
        moved = [dims] if isinstance(dims, int) else list(dims)
        A = A.movedim(moved, list(range(A.dim() - len(moved), A.dim())))
    shape = list(A.shape[B.dim() :])
    if math.prod(A.shape[: B.dim()]) != math.prod(shape) or B.numel() != math.prod(shape):
        raise RuntimeError(f"tensorsolve: `A` {tuple(A.shape)} and `B` {tuple(B.shape)} do not make a square system")
    return _into(out, solve(A.reshape(math.prod(shape), -1 if shape else 1), B.flatten()).reshape(shape))


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The matrix whose columns are the powers 0 to N - 1 of the elements of x; N is their number unless given."""
    if x.dim() == 0:
        raise RuntimeError("vander: expected `x` of at least one dimension")
    count = x.shape[-1] if N is None else N
    if count < 1:
        raise RuntimeError(f"vander: `N` must be at least 1, got {count}")
    one = _C.ones_like(x).unsqueeze(-1)
    if one.dtype == _C.bool:
        raise NotImplementedError("vander: not implemented for bool")
    return _C.cat([one, x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)], -1) if count > 1 else one


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of three elements along `dim`; other dimensions broadcast."""
    if input.dim() != other.dim():
        raise RuntimeError(f"cross: expected two tensors of the same number of dimensions, got {input.dim()} and {other.dim()}")
    n = input.dim()
    if not -n <= dim < n:
        raise IndexError(f"cross: dimension out of range (expected to be in [{-n}, {n - 1}], but got {dim})")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(f"cross: expected 3 elements along `dim` {dim}, got {tuple(input.shape)} and {tuple(other.shape)}")
    a, b = (x.unbind(dim) for x in (input, other))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return _into(out, _C.stack(parts, dim))


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of products along `dim`, of conj(x) and y; of half types computed in float32, and rounded once."""
    dtype = _C.promote_types(x.dtype, y.dtype)
    if dtype in (_C.float16, _C.bfloat16):
        return _into(out, (x.float() * y.float()).sum(dim).to(dtype))
    return _into(out, ((x.conj() if x.is_complex() else x) * y).sum(dim))


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the matrices, a view."""
    return _C.diagonal(A, offset, dim1, dim2)


_check_module(globals())
add_module_getattr(__name__)
