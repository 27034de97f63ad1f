"""Wrong arguments: some thirty kinds of objects that are no tensors, or none that fit, and plausible ones to go with them."""

import collections
import ctypes
import decimal
import fractions
import pathlib
import types

import numpy as np
from values import DTYPES, HUGE, FuzzError, LyingLength, RaisingIndex, Sequence

import tenon


class Plain:
    """A class that is handed in where an object is expected."""


def raising(*args, **kwargs):
    """A callable that is handed in: what it raises must come through."""
    raise FuzzError("called")


class Structure(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int), ("second", ctypes.c_double)]


class BadText(str):
    """A text that has no UTF-8."""

    def __new__(cls):
        return super().__new__(cls, "\ud800")


#: name: maker from a random.Random.
KINDS = {
    "none": lambda rng: None,
    "bool": lambda rng: rng.random() < 0.5,
    "int": lambda rng: rng.choice((0, -1, 1, 5, -7, 99)),
    "huge int": lambda rng: rng.choice(HUGE),
    "float": lambda rng: rng.choice((2.5, -0.5, float("nan"), float("inf"), 1e308)),
    "complex": lambda rng: complex(1, -2),
    "text": lambda rng: rng.choice(("", "text", "mean", "cpu", "float32", "a" * 300)),
    "text without UTF-8": lambda rng: BadText(),
    "bytes": lambda rng: rng.choice((b"", b"bytes", bytearray(b"array"))),
    "empty list": lambda rng: rng.choice(([], ())),
    "list of numbers": lambda rng: rng.choice(([1, 2], (0,), [2.5], [-1, 3, 2], [2**63], [True])),
    "list of texts": lambda rng: ["text", 1],
    "list of None": lambda rng: [None, None],
    "ragged list": lambda rng: [[1, 2], [3]],
    "deep list": lambda rng: [[[[[1]]]]],
    "list that contains itself": lambda rng: _recursive(),
    "dict": lambda rng: rng.choice(({}, {"a": 1}, {1: tenon.ones(1)}, collections.OrderedDict(b=2))),
    "set": lambda rng: {1, 2},
    "iterator": lambda rng: iter([1, 2]),
    "generator": lambda rng: (i for i in (tenon.ones(1), 2)),
    "lying list": lambda rng: rng.choice((LyingLength([1, 2]), Sequence([1, 2], 1))),
    "object": lambda rng: object(),
    "raising object": lambda rng: RaisingIndex(),
    "class": lambda rng: rng.choice((Plain, int, tenon.Tensor, tenon.nn.Linear)),
    "function": lambda rng: raising,
    "module": lambda rng: types,
    "ellipsis": lambda rng: Ellipsis,
    "slice": lambda rng: slice(None, None, -1),
    "range": lambda rng: range(3),
    "decimal": lambda rng: rng.choice((decimal.Decimal("1.5"), fractions.Fraction(1, 3))),
    "NumPy scalar": lambda rng: rng.choice((np.float32(2.5), np.int8(-3), np.bool_(True), np.longdouble(1), np.complex64(1j))),
    "NumPy array": lambda rng: rng.choice((np.arange(3), np.zeros((0, 2)), np.array(2.0), np.ones(2, np.uint16), np.ones(3, ">f4"))),
    "date": lambda rng: rng.choice((np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.array(["2020-01-01"], "M8[D]"))),
    "NumPy array without numbers": lambda rng: rng.choice(
        (np.zeros(2, "i4,f8"), np.array([object()]), np.zeros(2, "V3"), np.array(["a"]), np.zeros(2, "i4,f8")[0])
    ),
    "ctypes": lambda rng: rng.choice(((ctypes.c_int * 3)(1, 2, 3), (ctypes.c_double * 2 * 3)(), (Structure * 2)(), ctypes.c_int(4))),
    "memoryview": lambda rng: rng.choice((memoryview(b"abcd").cast("c"), memoryview(b"abcdefgh")[::-1], memoryview(b""))),
    "dtype": lambda rng: getattr(tenon, rng.choice(DTYPES)),
    "device": lambda rng: rng.choice((tenon.device("cpu"), tenon.device("meta"))),
    "path": lambda rng: pathlib.Path("missing/file"),
    "0-dim tensor": lambda rng: tenon.tensor(rng.choice((1, 2.5, True, 1j))),
    "empty tensor": lambda rng: tenon.ones(rng.choice(([0], [2, 0], [0, 0, 3]))),
    "meta tensor": lambda rng: tenon.ones(2, 3, device="meta"),
    "tensor of another kind": lambda rng: tenon.ones(2, 3).to(getattr(tenon, rng.choice(DTYPES))),
    "tensor of another shape": lambda rng: tenon.ones(rng.choice(([7], [1, 1, 1, 1, 1], [4, 5], [3, 2]))),
    "list of tensors": lambda rng: [tenon.ones(2), rng.choice((tenon.ones(3), None, 1, tenon.ones(2, dtype=tenon.int64)))],
    "module of layers": lambda rng: tenon.nn.Linear(2, 3),
    "generator of random numbers": lambda rng: tenon.Generator(),
}


def _recursive():
    items = [1]
    items.append(items)
    return items


#: Of parameters by name: what is right for them.
_RIGHT = {
    "dim": 0, "dims": [0], "axis": 0, "size": [2, 3], "shape": [2, 3], "sizes": [2, 3], "keepdim": False, "dtype": tenon.float32,
    "device": "cpu", "n": 2, "k": 1, "p": 0.5, "lr": 0.1, "reduction": "mean", "mode": "constant", "requires_grad": False,
    "kernel_size": 2, "stride": 1, "padding": 0, "dilation": 1, "groups": 1, "eps": 1e-5, "num_features": 3, "in_features": 2,
    "out_features": 3, "in_channels": 3, "out_channels": 4, "num_classes": 4, "name": "name", "equation": "ij->i", "step_size": 2,
}  # fmt: skip


def right(parameter, rng):
    """A value that a parameter of that name may well take."""
    if parameter in _RIGHT:
        return _RIGHT[parameter]
    if parameter in ("index", "indices", "target"):
        return tenon.tensor([0, 1])
    if parameter in ("params",):
        return [tenon.nn.Parameter(tenon.ones(2))]
    if parameter in ("tensors",):
        return [tenon.ones(2), tenon.ones(2)]
    if parameter in ("module", "model"):
        return tenon.nn.Linear(2, 3)
    if parameter in ("optimizer",):
        return tenon.optim.SGD([tenon.nn.Parameter(tenon.ones(2))], lr=0.1)
    if parameter in ("input", "self", "other", "tensor", "x", "y", "weight", "src", "mask"):
        return tenon.arange(6.0).reshape(2, 3)
    return rng.choice((1, 0.5, tenon.arange(6.0).reshape(2, 3), [1, 2]))


def arguments(called, rng):
    """(args, kwargs) for a public.Callable: most of them right, at least one wrong, or one too many or few."""
    kinds = list(KINDS)
    names = called.parameters
    count = min(len(names), max(called.required, 1) + rng.choice((0, 0, 0, 1, 2)))
    if called.protocol:
        return [KINDS[rng.choice(kinds)](rng) for _ in range(count)], {}
    spoiled = {rng.randrange(count)} if count else set()
    if rng.random() < 0.1:
        spoiled = set(range(count))
    values = [KINDS[rng.choice(kinds)](rng) if i in spoiled else right(names[i], rng) for i in range(count)]
    split = rng.randint(called.required if rng.random() < 0.9 else 0, count) if count >= called.required else count
    args, kwargs = values[:split], dict(zip(names[split:count], values[split:]))
    roll = rng.random()
    if roll < 0.03 and args:
        args.pop()
    elif roll < 0.06:
        args.append(KINDS[rng.choice(kinds)](rng))
    elif roll < 0.08:
        kwargs["nonsense"] = 1
    if "num_workers" in kwargs:
        kwargs["num_workers"] = "many"
    return args, kwargs
