"""safetensors: files of tensors that other programs read and write, with the names of safetensors.torch.

    from tenon.safetensors import load_file, save_file

    save_file(model.state_dict(), "model.safetensors")
    model.load_state_dict(load_file("model.safetensors"))

What Tenon writes holds a checksum, which other programs pass over: docs/weights.md.
"""

from __future__ import annotations

from . import _C
from .arguments import check_module as _check_module, describe, path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._C import Tensor
    from .types import Device, Path

__all__ = ["load", "load_file", "safe_open", "save", "save_file"]


def save_file(tensors: Mapping[str, Tensor], filename: Path, metadata: dict[str, str] | None = None) -> None:
    """Writes a dict of tensors to a file, which is replaced completely or not at all. `metadata` is a dict of str.

    Raises TypeError for a dtype that the format does not have: complex128 and quantized ones.
    """
    _C._weights.save_safetensors(path_of("save_file", filename), _dict(tensors), metadata)


def save(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of such a file."""
    data = _C._weights.save_safetensors(None, _dict(tensors), metadata)
    assert data is not None  # bytes, where no path is given
    return data


def load_file(filename: Path, device: Device = "cpu", *, mmap: bool = False) -> dict[str, Tensor]:
    """The tensors of a file by name. Raises ValueError for a file that is damaged, of another kind, or has a tensor of a
    dtype that Tenon does not have (U16, U32, U64, say): `safe_open` reads the others.

    With `mmap`, they are parts of the mapped file: nothing is read before it is used, the checksum is not looked at, and
    writing to a tensor does not reach the file. Only for a file that no program changes in place meanwhile.
    """
    return _on(device, _C._weights.load_safetensors(path_of("load_file", filename), mmap))


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of the bytes of such a file."""
    return _C._weights.read_safetensors(data)


class safe_open:
    """Reads single tensors of a file:

    with safe_open("model.safetensors") as file:
        weight = file.get_tensor("0.weight")

    `framework` is there for programs that name one. The checksum, which is of the whole file, is not looked at.
    """

    def __init__(self, filename: Path, framework: Any = None, device: Device = "cpu", *, mmap: bool = False) -> None:
        self._device = device
        self._file = _C._weights.open_safetensors(path_of("safe_open", filename), mmap)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: object) -> None:
        self._file = None

    def _opened(self):
        if self._file is None:
            raise ValueError("safe_open: the file is closed")
        return self._file

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(_C._weights.keys(self._opened()))

    def metadata(self) -> dict[str, str] | None:
        """The texts by name that the file holds, or None."""
        return _C._weights.metadata(self._opened())

    def get_tensor(self, name: str) -> Tensor:
        """Raises ValueError for a name that is not there, and for a dtype that Tenon does not have."""
        return _C._weights.tensor(self._opened(), name).to(self._device)

    def get_slice(self, name: str) -> Any:
        """The tensor, of which `[...]` takes a part."""
        return _Slice(self, name)


class _Slice:
    def __init__(self, file, name):
        self._tensor = _C._weights.tensor(file._opened(), name)
        self._device = file._device

    def get_shape(self):
        return list(self._tensor.shape)

    def __getitem__(self, index):
        return self._tensor[index].to(self._device)


def _dict(tensors):
    if not hasattr(tensors, "keys"):
        raise TypeError(f"save: safetensors holds a dict of tensors, got {describe(tensors)}")
    return dict(tensors)


def _on(device, tensors):
    if str(device) == "cpu":
        return tensors
    return {name: tensor.to(device) for name, tensor in tensors.items()}


_check_module(globals())
