"""PyTorch's former names of tenon.amp for CUDA, as far as they are switched off."""

from __future__ import annotations

import functools

from .. import _C, amp
from .._names.absent import add_module_getattr

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """tenon.autocast of the device type cuda."""

    def __init__(self, enabled: bool = True, dtype: _C.dtype = _C.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """tenon.amp.GradScaler of the device type cuda."""

    __init__ = functools.partialmethod(amp.GradScaler.__init__, "cuda")


custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")

add_module_getattr(__name__)
