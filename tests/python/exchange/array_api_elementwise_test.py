"""The elementwise functions of the Python array API standard: values, promotion, special cases. Expected results are NumPy's in float64, or
the tables of the standard's text."""

import inspect
import operator

import numpy as np
import pytest

import tenon

xp = tenon.ones(1).__array_namespace__(api_version="2024.12")
inf, nan, pi = np.inf, np.nan, np.pi
REAL = np.array([-3.7, -2.5, -1.0, -0.3, 0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 6.0])
COMPLEX = np.array([complex(a, b) for a in (-2.3, -0.4, 0.7, 1.9) for b in (-1.1, 0.2, 3.0)])
IN_REALS = {  # function: NumPy's name where it is another, and the part of REAL that it takes
    "abs": None, "acos": ("arccos", -1, 1), "acosh": ("arccosh", 1, 9), "asin": ("arcsin", -1, 1), "asinh": ("arcsinh", -9, 9),
    "atan": ("arctan", -9, 9), "atanh": ("arctanh", -0.5, 0.5), "ceil": None, "cos": None, "cosh": None, "exp": None, "expm1": None,
    "floor": None, "isfinite": None, "isinf": None, "isnan": None, "log": ("log", 0.1, 9), "log10": ("log10", 0.1, 9),
    "log1p": ("log1p", -0.5, 9), "log2": ("log2", 0.1, 9), "negative": None, "positive": None, "reciprocal": ("reciprocal", 0.1, 9),
    "round": None, "sign": None, "signbit": None, "sin": None, "sinh": None, "sqrt": ("sqrt", 0, 9), "square": None, "tan": None,
    "tanh": None, "trunc": None,
}  # fmt: skip
IN_COMPLEX = (
    "abs acos acosh asin asinh atan atanh conj cos cosh exp expm1 imag isfinite isinf isnan log log10 log1p log2 negative positive real "
    "reciprocal round sign sin sinh sqrt square tan tanh"
).split()
OF_TWO = {
    "add": "bif c", "subtract": "if c", "multiply": "if c", "divide": "f c", "pow": "f c", "atan2": "f", "copysign": "f", "hypot": "f",
    "logaddexp": "f", "nextafter": "f", "floor_divide": "if", "remainder": "if", "maximum": "if", "minimum": "if", "equal": "bif c",
    "not_equal": "bif c", "greater": "if", "greater_equal": "if", "less": "if", "less_equal": "if", "bitwise_and": "bi", "bitwise_or": "bi",
    "bitwise_xor": "bi", "bitwise_left_shift": "i", "bitwise_right_shift": "i", "logical_and": "b", "logical_or": "b", "logical_xor": "b",
}  # fmt: skip
RENAMED = {
    "atan2": "arctan2", "pow": "power", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "bitwise_invert": "invert",
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh",
}  # fmt: skip
OPERANDS = {
    "b": [np.array([True, False, True, False]), np.array([[True], [False]])],
    "i": [np.array([[7], [-7], [0]]), np.array([3, 2, 5])],
    "f": [np.array([[2.5], [-0.75], [6.0]]), np.array([2.0, 0.5, -3.0, 1e-3])],
    "c": [np.array([[2.5 + 1j], [-0.75j]]), np.array([2.0 - 1j, 0.5, -3.0j])],
}


def numpys(name):
    return getattr(np, RENAMED.get(name, name))


def same(got, want, exact=False):
    """Equal values and dtypes; NaN equals NaN; exactly, zeros have the same sign."""
    want = np.asarray(want)
    got = got.numpy()
    assert got.shape == want.shape and got.dtype == want.dtype, (got, want)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=0 if exact else 1e-15)
    if exact:
        for part in (np.real, np.imag) if want.dtype.kind == "c" else (np.asarray,):
            zero = part(want) == 0
            assert np.array_equal(np.signbit(part(got))[zero], np.signbit(part(want))[zero]), (got, want)


@pytest.mark.parametrize("name", IN_REALS)
def test_functions_of_one_real_array(name):
    theirs, low, high = IN_REALS[name] or (name, -9, 9)
    x = REAL[(REAL >= low) & (REAL <= high)]
    same(getattr(xp, name)(tenon.tensor(x)), getattr(np, theirs)(x))
    assert getattr(xp, name)(tenon.tensor(x[:0].reshape(0, 2))).shape == (0, 2)
    assert getattr(xp, name)(tenon.tensor(x[0], dtype=tenon.float32)).dtype in (tenon.float32, tenon.bool)


@pytest.mark.parametrize("name", IN_COMPLEX)
def test_functions_of_one_complex_array(name):
    x = np.concatenate([COMPLEX, [2.5 + 0.5j]])
    want = x / np.abs(x) if name == "sign" else numpys(name)(x)
    same(getattr(xp, name)(tenon.tensor(x)), want)


def test_functions_of_one_integer_or_truth_value():
    x = np.array([[-7, 0], [3, 127]], np.int8)
    for name in ("abs", "ceil", "floor", "trunc", "round", "sign", "square", "negative", "positive", "isfinite", "isinf", "isnan", "bitwise_invert"):
        same(getattr(xp, name)(tenon.tensor(x)), numpys(name)(x).astype(bool if name.startswith("is") else np.int8))
    same(xp.logical_not(tenon.tensor([True, False])), [False, True])
    same(xp.bitwise_invert(tenon.tensor([True, False])), [False, True])


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_arrays(name):
    for kind in OF_TWO[name].replace(" ", ""):
        a, b = OPERANDS[kind]
        if name.endswith("shift"):
            a = np.abs(a)
        if name == "pow":
            a = np.abs(a)
        same(getattr(xp, name)(tenon.tensor(a), tenon.tensor(b)), numpys(name)(a, b))
        assert list(inspect.signature(getattr(xp, name)).parameters) == ["x1", "x2"]
        # A number on either side has the array's dtype.
        number = b.reshape(-1)[0].item()
        narrow = {"i": np.int16, "f": np.float32, "c": np.complex64}.get(kind, bool)
        x = np.abs(a).astype(narrow)
        got = getattr(xp, name)(tenon.tensor(x), number), getattr(xp, name)(number, tenon.tensor(x))
        typed = np.asarray(number, narrow)
        with np.errstate(all="ignore"):
            want = numpys(name)(x, typed), numpys(name)(typed, x)
        for g, w in zip(got, want):
            if kind == "i" and name in ("floor_divide", "remainder"):
                g, w = g[x != 0], w[x != 0]
            assert g.numpy().dtype == w.dtype
            np.testing.assert_allclose(g.numpy(), w, rtol=2e-6)


@pytest.mark.parametrize(("a", "b", "want"), [("int16", "int8", "int16"), ("int8", "uint8", "int16"), ("float64", "float32", "float64"), ("complex64", "float64", "complex128")])
def test_an_array_without_dimensions_promotes_as_others_do(a, b, want):
    scalar, vector = tenon.ones((), dtype=getattr(tenon, a)), tenon.ones(2, dtype=getattr(tenon, b))
    for name in ("add", "multiply", "equal", "where", "matmul", "concat", "stack"):
        if name == "where":
            got = xp.where(tenon.tensor([True, False]), scalar, vector)
        elif name == "concat":
            got = xp.concat([scalar, vector], axis=None)
        elif name == "stack":
            got = xp.stack([scalar, vector[0]])
        elif name == "matmul":
            got = xp.matmul(xp.broadcast_to(scalar, (2,)), vector)
        else:
            got = getattr(xp, name)(scalar, vector)
        assert got.dtype is (tenon.bool if name == "equal" else getattr(tenon, want)), name


def test_numbers_need_an_array():
    with pytest.raises(ValueError, match="result_type: expected an array or a dtype among the arguments, got 2 numbers"):
        xp.add(1, 2)
    with pytest.raises(TypeError, match=r"floor_divide: x2 must be an array or a number, got 'two' \(str\)"):
        xp.floor_divide(tenon.ones(1), "two")
    with pytest.raises(TypeError, match="hypot: x1 must be an array or a number, got tenon.uint8"):
        xp.hypot(tenon.uint8, 2.0)
    with pytest.raises(TypeError, match="positional"):
        xp.add(x1=tenon.ones(1), x2=tenon.ones(1))
    with pytest.raises(TypeError, match="positional"):
        xp.sin(x=tenon.ones(1))


SPECIAL = {
    "abs": [(-0.0, 0.0), (-inf, inf), (nan, nan)],
    "acos": [(1.0, 0.0), (1.1, nan), (-1.1, nan)],
    "acosh": [(1.0, 0.0), (0.9, nan), (inf, inf)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.1, nan), (-1.1, nan)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (inf, pi / 2), (-inf, -pi / 2)],
    "atanh": [(-1.0, -inf), (1.0, inf), (0.0, 0.0), (-0.0, -0.0), (1.1, nan), (-1.1, nan)],
    "ceil": [(3.0, 3.0), (inf, inf), (-inf, -inf), (0.0, 0.0), (-0.0, -0.0), (-0.5, -0.0)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, inf)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0)],
    "floor": [(3.0, 3.0), (inf, inf), (-inf, -inf), (0.0, 0.0), (-0.0, -0.0)],
    "log": [(-1.0, nan), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf)],
    "log10": [(-1.0, nan), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf)],
    "log2": [(-1.0, nan), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf)],
    "log1p": [(-1.1, nan), (-1.0, -inf), (0.0, 0.0), (-0.0, -0.0), (inf, inf)],
    "round": [(0.5, 0.0), (1.5, 2.0), (-0.5, -0.0), (-2.5, -2.0), (0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "sign": [(-2.0, -1.0), (0.0, 0.0), (-0.0, 0.0), (2.0, 1.0), (inf, 1.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "sqrt": [(-1.0, nan), (0.0, 0.0), (-0.0, -0.0), (inf, inf)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0)],
    "trunc": [(3.0, 3.0), (inf, inf), (-inf, -inf), (0.0, 0.0), (-0.0, -0.0), (-0.5, -0.0)],
}
c = complex
NANS = c(nan, nan)
COMPLEX_SPECIAL = {
    "acos": [(c(0, 0), c(pi / 2, -0.0)), (c(0, nan), c(pi / 2, nan)), (c(1, inf), c(pi / 2, -inf)), (c(-inf, 1), c(pi, -inf)), (c(inf, 1), c(0, -inf)),
             (c(-inf, inf), c(3 * pi / 4, -inf)), (c(inf, inf), c(pi / 4, -inf)), (c(nan, inf), c(nan, -inf)), (c(1, nan), NANS), (c(nan, 1), NANS)],
    "acosh": [(c(0, 0), c(0, pi / 2)), (c(1, inf), c(inf, pi / 2)), (c(-inf, 1), c(inf, pi)), (c(inf, 1), c(inf, 0)), (c(-inf, inf), c(inf, 3 * pi / 4)),
              (c(inf, inf), c(inf, pi / 4)), (c(inf, nan), c(inf, nan)), (c(nan, inf), c(inf, nan)), (c(1, nan), NANS), (c(nan, 1), NANS)],
    "asinh": [(c(0, 0), c(0, 0)), (c(1, inf), c(inf, pi / 2)), (c(1, nan), NANS), (c(inf, 1), c(inf, 0)), (c(inf, inf), c(inf, pi / 4)),
              (c(nan, 0), c(nan, 0)), (c(nan, 1), NANS), (NANS, NANS)],
    "atanh": [(c(0, 0), c(0, 0)), (c(0, nan), c(0, nan)), (c(1, 0), c(inf, 0)), (c(1, inf), c(0, pi / 2)), (c(2, nan), NANS), (c(inf, 1), c(0, pi / 2)),
              (c(inf, inf), c(0, pi / 2)), (c(inf, nan), c(0, nan)), (c(nan, 1), NANS)],
    "cosh": [(c(0, 0), c(1, 0)), (c(1, inf), NANS), (c(1, nan), NANS), (c(inf, 0), c(inf, 0)), (c(inf, 1), c(inf, inf)), (c(inf, nan), c(inf, nan)), (c(nan, 1), NANS)],
    "exp": [(c(0, 0), c(1, 0)), (c(-0.0, 0), c(1, 0)), (c(1, inf), NANS), (c(1, nan), NANS), (c(inf, 0), c(inf, 0)), (c(-inf, 1), c(0, 0)), (c(inf, 1), c(inf, inf)),
            (c(nan, 0), c(nan, 0)), (c(nan, 1), NANS)],
    "expm1": [(c(0, 0), c(0, 0)), (c(-0.0, 0), c(0, 0)), (c(1, inf), NANS), (c(1, nan), NANS), (c(inf, 0), c(inf, 0)), (c(inf, 1), c(inf, inf)), (c(nan, 0), c(nan, 0))],
    "log": [(c(-0.0, 0), c(-inf, pi)), (c(0, 0), c(-inf, 0)), (c(1, inf), c(inf, pi / 2)), (c(1, nan), NANS), (c(-inf, 1), c(inf, pi)), (c(inf, 1), c(inf, 0)),
            (c(-inf, inf), c(inf, 3 * pi / 4)), (c(inf, inf), c(inf, pi / 4)), (c(inf, nan), c(inf, nan)), (c(nan, 1), NANS), (c(nan, inf), c(inf, nan))],
    "log1p": [(c(-1, 0), c(-inf, 0)), (c(1, inf), c(inf, pi / 2)), (c(1, nan), NANS), (c(-inf, 1), c(inf, pi)), (c(inf, 1), c(inf, 0)), (c(-inf, inf), c(inf, 3 * pi / 4)),
              (c(inf, inf), c(inf, pi / 4)), (c(nan, 1), NANS), (c(nan, inf), c(inf, nan))],
    "sign": [(c(-0.0, 0), c(0, 0)), (c(-0.0, -0.0), c(0, 0)), (c(nan, 1), NANS), (c(1, nan), NANS)],
    "sinh": [(c(0, 0), c(0, 0)), (c(1, inf), NANS), (c(1, nan), NANS), (c(inf, 0), c(inf, 0)), (c(inf, 1), c(inf, inf)), (c(nan, 0), c(nan, 0)), (c(nan, 1), NANS)],
    "sqrt": [(c(0, 0), c(0, 0)), (c(-0.0, 0), c(0, 0)), (c(nan, inf), c(inf, inf)), (c(1, inf), c(inf, inf)), (c(1, nan), NANS), (c(-inf, 1), c(0, inf)), (c(inf, 1), c(inf, 0)),
             (c(inf, nan), c(inf, nan)), (c(nan, 1), NANS)],
    "tanh": [(c(0, 0), c(0, 0)), (c(1, inf), NANS), (c(1, nan), NANS), (c(inf, 1), c(1, 0)), (c(inf, 2), c(1, 0)), (c(-inf, 2), c(-1, 0)), (c(nan, 0), c(nan, 0)), (c(nan, 1), NANS)],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases_of_one_array(name):
    for dtype in (np.float32, np.float64):
        x, want = np.array([*SPECIAL[name], (nan, nan)], dtype).T
        got = getattr(xp, name)(tenon.tensor(x))
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
        assert np.array_equal(np.signbit(got.numpy())[want == 0], np.signbit(want)[want == 0]), name


@pytest.mark.parametrize("name", COMPLEX_SPECIAL)
def test_special_cases_of_complex_numbers(name):
    for x, want in COMPLEX_SPECIAL[name]:
        same(getattr(xp, name)(tenon.tensor([x], dtype=tenon.complex128)), np.array([want]), exact=True)


def test_finite_infinite_and_nan():
    x = tenon.tensor([1.0, inf, -inf, nan, -0.0])
    assert xp.isfinite(x).tolist() == [True, False, False, False, True]
    assert xp.isinf(x).tolist() == [False, True, True, False, False]
    assert xp.isnan(x).tolist() == [False, False, False, True, False]
    assert xp.signbit(x).tolist() == [False, False, True, False, True] and xp.signbit(-x[3:4]).tolist() != xp.signbit(x[3:4]).tolist()
    z = tenon.tensor([c(inf, nan), c(nan, 1), c(1, -inf), c(1, 2)])
    assert xp.isinf(z).tolist() == [True, False, True, False] and xp.isnan(z).tolist() == [True, True, False, False]
    assert xp.isfinite(z).tolist() == [False, False, False, True]


def quotient(a, b):
    """floor_divide of the standard's table, where it is not that of finite numbers."""
    if np.isinf(a) or np.isinf(b):
        return a / b
    return np.floor_divide(a, b)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "atan2", "copysign", "hypot", "logaddexp", "maximum", "minimum", "nextafter"])
def test_special_cases_of_two_arrays(name):
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 2.0, inf, -inf, nan])
    a, b = (x.reshape(-1) for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        if name == "floor_divide":
            want = np.array([quotient(*pair) for pair in zip(a, b)])
        else:
            want = numpys(name)(a, b)
        if name == "hypot":
            want = np.where(np.isinf(a) | np.isinf(b), inf, np.sqrt(a * a + b * b))
    got = getattr(xp, name)(tenon.tensor(a), tenon.tensor(b)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-14)
    zero = (want == 0) & ~(np.isin(name, ["maximum", "minimum"]) & (a == b))
    assert np.array_equal(np.signbit(got)[zero], np.signbit(want)[zero]), [(x, y, g, w) for x, y, g, w in zip(a, b, got, want) if np.signbit(g) != np.signbit(w)]


def test_comparisons_with_nan_infinities_and_zeros():
    values = np.array([0.0, -0.0, 1.0, inf, -inf, nan])
    a, b = np.meshgrid(values, values)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        same(getattr(xp, name)(tenon.tensor(a), tenon.tensor(b)), numpys(name)(a, b))


def test_clip():
    x = np.array([[-2.0, 0.5, nan], [7.0, -inf, inf]])
    t = tenon.tensor(x)
    for low, high in [(None, None), (0, None), (None, 1.5), (-1, 1), (np.array([0.0, 1.0, 2.0]), 3.0), (np.array([[nan], [0.0]]), np.array([1.0, nan, 2.0]))]:
        ours = [b if b is None or np.isscalar(b) else tenon.tensor(b) for b in (low, high)]
        same(xp.clip(t, *ours), x if low is high is None else np.clip(x, low, high))
    assert xp.clip(t, 0, 1).data_ptr() != t.data_ptr() != xp.clip(t).data_ptr()
    assert xp.clip(tenon.ones(2), tenon.zeros((), dtype=tenon.float64)).dtype is tenon.float32
    assert xp.clip(tenon.tensor([1, 9], dtype=tenon.int8), 2, 5).tolist() == [2, 5]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge", "matmul"])
def test_operators_of_arrays(name):
    function = getattr(operator, name)
    a, b = (np.array([[5, 9], [2, 7]]), np.array([[2, 3], [1, 4]]))
    if name in ("truediv", "pow", "floordiv", "mod"):
        a, b = a + 0.5, b + 0.0
    same(function(tenon.tensor(a), tenon.tensor(b)), function(a, b))
    if name != "matmul":
        same(function(tenon.tensor(a), 2), function(a, 2))
        same(function(2, tenon.tensor(a)), function(2, a))
    if name[:2] not in ("eq", "ne", "lt", "le", "gt", "ge"):
        t = tenon.tensor(a)
        address = t.data_ptr()
        t = getattr(operator, "i" + name.rstrip("_"))(t, tenon.tensor(b))
        same(t, function(a, b))
        assert name == "matmul" or t.data_ptr() == address


def test_an_array_becomes_a_python_number():
    assert bool(tenon.tensor(0.0)) is False and int(tenon.tensor(3.7)) == 3 and float(tenon.tensor(2)) == 2.0
    assert complex(tenon.tensor(1 + 2j)) == 1 + 2j and operator.index(tenon.tensor(5)) == 5
    assert (-tenon.tensor(2)).item() == -2 and (+tenon.tensor(2)).item() == 2 and (~tenon.tensor(2)).item() == -3 and abs(tenon.tensor(-2)).item() == 2
