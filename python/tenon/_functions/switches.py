"""PyTorch's switches of a process. Those for what Tenon does in one way only keep what they were given, and say so."""

from __future__ import annotations

from .. import _C
from .._names import numerics as _numerics
from ..arguments import check_module as _check_module, describe as _describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODES = ("default", "warn", "error")
_kept = {"interop": 1, "warn_always": False}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by one word: "default" (0) is off, "warn" (1) on with warn_only, "error" (2) on."""
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, (int, str)):
        raise TypeError(f"set_deterministic_debug_mode: debug_mode must be a str or an int, got {_describe(debug_mode)}")
    if isinstance(debug_mode, str) and debug_mode not in _MODES:
        raise RuntimeError(f"set_deterministic_debug_mode: debug_mode must be one of {', '.join(_MODES)}, got {debug_mode!r}")
    mode = _MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if not 0 <= mode <= 2:
        raise RuntimeError(f"set_deterministic_debug_mode: debug_mode must be 0, 1 or 2, got {mode}")
    _numerics.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: what set_deterministic_debug_mode or use_deterministic_algorithms was last given."""
    if not _numerics.are_deterministic_algorithms_enabled():
        return 0
    return 1 if _numerics.is_deterministic_algorithms_warn_only_enabled() else 2


def set_num_interop_threads(num: int) -> None:
    """Allows so many operators to run at once. They run one after the other, each on get_num_threads() threads."""
    if isinstance(num, bool) or not isinstance(num, int) or num < 1:
        raise RuntimeError(f"set_num_interop_threads: num must be a number above 0, got {_describe(num)}")
    _kept["interop"] = num


def get_num_interop_threads() -> int:
    """What set_num_interop_threads was last given; 1 at first."""
    return _kept["interop"]


def set_warn_always(b: bool, /) -> None:
    """Asks for warnings each time and not once. Those of Tenon go to Python's module warnings each time, whose filters decide."""
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always: b must be a bool, got {_describe(b)}")
    _kept["warn_always"] = b


def is_warn_always_enabled() -> bool:
    """What set_warn_always was last given; False at first."""
    return bool(_kept["warn_always"])


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers are treated as `mode` asks: they are kept, so that results are the same everywhere, and True, which
    asks for zeros, gives False."""
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal: mode must be a bool, got {_describe(mode)}")
    return not mode


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """autograd.set_detect_anomaly for the process."""
    from ..autograd.anomaly_mode import set_detect_anomaly

    set_detect_anomaly(mode, check_nan)


def set_default_tensor_type(t: Any, /) -> None:
    """set_default_dtype by a former type of tensors, such as FloatTensor or "tenon.DoubleTensor"."""
    from .._names import legacy

    kind = t
    if isinstance(t, str):
        package, _, name = t.rpartition(".")
        kind = getattr(legacy, name, None) if package in ("tenon", "torch", "") else None
        if kind is None:
            raise TypeError(f"set_default_tensor_type: unknown type {t!r}; there are tenon.FloatTensor and its kin, on the CPU alone")
    dtype = getattr(kind, "dtype", None)
    if not isinstance(kind, type) or not isinstance(dtype, _C.dtype):
        raise TypeError(f"set_default_tensor_type: t must be a type of tensors, such as FloatTensor, got {_describe(t)}")
    if not dtype.is_floating_point:
        raise TypeError(f"set_default_tensor_type: only floating-point types can be the default, got {kind.__name__}")
    _C.set_default_dtype(dtype)


def get_device_module(device: Any = None) -> Any:
    """The module of a device type: tenon.cpu, or that of a device from a plug-in. Unless given, that of the accelerator, or else
    tenon.cpu."""
    import sys

    package = sys.modules[__name__.partition(".")[0]]
    if device is None:
        loaded = _C._devices.loaded()
        name = loaded[0][0] if loaded else "cpu"
    elif isinstance(device, (str, _C.device)):
        name = (_C.device(device) if isinstance(device, str) else device).type
    else:
        raise RuntimeError(f"get_device_module: device must be a device, its name or None, got {_describe(device)}")
    module = getattr(package, name, None)
    if module is None:
        raise RuntimeError(f"get_device_module: there is no module of the device {name!r}; load the device first")
    return module


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}
_printing: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors print: digits after the point, the number of elements above which only `edgeitems` at each end of a dimension are
    shown, the width of a line, and whether numbers have exponents (unless given: where they need them).

    A profile, "default", "short" or "full", sets the first four; what is None stays.
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions: profile must be one of {', '.join(_PROFILES)}, got {profile!r}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is None:
            continue
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and not (name == "threshold" and value == float("inf")):
            raise TypeError(f"set_printoptions: {name} must be an int, got {_describe(value)}")
        if not 0 <= value <= (float("inf") if name == "threshold" else 1000):
            raise ValueError(f"set_printoptions: {name} must be between 0 and 1000, got {value}")
    if sci_mode is not None and not isinstance(sci_mode, bool):
        raise TypeError(f"set_printoptions: sci_mode must be a bool or None, got {_describe(sci_mode)}")
    _printing.update(_PROFILES[profile] if profile is not None else {})
    _printing.update({name: value for name, value in given.items() if value is not None}, sci_mode=sci_mode)
    digits, most, edge, width, exponents = _printing.values()
    _C.Tensor._set_print_options(digits, int(min(most, 2**62)), edge, width, exponents)  # type: ignore[attr-defined]


def compiled_with_cxx11_abi() -> bool:
    """Whether the library was built with the newer ABI of GNU's C++ library: yes."""
    return True


legacy_contiguous_format = _C.contiguous_format
has_lapack = True
has_openmp = True
has_spectral = True
has_mkl = False

_check_module(globals())
