"""Copies, conversions and filling."""

import numpy as np

import tenon
from ..dtypes import BY_NAME
from ..rows import Row, binary_samples, unary_samples
from ..samples import KINDS, sample, with_options

_PINNED = dict.fromkeys([*KINDS, "grad"], "pinned memory is for tensors of the host where a device is loaded: tests/devices/pinned_test.py")
_TARGETS = ("float32", "float64", "int64", "uint8", "bool", "float16", "bfloat16", "complex64", "complex128")


def _convert(x, name):
    """As C converts, but defined everywhere: see docs/differences.md."""
    target = BY_NAME[name]
    if x.dtype.kind == "c" and target.category not in ("complex", "bool"):
        x = x.real
    if x.dtype.kind in "fc" and target.category == "integral":
        whole = np.trunc(np.where(np.isfinite(x), x, 0))
        held = np.isfinite(x) & (whole >= -(2.0**63)) & (whole < 2.0**63)
        x = np.where(held, np.where(held, whole, 0).astype(np.int64), np.iinfo(np.int64).min)
    return target.store(x)


def _to_samples(m):
    for name in ["float64"] if m.kind == "grad" else _TARGETS:
        for shape in m.shapes():
            yield sample(m.tensor(shape), name)


def _to_device_samples(m):
    for s in _to_samples(m):
        yield sample(s.args[0], "cpu", s.args[1])


def _into_samples(m):
    """The second operand broadcasts to the first."""
    for a, b in m.pairs():
        if np.broadcast_shapes(a, b) == a:
            yield sample(m.tensor(a), m.tensor(b))


@with_options
def _from_samples(m, shape):
    """The second operand is written: its shape is `shape` of both."""
    for a, b in m.pairs():
        x, y = m.tensor(a), m.tensor(b)
        loses = BY_NAME[x.dtype].category == "complex" != BY_NAME[y.dtype].category
        if shape(a, b) == b and not loses:
            yield sample(x, y)


def _into(a, b):
    return np.broadcast_to(b, a.shape)


def _close_samples(m):
    for a, b in m.pairs():
        x = m.tensor(a)
        yield sample(x, m.tensor(b))
        yield sample(x, x, 1e-3, 1e-2)
        yield sample(x, x, equal_nan=True)


def _near(a, b, rtol, atol, equal_nan):
    same = (a == b) | (np.isnan(a) & np.isnan(b)) if equal_nan else a == b
    return same | (np.isfinite(np.abs(a - b)) & (np.abs(a - b) <= atol + rtol * np.abs(b)))


def _isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return _near(*(x if x.dtype.kind == "c" else x.astype(np.float64) for x in (a, b)), rtol, atol, equal_nan)


def _item_samples(m):
    if m.kind != "empty":
        yield sample(m.tensor(()))
        yield sample(m.tensor((1, 1, 1, 1) if m.kind == "channels_last" else (1, 1)))


_NO_ITEM = {"empty": "there is no element to take: an error (tests/python/operators/error_test.py)"}


def _source_samples(m):
    """A tensor, and one whose elements it is to show."""
    for shape in m.shapes():
        yield sample(m.tensor((3,)), m.tensor(shape, layout=None if m.kind != "plain" else "contiguous"))


_ONE_DTYPE = {"promotion": "dtypes must be the same (names_test.py)"}


def _storage_of(b):
    """All elements of the storage that an array is a view of."""
    while b.base is not None:
        b = b.base
    return b


def _resized(x, size):
    """The storage's elements from where the tensor starts, in order."""
    storage = _storage_of(x)
    offset = (x.__array_interface__["data"][0] - storage.__array_interface__["data"][0]) // x.itemsize
    return storage[offset : offset + 2].reshape(size)


_GROWS = {**{k: "the storage is too small for the new size, and grows by elements of any value" for k in
             ("negative", "empty", "zero_dim")}, "grad": "a tensor that gradients flow through is not resized"}  # fmt: skip


def _storage_row(name, setter, reference=lambda a, b: b):
    """`self` shows the elements of a storage from then on. A view cannot, so that the samples set a copy."""
    return Row(name, _source_samples, reference, result="self", absent=_ONE_DTYPE, rebinds=setter,
               call=lambda a, *rest: setter(a.clone(), *rest))  # fmt: skip


def _set_geometry(a, b):
    return a.set_(b.untyped_storage(), b.storage_offset(), tuple(b.shape), tuple(b.stride()))


ROWS = [
    Row("clone contiguous", unary_samples(), lambda x: x),
    Row("_copy_from", _from_samples(np.broadcast_shapes), lambda a, b: np.broadcast_to(a, b.shape), result=lambda s: s.args[1].dtype,
        call=lambda a, b: tenon.ops.aten._copy_from(a, b.clone()), no_peer="not in PyTorch's module"),
    Row("_copy_from_and_resize", _from_samples(lambda a, b: b), lambda a, b: a, result=lambda s: s.args[1].dtype,
        call=lambda a, b: tenon.ops.aten._copy_from_and_resize(a, b.detach().clone()), grad_constant=(1,),
        no_peer="not in PyTorch's module"),
    Row("copy_ copy", _into_samples, _into, result="self"),
    Row("fill.Scalar", unary_samples(2), lambda x, v: np.full(x.shape, v), result="self", direct=True),
    Row("fill.Tensor", lambda m: (sample(m.tensor(s), m.tensor(())) for s in m.shapes()), _into, result="self", direct=True),
    Row("equal", binary_samples(), lambda a, b: a.shape == b.shape and bool((a == b).all()), result="bool", operands=(0, 1)),
    Row("fill_.Scalar", unary_samples(2), lambda x, v: np.full(x.shape, v), result="self", fills=True),
    Row("fill_.Tensor", lambda m: (sample(m.tensor(s), m.tensor(())) for s in m.shapes()), _into, result="self",
        fills=True),
    _storage_row("set_.source_Tensor", lambda a, b: a.set_(b)),
    _storage_row("set_.source_Storage", lambda a, b: a.set_(b.untyped_storage()), lambda a, b: _storage_of(b)),
    _storage_row("set_.source_Storage_storage_offset", _set_geometry),
    Row("zero_", unary_samples(), np.zeros_like, result="self", fills=True),
    Row("is_nonzero", _item_samples, lambda x: bool(x.reshape(-1)[0] != 0), result="bool", absent=_NO_ITEM),
    Row("item _local_scalar_dense", _item_samples, lambda x: x.reshape(-1)[0].item(), result="self", absent=_NO_ITEM),
    Row("isclose", _close_samples, _isclose, result="bool", operands=(0, 1), one_dtype=True),
    Row("allclose", _close_samples, lambda *a, **k: bool(_isclose(*a, **k).all()), result="bool", operands=(0, 1),
        one_dtype=True, inner="isclose"),
    Row("is_pinned", unary_samples(), lambda x: False, result="bool"),
    Row("pin_memory _pin_memory", lambda m: (), lambda x: x, absent=_PINNED),
    Row("_to_copy", _to_samples, _convert, result=lambda s: s.args[1], call=lambda x, dtype: x.to(dtype=dtype, copy=True)),
    Row("to.dtype", _to_samples, _convert, result=lambda s: s.args[1], direct=True),
    Row("to.dtype_layout", _to_samples, _convert, result=lambda s: s.args[1],
        call=lambda x, dtype: x.to(dtype=dtype)),
    Row("to.device", _to_device_samples, lambda x, _, name: _convert(x, name), result=lambda s: s.args[2], direct=True),
    Row("to.other", binary_samples(), lambda a, b: a, result=lambda s: s.args[1].dtype, direct=True),
    Row("type_as", binary_samples(), lambda a, b: a, result=lambda s: s.args[1].dtype),
    Row("resize_", lambda m: (sample(m.tensor(s), [2, 1]) for s in m.shapes()), _resized, result="self", absent=_GROWS),
]  # fmt: skip
