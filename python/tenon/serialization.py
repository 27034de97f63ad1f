"""save and load: nested dicts, lists and tuples of tensors and plain values, by pickle.

Both refuse everything that is not one of those, so that a file cannot run code, and nothing is written that cannot be
read again. Tensors that share memory are written apart.
"""

from . import _C

_MAGIC = b"tenon-checkpoint-1\n"
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


def _unpickler(file):
    import pickle  # and with it much of the standard library: only when asked for

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            if _allowed(module, name):
                return super().find_class(module, name)
            raise pickle.UnpicklingError(f"the file names {module}.{name}, which a checkpoint does not hold")

    return Unpickler(file)


def _pickler(file):
    import pickle

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj):
            kind = obj if isinstance(obj, type) or getattr(obj, "__module__", None) and hasattr(obj, "__qualname__") else type(obj)
            if _allowed(kind.__module__, kind.__qualname__) or isinstance(obj, _C.dtype):
                return NotImplemented
            raise TypeError(
                f"save: a {kind.__module__}.{kind.__qualname__} cannot be in a checkpoint, which holds tensors, numbers, "
                "str, bytes, None, and lists, tuples, sets and dicts of those; save a module's state_dict()"
            )

    return Pickler(file, protocol=4)


def save(obj, f):
    """Writes `obj` to a path or a binary file. Raises TypeError for what `load` would refuse; nothing is written then."""
    import io

    whole = io.BytesIO()
    whole.write(_MAGIC)
    _pickler(whole).dump(obj)
    if hasattr(f, "write"):
        f.write(whole.getbuffer())
        return
    with open(f, "wb") as file:
        file.write(whole.getbuffer())


def load(f):
    """Reads what `save` wrote. Raises ValueError for anything else."""
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return load(file)
    if f.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("load: not a file that tenon.save wrote")
    import pickle

    try:
        return _unpickler(f).load()
    except (pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"load: the file is damaged or of another kind: {error}") from error
