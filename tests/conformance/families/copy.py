"""Copies, conversions and filling."""

import numpy as np

from conformance.dtypes import BY_NAME
from conformance.rows import Row, unary_samples
from conformance.samples import sample

_TARGETS = ("float32", "float64", "int64", "uint8", "bool", "float16", "bfloat16")


def _convert(x, name):
    """As C converts, but defined everywhere: see docs/differences.md."""
    target = BY_NAME[name]
    if x.dtype.kind in "fc" and target.category == "integral":
        whole = np.trunc(np.where(np.isfinite(x), x, 0))
        held = np.isfinite(x) & (whole >= -(2.0**63)) & (whole < 2.0**63)
        x = np.where(held, np.where(held, whole, 0).astype(np.int64), np.iinfo(np.int64).min)
    return target.store(x)


def _to_samples(m):
    for name in ["float64"] if m.kind == "grad" else _TARGETS:
        for shape in m.shapes():
            yield sample(m.tensor(shape), name)


def _pair_samples(m):
    for a, b in m.pairs():
        yield sample(m.tensor(a), m.tensor(b))


def _into_samples(m):
    """The second operand broadcasts to the first."""
    for a, b in m.pairs():
        if np.broadcast_shapes(a, b) == a:
            yield sample(m.tensor(a), m.tensor(b))


def _into(a, b):
    return np.broadcast_to(b, a.shape)


def _close_samples(m):
    for a, b in m.pairs():
        x = m.tensor(a)
        yield sample(x, m.tensor(b))
        yield sample(x, x, 1e-3, 1e-2)
        yield sample(x, x, equal_nan=True)


def _isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(a.astype(np.float64), b.astype(np.float64), rtol, atol, equal_nan)


def _item_samples(m):
    if m.kind in ("zero_dim", "special", "negative", "sliced"):
        yield sample(m.tensor(()))
        yield sample(m.tensor((1, 1)))


def _plain_pairs(m):
    if m.kind == "plain":
        yield sample(m.tensor((3,)), m.tensor((2, 3)))


_SET = {k: "strides, offsets and empty sizes: tests/python/names_test.py" for k in
        ("transposed", "expanded", "negative", "sliced", "channels_last", "overlapping", "empty", "zero_dim", "special",
         "promotion")}  # fmt: skip

ROWS = [
    Row("clone", unary_samples(), lambda x: x),
    Row("contiguous", unary_samples(), lambda x: x),
    Row("copy_", _into_samples, _into, result="self"),
    Row("equal", _pair_samples, lambda a, b: a.shape == b.shape and bool((a == b).all()), result="bool", operands=(0, 1)),
    Row("fill_.Scalar", unary_samples(2), lambda x, v: np.full(x.shape, v), result="self"),
    Row("fill_.Tensor", lambda m: (sample(m.tensor(s), m.tensor(())) for s in m.shapes()), _into, result="self"),
    Row("set_.source_Tensor", _plain_pairs, lambda a, b: b, result="self", absent=_SET),
    Row("set_.source_Storage", _plain_pairs, lambda a, b: b.reshape(-1), result="self", absent=_SET,
        call=lambda a, b: a.set_(b.untyped_storage())),
    Row("set_.source_Storage_storage_offset", _plain_pairs, lambda a, b: b.reshape(-1)[1:3].reshape(2, 1), result="self",
        absent=_SET, call=lambda a, b: a.set_(b.untyped_storage(), 1, (2, 1))),
    Row("zero_", unary_samples(), np.zeros_like, result="self"),
    Row("is_nonzero", _item_samples, lambda x: bool(x.reshape(-1)[0] != 0), result="bool"),
    Row("item", _item_samples, lambda x: x.reshape(-1)[0].item(), result="self"),
    Row("_local_scalar_dense", _item_samples, lambda x: x.reshape(-1)[0].item(), result="self"),
    Row("isclose", _close_samples, _isclose, result="bool", operands=(0, 1), one_dtype=True),
    Row("allclose", _close_samples, lambda *a, **k: bool(_isclose(*a, **k).all()), result="bool", operands=(0, 1),
        one_dtype=True, inner="isclose"),
    Row("_to_copy", _to_samples, _convert, result=lambda s: s.args[1], call=lambda x, dtype: x.to(dtype=dtype, copy=True)),
    Row("to.dtype", _to_samples, _convert, result=lambda s: s.args[1], call=lambda x, dtype: x.to(dtype)),
    Row("to.dtype_layout", _to_samples, _convert, result=lambda s: s.args[1],
        call=lambda x, dtype: x.to(dtype=dtype)),
    Row("to.device", _to_samples, _convert, result=lambda s: s.args[1], call=lambda x, dtype: x.to(x.device, dtype)),
    Row("to.other", _pair_samples, lambda a, b: a, result=lambda s: s.args[1].dtype),
    Row("type_as", _pair_samples, lambda a, b: a, result=lambda s: s.args[1].dtype),
    Row("resize_", lambda m: (sample(m.tensor(s), [2, 1]) for s in [(4,), (2, 3)] if m.kind == "plain"),
        lambda x, size: x.reshape(-1)[:2].reshape(size), result="self"),
]  # fmt: skip
