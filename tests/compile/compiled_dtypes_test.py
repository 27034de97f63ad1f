"""Every dtype, mixed and alone: each operator rounds to its own dtype as eager does, fused or not."""

import itertools

import pytest
from beside_eager import alike, same

import tenon

DTYPES = [tenon.bool, tenon.uint8, tenon.int8, tenon.int16, tenon.int32, tenon.int64, tenon.float16, tenon.bfloat16,
          tenon.float32, tenon.float64, tenon.complex64, tenon.complex128]  # fmt: skip


def values(dtype, *shape):
    x = tenon.linspace(-3, 5, tenon.ones(shape).numel()).reshape(shape)
    return (x > 0) if dtype == tenon.bool else tenon.complex(x, x.flip(0)).to(dtype) if dtype.is_complex else x.abs().to(dtype)


def arithmetic(x, y):
    z = x * y + x
    w = (z - y * 2) * z
    return z, w, w + 0.5, w * w.abs()


def narrow_and_widen(x, y):
    z = (x.to(tenon.float16) + 0.1).to(tenon.float64) * y
    return z, z.to(tenon.int8) + x.to(tenon.int8), (z > 1) & (y > 0), z.to(tenon.bool) * y


def rounding_chain(x, y):
    for _ in range(8):
        x = x * 3 + y
        y = y - x
    return x, y


def in_place(x, y):
    if x.dtype == tenon.bool or (y.dtype.is_complex and not x.dtype.is_complex):
        return x.clone()
    if y.dtype.is_floating_point and not (x.dtype.is_floating_point or x.dtype.is_complex):
        y = y > 1
    before = x + y
    x.add_(y).mul_(x)
    x += y
    return before, x - y


@pytest.mark.parametrize("f", [arithmetic, narrow_and_widen, rounding_chain, in_place])
@pytest.mark.parametrize("a, b", itertools.product(DTYPES, DTYPES), ids=str)
def test_pairs_of_dtypes(f, a, b):
    same(f, values(a, 3, 4), values(b, 4))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions_comparisons_and_maths(dtype):
    def f(x):
        y = x * 2
        out = [y.sum(), y.sum(0), (y == x).all(), y.cumsum(0), y.prod()]
        if not dtype.is_complex:
            out += [y.max(), y.argmax(0), y.clamp(0, 3), (y > 2).sum(), y.sort(0).values, y.exp(), y.mean(dtype=tenon.float32)]
        if dtype.is_floating_point:
            out += [y.softmax(0), y.var(), y.sigmoid() * x, y.log1p(), tenon.nn.functional.gelu(y)]
        return out

    same(f, values(dtype, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [2, -1, 0.5, True, float("nan"), 1j])
def test_python_numbers(dtype, number):
    def f(x):
        y = x * number
        return y + number, number - y, y == number, tenon.where(x == x, y, number)

    same(f, values(dtype, 5))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (3, 0, 2), (1, 1, 1)])
@pytest.mark.parametrize("dtype", [tenon.float32, tenon.int64, tenon.float16, tenon.complex64], ids=str)
def test_empty_and_0_dim(shape, dtype):
    def f(x):
        y = x * 2 + x
        x.add_(1)
        z = y.sum() if x.numel() else y
        return y, z, x.t() if x.dim() < 3 else x.permute(2, 0, 1), (x + y).reshape(-1), y.expand(2, *y.shape) + 1

    same(f, values(dtype, *shape))


def test_0_dim_tensors_and_wrapped_numbers_promote_as_eager():
    def f(x, s, n):
        return x + s, s + n, x * n, (s * 2) + x.to(tenon.int8), n.to(tenon.float16) + x.to(tenon.bfloat16), s / 3 + n

    same(f, values(tenon.float32, 4), tenon.tensor(2.5, dtype=tenon.float64), tenon.tensor(3))


def test_numbers_that_do_not_fit_raise_at_the_call():
    def f(x):
        y = x * 2
        try:
            x + 2**40
        except ValueError as e:
            return str(e), y

    assert "fit" in same(f, values(tenon.int32, 4))["result"][1]


def test_integer_division_by_zero():
    def f(x):
        y = x * 0
        return x // y

    same(f, values(tenon.int64, 4), more_in_errors=True)
    same(lambda x: (x % (x * 0)), values(tenon.int32, 4), more_in_errors=True)


def test_special_values():
    special = tenon.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, 3e38, -1.0])

    def f(x):
        y = x * 1 + 0
        return y, y * 0, 1 / y, y.sqrt() * -1, tenon.maximum(y, x.flip(0)), y.exp().log(), y.to(tenon.float16) + 0, y.sign() * y

    same(f, special)
    same(f, special.to(tenon.float64))
    same(f, special.to(tenon.bfloat16))


def test_casts_to_every_dtype():
    def program(c):
        x = tenon.linspace(0, 7, 9)
        return [c(lambda t: ((t * 2).to(a) + 1).to(b) * 1)(x) for a in DTYPES for b in DTYPES if not a.is_complex]

    alike(program)


def test_out_of_another_dtype():
    def f(x):
        out = tenon.zeros(4, dtype=tenon.float64)
        tenon.mul(x, 3, out=out)
        low = tenon.zeros(4, dtype=tenon.bfloat16)
        tenon.add(x, out, out=low)
        return out, low, out + low

    same(f, values(tenon.float32, 4))
    same(lambda x: tenon.add(x, 0.5, out=tenon.zeros(4, dtype=tenon.int32)), values(tenon.float32, 4))
