"""PyTorch's former names of tenon.amp for the CPU, as far as they are switched off."""

from __future__ import annotations

import functools

from .. import _C, amp
from .._names.absent import add_module_getattr

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """tenon.autocast of the device type cpu."""

    def __init__(self, enabled: bool = True, dtype: _C.dtype = _C.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """tenon.amp.GradScaler of the device type cpu."""

    __init__ = functools.partialmethod(amp.GradScaler.__init__, "cpu")


add_module_getattr(__name__)
