"""scaled_dot_product_attention: what it is, what it refuses, its memory. Values of all dtypes and strides: tests/conformance."""

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F


def tensors(*shapes, dtype=tenon.float64, grad=False):
    tenon.manual_seed(0)
    return [tenon.randn(s, dtype=dtype).requires_grad_(grad) for s in shapes]


def with_all_weights(query, key, value, mask=None, dropout_p=0.0):
    """The definition: every weight at once."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -float("inf")) if mask.dtype == tenon.bool else scores + mask
    return F.dropout(scores.softmax(-1), dropout_p) @ value


SHAPES = (2, 3, 150, 8), (2, 3, 300, 8), (2, 3, 300, 5)


@pytest.mark.parametrize("masked", [None, "bool", "added"])
def test_blocks_give_what_all_weights_at_once_give(masked):
    q, k, v = tensors(*SHAPES, grad=True)
    mask = tenon.rand(150, 300) < 0.7 if masked == "bool" else tenon.randn(3, 1, 300, dtype=q.dtype).requires_grad_()
    inputs = [q, k, v] + [mask] * (masked == "added")
    mask = mask if masked else None
    got, want = F.scaled_dot_product_attention(q, k, v, mask), with_all_weights(q, k, v, mask)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), atol=1e-13)
    g = tenon.randn_like(want)
    for a, b in zip(tenon.autograd.grad(got, inputs, g), tenon.autograd.grad(want, inputs, g)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-11)


def test_causal_is_a_triangular_mask():
    q, k, v = tensors(*SHAPES)
    mask = tenon.arange(300) <= tenon.arange(150).unsqueeze(1)
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(got.numpy(), with_all_weights(q, k, v, mask).numpy(), atol=1e-13)


def test_shared_heads_are_repeated_heads():
    q, k, v = tensors((2, 6, 70, 8), (2, 2, 70, 8), (2, 2, 70, 8), grad=True)
    repeated = [x.unsqueeze(2).expand(2, 2, 3, 70, 8).flatten(1, 2) for x in (k, v)]
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    want = F.scaled_dot_product_attention(q, *repeated, is_causal=True)
    assert got.equal(want)
    g = tenon.randn_like(got)
    for a, b in zip(tenon.autograd.grad(got, [q, k, v], g), tenon.autograd.grad(want, [q, k, v], g)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-13)


def test_dropout_drops_the_weights_that_dropout_drops():
    q, k, v = tensors(*SHAPES, grad=True)
    g = tenon.randn(2, 3, 150, 5, dtype=q.dtype)
    found = []
    for attend in (lambda: F.scaled_dot_product_attention(q, k, v, dropout_p=0.25), lambda: with_all_weights(q, k, v, None, 0.25)):
        tenon.manual_seed(7)
        out = attend()
        found.append([out.detach(), *tenon.autograd.grad(out, [q, k, v], g), tenon.rand(3)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-11)
    assert F.scaled_dot_product_attention(q, k, v, dropout_p=1.0).eq(0).all()


def test_a_query_that_sees_nothing_gives_zeros():
    q, k, v = tensors((3, 4), (5, 4), (5, 2), grad=True)
    for never in (tenon.zeros(3, 5, dtype=tenon.bool), tenon.full((3, 5), -float("inf"), dtype=q.dtype)):
        mask = never.clone()
        mask[1] = True if never.dtype == tenon.bool else 0.0
        out = F.scaled_dot_product_attention(q, k, v, mask)
        assert out[0].eq(0).all() and out[2].eq(0).all() and out[1].ne(0).all()
        grads = tenon.autograd.grad(out.sum(), [q, k, v])
        assert all(g.isfinite().all() for g in grads) and grads[0][0].eq(0).all()


def test_the_same_bits_for_each_query_alone_and_for_any_threads():
    q, k, v = tensors((2, 2, 130, 16), (2, 2, 300, 16), (2, 2, 300, 16), dtype=tenon.float32)
    whole = F.scaled_dot_product_attention(q, k, v)
    assert F.scaled_dot_product_attention(q[1:, :1, 77:78], k[1:, :1], v[1:, :1]).equal(whole[1:, :1, 77:78])
    before = tenon.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            tenon.set_num_threads(threads)
            inputs = [x.detach().requires_grad_() for x in (q, k, v)]
            out = F.scaled_dot_product_attention(*inputs, is_causal=True)
            found.append([out, *tenon.autograd.grad(out, inputs, tenon.ones_like(out))])
    finally:
        tenon.set_num_threads(before)
    assert all(a.equal(b) for other in found[1:] for a, b in zip(found[0], other))


def peak_of(function):
    tenon.cpu.reset_peak_memory_stats()
    before = tenon.cpu.memory_allocated()
    function()
    return tenon.cpu.max_memory_allocated() - before


@pytest.mark.parametrize("dtype", [tenon.float32, tenon.bfloat16])
def test_memory_does_not_grow_with_the_number_of_weights(dtype):
    q, k, v = tensors(*[(1, 1, 2048, 8)] * 3, dtype=dtype, grad=True)
    weights = 2048 * 2048 * 4

    def step():
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()

    assert peak_of(step) < weights / 8
    assert peak_of(lambda: F.scaled_dot_product_attention(q.detach(), k.detach(), v.detach())) < weights / 64


def test_a_sampled_token_copies_neither_keys_nor_values():
    cache = tenon.randn(2, 1, 4, 4096, 64)
    k, v = cache[0][:, :, :3000], cache[1][:, :, :3000]
    q = tenon.randn(1, 4, 1, 64)
    with tenon.inference_mode():
        assert peak_of(lambda: F.scaled_dot_product_attention(q, k, v)) < k.numel() * 4 / 16


def test_the_result_lies_in_memory_with_the_heads_inside():
    q, k, v = tensors((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4))
    out = F.scaled_dot_product_attention(q, k, v)
    assert out.stride() == (60, 4, 12, 1) and out.transpose(1, 2).flatten(2)._base is not None
    assert F.scaled_dot_product_attention(q[0], k[0], v[0]).is_contiguous()


def test_half_types_round_once():
    for dtype in (tenon.float16, tenon.bfloat16):
        q, k, v = tensors(*SHAPES, dtype=dtype)
        wide = F.scaled_dot_product_attention(q.float(), k.float(), v.float())
        assert F.scaled_dot_product_attention(q, k, v).equal(wide.to(dtype))


NAME = "scaled_dot_product_attention: "


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"key": (2, 4, 5, 7)}, ValueError, r"the last dimensions of `query` \[2, 4, 3, 8\] and `key` \[2, 4, 5, 7\]"),
        ({"value": (2, 4, 6, 8)}, ValueError, r"`key` \[2, 4, 5, 8\] and `value` \[2, 4, 6, 8\] .* dimension -2"),
        ({"query": (8,)}, ValueError, "`query` must have at least 2 dimensions"),
        ({"value": ()}, ValueError, "`value` must have at least 2 dimensions"),
        ({"key": (2, 2, 5, 8)}, ValueError, "`query` .* and `key` .*enable_gqa=True"),
        ({"key": (2, 3, 5, 8), "enable_gqa": True}, ValueError, "with enable_gqa .*heads of `query` .* multiple of that of `key`.*got 4 and 3"),
        ({"query": (3, 8), "enable_gqa": True}, ValueError, "enable_gqa needs heads in dimension -3"),
        ({"dropout_p": 1.5}, ValueError, "dropout_p must be between 0 and 1, got 1.5"),
        ({"dropout_p": -0.1}, ValueError, "dropout_p must be between 0 and 1"),
        ({"dropout_p": float("nan")}, ValueError, "dropout_p must be between 0 and 1"),
        ({"attn_mask": tenon.ones(3, 4)}, ValueError, r"`attn_mask` \[3, 4\] does not broadcast to the weights \[2, 4, 3, 5\]"),
        ({"attn_mask": tenon.ones(2, 2, 4, 3, 5)}, ValueError, "`attn_mask`"),
        ({"attn_mask": tenon.ones(3, 5, dtype=tenon.int64)}, TypeError, "`attn_mask` must be bool, float32 .* got int64"),
        ({"attn_mask": tenon.ones(3, 5), "is_causal": True}, ValueError, "`attn_mask` and is_causal=True exclude each other"),
    ],
)
def test_refuses(change, error, text):
    shapes = {"query": (2, 4, 3, 8), "key": (2, 4, 5, 8), "value": (2, 4, 5, 8)}
    others = {k: v for k, v in change.items() if k not in shapes}
    operands = {k: tenon.ones(change.get(k, s)) for k, s in shapes.items()}
    state = tenon.get_rng_state()
    for device in ("cpu", "meta"):
        moved = {k: v.to(device) if isinstance(v, tenon.Tensor) else v for k, v in {**operands, **others}.items()}
        with pytest.raises(error, match=NAME + text):
            F.scaled_dot_product_attention(**moved)
    assert tenon.get_rng_state().equal(state), "a call that is refused takes no random numbers"


def test_refuses_dtypes():
    q, k, v = tensors((3, 4), (5, 4), (5, 4))
    with pytest.raises(TypeError, match=NAME + "`key` is float32, `query` is float64"):
        F.scaled_dot_product_attention(q, k.float(), v)
    with pytest.raises(TypeError, match=NAME + "`value` is float16, `query` is float64"):
        F.scaled_dot_product_attention(q, k, v.half())
    with pytest.raises(NotImplementedError, match=NAME + "not implemented for int64"):
        F.scaled_dot_product_attention(q.long(), k.long(), v.long())


def test_gradients_check_what_they_are_given():
    q, k, v = tensors((2, 3, 4), (2, 5, 4), (2, 5, 4), dtype=tenon.float32)
    out, rows = tenon.ops.aten._attention_forward(q, k, v, None, 0.0, False, 0.5, False, 0, 0)
    assert rows.dtype == tenon.float32 and rows.shape == (2, 3)
    rest = (0.0, False, 0.5, False, 0, 0)
    backward, by_mask = tenon.ops.aten._attention_backward, tenon.ops.aten._attention_mask_backward
    turned = rows.t().contiguous().t()
    assert all(a.equal(b) for a, b in zip(backward(out, q, k, v, None, out, rows, *rest), backward(out, q, k, v, None, out, turned, *rest)))
    for bad in (rows.double(), rows.to(tenon.int8), rows[:1]):
        with pytest.raises(ValueError, match=r"expected `logsumexp` float32 \[2, 3\], got"):
            backward(out, q, k, v, None, out, bad, *rest)
    for bad in (out.double(), out[:, :2]):
        with pytest.raises(ValueError, match=r"expected float32 \[2, 3, 4\]"):
            backward(bad, q, k, v, None, out, rows, *rest)
        with pytest.raises(ValueError, match=r"expected float32 \[2, 3, 4\]"):
            backward(out, q, k, v, None, bad, rows, *rest)
    with pytest.raises(TypeError, match="`attn_mask` of bool has no gradient"):
        by_mask(out, q, k, v, tenon.ones(3, 5, dtype=tenon.bool), out, rows, *rest)


@pytest.mark.parametrize("masks", [(2, 3, 5), (3, 5), (1, 5), (3, 1), (1, 1), (5,), ()])
@pytest.mark.parametrize("dtype", [tenon.float64, tenon.bfloat16])
def test_the_gradient_of_a_mask_has_its_shape(masks, dtype):
    q, k, v, mask = tensors((2, 3, 4), (2, 5, 4), (2, 5, 4), masks, dtype=dtype, grad=True)
    got = tenon.autograd.grad(F.scaled_dot_product_attention(q, k, v, mask).square().sum(), mask)[0]
    wide = [x.detach().double().requires_grad_() for x in (q, k, v, mask)]
    want = tenon.autograd.grad(with_all_weights(*wide).square().sum(), wide[3])[0]
    assert got.shape == want.shape and got.dtype == dtype
    tolerance = 1e-12 if dtype == tenon.float64 else 0.05
    np.testing.assert_allclose(got.double().numpy(), want.numpy(), atol=tolerance)
