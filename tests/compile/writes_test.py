"""Writes in place inside a compiled function: what is read before and after, aliases, addresses, versions, errors."""

import pytest
from beside_eager import alike, same

import tenon


def ramp(*shape, dtype=tenon.float32):
    n = 1
    for side in shape:
        n *= side
    return tenon.arange(n, dtype=dtype).reshape(shape) / 4 if dtype.is_floating_point else tenon.arange(n, dtype=dtype).reshape(shape)


def of_a_slice(b):
    v = b[::2]
    v.mul_(3)
    return b + 1


def of_a_transpose(x):
    v = x.t()[1:]
    v += x[0, 1:].unsqueeze(1)
    return x * 2, v


def after_a_read(x):
    y = x * 2
    x.add_(1)
    return y


def between_reads(x):
    y = x.exp()
    x[1:3] = 7.0
    z = x.exp()
    x.neg_()
    return y, z, x + y + z


def through_two_views(x):
    a, b = x[0], x[:, 1]
    a.mul_(2)
    b.add_(a[1])
    return a - 1, b - 1, x.sum()


def of_a_temporary(x):
    y = x + 1
    v = y[1:]
    v.mul_(x[1:])
    y.t().sub_(1)
    return y, v


def of_a_part_of_a_temporary_that_dies(x):
    y = x + 1
    y[0].zero_()
    return y[1:] * 2


def setitem_from_itself(x):
    x[1:] = x[:-1].clone()
    x[:, 0] = x[:, 1]
    return x + 0


def copies_between_views(x):
    x[::2].copy_(x[1::2] if x.shape[0] % 2 == 0 else x[1::2][: x.shape[0] // 2])
    return x * 1


def swap(x):
    a = x[0].clone()
    x[0] = x[1]
    x[1] = a
    return a


def chained(x):
    return x.mul_(2).add_(1).relu_().t().sub_(3)


@pytest.mark.parametrize("f", [
    of_a_slice, of_a_transpose, after_a_read, between_reads, through_two_views, of_a_temporary,
    of_a_part_of_a_temporary_that_dies, setitem_from_itself, copies_between_views, swap, chained,
])  # fmt: skip
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "offset", "every second"])
def test_a_write_is_seen_by_what_comes_after_it_alone(f, layout):
    x = {
        "contiguous": lambda: ramp(4, 4), "transposed": lambda: ramp(4, 4).t(), "offset": lambda: ramp(5, 4)[1:],
        "every second": lambda: ramp(4, 8)[:, ::2],
    }[layout]()  # fmt: skip
    same(f, x)


def test_large_tensors_take_the_same_path():
    for f in (of_a_slice, of_a_transpose, after_a_read, between_reads, of_a_temporary):
        same(f, ramp(300, 300))


def test_what_was_read_before_the_write_keeps_its_value():
    seen = same(after_a_read, ramp(5))
    assert seen["arguments"][1]["version"] == 1


def test_expanded_operands():
    def f(x, row):
        wide = row.expand(3, 4)
        y = wide * x
        row.add_(1)
        return y, wide + x

    same(f, ramp(3, 4), ramp(4))


def test_writing_an_expanded_tensor_raises_at_its_line():
    def f(row):
        try:
            row.expand(3, 4).add_(1)
        except RuntimeError as e:
            return str(e), row * 2

    assert "RuntimeError" not in same(f, ramp(4))["result"][1]


def test_overlapping_operands_raise_at_their_line():
    def f(x):
        y = x * 2
        try:
            x[1:].add_(x[:-1])
        except RuntimeError as e:
            return str(e), y, x + 1

    assert "overlap" in same(f, ramp(6))["result"][1]


def test_shape_errors_raise_at_their_line():
    def f(x):
        y = x + 1
        y.mul_(2)
        try:
            y.add_(tenon.ones(7))
        except RuntimeError as e:
            return str(e), y

    assert "broadcast" in same(f, ramp(6))["result"][1]


def test_negative_strides(numpy_ramp):
    def f(x):
        y = x * 2
        x.add_(1)
        x[1:] *= 3
        return y, x - 1

    def program(c):
        x = tenon.from_numpy(numpy_ramp(8)[::-1])
        return c(f)(x), x

    alike(program)


@pytest.fixture
def numpy_ramp():
    import numpy as np

    return lambda n: np.arange(n, dtype=np.float32)


def test_conjugate_views():
    def f(z):
        v = z.conj()
        y = v * 2
        z.mul_(1j)
        return y, v + 1, v.imag

    same(f, tenon.complex(ramp(5), ramp(5) + 1))


def test_an_exception_after_a_write_leaves_the_write():
    def f(p):
        lost = p.exp().log()  # noqa: F841
        p.mul_(2)
        raise KeyError("after the write")

    seen = same(f, ramp(5))
    assert seen["raised"] == ["KeyError", "'after the write'"]
    assert seen["arguments"][1]["version"] == 1


def test_an_exception_caught_inside_changes_nothing():
    def f(x):
        try:
            x.add_(1)
            raise KeyError
        except KeyError:
            x.mul_(2)
        return x + 0

    same(f, ramp(5))


def test_versions_rise_at_the_call():
    def f(x):
        y = x * 2
        before = x._version, y._version
        x.add_(1)
        y.mul_(2).sub_(1)
        v = y[0]
        v += 1
        return before, x._version, y._version, v._version

    same(f, ramp(4))


def test_the_address_of_a_written_tensor_stays():
    def program(c):
        x = ramp(1000)
        address = x.data_ptr()

        def f():
            x.add_(1)
            x[2:].mul_(2)
            inside = x.data_ptr() == address
            x.sub_(3)
            return inside

        return c(f)(), x.data_ptr() == address, x

    assert alike(program)["result"][1:3] == [True, True]


def test_out():
    def f(x, out):
        tenon.add(x, 1, out=out)
        y = out * 2
        tenon.mul(x, 3, out=out)
        tenon.exp(x[:2], out=out[2:4])
        return y, out + 1

    same(f, ramp(6), tenon.zeros(6))


def test_out_of_another_size_and_dtype():
    def f(x):
        out = tenon.empty(0)
        returned = tenon.mul(x, 2, out=out)
        wide = tenon.empty(x.shape, dtype=tenon.float64)
        tenon.exp(x, out=wide)
        half = tenon.empty(x.shape, dtype=tenon.float16)
        tenon.sum(x, 0, out=half[0])
        return out, returned is out, wide, half[0] if x.dim() == 2 else wide

    same(f, ramp(3, 4))
    same(lambda x: tenon.add(x, 0.5, out=tenon.zeros(4, dtype=tenon.int64)), ramp(4))


def test_foreach_of_parameters():
    def f(ps, gs):
        for p, g in zip(ps, gs):
            g.mul_(0.5)
            p.add_(g, alpha=-0.1)
            g.zero_()
        return [p.sum() for p in ps]

    same(f, [ramp(3, 3), ramp(7), ramp(200, 40)], [ramp(3, 3), ramp(7), ramp(200, 40)])


def test_the_same_storage_under_another_dtype():
    def f(x):
        v = x.view(tenon.int32)
        y = x * 2
        v.bitwise_and_(-2)
        x.add_(1)
        return y, v + 1, x

    same(f, ramp(6))


def test_masked_and_indexed_writes():
    def f(x):
        mask = x > 1
        y = x * 2
        x[mask] = -1.0
        x[tenon.tensor([0, 2])] = x[tenon.tensor([2, 0])]
        x.index_fill_(0, tenon.tensor([1]), 9.0)
        x.masked_fill_(y > 5, 0.5)
        return y, mask, x + 1

    same(f, ramp(5, 3))


@pytest.mark.parametrize("side", [30, 80])
@pytest.mark.parametrize("fill", ["zero_", "fill_"])
def test_a_fill_through_a_view_that_has_elements_twice(side, fill):
    """What is read through the view before is read before, however large the loops' tiles are."""

    def f(a, b):
        x = b - 1
        e = x.expand(2, side, side)
        d = e * (a * a + 1)
        e.zero_() if fill == "zero_" else e.fill_(3)
        return x, d, e + d

    same(f, tenon.randn(side, side), tenon.randn(side, side))


def test_empty_leaves_what_its_out_argument_has():
    def f(x):
        y = x * 2
        tenon.empty((2, 3), out=y)
        return y + 1, y

    same(f, ramp(2, 3))
