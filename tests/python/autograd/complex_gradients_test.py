"""Gradients of complex tensors against differences."""

import numpy as np
import pytest

import tenon
from tests.python.complex_samples import numbers, tensor


# Gradients: of L = Re(sum(conj(w) * f(x))) the gradient is dL/da + i dL/db (PyTorch's convention).
def check_gradient(f, *arrays, tolerance=2e-6):
    tensors = [tensor(a, grad=True) for a in arrays]
    out = f(*tensors)
    rng = np.random.default_rng(3)
    w = rng.standard_normal(tuple(out.shape))
    if out.is_complex():
        w = w + 1j * rng.standard_normal(tuple(out.shape))
    grads = tenon.autograd.grad(out, tensors, tensor(w))

    def loss(values):
        with tenon.no_grad():
            y = np.asarray(f(*[tensor(v) for v in values]).detach().numpy())
        return float((np.conj(w) * y).real.sum())

    step = 1e-6
    for k, a in enumerate(arrays):
        got = grads[k].numpy()
        assert got.dtype == a.dtype
        for at in np.ndindex(a.shape):
            want = 0
            for unit in (1, 1j) if np.iscomplexobj(a) else (1,):
                moved = [[np.array(v) for v in arrays] for _ in range(2)]
                moved[0][k][at] += unit * step
                moved[1][k][at] -= unit * step
                want += unit * (loss(moved[0]) - loss(moved[1])) / (2 * step)
            assert abs(got[at] - want) <= tolerance * max(1, abs(want)), (k, at, got[at], want)


def check_second_gradient(f, *arrays):
    def first(*tensors):
        values = [t if t.requires_grad else t.requires_grad_() for t in tensors]
        with tenon.enable_grad():
            out = f(*values)
            w = tenon.ones_like(out) * (0.7 - 0.4j if out.is_complex() else 0.7)
            grads = tenon.autograd.grad(out, values, w, create_graph=True)
            return sum(((g * g).sum() * (1 + 2j) for g in grads), start=tenon.zeros((), dtype=tenon.complex128))

    check_gradient(first, *arrays, tolerance=2e-5)


Z = numbers("complex128", 20, (2, 3))
W = numbers("complex128", 21, (2, 3))
R = np.random.default_rng(22).standard_normal((2, 3)) + 3
UNARY = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid", "silu", "expm1", "log1p",
         "log2", "log10", "reciprocal", "rsqrt", "square", "neg", "abs", "angle", "sgn", "conj", "real", "imag",
         "view_as_real", "clone"]


@pytest.mark.parametrize("name", UNARY)
def test_gradients_of_functions(name):
    check_gradient(getattr(tenon, name), Z)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "tanh", "sigmoid", "reciprocal", "square", "abs",
                                  "angle", "sgn"])
def test_second_gradients_of_functions(name):
    check_second_gradient(getattr(tenon, name), Z)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_gradients_of_two_operands(name):
    f = getattr(tenon, name)
    check_gradient(f, Z, W)
    check_gradient(f, Z, R)
    check_gradient(f, R, Z)
    check_gradient(f, Z, W[0, :1])
    if name not in ("add", "sub"):
        check_second_gradient(f, Z, W)


def test_gradients_with_numbers():
    check_gradient(lambda x: (2 + 1j) * x + x * 1j - x / (1 - 2j), Z)
    check_gradient(lambda x: (2 + 1j) * x, R)
    check_gradient(lambda x: tenon.add(x, x * x, alpha=1 - 3j), Z)
    check_gradient(lambda x: x**3 + x ** (0.5 + 1j), Z)
    check_gradient(lambda x: (1 + 2j) ** x, Z)
    check_gradient(lambda x, y: tenon.where(x == x.detach(), x * y, y), Z, W)


def test_gradients_of_parts_and_views():
    check_gradient(lambda a, b: tenon.complex(a, b) * (1 + 2j), R, R + 1)
    check_gradient(tenon.polar, R, R + 1)
    check_gradient(lambda x: tenon.view_as_complex(x.reshape(3, 2)) * 1j, R)
    check_gradient(lambda x: x.real * x.imag, Z)
    check_gradient(lambda x: x.t()[1:].mH * x[:, 1:].sum(), Z)
    check_gradient(lambda x: x.to(tenon.complex128) * 1j, R)
    check_gradient(lambda x: x.to(tenon.float64) * 2, Z)


def write_parts(z):
    y = z * 1
    y.real.mul_(y.imag.clone())
    y.real[0].copy_(y.imag[1])
    y.imag.exp_()
    return y


def write_as_complex(x):
    y = (x * 1).reshape(3, 2)
    z = tenon.view_as_complex(y)
    z.mul_(z.clone())
    z[1:].exp_()
    return y


def read_parts_of_written(z):
    y = z * 1
    real, imag = y.real, y.imag
    y.mul_(y.clone())
    return real * imag


@pytest.mark.parametrize("f, x", [(write_parts, Z), (write_as_complex, R / 4), (read_parts_of_written, Z)])
def test_gradients_of_writes_through_views_of_parts(f, x):
    check_gradient(f, x)
    check_second_gradient(f, x)


def test_powers_of_real_bases():
    """A negative number has a complex logarithm."""
    base, exponent = np.array([-2.0, -2, 3, -0.5]), np.array([1j, 0.5, 0.5 + 1j, -3])
    np.testing.assert_allclose((tensor(base) ** tensor(exponent)).numpy(), base.astype(complex) ** exponent, atol=1e-15)
    np.testing.assert_allclose((tensor(base) ** 1j).numpy(), base.astype(complex) ** 1j, atol=1e-15)
    np.testing.assert_allclose(((-2.0) ** tensor(exponent)).numpy(), (-2 + 0j) ** exponent, atol=1e-15)
    check_gradient(tenon.pow, base, exponent)
    check_second_gradient(tenon.pow, base, exponent)


def test_logsumexp():
    z = numbers("complex128", 31, (3, 4))
    np.testing.assert_allclose(tenon.logsumexp(tensor(z), 1).numpy(), np.log(np.exp(z).sum(1)), rtol=1e-14)
    # Shifted by the largest real part, nothing overflows.
    want = 1000 + np.log(np.exp(2j) + np.exp(-1j))
    assert tenon.logsumexp(tenon.tensor([1000 + 2j, 1000 - 1j], dtype=tenon.complex128), 0).item() == pytest.approx(want)
    check_gradient(lambda x: tenon.logsumexp(x, 0), z)


def test_gradients_of_reductions_and_products():
    check_gradient(lambda x: x.sum(1), Z)
    check_gradient(lambda x: x.mean(), Z)
    check_gradient(lambda x: x.prod(), Z)
    check_gradient(lambda x: x.prod(1), Z)
    check_gradient(lambda x: x.cumsum(1), Z)
    check_gradient(lambda x: x.var(1), Z)
    check_gradient(lambda x: x.std(), Z)
    check_gradient(lambda x, y: x @ y.t(), Z, W)
    check_gradient(lambda x, y, c: tenon.addmm(c, x, y.t(), beta=1j, alpha=2 - 1j), Z, W, W[0, :2])
    check_gradient(lambda x, y: x.unsqueeze(0) @ y.t().unsqueeze(0), Z, W)
    check_gradient(lambda x, y: tenon.dot(x[0], y[1]), Z, W)
    check_gradient(lambda x, y: tenon.vdot(x[0], y[1]), Z, W)
    check_gradient(lambda x, y: x @ y[0], Z, W)
    check_gradient(lambda x, y: tenon.index_add(x, 0, tenon.tensor([1, 1]), y, alpha=1j), Z, W)
    check_gradient(lambda x: x[tenon.tensor([1, 1, 0])], Z)
    check_gradient(lambda x, y: tenon.cat([x, y.flip(1)]), Z, W)
    check_gradient(lambda x, y: tenon.nn.functional.linear(x, y), Z, W)


def test_a_real_loss_descends_against_its_gradient():
    x = tenon.tensor([1 + 1j, -2j], requires_grad=True)
    loss = (x.abs() ** 2).sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), rtol=1e-6)
    assert x.grad.dtype == tenon.complex64
