"""Anomaly mode: an error in backward names the line of its forward call, and a NaN in a gradient is an error."""

from __future__ import annotations

from .._C import _set_anomaly_enabled, is_anomaly_check_nan_enabled, is_anomaly_enabled
from ..arguments import check_module as _check_module
from ..callers import warn as _warn

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switches anomaly mode for the process at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        _set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _set_anomaly_enabled(*self.previous)


class detect_anomaly:
    """Anomaly mode for a block. Slow; meant for finding a mistake. Warns when the mode is switched on."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        _warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.")

    def __enter__(self) -> None:
        self.previous = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        _set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exception: object) -> None:
        _set_anomaly_enabled(*self.previous)


_check_module(globals())
