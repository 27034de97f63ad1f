"""nn.Embedding, nn.EmbeddingBag and their functions."""

import numpy as np
import pytest

import tenon
from tenon import nn
from tenon.nn import functional as F

RNG = np.random.default_rng(5)


def _table(rows=6, columns=4):
    return tenon.tensor(RNG.standard_normal((rows, columns)), requires_grad=True)


def test_the_padding_row_gets_no_gradient():
    w, i = _table(), tenon.tensor([[1, 2, 1], [5, 0, 2]])
    F.embedding(i, w, padding_idx=-5).sum().backward()
    counts = np.bincount(i.numpy().reshape(-1), minlength=6)
    counts[1] = 0
    assert w.grad.tolist() == np.repeat(counts[:, None], 4, 1).tolist()


def test_gradients_scaled_by_frequency():
    w, i = _table(), tenon.tensor([1, 1, 1, 3], dtype=tenon.int32)
    F.embedding(i, w, scale_grad_by_freq=True).sum().backward()
    assert w.grad.tolist() == [[float(r in (1, 3))] * 4 for r in range(6)]


def test_rows_are_scaled_to_max_norm():
    w = _table()
    with tenon.no_grad():
        w.mul_(10)
    before = w.detach().clone().numpy()
    F.embedding(tenon.tensor([2, 2, 4]), w, max_norm=1.0)
    after = w.detach().numpy()
    norms = np.linalg.norm(after, axis=1)
    assert np.allclose(norms[[2, 4]], 1) and np.array_equal(after[[0, 1, 3, 5]], before[[0, 1, 3, 5]])
    assert np.allclose(after[2] * np.linalg.norm(before[2]), before[2], rtol=1e-6)


def _bags(table, indices, offsets, mode, weights=None, padding=None):
    ends = [*offsets[1:], len(indices)]
    out = np.zeros((len(offsets), table.shape[1]))
    for b, (begin, end) in enumerate(zip(offsets, ends)):
        rows = [(table[i] * (1 if weights is None else weights[k])) for k, i in enumerate(indices) if begin <= k < end and i != padding]
        if rows:
            out[b] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, axis=0)
    return out


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags(mode, padding):
    w = _table()
    indices, offsets = [1, 2, 4, 5, 4, 3, 2], [0, 2, 2, 6]
    want = _bags(w.detach().numpy(), indices, offsets, mode, padding=padding)
    args = dict(mode=mode, padding_idx=padding)
    got = F.embedding_bag(tenon.tensor(indices), w, tenon.tensor(offsets), **args)
    assert np.allclose(got.detach().numpy(), want)
    last = F.embedding_bag(tenon.tensor(indices), w, tenon.tensor([*offsets, 7]), include_last_offset=True, **args)
    assert np.array_equal(last.detach().numpy(), got.detach().numpy())
    assert tenon.autograd.gradcheck(lambda t: F.embedding_bag(tenon.tensor(indices), t, tenon.tensor(offsets), mode=mode), (w,))
    assert tenon.autograd.gradgradcheck(lambda t: F.embedding_bag(tenon.tensor(indices), t, tenon.tensor(offsets), mode=mode), (w,))


def test_weights_of_samples():
    w, per = _table(), tenon.tensor(RNG.standard_normal(5), requires_grad=True)
    indices, offsets = tenon.tensor([1, 1, 0, 5, 3]), tenon.tensor([0, 3])
    got = F.embedding_bag(indices, w, offsets, mode="sum", per_sample_weights=per)
    want = _bags(w.detach().numpy(), indices.tolist(), offsets.tolist(), "sum", per.detach().numpy())
    assert np.allclose(got.detach().numpy(), want)
    assert tenon.autograd.gradcheck(lambda t, p: F.embedding_bag(indices, t, offsets, mode="sum", per_sample_weights=p), (w, per))
    with pytest.raises(NotImplementedError, match="per_sample_weights"):
        F.embedding_bag(indices, w, offsets, mode="mean", per_sample_weights=per)


def test_bags_as_rows():
    w, rows = _table(), tenon.tensor([[1, 2, 3], [3, 3, 0]])
    got = F.embedding_bag(rows, w)
    assert np.allclose(got.detach().numpy(), w.detach().numpy()[rows.numpy()].mean(1))
    with pytest.raises(ValueError, match="offsets"):
        F.embedding_bag(rows, w, tenon.tensor([0]))
    with pytest.raises(ValueError, match="offsets"):
        F.embedding_bag(rows.reshape(-1), w)


@pytest.mark.parametrize(
    "offsets, text", [([1, 2], "`offsets` must start at 0, got 1"), ([0, 9], "`offsets` go up to 9, beyond the 3 `indices`")]
)
def test_offsets_that_do_not_fit(offsets, text):
    with pytest.raises(ValueError, match=text):
        F.embedding_bag(tenon.tensor([0, 1, 2]), _table(), tenon.tensor(offsets))


def test_wrong_indices():
    w = _table()
    with pytest.raises(IndexError, match="embedding: `indices`: index 6 is out of bounds for dimension 0 with size 6"):
        F.embedding(tenon.tensor([0, 6]), w)
    with pytest.raises(IndexError, match="embedding: `indices`: index -1 is out of bounds"):
        F.embedding(tenon.tensor([-1]), w)
    with pytest.raises(IndexError, match="embedding_bag: `indices`: index 6 is out of bounds"):
        F.embedding_bag(tenon.tensor([6]), w, tenon.tensor([0]))
    with pytest.raises(TypeError, match="int32 or int64"):
        F.embedding(tenon.tensor([1.0]), w)
    with pytest.raises(ValueError, match="padding_idx 6 is out of range for the 6 rows of weight"):
        F.embedding(tenon.tensor([1]), w, padding_idx=6)
    with pytest.raises(ValueError, match="mode must be 'sum', 'mean' or 'max', got 'min'"):
        F.embedding_bag(tenon.tensor([1]), w, tenon.tensor([0]), mode="min")


def test_modules():
    tenon.manual_seed(0)
    m = nn.Embedding(10, 3, padding_idx=-1)
    assert m.padding_idx == 9 and m.weight[9].tolist() == [0, 0, 0] and m.weight.requires_grad
    assert repr(m) == "Embedding(10, 3, padding_idx=9)"
    assert repr(nn.Embedding(4, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True)) == (
        "Embedding(4, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True)"
    )
    assert repr(nn.EmbeddingBag(4, 2, mode="sum", padding_idx=1)) == "EmbeddingBag(4, 2, mode='sum', padding_idx=1)"
    assert list(m.state_dict()) == ["weight"]
    other = nn.Embedding(10, 3)
    other.load_state_dict(m.state_dict())
    assert np.array_equal(other(tenon.tensor([1, 9])).detach().numpy(), m.weight.detach().numpy()[[1, 9]])
    with pytest.raises(ValueError, match="padding_idx 10 is out of range for num_embeddings 10"):
        nn.Embedding(10, 3, padding_idx=10)
    with pytest.raises(ValueError, match="the weight has shape"):
        nn.Embedding(10, 3, _weight=tenon.zeros(3, 10))


def test_from_pretrained():
    table = tenon.arange(6.0).reshape(3, 2)
    m = nn.Embedding.from_pretrained(table)
    assert not m.weight.requires_grad and m(tenon.tensor([2])).tolist() == [[4, 5]]
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not bag.weight.requires_grad and bag(tenon.tensor([[0, 2]])).tolist() == [[4, 6]]
    with pytest.raises(ValueError, match="must be a matrix"):
        nn.Embedding.from_pretrained(tenon.zeros(3))


@pytest.mark.parametrize("padding_idx", [None, 0])
def test_a_weight_that_is_no_matrix(padding_idx):
    with pytest.raises(ValueError, match=r"^embedding: `weight` must be a matrix \[N, D\], got \[\]"):
        nn.functional.embedding(tenon.tensor([0]), tenon.tensor(1.0), padding_idx)
