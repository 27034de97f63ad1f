"""A few singular values or eigenvalues of large matrices; and functions that PyTorch has removed, which say what replaces them."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from ..autograd.grad_mode import no_grad as _no_grad
from .results import check_tensor as _check_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .._C import Tensor


def _orthonormal(x: Tensor) -> Tensor:
    return _C.linalg_qr(x)[0]


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V): about the `q` largest singular values of matrices A, or of A - M, and their vectors: U diag(S) V^H is near A.

    A random basis of the range, improved by `niter` steps of subspace iteration: Halko, Martinsson, Tropp (2009), arXiv:0909.4061.
    """
    _check_tensor("svd_lowrank", "A", A)
    count, steps = 6 if q is None else q, 2 if niter is None else niter
    if A.dim() < 2:
        raise RuntimeError(f"svd_lowrank: A must have at least 2 dimensions, got {list(A.shape)}")
    if not 0 <= count <= min(A.shape[-2:]):
        raise ValueError(f"svd_lowrank: q must be between 0 and {min(A.shape[-2:])}, the smaller size of A, got {count}")
    if steps < 0:
        raise ValueError(f"svd_lowrank: niter must not be negative, got {steps}")
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    tall = A.mH if wide else A
    basis = _orthonormal(tall @ _C.randn(tall.shape[-1], count, dtype=A.dtype, device=A.device))
    for _ in range(steps):
        basis = _orthonormal(tall @ _orthonormal(tall.mH @ basis))
    U, S, Vh = _C.linalg_svd(basis.mH @ tall, full_matrices=False)
    left, right = basis @ U, Vh.mH
    return (right, S, left) if wide else (left, S, right)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """svd_lowrank of matrices whose columns are moved to mean 0 first: the principal directions of rows A [.., m, n] are the columns
    of V. `q` is at most 6 unless given."""
    _check_tensor("pca_lowrank", "A", A)
    if A.dim() < 2:
        raise RuntimeError(f"pca_lowrank: A must have at least 2 dimensions, got {list(A.shape)}")
    most = min(A.shape[-2:])
    count = min(6, most) if q is None else q
    if not 0 <= count <= most:
        raise ValueError(f"pca_lowrank: q must be between 0 and {most}, the smaller size of A, got {count}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: niter must not be negative, got {niter}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, count, niter)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest or smallest eigenvalues of A x = e B x and their vectors: ([.., k], [.., m, k]), for symmetric A and positive
    definite B [.., m, m].

    Blocks of n vectors that begin with X, or random ones; iK is a preconditioner, an approximation of the inverse of A. Ends when
    every residual is small (`tol`) or after `niter` steps. Knyazev (2001), doi:10.1137/S1064827500366124, on an orthonormal basis,
    whatever `method` says ("basic" or "ortho"); `ortho_*params` have no effect on it. No gradient: linalg.eigh has one.
    """
    _check_tensor("lobpcg", "A", A)
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"lobpcg: A must be square matrices, got {list(A.shape)}")
    if not A.is_floating_point():
        raise TypeError(f"lobpcg: A must have a floating-point dtype, got {A.dtype}")
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker is not supported; give niter, and X from the last call, to follow the iteration")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', got {method!r}")
    if _C.is_grad_enabled() and any(t is not None and t.requires_grad for t in (A, B)):
        raise NotImplementedError("lobpcg: has no gradient; use linalg.eigh, or call it under no_grad()")
    size = A.shape[-1]
    if k is None:
        k = 1 if X is None else X.shape[-1]
    n = (k if X is None else X.shape[-1]) if n is None else n
    if not 0 < k <= n:
        raise ValueError(f"lobpcg: k must be between 1 and n, {n}, got {k}")
    if size < 3 * n:
        raise ValueError(f"lobpcg: A must have at least 3 * n = {3 * n} rows, got {size}; use linalg.eigh for small matrices")
    if tol is None:
        tol = 1.2e-4 if A.dtype == _C.float32 else 1.5e-8
    batch = A.shape[:-2]
    if X is None:
        X = _C.randn(*batch, size, n, dtype=A.dtype, device=A.device)
    elif X.shape != (*batch, size, n):
        raise ValueError(f"lobpcg: X must be {[*batch, size, n]}, got {list(X.shape)}")
    options = (k, niter, tol, largest is None or largest)
    if not batch:
        return _pairs(A, B, X, iK, *options)
    entries = A.reshape(-1, size, size), X.reshape(-1, size, n)
    others = [None if t is None else t.broadcast_to(A.shape).reshape(-1, size, size) for t in (B, iK)]
    found = [
        _pairs(a, None if others[0] is None else others[0][i], x, None if others[1] is None else others[1][i], *options)
        for i, (a, x) in enumerate(zip(*entries))
    ]
    values, vectors = _C.stack([e for e, _ in found]), _C.stack([v for _, v in found])
    return values.reshape(*batch, k), vectors.reshape(*batch, size, k)


def _pairs(
    A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, k: int, niter: int | None, tol: float, largest: bool
) -> tuple[Tensor, Tensor]:
    """Eigenpairs of one matrix."""
    with _no_grad():
        vectors = _basis(X, B)
        E, Z = _rayleigh_ritz(A, vectors, largest)
        X, P = vectors @ Z, None
        scale = _C.linalg_vector_norm(A)
        weight = 1.0 if B is None else _C.linalg_vector_norm(B)
        for _ in range(20 * A.shape[0] if niter is None or niter < 0 else niter):
            residual = A @ X - (X if B is None else B @ X) * E
            bound = (scale + weight * E.abs()) * _C.linalg_vector_norm(X, dim=0) * tol
            if bool((_C.linalg_vector_norm(residual, dim=0)[:k] <= bound[:k]).all()):
                break
            step = residual if iK is None else iK @ residual
            S = _basis(_C.cat([X, step] if P is None else [X, step, P], 1), B)
            E, Z = _rayleigh_ritz(A, S, largest)
            E, Z = E[: X.shape[1]], Z[:, : X.shape[1]]
            new = S @ Z
            P = new - X @ (X.T @ (new if B is None else B @ new))
            X = new
        return E[:k], X[:, :k]


def _basis(S: Tensor, B: Tensor | None) -> Tensor:
    """A basis of the columns' span, orthonormal by B. Directions that the others have already are left out."""
    S = S / _C.linalg_vector_norm(S, dim=0).clamp(min=1e-30)
    for _ in range(2):
        values, vectors = _C.linalg_eigh(S.T @ (S if B is None else B @ S))
        kept = values > values[-1] * (1e-6 if S.dtype == _C.float32 else 1e-13)
        S = S @ (vectors[:, kept] / values[kept].sqrt())
    return S


def _rayleigh_ritz(A: Tensor, S: Tensor, largest: bool) -> tuple[Tensor, Tensor]:
    """The eigenpairs of A on a basis, from the wanted end."""
    values, vectors = _C.linalg_eigh(S.T @ (A @ S))
    return (values.flip(0), vectors.flip(1)) if largest else (values, vectors)


def _removed(function: str, instead: str) -> NoReturn:
    raise RuntimeError(f"{function}: was deprecated since version 1.9 of PyTorch and is now removed; use {instead}")


def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> Tensor:
    """Raises RuntimeError, as in PyTorch, which has removed it: use linalg.matrix_rank."""
    _removed("matrix_rank", "linalg.matrix_rank, whose `hermitian` was `symmetric`")


def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Raises RuntimeError, as in PyTorch, which has removed it: use linalg.lstsq."""
    _removed("lstsq", "linalg.lstsq(A, input), whose arguments are in the other order")


def solve(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Raises RuntimeError, as in PyTorch, which has removed it: use linalg.solve."""
    _removed("solve", "linalg.solve(A, input), whose arguments are in the other order; linalg.lu_factor has the factors")


def eig(self: Tensor, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> tuple[Tensor, Tensor]:
    """Raises RuntimeError, as in PyTorch, which has removed it: use linalg.eig or linalg.eigvals."""
    _removed("eig", "linalg.eig or linalg.eigvals, whose results are complex")


def symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Raises RuntimeError, as in PyTorch, which has removed it: use linalg.eigh or linalg.eigvalsh."""
    _removed("symeig", "linalg.eigh or linalg.eigvalsh, with UPLO='U' for upper=True")


_check_module(globals())
