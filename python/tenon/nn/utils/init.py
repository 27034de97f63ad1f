"""skip_init: modules whose parameters have no values yet."""

from __future__ import annotations

from ...arguments import check_module as _check_module, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """module_cls(*args, **kwargs) with undefined values in its parameters and buffers. The class takes a device, which it makes them
    on, and does nothing with their values but to set them."""
    import inspect

    from ..module import Module

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init: Expected a Module; got {describe(module_cls)}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("skip_init: Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=device)


_check_module(globals())
