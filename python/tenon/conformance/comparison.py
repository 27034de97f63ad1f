"""One call on the CPU and on a device, and what differs: results, arguments and the memory around them, identity, errors."""

import re
from dataclasses import dataclass

import numpy as np

import tenon

from . import check
from .dtypes import BY_NAME
from .library import TENON
from .samples import Sample, Spec, geometry

#: Of these the elements say nothing: they are not initialised.
UNINITIALISED = {"empty.memory_format", "empty.out", "empty_like", "empty_strided", "new_empty", "new_empty_strided",
                 "resize_"}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """What is wrong with one call. `kind`: see faults.KINDS."""

    kind: str
    text: str


class Unsupported(Exception):
    """The device says that it has not what a call takes."""


def flat_of(t):
    """All elements of the storage of a tensor."""
    held = t.untyped_storage().nbytes() // t.element_size()
    return t.detach().as_strided([held], [1], 0)


def bits(t):
    """The bytes of the elements in order; all NaNs are one."""
    t = t.detach().cpu().contiguous()
    if t.dtype == tenon.bfloat16:
        t = t.to(tenon.float32)
    a = t.numpy()
    if a.dtype.kind in "fc" and np.isnan(a).any():
        parts = np.ascontiguousarray(a).view(a.real.dtype)
        a = np.where(np.isnan(parts), np.array(np.nan, parts.dtype), parts)
    return a.tobytes()


def strides(t):
    """The strides that matter."""
    return [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else []


def outcome(function, args, kwargs):
    """Results of a call as a tuple, or its error. Random numbers are the same in every call."""
    tenon.manual_seed(7)
    for given in [*args, *kwargs.values()]:
        if isinstance(given, tenon.Generator):
            given.manual_seed(7)
    try:
        got = function(*args, **kwargs)
    except check.ERRORS as e:
        return e
    return tuple(got) if isinstance(got, (tuple, list)) else (got,)


def outs_for(results, layout, device):
    """Tensors for `out=` of results that are known; empty ones for the layout "empty"."""
    outs = []
    for r in results:
        if layout == "empty":
            outs.append(tenon.empty([0], dtype=r.dtype, device=device))
            continue
        at, offset, count = geometry(layout, tuple(r.shape))
        flat = tenon.zeros([count], dtype=r.dtype).to(device)
        outs.append(flat.as_strided(list(r.shape), list(at), offset))
    return outs[0] if len(outs) == 1 else tuple(outs)


def widened(s):
    """The same values in float64 and complex128."""
    wide = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
    args, kwargs = s.map(lambda x: Spec(x.flat, wide.get(x.dtype, x.dtype), x.shape, x.strides, x.offset))
    names = lambda x: wide.get(x, x) if isinstance(x, str) else x  # noqa: E731
    return Sample(tuple(map(names, args)), {k: names(v) for k, v in kwargs.items()})


class Call:
    """One sample of an operator, to be made on the CPU and elsewhere.

    layout: of `out=`, which the call is given then: "empty", or one of samples.LAYOUTS.
    """

    def __init__(self, op, row, s, layout=None):
        self.op, self.row, self.s, self.layout = op, row, s, layout
        self.function = TENON.function(op, row)
        if row.rebinds:
            self.function = lambda a, b: row.rebinds(a.clone(), b)
        self.elements = op.full_name not in UNINITIALISED
        #: Whether there are results, where `out=` has to fit them.
        self.fits = True
        if layout:
            plain = self.without_out()
            self.fits = not isinstance(plain, Exception)
            self.likes = [r.detach().clone() for r in plain] if self.fits else []
        if self.fits:
            self.args, self.kwargs = self.arguments("")
            self.here = outcome(self.function, self.args, self.kwargs)

    def without_out(self):
        """The results that `out=` has to fit, or the error. An overload that is called itself knows no call without `out=`: it gets
        tensors of no elements."""
        args, kwargs = TENON.arguments(self.s)
        plain = outcome(self.function, args, kwargs)
        if not isinstance(plain, TypeError) or self.row.refuses(self.s):
            return plain
        names = self.row.result_dtype(self.s)
        outs = [tenon.empty([0], dtype=TENON.dtype(n)) for n in (names if isinstance(names, tuple) else [names])]
        return outcome(self.function, args, {**kwargs, "out": outs[0] if len(outs) == 1 else tuple(outs)})

    @property
    def refused(self):
        """Whether the CPU refuses it."""
        return isinstance(self.here, Exception)

    def arguments(self, device):
        """New arguments on the device, or on the CPU for "". Results are expected there, too."""
        self.where = tenon.device(device or "cpu")
        args, kwargs = TENON.arguments(self.s, device)
        if self.layout:
            kwargs["out"] = outs_for(self.likes, self.layout, device or "cpu")
        return args, kwargs

    def on(self, device, around=None):
        """The results on the device, and the arguments that were given. `around(make)` makes the call."""
        args, kwargs = self.arguments(device)
        make = lambda: outcome(self.function, args, kwargs)  # noqa: E731
        return (around(make) if around else make()), args, kwargs

    def compare(self, there, args, kwargs):
        """The first difference, or None. Raises Unsupported."""
        if self.refused or isinstance(there, Exception):
            return self.compare_errors(there)
        given_here = check.tensors_of([*self.args, *self.kwargs.values()])
        given = check.tensors_of([*args, *kwargs.values()])
        return self.compare_results(there, self.here, given, given_here) or self.compare_arguments(given, given_here)

    def compare_errors(self, there):
        if not isinstance(there, Exception):
            return Difference("not refused", f"was not refused; on the CPU {type(self.here).__name__}: {self.here}")
        if self.refused and type(there) is type(self.here) and "has no function" not in str(there):
            return None
        if self.refused and self.row.refuses(self.s) and isinstance(there, (TypeError, tenon.ShapeError)):
            return None  # dtypes and sizes are both wrong: which is said first is not promised
        if isinstance(there, NotImplementedError) and not self.refused:
            raise Unsupported(str(there))
        said = f"{type(there).__name__}: {there}"
        # Tenon looks at what kernels of plug-ins return before the kit can.
        if wrong := re.search(r"the kernel of device \w+ returned (\w+) (\[.*\]) as result \d+, expected (\w+) ", said):
            return Difference("dtype" if wrong[1] != wrong[3] else "shape", said)
        return Difference("error", f"{said}; on the CPU {type(self.here).__name__}: {self.here}" if self.refused else said)

    def compare_results(self, there, here, given, given_here):
        if len(there) != len(here):
            return Difference("results", f"{len(there)} results, expected {len(here)}")
        for i, (got, want) in enumerate(zip(there, here)):
            if isinstance(want, (tuple, list)):
                found = self.compare_results(got, want, given, given_here)
            elif isinstance(want, tenon.Tensor):
                same = next((k for k, t in enumerate(given_here) if t is want), None)
                found = None
                if same is not None and got is not given[same]:
                    found = Difference("identity", "the result is not the tensor that was given")
                found = found or self.compare_tensor(got, want, i)
            else:
                same = got == want or (got != got and want != want)
                found = None if same else Difference("values", f"{got}, expected {want}")
            if found:
                return found
        return None

    def compare_tensor(self, got, want, i=0):
        if got.device.type != self.where.type or (got.device.index or 0) != (self.where.index or 0):
            return Difference("index", f"it is on {got.device}, expected {self.where}")
        if got.dtype != want.dtype:
            return Difference("dtype", f"dtype {got.dtype}, expected {want.dtype}")
        if got.shape != want.shape:
            return Difference("out size" if self.layout else "shape", f"shape {list(got.shape)}, expected {list(want.shape)}")
        if strides(got) != strides(want):
            return Difference("strides", f"strides {strides(got)}, expected {strides(want)}")
        if not self.elements or bits(got) == bits(want):
            return None
        return self.compare_values(got, want, i)

    def compare_values(self, got, want, i):
        """Elements that have not the CPU's bits: near enough to the CPU's in float64, or not."""
        d = BY_NAME[TENON.name_of(want.dtype)]
        a, b = TENON.array(got.cpu()), TENON.array(want)
        with np.errstate(all="ignore"):
            differ = (a != b) & ~(np.isnan(a) & np.isnan(b)) if d.floating else a != b
        if not differ.any():  # zeros of other signs
            return Difference("bits", "zeros have other signs")
        at = tuple(int(k) for k in np.argwhere(np.atleast_1d(differ))[0])
        said = f"element {list(at)} is {np.atleast_1d(a)[at].item()!r}, expected {np.atleast_1d(b)[at].item()!r} ({int(differ.sum())} of {b.size} differ)"
        if d.floating and np.isnan(b)[differ].all():
            return Difference("nan", said)
        return Difference("bits" if d.floating and self.is_near(a, b, d, i) else "values", said)

    def is_near(self, a, b, d, i):
        wide = outcome(self.function, *TENON.arguments(widened(self.s)))
        if isinstance(wide, Exception) or not isinstance(wide[i], tenon.Tensor) or tuple(wide[i].shape) != a.shape:
            want, allowed = b, 0
        else:
            want = TENON.array(wide[i])
            allowed = 0.5 * 2.0 ** (1 - d.digits) * np.abs(want)  # of one rounding, where the row has no bound
            if self.row.reference and np.any(self.row.precision(self.s)):
                allowed = np.maximum(allowed, check.tolerance(self.row, self.s, want, d, i))
            allowed = np.maximum(allowed, np.maximum(self.row.ulps, 1) * 2.0 ** (1 - d.digits) * np.abs(want))
        try:
            check.compare(a, want, d, allowed)
        except AssertionError:
            return False
        return True

    def compare_arguments(self, given, given_here):
        for got, want in zip(given, given_here):
            if got.shape != want.shape or strides(got) != strides(want):
                return Difference("arguments", "an argument has another geometry")
            if not self.elements:
                continue
            whole = got.storage_offset() == want.storage_offset() and bits(flat_of(got)) == bits(flat_of(want))
            if whole and got.dtype == want.dtype:
                continue
            if found := self.compare_tensor(got, want):
                return found
            if not whole:
                return Difference("around", "elements around an argument were changed")
        return None
