"""Complex numbers, their parts, and operators that came with them."""

import numpy as np

from .. import complex_numbers
from ..complex_numbers import wide
from .matmul import _ABSENT, _fixed
from ..dtypes import PARTS, real_of
from ..rows import Row, binary, binary_samples, unary, unary_samples
from ..samples import Spec, geometry, sample, with_options


def _sign(x):
    if x.dtype.kind == "c":
        return complex_numbers.sgn(x)
    return x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x))


def _conj(x):
    return np.conj(x) if x.dtype.kind == "c" else x


def _angle(x):
    if x.dtype.kind == "c":
        return np.arctan2(x.imag.astype(np.longdouble), x.real.astype(np.longdouble))
    return np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0))


#: Complex dtypes, by that of their parts.
_WHOLES = {real: name for name, real in PARTS.items()}
_NO_PARTS = ("bool", "integral", "float16", "bfloat16", "complex")


def _joined(s):
    return _WHOLES[s.args[0].dtype]


def _as_complex(a, b):
    return complex_numbers.parts(a, b).astype(np.complex128)


def _as_real(x):
    return np.lib.stride_tricks.as_strided(x.real, (*x.shape, 2), (*x.strides, x.itemsize // 2))


def _pair_samples(m):
    """Floating tensors whose last dimension has the two parts of complex elements of the kind's layout."""
    for shape in m.shapes():
        if m.dtype.name not in _WHOLES:
            yield sample(m.tensor((*shape, 2)))
            continue
        strides, offset, count = geometry(m.kind, shape)
        flat = m.dtype.store(m.values(m.dtype, 2 * count, m.domain, False))
        yield sample(Spec(flat, m.dtype.name, (*shape, 2), (*(2 * t for t in strides), 1), 2 * offset))


def _pairs_as_complex(x):
    return _as_complex(x[..., 0], x[..., 1])


@with_options
def _gradient_samples(m, complex_gradient):
    """A gradient and the operand; the gradient of a real result is real."""
    for shape in m.shapes():
        x = m.tensor(shape)
        yield sample(m.tensor(shape, m.dtype.name if complex_gradient else real_of(m.dtype.name)), x)


def _angle_backward(g, x):
    if x.dtype.kind != "c":
        return np.zeros_like(x)
    wide = x.astype(np.clongdouble)
    return np.where(x == 0, 0, complex_numbers.parts(-wide.imag, wide.real) / np.abs(wide) ** 2 * g)


def _sgn_backward(g, x):
    if x.dtype.kind != "c":
        return np.zeros_like(x)
    wide = x.astype(np.clongdouble)
    unit = wide / np.abs(wide)
    return np.where(x == 0, 0, (g - unit * (np.conj(unit) * g).real) / np.abs(wide))


_GRADIENT = {**{c: "gradients are floating numbers" for c in ("bool", "integral")},
             "promotion": "a gradient has the dtype of its result", "special": "what a gradient of them is, is not said"}  # fmt: skip

ROWS = [
    unary("angle", _angle, result="float", real=True, ulps=1, complex_ulps=3),
    binary("atan2", np.arctan2, result="float", ulps=3, refuse=("complex",)),
    Row("conj", unary_samples(), _conj),
    unary("conj_physical", _conj),
    unary("cosh", wide(np.cosh), result="float", ulps=4, complex_ulps=6),
    binary("hypot", np.hypot, ulps=2, refuse=("complex",), refuse_common=("bool", "integral")),
    Row("complex", binary_samples(), _as_complex, operands=(0, 1), one_dtype=True, refuse=_NO_PARTS, result=_joined),
    Row("polar", binary_samples(), lambda r, t: _as_complex(r * np.cos(t), r * np.sin(t)), operands=(0, 1), one_dtype=True,
        refuse=_NO_PARTS, result=_joined, ulps=6, infinite="class"),
    Row("real", unary_samples(), np.real, real=True, view=True),
    Row("imag", unary_samples(), np.imag, real=True, view=True, refuse=("bool", "integral", "floating")),
    Row("view_as_real", unary_samples(), _as_real, real=True, view=True, refuse=("bool", "integral", "floating")),
    Row("view_as_complex", _pair_samples, _pairs_as_complex, refuse=_NO_PARTS, result=_joined),
    Row("angle_backward", _gradient_samples(False), _angle_backward, result=lambda s: s.args[1].dtype, ulps=8,
        absent=_GRADIENT, no_peer="PyTorch has none"),
    Row("sgn_backward", _gradient_samples(True), _sgn_backward, result=lambda s: s.args[1].dtype, ulps=16,
        absent=_GRADIENT, magnitude=lambda g, x: g / np.where(x == 0, 1, x), no_peer="PyTorch has none"),
    Row("resolve_conj", unary_samples(), lambda x: x),
    unary("sgn", _sign, complex_ulps=4, infinite="class"),
    unary("sinh", wide(np.sinh), result="float", ulps=4, complex_ulps=6),
    unary("tan", wide(np.tan), result="float", ulps=4, complex_ulps=6, grad_domain=(-1, 1)),
    Row("vdot", _fixed("k", "k"), lambda a, b: np.matmul(np.conj(a), b), result="self", ulps=4, complex_ulps=8,
        magnitude=True, infinite="class", absent=_ABSENT, refuse=("bool",),
        one_dtype=(0, 1), inner="dot"),
]  # fmt: skip
