"""Linear algebra, as far as it is here: norms of vectors."""

from __future__ import annotations

from . import _C
from ._names.absent import module_getattr
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._C import Tensor
    from .types import DType, Ints, Number

__all__ = ["vector_norm"]

_vector_norm = _C.linalg_vector_norm


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

_check_module(globals())


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__)
