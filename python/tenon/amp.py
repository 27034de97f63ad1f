"""Mixed precision with PyTorch's names, as far as it is switched off: Tenon chooses no dtype by operator. model.to(tenon.bfloat16)
and inputs of that dtype compute in bfloat16 throughout."""

from __future__ import annotations

import functools

from . import _C
from ._names.absent import add_module_getattr
from .arguments import describe as _describe
from .callers import warn as _warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._C import Tensor

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "maia", "xla", "ipu", "meta")  # that PyTorch knows by name
_INSTEAD = (
    "give enabled=False; model.to(tenon.bfloat16) and inputs of that dtype compute in bfloat16 throughout, and need no scaling of gradients"
)

_dtypes: dict[str, _C.dtype] = {}  # by device, where they were set
_kept: dict[str, Any] = {"cache": True, "nesting": 0}


def _is_enabled(who: str, device: Any, enabled: Any) -> bool:
    """Whether something is switched on: never. As in PyTorch, a warning says so for a device that is not there; where the device is
    there, the results would be others, which an error says."""
    if not isinstance(device, str):
        raise TypeError(f"{who}: the type of a device, such as 'cpu', must be a str, got {device!r}")
    if who.startswith("set_") and not isinstance(enabled, bool):
        raise TypeError(f"{who}: enabled must be a bool, got {_describe(enabled)}")
    loaded = [name for name, _, _ in _C._devices.loaded()]
    if device not in _DEVICES and device not in loaded:
        raise RuntimeError(f"{who}: there is no device of type {device!r}; there are {', '.join(['cpu', *loaded])}")
    if not enabled:
        return False
    if device != "cpu" and device not in loaded:
        _warn(f"{who} is enabled, but there is no device of type {device!r} here: it is disabled")
        return False
    raise NotImplementedError(f"{who}: mixed precision is not in Tenon yet: {_INSTEAD}")


class autocast:
    """With enabled=False, a context or a decorator that changes nothing; with enabled=True, NotImplementedError."""

    def __init__(self, device_type: str, dtype: _C.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        self.device = device_type
        self._enabled = _is_enabled("autocast", device_type, enabled)
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return func


class GradScaler:
    """With enabled=False, an object whose scale() and step() are those of a program without it; with enabled=True,
    NotImplementedError. A device that is not there disables it with a warning, as in PyTorch."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._enabled = _is_enabled("GradScaler", device, enabled)

    def scale(self, outputs: Any) -> Any:
        """The outputs themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Does nothing: no gradient is scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(*args, **kwargs)."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Does nothing: there is no scale."""

    def get_scale(self) -> float:
        """1.0."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Nothing, as in PyTorch for a scaler that is disabled."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes no notice of the state, as in PyTorch for a scaler that is disabled."""


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: _C.dtype | None = None) -> Any:
    """Decorates the forward of an autograd Function: the function itself, as outside of autocast in PyTorch."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    return fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates the backward of an autograd Function: the function itself, as outside of autocast in PyTorch."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast can be enabled: no."""
    return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is enabled: no. Raises RuntimeError for the type of no device."""
    return _is_enabled("is_autocast_enabled", "cuda" if device_type is None else device_type, False)


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is enabled on the CPU: no."""
    return False


def is_autocast_cache_enabled() -> bool:
    """What set_autocast_cache_enabled was last given; True at first."""
    return _kept["cache"]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Says whether autocast would keep what it has cast."""
    if not isinstance(enabled, bool):
        raise TypeError(f"set_autocast_cache_enabled: enabled must be a bool, got {_describe(enabled)}")
    _kept["cache"] = enabled


def autocast_increment_nesting() -> int:
    """Counts a block of autocast that begins; returns how many there are."""
    _kept["nesting"] += 1
    return _kept["nesting"]


def autocast_decrement_nesting() -> int:
    """Counts a block of autocast that ends; returns how many are left."""
    _kept["nesting"] -= 1
    return _kept["nesting"]


def set_autocast_enabled(device_type: str | bool | None = None, enabled: bool | None = None) -> None:
    """Switches autocast off; NotImplementedError for on."""
    if device_type is None or enabled is None:
        device_type, enabled = "cuda", device_type if enabled is None else enabled  # type: ignore
    _is_enabled("set_autocast_enabled", device_type, enabled)


def get_autocast_dtype(device_type: str) -> _C.dtype:
    """What set_autocast_dtype was last given, or the dtype that PyTorch's autocast has by default."""
    if not isinstance(device_type, str):
        raise TypeError(f"get_autocast_dtype: device_type must be a str, got {_describe(device_type)}")
    return _dtypes.get(device_type, _C.float16 if device_type in ("cuda", "xpu", "mps", "ipu") else _C.bfloat16)


def set_autocast_dtype(device_type: str, dtype: _C.dtype) -> None:
    """Says which dtype autocast would have on a device."""
    if not isinstance(device_type, str):
        raise TypeError(f"set_autocast_dtype: device_type must be a str, got {_describe(device_type)}")
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"set_autocast_dtype: dtype must be a dtype, got {_describe(dtype)}")
    _dtypes[device_type] = dtype


def _of_device(device: str) -> tuple[Any, Any]:
    """get_autocast_NAME_dtype and set_autocast_NAME_dtype, former names for one device."""
    name = "gpu" if device == "cuda" else device

    def get():
        return get_autocast_dtype(device)

    def set(dtype):
        set_autocast_dtype(device, dtype)

    get.__name__ = get.__qualname__ = f"get_autocast_{name}_dtype"
    set.__name__ = set.__qualname__ = f"set_autocast_{name}_dtype"
    get.__doc__, set.__doc__ = f'get_autocast_dtype("{device}")', f'set_autocast_dtype("{device}", dtype)'
    return get, set


get_autocast_cpu_dtype, set_autocast_cpu_dtype = _of_device("cpu")
get_autocast_gpu_dtype, set_autocast_gpu_dtype = _of_device("cuda")
get_autocast_ipu_dtype, set_autocast_ipu_dtype = _of_device("ipu")
get_autocast_xla_dtype, set_autocast_xla_dtype = _of_device("xla")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switches autocast on the CPU off; NotImplementedError for on."""
    _is_enabled("set_autocast_cpu_enabled", "cpu", enabled)


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Switches autocast on a device that is not there off; for on, a warning says that it stays so."""
    _is_enabled("set_autocast_ipu_enabled", "ipu", enabled)


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Switches autocast on a device that is not there off; for on, a warning says that it stays so."""
    _is_enabled("set_autocast_xla_enabled", "xla", enabled)


def is_autocast_ipu_enabled() -> bool:
    """Whether autocast is enabled there: no."""
    return False


def is_autocast_xla_enabled() -> bool:
    """Whether autocast is enabled there: no."""
    return False


def clear_autocast_cache() -> None:
    """Does nothing: nothing was cast."""


add_module_getattr(__name__)
