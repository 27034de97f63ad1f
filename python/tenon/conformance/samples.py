"""Random tensors of every dtype, stride and kind of values, and the samples that are made of them."""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from .dtypes import BY_NAME

#: Strides: kinds whose tensors have ordinary values and other strides than the contiguous ones.
LAYOUTS = ("transposed", "expanded", "negative", "sliced", "channels_last", "overlapping")
#: All kinds of samples that are compared with a reference.
KINDS = ("plain", *LAYOUTS, "empty", "zero_dim", "special", "promotion")


def geometry(layout, shape):
    """(strides, offset, elements of the storage) for tensors of `shape`."""
    shape = list(shape)
    n = len(shape)

    def dense(order):
        strides, step = [0] * n, 1
        for d in reversed(order):
            strides[d] = step
            step *= max(shape[d], 1)
        return strides

    offset, spare = 0, 0
    if layout == "transposed":
        strides = dense(list(range(n))[::-1])
    elif layout == "expanded":
        # Every other dimension repeats.
        strides = [0 if d % 2 == 0 else s for d, s in enumerate(dense(range(n)))]
    elif layout == "negative":
        strides = [-s for s in dense(range(n))]
        offset = sum((s - 1) * -t for s, t in zip(shape, strides) if s > 0)
    elif layout == "sliced":
        # Every other element of the last dimension, rows apart from each other, not from the start.
        strides = [2 * s + (d < n - 1) for d, s in enumerate(dense(range(n)))]
        for d in range(n - 2, -1, -1):
            strides[d] = strides[d + 1] * shape[d + 1] + 1
        offset, spare = 3, 2
    elif layout == "offset":
        # Contiguous, with other elements before and after.
        strides, offset, spare = dense(range(n)), 5, 2
    elif layout == "channels_last" and n in (4, 5):
        strides = dense([0, *range(2, n), 1])
    elif layout == "overlapping":
        strides = [1] * n
    else:
        strides = dense(range(n))
    top = offset + sum((s - 1) * t for s, t in zip(shape, strides) if s > 0 and t > 0)
    return tuple(strides), offset, max(top + 1 + spare, 1)


@dataclass
class Spec:
    """A tensor to be built by any library: elements of a storage, and a geometry over them."""

    flat: np.ndarray  # in the dtype that references compute in; values that `dtype` holds exactly
    dtype: str
    shape: tuple
    strides: tuple
    offset: int
    requires_grad: bool = False

    @property
    def dim(self):
        return len(self.shape)

    def array(self):
        """A NumPy view of the same geometry, in the dtype that references compute in."""
        step = self.flat.itemsize
        return np.lib.stride_tricks.as_strided(self.flat[self.offset :], self.shape, [s * step for s in self.strides])

    def stored(self):
        """The storage's elements in NumPy's dtype for them."""
        with np.errstate(all="ignore"):
            return self.flat.astype(BY_NAME[self.dtype].storage)


@dataclass
class Sample:
    """Arguments of one call. Specs describe tensors, also inside lists."""

    args: tuple
    kwargs: dict = field(default_factory=dict)

    def map(self, f):
        def each(x):
            if isinstance(x, Spec):
                return f(x)
            return type(x)(each(e) for e in x) if isinstance(x, (list, tuple)) else x

        return tuple(each(a) for a in self.args), {k: each(v) for k, v in self.kwargs.items()}

    def specs(self):
        found = []
        self.map(found.append)
        return found

    def __str__(self):
        def text(x):
            if isinstance(x, Spec):
                return f"{x.dtype}{list(x.shape)} strides {list(x.strides)}"
            return f"[{', '.join(map(text, x))}]" if isinstance(x, (list, tuple)) else repr(x)

        return ", ".join([*map(text, self.args), *(f"{k}={text(v)}" for k, v in self.kwargs.items())])


def sample(*args, **kwargs):
    return Sample(args, kwargs)


def with_options(samples):
    """Samples that follow from a Maker and from options, as a function of the options that returns the samples of a row."""
    return lambda *options, **named: lambda m: samples(m, *options, **named)


SPECIAL_FLOATS = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, -2.5)


class Maker:
    """Makes the tensors of one cell: one dtype, one kind. Samplers ask it for shapes and tensors and know no more."""

    def __init__(self, dtype, kind, rng, domain=(-4.0, 4.0), second=None, extremes=True, flushed=()):
        self.dtype, self.kind, self.rng, self.domain = BY_NAME[dtype], kind, rng, domain
        self.extremes, self.flushed = extremes, flushed
        #: The dtype of all but the first tensor, where operands of different dtypes are tried.
        self.second = BY_NAME[second or dtype]
        self.made = 0

    def samples(self, sampler):
        """What a row's sampler yields; the first tensor of each sample has the cell's own dtype."""
        found = []
        for s in sampler(self):
            found.append(s)
            self.made = 0
        return found

    # Shapes

    def shapes(self):
        """Shapes of tensors of any rank, as the kind has them."""
        return {
            "empty": [(0,), (2, 0, 3)],
            "zero_dim": [()],
            "channels_last": [(2, 3, 2, 4)],
            "special": [(3, 7), (19,)],
            "promotion": [(5,)],
            "grad": [(2, 3), ()],
        }.get(self.kind) or ([(3, 5), (37,)] if self.kind == "plain" else [(3, 5), (2, 3, 4)])

    def pairs(self):
        """Pairs of shapes that broadcast."""
        return {
            "empty": [((0,), (0,)), ((2, 0), (1,)), ((0, 3), (1, 3))],
            "zero_dim": [((), ()), ((), (3,)), ((2, 2), ())],
            "channels_last": [((2, 3, 2, 4), (2, 3, 2, 4)), ((2, 3, 2, 4), (3, 1, 1))],
            "promotion": [((5,), (5,)), ((5,), ()), ((), (2,)), ((), ())],
            "grad": [((2, 3), (3,)), ((2, 1), (2, 3))],
        }.get(self.kind) or [((3, 5), (3, 5)), ((2, 3, 4), (3, 1))]

    def ranked(self, *shapes):
        """Shapes that an operator fixes the rank of: as given, with zeros for `empty`; none where rank 0 is asked for."""
        if self.kind == "zero_dim" or (self.kind == "channels_last" and all(len(s) < 4 for s in shapes)):
            return None
        return shapes

    def size(self, n):
        """A size of a matrix: 0 where the kind is empty."""
        return 0 if self.kind == "empty" else n

    # Tensors

    def tensor(self, shape, dtype=None, domain=None, layout=None, distinct=False):
        """A tensor of the cell's dtype and strides; `distinct` values have no ties."""
        d = BY_NAME[dtype] if dtype else self.dtype if self.made == 0 else self.second
        if layout is None:
            layout = self.kind if self.kind in LAYOUTS else "contiguous"
            # The second operand is contiguous half of the time.
            if self.made and self.rng.random() < 0.5:
                layout = "contiguous"
        self.made += 1
        strides, offset, count = geometry(layout, shape)
        flat = d.store(self.values(d, count, domain or self.domain, distinct))
        return Spec(flat, d.name, tuple(shape), strides, offset)

    def values(self, d, count, domain, distinct):
        lo, hi = domain
        if d.category == "bool":
            return self.rng.integers(0, 2, count).astype(bool)
        if self.kind == "special" and not distinct:
            return self.special(d, count)
        if d.category == "integral":
            least, most = d.limits
            lo, hi = max(int(np.ceil(lo)), least), min(int(np.floor(hi)), most)
            return self.rng.integers(lo, max(hi, lo) + 1, count)
        if self.kind == "grad" or distinct:
            # Apart from each other and from the kinks at whole and half numbers.
            grid = lo + (np.arange(count) + 0.37 + 0.2 * self.rng.random(count)) * (hi - lo) / max(count, 1)
            near = np.abs(grid * 2 - np.rint(grid * 2)) < 0.1
            real = self.rng.permutation(grid + near * 0.07)
        else:
            real = self.rng.uniform(lo, hi, count)
        if d.category != "complex":
            return real
        return as_complex(real, self.rng.permutation(real))

    def special(self, d, count):
        if d.category == "integral":
            least, most = d.limits
            pool = np.array([0, 1, 2, 3, least, most, most - 1, least + 1, *([-1, -2] if least < 0 else [])], np.int64)
            return self.rng.choice(pool, count)
        largest = [d.largest, -d.largest] if self.extremes else []
        least = 2.0**-60 if d.name in self.flushed else d.smallest
        pool = np.array([*SPECIAL_FLOATS, least, -least, 3 * least, *largest])
        pool = pool if count < len(pool) else np.concatenate([pool, self.rng.choice(pool, count - len(pool))])
        real = self.rng.permutation(pool)[:count]
        if d.category != "complex":
            return real
        return as_complex(real, self.rng.permutation(real))

    def mask(self, shape):
        return self.tensor(shape, "bool")

    def positions(self, shape, size, dtype="int64"):
        """Indices below `size`; none in a tensor that has elements where size is 0."""
        strides, offset, count = geometry("contiguous" if prod(shape) == 0 else "sliced", shape)
        return Spec(self.rng.integers(0, max(size, 1), count), dtype, tuple(shape), strides, offset)

    def number(self, *values):
        return values[int(self.rng.integers(len(values)))]


def as_complex(real, imaginary):
    """Without the products of 1j * inf."""
    out = np.empty(len(real), np.complex128)
    out.real, out.imag = real, imaginary
    return out
