"""gradcheck and gradgradcheck: derivatives against finite differences, with PyTorch's names and arguments.

Used by Tenon's tests and by those of authors of operators. Computes with lists of Python numbers and needs nothing but
tensors. Complex values follow PyTorch's convention, d/dRe + i d/dIm of a real loss.
"""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, describe
from .grad_mode import enable_grad, no_grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["GRADIENT_LAYOUTS", "GradcheckError", "gradcheck", "gradgradcheck", "gradient_of_layout"]

#: The layouts of incoming gradients that `grad_layouts` takes.
GRADIENT_LAYOUTS = ("contiguous", "transposed", "expanded", "negative", "sliced")


class GradcheckError(RuntimeError):
    """Raised when a gradient differs from the finite difference."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 0.001,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
    grad_layouts: Sequence[str] = ("contiguous",),
) -> bool:
    """Compares the gradients of `func` with central differences, at `inputs`.

    func: takes the inputs, returns a tensor or a sequence of tensors. Outputs that are not differentiable are ignored.
    inputs: a tensor or a tuple; those that require grad are varied, which means written to while the check runs. They
        should be of dtype float64 or complex128, and no two elements may share memory.
    eps: the step of the differences. atol, rtol: |analytic - numeric| <= atol + rtol * |numeric|.
    raise_exception: raise GradcheckError, otherwise return False.
    nondet_tol: how far two backward passes may differ.
    check_undefined_grad: also gives some outputs no gradient at all.
    check_grad_dtypes: a gradient must have the dtype of its input.
    fast_mode: one random direction on both sides in place of the whole Jacobian.
    grad_layouts (not in PyTorch): strides of the random incoming gradients that are tried besides; any of
        GRADIENT_LAYOUTS, or functions from an output and a random.Random to a gradient of its shape.

    check_batched_grad, check_batched_forward_grad, check_forward_ad and masked are refused: Tenon has no vmap, no forward
    mode and no sparse layouts here.

    Returns True. Raises ValueError when no input requires grad or an input overlaps itself.
    """
    for name, value in (
        ("check_batched_grad", check_batched_grad),
        ("check_batched_forward_grad", check_batched_forward_grad),
        ("check_forward_ad", check_forward_ad),
        ("masked", masked),
    ):
        if value:
            raise NotImplementedError(f"gradcheck: {name} is not supported; only reverse mode is")
    if not check_backward_ad:
        raise ValueError("gradcheck: check_backward_ad=False leaves nothing to check")
    check = _Check(func, _as_tuple(inputs), eps, atol, rtol)
    try:
        check.run(nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode, grad_layouts)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 0.001,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
    grad_layouts: Sequence[str] = ("contiguous",),
) -> bool:
    """Compares the gradients of the gradients of `func` with central differences.

    The gradients by the inputs and by the incoming gradients are both differentiated. grad_outputs: the point in the
    incoming gradients, random unless given; gen_non_contig_grad_outputs makes it strided. All else as in `gradcheck`.
    """
    if check_fwd_over_rev or not check_rev_over_rev:
        raise NotImplementedError("gradgradcheck: only reverse over reverse is supported")
    inputs = _as_tuple(inputs)
    outputs = _differentiable(_as_tuple(func(*inputs)))
    if grad_outputs is None:
        rng = _generator(17)
        layout = "sliced" if gen_non_contig_grad_outputs else "contiguous"
        grad_outputs = tuple(gradient_of_layout(o, layout, rng) for o in outputs)
    grad_outputs = tuple(g.detach().requires_grad_() for g in _as_tuple(grad_outputs))
    if len(grad_outputs) != len(outputs):
        raise ValueError(f"gradgradcheck: {len(grad_outputs)} grad_outputs for {len(outputs)} differentiable outputs")
    count = len(inputs)

    def first_derivative(*arguments):
        with enable_grad():
            at, directions = arguments[:count], arguments[count:]
            wanted = [x for x in at if _varies(x)]
            results = _differentiable(_as_tuple(func(*at)))
            # What the function does not depend on, or not twice, has no gradient, which is zero.
            return tuple(
                g
                for g in _C._grad(results, wanted, directions, create_graph=True, allow_unused=True)
                if g is not None and g.requires_grad
            )

    if not first_derivative(*inputs, *grad_outputs):
        return True  # the gradients are constants
    return gradcheck(
        first_derivative,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        masked=masked,
        grad_layouts=grad_layouts,
    )


def gradient_of_layout(output: Any, layout: Any, rng: Any) -> Any:
    """A random gradient for `output` whose strides are those of `layout`, one of GRADIENT_LAYOUTS.

    0-dim outputs only have contiguous ones. rng: a random.Random.
    """
    sizes = list(output.shape)
    if layout == "contiguous" or not sizes:
        return _random_tensor(sizes, output, rng)
    if layout == "transposed":
        return _random_tensor(sizes[::-1], output, rng).permute(list(range(len(sizes)))[::-1])
    if layout == "expanded":
        # Along the first dimension that has something to repeat.
        repeated = next((i for i, n in enumerate(sizes) if n > 1), 0)
        return _random_tensor([1 if i == repeated else n for i, n in enumerate(sizes)], output, rng).expand(sizes)
    if layout == "negative":
        return _random_tensor(sizes, output, rng).flip(list(range(len(sizes))))
    if layout == "sliced":
        dim = len(sizes) - 1
        return _random_tensor(sizes[:-1] + [2 * sizes[-1] + 1], output, rng).slice(dim, 1, None, 2)
    raise ValueError(f"gradient_of_layout: {layout!r} is none of {', '.join(GRADIENT_LAYOUTS)}")


class _Check:
    """One check: the function, the point, the tolerances; and the numbers found there."""

    def __init__(self, func, inputs, eps, atol, rtol):
        self.func, self.inputs, self.eps, self.atol, self.rtol = func, inputs, eps, atol, rtol
        self.varied = [x for x in inputs if _varies(x)]
        if not self.varied:
            raise ValueError("gradcheck: no input requires grad, so there is nothing to check")
        for i, x in enumerate(inputs):
            if _varies(x) and any(n > 1 and s == 0 for n, s in zip(x.shape, x.strides())):
                raise ValueError(f"gradcheck: input {i} has stride 0, so its elements cannot be varied one by one")

    def run(self, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode, grad_layouts):
        outputs = self.outputs()
        if not outputs:
            # A function of no differentiable output has the gradient zero; there is nothing to compare.
            raise ValueError("gradcheck: no output requires grad, so there is nothing to check")
        # Random gradients for all outputs together, of every layout.
        rng = _generator(23)
        directions = []
        for layout in grad_layouts:
            make = layout if callable(layout) else lambda o, r, name=layout: gradient_of_layout(o, name, r)
            directions.append((getattr(layout, "__name__", layout), [make(o, rng) for o in outputs]))
        if fast_mode:
            for layout, direction in directions:
                self.check_projection(layout, direction, rng)
        else:
            numeric = self.numeric_jacobian()
            self.check_jacobian(numeric, check_undefined_grad)
            for layout, direction in directions:
                self.check_direction(numeric, layout, direction)
        direction = directions[0][1] if directions else [gradient_of_layout(o, "contiguous", rng) for o in outputs]
        self.check_again(direction, nondet_tol)
        if check_grad_dtypes:
            self.check_dtypes(direction)

    # The function and its derivative

    def outputs(self):
        return _differentiable(_as_tuple(self.func(*self.inputs)))

    def values(self):
        """The differentiable outputs as lists of numbers."""
        return [_numbers(o) for o in self.outputs()]

    def gradients(self, directions):
        """For each varied input a list of numbers; None in `directions` leaves an output out."""
        outputs = self.outputs()
        used = [(o, d) for o, d in zip(outputs, directions) if d is not None]
        tensors = _C._grad([o for o, _ in used], self.varied, [d for _, d in used], allow_unused=True)
        for i, (x, g) in enumerate(zip(self.varied, tensors)):
            if g is not None and g.shape != x.shape:
                raise GradcheckError(
                    f"gradcheck: the gradient of input {i} has shape {list(g.shape)}, expected {list(x.shape)}"
                )
        return [[0.0] * x.numel() if g is None else _numbers(g) for x, g in zip(self.varied, tensors)]

    def differences(self, write):
        """The central difference of all outputs' numbers; `write(step)` moves the inputs."""
        write(self.eps)
        above = self.values()
        write(-self.eps)
        below = self.values()
        return [[(a - b) / (2 * self.eps) for a, b in zip(u, v)] for u, v in zip(above, below)]

    def numeric_jacobian(self):
        """[input][element][part][output]: differences along each element; part 1 is along i, of complex inputs."""
        jacobian = []
        for x in self.varied:
            elements = list(_elements(x))
            column = []
            for element in elements:
                value = element.item()
                parts = []
                for unit in (1.0, 1j) if x.is_complex() else (1.0,):
                    parts.append(self.differences(lambda step: _write(element, value + step * unit)))
                _write(element, value)
                column.append(parts)
            jacobian.append(column)
        return jacobian

    def expected(self, numeric, i, directions):
        """What the numeric Jacobian says the gradient of input i is, for lists of numbers as incoming gradients."""
        gradient = []
        for parts in numeric[i]:
            slopes = [_real_product(directions, change) for change in parts]
            gradient.append(slopes[0] if len(slopes) == 1 else complex(*slopes))
        return gradient

    # What is compared

    def check_jacobian(self, numeric, alone):
        """Unit gradients, one element at a time: of each output alone, or with zeros for the others."""
        outputs = self.outputs()
        for k, output in enumerate(outputs):
            for e in range(output.numel()):
                for unit in (1.0, 1j) if output.is_complex() else (1.0,):
                    directions = [None if alone else _zeros(o) for o in outputs]
                    directions[k] = _zeros(output)
                    _write(next(_elements(directions[k], e)), unit)
                    got = self.gradients(directions)
                    lists = [[0.0] * o.numel() for o in outputs]
                    lists[k][e] = unit
                    for i in range(len(self.varied)):
                        self.compare(got[i], self.expected(numeric, i, lists), i, f"of output {k}, element {e}")

    def check_direction(self, numeric, layout, direction):
        got = self.gradients(direction)
        lists = [_numbers(d) for d in direction]
        for i in range(len(self.varied)):
            self.compare(got[i], self.expected(numeric, i, lists), i, f"for a gradient of layout {layout}")

    def check_projection(self, layout, direction, rng):
        got = self.gradients(direction)
        lists = [_numbers(d) for d in direction]
        for i, x in enumerate(self.varied):
            along = _numbers(_random_tensor(list(x.shape), x, rng))
            elements = list(_elements(x))
            values = [e.item() for e in elements]

            def write(step):
                for element, value, unit in zip(elements, values, along):
                    _write(element, value + step * unit)

            change = self.differences(write)
            write(0.0)
            want = _real_product(lists, change)
            self.compare([_real_product([along], [got[i]])], [want], i, f"along a random direction, layout {layout}")

    def check_again(self, direction, tolerance):
        first, second = self.gradients(direction), self.gradients(direction)
        for i, (a, b) in enumerate(zip(first, second)):
            if any(abs(p - q) > tolerance and not (p != p and q != q) for p, q in zip(a, b)):
                raise GradcheckError(f"gradcheck: two backward passes give different gradients of input {i}")

    def check_dtypes(self, direction):
        outputs = self.outputs()
        for i, (x, g) in enumerate(zip(self.varied, _C._grad(outputs, self.varied, direction, allow_unused=True))):
            if g is not None and g.dtype != x.dtype:
                raise GradcheckError(f"gradcheck: the gradient of input {i} is {g.dtype}, expected {x.dtype}")

    def compare(self, got, want, i, where):
        for e, (a, n) in enumerate(zip(got, want)):
            if not abs(a - n) <= self.atol + self.rtol * abs(n):
                raise GradcheckError(
                    f"gradcheck: the gradient of input {i} {where} is {a} at element {e}, where the slope is {n}; "
                    f"all of it: {got}, expected {want}"
                )


def _generator(seed):
    import random  # not at the top, so that `import tenon` stays quick

    return random.Random(seed)


def _as_tuple(x):
    if isinstance(x, _C.Tensor):
        return (x,)
    if not isinstance(x, (tuple, list)):
        raise TypeError(f"gradcheck: expected a Tensor or a sequence of them, got {describe(x)}")
    return tuple(x)


def _varies(x):
    return isinstance(x, _C.Tensor) and x.requires_grad


def _differentiable(outputs):
    return tuple(o for o in outputs if isinstance(o, _C.Tensor) and o.requires_grad)


def _numbers(tensor):
    return tensor.detach().reshape([-1]).tolist()


def _zeros(output):
    return _C.zeros(list(output.shape), dtype=output.dtype, device=output.device)


def _random_tensor(sizes, like, rng):
    out = _C.empty(sizes, dtype=like.dtype, device=like.device)
    for element in _elements(out):
        _write(element, complex(rng.gauss(0, 1), rng.gauss(0, 1)) if like.is_complex() else rng.gauss(0, 1))
    return out


def _elements(tensor, start=0):
    """0-dim views of the elements, in logical order."""
    flat = tensor.detach()
    sizes, strides = list(flat.shape), flat.strides()
    for n in range(start, flat.numel()):
        offset = flat.storage_offset()
        for size, stride in zip(reversed(sizes), reversed(strides)):
            n, position = divmod(n, size)
            offset += position * stride
        yield flat.as_strided([], [], offset)


def _write(element, value):
    with no_grad():
        element.fill_(value)


def _real_product(directions, changes):
    """The real part of the sum of conj(direction) * change."""
    total = 0.0
    for direction, change in zip(directions, changes):
        for v, d in zip(direction, change):
            total += (v.conjugate() * d).real
    return total


_check_module(globals())
