"""Autograd as Python sees it."""

import sys
import threading

import numpy as np
import pytest

import tenon
from tenon.autograd import gradcheck, gradgradcheck


def leaf(*values):
    return tenon.tensor(values, requires_grad=True)


def test_names_and_edges_of_the_graph():
    x, w, b = leaf(2.0), leaf(3.0), leaf(1.0)
    y = (x * w + b).sum()
    node = y.grad_fn
    assert node.name() == "SumBackward0" and type(node).__name__ == "SumBackward0"
    assert repr(node).startswith("<SumBackward0 object at 0x")
    (add, _), = node.next_functions
    (mul, _), (accumulate, _) = add.next_functions
    assert [add.name(), mul.name(), accumulate.name()] == ["AddBackward0", "MulBackward0", "AccumulateGrad"]
    assert isinstance(node, tenon.autograd.graph.Node)
    assert x.grad_fn is None and x.is_leaf and not y.is_leaf
    y.backward()
    assert [t.grad.tolist() for t in (x, w, b)] == [[3.0], [2.0], [1.0]]


def test_saved_tensors_are_visible():
    x = leaf(2.0)
    node = (x * tenon.tensor([5.0])).grad_fn
    assert node._saved_other.tolist() == [5.0]
    assert "_saved_other" in dir(node)
    with pytest.raises(AttributeError):
        node._saved_nothing


def test_gradients_accumulate_until_forgotten():
    x = leaf(1.0, 2.0)
    for times in (1, 2):
        (x * 3).sum().backward()
        assert x.grad.tolist() == [3.0 * times] * 2
    x.grad = None
    assert x.grad is None
    x.grad = tenon.ones(2)
    with pytest.raises(RuntimeError):
        x.grad = tenon.ones(3)
    with pytest.raises(TypeError):
        x.grad = 3
    del x.grad
    assert x.grad is None


def test_grad_and_second_derivatives():
    x = leaf(2.0)
    y = x * x * x
    (first,) = tenon.autograd.grad(y, x, create_graph=True)
    (second,) = tenon.autograd.grad(first, x)
    assert first.tolist() == [12.0] and second.tolist() == [12.0]
    assert x.grad is None
    z = leaf(1.0)
    with pytest.raises(RuntimeError):
        tenon.autograd.grad(x * 2, z)
    assert tenon.autograd.grad(x * 2, z, allow_unused=True) == (None,)
    assert tenon.autograd.grad(x * 2, z, materialize_grads=True)[0].tolist() == [0.0]


def test_a_graph_is_walked_once_unless_kept():
    x = leaf(2.0)
    y = x.exp()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()


def test_backward_of_several_with_gradients():
    x = leaf(1.0, 2.0)
    tenon.autograd.backward([x * 2, x * 3], [tenon.tensor([1.0, 0.0]), tenon.tensor([0.0, 1.0])])
    assert x.grad.tolist() == [2.0, 3.0]
    y = leaf(1.0)
    (y * 2).backward(gradient=tenon.tensor([5.0]), inputs=[y])
    assert y.grad.tolist() == [10.0]


def test_modes_as_contexts_and_decorators():
    x = leaf(1.0)
    with tenon.no_grad():
        assert not (x * 2).requires_grad
        with tenon.enable_grad():
            assert (x * 2).requires_grad
        assert not tenon.is_grad_enabled()
    assert tenon.is_grad_enabled()

    @tenon.no_grad()
    def f():
        return tenon.is_grad_enabled()

    @tenon.no_grad
    def g():
        return tenon.is_grad_enabled()

    @tenon.set_grad_enabled(False)
    def h():
        return tenon.is_grad_enabled()

    assert (f(), g(), h(), tenon.is_grad_enabled()) == (False, False, False, True)
    with tenon.set_grad_enabled(False):
        assert not tenon.is_grad_enabled()
    with tenon.inference_mode():
        y = x * 2
        assert tenon.is_inference_mode_enabled() and y.is_inference()
    assert not tenon.is_inference_mode_enabled() and tenon.is_grad_enabled()
    with pytest.raises(RuntimeError):
        y.requires_grad_()
        (y * x).sum().backward()
    with pytest.raises(ZeroDivisionError), tenon.no_grad():
        1 / 0
    assert tenon.is_grad_enabled()


def test_decorated_generators_have_the_mode_only_while_they_run():
    @tenon.no_grad()
    def steps():
        got = yield tenon.is_grad_enabled()
        yield got, tenon.is_grad_enabled()

    s = steps()
    assert next(s) is False and tenon.is_grad_enabled()
    assert s.send(7) == (7, False) and tenon.is_grad_enabled()


def test_modes_are_the_threads_own():
    seen = []
    with tenon.no_grad():
        t = threading.Thread(target=lambda: seen.append(tenon.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_hooks():
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1.0, 1.0]] and x.grad.tolist() == [20.0, 20.0]
    handle.remove()
    (x * 2).sum().backward()
    assert len(seen) == 1
    z = x * 1
    z.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        z.sum().backward()
    with pytest.raises(RuntimeError):
        tenon.ones(1).register_hook(print)


def test_retain_grad_and_detach():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0]
    d = y.detach()
    assert not d.requires_grad and d.data_ptr() == y.data_ptr()


def test_a_base_written_with_history_makes_its_views_differentiable():
    w = leaf(1.0, 2.0, 3.0)
    b = tenon.zeros(3)
    v = b[:2]
    b.add_(1)
    b.mul_(w)
    assert v.requires_grad
    v.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0, 0.0]


def test_what_was_saved_and_changed_is_an_error():
    x = leaf(1.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="exp"):
        y.sum().backward()


def test_a_deep_graph_is_freed_and_walked():
    x = leaf(1.0)
    y = x
    for _ in range(20000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_python_threads_work_side_by_side():
    errors = []

    def work(seed):
        try:
            w = leaf(*[float(seed)] * 64)
            for _ in range(50):
                w.grad = None
                (w * w).sum().backward()
                assert w.grad.tolist() == [2.0 * seed] * 64
                big = tenon.ones(40000) * seed
                assert big.sum().item() == 40000 * seed
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_inference_tensors_are_not_written_outside():
    with tenon.inference_mode():
        x = tenon.ones(2)
        x.add_(1)
        normal = tenon.ones(2)[:1]
    y = tenon.ones(2)
    with tenon.inference_mode():
        y.add_(1)
    for write in (
        lambda: x.add_(1),
        lambda: tenon.add(y, y, out=x),
        lambda: x.__setitem__(0, 3),
        lambda: x.view(2).mul_(2),
        lambda: x.resize_(3),
        lambda: normal.zero_(),
    ):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            write()
    assert x.tolist() == [2.0, 2.0] and y.add_(1).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="version counter"):
        x._version
    assert x.clone().add_(1).tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "parts_of",
    [lambda x: x.split(2), lambda x: x.split([1, 3]), lambda x: x.unbind(), lambda x: x.chunk(2), list],
    ids=["split", "sizes", "unbind", "chunk", "iteration"],
)
def test_views_that_came_together_are_not_written(parts_of):
    x = tenon.ones(4, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="returns multiple views"):
        parts_of(x)[0].mul_(2)
    assert x.tolist() == [1.0] * 4
    plain = tenon.ones(4)
    parts_of(plain)[0].mul_(2)
    assert plain[0].item() == 2.0


def test_gradients_of_split_and_unbind():
    values = np.arange(6.0).reshape(3, 2)
    x = tenon.tensor(values, requires_grad=True)
    a, b = x.split(2)
    assert a.grad_fn.name() == "SplitBackward0"
    (a * a).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.where(np.arange(3)[:, None] < 2, 2 * values, 0))
    x.grad = None
    _, b = x.split([1, 1], dim=1)
    (b * b).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.stack([np.zeros(3), 2 * values[:, 1]], 1))
    x.grad = None
    rows = x.unbind()
    assert rows[1].grad_fn.name() == "UnbindBackward0"
    (rows[0] * rows[2]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.stack([values[2], np.zeros(2), values[0]]))
    (first,) = tenon.autograd.grad((x.unbind(1)[0] ** 3).sum(), x, create_graph=True)
    (second,) = tenon.autograd.grad(first.sum(), x)
    np.testing.assert_array_equal(second.numpy(), np.stack([6 * values[:, 0], np.zeros(3)], 1))


@pytest.mark.parametrize("f", ["std", "var"])
def test_deviation_of_equal_numbers_has_gradient_zero(f):
    x = tenon.tensor([[2.0, 2.0], [1.0, 3.0]], requires_grad=True)
    y = getattr(x, f)(1)
    assert y.grad_fn.name() == f.capitalize() + "Backward0"
    y.sum().backward()
    # The slope of the deviation of (1, 3) is -+ 1 / sqrt(2), of its square -+ 2.
    side = 2**-0.5 if f == "std" else 2.0
    np.testing.assert_allclose(x.grad.numpy(), [[0.0, 0.0], [-side, side]], rtol=1e-6)
    lone = tenon.tensor([1.0], requires_grad=True)
    getattr(lone, f)(correction=0).backward()
    assert lone.grad.tolist() == [0.0]


def test_detach_in_place_forgets():
    x = tenon.ones(2, requires_grad=True)
    y = x * 2
    assert y.detach_() is y and y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="detach views"):
        (x * 2)[0].detach_()
    assert tenon.detach_(x * 3).grad_fn is None


@pytest.mark.parametrize("write", ["exp_", "sigmoid_", "tanh_"])
def test_second_derivative_through_a_written_view(write):
    """The write saved its own result, whose history is that of the view, not of the write alone."""

    def f(x):
        y = x * 1
        v = y.view(2)
        getattr(v, write)()
        return v * v, y

    x = tenon.tensor([0.1, 0.2], dtype=tenon.float64, requires_grad=True)
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


def test_as_strided_of_a_view_differentiates_twice():
    b = tenon.arange(12.0, requires_grad=True)
    w = b[3:5].as_strided((2,), (1,), 3)
    (g,) = tenon.autograd.grad((w**3).sum(), b, create_graph=True)
    (gg,) = tenon.autograd.grad(g.sum(), b)
    assert g.tolist() == [0, 0, 0, 27, 48] + [0] * 7 and gg.tolist() == [0, 0, 0, 18, 24] + [0] * 7

    # What the view shows beside the elements of its input has no gradient, and what is written later does not matter.
    x = tenon.ones(6, requires_grad=True)
    y = x * 1
    w = y[2:4].as_strided((2, 3), (1, 1), 1)
    y.mul_(1)
    (g,) = tenon.autograd.grad(w.sum(), y, allow_unused=True)
    assert g.tolist() == [0, 1, 2, 2, 1, 0]


def test_a_view_keeps_its_history_when_its_base_is_detached_until_somebody_writes():
    x = tenon.ones(3, requires_grad=True)
    y = x * 2
    v = y[:]
    y.detach_()
    assert tenon.autograd.grad(v.sum(), x, retain_graph=True)[0].tolist() == [2, 2, 2]
    y.mul_(2)
    assert v.tolist() == [4, 4, 4] and not v.requires_grad


def test_views_of_a_detached_base():
    y = tenon.ones(4, requires_grad=True) * 1
    old = y[:2]
    y.detach_()
    with pytest.raises(RuntimeError, match="base was detached in place"):
        old.exp_()
    new = y[2:]
    new.requires_grad_()
    y.add_(1)
    assert not old.requires_grad and new.requires_grad
    (new * 2).sum().backward()
    assert new.grad.tolist() == [2, 2]


def test_what_does_not_require_grad_any_more_gets_none():
    x = tenon.ones(2, requires_grad=True)
    y = x * x
    x.requires_grad_(False)
    y.sum().backward()
    assert x.grad is None


def test_gradients_are_complex_where_results_are():
    x = tenon.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="the gradient is complex64 and the output is float32"):
        (x * 2).backward(tenon.ones(2, dtype=tenon.complex64))
    z = tenon.ones(2, dtype=tenon.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="the gradient is float32 and the output is complex64"):
        (z * 2).backward(tenon.ones(2))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x @ tenon.ones(4, 5),
        lambda x: tenon.nn.functional.linear(x, tenon.ones(5, 4)),
        lambda x: x[0] @ tenon.ones(4),
        lambda x: tenon.ones(3) @ x[0],
        lambda x: x @ tenon.ones(2, 4, 2),
        lambda x: x.logsumexp(0),
    ],
)
def test_results_of_composites_are_no_views(f):
    h = f(tenon.ones(2, 3, 4, requires_grad=True))
    assert h._base is None
    h.detach_()
    assert not h.requires_grad


def test_a_hook_of_a_leaf_may_wait_for_another_pass():
    x = tenon.ones(2, requires_grad=True)
    z = x * 1
    seen = []

    def hook(leaf):
        seen.append(leaf.grad.tolist())
        if len(seen) == 1:
            other = threading.Thread(target=lambda: z.sum().backward(retain_graph=True))
            other.start()
            other.join()

    x.register_post_accumulate_grad_hook(hook)
    z.sum().backward(retain_graph=True)
    assert seen == [[1, 1], [2, 2]] and x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 3), (2, 5)])
def test_gradient_of_prod(shape, dim):
    """The product of all others, zeros included; of nothing it is nothing."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, shape).astype(float)
    x = tenon.tensor(a, requires_grad=True)
    (x.prod() if dim is None else x.prod(dim)).sum().backward()
    want = np.empty(shape)
    for at in np.ndindex(shape):
        one = a.copy()
        one[at] = 1
        want[at] = one.prod() if dim is None else one.prod(dim)[at[1 - dim]]
    np.testing.assert_array_equal(x.grad.numpy(), want)


@pytest.mark.parametrize("dtype,big", [(tenon.float32, 1e30), (tenon.float16, 300.0), (tenon.complex64, 1e30)])
def test_two_zeros_leave_a_product_no_gradient(dtype, big):
    x = tenon.tensor([[big, big, 0, 0], [1, 2, 0, 4]], dtype=dtype, requires_grad=True)
    for y, want in (
        (x[0].prod(), [[0] * 4] * 2),
        (x.prod(1), [[0] * 4, [0, 0, 8, 0]]),
        (x.prod(), [[0] * 4] * 2),
    ):
        assert tenon.autograd.grad(y, x, tenon.ones_like(y))[0].tolist() == want


def test_a_product_with_two_zeros_has_a_second_derivative():
    x = tenon.tensor([0.0, 3.0, 0.0], requires_grad=True)
    (g,) = tenon.autograd.grad(x.prod(), x, create_graph=True)
    assert g.tolist() == [0, 0, 0]
    assert tenon.autograd.grad(g[0], x)[0].tolist() == [0, 0, 3]


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@pytest.mark.parametrize("rows,correction", [([[2.0]], 1), ([[2.0], [3.0]], 2), ([[1.0, 2.0], [np.inf, 4.0]], 1)])
def test_the_mean_has_a_gradient_where_the_variance_has_none(name, rows, correction):
    """The slope of the variance, here 0 / 0 or inf - inf, takes no part where only the mean is asked for."""
    x = tenon.tensor(rows, dtype=tenon.float64, requires_grad=True)
    both = getattr(tenon, name)
    both(x, dim=0, correction=correction)[1].sum().backward()
    assert x.grad.tolist() == np.full(x.shape, 1 / len(rows)).tolist()
    if len(rows) == 1:
        assert np.isnan(tenon.autograd.grad(both(x, dim=0)[0].sum(), x)[0].numpy()).all()


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_gradients_of_a_variance_and_its_mean(name):
    a = np.random.default_rng(0).standard_normal((3, 4))
    x = tenon.tensor(a, requires_grad=True)
    centred = (a - a.mean(0)) / 2
    spread = 2 * centred if name == "var_mean" else centred / a.std(0, ddof=1)
    mean = np.full((3, 4), 1 / 3)
    for weights, want in (((1, 0), spread), ((0, 1), mean), ((1, 1), spread + mean)):
        terms = [t.sum() for t, w in zip(getattr(tenon, name)(x, dim=0), weights) if w]
        np.testing.assert_allclose(tenon.autograd.grad(sum(terms), x)[0].numpy(), want, rtol=1e-12, atol=1e-14)


def test_an_infinite_gradient_reaches_the_largest_alone():
    x = tenon.tensor([1.0, 2.0], requires_grad=True)
    (g,) = tenon.autograd.grad(x.max(), x, tenon.tensor(float("inf")))
    assert g.tolist() == [0, float("inf")]


def test_the_angle_at_the_origin_has_gradient_zero():
    x = tenon.zeros(2, requires_grad=True)
    (g,) = tenon.autograd.grad(tenon.atan2(x, tenon.zeros(2)).sum(), x)
    assert g.tolist() == [0, 0]


def test_an_assigned_value_may_have_more_dimensions_of_size_one():
    v = tenon.tensor([[3.0]], requires_grad=True)
    x = tenon.zeros(3) * 1
    x[tenon.tensor([0, 2])] = v
    x.sum().backward()
    assert x.tolist() == [3, 0, 3] and v.grad.tolist() == [[2]]
    with pytest.raises(RuntimeError, match="broadcast"):
        tenon.zeros(2).copy_(tenon.ones(1, 2))


def test_a_hook_runs_though_nobody_holds_the_leaf():
    x = tenon.ones(3, requires_grad=True)
    y = x * 2
    seen = []
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf.tolist(), leaf.grad.tolist())))
    del x
    y.sum().backward()
    assert seen == [([1, 1, 1], [2, 2, 2])]


def test_a_chain_of_gradients_is_freed():
    x = tenon.ones(1)
    for _ in range(200_000):
        y = tenon.ones(1)
        y.grad = x
        x = y
    del x, y


def test_passes_within_passes_end_with_an_error():
    """Each pass starts another, on a thread with a small stack."""

    class Endless(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            with tenon.enable_grad():
                Endless.apply(grad.detach().requires_grad_()).sum().backward()
            return grad

    errors = []

    def run():
        try:
            Endless.apply(tenon.ones(1, requires_grad=True)).sum().backward()
        except RuntimeError as error:  # RecursionError is one
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(1 << 20)
    sys.setrecursionlimit(1_000_000)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    assert "the stack of this thread ends" in str(errors[0])


@pytest.mark.parametrize("write", [lambda b, v: v.mul_(3), lambda b, v: b.mul_(3)])
def test_a_view_that_is_written_retains_the_gradient_of_what_it_is_now(write):
    x = tenon.ones(4, requires_grad=True)
    b = x * 1
    v = b[0:2]
    v.retain_grad()
    write(b, v)
    (v * v).sum().backward()
    assert v.grad.tolist() == [6, 6] and x.grad.tolist() == [18, 18, 0, 0]
