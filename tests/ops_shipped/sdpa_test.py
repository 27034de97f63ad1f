"""tenon.ops.sdpa, beside float64 references."""

import numpy as np
import pytest
from shipped_cases import FLOATING, LAYOUTS, assert_close, numbers, rounded

import tenon
from tenon.ops import sdpa


def reference(q, k, v, mask=None, causal=False, scale=None):
    heads = q.shape[1]
    k, v = (np.repeat(t, heads // t.shape[1], axis=1) for t in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def inputs(dtype=tenon.float64, heads=4, queries=5, keys=7):
    shapes = (2, 4, queries, 8), (2, heads, keys, 8), (2, heads, keys, 6)
    return zip(*(rounded(numbers(i, *shape), dtype) for i, shape in enumerate(shapes)))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_do_not_depend_on_strides(dtype, layout):
    tensors, wide = inputs(dtype)
    tensors = [LAYOUTS[layout](t) for t in tensors]
    assert_close(sdpa(*tensors), reference(*wide), dtype, factor=8)
    assert_close(sdpa(*tensors, scale=0.25, is_causal=True), reference(*wide, scale=0.25, causal=True), dtype, factor=8)


def test_masks_and_shared_heads():
    tensors, wide = inputs(heads=2)
    added = numbers(9, 2, 1, 5, 7)
    seen = numbers(10, 5, 7) > -1
    seen[:, 0] = True
    assert_close(sdpa(*tensors, tenon.tensor(added), enable_gqa=True), reference(*wide, added), factor=10)
    assert_close(sdpa(*tensors, tenon.tensor(seen), enable_gqa=True), reference(*wide, seen), factor=10)


def test_other_scales_plan_nothing():
    from tenon.ops.sdpa import _forward as plan  # the module's, not the function's

    tensors, wide = inputs(queries=3)
    before = plan.cache_info().misses
    for scale in (0.1, 0.2, 0.5):
        assert_close(sdpa(*tensors, scale=scale), reference(*wide, scale=scale), factor=10)
    assert plan.cache_info().misses == before + 1


def test_gradients():
    tensors, _ = inputs(heads=2, queries=3, keys=4)
    for t in tensors:
        t.requires_grad_()
    mask = tenon.tensor(numbers(11, 3, 4))
    for options in ({}, {"is_causal": True}, {"scale": 0.7}, {"attn_mask": mask}):
        assert tenon.autograd.gradcheck(lambda q, k, v: sdpa(q, k, v, enable_gqa=True, **options), tensors)
    with pytest.raises(RuntimeError, match="tenon::sdpa_backward: .* requires grad, and a plan has no derivative"):
        tenon.autograd.grad(sdpa(*tensors, enable_gqa=True).sum(), tensors, create_graph=True)
    with pytest.raises(NotImplementedError, match="`attn_mask` requires grad"):
        sdpa(*tensors, mask.requires_grad_(), enable_gqa=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_incoming_gradients_of_every_stride(layout):
    tensors, _ = inputs()
    for t in tensors:
        t.requires_grad_()
    grad = tenon.tensor(numbers(12, 2, 4, 5, 6))
    wanted = tenon.autograd.grad(sdpa(*tensors), tensors, grad)
    for result, want in zip(tenon.autograd.grad(sdpa(*tensors), tensors, LAYOUTS[layout](grad)), wanted):
        assert_close(result, want.numpy())


def test_no_queries_and_no_batch():
    for sizes in ((0, 4, 5), (2, 4, 0)):
        q = tenon.empty(*sizes, 8, requires_grad=True)
        k = tenon.ones(sizes[0], 4, 3, 8)
        y = sdpa(q, k, k)
        y.sum().backward()
        assert y.shape == q.grad.shape == (*sizes, 8)


def test_out_meta_and_bad_arguments():
    tensors, wide = inputs()
    out = tenon.zeros(6, 5, 4, 2, dtype=tenon.float64).permute(3, 2, 1, 0)
    assert sdpa(*tensors, out=out) is out
    assert_close(out, reference(*wide), factor=10)
    meta = [tenon.empty(t.shape, device="meta") for t in tensors]
    assert sdpa(*meta).shape == (2, 4, 5, 6) and sdpa(*meta).is_meta
    q, k, v = tensors
    with pytest.raises(ValueError, match=r"`query` has shape \[4, 5, 8\], expected \[batch, heads, length, width\]"):
        sdpa(q[0], k, v)
    with pytest.raises(ValueError, match="with enable_gqa=True"):
        sdpa(q, k[:, :2], v[:, :2])


@pytest.mark.parametrize("pure", [False, True])
def test_compiled_functions_have_the_same_bits(pure):
    tensors, _ = inputs(tenon.float32)
    tensors = [t.requires_grad_() for t in tensors]

    def f(x):
        return sdpa(tensors[0] * x, *tensors[1:]).sum()

    compiled = tenon.compile(f, pure=pure)
    for value in (1.0, 2.0, 3.0, 4.0):
        x = tenon.tensor(value)
        wanted, result = f(x), compiled(x)
        assert tenon.equal(result, wanted)
        for a, b in zip(tenon.autograd.grad(result, tensors), tenon.autograd.grad(wanted, tensors)):
            assert tenon.equal(a, b)
