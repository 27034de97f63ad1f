"""Gradients of one operator on the CPU and on a device, for incoming gradients of every stride, and gradients of these."""

import random

import numpy as np

import tenon
from tenon.autograd.gradcheck import GRADIENT_LAYOUTS, gradient_of_layout

from . import check
from .comparison import Difference, bits, flat_of, strides, widened
from .derivatives import floating, function_of, grad_samples, writable_shape
from .dtypes import BY_NAME
from .library import TENON
from .samples import Spec

WIDE = {"float32": "float64", "complex64": "complex128"}


def samples_of(op, row, dtype):
    """Samples that the operator can be differentiated at."""
    if row.why_absent(dtype, "grad"):
        return []
    found = [s for s in grad_samples(op, row, dtype) if floating(row, s, (dtype,)) and not row.refuses(s)]
    if op.form == "inplace":
        found = [s for s in found if isinstance(s.args[0], Spec) and writable_shape(row, s)]
    return found


class Recorded:
    """A call whose derivative was recorded."""

    def __init__(self, op, row, s, dtype, device=None):
        self.leaves = [TENON.tensor(x, device).detach().requires_grad_() for x in floating(row, s, (dtype,))]
        outputs = function_of(op, row, s, device, (dtype,))(*self.leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        self.outputs = [o for o in outputs if isinstance(o, tenon.Tensor) and o.requires_grad]

    def gradients(self, seeds):
        return tenon.autograd.grad(self.outputs, self.leaves, seeds, retain_graph=True, allow_unused=True)

    def differentiable_gradients(self, seeds):
        """Gradients that depend on arguments, or on incoming gradients; and what they are differentiated by."""
        seeds = [g.detach().clone().requires_grad_() for g in seeds]
        found = tenon.autograd.grad(self.outputs, self.leaves, seeds, create_graph=True, allow_unused=True)
        return [g for g in found if g is not None and g.requires_grad], [*self.leaves, *seeds]


def like(g, device, dtype=None):
    """A tensor of the same strides and values elsewhere."""
    flat = flat_of(g).to(device)
    flat = flat.to(dtype) if dtype else flat
    return flat.as_strided(list(g.shape), list(g.stride()), g.storage_offset())


def check_sample(op, row, s, dtype, device):
    """The differences of one sample, of each layout one, or None where nothing is recorded."""
    here = Recorded(op, row, s, dtype)
    if not here.outputs:
        return None
    found = []
    try:
        there = Recorded(op, row, s, dtype, device)
    except check.ERRORS as e:
        return [Difference("gradient", f"{type(e).__name__}: {e}")]
    for layout in GRADIENT_LAYOUTS:
        rng = random.Random(17)
        seeds = [gradient_of_layout(o.detach(), layout, rng) for o in here.outputs]
        want = here.gradients(seeds)
        try:
            got = there.gradients([like(g, str(o.device)) for g, o in zip(seeds, there.outputs)])
        except check.ERRORS as e:
            found.append(Difference("gradient", f"{layout}: {type(e).__name__}: {e}"))
            continue
        if wrong := differ(got, want, lambda seeds=seeds: wide_gradients(op, row, s, dtype, seeds)):
            kind = wrong.kind if wrong.kind == "bits" else "gradient" if layout == "contiguous" else "gradient strides"
            found.append(Difference(kind, f"incoming gradient {layout}: {wrong.text}"))
    return found


def check_second(op, row, s, dtype, device):
    """What differs in the gradients of the gradients; None for a derivative that is not differentiable, or a constant."""
    rng = random.Random(19)
    here = Recorded(op, row, s, dtype)
    seeds = [gradient_of_layout(o.detach(), "contiguous", rng) for o in here.outputs]
    try:
        first, by = here.differentiable_gradients(seeds)
        weights = [gradient_of_layout(g.detach(), "transposed", rng) for g in first]
        want = tenon.autograd.grad(first, by, weights, allow_unused=True) if first else ()
    except check.ERRORS:
        return None
    if all(g is None for g in want):
        return None

    def second(of, device, dtype=None):
        firsts, by = of.differentiable_gradients([like(g, device, dtype) for g in seeds])
        if len(firsts) != len(first):
            raise RuntimeError(f"{len(firsts)} gradients are differentiable, expected {len(first)}")
        return tenon.autograd.grad(firsts, by, [like(g, device, dtype) for g in weights], allow_unused=True)

    def reference():
        wide = WIDE.get(dtype, dtype)
        return second(Recorded(op, row, widened(s), wide), "cpu", TENON.dtype(wide))

    try:
        there = Recorded(op, row, s, dtype, device)
        wrong = differ(second(there, str(there.outputs[0].device)), want, reference)
    except check.ERRORS as e:
        return [Difference("second gradient", f"{type(e).__name__}: {e}")]
    if wrong is None:
        return []
    return [Difference("bits" if wrong.kind == "bits" else "second gradient", f"second {wrong.text}")]


def wide_gradients(op, row, s, dtype, seeds):
    """The CPU's in float64."""
    wide = WIDE.get(dtype, dtype)
    of = Recorded(op, row, widened(s), wide)
    return of.gradients([like(g, "cpu", TENON.dtype(wide)) for g in seeds])


def differ(got, want, reference):
    for i, (a, b) in enumerate(zip(got, want)):
        if (a is None) != (b is None):
            return Difference("gradient", f"gradient {i} is {'absent' if a is None else 'there'}")
        if a is None:
            continue
        said = (a.dtype, list(a.shape), strides(a))
        expected = (b.dtype, list(b.shape), strides(b))
        if said != expected:
            return Difference("gradient", f"gradient {i} is {said}, expected {expected}")
        if bits(a) != bits(b):
            wide = reference()[i]
            return of_values(TENON.array(a.cpu()), TENON.array(b), TENON.array(wide), BY_NAME[TENON.name_of(b.dtype)], i)
    return None


def of_values(a, b, wide, d, i):
    with np.errstate(all="ignore"):
        finite = np.isfinite(wide)
        scale = np.max(np.abs(wide[finite]), initial=1.0)
        near = (np.abs(a - wide) <= 256 * 2.0 ** (1 - d.digits) * scale) | (~finite & ~np.isfinite(a))
    kind = "bits" if near.all() else "gradient"
    return Difference(kind, f"gradient {i}: {a.reshape(-1)[:4]}..., expected {b.reshape(-1)[:4]}...")
