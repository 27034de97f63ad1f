"""Errors that follow from values come when they are computed, with the operator and the line where it was called."""

import pytest
from beside_eager import same

import tenon
import tenon.nn.functional as F


def x_of(*shape):
    return tenon.linspace(-1, 2, tenon.ones(shape).numel()).reshape(shape)


def bad_index(x):
    x.add_(1)
    i = tenon.tensor([0, 3]) * 3
    return x.index_select(0, i) * 2


def bad_target(x):
    x.mul_(2)
    target = (x > 0).to(tenon.int64).sum(1) * 5
    return F.cross_entropy(x, target)


def bad_gather(x):
    x.mul_(2)
    return x.gather(0, (x * 0).to(tenon.int64) + 50)


def bad_embedding(x):
    return F.embedding(tenon.tensor([1, 2]) * 7, x)


def bad_probabilities(x):
    return tenon.multinomial(x - 5, 1)


@pytest.mark.parametrize("f", [
    bad_index, bad_target, bad_gather, bad_embedding, bad_probabilities,
])  # fmt: skip
def test_bad_values(f):
    """The error of eager, and what was written before it is there."""
    assert same(f, x_of(4, 3), more_in_errors=True)["raised"]


def test_a_write_that_fails_writes_nothing():
    """But it counts as one: versions rise at the call, when nobody knows the values yet."""

    def f(x):
        x.add_(1)
        x[tenon.tensor([1]) + 99] = 0.0
        x.mul_(2)

    x = x_of(4, 3)
    with pytest.raises(IndexError, match="index 100 is out of bounds"):
        tenon.compile(f, threshold=0)(x)
    assert x.tolist() == (x_of(4, 3) + 1).tolist()
    assert tenon.compile(lambda: x * 2, threshold=0)().tolist() == ((x_of(4, 3) + 1) * 2).tolist()


def test_the_line_is_the_call_not_the_flush():
    def f(x):
        y = x.index_select(0, tenon.tensor([9]) + 0)  # here
        z = y * 2
        return z + 1

    here = f.__code__.co_firstlineno + 1
    with pytest.raises(IndexError) as error:
        tenon.compile(f, threshold=0)(x_of(3))
    assert str(error.value).startswith("index_select: ") and f"{__file__}:{here}" in str(error.value)


def test_what_does_not_depend_on_it_is_computed():
    kept = {}

    def f(x):
        kept["before"] = x * 2
        bad = x.index_select(0, tenon.tensor([9]) + 0)
        kept["after"] = x + 1
        kept["bad"] = bad
        kept["depends"] = bad * 2 + x
        x.sub_(1)

    x = x_of(3)
    with pytest.raises(IndexError):
        tenon.compile(f, threshold=0)(x)
    assert kept["before"].tolist() == (x_of(3) * 2).tolist()
    for name in ("bad", "depends"):
        for _ in range(2):
            with pytest.raises(IndexError, match="index_select.*index 9 is out of bounds"):
                kept[name].tolist()
            with pytest.raises(IndexError, match="index_select"):
                kept[name] + 1
        assert kept[name].shape == ((1,) if name == "bad" else (3,))
    # What comes after the failure and does not depend on it: computed, or not yet run as in eager; never wrong.
    assert kept["after"].tolist() == (x_of(3) + 1).tolist()
    assert x.tolist() in (x_of(3).tolist(), (x_of(3) - 1).tolist())


def test_a_failure_that_nobody_reads_is_raised_all_the_same():
    def f(x):
        x.index_select(0, tenon.tensor([9]) + 0)
        return x * 2

    assert same(f, x_of(3), more_in_errors=True)["raised"]


def test_it_can_be_caught_where_the_value_is_read():
    def f(x):
        y = x.index_select(0, tenon.tensor([9]) + 0)
        try:
            return y.tolist()
        except IndexError:
            return x * 3

    assert tenon.compile(f, threshold=0)(x_of(3)).tolist() == (x_of(3) * 3).tolist()


def test_the_next_call_works():
    def f(x, i):
        return x.index_select(0, i + 0) * 2

    compiled = tenon.compile(f, threshold=0)
    for _ in range(3):
        with pytest.raises(IndexError):
            compiled(x_of(3), tenon.tensor([9]))
        assert compiled(x_of(3), tenon.tensor([1])).tolist() == f(x_of(3), tenon.tensor([1])).tolist()


def test_memory_that_is_not_to_be_had():
    """The result of 40 TB is asked for when it is computed; what was written before is there."""

    def f(x):
        x.add_(1)
        y = x * 2
        z = x.expand(10**13, 3) + 1
        return y, z

    with pytest.raises(MemoryError, match="120000000000000 bytes"):
        f(x_of(3))
    x = x_of(3)
    compiled = tenon.compile(f, threshold=0)
    with pytest.raises(MemoryError, match="120000000000000 bytes"):
        compiled(x)
    assert x.tolist() == (x_of(3) + 1).tolist()
    assert tenon.compile(lambda x: x * 2, threshold=0)(x).tolist() == (x * 2).tolist()


def test_memory_that_fails_in_the_middle_of_a_flush_leaves_the_rest():
    kept = {}

    def f(x):
        kept["small"] = x * 2
        kept["large"] = x.expand(10**13, 3) * 2
        kept["part"] = kept["large"][0] + 1

    x = x_of(3)
    with pytest.raises(MemoryError):
        tenon.compile(f, threshold=0)(x)
    assert kept["small"].tolist() == (x_of(3) * 2).tolist()
    if "part" in kept:
        with pytest.raises(MemoryError):
            kept["part"].tolist()


def test_what_could_not_be_computed_always_says_the_same():
    @tenon.compile(threshold=0)
    def f():
        kept.append(tenon.ones(3).index_select(0, tenon.tensor([9])))

    kept = []
    with pytest.raises(IndexError, match="index_select"):
        f()
    for read in (lambda: kept[0].tolist(), lambda: kept[0].fill_(3), lambda: kept[0].tolist(), lambda: kept[0] * 2):
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            read()
    with pytest.raises(IndexError, match="^index_select: "):
        kept[0].tolist()
