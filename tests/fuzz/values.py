"""Arguments for the fuzz: tensors of every dtype and geometry, numbers and lists, and things that are none of these."""

import decimal
import fractions

import numpy as np

import tenon


class FuzzError(Exception):
    """What the objects below raise on purpose; it must come through as it is."""


class Index:
    """An object that says it is an integer."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value

    def __repr__(self):
        return f"Index({self.value})"


class RaisingIndex:
    def __index__(self):
        raise FuzzError("__index__")

    def __float__(self):
        raise FuzzError("__float__")


class LyingLength(list):
    """A list that says it is longer than it is."""

    def __len__(self):
        return super().__len__() + 3


class Sequence:
    """A sequence that is no list, and ends when it likes."""

    def __init__(self, items, end):
        self.items, self.end = items, end

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        if i >= self.end:
            raise IndexError(i)
        return self.items[i]


class Shrinking(list):
    """Its first element empties the list when it is read."""

    def __init__(self, items):
        super().__init__([_Emptying(self), *items])


class _Emptying:
    def __init__(self, owner):
        self.owner = owner

    def __index__(self):
        self.owner.clear()
        return 1


HUGE = (2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**70), 10**30)
SMALL = (0, 1, 2, 3, 4, 5, -1, -2, -3)
NUMBERS = (0, 1, -1, 2, 0.0, -0.0, 0.5, 2.5, -3.0, float("nan"), float("inf"), float("-inf"), 1e308, 5e-324, True, False)
COMPLEX_NUMBERS = (1j, 2 - 0.5j, complex(0.0, float("inf")), complex(float("nan"), -0.0), complex(-1e308, 1e308))
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128")  # fmt: skip
DEVICES = ("cpu", "meta", "cuda", "cpu:0", "cpu:999", "", "nowhere", "cpu:-1", "meta:1")
TEXTS = ("", "text", "float32", "mean", "\u00e9\U0001f600", "cpu")


class Values:
    """Makes arguments from a random.Random; the same one makes the same arguments."""

    def __init__(self, rng):
        self.rng = rng

    # Tensors

    def sizes(self):
        return [self.rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5)) for _ in range(self.rng.choice((0, 1, 1, 2, 2, 2, 3, 4)))]

    def storage(self, dtype, count):
        rng = self.rng
        if dtype == "bool":
            data = np.array([rng.random() < 0.5 for _ in range(count)], bool)
        elif "float" in dtype or "complex" in dtype:
            edge = (0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e300, 1e-310, 1e38, 6e4)

            def real():
                return rng.choice(edge) if rng.random() < 0.1 else rng.gauss(0, 2)

            data = np.array([complex(real(), real()) if "complex" in dtype else real() for _ in range(count)])
            with np.errstate(all="ignore"):
                data = data.astype("float32" if dtype == "bfloat16" else dtype)
        else:
            info = np.iinfo(dtype)
            edge = (info.min, info.max, info.max - 1)
            data = np.array(
                [rng.choice(edge) if rng.random() < 0.1 else rng.randint(max(-5, info.min), 5) for _ in range(count)], dtype
            )
        if rng.random() < 0.04:
            data.flags.writeable = False
        flat = tenon.from_numpy(data)
        return flat.to(tenon.bfloat16) if dtype == "bfloat16" else flat

    def tensor(self, sizes=None, dtype=None):
        rng = self.rng
        sizes = self.sizes() if sizes is None else sizes
        dtype = dtype or rng.choice(DTYPES + ("float32",) * 6 + ("int64",) * 3)
        n = len(sizes)
        strides, step = [0] * n, 1
        for d in rng.sample(range(n), n) if rng.random() < 0.3 else range(n - 1, -1, -1):
            strides[d] = step
            step *= max(sizes[d], 1)
        roll = rng.random()
        if roll < 0.1:
            strides = [0 if rng.random() < 0.5 else s for s in strides]
        elif roll < 0.25:
            strides = [-s if rng.random() < 0.5 else s for s in strides]
        elif roll < 0.35:
            strides = [2 * s for s in strides]
        elif roll < 0.42:
            strides = [rng.randint(-2, 3) for _ in strides]
        spans = [(s - 1) * t for s, t in zip(sizes, strides)] if 0 not in sizes else []
        offset = -sum(t for t in spans if t < 0) + rng.randint(0, 2)
        count = offset + sum(t for t in spans if t > 0) + 1 + rng.randint(0, 2)
        x = self.storage(dtype, count).as_strided(sizes, strides, offset)
        if rng.random() < 0.05:
            x = x.to("meta")
        if ("float" in dtype or "complex" in dtype) and rng.random() < 0.15:
            x = x.detach().requires_grad_()
            if rng.random() < 0.5:
                x = x * 1
        return x

    # Well-typed arguments, by the schema

    def integer(self, name=""):
        if self.rng.random() < 0.04:
            return self.rng.choice(HUGE)
        if name == "dim" or name.startswith("dim"):
            return self.rng.choice((0, 0, -1, 1, 2, -2))
        return Index(self.rng.choice(SMALL)) if self.rng.random() < 0.03 else self.rng.choice(SMALL)

    def integers(self, name=""):
        if self.rng.random() < 0.6 and name != "dim":
            items = self.sizes()
        else:
            items = [self.integer(name) for _ in range(self.rng.choice((0, 1, 1, 2, 3)))]
        if self.rng.random() < 0.03:
            items.append(self.rng.choice(HUGE))
        roll = self.rng.random()
        return tuple(items) if roll < 0.15 else self.strange_list(items) if roll < 0.2 else items

    def strange_list(self, items):
        return self.rng.choice((LyingLength, Shrinking, lambda i: Sequence(i, self.rng.randint(0, 4)), iter, set))(items)

    def number(self):
        roll = self.rng.random()
        return self.rng.choice(NUMBERS if roll < 0.9 else COMPLEX_NUMBERS if roll < 0.94 else HUGE)

    def of(self, argument, like=None):
        """A value for an argument of a schema (tenon.conformance.table.Argument); `like` has a shape and dtype that fit."""
        rng, kind = self.rng, argument.type
        if argument.optional and rng.random() < 0.4:
            return None
        if argument.is_list:
            if kind == "Tensor":
                count = rng.choice((0, 1, 1, 2, 3))
                if argument.optional_elements:
                    return [None if rng.random() < 0.3 else self.index_tensor(like) for _ in range(count)]
                return [self.matching(like) for _ in range(count)]
            return self.integers(argument.name) if kind == "int" else [self.number() for _ in range(rng.randint(0, 3))]
        if kind == "Tensor":
            if argument.name in ("index", "indices", "target"):
                return self.index_tensor(like)
            if argument.name in ("mask", "condition"):
                return self.tensor(list(like.shape) if like is not None and rng.random() < 0.8 else None, "bool")
            return self.matching(like)
        return {
            "int": lambda: self.integer(argument.name),
            "float": self.number,
            "Scalar": self.number,
            "bool": lambda: rng.random() < 0.5,
            "str": lambda: rng.choice(TEXTS),
            "ScalarType": lambda: getattr(tenon, rng.choice(DTYPES)),
            "Device": lambda: rng.choice(DEVICES),
            "Layout": lambda: tenon.strided,
            "MemoryFormat": lambda: getattr(tenon, rng.choice(("contiguous_format", "preserve_format", "channels_last"))),
            "Generator": lambda: tenon.Generator(),
        }.get(kind, lambda: None)()

    def matching(self, like):
        """A tensor that may go with another: the same shape, one that broadcasts, a transposed one, or any."""
        rng = self.rng
        if like is None or rng.random() < 0.15:
            return self.tensor()
        if rng.random() < 0.1:
            return like  # the very same
        sizes = list(like.shape)
        roll = rng.random()
        if roll < 0.15:
            sizes = [1 if rng.random() < 0.5 else s for s in sizes]
        elif roll < 0.25:
            sizes = sizes[1:]
        elif roll < 0.4:
            sizes = sizes[::-1]
        dtype = str(like.dtype).partition(".")[2] if rng.random() < 0.7 else None
        if rng.random() < 0.1 and like.dim():
            return like.flip([0]) if rng.random() < 0.5 else like.transpose(0, -1)  # overlaps it
        return self.tensor(sizes, dtype)

    def index_tensor(self, like):
        rng = self.rng
        if rng.random() < 0.2:
            return self.tensor(list(like.shape) if like is not None else None, "bool")
        if rng.random() < 0.5 and like is not None:
            return self.tensor(list(like.shape), "int64").abs().clamp(0, 1)
        data = [rng.randint(0, 2) for _ in range(rng.randint(0, 4))]
        return tenon.tensor(data, dtype=tenon.int64)

    # Anything at all

    def anything(self):
        rng = self.rng
        return rng.choice(
            (
                lambda: None,
                lambda: rng.choice(TEXTS),
                lambda: b"bytes",
                lambda: object(),
                lambda: RaisingIndex(),
                lambda: rng.choice(HUGE),
                self.number,
                lambda: complex(1, float("nan")),
                lambda: decimal.Decimal("1.5"),
                lambda: fractions.Fraction(1, 3),
                lambda: np.float32(2.5),
                lambda: np.int8(-3),
                lambda: np.arange(3),
                lambda: [],
                lambda: [None],
                lambda: [[1, 2], [3]],
                lambda: ["text", 1],
                lambda: {"a": 1},
                lambda: tenon.float32,
                lambda: tenon.Tensor,
                lambda: Ellipsis,
                lambda: slice(None, None, -1),
                lambda: self.strange_list([1, 2]),
                self.tensor,
                lambda: [self.tensor(), 1],
                lambda: float,
                lambda: range(3),
            )
        )()
