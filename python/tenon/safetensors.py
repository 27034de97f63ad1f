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

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]


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


def load_file(filename: Path, device: Device = "cpu", *, mmap: bool = True) -> dict[str, Tensor]:
    """The tensors of a file by name. Raises ValueError for a file that is damaged, of another kind, or has a tensor of a
    dtype that Tenon does not have (U16, U32, U64, say): `safe_open` reads the others.

    They are parts of the mapped file: nothing is read before it is used, and writing to a tensor does not reach the file. A program
    that changes the file in place changes them (docs/weights.md). With mmap=False, the file is read now and its checksum is verified.
    """
    _check_device("load_file", device)
    return _on(device, _C._weights.load_safetensors(path_of("load_file", filename), mmap))


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors of the bytes of such a file."""
    return _C._weights.read_safetensors(data)


def save_model(model: Any, filename: Path, metadata: dict[str, str] | None = None, force_contiguous: bool = True) -> None:
    """Writes the state of a module to a file. Of several names for one tensor (tied weights) the first is written; each other one
    is a text of the metadata, which says which name to take. Tensors are written in order, so `force_contiguous` changes nothing.
    """
    state = model.state_dict()
    tensors: dict[str, Tensor] = {}
    texts: dict[str, str] = dict(metadata or {})
    for first, *others in _names_of_tensors(model):
        tensors[first] = state[first]
        for name in others:
            texts.setdefault(name, first)
    save_file(tensors, filename, texts or None)


def load_model(model: Any, filename: Path, strict: bool = True, device: Device = "cpu") -> tuple[list[str], list[str]]:
    """Copies the tensors of a file into a module's parameters and buffers, as its load_state_dict does; of several names for one
    tensor the file need have one. Returns the missing and the unknown names, which are errors with `strict`. Verifies the checksum."""
    tensors = load_file(filename, device, mmap=False)  # all of it is read in any case
    for names in _names_of_tensors(model):
        found = [name for name in names if name in tensors]
        if found:
            tensors.update((name, tensors[found[0]]) for name in names if name not in tensors)
    keys = model.load_state_dict(tensors, strict=strict)
    return keys.missing_keys, keys.unexpected_keys


def _names_of_tensors(model):
    """The names in a module's state, those of the same tensor in one list."""
    groups: dict[int, list[str]] = {}
    for name, part in model.state_dict(keep_vars=True).items():
        groups.setdefault(id(part), []).append(name)
    return list(groups.values())


class safe_open:
    """Reads single tensors of a file:

    with safe_open("model.safetensors") as file:
        weight = file.get_tensor("0.weight")

    `framework` is there for programs that name one. Tensors are parts of the mapped file, as those of `load_file`, or are read with
    mmap=False. The checksum, which is of the whole file, is not looked at.
    """

    def __init__(self, filename: Path, framework: Any = None, device: Device = "cpu", *, mmap: bool = True) -> None:
        _check_device("safe_open", device)
        self._device = device
        self._file = _C._weights.open_safetensors(path_of("safe_open", filename), mmap)
        self._rows = _C._weights.rows(self._file)

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
        return sorted(self.offset_keys())

    def offset_keys(self) -> list[str]:
        """The names of the tensors, in the order of their bytes in the file."""
        self._opened()
        return list(self._rows)

    def metadata(self) -> dict[str, str] | None:
        """The texts by name that the file holds, or None."""
        return _C._weights.metadata(self._opened())

    def get_tensor(self, name: str) -> Tensor:
        """Raises ValueError for a name that is not there, and for a dtype that Tenon does not have."""
        return _C._weights.tensor(self._opened(), name).to(self._device)

    def get_slice(self, name: str) -> Any:
        """The tensor as a slice: `[...]` reads a part of it, get_shape() and get_dtype() nothing."""
        if not isinstance(name, str):
            raise TypeError(f"get_slice: name must be a str, got {describe(name)}")
        return _Slice(self, name)


class _Slice:
    def __init__(self, file, name):
        self._file, self._name, self._device = file._opened(), name, file._device
        self._row = file._rows.get(name)
        if self._row is None:
            self._read()  # raises

    def _read(self):
        return _C._weights.tensor(self._file, self._name)

    def get_shape(self):
        return list(self._row[1])

    def get_dtype(self):
        """As the format names it: "F32"."""
        return self._row[0]

    def __getitem__(self, index):
        return self._read()[index].to(self._device)


def _dict(tensors):
    if not hasattr(tensors, "keys"):
        raise TypeError(f"save: safetensors holds a dict of tensors, got {describe(tensors)}")
    return dict(tensors)


def _check_device(function, device):
    if not isinstance(device, (str, _C.device)):
        raise TypeError(f"{function}: device must be a str or a device, got {describe(device)}")


def _on(device, tensors):
    if str(device) == "cpu":
        return tensors
    return {name: tensor.to(device) for name, tensor in tensors.items()}


_check_module(globals())
