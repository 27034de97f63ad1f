"""What calls operators: Tenon, and PyTorch for comparison. Builds tensors from specs and finds the callable of an operator."""

from functools import cache

import numpy as np

import tenon
from .dtypes import BY_NAME


class Library:
    """One tensor library. `module` has PyTorch's names."""

    def __init__(self, module):
        self.module = module

    def dtype(self, name):
        return getattr(self.module, name)

    def tensor(self, spec, device=None):
        """A tensor of the spec's geometry over a storage of its own."""
        flat = self.storage(spec)
        if device:
            flat = flat.to(device)
        return flat.as_strided(list(spec.shape), list(spec.strides), spec.offset)

    def storage(self, spec):
        flat = self.module.from_numpy(spec.stored())
        return flat.to(self.dtype(spec.dtype)) if spec.dtype == "bfloat16" else flat

    def arguments(self, s, device=None):
        """(args, kwargs) of a sample; texts that name a dtype become one, and `device` replaces the cpu."""
        args, kwargs = s.map(lambda spec: self.tensor(spec, device))

        def named(x):
            if device and x == "cpu":
                return device
            return self.dtype(x) if isinstance(x, str) and x in BY_NAME else x

        kwargs = {k: named(v) for k, v in kwargs.items()}
        if device and not s.specs():
            kwargs["device"] = device
        return tuple(map(named, args)), kwargs

    def function(self, op, row):
        """The callable of an operator's functional or in-place form; None where the library has none."""
        if row.call:
            return row.call
        if row.direct or op.namespace != "aten":
            return getattr(getattr(getattr(self.module.ops, op.namespace), op.name), op.overload or "default")
        if op.form != "inplace" and has(self.module, op.name):
            return getattr(self.module, op.name)
        if op.form != "inplace" and self.module is tenon and hasattr(tenon._C, op.name):
            return getattr(tenon._C, op.name)  # what only derivatives call
        method = getattr(self.module.Tensor, op.name, None)
        if method is None and self.module is tenon:
            # No function and no method: the overload itself.
            return getattr(getattr(tenon.ops.aten, op.name), op.overload or "default")
        return method

    def array(self, tensor):
        """The elements in the dtype that references compute in."""
        tensor = tensor.detach()
        name = str(tensor.dtype).partition(".")[2]
        if name == "bfloat16":
            tensor = tensor.to(self.module.float32)
        return np.asarray(tensor.numpy()).astype(BY_NAME[name].compute)

    def name_of(self, dtype):
        return str(dtype).partition(".")[2]


@cache
def has(module, name):
    """Whether a module has a name. Tenon looks for a device that is called so, which takes long where nothing is."""
    return hasattr(module, name)


TENON = Library(tenon)


def reason_not_bound(op):
    return f"{op.full_name} is not bound in Python; the gradients of its operator go through it"
