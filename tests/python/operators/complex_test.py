"""Complex tensors: values against NumPy and mpmath, printing, refusals."""

import cmath
import itertools
import subprocess
import sys

import mpmath
import numpy as np
import pytest

import tenon
from tests.python.complex_samples import DTYPES, EPS, REAL, assert_close, numbers, strided, tensor


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_arithmetic_has_one_value_for_all_strides(op, dtype):
    a, b = numbers(dtype, 1), numbers(dtype, 2)
    f = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op]
    want = f(a.astype(complex), b.astype(complex))
    first = None
    for x, y in zip(strided(a), strided(b)):
        got = getattr(tenon, op)(x, y)
        assert_close(got, want, dtype, 4)
        first = got.numpy().tobytes() if first is None else first
        assert got.contiguous().numpy().tobytes() == first


def test_parts_of_every_thread_count_and_length_are_the_same():
    x = numbers("complex64", 3, (70001,))
    t = tensor(x)
    whole = tenon.exp(t * t).numpy()
    for n in (1, 5, 255, 256, 257, 511, 513, 1025):
        assert tenon.exp(t[:n] * t[:n]).numpy().tobytes() == whole[:n].tobytes()


FUNCTIONS = {
    "exp": mpmath.exp, "log": mpmath.log, "sqrt": mpmath.sqrt, "sin": mpmath.sin, "cos": mpmath.cos,
    "tan": mpmath.tan, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "expm1": mpmath.expm1,
    "log1p": lambda z: mpmath.log(1 + z), "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10": lambda z: mpmath.log(z) / mpmath.log(10), "reciprocal": lambda z: 1 / z,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z), "square": lambda z: z * z, "sgn": lambda z: z / abs(z),
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)), "silu": None,
}


def points(dtype):
    rng = np.random.default_rng(5)
    z = rng.standard_normal(300) + 1j * rng.standard_normal(300)
    z = np.concatenate([z, z * 1e-3, z * 12, np.exp(1j * rng.standard_normal(60)), [1e-20 + 1e-22j, 3e18 - 2e18j,
                       1 + 1e-6j, -1 + 1e-7j, 1e-7 - 1j, 0.6 + 0.8j, -2 + 0j, 2 - 3e-20j]])
    return z.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if FUNCTIONS[n]])
def test_functions_against_multi_precision(name, dtype):
    z = points(dtype)
    if name in ("exp", "sin", "cos", "sinh", "cosh", "expm1", "sigmoid", "tan", "tanh"):
        z = z[np.abs(z) < 80]
    got = getattr(tenon, name)(tensor(z)).numpy()
    with mpmath.workdps(60):
        for x, y in zip(z, got):
            want = complex(FUNCTIONS[name](mpmath.mpc(complex(x))))
            least = float(np.finfo(dtype).smallest_subnormal)
            assert abs(complex(y) - want) <= 6 * EPS[dtype] * abs(want) + 4 * least, (name, x, y, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithm_keeps_its_digits_on_the_unit_circle(dtype):
    z = np.exp(1j * np.linspace(-3, 3, 200)).astype(dtype)
    got = tenon.log(tensor(z)).numpy()
    with mpmath.workdps(60):
        for x, y in zip(z, got):
            want = float(mpmath.log(mpmath.mpc(complex(x))).real)
            # |x|^2 - 1 is known to twice the precision.
            assert abs(float(y.real) - want) <= 6 * EPS[dtype] * abs(want) + EPS[dtype] ** 2, (x, y, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_abs_and_angle_are_real(dtype):
    z = points(dtype)
    for name, f in (("abs", abs), ("angle", cmath.phase)):
        got = getattr(tenon, name)(tensor(z))
        assert str(got.dtype) == f"tenon.{REAL[dtype]}"
        np.testing.assert_allclose(got.numpy(), [f(complex(x)) for x in z], rtol=2 * EPS[dtype])
    big = np.finfo(REAL[dtype]).max
    assert tenon.abs(tenon.tensor([complex(big, 1)], dtype=getattr(tenon, dtype))).item() == pytest.approx(big)
    assert tenon.abs(tenon.tensor([complex(np.inf, np.nan)])).item() == np.inf
    assert tenon.angle(tenon.tensor([-1.0, 2.0, np.nan])).tolist()[:2] == [pytest.approx(np.pi), 0.0]


def test_quotients_at_the_edges_of_the_range():
    big, tiny = 1e300, 1e-300
    for a, b in itertools.product([complex(big, big), complex(tiny, tiny), complex(big, tiny), 1 + 2j], repeat=2):
        with mpmath.workdps(60):
            want = mpmath.mpc(a) / mpmath.mpc(b)
        if max(abs(want.real), abs(want.imag)) > 1e308 or abs(want) < 1e-290:
            continue
        got = (tenon.tensor(a, dtype=tenon.complex128) / tenon.tensor(b, dtype=tenon.complex128)).item()
        assert abs(got - complex(want)) <= 8 * 2.0**-52 * abs(complex(want)), (a, b, got)
    one = tenon.tensor([1 + 1j])
    assert (one / 0).tolist() == [complex(np.inf, np.inf)]
    assert (one / tenon.tensor([0j])).tolist() == [complex(np.inf, np.inf)]
    assert (one / tenon.tensor([complex(np.inf, 1)])).tolist() == [0]


def test_special_values_of_the_exponential_family():
    inf, nan = np.inf, np.nan
    got = tenon.exp(tenon.tensor([complex(-inf, nan), complex(inf, 0), complex(-inf, inf), 0j])).tolist()
    assert got[0] == 0 and got[1] == inf and got[2] == 0 and got[3] == 1
    assert tenon.log(tenon.tensor([0j])).tolist() == [complex(-inf, 0)]
    assert tenon.sqrt(tenon.tensor([complex(-4, 0.0), complex(-4, -0.0), complex(nan, inf)])).tolist() == [
        2j, -2j, pytest.approx(complex(inf, inf))]
    # e^710 overflows, e^710 * cos(b) with cos(b) = 1e-10 does not.
    z = complex(710, np.pi / 2 + 1e-10)
    with mpmath.workdps(60):
        want = complex(mpmath.exp(mpmath.mpc(z))).real
    assert tenon.exp(tenon.tensor(z, dtype=tenon.complex128)).item().real == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype):
    z, w = numbers(dtype, 7), numbers(dtype, 8)
    assert_close(tenon.pow(tensor(z), tensor(w)), z.astype(complex) ** w.astype(complex), dtype, 60)
    assert_close(tensor(z) ** 2, z.astype(complex) * z, dtype, 2)
    assert_close(2 ** tensor(z), 2 ** z.astype(complex), dtype, 20)
    assert (tenon.tensor([0j]) ** tenon.tensor([0j, 1, 2.5])).tolist() == [1, 0, 0]


def test_promotion():
    c64, c128 = tenon.tensor([1j]), tenon.tensor([1j], dtype=tenon.complex128)
    f32, f64, i64 = tenon.ones(1), tenon.ones(1, dtype=tenon.float64), tenon.ones(1, dtype=tenon.int64)
    for left, right, want in [(f32, 1j, "complex64"), (f64, 1j, "complex128"), (i64, 1j, "complex64"),
                              (c64, f64, "complex128"), (c64, f64[0], "complex64"), (c64, c128, "complex128"),
                              (c64, i64, "complex64"), (c64, 2, "complex64"), (c64, 2.5, "complex64"),
                              (f32.half(), 1j, "complex64"), (c64, c128[0], "complex64")]:
        assert str((left + right).dtype) == f"tenon.{want}"
        assert str(tenon.result_type(left, right)) == f"tenon.{want}"
    assert (f32 + 1j).tolist() == [1 + 1j]
    assert not tenon.can_cast(tenon.complex64, tenon.float32) and tenon.can_cast(tenon.float64, tenon.complex64)
    with pytest.raises((RuntimeError, TypeError)):
        tenon.ones(1).add_(1j)
    with pytest.raises((RuntimeError, TypeError)):
        tenon.add(f32, f32, alpha=1j)
    assert tenon.add(c64, f32, alpha=1j).tolist() == [2j]


def test_comparisons_and_tests():
    z = tenon.tensor([1 + 2j, 0j, complex(np.inf, 0), complex(0, np.nan)])
    assert (z == z).tolist() == [True, True, True, False]
    assert (z != tenon.tensor([1 + 2j, 1j, 0j, 0j])).tolist() == [False, True, True, True]
    assert z.isnan().tolist() == [False, False, False, True]
    assert z.isinf().tolist() == [False, False, True, False]
    assert z.isfinite().tolist() == [True, True, False, False]
    assert tenon.logical_not(z).tolist() == [False, True, False, False]
    assert tenon.where(z == 0, 5, z)[:2].tolist() == [1 + 2j, 5]
    assert tenon.allclose(z[:3], z[:3] + 0j) and tenon.equal(z[:3], z[:3].clone())
    assert not tenon.equal(tenon.tensor([1j]), tenon.tensor([2j]))
    assert bool(tenon.tensor(1j)) and not bool(tenon.tensor(0j))


@pytest.mark.parametrize("name", ["lt", "gt", "le", "ge", "maximum", "minimum", "fmod", "remainder",
                                  "floor_divide", "atan2"])
def test_what_needs_an_order_is_refused(name):
    z = tenon.tensor([1j])
    with pytest.raises(NotImplementedError, match="complex"):
        getattr(tenon, name)(z, z)


IMAGINARY_PARTS = """
import sys, warnings
import tenon

c, seen = tenon.tensor([1 + 2j, 3 - 4j]), []
warnings.simplefilter("always")
warnings.showwarning = lambda message, kind, file, line, *_: seen.append((str(message), kind.__name__, file, line))
x = tenon.zeros(2)
c.to(tenon.bool), c.to(tenon.complex128), c.real, abs(c), tenon.zeros(2).to(tenon.complex64), c.clone()
assert not seen, seen
KIND
line = sys._getframe().f_lineno - 1
assert x.tolist() == [1.0, 3.0], x
((text, kind, file, at),) = seen
assert text.startswith("Casting complex values to real discards the imaginary part") and kind == "UserWarning", seen
assert file == "<string>" and at == line, seen
x.copy_(c)
assert len(seen) == 1
"""


@pytest.mark.parametrize(
    "line",
    [
        "x.copy_(c)",
        "x = c.to(tenon.float32)",
        "x = c.double()",
        "x = c.to(tenon.int64)",
        "x[:] = c",
        "x[tenon.tensor([True, True])] = c",
        "tenon.compile(lambda: x.copy_(c))()",
        "m = tenon.nn.Module(); m.register_buffer('x', x); m.load_state_dict({'x': c})",
    ],
)
def test_a_real_copy_of_complex_numbers_warns_once_at_its_line(line):
    """In a process of its own, where nothing was copied so far."""
    done = subprocess.run([sys.executable, "-c", IMAGINARY_PARTS.replace("KIND", line)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_gradients_of_conversions_to_complex_numbers_do_not_warn():
    program = """
import tenon
x = tenon.ones(2, requires_grad=True)
y = tenon.zeros(2, dtype=tenon.complex64)
z = tenon.zeros(2, dtype=tenon.complex64).fill_(x[0])
(x.to(tenon.complex64) * (3 + 4j) + y.copy_(x) * (1 + 1j) + z * 1j).sum().real.backward()
print(x.grad.tolist())
"""
    done = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", program], capture_output=True, text=True)
    assert done.stdout == "[4.0, 4.0]\n", done.stderr


def test_a_real_copy_of_complex_numbers_writes_nothing_where_warnings_are_errors():
    program = "import tenon\nx = tenon.zeros(1)\ntry: x.copy_(tenon.tensor([1 + 2j]))\nexcept UserWarning: print(x.tolist())"
    done = subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", program], capture_output=True, text=True)
    assert done.stdout == "[0.0]\n", done.stderr


def test_hypot_of_complex_numbers_says_what_to_do():
    z = tenon.tensor([1j])
    with pytest.raises(TypeError, match="hypot: `self` is complex64.*take abs of each before"):
        tenon.hypot(z, z)


@pytest.mark.parametrize("name", ["relu", "floor", "ceil", "round", "trunc", "sign", "max", "min", "amax", "argmax"])
def test_rounding_and_extrema_are_refused(name):
    with pytest.raises(NotImplementedError, match="complex"):
        getattr(tenon, name)(tenon.tensor([1j]))


def test_more_refusals():
    z = tenon.tensor([1j, 2])
    for call in (lambda: tenon.softmax(z, 0), lambda: tenon.clamp(z, 0), lambda: z.abs_(), lambda: z.clone().sigmoid() < z,
                 lambda: tenon.arange(3, dtype=tenon.complex64), lambda: tenon.bitwise_and(z, z),
                 lambda: tenon.imag(tenon.ones(1)), lambda: tenon.view_as_real(tenon.ones(1)),
                 lambda: tenon.view_as_complex(tenon.ones(3)), lambda: tenon.full((2,), 1j, dtype=tenon.float32),
                 lambda: tenon.ones(2).fill_(1j), lambda: float(tenon.tensor(1j)), lambda: int(tenon.tensor(1j)),
                 lambda: tenon.complex(tenon.ones(1), tenon.ones(1, dtype=tenon.float64)),
                 lambda: tenon.complex(tenon.ones(1, dtype=tenon.int32), tenon.ones(1, dtype=tenon.int32)),
                 lambda: tenon.masked_fill(tenon.ones(2), z == 2, 1j), lambda: z.requires_grad_().sum().backward()):
        with pytest.raises((RuntimeError, TypeError)):
            call()


def test_views_share_the_storage():
    z = tenon.tensor([[1 + 2j, 3 - 4j]])
    assert z.real.tolist() == [[1, 3]] and z.imag.tolist() == [[2, -4]]
    assert z.real.data_ptr() == z.data_ptr() and z.imag.data_ptr() == z.data_ptr() + 4
    z.imag.mul_(10)
    z.real = 7
    assert z.tolist() == [[7 + 20j, 7 - 40j]]
    parts = tenon.view_as_real(z)
    assert tuple(parts.shape) == (1, 2, 2) and parts.stride() == (4, 2, 1)
    assert tenon.view_as_complex(parts).tolist() == z.tolist()
    assert tenon.view_as_real(z.flip(1)).tolist() == parts.flip(1).tolist()
    x = tenon.ones(2)
    assert x.real is x and tenon.conj(x) is x
    assert tenon.conj(z).tolist() == [[7 - 20j, 7 + 40j]] and z.mH.shape == (2, 1)
    x = tenon.arange(4.0)
    x.copy_(tenon.tensor([1 + 2j, 3, 4, 5]))
    assert x.tolist() == [1, 3, 4, 5]
    z.real.copy_(z.imag)
    assert z.real.tolist() == z.imag.tolist()
    e = tenon.zeros(0, 3, dtype=tenon.complex64)
    assert tuple(e.real.shape) == (0, 3) and tuple(tenon.view_as_real(e).shape) == (0, 3, 2)


def test_conversions_and_factories():
    z = tenon.tensor([1.5 + 2j, 0, 3j])
    assert z.dtype == tenon.complex64 and tenon.tensor([1, 2j]).dtype == tenon.complex64
    assert z.to(tenon.float64).tolist() == [1.5, 0, 0] and z.to(tenon.int32).tolist() == [1, 0, 0]
    assert z.bool().tolist() == [True, False, True] and z.to(tenon.float16).tolist() == [1.5, 0, 0]
    for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"):
        x = tenon.tensor([[1, 0], [1, 1]], dtype=getattr(tenon, dtype))
        assert x.t().to(tenon.complex128).tolist() == [[1, 1], [0, 1]]
        assert x.to(tenon.complex64).to(getattr(tenon, dtype)).tolist() == x.tolist()
    assert tenon.full((2,), 1j).tolist() == [1j, 1j] and tenon.full((1,), 1j).dtype == tenon.complex64
    assert tenon.ones(2, dtype=tenon.complex128).tolist() == [1, 1]
    assert tenon.eye(2, dtype=tenon.complex64).tolist() == [[1, 0], [0, 1]]
    assert tenon.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j]
    assert tenon.linspace(0, 1, 3, dtype=tenon.complex64).tolist() == [0, 0.5, 1]
    assert tenon.tensor(1 + 2j).item() == 1 + 2j and float(tenon.tensor(2 + 0j)) == 2.0
    assert tenon.complex(tenon.ones(2), tenon.arange(2.0)).tolist() == [1, 1 + 1j]
    got = tenon.polar(tenon.full((1,), 2.0), tenon.full((1,), 0.5)).item()
    assert got == pytest.approx(2 * cmath.exp(0.5j), rel=1e-6)
    assert tenon.is_complex(z) and not tenon.is_complex(z.real)
    np.testing.assert_array_equal(z.numpy(), np.array([1.5 + 2j, 0, 3j], np.complex64))


@pytest.mark.parametrize("value, text", [
    ([1.5 + 2j, -3 - 0.25j], "tensor([ 1.5000+2.0000j, -3.0000-0.2500j])"),
    ([1 + 2j, 3 - 4j], "tensor([1.+2.j, 3.-4.j])"),
    (1 + 2j, "tensor(1.+2.j)"),
    ([1e10 + 1j, complex("nan"), complex("inf")], "tensor([1.0000e+10+1.j,        nan+0.j,        inf+0.j])"),
    ([1e-5 + 100j], "tensor([1.0000e-05+100.j])"),
])
def test_printing_is_pytorch_s(value, text):
    assert repr(tenon.tensor(value)) == text


def test_printing_names_the_dtype_that_is_not_the_default():
    assert repr(tenon.tensor([1 + 2j], dtype=tenon.complex128)) == "tensor([1.+2.j], dtype=tenon.complex128)"
    assert repr(tenon.zeros(0, dtype=tenon.complex64)) == "tensor([], dtype=tenon.complex64)"


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype):
    z = numbers(dtype, 9, (5, 7))
    for t in strided(z):
        assert_close(t.sum(), z.astype(complex).sum(), dtype, 30)
        assert_close(t.sum(1), z.astype(complex).sum(1), dtype, 30)
        assert_close(t.mean(0), z.astype(complex).mean(0), dtype, 30)
        assert_close(t.prod(1), z.astype(complex).prod(1), dtype, 30)
        assert_close(t.prod(), z.astype(complex).prod(), dtype, 100)
        assert_close(t.cumsum(0), z.astype(complex).cumsum(0), dtype, 30)
        np.testing.assert_allclose(t.var(1).numpy(), z.astype(complex).var(1, ddof=1), rtol=1e-5)
        np.testing.assert_allclose(t.std(0).numpy(), z.astype(complex).std(0, ddof=1), rtol=1e-5)
    assert tenon.any(tensor(z)).item() and not tenon.all(tenon.tensor([0j, 1])).item()
    assert tenon.nonzero(tenon.tensor([0j, 1j, 1])).tolist() == [[1], [2]]
    assert tenon.sum(tenon.ones(2), dtype=tenon.complex64).item() == 2
    assert cmath.isnan(tenon.zeros(0, dtype=tenon.complex64).mean().item())
    assert tenon.zeros(0, dtype=tenon.complex64).sum().item() == 0


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_products(dtype, strict):
    before = tenon.is_strict()
    tenon.set_strict(strict)
    try:
        a, b = numbers(dtype, 10, (40, 50)), numbers(dtype, 11, (50, 45))
        want = a.astype(complex) @ b.astype(complex)
        bound = 200 * EPS[dtype] * (np.abs(a) @ np.abs(b)).max()
        for x, y in itertools.product(strided(a), strided(b)):
            got = x @ y
            assert np.abs(got.numpy() - want).max() <= bound
        c = numbers(dtype, 12, (45,))
        got = tenon.addmm(tensor(c), tensor(a), tensor(b), beta=2j, alpha=1 - 1j)
        assert np.abs(got.numpy() - (2j * c + (1 - 1j) * want)).max() <= 4 * bound
        batch = tenon.matmul(tensor(np.stack([a, a])), tensor(b))
        assert np.abs(batch.numpy() - want).max() <= bound
        v = numbers(dtype, 13, (50,))
        assert np.abs((tensor(a) @ tensor(v)).numpy() - a @ v).max() <= bound
        assert tenon.dot(tensor(v), tensor(v)).item() == pytest.approx(complex(v.astype(complex) @ v), rel=1e-4)
        assert tenon.vdot(tensor(v), tensor(v)).item() == pytest.approx(complex(np.vdot(v, v)), rel=1e-4)
        assert (tensor(a[:, :0]) @ tensor(b[:0])).abs().sum().item() == 0
        linear = tenon.nn.functional.linear(tensor(a), tensor(b.T.copy()), tensor(c))
        assert np.abs(linear.numpy() - (want + c)).max() <= 2 * bound
    finally:
        tenon.set_strict(before)


def test_indexing_joining_and_copies():
    z = numbers("complex64", 14, (5, 4))
    t = tensor(z)
    i = tenon.tensor([3, 0, 3])
    np.testing.assert_array_equal(t[i].numpy(), z[[3, 0, 3]])
    np.testing.assert_array_equal(tenon.index_select(t, 1, i).numpy(), z[:, [3, 0, 3]])
    np.testing.assert_array_equal(tenon.cat([t, t.flip(0)]).numpy(), np.concatenate([z, z[::-1]]))
    assert tenon.cat([t, tenon.ones(1, 4)]).dtype == tenon.complex64
    u = t.clone()
    u[i] = 2j
    assert u[3, 1].item() == 2j
    u.index_put_([i], tenon.ones(3, 4, dtype=tenon.complex64), accumulate=True)
    assert u[3, 1].item() == 2 + 2j and u[0, 0].item() == 1 + 2j
    w = tenon.index_add(t, 0, i, tenon.ones(3, 4, dtype=tenon.complex64), alpha=1j)
    np.testing.assert_allclose(w[3].numpy(), z[3] + 2j, rtol=1e-6)
    np.testing.assert_array_equal(tenon.masked_fill(t, t == t[0, 0], 3j)[0, 0].item(), 3j)
    np.testing.assert_array_equal(tenon.gather(t, 1, tenon.tensor([[1], [0], [2], [3], [3]])).numpy()[:, 0],
                                  z[range(5), [1, 0, 2, 3, 3]])


@pytest.mark.parametrize("dtype", [tenon.complex64, tenon.complex128])
def test_random_complex_numbers(dtype):
    """Each part has half of the variance; five standard errors of 100,000 numbers."""
    tenon.manual_seed(1)
    z = tenon.randn(100_000, dtype=dtype).numpy()
    for part in (z.real, z.imag):
        assert abs(part.mean()) < 5 * np.sqrt(0.5 / 1e5) and abs(part.var() - 0.5) < 5 * np.sqrt(2 * 0.25 / 1e5)
    assert abs((z.real * z.imag).mean()) < 5 * 0.5 / np.sqrt(1e5)
    u = tenon.rand(1000, dtype=dtype).numpy()
    for part in (u.real, u.imag):
        assert 0 <= part.min() < 0.02 and 0.98 < part.max() < 1
    view = tenon.zeros(4, 6, dtype=dtype)
    view.t()[::2].normal_(5, 0)
    assert (view[:, ::2] == 5 + 5j).all() and (view[:, 1::2] == 0).all()
    kept = tenon.nn.functional.dropout(tenon.full((1000,), 1 + 1j, dtype=dtype), 0.5)
    assert set(kept.tolist()) == {0, 2 + 2j}


def test_in_place_and_out():
    z = tensor(numbers("complex64", 30))
    want = (z * z).exp()
    y = z.clone().mul_(z).exp_()
    assert y.numpy().tobytes() == want.numpy().tobytes()
    out = tenon.empty(0, dtype=tenon.complex128)
    assert tenon.mul(z, z, out=out).dtype == tenon.complex128
    np.testing.assert_array_equal(out.numpy().astype(np.complex64), (z * z).numpy())
    real = tenon.empty(0)
    np.testing.assert_array_equal(tenon.abs(z, out=real).numpy(), z.abs().numpy())
    wide = tenon.empty(z.shape, dtype=z.dtype)
    assert tenon.add(z.real, z.imag, out=wide).imag.abs().sum().item() == 0 and (wide.real == z.real + z.imag).all()
    assert tenon.abs(z, out=wide).imag.abs().sum().item() == 0 and (wide.real == z.abs()).all()
    with pytest.raises((RuntimeError, TypeError)):
        tenon.exp(z, out=tenon.empty(0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_negative_real_numbers_are_complex(dtype):
    x = np.array([-2.0, -0.25, 3.0, -1.0], REAL[dtype])
    z = np.array([0.5 + 1j, 2 - 0.5j, -1.5 + 0.25j, 1j], dtype)
    for base, exponent in ((tensor(x), tensor(z)), (tensor(x).to(getattr(tenon, dtype)), tensor(z)), (-2, tensor(z)), (tensor(x), 1.5 - 2j)):
        got = tenon.pow(base, exponent).numpy()
        bases = x if isinstance(base, tenon.Tensor) else np.full(4, base)
        exponents = z if isinstance(exponent, tenon.Tensor) else np.full(4, exponent)
        for g, b, e in zip(got, bases, exponents):
            want = complex(mpmath.power(mpmath.mpf(float(b)), mpmath.mpc(complex(e))))
            assert abs(complex(g) - want) <= 40 * EPS[dtype] * abs(want), (b, e, g, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_roots_and_signs_at_both_ends_of_the_range(dtype):
    info = np.finfo(dtype)
    least, most = float(info.smallest_subnormal), float(info.max)
    z = np.array([complex(a, b) for a in (least, -3 * least, 0, most) for b in (least, -5 * least, -most)], dtype)
    with mpmath.workdps(60):
        for x, root, sign in zip(z, tenon.sqrt(tensor(z)).numpy(), tenon.sgn(tensor(z)).numpy()):
            exact = mpmath.mpc(complex(x))
            for got, want in ((root, mpmath.sqrt(exact)), (sign, exact / abs(exact))):
                want = complex(want)
                assert abs(complex(got) - want) <= 4 * EPS[dtype] * abs(want), (x, got, want)


def test_special_values_are_those_of_annex_g():
    inf, nan = np.inf, np.nan
    for name, x, want in (
        ("exp", complex(-1e30, nan), complex(nan, nan)), ("exp", complex(-inf, nan), 0j), ("cos", complex(nan, 0), complex(nan, 0)),
        ("cos", complex(nan, inf), complex(inf, nan)), ("sin", complex(inf, inf), complex(nan, inf)),
        ("sinh", complex(inf, nan), complex(inf, nan)), ("cosh", complex(0, nan), complex(nan, 0)),
        ("tanh", complex(0, nan), complex(0, nan)), ("tanh", complex(1e30, inf), complex(nan, nan)),
        ("tanh", complex(inf, nan), complex(1, 0)), ("tan", complex(inf, 0), complex(nan, 0)),
        ("reciprocal", complex(inf, nan), 0j), ("sin", complex(4, 0.0), complex(np.sin(4), -0.0)),
    ):  # fmt: skip
        got = getattr(tenon, name)(tenon.tensor([x], dtype=tenon.complex128)).item()
        for g, w in ((got.real, want.real), (got.imag, want.imag)):
            assert abs(g) == abs(w) or (np.isnan(g) and np.isnan(w)) or abs(g - w) < 1e-15, (name, x, got, want)
    assert np.signbit(tenon.sin(tenon.tensor([4 + 0j], dtype=tenon.complex128)).imag.item())
    assert np.signbit(tenon.cos(tenon.tensor([1 + 0j], dtype=tenon.complex128)).imag.item())
    assert not np.signbit(tenon.cos(tenon.tensor([4 + 0j], dtype=tenon.complex128)).imag.item())


def test_numbers_at_the_end_of_the_range_are_close_by_their_distance():
    most = float(np.finfo("float32").max)
    x, y = (tenon.tensor([complex(most, im)], dtype=tenon.complex64) for im in (0, most))
    assert tenon.isclose(x, y).tolist() == [False] and tenon.isclose(y, y).tolist() == [True]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_what_is_alike_for_both_parts_has_the_same_bits_for_any_strides(dtype):
    rng = np.random.default_rng(5)
    parts = rng.standard_normal((2, 37, 23))
    parts.flat[rng.integers(0, parts.size, 200)] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310], 200)
    # Made of parts, which multiplication by 1j would not leave alone.
    array = np.empty((37, 23), dtype)
    array.real, array.imag = parts
    x = tenon.tensor(array)
    other = x.flip(0).contiguous()
    forms = {
        "add": lambda a, b: a + b,
        "add alpha": lambda a, b: tenon.add(a, b, alpha=2.5),
        "sub": lambda a, b: a - b,
        "neg": lambda a, b: -a,
        "times": lambda a, b: a * 3,
        "add number": lambda a, b: a + 3,
        "add complex": lambda a, b: a + 3j,
        "lerp": lambda a, b: a + (b - a) * 0.25,
    }
    for name, form in forms.items():
        dense = form(x, other)
        strided = form(x.t().contiguous().t(), other)
        assert np.asarray(strided.contiguous()).tobytes() == np.asarray(dense).tobytes(), name
        each = form(x[:, ::2], other[:, ::2])
        assert np.asarray(each.contiguous()).tobytes() == np.asarray(dense[:, ::2].contiguous()).tobytes(), name
    # Parts do not mix.
    np.testing.assert_array_equal(np.asarray((x + other).real), np.asarray(x.real + other.real))
    np.testing.assert_array_equal(np.asarray((x - other).imag), np.asarray(x.imag - other.imag))
