"""The transformer's modules: steps of a layer, masks, what they refuse. Values beside PyTorch's: tests/peer."""

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F
from tenon import nn

SIZES = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dtype": tenon.float64}


def randn(*shape):
    return tenon.randn(*shape, dtype=tenon.float64)


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("norm_first", [False, True])
def test_steps_of_an_encoder_layer(norm_first):
    layer = nn.TransformerEncoderLayer(**SIZES, activation=tenon.tanh, norm_first=norm_first, batch_first=True).eval()
    x = randn(3, 4, 8)

    def attend(y):
        return layer.self_attn(y, y, y)[0]

    def feed(y):
        return F.linear(F.linear(y, layer.linear1.weight, layer.linear1.bias).tanh(), layer.linear2.weight, layer.linear2.bias)

    if norm_first:
        y = x + attend(layer.norm1(x))
        want = y + feed(layer.norm2(y))
    else:
        y = layer.norm1(x + attend(x))
        want = layer.norm2(y + feed(y))
    same(layer(x), want)


def test_steps_of_a_decoder_layer():
    layer = nn.TransformerDecoderLayer(**SIZES, activation=nn.ReLU()).eval()
    x, memory = randn(4, 3, 8), randn(5, 3, 8)
    assert "activation" in dict(layer.named_children())
    y = layer.norm1(x + layer.self_attn(x, x, x)[0])
    y = layer.norm2(y + layer.multihead_attn(y, memory, memory)[0])
    same(layer(x, memory), layer.norm3(y + layer.linear2(layer.linear1(y).relu())))


def test_an_encoder_finds_the_causal_mask():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**SIZES), 2, norm=nn.LayerNorm(8, dtype=tenon.float64)).eval()
    x = randn(6, 2, 8)
    added = nn.Transformer.generate_square_subsequent_mask(6, dtype=tenon.float64)
    hidden = tenon.ones(6, 6, dtype=tenon.bool).tril().logical_not() if hasattr(tenon, "tril") else added != 0
    want = encoder(x, mask=added, is_causal=False)
    for mask, hint in ((added, None), (added, True), (hidden, None), (hidden, False)):
        same(encoder(x, mask=mask, is_causal=hint), want)
    same(encoder(x, mask=added)[:3], encoder(x[:3], mask=added[:3, :3]))
    assert not np.allclose(encoder(x).detach().numpy(), want.detach().numpy())
    assert len({id(p) for p in encoder.parameters()}) == 2 * 12 + 2, "layers are copies"


def test_the_causal_mask():
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    inf = float("inf")
    assert mask.tolist() == [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]] and mask.dtype == tenon.float32


def test_a_transformer_learns_and_drops_while_training_alone():
    tenon.manual_seed(0)
    model = nn.Transformer(**SIZES, num_encoder_layers=1, num_decoder_layers=1, batch_first=True, dropout=0.5)
    src, tgt = randn(2, 4, 8), randn(2, 3, 8)
    assert not model(src, tgt).equal(model(src, tgt))
    model(src, tgt).square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert all(p.ne(0).all() for p in model.parameters() if p.dim() > 1), "matrices are drawn"
    model.eval()
    assert model(src, tgt).equal(model(src, tgt))
    assert model(src[0], tgt[0]).shape == (3, 8)


def test_refuses():
    with pytest.raises(ValueError, match="^TransformerEncoderLayer: activation must be 'relu', 'gelu' or a callable, got 'swish'"):
        nn.TransformerEncoderLayer(8, 2, activation="swish")
    with pytest.raises(ValueError, match="num_heads=3"):
        nn.TransformerEncoderLayer(8, 3)
    model = nn.Transformer(**SIZES, num_encoder_layers=1, num_decoder_layers=1)
    with pytest.raises(ValueError, match="Transformer: `src` .* and `tgt` .* differ in batch"):
        model(randn(4, 3, 8), randn(4, 2, 8))
    with pytest.raises(ValueError, match="Transformer: `tgt` must have 8 features"):
        model(randn(4, 3, 8), randn(4, 3, 7))
