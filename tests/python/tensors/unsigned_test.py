"""uint16, uint32 and uint64: what the array API asks of them, exchange and files, compared with NumPy."""

import pickle

import numpy as np
import pytest
import tenon
from tenon import array_api as xp

NAMES = ("uint16", "uint32", "uint64")
EVERY = (*NAMES, "uint8", "int8", "int16", "int32", "int64", "bool", "float16", "float32", "float64", "complex64", "complex128")


def numbers(name, size, seed=0):
    """Of every size, with the ends of the dtype."""
    rng = np.random.default_rng(seed)
    top = np.iinfo(name).max
    some = rng.integers(0, top, size, dtype=name, endpoint=True) >> rng.integers(0, 8 * np.dtype(name).itemsize, size).astype(name)
    ends = np.array([0, 1, 2, top, top - 1, top // 2, top // 2 + 1], name)
    some.flat[: min(some.size, ends.size)] = ends[: min(some.size, ends.size)]
    return some


def layouts(array):
    """The same elements with several strides."""
    t = tenon.from_numpy(array)
    wide = tenon.zeros(*array.shape, 2, dtype=t.dtype)
    wide[..., 0] = t
    return [t, t.flip(0), t.mT.contiguous().mT if array.ndim > 1 else t, wide[..., 0]]


def same(got, want):
    want = np.asarray(want)
    assert str(got.dtype) == f"tenon.{want.dtype}" and tuple(got.shape) == want.shape, (got, want)
    assert np.array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", NAMES)
def test_elements_come_in_and_go_out(name):
    dtype, top = getattr(tenon, name), int(np.iinfo(name).max)
    array = numbers(name, (3, 4))
    t = tenon.from_numpy(array)
    assert t.dtype is dtype and t.tolist() == array.tolist() and np.array_equal(np.from_dlpack(t), array)
    same(tenon.tensor(array.tolist(), dtype=dtype), array)
    same(tenon.from_dlpack(array), array)
    same(tenon.tensor(memoryview(array)), array)
    assert np.asarray(memoryview(t)).dtype == array.dtype
    same(pickle.loads(pickle.dumps(t)), array)
    assert tenon.tensor(top, dtype=dtype).item() == top and int(tenon.tensor([top], dtype=dtype)) == top
    assert str(top) in repr(t) and f"dtype={dtype}" in repr(t)
    assert (tenon.iinfo(dtype).min, tenon.iinfo(dtype).max, tenon.iinfo(dtype).bits) == (0, top, array.itemsize * 8)
    assert not dtype.is_signed and dtype.itemsize == array.itemsize
    same(tenon.full((2,), 3, dtype=dtype), np.full(2, 3, name))
    same(tenon.arange(2, 9, 3, dtype=dtype), np.arange(2, 9, 3, dtype=name))
    for bad in (top + 1, -top - 1):
        with pytest.raises((ValueError, OverflowError)):
            tenon.tensor([bad], dtype=dtype)
    with pytest.raises(ValueError, match="overflow"):
        tenon.zeros(2, dtype=dtype).fill_(2.0**64)


@pytest.mark.parametrize("name", NAMES)
def test_files_keep_them(name, tmp_path):
    array = numbers(name, 20)
    tensors = {"a": tenon.from_numpy(array)}
    tenon.save(tensors, tmp_path / "a.pt")
    same(tenon.load(tmp_path / "a.pt")["a"], array)
    from tenon import safetensors

    safetensors.save_file(tensors, tmp_path / "a.safetensors")
    same(safetensors.load_file(tmp_path / "a.safetensors")["a"], array)


@pytest.mark.parametrize("name", NAMES)
def test_conversions(name):
    array = numbers(name, (8, 9))
    for t in layouts(array):
        want = t.numpy()
        for other in EVERY:
            same(t.to(getattr(tenon, other)), want.astype(other))
    rng = np.random.default_rng(1)
    for other in EVERY:
        if other == "bool" or other in NAMES:
            continue
        top = min(float(np.iinfo(name).max), 6e4 if other == "float16" else 2.0**40 if other.startswith(("float", "complex")) else np.iinfo(other).max)
        source = (rng.random((5, 7)) * top).astype(other)
        for t in layouts(source):
            same(t.to(getattr(tenon, name)), t.numpy().real.astype(name))
    with np.errstate(all="ignore"):
        same(tenon.tensor([-1, -300]).to(getattr(tenon, name)), np.array([-1, -300]).astype(name))
    same(tenon.tensor([True, False]).to(getattr(tenon, name)), np.array([1, 0], name))


def test_uint64_and_floats_beyond_int64():
    array = np.array([2**63, 2**63 + 2**11, 2**64 - 2**11, 2**64 - 1, 2**63 - 1], np.uint64)
    t = tenon.from_numpy(array)
    for name in ("float16", "float32", "float64"):
        with np.errstate(over="ignore"):
            want = array.astype("float32").astype(name) if name == "float16" else array.astype(name)
        same(t.to(getattr(tenon, name)), want)
        same((t * 1.0).to(tenon.float32), array.astype("float32"))
    same(tenon.tensor([2.0**63, 1.5 * 2.0**63, 2.0**64 - 2**11], dtype=tenon.float64).to(tenon.uint64), np.array([2**63, 3 * 2**62, 2**64 - 2**11], np.uint64))
    same(t.to(tenon.bfloat16).to(tenon.float32), t.to(tenon.float32).to(tenon.bfloat16).to(tenon.float32).numpy())
    same(tenon.sqrt(t.to(tenon.float64)), np.sqrt(array.astype("float64")))
    assert tenon.sqrt(t).dtype is tenon.float32


TWO = ("add subtract multiply floor_divide remainder maximum minimum equal not_equal less less_equal greater greater_equal bitwise_and bitwise_or "
       "bitwise_xor logical_and logical_or logical_xor").split()  # fmt: skip
ONE = "abs square sign positive trunc floor ceil round bitwise_invert logical_not negative isnan isinf isfinite signbit".split()


@pytest.mark.parametrize("name", NAMES)
def test_elementwise_functions(name):
    a, b = numbers(name, (6, 50), 2), numbers(name, (6, 50), 3)
    b[b == 0] = 3
    with np.errstate(all="ignore"):
        for x, y in zip(layouts(a), layouts(b)):
            for f in TWO:
                same(getattr(xp, f)(x, y), getattr(np, f)(x.numpy(), y.numpy()))
            for f in ONE:
                want = np.isnan(x.numpy().astype(float)) if f == "isnan" else getattr(np, f)(x.numpy())
                same(getattr(xp, f)(x), want)
        few = (b % 40).astype(name)
        shifts = (b % (8 * a.itemsize)).astype(name)
        same(xp.pow(tenon.from_numpy(a), tenon.from_numpy(few)), np.power(a, few))
        same(xp.bitwise_left_shift(tenon.from_numpy(a), tenon.from_numpy(shifts)), np.left_shift(a, shifts))
        same(xp.bitwise_right_shift(tenon.from_numpy(a), tenon.from_numpy(shifts)), np.right_shift(a, shifts))
        same(tenon.gcd(tenon.from_numpy(a), tenon.from_numpy(b)), np.gcd(a, b))
        same(tenon.lcm(tenon.from_numpy(a % 200), tenon.from_numpy(b % 200)), np.lcm(a % 200, b % 200))
        same(xp.clip(tenon.from_numpy(a), 5, 100), np.clip(a, 5, 100))
        same(xp.where(tenon.from_numpy(a > b), tenon.from_numpy(a), tenon.from_numpy(b)), np.where(a > b, a, b))
        for f in (np.sqrt, np.exp, np.log, np.sin):
            got = getattr(tenon, f.__name__)(tenon.from_numpy(a % 50))
            np.testing.assert_allclose(got.numpy(), f((a % 50).astype(np.float64)), rtol=1e-6, atol=1e-6)
    assert (tenon.from_numpy(b) // 0).tolist() == np.zeros_like(b).tolist()
    x = tenon.from_numpy(a)
    with np.errstate(all="ignore"):
        same(x + 1, a + np.array(1, name))
        same(x > 2, a > 2)
        same(x << 1, a << np.array(1, name))
        assert (x + 0.5).dtype is tenon.float32
        y = x.clone()
        y += 7
        same(y, a + np.array(7, name))


@pytest.mark.parametrize("name", NAMES)
def test_promotion_is_the_array_api_s(name):
    u = tenon.ones(2, dtype=getattr(tenon, name))
    for other in EVERY:
        t = tenon.ones(2, dtype=getattr(tenon, other))
        if name == "uint64" and other.startswith("int"):
            with pytest.raises(TypeError, match=f"(uint64 and {other}|{other} and uint64) do not promote"):
                u + t
            continue
        want = np.result_type(name, other)
        if other == "bool" or other.startswith(("uint", "int")):
            assert str((u + t).dtype) == f"tenon.{want}" == str((t + u).dtype)
        else:
            assert (u + t).dtype is t.dtype  # floats keep their width, as in PyTorch


def test_negative_numbers_are_no_operands_of_uint64():
    x = tenon.tensor([1, 2**63], dtype=tenon.uint64)
    for call in (lambda: x + -1, lambda: x > -1, lambda: x.clamp(min=-3), lambda: x.add_(-1)):
        with pytest.raises((ValueError, TypeError), match="uint64"):
            call()
    assert (x - 1).tolist() == [0, 2**63 - 1] and (x * 3).tolist() == [3, 2**63]
    f = tenon.compile(lambda v: v.clamp(min=2) * 3 // 5)
    for _ in range(4):
        assert f(x).tolist() == [6 // 5, (3 * 2**63) % 2**64 // 5]
    with pytest.raises((ValueError, TypeError), match="uint64"):
        tenon.compile(lambda v: v > -1)(x)


@pytest.mark.parametrize("name", NAMES)
def test_reductions_and_scans(name):
    array = numbers(name, (5, 40), 4)
    with np.errstate(all="ignore"):
        for t in layouts(array):
            a = t.numpy()
            for axis in (None, 0, 1):
                for f in ("sum", "prod", "max", "min", "argmax", "argmin", "all", "any", "count_nonzero"):
                    want = getattr(np, f)(a, axis=axis)
                    same(getattr(xp, f)(t, axis=axis), want)
            same(xp.cumulative_sum(t, axis=1), np.cumsum(a, 1, dtype=np.uint64))
            same(xp.cumulative_prod(t, axis=1), np.cumprod(a, 1, dtype=np.uint64))
            same(xp.diff(t, axis=1), np.diff(a, axis=1))
            same(tenon.amax(t, 1), a.max(1))
            low, high = tenon.aminmax(t, dim=1)
            same(low, a.min(1)), same(high, a.max(1))
            values, places = t.max(1)
            same(values, a.max(1)), same(places, a.argmax(1))
            same(tenon.cummax(t, 1).values, np.maximum.accumulate(a, 1))
            same(tenon.cummin(t, 0).values, np.minimum.accumulate(a, 0))
    assert tenon.from_numpy(array).sum().dtype is tenon.int64  # as in PyTorch
    for f in (tenon.amax, tenon.argmin, tenon.median):
        with pytest.raises((IndexError, ValueError, RuntimeError)):
            f(tenon.zeros(0, dtype=getattr(tenon, name)), 0)
    assert tenon.zeros(0, dtype=getattr(tenon, name)).sum().item() == 0


@pytest.mark.parametrize("name", NAMES)
def test_order_and_sets(name):
    array = numbers(name, (6, 90), 5)
    for t in layouts(array):
        a = t.numpy()
        same(xp.sort(t, axis=1), np.sort(a, 1))
        same(xp.argsort(t, axis=0), np.argsort(a, 0, kind="stable"))
        same(xp.sort(t, axis=1, descending=True), np.flip(np.sort(a, 1), 1))
        same(tenon.topk(t, 3, dim=1).values, np.flip(np.sort(a, 1), 1)[:, :3])
        same(tenon.kthvalue(t, 2, dim=1).values, np.sort(a, 1)[:, 1])
        same(xp.unique_values(t), np.unique(a))
        found = xp.unique_all(t)
        values, inverse, counts = np.unique(a, return_inverse=True, return_counts=True)
        same(found.values, values), same(found.counts, counts), same(found.inverse_indices, inverse.reshape(a.shape))
        row = np.sort(a[0])
        same(xp.searchsorted(tenon.from_numpy(row), t), np.searchsorted(row, a))
        same(xp.isin(t, t[0, :4]), np.isin(a, a[0, :4]))
        same(xp.nonzero(t)[0], np.nonzero(a)[0])


@pytest.mark.parametrize("name", NAMES)
def test_moves_and_products(name):
    array = numbers(name, (4, 6), 6)
    for t in layouts(array):
        a = t.numpy()
        same(xp.concat([t, t], axis=1), np.concatenate([a, a], 1))
        same(xp.roll(t, 2, axis=1), np.roll(a, 2, 1))
        same(xp.tile(t, (2, 1)), np.tile(a, (2, 1)))
        same(xp.repeat(t, 2, axis=0), np.repeat(a, 2, 0))
        same(xp.take(t, tenon.tensor([3, 0]), axis=0), a[[3, 0]])
        same(xp.tril(t), np.tril(a))
        same(t[t > 2], a[a > 2])
        same(t[:, [1, 3]], a[:, [1, 3]])
        with np.errstate(all="ignore"):
            same(xp.matmul(t, t.mT), a @ a.T)
            same(xp.tensordot(t, t, axes=2), np.tensordot(a, a, 2))
            same(xp.vecdot(t, t), (a * a).sum(1, dtype=name))
        same(tenon.gather(t, 1, tenon.tensor([[0, 1]] * 4)), a[:, :2])
    x, index = tenon.from_numpy(array.copy()), tenon.tensor([0, 0, 1])
    source = tenon.from_numpy(numbers(name, (3, 6), 7))
    want = array.copy()
    np.maximum.at(want, [0, 0, 1], source.numpy())
    same(x.index_reduce(0, index, source, "amax"), want)
    want = array.copy()
    with np.errstate(all="ignore"):
        np.add.at(want, [0, 0, 1], source.numpy())
    same(x.index_add(0, index, source), want)
    x[1, 2:4] = 9
    assert x[1, 2:4].tolist() == [9, 9] and tenon.equal(x, x.clone())


def test_compiled_programs_have_the_bits_of_eager_ones():
    for name in NAMES:
        a, b = tenon.from_numpy(numbers(name, 3000, 8)), tenon.from_numpy(numbers(name, 3000, 9))

        def program(x, y):
            z = tenon.where(x > y, x // (y + 1), x % (y + 3)) ^ (y >> 1)
            return z, z.to(tenon.float32) * 2, tenon.amax(z), (z < y).sum()

        want, f = program(a, b), tenon.compile(program)
        for _ in range(3):
            for got, eager in zip(f(a, b), want):
                assert got.dtype is eager.dtype and np.array_equal(got.numpy(), eager.numpy())


def test_uint64_without_dimensions_meets_no_other_integer():
    """No dtype holds the values of both; one that wrapped would be compared wrongly."""
    top, minus = tenon.tensor(2**64 - 1, dtype=tenon.uint64), tenon.tensor(-1)
    for call in (
        lambda: tenon.tensor([5], dtype=tenon.uint32) < top, lambda: tenon.tensor([-1]) == top, lambda: tenon.tensor([5]).maximum(top),
        lambda: top.reshape(1) == minus, lambda: tenon.maximum(top.reshape(1), minus), lambda: tenon.isin(top.reshape(1), minus.reshape(1)),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="uint64"):
            call()
    assert (top.reshape(1) > tenon.tensor(3, dtype=tenon.uint8)).tolist() == [True] and (tenon.ones(1) * top).tolist() == [2.0**64]


def test_numbers_that_uint64_does_not_hold_are_no_operands_of_the_array_api():
    x = xp.asarray([5], dtype=xp.uint16)
    for name in ("less", "maximum", "floor_divide", "add", "equal"):
        with pytest.raises(ValueError, match=f"^{name}: x2 is -1, which does not fit tenon.uint16"):
            getattr(xp, name)(x, -1)
    assert not xp.can_cast(xp.uint64, xp.int64) and xp.can_cast(xp.uint16, xp.int32)
    with pytest.raises(IndexError, match="take: index 18446744073709551615 is out of bounds"):
        xp.take(xp.asarray([7, 8]), xp.asarray([2**64 - 1], dtype=xp.uint64))


def test_random_and_even_numbers():
    assert 0 <= tenon.randint(0, 5, (100,), dtype=tenon.uint64).max().item() < 5
    assert sorted(tenon.randperm(9, dtype=tenon.uint64).tolist()) == list(range(9))
    same(tenon.linspace(0, 1e19, 3, dtype=tenon.uint64), np.linspace(0, 1e19, 3).astype(np.uint64))
    with pytest.raises(AssertionError, match="Greatest absolute difference: 18446744073709551615"):
        tenon.testing.assert_close(tenon.tensor([2**64 - 1], dtype=tenon.uint64), tenon.zeros(1, dtype=tenon.uint64), atol=2, rtol=0)


def test_what_has_no_meaning_is_refused():
    x = tenon.ones(3, dtype=tenon.uint64)
    with pytest.raises((TypeError, RuntimeError), match="uint64|integ"):
        x.requires_grad_()
    with pytest.raises((TypeError, IndexError), match="uint16"):
        tenon.arange(5)[tenon.ones(2, dtype=tenon.uint16)]
    with pytest.raises(TypeError, match="mean"):
        x.mean()
    with pytest.raises(NotImplementedError, match="max_pool1d: not implemented for uint64"):
        tenon.nn.functional.max_pool1d(tenon.ones(1, 1, 4, dtype=tenon.uint64), 2)
