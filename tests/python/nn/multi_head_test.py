"""MultiheadAttention and its function: what they compute from NumPy's point of view, and what they refuse."""

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F
from tenon import nn


def reference(module, query, key, value, hidden=None):
    """[N, L, E] by loops over batch and heads; `hidden` [L, S]."""
    p = {k: v.numpy() for k, v in module.state_dict().items()}
    width, size = module.embed_dim, module.head_dim
    q, k, v = (x @ p["in_proj_weight"][i * width : (i + 1) * width].T + p["in_proj_bias"][i * width : (i + 1) * width]
               for i, x in enumerate((query, key, value)))  # fmt: skip
    out = np.zeros(query.shape)
    weights = np.zeros((query.shape[0], module.num_heads, query.shape[1], key.shape[1]))
    for n in range(query.shape[0]):
        for h in range(module.num_heads):
            part = slice(h * size, (h + 1) * size)
            scores = q[n, :, part] @ k[n, :, part].T / size**0.5
            if hidden is not None:
                scores = np.where(hidden, -np.inf, scores)
            e = np.exp(scores - scores.max(-1, keepdims=True))
            weights[n, h] = e / e.sum(-1, keepdims=True)
            out[n, :, part] = weights[n, h] @ v[n, :, part]
    return out @ p["out_proj.weight"].T + p["out_proj.bias"], weights


@pytest.fixture
def module():
    tenon.manual_seed(0)
    made = nn.MultiheadAttention(8, 2, batch_first=True, dtype=tenon.float64)
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("itself", [True, False])
def test_is_the_sum_over_heads(module, need_weights, itself):
    query = tenon.randn(3, 4, 8, dtype=tenon.float64)
    key, value = (query, query) if itself else (tenon.randn(3, 4, 8, dtype=tenon.float64) for _ in range(2))
    hidden = np.triu(np.ones((4, 4), bool), 1)
    for mask in (None, hidden):
        given = None if mask is None else tenon.tensor(mask)
        out, weights = module(query, key, value, need_weights=need_weights, attn_mask=given, is_causal=mask is not None)
        want, all_weights = reference(module, query.numpy(), key.numpy(), value.numpy(), mask)
        np.testing.assert_allclose(out.detach().numpy(), want, atol=1e-12)
        if need_weights:
            np.testing.assert_allclose(weights.detach().numpy(), all_weights.mean(1), atol=1e-13)
        else:
            assert weights is None


def test_lengths_first_and_without_a_batch(module):
    x = tenon.randn(3, 4, 8, dtype=tenon.float64)
    want = module(x, x, x)[0].detach().numpy()
    module.batch_first = False
    turned = x.transpose(0, 1)
    np.testing.assert_allclose(module(turned, turned, turned)[0].transpose(0, 1).detach().numpy(), want, atol=1e-13)
    np.testing.assert_allclose(module(x[1], x[1], x[1])[0].detach().numpy(), want[1], atol=1e-13)


def test_padding_hides_keys(module):
    x = tenon.randn(2, 5, 8, dtype=tenon.float64)
    padding = tenon.tensor([[False] * 5, [False, False, False, True, True]])
    for need_weights in (True, False):
        out, _ = module(x, x, x, key_padding_mask=padding, need_weights=need_weights)
        short, _ = module(x[1:, :3], x[1:, :3], x[1:, :3])
        np.testing.assert_allclose(out[1, :3].detach().numpy(), short[0].detach().numpy(), atol=1e-13)


def test_drops_weights_while_training_alone(module):
    module.dropout = 0.5
    x = tenon.randn(1, 6, 8, dtype=tenon.float64)
    found = []
    for need_weights in (True, False):
        tenon.manual_seed(3)
        found.append(module(x, x, x, need_weights=need_weights)[0].detach())
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), atol=1e-13)
    module.eval()
    assert module(x, x, x)[0].equal(module(x, x, x)[0])
    assert not np.allclose(found[0].numpy(), module(x, x, x)[0].detach().numpy())


def test_gradients_reach_every_parameter():
    module = nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5, dtype=tenon.float64)
    q, k, v = (tenon.randn(3, 2, n, dtype=tenon.float64, requires_grad=True) for n in (4, 3, 5))
    module(q, k, v, need_weights=False)[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.ne(0).any() for p in [q, k, v, *module.parameters()])


def test_printed_form_and_names():
    assert repr(nn.MultiheadAttention(4, 2)) == (
        "MultiheadAttention(\n  (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)\n)"
    )
    assert list(nn.MultiheadAttention(4, 2).state_dict()) == ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_heads": 3}, "embed_dim=8 and num_heads=3"),
        ({"embed_dim": 0}, "must be positive"),
        ({"dropout": 1.5}, "dropout must be between 0 and 1, got 1.5"),
    ],
)
def test_refuses_to_be_made(options, text):
    with pytest.raises(ValueError, match=f"MultiheadAttention: .*{text}"):
        nn.MultiheadAttention(**{"embed_dim": 8, "num_heads": 2, **options})


def refused_calls():
    x = tenon.randn(3, 4, 8, dtype=tenon.float64)
    yield "`key` must have 8 features", ValueError, (x, x[..., :5], x), {}
    yield "`query` must have 2 or 3 dimensions", ValueError, (x[0, 0], x, x), {}
    yield "`value` must have 3 dimensions", ValueError, (x, x, x[0]), {}
    yield "`key` .* and `value` .* differ in length", ValueError, (x, x, x[:, :2]), {}
    yield "`query` .* and `key` .* differ in batch", ValueError, (x, x[:2], x[:2]), {}
    yield r"`attn_mask` must be \[4, 4\] or \[6, 4, 4\], got \[4, 5\]", ValueError, (x, x, x), {"attn_mask": tenon.ones(4, 5)}
    yield r"`key_padding_mask` must be \[3, 4\], got \[4\]", ValueError, (x, x, x), {"key_padding_mask": tenon.ones(4)}
    yield "`attn_mask` must be bool or floating", TypeError, (x, x, x), {"attn_mask": tenon.ones(4, 4, dtype=tenon.int64)}
    yield "is_causal=True is a hint about `attn_mask`", ValueError, (x, x, x), {"is_causal": True}


@pytest.mark.parametrize(("text", "error", "args", "options"), list(refused_calls()), ids=lambda x: x if isinstance(x, str) else "")
def test_refuses(module, text, error, args, options):
    with pytest.raises(error, match=text):
        module(*args, **options)


def test_function_checks_its_own_arguments(module):
    x = tenon.randn(4, 3, 8, dtype=tenon.float64)
    common = (module.in_proj_weight, module.in_proj_bias, None, None, False, 0.0, module.out_proj.weight, module.out_proj.bias)
    want = module(*[x.transpose(0, 1)] * 3)[0].transpose(0, 1)
    got = F.multi_head_attention_forward(x, x, x, 8, 2, *common)[0]
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), atol=1e-13)
    with pytest.raises(ValueError, match="expected `query` of width 9"):
        F.multi_head_attention_forward(x, x, x, 9, 2, *common)
    with pytest.raises(ValueError, match="8 is not divisible by num_heads 3"):
        F.multi_head_attention_forward(x, x, x, 8, 3, *common)
    with pytest.raises(ValueError, match="needs q_proj_weight"):
        F.multi_head_attention_forward(x, x, x, 8, 2, *common, use_separate_proj_weight=True)
    with pytest.raises(ValueError, match=r"`static_k` must be \[6, S, 4\]"):
        F.multi_head_attention_forward(x, x, x, 8, 2, *common, static_k=tenon.ones(5, 4, 4))
