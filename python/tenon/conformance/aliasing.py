"""Calls whose arguments share memory: a tensor that is also written, and views that overlap."""

from math import prod

from . import check
from .comparison import Call
from .library import TENON
from .samples import Spec, geometry


def shared(op, s):
    """Which arguments of a sample may share memory: positions of tensors of the first one's shape and dtype."""
    specs = [(i, a) for i, a in enumerate(s.args) if isinstance(a, Spec)]
    if not specs or not prod(specs[0][1].shape):
        return []
    first = specs[0][1]
    return [i for i, a in specs if (a.shape, a.dtype) == (first.shape, first.dtype)]


class Shared(Call):
    """A call whose tensors are the same one ("same"), or one element apart in one storage ("overlapping").

    In an in-place form these are the first tensor and all like it; in an out= form the first tensor and `out=`.
    """

    def __init__(self, op, row, s, how):
        self.how, self.places = how, shared(op, s)
        super().__init__(op, row, s, "contiguous" if op.form == "out" else None)

    @staticmethod
    def variants(op, row, s):
        """The calls of a sample that there are."""
        places = shared(op, s)
        many = len(places) > 1 if op.form == "inplace" else bool(places)
        if op.form == "functional" or not many or row.rebinds:
            return
        for how in ("same", "overlapping"):
            call = Shared(op, row, s, how)
            if call.fits:
                yield call

    def arguments(self, device):
        args, kwargs = super().arguments(device)
        args = list(args)
        spec = self.s.args[self.places[0]]
        count = prod(spec.shape)
        at, _, _ = geometry("contiguous", spec.shape)
        base = TENON.storage(spec)[:1].expand(count + 1).clone()
        base[1:] = TENON.tensor(spec).reshape([count])
        base = base.to(device) if device else base
        written = base.as_strided(list(spec.shape), list(at), 1)
        read = written if self.how == "same" else base.as_strided(list(spec.shape), list(at), 0)
        if self.op.form == "out":
            out = kwargs["out"]
            if isinstance(out, tuple) or (out.shape, out.dtype) != (written.shape, written.dtype):
                return tuple(args), kwargs
            args[self.places[0]], kwargs["out"] = read, written
        else:
            args[self.places[0]] = written
            for i in self.places[1:]:
                args[i] = read
        return tuple(args), kwargs

    def compare(self, there, args, kwargs):
        found = super().compare(there, args, kwargs)
        # Which of the refusals comes first may differ; that both refuse is what counts.
        if found and found.kind == "error" and self.refused and isinstance(there, check.ERRORS):
            return None
        return found
