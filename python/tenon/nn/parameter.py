"""Parameter and Buffer: tensors that belong to a module."""

from .. import _C


class Parameter(_C.Tensor):
    """A tensor that a module registers as a parameter when it is assigned to an attribute. Requires grad by default."""

    _copies_alone = True  # a deep copy shares no memory with the copies of other tensors and has no gradient yet

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = _C.empty(0)
        if not isinstance(data, _C.Tensor):
            raise TypeError(f"Parameter(): data must be a Tensor, not {type(data).__name__}")
        return _C._make_subclass(cls, data, requires_grad)


class Buffer(_C.Tensor):
    """A tensor that belongs to a module's state but is not trained."""

    def __new__(cls, data=None, persistent=True):
        if data is not None and not isinstance(data, _C.Tensor):
            raise TypeError(f"Buffer(): data must be a Tensor, not {type(data).__name__}")
        buffer = _C._make_subclass(cls, _C.empty(0) if data is None else data, False)
        buffer.persistent = persistent
        return buffer

    def __repr__(self):
        return repr(self.detach())  # as any tensor: PyTorch's buffers have no type of their own
