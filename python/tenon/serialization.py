"""save and load: nested dicts, lists and tuples of tensors and plain values, by pickle.

Both refuse any other type, and whatever is written can be read again. Files are read by the same C++ code as in C++ programs
(tenon/io), which knows no names but those of tensors and plain values: a file runs no code and changes nothing outside of what
`load` returns. Tensors that share memory are written separately. Each says which device it is on, if that is not the host.

A file is a line that names the format, the length of the pickle, its CRC-32, and the pickle, so that damage is noticed
before the pickle is read. Files of the first format, without length and CRC-32, can be read too.
"""

from __future__ import annotations

from . import _C, safetensors
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def save(obj: Any, f: Any) -> None:
    """Writes `obj` to a path, a binary file, or the number of an open file, which stays open. Raises TypeError for a type, and
    ValueError for a value, that `load` would refuse; nothing is written then. Raises OSError (BlockingIOError) for a file that
    takes no more bytes without waiting.

    A tensor with a history is saved without it, as a leaf that requires grad.

    A path that ends in .safetensors gets a file of that format, which holds a dict of tensors; see `tenon.safetensors`.

    An existing file stays intact until the new one is complete: save writes another file in the same folder, which takes the
    old one's place, permissions and owner once it has reached the disk. A symbolic link is kept. A path that is no regular
    file is written in place. Raises OSError where no file can be added to the folder.
    """
    if hasattr(f, "write"):
        _check_is_binary("save", f, "wb")
        _C._weights.save(obj, f)
        return
    if isinstance(f, int) and not isinstance(f, bool):
        with _opened("save", f, "wb") as file:
            _C._weights.save(obj, file)
        return
    path = safetensors.path_of("save", f, "f must be a path or a file that is open for writing")
    if path.endswith(b".safetensors"):
        if not isinstance(obj, dict):
            raise TypeError(f"save: a .safetensors file holds a dict of tensors, got {type(obj).__name__}")
        safetensors.save_file(obj, path)
    else:
        _C._weights.save(obj, path)


def load(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: bool = False) -> Any:
    """Reads what `save` wrote, safetensors, and checkpoints that PyTorch wrote, whatever the file is called. Raises ValueError
    for anything else, even if a single bit was changed, and for a path whose file has more bytes. An open file may have more
    than one value in Tenon's format and in PyTorch's from before 1.6: it is read to the end of that, no further. Other formats are
    read to the end of the file.
    The number of an open file is taken as a path is, and the file stays open.

    Tensors are on the device that they were saved on, or where `map_location` says, which is a device or its name for all of
    them; a dict of names, {"openreg:0": "cpu"}, with other devices staying; or a function of a tensor's UntypedStorage, in
    host memory, and the name of its device, that returns the storage to use, or None for that device. Raises RuntimeError for
    a device that is not there, and TypeError for any other `map_location`.

    Nothing in a file is executed: it holds tensors and plain values only, so that weights_only=False changes nothing. Memory is
    bounded by the size of the file and of the objects that it spells out (docs/weights.md). `mmap` is for safetensors and
    PyTorch's checkpoints, as `tenon.safetensors.load_file` has it; checksums of tensors are not verified then.
    """
    if map_location is not None and not isinstance(map_location, (str, _C.device, dict)) and not callable(map_location):
        raise TypeError(
            f"load: map_location must be a device, its name, a dict or a function, got {type(map_location).__name__}"
        )
    if hasattr(f, "read"):
        _check_is_binary("load", f, "rb")
        return _load_open(f, map_location, mmap)
    if isinstance(f, int) and not isinstance(f, bool):
        with _opened("load", f, "rb") as file:
            value = _load_open(file, map_location, mmap)
            if file.read(1):
                raise ValueError(f"load: {_name_of(file)}: bytes follow the value; the file is damaged, or more was appended to it")
            return value
    import os

    path = safetensors.path_of("load", f, "f must be a path or a file that is open for reading")
    return _C._weights.load(path, path, _place_at(map_location, os.fsdecode(path)), mmap)[0]


def _opened(function, descriptor, mode):
    try:
        return open(descriptor, mode, closefd=False)
    except (OSError, ValueError, OverflowError, TypeError) as error:
        wanted = "writing" if mode == "wb" else "reading"
        raise OSError(getattr(error, "errno", None), f"{function}: {descriptor} is no descriptor of a file that is open for {wanted}: {error}") from None


def _check_is_binary(function, f, mode):
    import io

    if isinstance(f, io.TextIOBase):
        call = "read() must return bytes, got str" if function == "load" else "write() must take bytes, not str"
        raise TypeError(f"{function}: f.{call}; open the file in binary mode, '{mode}'")


def _load_open(f, map_location, mmap):
    """The value of an open file, which is read no further than the value goes."""
    name = _name_of(f)
    value, too_much = _C._weights.load(f, name.encode(errors="replace"), _place_at(map_location, name), mmap)
    if too_much and f.seekable():  # of the first format, which does not say how long a value is
        f.seek(-too_much, 1)
    return value


def _name_of(f):
    """What errors call an open file."""
    name = getattr(f, "name", None)
    return name.replace("\0", "?") if isinstance(name, str) and name else "the file"


def _place_at(map_location, name):
    """A function of a storage in host memory, the name of its device, and whether that is loaded, that returns the storage to use."""

    def place(storage, location, is_loaded):
        wanted = location
        if callable(map_location):
            if (given := map_location(storage, location)) is not None:
                if not isinstance(given, _C.UntypedStorage):
                    raise TypeError(f"load: map_location must return an UntypedStorage or None, got {type(given).__name__}")
                return given
        elif isinstance(map_location, dict):
            wanted = map_location.get(location, location)
        elif map_location is not None:
            wanted = map_location
        device = _device_of(wanted, location, is_loaded, name)
        if device.type == "cpu":
            return storage
        return _over(storage, (storage.nbytes(),), (1,), _C.uint8).to(device).untyped_storage()

    return place


def _over(storage, shape, stride, dtype):
    """A tensor over a storage, from its first byte on."""
    return _C.empty(0, dtype=dtype, device=storage.device).set_(storage, 0, shape, stride)


def _device_of(place, location, is_loaded, name):
    """The device that a tensor saved on `location` shall be on."""
    if not isinstance(place, (str, _C.device)):
        raise TypeError(f"load: map_location must name devices, got {type(place).__name__} for {location!r}")
    try:
        if str(place) == location and not is_loaded:  # a file loads no devices
            raise ValueError(f"no loaded device is called '{location.partition(':')[0]}'")
        device = _C.device(place)
        count = _C._devices.device_count(device.type)
        if (device.index or 0) < count:
            _C.empty(0, device=device)  # a name with registered operators may have no device
            return device
        has = f"{device.type}:0" if count == 1 else f"{device.type}:0 to {device.type}:{count - 1}" if count else "no device"
        problem = f"there is no device {device}: {device.type} has {has}"
    except (ValueError, RuntimeError) as error:
        problem = str(error)
    if str(place) != location:
        raise RuntimeError(f"load: map_location: {problem}")
    raise RuntimeError(
        f"load: {name}: a tensor was saved on {location}: {problem}. Load the device first with tenon.load_device, or say where the "
        "tensors shall be: tenon.load(f, map_location='cpu')"
    )


_check_module(globals())
