"""The transformer's modules beside PyTorch's: names, printed form, results and gradients from the same parameters."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

import tenon  # noqa: E402

SIZES = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0}


def encoder(nn, **options):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(**options), 2, enable_nested_tensor=False)


def decoder(nn, **options):
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), 2)


def whole(nn, **options):
    return nn.Transformer(num_encoder_layers=2, num_decoder_layers=1, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"norm_first": True}, {"batch_first": True, "activation": "gelu"}, {"bias": False, "layer_norm_eps": 1e-3}],
    ids=str,
)
@pytest.mark.parametrize("make", [encoder, decoder, whole])
def test_transformer(make, options):
    rng = np.random.default_rng(0)
    theirs = make(torch.nn, **SIZES, **options, dtype=torch.float64)
    mine = make(tenon.nn, **SIZES, **options, dtype=tenon.float64)
    assert repr(mine) == repr(theirs)
    mine.load_state_dict({k: tenon.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    shape = [(3, n, 8) if options.get("batch_first") else (n, 3, 8) for n in (4, 5)]
    src, tgt = (rng.normal(size=s) for s in shape)
    padding = np.zeros((3, 4), bool)
    padding[1, 3] = True

    def run(library, module):
        s, t, p = (library.tensor(x) for x in (src, tgt, padding))
        causal = library.nn.Transformer.generate_square_subsequent_mask
        if make is encoder:
            return module(s, mask=causal(4, dtype=library.float64)) + module(s, src_key_padding_mask=p)
        if make is decoder:
            return module(t, s, tgt_mask=causal(5, dtype=library.float64), memory_key_padding_mask=p)
        return module(s, t, tgt_mask=causal(5, dtype=library.float64), src_key_padding_mask=p, memory_key_padding_mask=p)

    got, want = run(tenon, mine), run(torch, theirs)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), atol=1e-11)
    got.square().sum().backward()
    want.square().sum().backward()
    for (name, p), (other, q) in zip(mine.named_parameters(), theirs.named_parameters()):
        assert name == other
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), atol=1e-9, err_msg=name)
