"""The types of results with names, such as that of max(x, dim): `isinstance(r, tenon.return_types.max)`, and unpickling them."""

from __future__ import annotations

from collections import namedtuple

from . import _C
from ._names.absent import module_getattr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A type is made by the first call of its operator: what is called with a matrix, and with what other arguments.
_CALLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("cummax", "cummin", "kthvalue", "max", "median", "min", "nanmedian"), (1,)),
    **dict.fromkeys(("aminmax", "frexp", "geqrf", "histogram", "linalg_cholesky_ex", "linalg_eig", "linalg_eigh", "linalg_inv_ex", "lu_unpack",
                     "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_qr",
                     "linalg_slogdet", "linalg_svd", "mode", "slogdet", "sort", "svd"), ()),
    "linalg_lstsq": (_C.ones(2, 2),),
    "linalg_solve_ex": (_C.ones(2, 2),),
    "topk": (1,),
    "triangular_solve": (_C.ones(2, 2),),
}  # fmt: skip

histogramdd = namedtuple("histogramdd", ("hist", "bin_edges"))

__all__ = sorted({*_CALLS, "histogramdd"})


class _Histogramdd(histogramdd):
    """As the types of operators, made of one sequence."""

    __slots__ = ()

    def __new__(cls, parts: Any) -> Any:
        return super().__new__(cls, *parts)


_Histogramdd.__name__ = _Histogramdd.__qualname__ = "histogramdd"
histogramdd = _Histogramdd  # type: ignore[misc,assignment]


def _find(name: str) -> Any:
    matrix = _C.eye(2) + 1
    if name == "lu_unpack":
        return type(_C.lu_unpack(matrix, _C.ones(2, dtype=_C.int32)))
    return type(getattr(_C, name)(matrix, *_CALLS[name]))


if not TYPE_CHECKING:
    _absent = module_getattr(__name__)

    def __getattr__(name: str) -> Any:
        if name not in _CALLS:
            return _absent(name)
        globals()[name] = found = _find(name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_CALLS})
