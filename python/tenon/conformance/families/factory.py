"""Factories: new tensors from sizes and numbers."""

from math import ceil

import numpy as np

from ..rows import Row, unary_calls, unary_samples
from ..samples import sample, with_options

_SIZES = {"plain": [[3, 5], [7]], "empty": [[0], [2, 0]], "zero_dim": [[]], "large": [[2**17 + 1]]}


@with_options
def _sized(m, *extra):
    for size in _SIZES.get(m.kind, ()):
        yield sample(size, *extra, dtype=m.dtype.name)


@with_options
def _numbers(m, *calls, needs=(), large=()):
    if m.kind in ("plain", "large") and m.dtype.category not in needs:
        for call in calls if m.kind == "plain" else large:
            yield sample(*call, dtype=m.dtype.name)


@with_options
def _new(m, *extra):
    for size in _SIZES.get(m.kind, ()):
        yield sample(m.tensor((2,)), size, *extra)


def _given(s):
    return s.kwargs["dtype"]


def _arange(*call, dtype):
    start, end, step = (0, *call, 1) if len(call) == 1 else (*call, 1) if len(call) == 2 else call
    count = max(ceil((end - start) / step), 0)
    return start + np.arange(count) * step


def _linspace(start, end, steps, dtype):
    return np.linspace(start, end, steps)


def _uninitialised(result, *inputs):
    """There is nothing to compare but what the matrix compares anyhow."""


_KINDS_OF_SIZES = {k: "takes sizes, no tensor" for k in
                   ("transposed", "expanded", "negative", "sliced", "channels_last", "overlapping", "special",
                    "promotion")}  # fmt: skip
_KINDS_OF_NUMBERS = {**_KINDS_OF_SIZES, "empty": "takes numbers, no tensor", "zero_dim": "takes numbers, no tensor"}
_NEW = {k: "only dtype and device of self count" for k in _KINDS_OF_SIZES}
_UNINITIALISED = "elements are uninitialised: shape, dtype and strides are checked"


def _sized_row(name, value, *extra):
    return Row(name, _sized(*extra), lambda size, *a, dtype: np.full(size, value(*a)), result=_given, absent=_KINDS_OF_SIZES)


def _number_row(name, reference, *calls, needs=(), large=(), ulps=0, **options):
    absent = {**_KINDS_OF_NUMBERS, **{c: "two truth values have no steps" for c in needs}}
    return Row(name, _numbers(*calls, needs=needs, large=large), reference, result=_given, absent=absent, ulps=ulps, **options)


def _strides_are(result, size, stride, **_):
    assert tuple(result.stride()) == tuple(stride), f"strides {result.stride()}, expected {stride}"


def _strided(m):
    if m.kind == "plain":
        yield sample([2, 3], [1, 2], dtype=m.dtype.name)
        yield sample([2, 3], [0, 1], dtype=m.dtype.name)
        yield sample([2, 3], [-3, 1], dtype=m.dtype.name)


def _new_strided(m):
    if m.kind == "plain":
        yield sample(m.tensor((2,)), [2, 3], [1, 2])
        yield sample(m.tensor((2,)), [2, 3], [-3, 1])


def _new_strides_are(result, x, size, stride):
    _strides_are(result, size, stride)


def _places(function):
    return lambda row, col, offset=0, dtype=None: np.array(function(row, offset, col)).reshape(2, -1)


_TRIANGLE = dict(absent={"promotion": "one operand", "zero_dim": "needs two dimensions"}, result="self")
_PLACES = [(3, 4), (4, 3, 1), (4, 3, -2), (0, 3), (3, 0, 1), (2, 2, 5), (2, 2, -5)]

#: Steps need an order.
_ORDERED = dict(refuse=("complex",))

ROWS = [
    _number_row("arange", _arange, (5,), (0,), (2.5,), needs=("bool",), large=[(2**17 + 1,)], **_ORDERED),
    _number_row("arange.start", _arange, (1, 6), (-2, 3), (3, 3), needs=("bool",), large=[(1, 2**17 + 2)], direct=True, **_ORDERED),
    _number_row("arange.start_step", _arange, (1, 6, 2), (5, 0, -2), (0, 1, 0.25), needs=("bool", "integral"), large=[(0, 2**15 + 0.25, 0.25)], **_ORDERED),
    _number_row("linspace", _linspace, (0, 4, 5), (-1, 1, 3), (2, 2, 1), (1, 0, 0), needs=("bool",), large=[(0, 4, 2**17 + 1)], ulps=2),
    _number_row("scalar_tensor", lambda v, dtype: np.asarray(v), (1,), (0,), (2.0,)),
    _number_row("eye", lambda n, dtype: np.eye(n), (3,), (0,), large=[(515,)]),
    _number_row("eye.m", lambda n, m, dtype: np.eye(n, m), (3, 2), (2, 4), (0, 3), large=[(1025, 3)]),
    _sized_row("ones", lambda: 1),
    _sized_row("zeros", lambda: 0),
    _sized_row("full", lambda v: v, 1),
    Row("empty.memory_format", _sized(), result=_given, absent=_KINDS_OF_SIZES, unreferenced=_UNINITIALISED,
        properties=lambda r, size, **_: None),
    Row("empty_strided", _strided, result=_given, absent=_KINDS_OF_NUMBERS, unreferenced=_UNINITIALISED,
        properties=_strides_are, no_peer="negative strides"),
    Row("empty_like", unary_samples(), unreferenced=_UNINITIALISED, properties=_uninitialised),
    Row("full_like", unary_samples(1), lambda x, v: np.full(x.shape, v)),
    Row("ones_like", unary_samples(), lambda x: np.ones(x.shape)),
    Row("zeros_like", unary_samples(), lambda x: np.zeros(x.shape)),
    Row("new_empty_strided", _new_strided, unreferenced=_UNINITIALISED, properties=_new_strides_are, absent={**_NEW, "empty": "takes sizes", "zero_dim": "takes sizes"},
        result="self", no_peer="negative strides"),
    Row("tril", unary_calls((), (1,), (-1,), least=2), lambda x, k=0: np.tril(x, k), **_TRIANGLE),
    Row("tril_", unary_calls((), (1,), least=2), lambda x, k=0: np.tril(x, k), **_TRIANGLE),
    Row("triu", unary_calls((), (1,), (-1,), least=2), lambda x, k=0: np.triu(x, k), **_TRIANGLE),
    Row("triu_", unary_calls((), (1,), least=2), lambda x, k=0: np.triu(x, k), **_TRIANGLE),
    _number_row("tril_indices", _places(np.tril_indices), *_PLACES, large=[(1025, 65)]),
    _number_row("triu_indices", _places(np.triu_indices), *_PLACES, large=[(65, 1025)]),
    Row("new_empty", _new(), unreferenced=_UNINITIALISED, properties=_uninitialised, absent=_NEW, result="self"),
    Row("new_full", _new(1), lambda x, size, v: np.full(size, v), absent=_NEW, result="self"),
    Row("new_ones", _new(), lambda x, size: np.ones(size), absent=_NEW, result="self"),
    Row("new_zeros", _new(), lambda x, size: np.zeros(size), absent=_NEW, result="self"),
]  # fmt: skip
