"""One operator on a device: every dtype, kind of sample and stride, in its form, with gradients; compared with the CPU."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

import tenon

from . import check, gradients, large, memory, order
from .aliasing import Shared
from .comparison import Call, Difference, Unsupported
from .derivatives import without_derivative
from .dtypes import axis
from .library import TENON
from .samples import KINDS, Sample, Spec, geometry

#: How many samples without elements are tried, at least.
EMPTY = 8

#: Strides of arguments that are tried besides the kinds of samples.
OFFSET = "offset"


@dataclass(frozen=True)
class Plan:
    """How much of each operator is tried."""

    dtypes: tuple = tuple(d.name for d in axis())
    #: Dtypes that are tried with all kinds of samples; the others with those of `few`.
    thorough: tuple = tuple(d.name for d in axis())
    few: tuple = ("plain", "sliced", "special")
    #: How many samples of each kind.
    samples: int = 3
    #: Dtypes whose large tensors, edges of blocks and many dimensions are tried, too.
    large: tuple = tuple(d.name for d in axis())
    #: Layouts of out=.
    outs: tuple = ("empty", "contiguous", "sliced")
    gradients: tuple = ("float32", "float64", "complex64")
    #: Whether gradients are differentiated again.
    second: bool = True
    #: Dtypes in which streams, memory that goes back and shared memory are tried.
    order: tuple = tuple(d.name for d in axis())
    #: Dtypes in which two streams are given work at once, and calls are repeated with other values.
    streams: tuple = ("float32",)

    def of(self, dtypes):
        """The same for these dtypes, all of them thoroughly."""
        return replace(self, dtypes=dtypes, thorough=dtypes, large=dtypes, order=dtypes)

    def kinds(self, dtype):
        kinds = (*KINDS, OFFSET) if dtype in self.thorough else self.few
        return (*kinds, *large.WAYS) if dtype in self.large else kinds


#: What a minute has room for.
QUICK = Plan(thorough=("float32",), large=("float32",), order=("float32",), few=("plain", "sliced"), samples=1, outs=("empty", "sliced"), gradients=("float32",),
             dtypes=("bool", "int64", "bfloat16", "float32", "float64", "complex64"))  # fmt: skip


@dataclass
class Cell:
    """An operator in one dtype on a device."""

    operator: str
    dtype: str
    native: int = 0
    fallback: int = 0
    unsupported: int = 0
    refused: int = 0  # by both, as it should be
    gradients: int = 0  # incoming ones that were tried
    second: int = 0  # samples whose gradients were differentiated again
    same_bits: bool = True
    lost: str = ""  # the first call that lost the CPU's bits
    claimed: bool = False
    skipped: Counter = field(default_factory=Counter)  # reason: kinds of samples
    differences: dict = field(default_factory=dict)  # kind: the first text of it

    @property
    def state(self):
        if self.differences:
            return "wrong"
        if self.unsupported:
            return "unsupported"
        if self.fallback:
            return "fallback"
        if self.native:
            return "native"
        return "refused" if self.refused else "skipped"

    def note(self, difference, where):
        self.differences.setdefault(difference.kind, f"{where}: {difference.text}")

    def lose_bits(self, where):
        self.same_bits, self.lost = False, self.lost or where

    def summary(self):
        """As JSON has it."""
        return {**vars(self), "skipped": dict(self.skipped), "state": self.state}


def moved(s):
    """The same values at offset five of a larger storage; None where no argument can be."""
    found = []

    def move(spec):
        strides, offset, count = geometry(OFFSET, spec.shape)
        flat = np.zeros(count, spec.flat.dtype)
        new = Spec(flat, spec.dtype, spec.shape, strides, offset)
        new.array()[...] = spec.array()
        found.append(new)
        return new

    args, kwargs = s.map(move)
    return Sample(args, kwargs) if found else None


class Bench:
    """Tries the forms of operators on one device."""

    def __init__(self, device, plan, claims):
        self.device, self.plan, self.claims = device, plan, claims
        self.name = device.partition(":")[0]
        #: Another device of the plug-in, while the first one is current.
        self.second = order.second_of(device)

    def try_operator(self, op, row):
        """The cells of an operator, one for each dtype."""
        cells = [self.cell(op, row, dtype) for dtype in self.plan.dtypes]
        if self.claims.offers(op):
            self.judge_kernel(cells)
        return cells

    def judge_kernel(self, cells):
        """A kernel need not compute in every dtype that the device lists, but in one of them."""
        listed = [c for c in cells if c.dtype in self.claims.dtypes]
        for c in listed:
            c.claimed = c.native > 0
        if self.claims.dtypes <= set(self.plan.dtypes) and not any(c.native for c in listed):
            for c in listed:
                if c.fallback:
                    c.claimed = True
                    c.note(Difference("claim", "its kernel declined every call"), "in every dtype that the device lists")

    def cell(self, op, row, dtype):
        c = Cell(op.full_name, dtype, claimed=self.claims.claims(op, dtype))
        held, first = memory.held(self.device), None
        for kind in self.plan.kinds(dtype):
            samples = self.samples(op, row, dtype, kind)
            if not samples:
                c.skipped[self.why_none(op, row, dtype, kind)] += 1
            for s in samples:
                for layout in self.layouts(op, kind):
                    call = Call(op, row, s, layout)
                    if not call.fits:
                        c.refused += 1
                        continue
                    self.try_call(c, call, kind)
                    first = first or (None if call.refused or kind != "plain" else s)
        if first and dtype in self.plan.order:
            self.try_order(c, op, row, first)
        if first and self.second and dtype == self.plan.thorough[0] and not c.differences:
            if (c.native or op.name in order.COPIES) and (found := order.on_device(Call(op, row, first), self.second)):
                c.note(found, str(first))
        if dtype in self.plan.gradients:
            self.try_gradients(c, op, row, dtype)
        if first and memory.held(self.device) > held and (found := memory.kept(Call(op, row, first), self.device)):
            c.note(found, str(first))
        return c

    def layouts(self, op, kind):
        """Of out=: all of them for plain samples."""
        if op.form != "out":
            return (None,)
        return self.plan.outs if kind == "plain" or self.plan.samples > 1 else self.plan.outs[:1]

    def samples(self, op, row, dtype, kind):
        found = []
        if kind in large.WAYS:
            found = large.samples_of(op, row, dtype, self.plan.samples == 1, kind)
        elif kind == OFFSET:
            found = [m for s in check.samples_of(op, row, dtype, "plain")[: self.plan.samples] if (m := moved(s))]
        else:
            # Each size of 0 is a case of its own, and costs nothing.
            count = max(self.plan.samples, EMPTY if kind == "empty" else 0)
            turns = list(check.kinds_of(op, row, dtype))
            for k, second, turn in turns[:: 3 if self.plan.samples == 1 else 1]:
                if k == kind:
                    found += check.samples_of(op, row, dtype, k, second, turn)[:count]
            if not found and kind != "promotion":
                found = check.samples_of(op, row, dtype, kind)[:count]
        if op.form == "inplace":
            found = [s for s in found if isinstance(s.args[0], Spec)]
        return found

    def why_none(self, op, row, dtype, kind):
        if kind == OFFSET:
            return "offset: no argument is a tensor"
        if kind in large.WAYS:
            return f"{kind}: its sizes are fixed"
        if kind == "promotion" and not op.several_operands:
            return "promotion: one operand"
        if why := row.why_absent(dtype, kind):
            return f"{kind}: {why}"
        return f"{kind}: self is no tensor" if op.form == "inplace" else ""

    def try_call(self, c, call, kind):
        tenon.reset_fallbacks()
        there, args, kwargs = call.on(self.device)
        fell_back = bool(tenon.fallbacks(self.name))
        try:
            found = call.compare(there, args, kwargs)
        except Unsupported as e:
            c.unsupported += 1
            if c.claimed and self.claims.covers(call):
                c.note(Difference("claim", str(e)), str(call.s))
            return
        if call.refused and found is None:
            c.refused += 1
            return
        c.fallback += fell_back
        c.native += not fell_back
        if fell_back and c.claimed and self.claims.covers(call):
            c.note(Difference("claim", "it ran on host copies"), str(call.s))
        if found:
            self.judge(c, call, kind, found, fell_back)

    def judge(self, c, call, kind, found, fell_back):
        """Notes a difference under what it says most of."""
        if found.kind == "bits":
            c.lose_bits(f"{call.s}: {found.text}")
            if not self.claims.promises_bits(call.op, fell_back):
                return
        if found.kind in ("values", "nan", "bits", "around") and self.plan.order and order.settled(call, self.device):
            found = Difference("order", found.text)
        elif found.kind == "values" and call.layout not in (None, "empty", "contiguous"):
            found = Difference("out strides", found.text)
        elif found.kind == "values" and kind != "plain":
            found = Difference(kind, found.text)
        c.note(found, f"{call.s}{f', out= {call.layout}' if call.layout else ''}")

    def try_order(self, c, op, row, s):
        """Memory that goes back, streams, and arguments that share memory."""
        for call in Shared.variants(op, row, s):
            if found := call.compare(*call.on(self.device)):
                if found.kind != "bits":
                    c.note(Difference("aliasing", found.text), f"{s}, {call.how}")
        if op.form != "functional":
            return
        if c.native and c.dtype in self.plan.streams:
            self.try_again(c, op, row, s)
        if c.differences:
            return
        for check_of in (order.memory_given_back, order.on_a_stream):
            if found := check_of(Call(op, row, s), self.device):
                c.note(found, str(s))
        if c.native and c.dtype in self.plan.streams and not c.differences:
            self.try_two_streams(c, op, row, s)

    def try_again(self, c, op, row, s):
        """A second call with other values in the same tensors."""
        others = check.samples_of(op, row, c.dtype, "plain", turn=1)[:1]
        if others and order.alike(s, others[0]) and (found := order.called_again(Call(op, row, s), Call(op, row, others[0]), self.device)):
            c.note(found, str(s))

    def try_two_streams(self, c, op, row, s):
        """Calls on two streams at once, with other values on each: large ones, which are under way together, where there are some."""
        pair = [large.samples_of(op, row, c.dtype, True, turn=turn)[1:2] or check.samples_of(op, row, c.dtype, "plain", turn=turn)[:1]
                for turn in (0, 1)]  # fmt: skip
        if all(pair) and (found := order.on_two_streams([Call(op, row, p[0]) for p in pair], self.device)):
            c.note(found, str(pair[0][0]))

    def try_gradients(self, c, op, row, dtype):
        why = "out= records nothing" if op.form == "out" else without_derivative(op)
        samples = [] if why else gradients.samples_of(op, row, dtype)
        if not samples:
            c.skipped[f"gradient: {why or row.why_absent(dtype, 'grad') or 'no tensor of the dtype takes one'}"] += 1
        for s in samples[: self.plan.samples]:
            try:
                found = gradients.check_sample(op, row, s, dtype, self.device)
            except check.ERRORS:
                c.skipped["gradient: the CPU refuses it"] += 1
                continue
            if found is None:
                c.skipped["gradient: the result does not depend on values in a differentiable way"] += 1
                continue
            c.gradients += len(gradients.GRADIENT_LAYOUTS)
            twice = gradients.check_second(op, row, s, dtype, self.device) if self.plan.second else None
            c.second += twice is not None
            for difference in [*found, *(twice or ())]:
                if difference.kind == "bits":
                    c.lose_bits(f"{s}: {difference.text}")
                    if self.claims.computes_by_itself():
                        continue
                c.note(difference, str(s))


def forms_of(entry, row):
    """The operators of an entry that Python reaches."""
    for form in ("functional", "inplace", "out"):
        op = entry.main if entry.main.form == form else entry.form(form)
        if op is not None and row is not None and TENON.function(op, row) is not None:
            yield op


