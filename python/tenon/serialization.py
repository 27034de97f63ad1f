"""save and load: nested dicts, lists and tuples of tensors and plain values, by pickle.

Loading refuses everything that is not one of those, so that a file cannot run code.
"""

from . import _C

_MAGIC = b"tenon-checkpoint-1\n"
_ALLOWED = {
    ("collections", "OrderedDict"),
    ("tenon._C", "_rebuild_tensor"),
    ("tenon", "Tensor"),
    ("tenon", "Size"),
    ("tenon", "device"),
    ("tenon.nn.parameter", "Parameter"),
}


def _unpickler(file):
    import pickle  # and with it much of the standard library: only when asked for

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) in _ALLOWED or (module in ("tenon", "tenon._C") and isinstance(getattr(_C, name, None), _C.dtype)):
                return super().find_class(module, name)
            raise pickle.UnpicklingError(f"the file names {module}.{name}, which a checkpoint does not hold")

    return Unpickler(file)


def save(obj, f):
    """Writes `obj` to a path or a binary file."""
    if hasattr(f, "write"):
        import pickle

        f.write(_MAGIC)
        pickle.dump(obj, f, protocol=4)
        return
    with open(f, "wb") as file:
        save(obj, file)


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
