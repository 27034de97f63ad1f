"""Pointwise operators against NumPy in float64: values, result dtypes, strides, in-place and out= forms, refusals."""

import numpy as np
import pytest
import scipy.special

import tenon

DTYPES = ["bool", "uint8", "int32", "int64", "float32", "float64"]
FLOATS = ["float32", "float64"]
ULP = {"float32": 4e-7, "float64": 1e-15}


def values(dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, (3, 5)).astype(bool)
    if dtype.startswith("float"):
        a = (rng.standard_normal((3, 5)) * 3).astype(dtype)
        a.reshape(-1)[:5] = [0.0, -0.0, np.nan, np.inf, -np.inf]
        return a
    return rng.integers(0 if dtype == "uint8" else -4, 6, (3, 5)).astype(dtype)


def close(got: tenon.Tensor, want: np.ndarray, dtype: str) -> None:
    assert str(got.dtype) == f"tenon.{dtype}"
    tolerance = ULP.get(dtype, 0)
    np.testing.assert_allclose(got.numpy().astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=0)


UNARY = {
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "log10": np.log10, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: np.where(np.isneginf(x), np.nan, x / (1 + np.exp(-x))),
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_integers_give_the_default_float(name, dtype):
    x = values(dtype, 1)
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.float64))
    close(getattr(tenon, name)(tenon.from_numpy(x)), want, dtype if dtype in FLOATS else "float32")


@pytest.mark.parametrize("name", ["abs", "sign", "square", "floor", "ceil", "trunc", "relu", "neg"])
@pytest.mark.parametrize("dtype", ["int32", "int64", *FLOATS])
def test_functions_that_keep_the_dtype(name, dtype):
    reference = {"neg": np.negative, "relu": lambda x: np.where(x <= 0, 0, x),
                 "sign": lambda x: np.where(np.isnan(x), 0, np.sign(x))}.get(name) or getattr(np, name)
    x = values(dtype, 2)
    close(getattr(tenon, name)(tenon.from_numpy(x)), reference(x.astype(np.float64)), dtype)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_binary_operators_promote(left, right):
    a, b = values(left, 3), values(right, 4)
    x, y = tenon.from_numpy(a), tenon.from_numpy(b)
    common = np.result_type(a, b)
    if common == np.float64 and "float64" not in (left, right):
        common = np.dtype("float32")  # an integer beside float32 stays float32
    c, d = a.astype(common), b.astype(common)
    with np.errstate(all="ignore"):
        close(x + y, c + d, common.name)
        close(x * y, c * d, common.name)
        quotient = common if common.kind == "f" else np.dtype("float32")
        close(x / y, c.astype(np.float64) / d.astype(np.float64), quotient.name)
        close(tenon.maximum(x, y), np.maximum(c, d), common.name)
        close(tenon.minimum(x, y), np.minimum(c, d), common.name)
        if "bool" not in (left, right):
            close(x - y, c - d, common.name)
        for operator in ("eq", "ne", "lt", "le", "gt", "ge"):
            reference = {"eq": c == d, "ne": c != d, "lt": c < d, "le": c <= d, "gt": c > d, "ge": c >= d}[operator]
            close(getattr(tenon, operator)(x, y), reference, "bool")


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_strides_give_the_same_bits(dtype):
    x = tenon.from_numpy(values(dtype, 5))
    flipped = tenon.flip(x, [0, 1])
    np.testing.assert_array_equal(tenon.silu(flipped).numpy(), tenon.silu(x).numpy()[::-1, ::-1])
    np.testing.assert_array_equal(tenon.tanh(x.t()).numpy(), tenon.tanh(x).numpy().T)


def test_where_takes_the_branch_and_only_its_gradient():
    x = tenon.tensor([0.0, 4.0], requires_grad=True)
    y = tenon.where(x > 0, x.sqrt(), tenon.zeros(2))
    y.sum().backward()
    np.testing.assert_array_equal(y.tolist(), [0.0, 2.0])
    assert x.grad.tolist()[1] == 0.25


def test_in_place_and_out_forms_write_their_argument():
    x = tenon.tensor([1.0, -2.0])
    assert x.mul_(3) is x and x.tolist() == [3.0, -6.0]
    out = tenon.empty(2)
    assert tenon.abs(x, out=out) is out and out.tolist() == [3.0, 6.0]
    assert tenon.clamp(x, -1, 2).tolist() == [2.0, -1.0]


def test_refused_dtypes_say_what_to_do():
    mask = tenon.tensor([True, False])
    with pytest.raises(TypeError, match="neg.*bool.*logical_not"):
        -mask
    with pytest.raises(TypeError, match="sub.*bool.*logical_xor"):
        mask - mask
    with pytest.raises(TypeError, match="bitwise_and.*float32"):
        tenon.bitwise_and(tenon.ones(2), tenon.ones(2))
    assert (~mask).tolist() == [False, True]


def test_clamp_needs_a_bound():
    with pytest.raises(ValueError, match="min.*max"):
        tenon.clamp(tenon.ones(2))


def test_relu_keeps_the_sign_of_zero():
    got = tenon.relu(tenon.tensor([-0.0, 0.0, float("nan"), -1.0])).numpy()
    assert np.signbit(got).tolist() == [True, False, False, False] and np.isnan(got[2])


def test_the_gradient_of_gelu_keeps_its_digits_in_the_tail():
    x = -np.concatenate([np.linspace(0, 13, 40001), np.linspace(13, 15, 2001)]).astype(np.float32)
    leaf = tenon.tensor(x).requires_grad_()
    tenon.nn.functional.gelu(leaf).sum().backward()
    a = x.astype(np.float64)
    want = 0.5 * scipy.special.erfc(-a * np.sqrt(0.5)) + a * np.exp(-0.5 * a * a) / np.sqrt(2 * np.pi)
    error = np.abs(leaf.grad.numpy() - want)
    # At -0.75 it is 0, and only the larger of the two parts that it is the sum of can be right to the last place.
    assert np.all(error <= np.maximum(4 * np.spacing(np.abs(want).astype(np.float32)), 2.0**-24 * np.exp(-0.5 * a * a)))


def test_bounds_get_no_gradient_where_they_are_numbers_and_half_where_they_are_tensors():
    def gradients(f, *values):
        leaves = [tenon.tensor(v, requires_grad=True) for v in values]
        f(*leaves).sum().backward()
        return [t.grad.tolist() for t in leaves]

    x = [-2.0, -1.0, 0.0, 1.0, 2.0, float("nan")]
    assert gradients(lambda t: t.clamp(-1, 1), x) == [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]
    assert gradients(lambda t: t.clamp_min(0), [-1.0, 0.0, 1.0]) == [[0.0, 0.0, 1.0]]
    assert gradients(lambda t: t.clamp_max(0), [-1.0, 0.0, 1.0]) == [[1.0, 0.0, 0.0]]
    assert gradients(lambda t: t.clamp(1, -1), [-2.0, 0.0, 2.0]) == [[0.0, 0.0, 0.0]]
    both = gradients(lambda t, low, high: t.clamp(low, high), [-1.0, 0.0, 1.0], [0.0] * 3, [1.0] * 3)
    assert both == [[0.0, 0.5, 0.5], [1.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
    # Bounds that leave no room but the element itself leave it the gradient; otherwise the one that it meets has it.
    for clamp in (lambda t, low, high: t.clamp(low, high), lambda t, low, high: (t * 1).clamp_(low, high)):
        tight = gradients(clamp, [1.0, 0.0, 2.0, 1.0], [1.0] * 4, [1.0, 1.0, 1.0, 0.5])
        assert tight == [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    got = tenon.tensor([-0.0, 1.0]).clamp_min(0).numpy()
    assert np.signbit(got).tolist() == [True, False]
    assert tenon.tensor([1.0]).clamp(float("nan")).isnan().item()
    assert tenon.tensor([-3, 3]).clamp(-1, 1).tolist() == [-1, 1]


def test_numbers_beside_narrow_integers_keep_their_value():
    x = tenon.tensor([1, 2, 250], dtype=tenon.uint8)
    assert (x < -1).tolist() == [False] * 3 and (x == 300).tolist() == [False] * 3
    assert (x // -1).tolist() == [255, 254, 6] and (x + 300).tolist() == [45, 46, 38]
    assert not (tenon.tensor([44], dtype=tenon.int8) == 300).item()
    with pytest.raises(ValueError, match="does not fit int32"):
        tenon.tensor([1], dtype=tenon.int32) + 2**40


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_results_that_do_not_fit_the_caches(offset):
    # Beyond half of any last-level cache that a desktop has; the tail is not a whole vector.
    n = 6_000_001
    x = tenon.arange(n + 5, dtype=tenon.float32)[offset : n + offset]
    y = tenon.ones(n)
    a = np.arange(offset, n + offset, dtype=np.float32)
    out = tenon.empty(n + 5)[offset : n + offset]
    tenon.add(x, y, alpha=3, out=out)
    np.testing.assert_array_equal(np.asarray(out), a + 3)
    np.testing.assert_array_equal(np.asarray(x + y), a + 1)
    y.add_(x)
    np.testing.assert_array_equal(np.asarray(y), a + 1)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_integers_cut_the_fraction_of_numbers_off(dtype):
    F = tenon.nn.functional
    values = np.array([0, 1, 2, 3, 10, 100], dtype)
    t = tenon.tensor(values)
    for got, want in [
        (F.hardtanh(t, 1.9, 5.5), np.clip(values, 1, 5)),
        (F.hardtanh(t, -1.5, 2.5), np.clip(values, 0, 2)),
        (F.hardtanh_(t.clone(), 1.9, 5.5), np.clip(values, 1, 5)),
        (F.threshold(t, 1.5, 7.9), np.where(values <= 1, 7, values)),
        (F.threshold_(t.clone(), 1.5, 7.9), np.where(values <= 1, 7, values)),
        (tenon.addcmul(t, t, t, value=0.9), values),
        (tenon.addcmul(t[:4], t[:4], t[:4], value=2.7), values[:4] + 2 * values[:4] ** 2),
        (t[:4].clone().addcmul_(t[:4], t[:4], value=2.7), values[:4] + 2 * values[:4] ** 2),
        (tenon.compile(lambda t: F.hardtanh(t, 1.9, 5.5) + 1)(t), np.clip(values, 1, 5) + 1),
    ]:
        assert str(got.dtype) == f"tenon.{dtype}" and got.tolist() == want.tolist()
    for value in (float("inf"), float("nan"), 1e30):
        with pytest.raises(ValueError, match=r"^addcmul: value .* cannot be converted to int64 without overflow"):
            tenon.addcmul(t, t, t, value=value)
    with pytest.raises(TypeError, match="^add: `alpha` is a float number"):
        tenon.add(t, t, alpha=1.5)


def test_an_integer_beside_a_float_tensor_is_converted():
    i, f, b = tenon.tensor([1, 2]), tenon.tensor([0.5, 4.0]), tenon.tensor([True, False])
    I, F, B = (t.double().numpy() for t in (i, f, b))
    for x, y, X, Y in [(i, f, I, F), (f, i, F, I), (b, f, B, F), (i, tenon.tensor(1.0), I, 1.0)]:
        got = tenon.logaddexp(x, y)
        assert got.dtype is tenon.float32
        np.testing.assert_allclose(got.numpy(), np.logaddexp(X, Y), rtol=1e-6)
    for x, y, z, X, Y, Z in [(i, f, f, I, F, F), (f, i, f, F, I, F), (f, f, i, F, F, I), (f, i, i, F, I, I), (i, b, f, I, B, F)]:
        got = tenon.addcdiv(x, y, z, value=0.5)
        assert got.dtype is tenon.float32
        np.testing.assert_allclose(got.numpy(), X + 0.5 * Y / Z, rtol=1e-6)
    assert f.clone().addcdiv_(i, i).tolist() == [1.5, 5.0]
    for call, name in ((lambda: tenon.logaddexp(i, i), "logaddexp"), (lambda: tenon.addcdiv(i, i, b), "addcdiv")):
        with pytest.raises(TypeError, match=f"^{name}: the operands are int64, which is not supported; convert it to a floating-point type"):
            call()
    with pytest.raises(TypeError, match="^addcdiv_: the result is float32, which cannot be stored in `self` of int64"):
        i.clone().addcdiv_(f, f)


@pytest.mark.parametrize("name", ["clamp_", "clip_"])
def test_clamp_in_place_takes_tensors_as_a_function_too(name):
    values = np.linspace(-2, 2, 9)
    for bounds in ((-1.0, 1.0), (np.full(9, -0.5), np.linspace(0, 1, 9)), (np.full(9, -0.5), None)):
        x = tenon.from_numpy(values.copy())
        given = [tenon.from_numpy(b) if isinstance(b, np.ndarray) else b for b in bounds]
        assert getattr(tenon, name)(x, *given) is x
        np.testing.assert_array_equal(x.numpy(), np.clip(values, *bounds))
