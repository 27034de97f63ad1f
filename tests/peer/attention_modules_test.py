"""MultiheadAttention beside PyTorch's: the same parameters, names and printed form give the same results."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

import tenon  # noqa: E402

WIDTH, HEADS, LENGTH, BATCH = 8, 2, 4, 3


def pair(array):
    return (tenon.tensor(array), torch.tensor(array)) if array is not None else (None, None)


def share(mine, theirs):
    """Gives both the same random parameters."""
    assert repr(mine) == repr(theirs)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    mine.load_state_dict({k: tenon.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})


def masks(rng, shapes):
    """None, and of each shape a bool and a floating mask that leave the first key to be seen."""
    yield None
    for shape in shapes:
        hidden = rng.random(shape) < 0.3
        hidden[..., 0] = False
        yield from (hidden, rng.normal(size=shape))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"kdim": 6, "vdim": 10},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True, "bias": False},
        {"batch_first": True},
    ],
    ids=str,
)
def test_multihead_attention(options):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(WIDTH, HEADS, dtype=torch.float64, **options)
    mine = tenon.nn.MultiheadAttention(WIDTH, HEADS, dtype=tenon.float64, **options)
    share(mine, theirs)

    def operand(length, width, batched):
        shape = (BATCH, length, width) if options.get("batch_first") else (length, BATCH, width)
        return pair(rng.normal(size=shape if batched else (length, width)))

    for batched, itself in itertools.product((True, False), (True, False) if "kdim" not in options else (False,)):
        keys = LENGTH if itself else 5
        query = operand(LENGTH, WIDTH, batched)
        key = query if itself else operand(keys, options.get("kdim", WIDTH), batched)
        value = operand(keys, options["vdim"], batched) if "vdim" in options else key
        batch = BATCH if batched else 1
        hidden = masks(rng, [(LENGTH, keys), (batch * HEADS, LENGTH, keys)])
        padding = list(masks(rng, [(BATCH, keys) if batched else (keys,)]))
        for attn_mask, pad, weights, average in itertools.product(hidden, padding, (True, False), (True, False)):
            (a, b), (c, d) = pair(attn_mask), pair(pad)
            more = {"need_weights": weights, "average_attn_weights": average}
            got = mine(query[0], key[0], value[0], attn_mask=a, key_padding_mask=c, **more)
            want = theirs(query[1], key[1], value[1], attn_mask=b, key_padding_mask=d, **more)
            assert (got[1] is None) == (want[1] is None) == (not weights)
            for x, y in zip(got, want):
                if y is not None:
                    np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), atol=1e-12)


def test_initialises_as_pytorch_does():
    module = tenon.nn.MultiheadAttention(64, 4, add_bias_kv=True)
    bound = (6 / (64 + 3 * 64)) ** 0.5
    weight = module.in_proj_weight.detach().numpy()
    assert 0.95 * bound < abs(weight).max() <= bound
    assert module.in_proj_bias.eq(0).all() and module.out_proj.bias.eq(0).all() and module.bias_k.ne(0).all()
