"""Recurrent layers beside PyTorch's: the same parameters, names and printed form give the same results and gradients."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

import tenon  # noqa: E402

STEPS, BATCH, SIZE, HIDDEN = 6, 4, 5, 7


def pair(name, *sizes, **options):
    """A module of each, in float64, with the same weights."""
    mine, theirs = getattr(tenon.nn, name)(*sizes, **options).double(), getattr(torch.nn, name)(*sizes, **options).double()
    assert repr(mine) == repr(theirs)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict({k: tenon.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    return mine, theirs


def assert_same(mine, theirs):
    mine, theirs = (t if isinstance(t, (tuple, list)) else (t,) for t in (mine, theirs))
    for a, b in zip(mine, theirs, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("name, extra", [("RNN", {}), ("RNN", {"nonlinearity": "relu"}), ("LSTM", {}), ("LSTM", {"proj_size": 3}), ("GRU", {})])
@pytest.mark.parametrize("packed", [False, True])
def test_layers(name, extra, packed):
    rng = np.random.default_rng(0)
    for layers, bidirectional, bias, batch_first in itertools.product((1, 2), (False, True), (True, False), (False, True)):
        options = {"num_layers": layers, "bidirectional": bidirectional, "bias": bias, "batch_first": batch_first}
        modules = pair(name, SIZE, HIDDEN, **options, **extra)
        x = rng.normal(size=(BATCH, STEPS, SIZE) if batch_first else (STEPS, BATCH, SIZE))
        lengths = rng.integers(1, STEPS + 1, BATCH).tolist()
        outputs, states, gradients = [], [], []
        for lib, module in zip((tenon, torch), modules):
            given = lib.tensor(x, requires_grad=True)
            rnn = lib.nn.utils.rnn
            output, state = module(rnn.pack_padded_sequence(given, lengths, batch_first, False) if packed else given)
            if packed:
                output, counts = rnn.pad_packed_sequence(output, batch_first)
                assert counts.tolist() == lengths
            states.append(state)
            outputs.append(output)
            (output.pow(2).sum() + sum(s.sum() for s in (state if name == "LSTM" else (state,)))).backward()
            gradients.append([given.grad, *(p.grad for p in module.parameters())])
        for found in (outputs, states, gradients):
            assert_same(*found)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
    mine, theirs = pair(name, SIZE, HIDDEN)
    x = np.random.default_rng(1).normal(size=(BATCH, SIZE))
    assert_same(mine(tenon.tensor(x)), theirs(torch.tensor(x)))
    assert_same(mine(tenon.tensor(x[0])), theirs(torch.tensor(x[0])))


def test_packed_sequences_print_alike():
    listed = [[1, 4, 6], [2], [3, 5]]
    mine, theirs = (lib.nn.utils.rnn.pack_sequence([lib.tensor(s) for s in listed], enforce_sorted=False) for lib in (tenon, torch))
    assert repr(mine) == repr(theirs)
    assert_same([t for t in mine], [t for t in theirs])
    padded = [lib.nn.utils.rnn.pad_sequence([lib.tensor(s) for s in listed], True, -1, "left") for lib in (tenon, torch)]
    assert_same(*padded)
