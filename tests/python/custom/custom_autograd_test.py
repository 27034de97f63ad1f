"""register_autograd: derivatives of operators that are written in Python."""

import gc
import threading
import weakref

import numpy as np
import pytest

import tenon
from tenon.library import Library, custom_op, register_autograd


@pytest.fixture
def lib():
    with Library("libgrad", "FRAGMENT") as library:
        yield library


def declare(lib, schema, kernel, backward=None, setup_context=None):
    name = lib.define(schema)
    lib.impl(name, kernel, "CPU")
    if backward is not None:
        register_autograd(f"libgrad::{name}", backward, setup_context=setup_context, lib=lib)
    return getattr(tenon.ops.libgrad, name)


def save_inputs(ctx, inputs, output):
    ctx.save_for_backward(*(x for x in inputs if isinstance(x, tenon.Tensor)))


def cube(lib):
    return declare(
        lib, "cube(Tensor x) -> Tensor", lambda x: x * x * x,
        lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g, save_inputs,
    )  # fmt: skip


def test_a_derivative_by_hand(lib):
    op = cube(lib)
    x = tenon.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = op(x)
    assert y.grad_fn.name() == "CubeBackward0" and not y.is_leaf
    y.backward(tenon.tensor([1.0, 10.0, 100.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 120.0, 2700.0])


def test_higher_orders(lib):
    op = cube(lib)
    x = tenon.tensor(2.0, requires_grad=True)
    (first,) = tenon.autograd.grad(op(x), x, create_graph=True)
    (second,) = tenon.autograd.grad(first, x, create_graph=True)
    (third,) = tenon.autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "expanded", "negative", "sliced"])
def test_incoming_gradients_of_every_stride(lib, layout):
    op = cube(lib)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4))
    grad = {
        "contiguous": lambda: rng.standard_normal((3, 4)),
        "transposed": lambda: rng.standard_normal((4, 3)).T,
        "expanded": lambda: np.broadcast_to(rng.standard_normal((1, 4)), (3, 4)),
        "negative": lambda: rng.standard_normal((3, 4))[::-1, ::-1],
        "sliced": lambda: rng.standard_normal((3, 8))[:, ::2],
    }[layout]()
    t = tenon.tensor(x, requires_grad=True)
    op(t).backward(tenon.tensor(grad) if layout == "expanded" else tenon.from_numpy(grad))
    np.testing.assert_allclose(t.grad.numpy(), 3 * x**2 * grad, rtol=1e-13)


def test_nothing_is_recorded_where_nobody_asks(lib):
    calls = []
    op = declare(
        lib, "quiet(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, g: g * 2,
        lambda ctx, inputs, output: calls.append(1),
    )  # fmt: skip
    x = tenon.ones(1, requires_grad=True)
    with tenon.no_grad():
        assert not op(x).requires_grad
    assert not op(x.detach()).requires_grad and not calls
    assert op(x).requires_grad and calls == [1]


def test_the_kernel_runs_below_autograd(lib):
    seen = []

    def kernel(x):
        y = x * 2
        seen.append(y.requires_grad)
        return y

    op = declare(lib, "below(Tensor x) -> Tensor", kernel, lambda ctx, g: g * 2)
    x = tenon.ones(1, requires_grad=True)
    op(x).backward()
    assert seen == [False] and x.grad.item() == 2.0


def test_attributes_and_none_for_what_has_no_gradient(lib):
    def setup(ctx, inputs, output, keyword_only_inputs):
        x, by, flag, y = inputs
        assert isinstance(output, tenon.Tensor) and keyword_only_inputs == {"n": 3}
        ctx.by, ctx.n = by, keyword_only_inputs["n"]
        ctx.note = {"flag": flag}
        assert y is None

    def backward(ctx, g):
        assert ctx.note == {"flag": True} and ctx.needs_input_grad == (True, False, False, False)
        return g * ctx.by * ctx.n, None, None, None

    op = declare(
        lib, "many(Tensor x, float by, bool flag, Tensor? y=None, *, int n=3) -> Tensor",
        lambda x, by, flag, y, *, n: x * by * n, backward, setup,
    )  # fmt: skip
    x = tenon.ones(2, requires_grad=True)
    op(x, 2.0, True).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("materialize", [True, False])
def test_several_results_with_missing_gradients(lib, materialize):
    grads = []

    def setup(ctx, inputs, output):
        a, b, n = output
        assert n == 7
        if not materialize:
            ctx.set_materialize_grads(False)

    def backward(ctx, ga, gb, gn):
        grads.append((ga, gb, gn))
        return ga * 2 if ga is not None else gb * 3

    op = declare(lib, "pair(Tensor x) -> (Tensor, Tensor, int)", lambda x: (x * 2, x * 3, 7), backward, setup)
    x = tenon.ones(2, requires_grad=True)
    a, b, n = op(x)
    a.sum().backward()
    ga, gb, gn = grads[0]
    assert ga.tolist() == [1.0, 1.0] and gn is None
    assert (gb.tolist() == [0.0, 0.0]) if materialize else gb is None
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)


def test_results_that_have_no_derivative(lib):
    op = declare(
        lib, "marks(Tensor x) -> (Tensor, Tensor, Tensor)",
        lambda x: (x * 2, x > 0, x * 5),
        lambda ctx, g, m, n: g * 2,
        lambda ctx, inputs, output: ctx.mark_non_differentiable(output[2]),
    )  # fmt: skip
    x = tenon.ones(2, requires_grad=True)
    a, b, c = op(x)
    assert a.requires_grad and not b.requires_grad and not c.requires_grad
    a.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_lists_of_tensors(lib):
    needs = []

    def backward(ctx, grads):
        needs.append(ctx.needs_input_grad)
        return [2 * g if g is not None else None for g in grads], None

    op = declare(
        lib, "twice(Tensor[] xs, Tensor? y=None) -> Tensor[]", lambda xs, y: [x * 2 for x in xs], backward,
        lambda ctx, inputs, output: ctx.set_materialize_grads(False),
    )  # fmt: skip
    xs = [tenon.ones(2, requires_grad=True), tenon.ones(3), tenon.ones(4, requires_grad=True)]
    ys = op(xs)
    (ys[0].sum() + ys[1].sum()).backward()
    assert xs[0].grad.tolist() == [2.0, 2.0] and xs[1].grad is None and xs[2].grad is None
    assert needs == [([True, False, True], False)]


def test_saved_results_and_saved_none(lib):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(output, None, inputs[0])
        assert ctx.saved_tensors[0] is output

    def backward(ctx, g):
        y, nothing, x = ctx.saved_tensors
        assert nothing is None and x.dtype is tenon.float64
        return g * y

    op = declare(lib, "myexp(Tensor x) -> Tensor", lambda x: x.exp(), backward, setup)
    x = tenon.tensor(0.5, dtype=tenon.float64, requires_grad=True)
    y = op(x)
    assert y.grad_fn._saved_0.item() == y.item()
    (first,) = tenon.autograd.grad(y, x, create_graph=True)
    (second,) = tenon.autograd.grad(first, x)
    np.testing.assert_allclose([first.item(), second.item()], np.exp(0.5), rtol=1e-15)


def test_a_saved_tensor_that_changed_is_noticed(lib):
    op = cube(lib)
    x = tenon.ones(2, requires_grad=True)
    z = x * 1
    y = op(z)
    z.add_(1)
    with pytest.raises(RuntimeError, match="libgrad::cube.*modified|libgrad::cube.*changed|inplace"):
        y.sum().backward()


def test_a_graph_is_freed_unless_retained(lib):
    op = cube(lib)
    x = tenon.ones(2, requires_grad=True)
    y = op(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_what_a_node_keeps_goes_with_it(lib):
    class Note:
        pass

    notes = []

    def setup(ctx, inputs, output):
        ctx.note = Note()
        ctx.self = ctx  # a cycle
        notes.append(weakref.ref(ctx.note))

    op = declare(lib, "note(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, g: g * 2, setup)
    y = op(tenon.ones(1, requires_grad=True))
    assert notes[0]() is not None
    del y
    gc.collect()
    assert notes[0]() is None


@pytest.mark.parametrize(
    "backward, error, message",
    [
        (lambda ctx, g: (g,), RuntimeError, "returned 1 gradients, expected 2"),
        (lambda ctx, g: (g, None, None, g), RuntimeError, "returned 4 gradients, expected 2"),
        (lambda ctx, g: (g, g), RuntimeError, "a gradient for argument `n`, which is no tensor"),
        (lambda ctx, g: (1.0, None), TypeError, "gradient of argument `x` must be a Tensor or None, not float"),
        (lambda ctx, g: (tenon.ones(5), None), RuntimeError, r"\[5\].*\[2\]|\[2\].*\[5\]"),
        (lambda ctx: (None, None), TypeError, "positional argument"),
    ],
)
def test_backwards_that_do_not_fit(lib, backward, error, message):
    op = declare(lib, "wrong(Tensor x, int n) -> Tensor", lambda x, n: x * n, backward)
    x = tenon.ones(2, requires_grad=True)
    with pytest.raises(error, match=message):
        op(x, 2).sum().backward()
    assert x.grad is None


def test_trailing_none_is_accepted(lib):
    op = declare(lib, "extra(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, g: (g * 2, None, None))
    x = tenon.ones(1, requires_grad=True)
    op(x).backward()
    assert x.grad.item() == 2.0


class Oops(Exception):
    pass


@pytest.mark.parametrize("place", ["setup", "backward"])
def test_exceptions_pass_unchanged(lib, place):
    error = Oops(place)

    def fail(*_):
        raise error

    op = declare(
        lib, "fails(Tensor x) -> Tensor", lambda x: x * 2,
        fail if place == "backward" else lambda ctx, g: g,
        fail if place == "setup" else None,
    )  # fmt: skip
    with pytest.raises(Oops) as e:
        op(tenon.ones(1, requires_grad=True)).backward()
    assert e.value is error


def test_without_a_formula_backward_says_so():
    @custom_op("libgrad::opaque", mutates_args=())
    def opaque(x: tenon.Tensor) -> tenon.Tensor:
        return x * 2

    x = tenon.ones(1, requires_grad=True)
    y = opaque(x)
    assert y.requires_grad
    with pytest.raises(NotImplementedError, match="libgrad::opaque"):
        y.backward()
    with tenon.no_grad():
        assert not opaque(x).requires_grad

    opaque.register_autograd(lambda ctx, g: g * 2)
    opaque(x).backward()
    assert x.grad.item() == 2.0


@pytest.mark.parametrize(
    "schema, error, message",
    [
        ("f1(Tensor(a!) x) -> ()", RuntimeError, "writes argument `x`"),
        ("f2(Tensor(a) x) -> Tensor(a)", RuntimeError, "returns a view"),
        ("f3(Tensor x) -> ()", RuntimeError, "returns nothing"),
        ("f4(Tensor x, *, Tensor y) -> Tensor", NotImplementedError, "`y` .* keyword-only"),
    ],
)
def test_operators_that_have_no_derivative(lib, schema, error, message):
    name = lib.define(schema)
    with pytest.raises(error, match=message):
        register_autograd(f"libgrad::{name}", lambda ctx, g: g, lib=lib)


def test_what_register_autograd_refuses(lib):
    lib.define("f5(Tensor x) -> Tensor")
    with pytest.raises(TypeError, match="backward must be callable"):
        register_autograd("libgrad::f5", None, lib=lib)
    with pytest.raises(TypeError, match="setup_context must be callable"):
        register_autograd("libgrad::f5", lambda ctx, g: g, setup_context=3, lib=lib)
    with pytest.raises(NotImplementedError, match="not declared"):
        register_autograd("libgrad::nothing", lambda ctx, g: g)
    with pytest.raises(TypeError, match="Tensors or None"):
        op = declare(lib, "f6(Tensor x) -> Tensor", lambda x: x * 2, lambda ctx, g: g,
                     lambda ctx, inputs, output: ctx.save_for_backward(3))  # fmt: skip
        op(tenon.ones(1, requires_grad=True))


def test_under_a_trace_the_derivative_is_the_same(lib):
    op = cube(lib)
    x = tenon.tensor([2.0], requires_grad=True)
    with tenon.dispatch.trace() as lines:
        y = op(x)
    y.backward()
    assert x.grad.item() == 12.0 and y.grad_fn.name() == "CubeBackward0"
    text = [line.strip() for line in lines]
    assert text[0].startswith("[call] op=[libgrad::cube], key=[AutogradCPU]")
    assert text[1].startswith("[redispatch] op=[libgrad::cube], key=[CPU]")


def test_among_other_operators_and_on_other_threads(lib):
    op = cube(lib)
    w = tenon.tensor([0.5, 1.5], dtype=tenon.float64, requires_grad=True)

    def loss():
        return (op(w.sin()) * w).sum()

    value = w.detach().numpy()
    want = np.sin(value) ** 3 + value * 3 * np.sin(value) ** 2 * np.cos(value)
    results = []

    def work():
        results.append(tenon.autograd.grad(loss(), w)[0].numpy())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4
    for got in results:
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_a_long_chain_is_walked_and_freed_without_recursion(lib):
    op = declare(lib, "step(Tensor x) -> Tensor", lambda x: x + 1, lambda ctx, g: g, save_inputs)
    x = y = tenon.zeros(1, requires_grad=True)
    for _ in range(50_000):
        y = op(y)
    y.backward()
    assert x.grad.item() == 1.0 and y.item() == 50_000.0
    del y


def test_an_operator_of_a_library_without_a_formula_says_so_in_backward():
    with Library("libgradless", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.define("f_(Tensor(a!) x) -> Tensor(a!)")
        lib.define("parts(Tensor[] xs) -> (Tensor, Tensor)")
        lib.impl("f", lambda x: tenon.tensor([3 * v for v in x.tolist()]), "CPU")
        lib.impl("parts", lambda xs: (tenon.tensor([1.0]), tenon.tensor([2])), "CompositeExplicit")

        def write(x):
            x.numpy()[:] = 5
            return x

        lib.impl("f_", write, "CPU")
        ops = tenon.ops.libgradless
        x = tenon.ones(2, requires_grad=True)
        missing = r"derivative for libgradless::f is not implemented; register one: register_autograd\(\"libgradless::f\""
        with pytest.raises(NotImplementedError, match=missing):
            (ops.f(x) * 100 + x).sum().backward()
        assert x.grad is None and not ops.f(x.detach()).requires_grad
        with pytest.raises(RuntimeError, match="leaf Variable"):
            ops.f_(x)
        first, second = ops.parts([tenon.ones(1), x])
        assert first.requires_grad and not second.requires_grad
        with pytest.raises(NotImplementedError, match="libgradless::parts"):
            first.sum().backward()

        for name in ("libgradless::f", "libgradless::parts"):
            tenon.library.register_not_differentiable(name, lib=lib)
        (ops.f(x) * 100 + x).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0] and not ops.parts([x])[0].requires_grad


def test_a_custom_operator_that_has_no_gradient():
    @custom_op("libgradless2::rank", mutates_args=())
    def rank(x: tenon.Tensor) -> tenon.Tensor:
        return tenon.tensor([float(v > 1) for v in x.tolist()])

    x = tenon.tensor([0.5, 2.0], requires_grad=True)
    with pytest.raises(NotImplementedError, match="register_not_differentiable"):
        rank(x).sum().backward()
    rank.register_not_differentiable()
    assert not rank(x).requires_grad
    (rank(x) * x).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]
    with pytest.raises(NotImplementedError, match="'libgradless2::nobody' is not declared"):
        tenon.library.register_not_differentiable("libgradless2::nobody")
