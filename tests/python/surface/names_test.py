"""PyTorch's further names and forms: aliases, out=, in-place functions, rounding modes, shifts, lists of sizes and dimensions."""

import numpy as np
import pytest

import tenon

x = tenon.tensor([[1.5, -2.5, 3.0], [4.0, -5.0, 0.5]])
a = np.array(x.tolist(), np.float64)


@pytest.mark.parametrize(
    ("name", "alias", "arguments"),
    [
        ("sub", "subtract", (2,)),
        ("sub", "subtract", (x,)),
        ("mul", "multiply", (x,)),
        ("div", "divide", (2,)),
        ("div", "true_divide", (x,)),
        ("neg", "negative", ()),
        ("abs", "absolute", ()),
        ("gt", "greater", (0,)),
        ("ge", "greater_equal", (0,)),
        ("lt", "less", (x,)),
        ("le", "less_equal", (0,)),
        ("ne", "not_equal", (3,)),
        ("clamp", "clip", (-1, 1)),
        ("trunc", "fix", ()),
        ("transpose", "swapaxes", (0, 1)),
        ("movedim", "moveaxis", (0, 1)),
    ],
)
def test_an_alias_is_the_operator(name, alias, arguments):
    want = getattr(tenon, name)(x, *arguments)
    assert getattr(tenon, alias)(x, *arguments).tolist() == want.tolist()
    assert getattr(x, alias)(*arguments).tolist() == want.tolist()


def test_aliases_of_in_place_and_joining_operators():
    t = x.clone()
    assert t.subtract_(1).multiply_(2).negative_() is t
    np.testing.assert_array_equal(t.numpy(), -(a - 1) * 2)
    assert tenon.concat([x, x]).tolist() == tenon.concatenate([x, x]).tolist() == tenon.cat([x, x]).tolist()


@pytest.mark.parametrize("name", ["relu", "abs", "sqrt", "exp", "sigmoid", "tanh", "neg", "round"])
def test_functions_of_one_tensor_have_an_in_place_form(name):
    t = x.abs()
    want = getattr(t, name)().tolist()
    assert getattr(tenon, name + "_")(t) is t
    assert t.tolist() == want


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_division_with_a_rounding_mode(dtype, mode):
    n = np.array([7, -7, 8, -8, 0], dtype)
    d = np.array([2, 2, -3, -3, 5], dtype)
    exact = n.astype(np.float64) / d
    want = {None: exact, "trunc": np.trunc(exact), "floor": np.floor(exact)}[mode]
    t, by = tenon.tensor(n), tenon.tensor(d)
    got = tenon.div(t, by, rounding_mode=mode)
    np.testing.assert_allclose(got.to(tenon.float64).numpy(), want, rtol=1e-7)
    assert got.dtype is (t.dtype if mode or t.is_floating_point() else tenon.float32)
    np.testing.assert_allclose(
        tenon.div(t, 2, rounding_mode=mode).to(tenon.float64).numpy(),
        {None: n / 2, "trunc": np.trunc(n / 2), "floor": np.floor(n / 2)}[mode],
        rtol=1e-7,
    )
    if mode:
        assert t.divide_(by, rounding_mode=mode) is t
        np.testing.assert_array_equal(t.to(tenon.float64).numpy(), want)
    with pytest.raises(ValueError, match="rounding_mode"):
        tenon.div(by, by, rounding_mode="up")


@pytest.mark.parametrize("decimals", [2, 1, 0, -1])
def test_rounding_to_decimals(decimals):
    values = np.array([1.005, 2.675, -123.456, 15.0, 0.25])
    t = tenon.tensor(values)
    np.testing.assert_array_equal(tenon.round(t, decimals=decimals).numpy(), np.round(values, decimals))
    assert t.round_(decimals=decimals) is t
    np.testing.assert_array_equal(t.numpy(), np.round(values, decimals))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_shifts(dtype):
    values = np.array([0, 1, 5, 100, -1 if dtype != "uint8" else 255, -7 if dtype != "uint8" else 9]).astype(dtype)
    t = tenon.tensor(values)
    bits = np.dtype(dtype).itemsize * 8
    for n in (0, 1, 3, bits - 1):
        np.testing.assert_array_equal((t << n).numpy(), np.left_shift(values, np.array(n, dtype)))
        np.testing.assert_array_equal((t >> n).numpy(), np.right_shift(values, np.array(n, dtype)))
        count = tenon.full((6,), n, dtype=t.dtype)
        np.testing.assert_array_equal((t << count).numpy(), (t << n).numpy())
        np.testing.assert_array_equal(tenon.bitwise_right_shift(t, count).numpy(), (t >> n).numpy())
    assert (t << 64).tolist() == [0] * 6
    assert (t >> 64).tolist() == [-1 if v < 0 else 0 for v in values.tolist()]
    assert (2 << tenon.tensor([0, 3])).tolist() == [2, 16]
    u = t.clone()
    u <<= 1
    assert u.tolist() == (t << 1).tolist()
    with pytest.raises(TypeError, match="bits belong to integers"):
        x << 1


def test_all_and_any_over_several_dimensions():
    rng = np.random.default_rng(2)
    values = rng.random((2, 3, 4)) < 0.8
    t = tenon.tensor(values)
    for dims in [(0, 1), (2, 0), (1,), (-1, 0)]:
        assert t.all(dims).tolist() == values.all(dims).tolist()
        assert t.any(dim=dims, keepdim=True).tolist() == values.any(dims, keepdims=True).tolist()
    assert t.all(1).tolist() == values.all(1).tolist() and t.all().item() == values.all()
    with pytest.raises(ValueError, match="all: dim 1 appears multiple times"):
        t.all((1, 1))


def test_variance_with_and_without_bias():
    for f, reference in [(tenon.var, np.var), (tenon.std, np.std)]:
        for unbiased in (True, False):
            ddof = int(unbiased)
            np.testing.assert_allclose(f(x, unbiased).item(), reference(a, ddof=ddof), rtol=1e-6)
            np.testing.assert_allclose(f(x, unbiased=unbiased).item(), reference(a, ddof=ddof), rtol=1e-6)
            np.testing.assert_allclose(f(x, 1, unbiased).numpy(), reference(a, 1, ddof=ddof), rtol=1e-6)
            kept = f(x, dim=0, unbiased=unbiased, keepdim=True)
            np.testing.assert_allclose(kept.numpy(), reference(a, 0, ddof=ddof, keepdims=True), rtol=1e-6)


def test_split_takes_a_list():
    t = tenon.arange(10).view(5, 2)
    parts = t.split([1, 0, 4])
    assert [p.tolist() for p in parts] == [p.tolist() for p in np.split(t.numpy(), [1, 1])]
    assert all(p.storage() == t.storage() for p in parts)
    assert [p.shape for p in tenon.split(t, [1, 1], dim=1)] == [(5, 1), (5, 1)]
    assert [p.shape for p in t.split(2)] == [(2, 2), (2, 2), (1, 2)]
    for bad in ([1, 2], [-1, 6], []):
        with pytest.raises(ValueError, match="split: expects split_sizes"):
            t.split(bad)


def test_nonzero_as_a_tuple_indexes():
    values = np.array([[0, 2], [3, 0]])
    t = tenon.tensor(values)
    assert tenon.nonzero(t).tolist() == np.argwhere(values).tolist() == t.nonzero().tolist()
    parts = tenon.nonzero(t, as_tuple=True)
    assert [p.tolist() for p in parts] == [p.tolist() for p in np.nonzero(values)]
    assert t[t.nonzero(as_tuple=True)].tolist() == [2, 3]
    assert [p.tolist() for p in tenon.tensor(7).nonzero(as_tuple=True)] == [[0]]


OUT = {
    "all": lambda out: tenon.all(x > 0, 1, out=out),
    "any": lambda out: tenon.any(x > 3, (0, 1), out=out),
    "argmax": lambda out: tenon.argmax(x, 1, out=out),
    "cumsum": lambda out: tenon.cumsum(x, 1, out=out),
    "maximum": lambda out: tenon.max(x, -x, out=out),
    "var": lambda out: tenon.var(x, 1, correction=0, out=out),
    "logsumexp": lambda out: tenon.logsumexp(x, 1, out=out),
    "softmax": lambda out: tenon.softmax(x, 1, out=out),
    "cat": lambda out: tenon.cat([x, x], out=out),
    "stack": lambda out: tenon.stack([x, x], out=out),
    "matmul": lambda out: tenon.matmul(x, x.T, out=out),
    "mv": lambda out: tenon.mv(x, x[0], out=out),
    "dot": lambda out: tenon.dot(x[0], x[1], out=out),
    "outer": lambda out: tenon.outer(x[0], x[1], out=out),
    "clamp": lambda out: tenon.clamp(x, -1, 1, out=out),
    "gather": lambda out: tenon.gather(x, 0, tenon.zeros(1, 3, dtype=tenon.int64), out=out),
    "index_select": lambda out: tenon.index_select(x, 1, tenon.tensor([2, 0]), out=out),
    "masked_select": lambda out: tenon.masked_select(x, x > 0, out=out),
    "nonzero": lambda out: tenon.nonzero(x > 0, out=out),
    "div": lambda out: tenon.div(x, x, rounding_mode="floor", out=out),
}


@pytest.mark.parametrize("name", OUT)
def test_out_takes_the_result(name):
    want = OUT[name](None)
    out = tenon.empty(0, dtype=want.dtype)
    assert OUT[name](out) is out and out.tolist() == want.tolist()
    strided = tenon.empty([2 * s for s in want.shape], dtype=want.dtype)[tuple(slice(None, None, 2) for _ in want.shape)]
    assert OUT[name](strided) is strided and strided.tolist() == want.tolist()
    wrong = tenon.zeros(want.numel() + 1, 2, dtype=want.dtype)
    with pytest.raises(ValueError, match="has shape"):
        OUT[name](wrong)
    assert not wrong.any()


def test_out_refuses_history_and_narrower_kinds():
    w = tenon.ones(2, 3, requires_grad=True)
    for call in (lambda: tenon.matmul(w, x.T, out=tenon.empty(0)), lambda: tenon.cat([w, x], out=tenon.empty(0))):
        with pytest.raises(RuntimeError, match="out=... arguments don't support automatic differentiation"):
            call()
    with pytest.raises(TypeError, match="cannot be cast"):
        tenon.cat([x, x], out=tenon.empty(0, dtype=tenon.int64))


def test_integers_take_no_negative_power():
    i = tenon.tensor([1, 2, -1])
    for call in (lambda: i**-1, lambda: i.pow(-2), lambda: i.clone().pow_(-1), lambda: tenon.tensor([True]) ** -1):
        with pytest.raises(ValueError, match="negative integer powers"):
            call()
    assert (i**-1.0).tolist() == [1.0, 0.5, -1.0]
    assert (i ** tenon.tensor([-1, -1, -1])).tolist() == [1, 0, -1]
    assert (i**0).tolist() == [1, 1, 1]


def test_arange_steps_by_one():
    assert tenon.arange(1, 4).tolist() == tenon.arange(start=1, end=4).tolist() == [1, 2, 3]


def test_bernoulli_of_one_probability_and_of_many():
    assert tenon.bernoulli(tenon.empty(3), 1.0).tolist() == [1.0] * 3
    t = tenon.empty(2, 3)
    assert t.bernoulli_(tenon.tensor([0.0, 1.0, 0.0])) is t
    assert t.tolist() == [[0.0, 1.0, 0.0]] * 2
    with pytest.raises(ValueError, match="bernoulli_"):
        t.bernoulli_(tenon.tensor([2.0, 0.0, 0.0]))


def test_set_shows_other_elements():
    source = tenon.arange(6.0)
    t = tenon.empty(0)
    assert t.set_(source.view(2, 3).T) is t
    assert t.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] and t.storage() == source.storage()
    t.set_(source.untyped_storage())
    assert t.tolist() == source.tolist()
    t.set_(source.untyped_storage(), 1, (2, 2))
    assert t.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    t.set_(source.untyped_storage(), 5, (3,), (-2,))
    assert t.tolist() == [5.0, 3.0, 1.0]
    for call, error in [
        (lambda: t.set_(source.untyped_storage(), 4, (3,)), ValueError),
        (lambda: t.set_(source.untyped_storage(), -1, (1,)), ValueError),
        (lambda: t.set_(tenon.zeros(2, dtype=tenon.int64)), TypeError),
        (lambda: t.set_(tenon.empty(2, device="meta")), RuntimeError),
    ]:
        with pytest.raises(error, match="set_"):
            call()
    assert t.tolist() == [5.0, 3.0, 1.0]


def test_every_name_that_the_package_lists_is_there():
    assert not hasattr(tenon, "no_such_name")
    for name in ("random", "utils", "library", "ops", "dispatch", "nn", "optim", "autograd"):
        assert hasattr(tenon, name)


def test_the_random_room_holds_the_default_generator_s_names():
    tenon.random.manual_seed(5)
    assert tenon.initial_seed() == tenon.random.initial_seed() == 5
    state = tenon.random.get_rng_state()
    first = tenon.rand(3).tolist()
    with tenon.random.fork_rng(devices=[]):
        tenon.rand(7)
    after = tenon.rand(3).tolist()
    tenon.set_rng_state(state)
    assert [tenon.rand(3).tolist(), tenon.rand(3).tolist()] == [first, after]
    with tenon.random.fork_rng(enabled=False):
        tenon.rand(3)
    assert tenon.rand(3).tolist() not in (first, after)


B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])


@pytest.mark.parametrize(
    ("call", "want", "widest"),  # `out` takes the result's dtype alone, or others as well: as in PyTorch
    [
        (lambda x, **o: tenon.mean(x, **o), lambda a: a.mean(), "complex128"),
        (lambda x, **o: tenon.mean(x, 1, **o), lambda a: a.mean(1), "complex128"),
        (lambda x, **o: tenon.mean(x, 0, True, **o), lambda a: a.mean(0, keepdims=True), "complex128"),
        (lambda x, **o: tenon.var(x, **o), lambda a: a.var(ddof=1), "complex128"),
        (lambda x, **o: tenon.var(x, 1, **o), lambda a: a.var(1, ddof=1), "complex128"),
        (lambda x, **o: tenon.var(x, 1, False, **o), lambda a: a.var(1), "complex128"),
        (lambda x, **o: tenon.var(x, dim=0, correction=0, **o), lambda a: a.var(0), "complex128"),
        (lambda x, **o: tenon.std(x, **o), lambda a: a.std(ddof=1), "complex128"),
        (lambda x, **o: tenon.std(x, 1, False, True, **o), lambda a: a.std(1, keepdims=True), "complex128"),
        (lambda x, **o: tenon.clamp(x, 2, 4, **o), lambda a: a.clip(2, 4), "float64"),
        (lambda x, **o: tenon.clamp(x, tenon.full_like(x, 2), tenon.full_like(x, 4), **o), lambda a: a.clip(2, 4), "complex128"),
        (lambda x, **o: tenon.clamp(x, max=tenon.full_like(x, 4), **o), lambda a: a.clip(None, 4), "complex128"),
        (lambda x, **o: tenon.round(x / 7, decimals=2, **o), lambda a: (a / 7).round(2), "float64"),
        (lambda x, **o: tenon.nn.functional.linear(x, tenon.ones(2, 3, dtype=x.dtype)) if not o else tenon.linear(x, tenon.ones(2, 3, dtype=x.dtype), **o), lambda a: a @ np.ones((3, 2)), "float64"),
        (lambda x, **o: tenon.linear(x, tenon.ones(2, 3, dtype=x.dtype), tenon.ones(2, dtype=x.dtype), **o), lambda a: a @ np.ones((3, 2)) + 1, "float64"),
        (lambda x, **o: tenon.index_add(x, 0, tenon.tensor([1, 1]), tenon.ones(2, 3, dtype=x.dtype), alpha=3, **o), lambda a: a + [[0], [6]], "float64"),
    ],
)  # fmt: skip
def test_out_takes_the_result(call, want, widest):
    x = tenon.tensor(B.tolist(), dtype=tenon.float64)
    expected = np.asarray(want(B))
    for out in (tenon.empty(0, dtype=tenon.float64), tenon.empty(expected.shape, dtype=tenon.float64), tenon.empty(expected.shape[::-1], dtype=getattr(tenon, widest)).permute(tuple(range(expected.ndim)[::-1]))):
        assert call(x, out=out) is out
        assert out.shape == expected.shape and np.allclose(out.numpy(), expected, rtol=1e-12)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        call(x, out=tenon.empty(9, 9, 9, dtype=tenon.float64))
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        call(x, out=tenon.empty(expected.shape, dtype=tenon.int64))
    with pytest.raises(RuntimeError, match="grad"):
        call(x.detach().requires_grad_(), out=tenon.empty(expected.shape, dtype=tenon.float64))
