"""Values of every kind that tenon.save takes, and whether two are the same: for recorded/own_2.tenon and its test.

The file was written by the release before C++ wrote checkpoints, when Python's pickle did:

    PYTHONPATH=OTHER/build/release/python .venv/bin/python tests/io/own_values.py tests/io/recorded/own_2.tenon
"""

import collections
import sys

import numpy as np

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "complex64", "complex128", "bool", "uint8", "int8", "int16", "int32", "int64",
    "float8_e4m3fn", "float8_e5m2",
]  # fmt: skip


def every_kind(tenon):
    """The same values at each call."""
    raw = np.arange(32, dtype=np.uint8) % 2
    tensors = {name: tenon.from_numpy(raw.copy()).view(getattr(tenon, name)) for name in DTYPES}
    ordered = collections.OrderedDict([("b", 1), ("a", tenon.ones(2))])
    ordered._metadata = {"": {"version": 1}}
    tagged = tenon.arange(3.0)
    tagged.tag = ["a tag", 7]
    parameter = tenon.nn.Parameter(tenon.full((2, 2), 0.5))
    parameter.note = "kept"
    shared = [1, 2]
    circular = {"name": "circular"}
    circular["self"] = circular
    in_tuple = ([],)
    in_tuple[0].append(in_tuple)
    model = tenon.nn.Linear(2, 3)
    with tenon.no_grad():
        model.weight.copy_(tenon.arange(6.0).reshape(3, 2))
        model.bias.zero_()
    optimizer = tenon.optim.Adam(model.parameters(), lr=0.125, betas=(0.5, 0.75))
    for _ in range(3):
        optimizer.zero_grad()
        model(tenon.ones(1, 2)).sum().backward()
        optimizer.step()
    deep = []
    for _ in range(300):
        deep = [deep]
    return {
        "tensors": tensors,
        "scalars": [tenon.tensor(2.5), tenon.tensor(True), tenon.tensor(False), tenon.tensor(3, dtype=tenon.uint8)],
        "empty": tenon.zeros(0, 3),
        "large": tenon.arange(20_000, dtype=tenon.int16),
        "strided": tenon.arange(6).reshape(2, 3).t(),
        "leaf": tenon.ones(2, requires_grad=True),
        "history": tenon.ones(2, requires_grad=True) * 3,
        "tagged": tagged,
        "parameter": parameter,
        "frozen parameter": tenon.nn.Parameter(tenon.ones(1), requires_grad=False),
        "numbers": [0, 1, 255, 256, 65535, 65536, -1, -(1 << 31), 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 63, -(1 << 200), 1 << 3000],
        "floats": [0.5, -0.0, float("inf"), 1e-320],
        "plain": [True, False, None, 1 - 2j, "", "größe", "\ud800", "x" * 300, b"", b"\xff" * 300, b"x"],
        "containers": ((), (1,), (1, 2, 3, 4), set(), {1, "a", (2, 3)}, frozenset([4, frozenset([5])]), [], {}, {(1, ("k",)): 2}),
        "sizes": [tenon.Size([]), tenon.Size([2, 3])],
        "dtypes": [getattr(tenon, name) for name in DTYPES],
        "devices": [tenon.device("cpu"), tenon.device("cpu:0"), tenon.device("meta")],
        "ordered": ordered,
        "shared": [shared, shared],
        "circular": circular,
        "circular tuple": in_tuple,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "deep": deep,
        1: "a key that is a number",
        None: {True: 2.5, 3.5: "x", b"y": None},
    }  # fmt: skip


def same(tenon, a, b, seen=None):
    """Whether two values are the same, to the bit and the type."""
    seen = set() if seen is None else seen
    if (id(a), id(b)) in seen:
        return True
    seen.add((id(a), id(b)))
    if type(a) is not type(b):
        return False
    if isinstance(a, tenon.Tensor):
        sizes = a.shape == b.shape and a.dtype is b.dtype and a.device == b.device and a.requires_grad == b.requires_grad
        bits = a.detach().contiguous().flatten().view(tenon.uint8).tolist() == b.detach().contiguous().flatten().view(tenon.uint8).tolist()
        return sizes and bits and same(tenon, vars(a), vars(b), seen)
    if isinstance(a, dict):
        items = len(a) == len(b) and all(same(tenon, x, y, seen) for x, y in zip(a.items(), b.items()))
        return items and (type(a) is dict or same(tenon, vars(a), vars(b), seen))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(tenon, x, y, seen) for x, y in zip(a, b))
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return a == b


if __name__ == "__main__":
    import tenon

    sys.setrecursionlimit(10_000)
    tenon.save(every_kind(tenon), sys.argv[1])
