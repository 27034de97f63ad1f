"""save and load: nested dicts, lists and tuples of tensors and plain values, by pickle.

Both refuse any other type, so that a file cannot run code, and whatever is written can be read again. Tensors that share
memory are written separately. Each says which device it is on, if that is not the host.

A file is a line that names the format, the length of the pickle, its CRC-32, and the pickle, so that damage is noticed
before the pickle is read. Files of the first format, without length and CRC-32, can be read too.
"""

from __future__ import annotations

from . import _C, safetensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAGIC = b"tenon checkpoint, 2\n"
_FIRST_MAGIC = b"tenon-checkpoint-1\n"
_HEADER = "<QI"  # the pickle's length, and the CRC-32 of the length and the pickle
_PIECE = 1 << 24  # bytes that are read at a time: a damaged length must not ask for memory
_ALLOWED = {
    ("builtins", "complex"),
    ("collections", "OrderedDict"),
    ("tenon._C", "_rebuild_tensor"),
    ("tenon", "Tensor"),
    ("tenon", "Size"),
    ("tenon", "device"),
    ("tenon.nn.parameter", "Parameter"),
}


def _allowed(module, name):
    return (module, name) in _ALLOWED or (
        module in ("tenon", "tenon._C") and isinstance(getattr(_C, name, None), _C.dtype)
    )


def _unpickler(file, map_location):
    import pickle  # and with it much of the standard library: only when asked for

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) == ("tenon._C", "_rebuild_tensor"):
                return _rebuild_at(map_location)
            if _allowed(module, name):
                return super().find_class(module, name)
            raise pickle.UnpicklingError(f"the file names {module}.{name}, which a checkpoint does not hold")

    return Unpickler(file)


def _pickler(file):
    import pickle

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj):
            kind = obj if isinstance(obj, type) or getattr(obj, "__module__", None) and hasattr(obj, "__qualname__") else type(obj)
            if isinstance(obj, _C.Tensor) and not obj.is_leaf:
                # What a file holds has no history; like PyTorch's, it may get one again.
                return obj.detach().requires_grad_().__reduce_ex__(4)
            if _allowed(kind.__module__, kind.__qualname__) or isinstance(obj, _C.dtype):
                return NotImplemented
            raise TypeError(
                f"save: a {kind.__module__}.{kind.__qualname__} cannot be in a checkpoint, which holds tensors, numbers, "
                "str, bytes, None, and lists, tuples, sets and dicts of those; save a module's state_dict()"
            )

    return Pickler(file, protocol=4)


def save(obj: Any, f: Any) -> None:
    """Writes `obj` to a path or a binary file. Raises TypeError for what `load` would refuse; nothing is written then.

    A tensor with a history is saved without it, as a leaf that requires grad.

    A path that ends in .safetensors gets a file of that format, which holds a dict of tensors; see `tenon.safetensors`.

    An existing file stays intact until the new one is complete: save writes another file in the same folder, which takes the
    old one's place, permissions and owner once it has reached the disk. A symbolic link is kept. A path that is no regular
    file is written in place. Raises OSError where no file can be added to the folder.
    """
    import io
    import os

    path = None if hasattr(f, "write") or isinstance(f, int) else os.fsencode(f)
    if path is not None and path.endswith(b".safetensors"):
        if not isinstance(obj, dict):
            raise TypeError(f"save: a .safetensors file holds a dict of tensors, got {type(obj).__name__}")
        safetensors.save_file(obj, path)
        return
    pickled = io.BytesIO()
    _pickler(pickled).dump(obj)
    parts = (_header(pickled.getbuffer()), pickled.getbuffer())
    if hasattr(f, "write"):
        _write(f, parts)
    elif path is None:
        with open(f, "wb") as file:
            _write(file, parts)
    else:
        _C._weights.replace_file(path, parts)


def _header(pickled):
    import struct

    size = struct.pack("<Q", len(pickled))
    return _MAGIC + size + struct.pack("<I", _sum(size, pickled))


def _sum(size, pickled):
    import zlib

    return zlib.crc32(pickled, zlib.crc32(size))


def _write(file, parts):
    for part in parts:
        left = memoryview(part)
        while left:
            # An unbuffered file may take less than it is given; other objects with a `write` need not say.
            written = file.write(left)
            if written is None:
                break
            left = left[written:]


def load(f: Any, map_location: Any = None, *, weights_only: bool = True, mmap: bool = False) -> Any:
    """Reads what `save` wrote, safetensors, and checkpoints that PyTorch wrote, whatever the file is called. Raises ValueError
    for anything else, even if a single bit was changed, and for a path whose file has more bytes. An open file may have more
    than `save` wrote: it is read to the end of that, no further.

    Tensors are on the device that they were saved on, or where `map_location` says, which is a device or its name for all of
    them; a dict of names, {"openreg:0": "cpu"}, with other devices staying; or a function of a tensor's UntypedStorage, in
    host memory, and the name of its device, that returns the storage to use, or None for that device. Raises RuntimeError for
    a device that is not there, and TypeError for any other `map_location`.

    Nothing in a file is executed: it holds tensors and plain values only, so that weights_only=False changes nothing. `mmap` is
    for safetensors and PyTorch's checkpoints, as `tenon.safetensors.load_file` has it.
    """
    if map_location is not None and not isinstance(map_location, (str, _C.device, dict)) and not callable(map_location):
        raise TypeError(
            f"load: map_location must be a device, its name, a dict or a function, got {type(map_location).__name__}"
        )
    if hasattr(f, "read"):
        return _load(f, map_location, None, mmap, whole=False)
    import os

    with open(f, "rb") as file:
        path = os.fsencode(f) if not isinstance(f, int) and file.seekable() else None
        return _load(file, map_location, path, mmap, whole=True)


def _load(f, map_location, path, mmap, whole):
    """The value of an open file, which has a path unless it is a pipe or the caller's, and nothing else if `whole`."""
    name = path.decode(errors="replace") if path else "the file"
    start = _read(f, len(_FIRST_MAGIC))
    if start[8:9] in (b"{", b" ", b"\t", b"\n", b"\r") and not start.startswith(b"PK\3\4"):  # a header, behind its length
        tensors = _C._weights.load_safetensors(path, mmap) if path else _C._weights.read_safetensors(start + f.read())
        return {name: _moved(tensor, map_location) for name, tensor in tensors.items()}
    if start.startswith(b"PK\3\4"):
        return _C._weights.load_pytorch(path or bytearray(start + f.read()), _place_at(map_location), mmap)
    if mmap:
        raise ValueError(f"load: mmap is for safetensors and PyTorch's checkpoints, and {name} is neither")
    if start == _FIRST_MAGIC:
        value = _load_first(f, map_location)
    else:
        start += _read(f, len(_MAGIC) - len(start))
        if start != _MAGIC:
            if start.startswith(_MAGIC[:-2]):
                raise ValueError(f"load: {name} is a checkpoint of a later version of Tenon; load it with that version")
            if start.startswith(b"\x80\x02\x8a\x0a"):
                raise ValueError(f"load: {name} has PyTorch's format before 1.6; load it with PyTorch, and save it again")
            raise ValueError(f"load: {name} is neither a file that tenon.save wrote, nor safetensors, nor a zip archive of PyTorch's")
        value = _unpickle(_checked(f), map_location)
    if whole and f.read(1):
        raise ValueError("load: the file has bytes behind what tenon.save wrote; it is damaged, or more was appended to it")
    return value


class _Refused(Exception):
    """Carries an error that says nothing about the file past the unpickler."""


def _place_at(map_location):
    """A function of a storage in host memory and the name of its device that returns the storage to use."""

    def place(storage, location):
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
        device = _device_of(wanted, location)
        if device.type == "cpu":
            return storage
        return _over(storage, (storage.nbytes(),), (1,), _C.uint8).to(device).untyped_storage()

    return place


def _moved(tensor, map_location):
    """A tensor of a file that says nothing of devices, where `map_location` wants it."""
    if map_location is None:
        return tensor
    storage = _place_at(map_location)(tensor.untyped_storage(), "cpu")
    return _over(storage, tensor.shape, tensor.stride(), tensor.dtype)


def _rebuild_at(map_location):
    """The function that makes the tensors of a file."""
    place = _place_at(map_location)

    def rebuild(kind, data, sizes, dtype, requires_grad, location="cpu"):
        if not isinstance(location, str):
            raise ValueError(f"a tensor is on {location!r}, which is no device")
        host = _C._rebuild_tensor(_C.Tensor, data, sizes, dtype, False)
        try:
            made = _over(place(host.untyped_storage(), location), host.shape, host.stride(), dtype)
        except Exception as error:
            raise _Refused(error) from None
        return _C._rebuild_tensor(kind, made, sizes, dtype, requires_grad)

    return rebuild


def _over(storage, shape, stride, dtype):
    """A tensor over a storage, from its first byte on."""
    return _C.empty(0, dtype=dtype, device=storage.device).set_(storage, 0, shape, stride)


def _device_of(place, location):
    """The device that a tensor saved on `location` shall be on."""
    if not isinstance(place, (str, _C.device)):
        raise TypeError(f"load: map_location must name devices, got {type(place).__name__} for {location!r}")
    try:
        device = _C.device(place)
        count = _C._devices.device_count(device.type)
        if (device.index or 0) < count:
            _C.empty(0, device=device)  # a name that operators were registered for may have no device behind it
            return device
        problem = f"there is no device {device}: {device.type} has {count}"
    except (ValueError, RuntimeError) as error:
        problem = str(error)
    if str(place) != location:
        raise RuntimeError(f"load: map_location: {problem}")
    raise RuntimeError(
        f"load: a tensor was saved on {location}: {problem}. Load the device first with tenon.load_device, or say where the "
        "tensors shall be: tenon.load(f, map_location='cpu')"
    )


def _load_first(f, map_location):
    """The rest of a file of the first format, which has no check sum."""
    try:
        return _unpickle(f, map_location)
    except MemoryError as error:
        raise ValueError(
            "load: the file asks for more memory than there is: it is damaged, or holds tensors that large"
        ) from error


def _read(f, size):
    """`size` bytes, fewer where the file ends. A pipe or socket may give them piece by piece."""
    pieces = []
    while size > 0 and (piece := f.read(min(size, _PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _checked(f):
    """The pickle in the rest of the file, which must be what was written."""
    import io
    import struct

    header = _read(f, struct.calcsize(_HEADER))
    if len(header) < struct.calcsize(_HEADER):
        raise ValueError("load: the file ends early; it is damaged, or was not written whole")
    size, wanted = struct.unpack(_HEADER, header)
    pickled = _read(f, size)
    if len(pickled) < size:
        raise ValueError(
            f"load: the file says that {size} bytes follow, and has {len(pickled)}; it is damaged, or was not written whole"
        )
    if _sum(header[:8], pickled) != wanted:
        raise ValueError("load: the file is damaged: its bytes do not have the check sum that was written with them")
    return io.BytesIO(pickled)


def _unpickle(file, map_location):
    import pickle

    try:
        return _unpickler(file, map_location).load()
    except _Refused as refused:
        raise refused.args[0] from None
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(f"load: the file is damaged or of another kind: {error}") from error
