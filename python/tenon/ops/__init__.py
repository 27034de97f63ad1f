"""tenon.ops: all operators by name: tenon.ops.ns.name(...), and a single overload as tenon.ops.ns.name.overload.

Next to the namespaces are the functions of operators that come with Tenon and are written as custom operators, one file each:
`layernorm`, `moe_matmul`, `rmsnorm`, `sdpa`. The operators are in the namespace `tenon`.
"""

from __future__ import annotations

from .._C import OpOverload, OpOverloadPacket  # noqa: F401
from ..namespaces import load_library as load_library, namespace as _namespace
from .layernorm import layernorm as layernorm
from .moe import moe_matmul as moe_matmul
from .rmsnorm import rmsnorm as rmsnorm
from .sdpa import sdpa as sdpa

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'tenon.ops' has no attribute {name!r}")
    namespace = _namespace(name)
    globals()[name] = namespace
    return namespace
