"""save and load: nested dicts, lists and tuples of tensors and plain values, by pickle.

Both refuse any other type, so that a file cannot run code, and whatever is written can be read again. Tensors that share
memory are written separately. Each says which device it is on, if that is not the host.

A file is a line that names the format, the length of the pickle, its CRC-32, and the pickle, so that damage is noticed
before the pickle is read. Files of the first format, without length and CRC-32, can be read too.
"""

from . import _C

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


def save(obj, f):
    """Writes `obj` to a path or a binary file. Raises TypeError for what `load` would refuse; nothing is written then.

    A tensor with a history is saved without it, as a leaf that requires grad.

    An existing file stays intact until the new one is complete: save writes another file in the same folder, which takes the
    old one's place, permissions and owner once it has reached the disk. A symbolic link is kept. Where no file can be added
    to the folder, or the path is no regular file, save writes in place.
    """
    import io
    import os

    pickled = io.BytesIO()
    _pickler(pickled).dump(obj)
    parts = (_header(pickled.getbuffer()), pickled.getbuffer())
    if hasattr(f, "write"):
        _write(f, parts)
    elif isinstance(f, int):
        with open(f, "wb") as file:
            _write(file, parts)
    else:
        _replace(os.path.realpath(os.fsdecode(f)), parts)


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


def _replace(path, parts):
    """Replaces the file at `path` by one of these bytes, completely or not at all."""
    import errno
    import os
    import stat

    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    else:
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    folder = os.path.dirname(path)
    if old and not (stat.S_ISREG(old.st_mode) and os.access(folder, os.W_OK | os.X_OK)):
        with open(path, "wb") as file:
            _write(file, parts)
        return
    temporary = os.path.join(folder, f".tenon-{os.urandom(8).hex()}")
    file = _nameless(folder)
    named = False
    try:
        if not file:
            file = open(temporary, "xb")
            named = True
        with file:
            if old:
                _take_after(file.fileno(), old)
            _write(file, parts)
            file.flush()
            os.fsync(file.fileno())
            if not named:
                # Any descriptor will do beside an absolute path: without one, Python does not follow the link.
                source = f"/proc/self/fd/{file.fileno()}"
                os.link(source, temporary, src_dir_fd=file.fileno(), follow_symlinks=True)
                named = True
        os.replace(temporary, path)
    except BaseException as error:
        if named:
            try:
                os.unlink(temporary)
            except OSError:
                pass
        if isinstance(error, OSError) and error.filename == temporary:
            error.filename = path
        raise
    _sync_folder(folder)


def _nameless(folder):
    """A file in `folder` that gets a name only when it is whole, so that a process that is killed leaves nothing;
    None where the system has none."""
    import os

    if not hasattr(os, "O_TMPFILE") or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return open(os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666), "wb")
    except OSError:
        return None


def _take_after(descriptor, old):
    """Gives a file the owner and the permissions of an old one, as far as the process may."""
    import os

    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        for owner in (old.st_uid, -1):
            try:
                os.fchown(descriptor, owner, old.st_gid)
                break
            except OSError:
                pass
    os.fchmod(descriptor, old.st_mode & 0o777)


def _sync_folder(folder):
    import os

    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # the file is whole, old or new, whichever the disk has after a loss of power
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def load(f, map_location=None, *, weights_only=True):
    """Reads what `save` wrote. Raises ValueError for anything else, even if a single bit was changed, and for a path
    whose file has more bytes. An open file may have more: it is read to the end of what `save` wrote, no further.

    Tensors are on the device that they were saved on, or where `map_location` says, which is a device or its name for all of
    them; a dict of names, {"openreg:0": "cpu"}, with other devices staying; or a function of a tensor's UntypedStorage, in
    host memory, and the name of its device, that returns the storage to use, or None for that device. Raises RuntimeError for
    a device that is not there, and TypeError for any other `map_location`.

    A file holds tensors and plain values only, so that weights_only=False changes nothing.
    """
    if map_location is not None and not isinstance(map_location, (str, _C.device, dict)) and not callable(map_location):
        raise TypeError(
            f"load: map_location must be a device, its name, a dict or a function, got {type(map_location).__name__}"
        )
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            value = load(file, map_location)
            if file.read(1):
                raise ValueError(
                    "load: the file has bytes behind what tenon.save wrote; it is damaged, or more was appended to it"
                )
            return value
    start = _read(f, len(_FIRST_MAGIC))
    if start == _FIRST_MAGIC:
        return _load_first(f, map_location)
    start += _read(f, len(_MAGIC) - len(start))
    if start != _MAGIC:
        raise ValueError("load: not a file that tenon.save wrote")
    return _unpickle(_checked(f), map_location)


class _Refused(Exception):
    """Carries an error that says nothing about the file past the unpickler."""


def _rebuild_at(map_location):
    """The function that makes the tensors of a file."""

    def rebuild(kind, data, sizes, dtype, requires_grad, location="cpu"):
        if not isinstance(location, str):
            raise ValueError(f"a tensor is on {location!r}, which is no device")
        place = location
        if callable(map_location):
            host = _C._rebuild_tensor(_C.Tensor, data, sizes, dtype, False)
            try:
                storage = map_location(host.untyped_storage(), location)
                if storage is not None:
                    made = _over(storage, host)
                    return _C._rebuild_tensor(kind, made, sizes, dtype, requires_grad)
            except Exception as error:
                raise _Refused(error) from None
        elif isinstance(map_location, dict):
            place = map_location.get(location, location)
        elif map_location is not None:
            place = map_location
        try:
            device = _device_of(place, location)
        except Exception as error:
            raise _Refused(error) from None
        return _C._rebuild_tensor(kind, data, sizes, dtype, requires_grad, device)

    return rebuild


def _over(storage, like):
    """A contiguous tensor of `like`'s shape and dtype over a storage."""
    if not isinstance(storage, _C.UntypedStorage):
        raise TypeError(f"load: map_location must return an UntypedStorage or None, got {type(storage).__name__}")
    return _C.empty(0, dtype=like.dtype, device=storage.device).set_(storage, 0, like.shape, like.stride())


def _device_of(place, location):
    """The device that a tensor saved on `location` shall be on."""
    if not isinstance(place, (str, _C.device)):
        raise TypeError(f"load: map_location must name devices, got {type(place).__name__} for {location!r}")
    try:
        device = _C.device(place)
        count = _C._devices.device_count(device.type)
        if (device.index or 0) < count:
            return device
        problem = f"there is no device {device}: {device.type} has {count}"
    except ValueError as error:
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
