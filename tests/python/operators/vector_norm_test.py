"""norm, linalg.vector_norm and normalize as Python functions, and gradients of norms as operators."""

import numpy as np
import pytest
import tenon
import tenon.nn.functional as F
from tenon.autograd import gradcheck

A = np.random.default_rng(3).standard_normal((3, 4, 5))


@pytest.mark.parametrize("p", [2, 1, 0, np.inf, -np.inf, 3, 0.5])
@pytest.mark.parametrize("dim", [None, 1, (0, 2), [-1]])
def test_a_norm_has_orders_and_dimensions(p, dim):
    axes = (0, 1, 2) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    size = np.abs(A)
    if p == 0:
        expected = (A != 0).sum(axes).astype(float)
    elif np.isinf(p):
        expected = size.max(axes) if p > 0 else size.min(axes)
    else:
        expected = (size**p).sum(axes) ** (1 / p)
    x = tenon.tensor(A)
    results = [tenon.norm(x, p, dim), x.norm(p, dim), tenon.linalg.vector_norm(x, p, dim)]
    for result in results:
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-13)
    assert tenon.norm(x, p, dim, keepdim=True).dim() == 3


def test_the_order_is_2_unless_given():
    x = tenon.tensor(A)
    expected = np.sqrt((A**2).sum())
    for result in (x.norm(), x.norm(p=None), tenon.norm(x, "fro"), tenon.linalg.vector_norm(x), x.norm("fro", (0, 1)).norm()):
        np.testing.assert_allclose(result.item(), expected, rtol=1e-13)


def test_dtype_converts_first():
    x = tenon.full([4], 2.0**100)
    assert x.norm().item() == np.inf
    wide = x.norm(dtype=tenon.float64)
    assert wide.dtype is tenon.float64 and wide.item() == 2.0**101
    out = tenon.empty(0, dtype=tenon.float64)
    assert tenon.norm(x, out=out, dtype=tenon.float64) is out and out.item() == 2.0**101


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: tenon.norm(x, "nuc", 1), RuntimeError, "of two dimensions"),
        (lambda x: tenon.norm(x, "max"), RuntimeError, "'max'"),
        (lambda x: tenon.norm(x, "fro", (0, 1, 2)), RuntimeError, "one or two dimensions"),
        (lambda x: tenon.norm(x.long()), NotImplementedError, "norm: expected `self` of a floating or complex dtype, got int64"),
        (lambda x: tenon.linalg.vector_norm(x, 1j), TypeError, "complex number"),
        (lambda x: tenon.linalg.vector_norm(x, dtype=tenon.float32), TypeError, "float32 is narrower than `self` of float64"),
        (lambda x: tenon.linalg.vector_norm(x, dtype=tenon.complex128), TypeError, "a floating dtype"),
        (lambda x: tenon.linalg.vector_norm(x[:0], np.inf), RuntimeError, "of no elements does not exist"),
        (lambda x: tenon.linalg.vector_norm(x, 2, 3), IndexError, "dim"),
        (lambda x: tenon.aminmax(x[:0]), IndexError, "no elements"),
        (lambda x: tenon.native_group_norm(x, None, None, 3, 4, 6, 2, 1e-5), RuntimeError, "native_group_norm.*6 places"),
        (lambda x: tenon.native_group_norm(x, None, None, 3, 4, 5, 3, 1e-5), ValueError, "divisible by `group`"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(tenon.tensor(A))


def test_the_gradient_is_zero_where_the_norm_is():
    for p in (2, 1, 3, 1.5, 0.5, np.inf, 0):
        x = tenon.zeros(3, 2, requires_grad=True)
        x.norm(p, 1).sum().backward()
        assert x.grad.tolist() == [[0, 0]] * 3, p


def test_normalize_divides_by_the_norm_of_a_dimension():
    x = tenon.tensor(A)
    np.testing.assert_allclose(F.normalize(x).numpy(), A / np.sqrt((A**2).sum(1, keepdims=True)), rtol=1e-13)
    np.testing.assert_allclose(F.normalize(x, 1, (0, 2)).numpy(), A / np.abs(A).sum((0, 2), keepdims=True), rtol=1e-13)
    assert F.normalize(tenon.zeros(2, 3)).tolist() == [[0.0] * 3] * 2
    out = tenon.empty(0, dtype=tenon.float64)
    assert F.normalize(x, out=out) is out
    assert gradcheck(F.normalize, [tenon.tensor(A, requires_grad=True)])


def test_products_up_to_zeros_have_gradients():
    for values in ([2.0, 0.0, 3.0, 0.0, 5.0], [0.0, 0.0], [2.0, 3.0, 4.0], [1e-310, 2.0, 3.0]):
        x = np.array(values)
        g = np.arange(1.0, len(x) + 1)
        expected = [sum(g[j] * np.prod(np.delete(x[: j + 1], k)) for j in range(k, len(x))) for k in range(len(x))]
        t = tenon.tensor(x, requires_grad=True)
        t.cumprod(0).backward(tenon.tensor(g))
        np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-14)


def _statistics(x, shape, dims):
    mean = x.mean(dims, keepdim=True)
    return mean.reshape(shape), ((x - mean).square().mean(dims, keepdim=True) + 1e-3).rsqrt().reshape(shape)


def test_gradients_of_norms_differentiate_their_statistics():
    """mean and rstd are values that came without history: derivatives are those of the statistics that they are."""
    x, g = tenon.tensor(A, requires_grad=True), tenon.tensor(A[::-1].copy(), requires_grad=True)
    aten = tenon.ops.aten

    def composed(x, g, dims, weight):
        mean, rstd = _statistics(x, [n if d not in dims else 1 for d, n in enumerate(x.shape)], dims)
        hat, w = (x - mean) * rstd, g * weight
        return rstd * (w - w.mean(dims, keepdim=True) - hat * (w * hat).mean(dims, keepdim=True)), (g * hat).sum((0, 1))

    weight = tenon.tensor(A[0, 0])
    with tenon.no_grad():
        mean, rstd = _statistics(x, [3, 4, 1], (2,))
    ours = aten.native_layer_norm_backward.default(g, x, [5], mean, rstd, weight, None, [True, True, False])
    assert ours[2] is None
    for mine, theirs in zip(ours, composed(x, g, (2,), weight)):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), atol=1e-13)
        for got, want in zip(*(tenon.autograd.grad((t * t).sum(), [x, g], retain_graph=True) for t in (mine, theirs))):
            np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-10)


@pytest.mark.parametrize("order", [-0.5, -1, -2])
def test_beside_a_zero_no_element_changes_a_norm_of_negative_order(order):
    x = tenon.tensor([[1.0, -2.0, 0.0], [1.0, -2.0, 4.0]], dtype=tenon.float64, requires_grad=True)
    y = tenon.linalg.vector_norm(x, order, dim=1)
    (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
    a = np.array([1.0, -2.0, 4.0])
    norm = (np.abs(a) ** order).sum() ** (1 / order)
    np.testing.assert_allclose(y.detach().numpy(), [0, norm], rtol=1e-14)
    np.testing.assert_allclose(g.detach().numpy(), [[0, 0, 0], np.sign(a) * np.abs(a) ** (order - 1) * norm ** (1 - order)], rtol=1e-14)
    assert tenon.autograd.grad(g.sum(), x)[0].isfinite().all()
