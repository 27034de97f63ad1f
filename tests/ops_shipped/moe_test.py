"""tenon.ops.moe_matmul, beside float64 references."""

import sys

import numpy as np
import pytest
from shipped_cases import FLOATING, LAYOUTS, assert_close, numbers, rounded

import tenon
from tenon.ops import moe_matmul

EXPERTS = [2, 0, 2, 0, 0, 2, 3]


@pytest.fixture(autouse=True, params=[0, 1 << 40], ids=["rows ordered", "matrices copied"])
def way(request, monkeypatch):
    """How it is computed, which depends on how large the matrices of all rows are."""
    monkeypatch.setattr(sys.modules["tenon.ops.moe"], "_FEW", request.param)


def reference(x, w, experts):
    return np.stack([row @ w[e] for row, e in zip(x, experts)]) if len(experts) else np.zeros((0, w.shape[2]))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_do_not_depend_on_strides(dtype, layout):
    (x, wide_x), (w, wide_w) = rounded(numbers(1, 7, 5), dtype), rounded(numbers(2, 4, 5, 6), dtype)
    result = moe_matmul(LAYOUTS[layout](x), LAYOUTS[layout](w), tenon.tensor(EXPERTS))
    assert_close(result, reference(wide_x, wide_w, EXPERTS), dtype, factor=8)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_both_ways_have_the_same_bits(dtype, monkeypatch):
    for seed, (tokens, k, n) in enumerate([(7, 5, 6), (16, 64, 64), (3, 257, 33), (40, 33, 1)]):
        x, w = rounded(numbers(seed, tokens, k), dtype)[0], rounded(numbers(seed + 9, 4, k, n), dtype)[0]
        experts = tenon.tensor([i * 5 % 4 for i in range(tokens)])
        results = []
        for few in (0, 1 << 40):
            monkeypatch.setattr(sys.modules["tenon.ops.moe"], "_FEW", few)
            results.append(moe_matmul(x, w, experts))
        assert tenon.equal(*results)


def test_gradients_of_gradients():
    x = tenon.tensor(numbers(3, 7, 3), requires_grad=True)
    w = tenon.tensor(numbers(4, 4, 3, 2), requires_grad=True)
    experts = tenon.tensor(EXPERTS, dtype=tenon.int32)
    assert tenon.autograd.gradcheck(lambda x, w: moe_matmul(x, w, experts), (x, w))
    assert tenon.autograd.gradgradcheck(lambda x, w: moe_matmul(x, w, experts), (x, w))
    # The one without rows has a gradient of zero.
    moe_matmul(x, w, experts).sum().backward()
    assert w.grad[1].tolist() == [[0.0, 0.0]] * 3 and w.grad[0].abs().sum() > 0


def test_no_rows():
    x, w = tenon.empty(0, 5, requires_grad=True), tenon.ones(4, 5, 6, requires_grad=True)
    y = moe_matmul(x, w, tenon.empty(0, dtype=tenon.int64))
    y.sum().backward()
    assert y.shape == (0, 6) and x.grad.shape == (0, 5) and w.grad.abs().sum() == 0


def test_out_meta_and_bad_arguments():
    x, w, experts = tenon.tensor(numbers(5, 7, 5)), tenon.tensor(numbers(6, 4, 5, 5)), tenon.tensor(EXPERTS)
    wanted = reference(x.numpy(), w.numpy(), EXPERTS)
    out = tenon.zeros(5, 7, dtype=tenon.float64).T
    assert moe_matmul(x, w, experts, out=out) is out
    assert_close(out, wanted)
    assert_close(moe_matmul(x, w, experts, out=x), wanted)
    meta = moe_matmul(tenon.empty(7, 5, device="meta"), tenon.empty(4, 5, 6, device="meta"),
                      tenon.empty(7, device="meta", dtype=tenon.int64))  # fmt: skip
    assert meta.is_meta and meta.shape == (7, 6)
    for bad in (-1, 4):
        with pytest.raises(IndexError, match=f"expert {bad} of 4"):
            moe_matmul(x, w, tenon.tensor([0, 1, 2, 3, 0, 1, bad]))
    with pytest.raises(ValueError, match=r"`experts` is .*float32 of shape \[7\], expected integers"):
        moe_matmul(x, w, tenon.zeros(7))
    with pytest.raises(ValueError, match=r"`weight` is .* expected .*float64 of shape \[experts, 5, width\]"):
        moe_matmul(x, w.float(), experts)
    with pytest.raises(ValueError, match=r"`out` is .* of shape \[7, 4\]"):
        moe_matmul(x, w, experts, out=tenon.empty(7, 4, dtype=tenon.float64))


@pytest.mark.parametrize("pure", [False, True])
def test_compiled_functions_have_the_same_bits(pure):
    w = tenon.tensor(numbers(7, 4, 5, 6), dtype=tenon.float32, requires_grad=True)
    experts = tenon.tensor(EXPERTS)

    def f(x):
        return moe_matmul(x * 2.0, w, experts).sum()

    compiled = tenon.compile(f, pure=pure)
    for seed in range(4):
        x = tenon.tensor(numbers(seed, 7, 5), dtype=tenon.float32)
        wanted, result = f(x), compiled(x)
        assert tenon.equal(result, wanted)
        assert tenon.equal(tenon.autograd.grad(result, w)[0], tenon.autograd.grad(wanted, w)[0])
