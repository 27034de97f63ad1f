"""What other libraries ask of a tensor by name, and where each answer is: it loads when it is first asked for."""

from __future__ import annotations

import sys

from .. import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def _array_namespace(self: _C.Tensor, *, api_version: str | None = None) -> ModuleType:
    """The module of the functions of the Python array API standard, as far as they are here: tenon.array_api."""
    from .. import array_api

    array_api.check_version(api_version)
    return array_api


def _to_device(self: _C.Tensor, device: _C.device | str, /, *, stream: object = None) -> _C.Tensor:
    """The tensor on a device, by the name of the array API standard: itself where it is there already."""
    if stream is not None:
        raise ValueError(f"to_device: expected `stream` None, got {stream!r}; set the stream with tenon.accelerator.set_stream")
    return self.to(device)


def _repr_html(self: _C.Tensor) -> str:
    """What a notebook shows: a table for vectors and matrices, the text of repr() for others."""
    from .html import html_of

    return html_of(self)


for _name, _method in (("__array_namespace__", _array_namespace), ("to_device", _to_device), ("_repr_html_", _repr_html)):
    _method.__name__ = _method.__qualname__ = _name
    setattr(_C.Tensor, _name, _method)

_EINOPS = "einops._backends"
_LAYERS = "einops.layers.tenon"
_LAYERS_OF_PYTORCH = "einops.layers.torch"


class _Einops:
    """A finder of modules. It gives einops the class for Tenon's tensors once einops is imported, and the module of its layers, which
    is also that for PyTorch's where there is no PyTorch."""

    def __init__(self) -> None:
        self._waits = _EINOPS not in sys.modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == _EINOPS and self._waits:
            self._waits = False
            return self._with_backend(name)
        if name == _LAYERS or name == _LAYERS_OF_PYTORCH and not _is_there("torch"):
            import importlib.machinery

            return importlib.machinery.ModuleSpec(name, _LayersLoader())  # type: ignore[arg-type]
        return None

    def _with_backend(self, name: str) -> Any:
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_and_register(module: ModuleType) -> None:
            load(module)
            from .. import einops_backend  # noqa: F401  its class is found among those of einops's

        spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


class _LayersLoader:
    def create_module(self, spec: Any) -> ModuleType:
        from .. import einops_layers

        return einops_layers

    def exec_module(self, module: ModuleType) -> None:
        pass  # it has run


def _is_there(name: str) -> bool:
    import importlib.util

    return name in sys.modules or importlib.util.find_spec(name) is not None


if _EINOPS in sys.modules:
    from .. import einops_backend  # noqa: F401
sys.meta_path.insert(0, _Einops())
