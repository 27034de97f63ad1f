"""Samples of large tensors, of operators that take tensors of any shape: what a kernel leaves out beyond its first block shows."""

from itertools import islice
from math import prod

import tenon

from . import check
from .library import TENON
from .samples import Maker

KIND = "large"
#: Neither is a multiple of what devices work in; the second has more bytes than most do at once.
SHAPES = ((1025, 3), (2**17 + 1,))
#: (shape, strides) of the samples.
WAYS = ((SHAPES[0], "sliced"), (SHAPES[1], "contiguous"), (SHAPES[1], "sliced"))
#: How many of a row's samples are looked at, and the elements and the tensors of one that are too many. Thousands of small
#: tensors, such as the rows of a large one, are no large ones.
LOOKS, MOST, TENSORS = 4, 2**19, 64
#: Their cost does not follow from the number of elements alone.
SLOW = {"convolution", "norm", "attention", "window", "embedding", "matmul", "factory"}


class _TooLarge(Exception):
    pass


class _Maker(Maker):
    """Asked for shapes, it gives one large one; sizes that a row fixes stay as they are."""

    def __init__(self, like, shape, layout):
        super().__init__(like.dtype.name, "plain", like.rng, like.domain, like.second.name, like.extremes)
        self.shape, self.layout = shape, layout
        self.restart()

    def restart(self):
        self.made = self.elements = self.tensors = 0

    def shapes(self):
        return [self.shape]

    def pairs(self):
        return [(self.shape, self.shape)]

    def tensor(self, shape, dtype=None, domain=None, layout=None, distinct=False):
        self.elements, self.tensors = max(self.elements, prod(shape)), self.tensors + 1
        if self.elements > MOST or self.tensors > TENSORS:
            raise _TooLarge
        return super().tensor(shape, dtype, domain, layout or self.layout, distinct)


def samples_of(op, row, dtype, quick):
    """A sample of each size and layout; none where the row's shapes are its own. Quickly: other forms than the functional one
    get the contiguous one alone."""
    if op.family in SLOW or row.why_absent(dtype, "plain"):
        return []
    ways = WAYS[1:2] if quick and op.form != "functional" else WAYS
    found = (_first(check.maker(op, dtype, KIND, row), row, shape, layout) for shape, layout in ways)
    return [s for s in found if s and _fits(op, row, s)]


def _fits(op, row, s):
    """Whether its results are no larger than samples may be: the diagonal matrix of a long vector is."""
    args, kwargs = TENON.arguments(s, "meta")
    try:
        results = TENON.function(op, row)(*args, **kwargs)
    except Exception:
        return True  # their sizes follow from values, of which there are as many as the sample has
    results = check.tensors_of(results if isinstance(results, (list, tuple)) else [results])
    return len(results) <= TENSORS and all(r.numel() <= MOST for r in results)


def _first(like, row, shape, layout):
    maker = _Maker(like, shape, layout)
    try:
        for s in islice(row.samples(maker), LOOKS):
            if maker.elements >= prod(shape) and not row.refuses(s):
                return s
            maker.restart()
    except _TooLarge:
        pass
    return None
