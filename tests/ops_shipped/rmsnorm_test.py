"""tenon.ops.rmsnorm, beside float64 references."""

import numpy as np
import pytest
from shipped_cases import FLOATING, LAYOUTS, assert_close, expanded, numbers, rounded

import tenon
from tenon.ops import rmsnorm


def reference(x, weight=None, eps=1e-6, dims=1):
    axes = tuple(range(-dims, 0))
    y = x / np.sqrt((x * x).mean(axes, keepdims=True) + eps)
    return y if weight is None else y * weight


def reference_gradients(grad, x, weight, eps=1e-6):
    r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    g = grad if weight is None else grad * weight
    dx = r * (g - x * r * (g * x * r).mean(-1, keepdims=True))
    return dx, (grad * x * r).reshape(-1, x.shape[-1]).sum(0)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_do_not_depend_on_strides(dtype, layout):
    x, wide = rounded(numbers(1, 5, 3, 17), dtype)
    weight, wide_weight = rounded(numbers(2, 17), dtype)
    x = LAYOUTS[layout](x)
    assert_close(rmsnorm(x, 17, weight, 1e-6), reference(wide, wide_weight), dtype, factor=4)
    assert_close(rmsnorm(x, (17,), eps=1e-6), reference(wide), dtype, factor=4)
    rows = expanded(x)
    assert_close(rmsnorm(rows, 17, weight[::1], 1e-6), reference(rows.double().numpy(), wide_weight), dtype, factor=4)


def test_rows_of_several_dimensions_and_strided_weights():
    x, w = numbers(3, 4, 3, 5), numbers(4, 5, 3)
    result = rmsnorm(tenon.tensor(x), (3, 5), tenon.tensor(w).T, 1e-6)
    assert_close(result, reference(x, w.T, dims=2))
    flipped = tenon.tensor(w[:, 0]).flip(0)
    assert_close(rmsnorm(tenon.tensor(x), 5, flipped, 1e-6), reference(x, w[::-1, 0]))


def test_eps_is_the_dtypes_unless_given():
    x = tenon.full((2, 4), 1e-9, dtype=tenon.float64)
    assert_close(rmsnorm(x, 4), reference(x.numpy(), eps=2.0**-52))
    assert_close(rmsnorm(x.float(), 4), reference(x.numpy(), eps=2.0**-23))


def test_no_rows_and_no_elements():
    assert rmsnorm(tenon.empty(0, 8), 8, tenon.ones(8)).shape == (0, 8)
    assert rmsnorm(tenon.empty(3, 0), 0).shape == (3, 0)
    x = tenon.empty(0, 8, requires_grad=True)
    w = tenon.ones(8, requires_grad=True)
    rmsnorm(x, 8, w).sum().backward()
    assert x.grad.shape == (0, 8) and w.grad.tolist() == [0.0] * 8


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_incoming_gradients_of_every_stride(dtype, layout):
    x, wide = rounded(numbers(5, 6, 3, 9), dtype)
    w, wide_weight = rounded(numbers(6, 9), dtype)
    x.requires_grad_()
    w.requires_grad_()
    grad, wide_grad = rounded(numbers(7, 6, 3, 9), dtype)
    for incoming, wide_incoming in ((LAYOUTS[layout](grad), wide_grad), (expanded(grad), np.broadcast_to(wide_grad[:1], wide_grad.shape))):
        dx, dw = tenon.autograd.grad(rmsnorm(x, 9, w, 1e-6), (x, w), incoming)
        wanted_dx, wanted_dw = reference_gradients(wide_incoming, wide, wide_weight)
        assert_close(dx, wanted_dx, dtype, factor=8)
        assert_close(dw, wanted_dw, dtype, factor=16)
    (dx,) = tenon.autograd.grad(rmsnorm(x, 9, eps=1e-6), x, grad)
    assert_close(dx, reference_gradients(wide_grad, wide, None)[0], dtype, factor=8)


def test_gradcheck():
    x = tenon.tensor(numbers(8, 3, 5), requires_grad=True)
    w = tenon.tensor(numbers(9, 5), requires_grad=True)
    assert tenon.autograd.gradcheck(lambda x, w: rmsnorm(x, 5, w, 1e-3), (x, w))


def test_the_gradient_has_no_derivative_and_says_so():
    x = tenon.tensor(numbers(10, 3, 5), requires_grad=True)
    with pytest.raises(RuntimeError, match="tenon::rmsnorm_backward: .* requires grad, and a plan has no derivative"):
        tenon.autograd.grad(rmsnorm(x, 5).sum(), x, create_graph=True)


def test_out_is_written_wherever_it_lies():
    x, w = tenon.tensor(numbers(11, 4, 6)), tenon.tensor(numbers(12, 6))
    wanted = reference(x.numpy(), w.numpy(), 1e-6)
    out = tenon.empty(4, 6, dtype=tenon.float64)
    assert rmsnorm(x, 6, w, 1e-6, out=out) is out
    assert_close(out, wanted)
    for out in (tenon.zeros(6, 4, dtype=tenon.float64).T, tenon.zeros(4, 12, dtype=tenon.float64)[:, ::2]):
        version = out._version
        rmsnorm(x, 6, w, 1e-6, out=out)
        assert_close(out, wanted)
        assert out._version > version
    own = x.clone()
    rmsnorm(own, 6, w, 1e-6, out=own)
    assert_close(own, wanted)
    shifted = tenon.cat([x, x])
    rmsnorm(shifted[:4], 6, w, 1e-6, out=shifted[1:5])
    assert_close(shifted[1:5], wanted)


def test_what_out_is_refused_for():
    x = tenon.ones(4, 6)
    with pytest.raises(ValueError, match=r"rmsnorm.*`out` has sizes \[4, 5\], the result has \[4, 6\]"):
        rmsnorm(x, 6, out=tenon.empty(4, 5))
    with pytest.raises(TypeError, match="`out` is float64, the result is float32"):
        rmsnorm(x, 6, out=tenon.empty(4, 6, dtype=tenon.float64))
    with pytest.raises(RuntimeError, match="out=.*don't support automatic differentiation"):
        rmsnorm(x.requires_grad_(), 6, out=tenon.empty(4, 6))


def test_bad_arguments_are_refused():
    x = tenon.ones(4, 6)
    with pytest.raises(ValueError, match=r"`normalized_shape` is \[5\], and `input` of shape \[4, 6\]"):
        rmsnorm(x, 5)
    with pytest.raises(ValueError, match=r"`weight` has shape \[4, 6\], expected `normalized_shape`"):
        rmsnorm(x, 6, x)
    with pytest.raises(ValueError, match="has to name a dimension"):
        rmsnorm(x, ())
    with pytest.raises(NotImplementedError, match="not implemented for int64"):
        rmsnorm(tenon.ones(4, 6, dtype=tenon.int64), 6)
    with pytest.raises(TypeError):
        rmsnorm([1.0], 1)


def test_meta_tensors_have_shapes():
    x = tenon.empty(7, 3, device="meta", dtype=tenon.float16)
    y = rmsnorm(x, 3, tenon.empty(3, device="meta", dtype=tenon.float16))
    assert y.is_meta and y.shape == (7, 3) and y.dtype == tenon.float16


def test_a_program_that_makes_a_plan_is_refused_with_its_line():
    f = tenon.compile(lambda x: rmsnorm(x, 23) * 2.0, pure=True)
    f(tenon.ones(3, 23))
    with pytest.warns(UserWarning, match=r"rmsnorm runs at once: .* \(.*rmsnorm_test.py:\d+\)"):
        assert f(tenon.ones(3, 23)).shape == (3, 23)


@pytest.mark.parametrize("pure", [False, True])
def test_compiled_functions_have_the_same_bits(pure):
    w = tenon.tensor(numbers(13, 6), dtype=tenon.float32, requires_grad=True)

    def f(x):
        return (rmsnorm(x * 2.0, 6, w, 1e-6) + 1.0).sum()

    compiled = tenon.compile(f, pure=pure)
    for seed in range(6):
        x = tenon.tensor(numbers(seed, 4, 6), dtype=tenon.float32)
        wanted, result = f(x), compiled(x)
        assert tenon.equal(result, wanted)
        (wanted_grad,) = tenon.autograd.grad(wanted, w)
        (grad,) = tenon.autograd.grad(result, w)
        assert tenon.equal(grad, wanted_grad)
