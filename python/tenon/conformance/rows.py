"""What a row is: how one operator is sampled and what its results are compared with. And rows for common signatures.

A row names the main form of an entry; its in-place and out forms are tried with the same samples.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .dtypes import BY_NAME, real_of, result_type
from .samples import Spec, sample, with_options


@dataclass
class Row:
    #: The operator; or several that do the same, with spaces between.
    name: str
    #: From a Maker to Samples; none for a kind means that the cell is absent.
    samples: Callable
    #: From NumPy arrays to NumPy arrays, in float64, int64, bool or complex128. None: see `unreferenced`.
    reference: Callable | None = None
    #: Why there is no reference; `properties` is what is checked instead.
    unreferenced: str = ""
    #: Called with the result and the sample's arguments as tensors; raises AssertionError.
    properties: Callable | None = None
    #: The result's dtype: same (promoted), float (the same, integers give float32), bool, int64, self, sum (integers give
    #: int64; `dtype=` decides), or a function from the sample to a name.
    result: str | Callable = "same"
    #: Arguments that promote, by position or name, and are converted to the common dtype before the reference sees them.
    operands: tuple = ()
    #: Dtypes and categories of operands that are refused.
    refuse: tuple = ()
    #: The same of the dtype that operands promote to.
    refuse_common: tuple = ()
    #: Operands of different dtypes are refused: the promoting ones (True), or those at these positions.
    one_dtype: bool | tuple = False
    #: Complex operands give a real result: "self", "same" and "float" mean the dtype of their parts.
    real: bool = False
    #: How far results may be from the reference, in units in the last place of the result; of a complex result's
    #: absolute value, so that a part much smaller than the other may lose digits.
    ulps: float = 0
    #: How far the reference itself may be from the exact value, in units in the last place of float64.
    reference_ulps: float = 0
    #: The same as `ulps` for complex operands, where it differs.
    complex_ulps: float | None = None
    #: By how much the rounding of what is computed on the way is multiplied: a function of the operands, for complex ones.
    condition: Callable | None = None
    #: Complex results that are not finite: "parts" each as the reference has them, as ISO C99 annex G has the functions;
    #: or "class", where an infinite or undefined part may spread to the other one, as in sums of products. "order": of
    #: real results too, where what comes first decides whether zeros or infinities do.
    infinite: str = "parts"
    #: The error is relative to the reference of the absolute values, as sums may cancel; or to what a function of the
    #: absolute values says.
    magnitude: bool | Callable = False
    #: Zeros of exact results have the signs of the reference.
    signed_zeros: bool = True
    #: The result shares the storage of the first argument, with the strides that NumPy gives.
    view: bool = False
    #: Every element becomes the same, so that a tensor whose elements share places may be written.
    fills: bool = False
    #: How it is called where neither tenon.NAME nor Tensor.NAME is the way.
    call: Callable | None = None
    #: The overload itself is called, by tenon.ops: Python reaches it by another one.
    direct: bool = False
    #: The operator returns nothing: the arguments that it writes, by position. The reference returns their new values.
    writes: tuple = ()
    #: The first tensor shows the second one's elements afterwards: what is called to make it do so.
    rebinds: Callable | None = None
    #: Bounds of ordinary values, and of those that derivatives are taken at.
    domain: tuple = (-4.0, 4.0)
    grad_domain: tuple | None = None
    #: Samples for derivatives, where the ordinary ones do not do.
    grad_samples: Callable | None = None
    #: Positions of floating tensors without a derivative.
    grad_constant: tuple = ()
    #: Kinds that are absent, and why; a key may be a kind, a dtype, a category, or a category and a kind.
    absent: dict = field(default_factory=dict)
    #: Why PyTorch is not asked.
    no_peer: str = ""
    #: Samples that must be refused: from a Maker to (Sample, exceptions, text in the message).
    errors: Callable | None = None
    #: A composite's refusal may name this operator that it calls.
    inner: str = ""
    #: Whether the largest numbers are among special values: sums of them overflow, in an order that references lack.
    extremes: bool | None = None
    #: Dtypes without subnormal numbers, or products that are, among special values: matrix units take them as zeros.
    flushed: tuple = ()

    def why_absent(self, dtype, kind):
        category = BY_NAME[dtype].category
        keys = (kind, dtype, category, (category, kind))
        return next((self.absent[k] for k in keys if k in self.absent), "")

    def refuses(self, s):
        """Whether the dtypes of a sample are refused."""
        tensors = [x for x in self.promoting(s) if isinstance(x, Spec)] if self.operands else s.specs()[:1]
        names = {t.dtype for t in tensors}
        if not s.specs() and "dtype" in s.kwargs:
            names.add(s.kwargs["dtype"])  # a factory
        if isinstance(self.one_dtype, tuple):
            same = {s.args[k].dtype for k in self.one_dtype if k < len(s.args) and isinstance(s.args[k], Spec)}
        else:
            same = names if self.one_dtype else ()
        if len(same) > 1:
            return True
        if self.refuse_common and BY_NAME[self.common_dtype(s)].category in self.refuse_common:
            return True
        return any(n in self.refuse or BY_NAME[n].category in self.refuse for n in names)

    def promoting(self, s):
        found = [s.args[k] if k < len(s.args) else None for k in self.operands if isinstance(k, int)]
        found += [s.kwargs.get(k) for k in self.operands if isinstance(k, str)]
        return [o for o in found if o is not None]

    def common_dtype(self, s):
        return result_type([(o.dtype, o.dim > 0) if isinstance(o, Spec) else o for o in self.promoting(s)])

    def compute_dtype(self, s):
        """What operands are converted to."""
        common = self.common_dtype(s)
        return "float32" if self.result == "float" and not BY_NAME[common].floating else common

    def precision(self, s):
        """The allowed error of a sample, in units in the last place."""
        of_complex = any(BY_NAME[x.dtype].category == "complex" for x in s.specs())
        of_complex |= any(isinstance(x, complex) for x in [*s.args, *s.kwargs.values()])
        ulps = self.complex_ulps if of_complex and self.complex_ulps is not None else self.ulps
        if not of_complex or self.condition is None:
            return ulps
        args, _ = s.map(Spec.array)
        with np.errstate(all="ignore"):
            return ulps * self.condition(*args)

    @staticmethod
    def wide_dtype(name):
        """What a dtype is computed in."""
        narrow = {"float16": "float32", "bfloat16": "float32"}
        return "int64" if BY_NAME[name].category == "integral" else narrow.get(name, name)

    def result_dtype(self, s):
        name = self.named_dtype(s)
        return real_of(name) if self.real else name

    def named_dtype(self, s):
        if callable(self.result):
            return self.result(s)
        if self.result in BY_NAME:
            return self.result
        if self.result == "sum":
            name = s.kwargs.get("dtype") or s.specs()[0].dtype
            return name if BY_NAME[name].floating or s.kwargs.get("dtype") else "int64"
        if self.result == "self" or not self.operands:
            return s.specs()[0].dtype
        return self.compute_dtype(s)

    def wanted(self, s, absolute=False):
        """What the reference says of a sample."""
        target = BY_NAME[self.compute_dtype(s)] if self.operands else None

        def array(spec):
            a = spec.array()
            if absolute and a.dtype.kind in "fc":
                a = np.where(np.isfinite(a), np.abs(a), 0)
            return a

        args, kwargs = s.map(array)
        if target:

            def common(k, a):
                if k not in self.operands or not isinstance(a, np.ndarray):
                    return a
                # A 0-dim array with tensors keeps its value, as a plain number does (docs/differences.md).
                one = a.ndim == 0 and any(isinstance(o, Spec) and o.dim for o in self.promoting(s))
                held = BY_NAME[self.wide_dtype(target.name)] if one else target
                return held.store(a).reshape(a.shape)

            args = tuple(common(k, a) for k, a in enumerate(args))
            kwargs = {k: common(k, a) for k, a in kwargs.items()}
        reference = self.magnitude if absolute and callable(self.magnitude) else self.reference
        with np.errstate(all="ignore"):
            return reference(*args, **kwargs)


#: Why operands of several dtypes are absent where there is one.
ONE_OPERAND = {"promotion": "one operand"}

# Samplers of common signatures.


@with_options
def unary_samples(m, *extra, domain=None, **options):
    for shape in m.shapes():
        yield sample(m.tensor(shape, domain=domain), *extra, **options)


@with_options
def shape_calls(m, choose, least=0, most=9):
    """A tensor of `least` to `most` dimensions, with the other arguments of each call that `choose(shape)` lists: a tuple, or a dict by name."""
    for shape in m.shapes():
        for call in choose(shape) if least <= len(shape) <= most else ():
            yield sample(m.tensor(shape), **call) if isinstance(call, dict) else sample(m.tensor(shape), *call)


def unary_calls(*calls, least=0):
    """The same with calls that suit every shape."""
    return shape_calls(lambda shape: calls, least)


def filled_samples(m):
    """A tensor with elements."""
    for shape in m.shapes():
        if 0 not in shape:
            yield sample(m.tensor(shape))


@with_options
def binary_samples(m, *extra, domain=None, **options):
    for a, b in m.pairs():
        yield sample(m.tensor(a, domain=domain), m.tensor(b, domain=domain), *extra, **options)


@with_options
def binary_calls(m, *calls):
    """Two tensors with the other arguments of each call."""
    for a, b in m.pairs():
        for call in calls:
            yield sample(m.tensor(a), m.tensor(b), *call)


def gradient_samples(m):
    """The gradient of what two tensors broadcast to, and the two."""
    for a, b in m.pairs():
        yield sample(m.tensor(np.broadcast_shapes(a, b)), m.tensor(a), m.tensor(b))


@with_options
def number_samples(m, *numbers, **options):
    """A tensor and one number, each in turn."""
    for number in numbers:
        for shape in m.shapes():
            yield sample(m.tensor(shape), number, **options)


@with_options
def number_first(m, number):
    """One number and a tensor."""
    for shape in m.shapes():
        yield sample(number, m.tensor(shape))


#: The rows of operators outside of Tenon, by full name.
DECLARED = {}


def declare(name, samples, reference=None, **options):
    """Declares the samples of an operator of yours, "myops::scaled_abs", and so makes it a part of every run.

    samples: from a Maker, which gives shapes and tensors of the dtype and strides in question, to Samples. On a device the
    results are compared with the CPU's; `ulps` says how far they may be from the CPU's in float64. `reference`, of NumPy
    arrays, and the other options are those of `Row`.
    """
    DECLARED[name] = Row(name, samples, reference, **options)


def reduced_dims(shape):
    return [0, -1] if shape else [0]


def dim_samples(m):
    """A tensor and each of its outer dimensions."""
    for shape in m.shapes():
        for dim in reduced_dims(shape):
            yield sample(m.tensor(shape), dim)


# Rows of common signatures.


def unary(name, reference, **options):
    """Tensor -> Tensor, element by element."""
    options.setdefault("samples", unary_samples())
    return Row(name, reference=reference, operands=(0,), **options)


def binary(name, reference, **options):
    """Tensor, Tensor -> Tensor, element by element, broadcasting and promoting."""
    options.setdefault("samples", binary_samples())
    return Row(name, reference=reference, operands=(0, 1), **options)


def with_number(name, reference, numbers=(2, -3, 2.5), **options):
    """Tensor, number -> Tensor."""
    options.setdefault("samples", number_samples(*numbers))
    return Row(name, reference=reference, operands=(0, 1), **options)


def reduction(name, reference, **options):
    """Tensor -> one number."""
    options.setdefault("samples", unary_samples())
    return Row(name, reference=reference, **options)


def reduction_along(name, reference, keyword="dim", lists=False, **options):
    """Tensor, dim or dims, keepdim -> Tensor."""

    def samples(m):
        for shape in m.shapes():
            for dim in reduced_dims(shape):
                keep = bool(m.rng.integers(2))
                yield sample(m.tensor(shape), [dim] if lists else dim, keep)
            if lists and len(shape) > 1:
                yield sample(m.tensor(shape), [0, -1], True)
        if m.kind == "empty":  # many sums of nothing
            yield sample(m.tensor((3, 0)), [1] if lists else 1, False)

    options.setdefault("samples", samples)
    return Row(name, reference=reference, **options)


def view(name, reference, samples, **options):
    """A view: NumPy's own view gives the strides."""
    return Row(name, samples=samples, reference=reference, view=True, result="self", **options)


def default(entry):
    """A row for an operator that has none, where its signature and name say enough; otherwise None."""
    import scipy.special

    op = entry.main
    reference = getattr(np, op.name, None) or getattr(scipy.special, op.name, None)
    if reference is None or op.form != "functional" or op.returns != ("Tensor",) or op.view:
        return None
    if not all(a.is_tensor and not a.optional for a in op.arguments) or len(op.arguments) not in (1, 2):
        return None
    make = unary if len(op.arguments) == 1 else binary
    result = "same"
    return make(op.full_name, reference, ulps=4, result=result)
