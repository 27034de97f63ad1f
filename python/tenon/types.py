"""Types of arguments, as the annotations of this package name them; programs may use them for their own.

Modules of the package import what only annotations name under `if TYPE_CHECKING`, their own variable, which checkers take
for true: `import tenon` need not import typing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _C

if TYPE_CHECKING:
    import numpy

#: A number of Python's.
Number: TypeAlias = bool | int | float | complex
#: A device, its name ("cpu", "openreg:1"), or None for the current one.
Device: TypeAlias = _C.device | str | None
#: A dtype, its name, a type of Python's or NumPy's, or None where it follows from the call.
DType: TypeAlias = "_C.dtype | str | type[Any] | numpy.dtype[Any] | None"
#: The name of a file.
Path: TypeAlias = str | bytes | os.PathLike[str]
#: One int for all dimensions, or one for each.
Ints: TypeAlias = int | Sequence[int]
#: Positions, or weights, in a sequence or in a tensor or an array of one dimension.
Positions: TypeAlias = "Sequence[int] | _C.Tensor | numpy.ndarray[Any, Any]"
Weights: TypeAlias = "Sequence[float] | _C.Tensor | numpy.ndarray[Any, Any]"
#: One tensor or several.
Tensors: TypeAlias = _C.Tensor | Iterable[_C.Tensor]
#: What an optimizer takes: parameters, or groups of them with options.
Params: TypeAlias = Iterable[_C.Tensor] | Iterable[dict[str, Any]]
#: A function that is called with what its registration says.
Hook: TypeAlias = Callable[..., Any]
#: An operator of tenon.ops, or its name, "namespace::name".
Op: TypeAlias = str | _C.OpOverload | _C.OpOverloadPacket
