"""Leaves: those that are views of a buffer, and those that begin to require grad after they were used."""

import gc
import warnings

import pytest

import tenon

LEAF = "a leaf Variable that requires grad is being used in an in-place operation"


def test_no_flag_means_false():
    assert tenon.ones(2).requires_grad_().requires_grad and not tenon.ones(2).requires_grad_(None).requires_grad
    assert not tenon.signal.windows.cosine(3, requires_grad=None).requires_grad


def sliced_leaf():
    flat = tenon.zeros(6)
    p = flat[2:5]
    p.requires_grad_()
    return flat, p


@pytest.mark.parametrize(
    "write",
    [
        lambda p: p.__setitem__(0, 1.0),
        lambda p: p.__setitem__(slice(None), 1.0),
        lambda p: p.add_(1),
        lambda p: p[0:2].mul_(2),
        lambda p: p[0:2][1].fill_(3),
        lambda p: p.view(3, 1).t().zero_(),
        lambda p: p.detach().requires_grad_()[0].fill_(1),
    ],
)
def test_a_leaf_that_is_a_slice_of_a_buffer_is_not_written(write):
    flat, p = sliced_leaf()
    with pytest.raises(RuntimeError, match=LEAF):
        write(p)
    assert p.is_leaf and flat.tolist() == [0.0] * 6
    (p * 3).sum().backward()
    assert p.grad.tolist() == [3.0] * 3


def test_a_sliced_leaf_learns_and_is_written_without_recording():
    flat, p = sliced_leaf()
    sgd = tenon.optim.SGD([p], lr=0.5)
    (p * 2).sum().backward()
    sgd.step()
    assert p.is_leaf and flat.tolist() == [0, 0, -1, -1, -1, 0]
    with tenon.no_grad():
        p[0] = 7.0
        p.detach()[1] = 8.0
    assert p.is_leaf and flat[2:4].tolist() == [7.0, 8.0]
    flat[0] = 5.0  # beside it
    assert p.is_leaf and p.requires_grad


def test_several_views_of_a_sliced_leaf_are_not_written():
    _, p = sliced_leaf()
    with pytest.raises(RuntimeError, match="modified inplace|in-place"):
        p.unbind()[0].fill_(1)


def test_a_view_of_a_sliced_leaf_follows_its_base():
    flat, p = sliced_leaf()
    v = p[0:2]
    w = tenon.tensor([2.0], requires_grad=True)
    flat.add_(w)  # gives the buffer a history: what was a leaf is part of it
    assert not p.is_leaf and v.tolist() == [2.0, 2.0]
    (v * 3).sum().backward()
    assert w.grad.tolist() == [6.0]


LATE = {
    "a factor": lambda x, w: x * w,
    "both operands": lambda x, w: tenon.where(x > 0, x * w, w * x),
    "in place": lambda x, w: (x * 1).mul_(w),
}


@pytest.mark.parametrize("name", LATE)
def test_a_leaf_that_requires_grad_after_it_was_saved_has_second_derivatives(name):
    x, w = tenon.tensor([2.0, 3.0], requires_grad=True), tenon.tensor([5.0, 7.0])
    y = LATE[name](x, w)
    w.requires_grad_()
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [5.0, 7.0]
    (second,) = tenon.autograd.grad(g.sum(), w)
    assert second.tolist() == [1.0, 1.0]


def test_late_leaves_beside_a_factor_that_requires_grad_are_not_forgotten_silently():
    x, w = tenon.tensor([2.0], requires_grad=True), tenon.tensor([5.0])
    y = x * x * w
    w.requires_grad_()
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
    g.backward()
    assert w.grad.tolist() == [4.0] and x.grad.tolist() == [10.0]  # d(2xw)/dw and /dx
    # The first derivative was recorded when it required none.
    with pytest.raises(RuntimeError, match="not have been used"):
        tenon.autograd.grad((x * x * w.detach() * 1).sum(), w)


def test_a_late_leaf_is_the_tensor_itself_not_what_shares_its_elements():
    x, w = tenon.tensor([2.0], requires_grad=True), tenon.tensor([5.0])
    alias, view = w.detach(), w[:]
    y = x * w
    for other in (alias, view, tenon.nn.Parameter(w)):
        other.requires_grad_()
        (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True, retain_graph=True)
        assert not g.requires_grad
    w.requires_grad_()
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True, retain_graph=True)
    assert g.requires_grad
    w.requires_grad_(False)
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True, retain_graph=True)
    assert not g.requires_grad
    w.requires_grad_()
    w.detach_()
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True, retain_graph=True)
    assert not g.requires_grad
    w.requires_grad_()
    del w, other
    gc.collect()
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [5.0]


def test_a_late_leaf_that_was_written_is_reported():
    x, w = tenon.tensor([2.0], requires_grad=True), tenon.tensor([5.0])
    y = x * w
    w.requires_grad_()
    with tenon.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        tenon.autograd.grad(y.sum(), x, create_graph=True)


def test_a_late_leaf_that_a_function_saved():
    class Product(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return grad * w, grad * x

    x, w = tenon.tensor([2.0], requires_grad=True), tenon.tensor([5.0])
    y = Product.apply(x, w)
    w.requires_grad_()
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tenon.autograd.grad(g.sum(), w)
    assert second.tolist() == [1.0]


def test_a_plain_tensor_that_is_written_with_its_own_product_is_freed():
    import weakref

    x, y = tenon.ones(2, requires_grad=True), tenon.ones(2)
    y.add_(y * x)
    alive = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_views_of_a_tensor_that_was_detached_in_place_are_leaves():
    x = tenon.ones(3, requires_grad=True) * 2
    before = x[:2]
    x.detach_()
    assert not before.is_leaf and before.requires_grad  # until somebody writes
    after = x[:2]
    assert after.is_leaf and not after.requires_grad
    x.add_(1)
    for v in (before, after, x[1:]):
        assert v.is_leaf and not v.requires_grad and v.grad_fn is None
    before.requires_grad_()
    assert before.is_leaf
    (before * 3).sum().backward()
    assert before.grad.tolist() == [3.0, 3.0]


def test_a_reshape_that_copies_is_no_view():
    x = tenon.ones(2, 3, requires_grad=True)
    y = (x * 1).t().reshape(6)
    assert y._base is None
    y.detach_()
    assert y.is_leaf and not y.requires_grad
    z = x.t().reshape(6)
    z.mul_(2)  # x keeps its elements
    (z * tenon.arange(6.0)).sum().backward()
    assert x.tolist() == [[1.0] * 3] * 2 and x.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]
    assert (x * 1).reshape(6)._base is not None


def test_cat_of_parts_without_elements_requires_grad():
    for parts, want in (
        ([tenon.zeros(0, requires_grad=True), tenon.ones(2)], 2),
        ([tenon.zeros(0, requires_grad=True), tenon.ones(2, 3)], 2),
        ([tenon.ones(2), tenon.zeros(0, requires_grad=True)], 2),
        ([tenon.zeros(0, requires_grad=True), tenon.zeros(0)], 0),
        ([tenon.zeros(0, 2, requires_grad=True), tenon.ones(1, 2)], 1),
    ):
        for dim in range(max(p.dim() for p in parts)):
            if parts[-1].dim() == 2 and dim == 1 and parts[0].dim() == 2:
                continue
            y = tenon.cat(parts, dim)
            assert y.requires_grad and not y.is_leaf and len(y) == want
            leaf = next(p for p in parts if p.requires_grad)
            leaf.grad = None
            y.sum().backward()
            assert leaf.grad.shape == leaf.shape
    with tenon.no_grad():
        assert not tenon.cat([tenon.zeros(0, requires_grad=True), tenon.ones(2)]).requires_grad


def test_sum_to_size_is_a_tensor_of_its_own():
    x = tenon.ones(1, 1, 1, requires_grad=True)
    y = x * 2
    z = y.sum_to_size((1, 1))
    z.mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [[[2.0]]] and z._base is None
    x = tenon.tensor([[[-0.0, 3.0]]], requires_grad=True)
    z = x.sum_to_size(2)
    assert z.tolist() == [0.0, 3.0] and str(z[0].item()) == "-0.0"
    (z * tenon.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [[[2.0, 3.0]]]


def test_gradient_follows_data_of_another_shape():
    x = tenon.ones(1, requires_grad=True)
    x.data = tenon.zeros(3)
    (x * tenon.tensor([1.0, 2, 3])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]


@pytest.mark.parametrize("before, after", [((), (2, 3)), ((3,), ()), ((2, 3), (0, 3)), ((4,), (1, 4))])
@pytest.mark.parametrize("dtype", [tenon.float16, tenon.float64, tenon.complex64])
def test_gradient_follows_data_of_another_shape_and_dtype(before, after, dtype):
    x = tenon.ones(before, requires_grad=True)
    (x * 2).sum().backward()
    x.grad = None
    x.data = tenon.ones(after, dtype=dtype)
    y = (x * 3).sum()
    y.backward(tenon.ones_like(y))
    assert x.grad.dtype == dtype and x.grad.shape == tuple(after)
    assert x.grad.tolist() == tenon.full(after, 3, dtype=dtype).tolist()


def test_hooks_stay_with_a_leaf_that_shows_other_data():
    x = tenon.ones(1, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.dtype))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    x.data = tenon.ones(2, dtype=tenon.float64)
    x.sum().backward()
    assert seen == [tenon.float64, [1.0, 1.0]]


def test_gradient_follows_set_():
    x = tenon.ones(1, requires_grad=True)
    with tenon.no_grad():
        x.set_(tenon.zeros(3))
    (x * tenon.tensor([1.0, 2, 3])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]


def test_gradient_follows_data_set_while_it_wants_none():
    x = tenon.ones(1, requires_grad=True)
    x.requires_grad_(False)
    x.data = tenon.zeros(3, dtype=tenon.float64)
    x.requires_grad_(True)
    (x * tenon.tensor([1.0, 2, 3])).sum().backward()
    assert x.grad.tolist() == [1, 2, 3] and x.grad.dtype == tenon.float64


@pytest.mark.parametrize("dtype", [tenon.int64, tenon.bool, tenon.uint8])
def test_data_without_gradients_is_refused(dtype):
    x = tenon.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="data: the tensor requires grad.*floating point or complex"):
        x.data = tenon.ones(2, dtype=dtype)
    assert x.dtype == tenon.float32
    with tenon.no_grad(), pytest.raises(RuntimeError, match="data: the tensor requires grad"):
        x.data = tenon.ones(2, dtype=dtype)
    y = tenon.ones(2)
    y.data = tenon.ones(2, dtype=dtype)
    assert y.dtype == dtype


@pytest.mark.parametrize("convert", [lambda m: m.double(), lambda m: m.half(), lambda m: m.to(tenon.float64)])
def test_module_of_another_dtype_has_gradients_of_it(convert):
    m = convert(tenon.nn.Linear(4, 3))
    dtype = m.weight.dtype
    m(tenon.ones(2, 4, dtype=dtype)).sum().backward()
    for p in m.parameters():
        assert p.grad.dtype == dtype and p.grad.shape == p.shape
    assert m.weight.grad.tolist() == [[2.0] * 4] * 3


def test_kept_gradients_are_nobody_elses():
    a = tenon.ones(4, requires_grad=True)
    p, q = a * 2, a * 3
    p.retain_grad()
    q.retain_grad()
    g = tenon.ones(4)
    (p + q).backward(g)
    p.grad.mul_(10)
    assert q.grad.tolist() == [1] * 4 and g.tolist() == [1] * 4
    assert a.grad.tolist() == [5] * 4


def test_kept_gradients_of_inputs_are_nobody_elses():
    a = tenon.ones(4, requires_grad=True)
    p, q = a * 2, a * 3
    g = tenon.ones(4)
    (p + q).backward(g, inputs=[p, q, a])
    p.grad.mul_(10)
    assert q.grad.tolist() == [1] * 4 and g.tolist() == [1] * 4
    assert a.grad.tolist() == [5] * 4


def test_kept_gradient_is_dense():
    a = tenon.ones(4, requires_grad=True)
    p = a * 2
    p.retain_grad()
    p.sum().backward()
    assert p.grad.stride() == (1,)
    p.grad[0] = 7
    assert p.grad.tolist() == [7, 1, 1, 1]


def test_kept_gradients_add_up_out_of_place():
    a = tenon.ones(2, requires_grad=True)
    p = a * 2
    p.retain_grad()
    p.sum().backward(retain_graph=True)
    first = p.grad
    p.sum().backward()
    assert first.tolist() == [1, 1] and p.grad.tolist() == [2, 2]


def test_kept_gradient_can_be_differentiated():
    a = tenon.tensor([2.0], requires_grad=True)
    p = a * a
    p.retain_grad()
    (p**3).sum().backward(create_graph=True)
    (second,) = tenon.autograd.grad(p.grad.sum(), a)
    assert second.item() == 3 * 2 * 4 * 2 * 2  # d/da 3 a^4


def test_reading_the_grad_of_what_is_no_leaf_warns():
    x = tenon.ones(3, requires_grad=True)
    y, kept = x * 2, x * 3
    kept.retain_grad()
    (y.sum() + kept.sum()).backward()
    with pytest.warns(UserWarning, match="grad attribute of a Tensor that is not a leaf.*retain_grad") as caught:
        assert y.grad is None
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad.tolist() == [5.0] * 3 and kept.grad.tolist() == [1.0] * 3
        assert tenon.ones(3).grad is None and tenon.ones(3, requires_grad=True).grad is None
        assert y.detach().grad is None
        later = x * 4
        later.retain_grad()
        assert later.grad is None  # before backward


def test_reading_the_grad_of_a_view_of_a_result_warns():
    x = tenon.ones(3, requires_grad=True)
    base = tenon.zeros(3)
    view = base[:]
    base.add_(x)
    with pytest.warns(UserWarning, match="not a leaf"):
        assert view.grad is None
