"""Reductions and norms written out: one region over rows, with the bits of the calls one by one."""

import pytest
from beside_eager import same

import tenon


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def norm(x):
    d = x - x.mean(-1, keepdim=True)
    return d * ((d * d).mean(-1, keepdim=True) + 1e-5).rsqrt()


def values_of_rows_beside_elements(x):
    m = x.mean(-1, keepdim=True)
    return m * 2, x - m, (x - m).argmax(-1)


def value_of_rows_in_place_of_one_that_is_read(x):
    # The sums would fit where the running sums were, which each of them reads.
    q = x[:, :1].cumsum(0)
    return (x - q).sum(-1, keepdim=True)


def writes_elements_in_place(x):
    x.sub_(x.amax(-1, keepdim=True))
    return x.sum(-1)


def reduces_and_writes_what_it_reads(x):
    s = (x * 3 + 1).sum(-1)
    x.mul_(2)
    return s, x.amin(-1)


def reduces_as_it_lies_and_writes(x):
    s = x.sum(-1)
    x.mul_(2).add_(1)
    return s, (x * x).amax(-1)


@pytest.mark.parametrize("shape", [(2048, 3), (16, 512), (7, 130), (3, 5, 64), (4, 0), (1, 1)])
@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float16, tenon.float64])
@pytest.mark.parametrize(
    "f",
    [
        softmax,
        norm,
        values_of_rows_beside_elements,
        value_of_rows_in_place_of_one_that_is_read,
        writes_elements_in_place,
        reduces_and_writes_what_it_reads,
        reduces_as_it_lies_and_writes,
    ],
)
def test_rows(f, shape, dtype):
    x = (tenon.arange(tenon.ones(shape).numel(), dtype=tenon.float32).reshape(shape) % 23 - 11).to(dtype) / 5
    same(f, x)
