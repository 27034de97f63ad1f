"""Hooks that compute a weight before forward: one of a kind for each name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..module import Module


def add_pre_hook(module: Module, hook: Any, what: str) -> Any:
    """Raises RuntimeError where the parameter has such a hook already."""
    for other in (module._forward_pre_hooks or {}).values():
        if isinstance(other.hook, type(hook)) and other.hook.name == hook.name:
            raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {hook.name}")
    module.register_forward_pre_hook(hook)
    return hook


def taken_pre_hook(module: Module, kind: Any, name: str, what: str) -> Any:
    """Removes such a hook and returns it. Raises ValueError where there is none."""
    hooks: Any = module._forward_pre_hooks or {}
    for key, other in hooks.items():
        if isinstance(other.hook, kind) and other.hook.name == name:
            del hooks[key]
            return other.hook
    raise ValueError(f"{what} of '{name}' not found in {module}")
