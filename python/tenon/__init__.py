"""Tenon: tensors, autograd and small models, with PyTorch's names and little overhead.

    import tenon as torch

runs PyTorch code that stays inside the supported operators; `python -m tenon ops` lists them.
"""

from __future__ import annotations

import math as _math
import sys as _sys

from . import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # Python's functions of names that operators have too: checkers keep the first definition they find.
    from .functional import (
        atleast_1d as atleast_1d,
        atleast_2d as atleast_2d,
        atleast_3d as atleast_3d,
        broadcast_tensors as broadcast_tensors,
        cdist as cdist,
        einsum as einsum,
        meshgrid as meshgrid,
        norm as norm,
        tensordot as tensordot,
        unique_consecutive as unique_consecutive,
    )

    # Rooms that load when first asked for, see __getattr__.
    from . import (
        accelerator as accelerator,
        amp as amp,
        backends as backends,
        cpu as cpu,
        cuda as cuda,
        devices as devices,
        dispatch as dispatch,
        distributions as distributions,
        fft as fft,
        graph as graph,
        jit as jit,
        library as library,
        linalg as linalg,
        mps as mps,
        ops as ops,
        plans as plans,
        special as special,
        testing as testing,
        types as types,
        utils as utils,
        version as version,
        xpu as xpu,
    )
    from .amp import (
        GradScaler as GradScaler,
        autocast as autocast,
        clear_autocast_cache as clear_autocast_cache,
        get_autocast_dtype as get_autocast_dtype,
        is_autocast_cache_enabled as is_autocast_cache_enabled,
        is_autocast_cpu_enabled as is_autocast_cpu_enabled,
        is_autocast_enabled as is_autocast_enabled,
        set_autocast_enabled as set_autocast_enabled,
    )
    from .amp import (
        autocast_decrement_nesting as autocast_decrement_nesting,
        autocast_increment_nesting as autocast_increment_nesting,
        get_autocast_cpu_dtype as get_autocast_cpu_dtype,
        get_autocast_gpu_dtype as get_autocast_gpu_dtype,
        get_autocast_ipu_dtype as get_autocast_ipu_dtype,
        get_autocast_xla_dtype as get_autocast_xla_dtype,
        is_autocast_ipu_enabled as is_autocast_ipu_enabled,
        is_autocast_xla_enabled as is_autocast_xla_enabled,
        set_autocast_cache_enabled as set_autocast_cache_enabled,
        set_autocast_cpu_dtype as set_autocast_cpu_dtype,
        set_autocast_cpu_enabled as set_autocast_cpu_enabled,
        set_autocast_dtype as set_autocast_dtype,
        set_autocast_gpu_dtype as set_autocast_gpu_dtype,
        set_autocast_ipu_dtype as set_autocast_ipu_dtype,
        set_autocast_ipu_enabled as set_autocast_ipu_enabled,
        set_autocast_xla_dtype as set_autocast_xla_dtype,
        set_autocast_xla_enabled as set_autocast_xla_enabled,
    )

    # Of tenon.graph, and plans of its graphs.
    from ._program.cached_plans import cached_plan as cached_plan
    from ._program.inference import inference as inference, load_program as load_program, save_program as save_program
    from .tags import Tag as Tag
    from .graph import (
        create_handle as create_handle,
        destroy_handle as destroy_handle,
        pygraph as pygraph,
        set_stream as set_stream,
    )

    from ._names.windows import (
        bartlett_window as bartlett_window,
        blackman_window as blackman_window,
        hamming_window as hamming_window,
        hann_window as hann_window,
        kaiser_window as kaiser_window,
    )

    # Of tenon._functions, and rooms with their names.
    from ._functions.copies import *  # noqa: F403
    from ._functions.small import *  # noqa: F403
    from ._functions.losses import *  # noqa: F403
    from ._functions.noise import *  # noqa: F403
    from ._functions.recurrent import *  # noqa: F403
    from ._functions.lowrank import *  # noqa: F403
    from ._functions.statistics import *  # noqa: F403
    from ._functions.batch_statistics import *  # noqa: F403
    from ._functions.quantize import *  # noqa: F403
    from ._functions.control import *  # noqa: F403
    from ._functions.switches import *  # noqa: F403
    from . import compiler as compiler, distributed as distributed, futures as futures, mtia as mtia, return_types as return_types, storage as storage
    from .devices import Event as Event, Stream as Stream
    from .futures import Future as Future
    from .storage import *  # noqa: F403

    # Of tenon._names.legacy.
    FloatTensor: type[_C.Tensor]
    DoubleTensor: type[_C.Tensor]
    HalfTensor: type[_C.Tensor]
    BFloat16Tensor: type[_C.Tensor]
    ByteTensor: type[_C.Tensor]
    CharTensor: type[_C.Tensor]
    ShortTensor: type[_C.Tensor]
    IntTensor: type[_C.Tensor]
    LongTensor: type[_C.Tensor]
    BoolTensor: type[_C.Tensor]
from ._C import *  # type: ignore  # noqa: F401,F403  operators, dtypes, Tensor and its kin are the module's own objects
from . import autograd as autograd, nn as nn, optim as optim, random as random
from ._names.absent import (
    AbsentModules as _AbsentModules,
    add_base as _add_base,
    attribute_error as _attribute_error,
    fill_base as _fill_base,
    pytorch_names as _pytorch_names,
)
from .autograd.grad_mode import (
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from ._program.compile import compile as compile, recording as recording
from .functional import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag as block_diag,
    broadcast_shapes as broadcast_shapes,
    broadcast_tensors,
    cartesian_prod as cartesian_prod,
    cdist,
    chain_matmul as chain_matmul,
    einsum,
    lu as lu,
    meshgrid,
    norm,
    tensordot,
    unique as unique,
    unique_consecutive,
    unravel_index as unravel_index,
    vander as vander,
)
from ._functions import LATER as _LATER_FUNCTIONS
from ._names.info import finfo as finfo, iinfo as iinfo
from ._names.numerics import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    get_float32_matmul_precision as get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    set_float32_matmul_precision as set_float32_matmul_precision,
    use_deterministic_algorithms as use_deterministic_algorithms,
)
from .prefix import cmake_prefix_path as cmake_prefix_path, get_include as get_include
from .random import (
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    seed as seed,
    set_rng_state as set_rng_state,
    thread_safe_generator as thread_safe_generator,
)
from .serialization import load as load, save as save
from ._functions import methods as _methods  # noqa: F401  adds methods to Tensor
from ._names import borders as _borders  # noqa: F401  so does this


def _type(self, dtype=None):
    """The name of the tensor's type; or the tensor with another dtype."""
    from ._names.legacy import type_of

    return type_of(self, dtype)


_type.__name__ = _type.__qualname__ = "type"
Tensor.type = _type  # type: ignore  # noqa: F821


def _record_stream(self, stream):
    """Notes that work of `stream` uses the tensor: its memory is not reused before that work has run."""
    if not hasattr(stream, "stream_id"):
        from .arguments import describe

        raise TypeError(f"record_stream: stream must be a Stream, got {describe(stream)}")
    _C._devices.record_stream(self, stream.device, stream.stream_id)


_record_stream.__name__ = _record_stream.__qualname__ = "record_stream"
Tensor.record_stream = _record_stream  # type: ignore  # noqa: F821
_fill_base(_C._AbsentNames, Tensor, "torch.Tensor")  # type: ignore  # noqa: F821
_add_base(nn.Module, "torch.nn.Module")

# What only derivatives call is reached by tenon.ops.aten, as in PyTorch.
for _name in [n for n in globals() if n.endswith(("_backward", "_forward")) and n not in _pytorch_names()["torch"]]:
    del globals()[_name]
del _name
del dispatch  # noqa: F821  _C's own; tenon.dispatch is the module of that name


def _pytorch_dispatch(name):
    # _C._dispatch_dump_table and its kin load when first asked for.
    if name.startswith(("_dispatch_", "_parse_dispatch", "DispatchKey")):
        from ._names import pytorch_dispatch

        if (found := pytorch_dispatch.find(name)) is not None:
            return found
    raise AttributeError(f"module 'tenon._C' has no attribute {name!r}")


def _names_in_C():
    from ._names import pytorch_dispatch

    return sorted({*vars(_C), *pytorch_dispatch.names()})


_C.__getattr__ = _pytorch_dispatch  # type: ignore
_C.__dir__ = _names_in_C  # type: ignore

__version__ = "0.1.0"

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e


def load_device(
    path: Any, name: str | None = None, options: dict[str, Any] | None = None
) -> devices.DeviceModule:
    """Loads a device from a shared library and returns its module, which is then `tenon.NAME` too; see `tenon.devices`."""
    from . import devices

    return devices.load_device(path, name=name, options=options)


def unload_device(name: str) -> None:
    """Unloads a device without live objects; see `tenon.devices.unload_device`."""
    from . import devices

    devices.unload_device(name)


def _installed_device(name):
    from . import devices

    return devices.installed_file(name)


_C._devices.set_finder(_installed_device)  # noqa: F821


def typename(obj: object) -> str:
    """The name of an object's type, as error messages write it."""
    return f"{type(obj).__module__}.{type(obj).__qualname__}"


def get_default_device() -> _C.device:
    """Where tensors are made that no device is given for: the CPU."""
    return _C.device("cpu")


def set_default_device(device: Any) -> None:
    """Says where tensors are made that no device is given for: the CPU, or None for that. Raises NotImplementedError for another."""
    if device is not None and not isinstance(device, (str, _C.device)):
        raise TypeError(f"set_default_device: device must be a device, its name or None, got {type(device).__name__}")
    if device is not None and (_C.device(device) if isinstance(device, str) else device) != _C.device("cpu"):
        raise NotImplementedError(
            f"set_default_device: tensors are made on the CPU where no device is given, not on {device}; give device= to what makes "
            "them, and move modules by to()"
        )


def is_storage(obj: object) -> _C._bool:
    """Whether an object is a storage."""
    return isinstance(obj, _C.UntypedStorage)


# Rooms that load when first asked for, so that `import tenon` stays quick.
_LATER = (
    "accelerator", "amp", "array_api", "backends", "compiler", "cpu", "cuda", "devices", "dispatch", "distributed", "distributions", "fft", "futures", "graph", "jit",
    "library", "linalg", "mps", "mtia", "onnx", "ops", "plans", "return_types", "safetensors", "signal", "special", "storage", "testing", "types", "utils",
    "version", "xpu",
)  # fmt: skip
# Names that load with the module that has them.
_LATER_FROM = {
    # What programs of the cuDNN frontend begin with.
    **dict.fromkeys(("create_handle", "destroy_handle", "pygraph", "set_stream"), "graph"),
    "cached_plan": "_program.cached_plans",
    **dict.fromkeys(("inference", "load_program", "save_program"), "_program.inference"),
    "Tag": "tags",
    **dict.fromkeys((f"{kind}_window" for kind in ("bartlett", "blackman", "hamming", "hann", "kaiser")), "_names.windows"),
    # Types of tensors that older programs name.
    **dict.fromkeys(
        (f"{kind}Tensor" for kind in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")), "_names.legacy"
    ),
    **dict.fromkeys(
        (
            "GradScaler", "autocast", "clear_autocast_cache", "get_autocast_dtype", "is_autocast_cache_enabled", "is_autocast_cpu_enabled",
            "is_autocast_enabled", "set_autocast_enabled", "autocast_decrement_nesting", "autocast_increment_nesting", "get_autocast_cpu_dtype",
            "get_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "is_autocast_ipu_enabled", "is_autocast_xla_enabled",
            "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_gpu_dtype",
            "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
        ),
        "amp",
    ),
    **dict.fromkeys(("Event", "Stream"), "devices"),
    "Future": "futures",
    **dict.fromkeys(
        (
            "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage", "DoubleStorage",
            "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "ShortStorage", "Storage", "TypedStorage",
        ),
        "storage",
    ),
    **_LATER_FUNCTIONS,
}  # fmt: skip


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        globals()[name] = found = _find(name)  # the next look-up finds it there
        return found

    def _find(name):
        import importlib

        if name in _LATER:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _LATER_FROM:
            return getattr(importlib.import_module(f"{__name__}.{_LATER_FROM[name]}"), name)
        if name in ("DispatchKey", "DispatchKeySet"):
            return _pytorch_dispatch(name)
        if name.startswith("_") and not name.startswith("__"):
            # PyTorch calls operators by such names, too: torch._fused_sdp_choice.
            from . import namespaces

            if (operator := namespaces.function_of(name)) is not None:
                return operator
        if not name.startswith("_"):
            # A device that is loaded, or that can be: tenon.openreg.
            from . import devices

            if (module := devices.module_if_there(name)) is not None:
                return module
        raise _attribute_error(__name__, name)


def __dir__() -> list[str]:
    loaded = (name for name, _, _ in _C._devices.loaded())
    return sorted({*globals(), *_LATER, *_LATER_FROM, *loaded, "DispatchKey", "DispatchKeySet"})


_sys.meta_path.append(_AbsentModules())
del annotations, TYPE_CHECKING  # noqa: F821  neither is a name of the package
