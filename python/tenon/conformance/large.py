"""Samples of sizes that kernels treat differently: tensors of many blocks, sizes at the edges of blocks, and many dimensions.

A row that asks for shapes of any rank gets these. One that fixes the rank asks for sizes, as it does for tensors of no
elements: it gets large ones, and the smallest of those at the edges of blocks.
"""

from itertools import islice
from math import prod

from . import check, data_dependent
from .library import TENON
from .samples import Maker

LARGE, EDGES, DIMENSIONS = "large", "edges", "dimensions"
#: Neither is a multiple of what devices work in; the second has more bytes than most do at once.
SHAPES = ((1025, 3), (2**17 + 1,))
#: What kernels work in at once, and their neighbours.
BLOCKS = tuple(n + d for n in (256, 4096, 65536) for d in (-1, 0, 1))
#: (shape, strides) of the samples of each kind. No two of the five dimensions can be merged.
WAYS = {
    LARGE: ((SHAPES[0], "sliced"), (SHAPES[1], "contiguous"), (SHAPES[1], "sliced")),
    EDGES: tuple(((n,), "contiguous") for n in BLOCKS),
    DIMENSIONS: (((2, 3, 2, 3, 2), "sliced"),),
}
#: Quickly: the largest sizes once, and of other forms than the functional one less.
QUICK = {LARGE: WAYS[LARGE][:2], EDGES: WAYS[EDGES][:-3] + (((65536,), "contiguous"),), DIMENSIONS: WAYS[DIMENSIONS]}
QUICK_OTHER_FORMS = {LARGE: WAYS[LARGE][1:2], EDGES: (((256,), "contiguous"), ((65536,), "contiguous")), DIMENSIONS: WAYS[DIMENSIONS]}
#: How many of a row's samples are looked at, and the elements and the tensors of one that are too many. Thousands of small
#: tensors, such as the rows of a large one, are no large ones.
LOOKS, MOST, TENSORS = 4, 2**19, 64


class _TooLarge(Exception):
    pass


class _Maker(Maker):
    """Asked for shapes or sizes, it gives those of a way; what a row fixes stays as it is."""

    def __init__(self, like, kind, shape, layout):
        super().__init__(like.dtype.name, kind, like.rng, like.domain, like.second.name, like.extremes, like.flushed)
        self.shape, self.layout, self.any_rank = shape, layout, False
        self.restart()

    def restart(self):
        self.made = self.elements = self.tensors = 0

    def shapes(self):
        self.any_rank = True
        return [self.shape]

    def pairs(self):
        return [(s, s) for s in self.shapes()]

    def size(self, n):
        return min(self.shape[0], SHAPES[0][0])

    def tensor(self, shape, dtype=None, domain=None, layout=None, distinct=False):
        self.elements, self.tensors = max(self.elements, prod(shape)), self.tensors + 1
        if self.elements > MOST or self.tensors > TENSORS:
            raise _TooLarge
        return super().tensor(shape, dtype, domain, layout or self.layout, distinct)

    def wanted(self):
        """The elements that a tensor of a sample has at least. A size that another way has, too, is wanted once; none depend on
        strides where there is no tensor."""
        if self.any_rank:
            return prod(self.shape)
        if self.kind == LARGE:
            again = (self.shape, self.layout) == WAYS[LARGE][-1] or not self.tensors and self.layout == "sliced"
        else:
            again = self.kind == DIMENSIONS or self.shape[0] > SHAPES[0][0]
        return MOST + 1 if again else self.size(0)


def samples_of(op, row, dtype, quick, kind=LARGE, turn=0):
    """A sample of each way of a kind, or of fewer; none where the row's shapes are its own."""
    if row.why_absent(dtype, "plain"):
        return []
    ways = WAYS if not quick else QUICK if op.form == "functional" else QUICK_OTHER_FORMS
    found = (_first(op, row, _Maker(check.maker(op, dtype, kind, row, turn=turn), kind, *way)) for way in ways[kind])
    return [s for s in found if s]


def _first(op, row, maker):
    try:
        for s in islice(row.samples(maker), LOOKS):
            most = -1 if row.refuses(s) else _largest_result(op, row, s)
            if most >= 0 and max(maker.elements, most) >= maker.wanted():
                return s
            maker.restart()
    except _TooLarge:
        pass
    return None


def _largest_result(op, row, s):
    """The elements of the largest result; 0 where they follow from values or from `out=`, negative where the operator refuses the sample,
    as view does other strides. Raises _TooLarge, as for the diagonal matrix of a long vector."""
    args, kwargs = TENON.arguments(s, "meta")
    try:
        results = TENON.function(op, row)(*args, **kwargs)
    except (NotImplementedError, TypeError):
        return 0
    except check.ERRORS:
        return 0 if data_dependent.why(op, s) else -1
    sizes = [r.numel() for r in check.tensors_of(results if isinstance(results, (list, tuple)) else [results])]
    if len(sizes) > TENSORS or max(sizes, default=0) > MOST:
        raise _TooLarge
    return max(sizes, default=0)
