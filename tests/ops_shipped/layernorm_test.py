"""tenon.ops.layernorm, beside float64 references."""

import numpy as np
import pytest
from shipped_cases import FLOATING, LAYOUTS, assert_close, expanded, numbers, rounded

import tenon
from tenon.ops import layernorm


def normal(x, eps):
    d = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + eps)
    return d * r, r


def reference(x, weight=1.0, bias=0.0, eps=1e-5):
    return normal(x, eps)[0] * weight + bias


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_do_not_depend_on_strides(dtype, layout):
    x, wide = rounded(numbers(1, 5, 3, 17), dtype)
    (weight, wide_weight), (bias, wide_bias) = rounded(numbers(2, 17), dtype), rounded(numbers(3, 17), dtype)
    x = LAYOUTS[layout](x)
    assert_close(layernorm(x, 17, weight, bias), reference(wide, wide_weight, wide_bias), dtype, factor=8)
    assert_close(layernorm(x, (17,), bias=bias), reference(wide, bias=wide_bias), dtype, factor=8)
    assert_close(layernorm(x, 17, weight.flip(0)), reference(wide, wide_weight[::-1]), dtype, factor=8)
    rows = expanded(x)
    assert_close(layernorm(rows, 17, eps=0.5), reference(rows.double().numpy(), eps=0.5), dtype, factor=8)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_incoming_gradients_of_every_stride(dtype, layout):
    x, wide = rounded(numbers(4, 6, 3, 9), dtype)
    (w, wide_w), (b, _) = rounded(numbers(5, 9), dtype), rounded(numbers(6, 9), dtype)
    grad, wide_grad = rounded(numbers(7, 6, 3, 9), dtype)
    for t in (x, w, b):
        t.requires_grad_()
    dx, dw, db = tenon.autograd.grad(layernorm(x, 9, w, b), (x, w, b), LAYOUTS[layout](grad))
    n, r = normal(wide, 1e-5)
    g = wide_grad * wide_w
    assert_close(dx, r * (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)), dtype, factor=16)
    assert_close(dw, (wide_grad * n).reshape(-1, 9).sum(0), dtype, factor=32)
    assert_close(db, wide_grad.reshape(-1, 9).sum(0), dtype, factor=16)


def test_gradcheck_with_and_without_parameters():
    x, w, b = (tenon.tensor(numbers(8, *s), requires_grad=True) for s in ((3, 5), (5,), (5,)))
    assert tenon.autograd.gradcheck(lambda x, w, b: layernorm(x, 5, w, b, 1e-3), (x, w, b))
    assert tenon.autograd.gradcheck(lambda x: layernorm(x, (3, 5), eps=1e-3), (x,))
    with pytest.raises(RuntimeError, match="tenon::layernorm_backward: .* requires grad, and a plan has no derivative"):
        tenon.autograd.grad(layernorm(x, 5).sum(), x, create_graph=True)


def test_no_rows():
    x, w = tenon.empty(0, 8, requires_grad=True), tenon.ones(8, requires_grad=True)
    y = layernorm(x, 8, w)
    y.sum().backward()
    assert y.shape == x.grad.shape == (0, 8) and w.grad.tolist() == [0.0] * 8


def test_out_meta_and_bad_arguments():
    x = tenon.tensor(numbers(9, 4, 6))
    out = tenon.zeros(6, 4, dtype=tenon.float64).T
    assert layernorm(x, 6, out=out) is out
    assert_close(out, reference(x.numpy()))
    assert_close(layernorm(x, 6, out=x), reference(numbers(9, 4, 6)))
    y = layernorm(tenon.empty(7, 3, device="meta"), 3)
    assert y.is_meta and y.shape == (7, 3)
    with pytest.raises(ValueError, match="`bias` has shape"):
        layernorm(x, 6, bias=tenon.ones(5, dtype=tenon.float64))
    with pytest.raises(ValueError, match="does not end with it"):
        layernorm(x, 5)


@pytest.mark.parametrize("pure", [False, True])
def test_compiled_functions_have_the_same_bits(pure):
    w = tenon.tensor(numbers(10, 6), dtype=tenon.float32, requires_grad=True)

    def f(x):
        return (layernorm(x * 2.0, 6, w) + 1.0).sum()

    compiled = tenon.compile(f, pure=pure)
    for seed in range(4):
        x = tenon.tensor(numbers(seed, 4, 6), dtype=tenon.float32)
        wanted, result = f(x), compiled(x)
        assert tenon.equal(result, wanted)
        assert tenon.equal(tenon.autograd.grad(result, w)[0], tenon.autograd.grad(wanted, w)[0])
