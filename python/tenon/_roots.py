"""The square root of Hermitian matrices with a derivative that needs no vectors apart: equal eigenvalues are no exception."""

from __future__ import annotations

from . import _C
from .autograd import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._C import Tensor


class SquareRoot(Function):
    """X with X X = A."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        values, vectors = _C.linalg_eigh(A)
        root = (vectors * values.clamp_min(0).sqrt().to(vectors.dtype).unsqueeze(-2)) @ vectors.mH
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (root,) = ctx.saved_tensors
        return Lyapunov.apply(root, (grad + grad.mH) / 2)


class Lyapunov(Function):
    """Y with X Y + Y X = G, of a Hermitian positive definite X."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, G: Tensor) -> Tensor:
        values, vectors = _C.linalg_eigh(X)
        sums = (values.unsqueeze(-1) + values.unsqueeze(-2)).to(vectors.dtype)
        found = vectors @ ((vectors.mH @ G @ vectors) / sums) @ vectors.mH
        ctx.save_for_backward(X, found)
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        X, found = ctx.saved_tensors
        solution = Lyapunov.apply(X, grad)
        return -(solution @ found.mH + found.mH @ solution), solution
