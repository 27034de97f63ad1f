"""What a device says that it computes, and which operators have kernels of its own."""

import tenon

from . import check, table
from .dtypes import BY_NAME
from .library import TENON

#: The operations of pointwise programs, as TenonDeviceProperties.ops_printed counts them: 3 and 4 occur in none.
_ALL_OPERATIONS = ((1 << 41) - 1) & ~0x18


class Claims:
    def __init__(self, device):
        name = device.partition(":")[0]
        plugins = [loaded for loaded, _, _ in tenon.devices.loaded()]
        said = tenon.devices.module_if_there(name).get_device_properties(device) if name in plugins else None
        self.key = str(tenon.dispatch.key_for_device(name))
        self.dtypes = {str(d).partition(".")[2] for d in said.dtypes} if said else set()
        #: Whether it runs every pointwise program.
        self.pointwise = bool(said) and said.pointwise and said.operations & _ALL_OPERATIONS == _ALL_OPERATIONS
        self.own = {o for o in tenon.dispatch.operators() if any(r.key == self.key for r in tenon.dispatch.registrations(o))}
        #: The stubs that the plug-in filled in.
        self.stubs = sorted(s.name for s in tenon.dispatch.stubs() if name in s.own)

    @staticmethod
    def full(op):
        return op.full_name if "::" in op.full_name else "aten::" + op.full_name

    def body(self, op):
        return table.index().get(self.full(op), {}).get("body", {})

    def has_kernel(self, op):
        """Whether the plug-in registered a kernel for the operator."""
        return self.full(op) in self.own

    def is_pointwise(self, op):
        return "expr" in self.body(op)

    def claims(self, op, dtype):
        """Whether the device says that it computes the operator in the dtype: as a program of operations that it runs."""
        return self.is_pointwise(op) and self.pointwise and not self.has_kernel(op) and self.computes_in(dtype)

    def computes_in(self, dtype):
        return not self.dtypes or dtype in self.dtypes

    def covers(self, call):
        """Whether a claim is for this call: the device computes in the dtypes of all its arguments and results."""
        given = [*call.s.args, *call.s.kwargs.values()]
        names = {spec.dtype for spec in call.s.specs()} | {x for x in given if isinstance(x, str) and x in BY_NAME}
        results = () if call.refused else check.tensors_of(call.here)
        return all(map(self.computes_in, names | {TENON.name_of(r.dtype) for r in results}))

    def offers(self, op):
        """Whether the plug-in has a kernel for the operator, and lists dtypes: in one of them, at least, it must compute."""
        return self.has_kernel(op) and bool(self.dtypes)

    def promises_bits(self, op, fell_back):
        """Whether results must have the CPU's bits: the CPU's own, and those of programs, which are defined to the bit."""
        if self.has_kernel(op) or op.name.rstrip("_") in self.stubs:
            return fell_back
        return self.is_pointwise(op) or (fell_back and not op.composite) or not self.computes_by_itself()

    def computes_by_itself(self):
        """Whether the plug-in has functions of its own for some of Tenon's operators, which others may call."""
        return any(o.startswith("aten::") for o in self.own) or bool(set(self.stubs) - {"copy", "fill"})
