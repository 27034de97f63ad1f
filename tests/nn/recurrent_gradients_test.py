"""Derivatives of recurrent layers against slopes, once and twice, and against the layer written out of operators."""

import itertools

import numpy as np
import pytest

import tenon
from tenon import nn
from tenon.autograd import gradcheck, gradgradcheck
from tenon.nn.utils.rnn import PackedSequence

MODES = ["RNN_TANH", "RNN_RELU", "LSTM", "GRU"]


def make(mode, *sizes, **options):
    if mode.startswith("RNN"):
        return nn.RNN(*sizes, nonlinearity=mode[4:].lower(), **options)
    return getattr(nn, mode)(*sizes, **options)


def leaf(*shape):
    return tenon.randn(*shape, dtype=tenon.float64).requires_grad_()


def arguments(mode, bidirectional, bias, proj_size=0, batch=2):
    """Input, states and weights of one layer with 3 features and 2 hidden ones."""
    tenon.manual_seed(0)
    module = make(mode, 3, 2, bidirectional=bidirectional, bias=bias, dtype=tenon.float64, **({"proj_size": 1} if proj_size else {}))
    weights = [w.detach().clone().mul_(2).requires_grad_() for w in module._flat_weights]
    directions = 2 if bidirectional else 1
    states = [leaf(directions, batch, proj_size or 2)] + ([leaf(directions, batch, 2)] if mode == "LSTM" else [])
    return module, [name for names in module._weight_names for name in names], states, weights


def call(module, names, x, batch_sizes, states, weights):
    """The module with other weights: output, last states."""
    for name, weight in zip(names, weights):
        module.__dict__[name] = weight
    given = x if batch_sizes is None else PackedSequence(x, batch_sizes)
    output, state = module(given, tuple(states) if module.mode == "LSTM" else states[0])
    last = state if module.mode == "LSTM" else (state,)
    return (output if batch_sizes is None else output.data, *last)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bidirectional, bias", [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("packed", [False, True])
def test_first_and_second_derivatives(mode, bidirectional, bias, packed):
    for proj_size in (0, 1) if mode == "LSTM" else (0,):
        module, names, states, weights = arguments(mode, bidirectional, bias, proj_size, batch=3 if packed else 2)
        batch_sizes = tenon.tensor([3, 2, 1]) if packed else None
        x = leaf(6, 3) if packed else leaf(3, 2, 3)
        n = len(states)

        def f(x, *rest):
            return call(module, names, x, batch_sizes, rest[:n], rest[n:])

        assert gradcheck(f, (x, *states, *weights))
        assert gradgradcheck(f, (x, *states, *weights), atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_that_is_differentiated_again_has_the_same_value(mode):
    for packed in (False, True):
        module, names, states, weights = arguments(mode, False, True, batch=3)
        x = leaf(6, 3) if packed else leaf(2, 3, 3)
        inputs = [x, *states, *weights]
        results = call(module, names, x, tenon.tensor([3, 2, 1]) if packed else None, states, weights)
        seeds = [tenon.randn_like(r) for r in results]
        once = tenon.autograd.grad(results, inputs, seeds, retain_graph=True)
        twice = tenon.autograd.grad(results, inputs, seeds, create_graph=True)
        for a, b in zip(once, twice):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), atol=1e-13)
            assert b.requires_grad


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells_have_derivatives(name):
    tenon.manual_seed(1)
    cell = getattr(nn, name)(3, 2, dtype=tenon.float64)
    inputs = [leaf(4, 3), leaf(4, 2), leaf(4, 2)] if name == "LSTMCell" else [leaf(4, 3), leaf(4, 2)]

    def f(x, *states):
        return cell(x, states if name == "LSTMCell" else states[0])

    assert gradcheck(f, inputs)
    assert gradgradcheck(f, inputs, atol=1e-4)


@pytest.mark.parametrize("mode, dtype", itertools.product(MODES, (tenon.float32, tenon.bfloat16, tenon.float16)))
def test_gradients_of_narrow_dtypes_are_near_those_of_float64(mode, dtype):
    tenon.manual_seed(2)
    module = make(mode, 5, 7, 2, bidirectional=True, dtype=dtype)
    wide = make(mode, 5, 7, 2, bidirectional=True, dtype=tenon.float64)
    wide.load_state_dict(module.state_dict())
    x = tenon.randn(6, 4, 5, dtype=dtype)
    for m, given in ((module, x.requires_grad_()), (wide, x.detach().double().requires_grad_())):
        (m(given)[0].double() * tenon.linspace(-1, 1, 6 * 4 * 14, dtype=tenon.float64).view(6, 4, 14)).sum().backward()
    tolerance = {tenon.float32: 1e-5, tenon.bfloat16: 0.1, tenon.float16: 1e-2}[dtype]
    for a, b in zip(module.parameters(), wide.parameters()):
        assert a.grad.dtype == dtype
        np.testing.assert_allclose(a.grad.double().numpy(), b.grad.numpy(), atol=tolerance * (1 + b.grad.abs().max().item()))


def test_gradients_of_packed_sequences_are_those_of_each_sequence():
    tenon.manual_seed(3)
    module = nn.LSTM(3, 4, 2, bidirectional=True, dtype=tenon.float64)
    sequences = [leaf(n, 3) for n in (5, 3, 3, 1)]
    packed = nn.utils.rnn.pack_sequence(sequences)
    output, (h, c) = module(packed)
    assert isinstance(output, PackedSequence)
    (output.data.pow(2).sum() + h.sum() - c.pow(2).sum()).backward()
    found = [p.grad.clone() for p in module.parameters()] + [s.grad.clone() for s in sequences]
    module.zero_grad()
    for s in sequences:
        s.grad = None
        output, (h, c) = module(s)
        (output.pow(2).sum() + h.sum() - c.pow(2).sum()).backward()
    for a, b in zip(found, [p.grad for p in module.parameters()] + [s.grad for s in sequences]):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12)


def test_only_what_requires_grad_has_a_gradient():
    module = nn.GRU(3, 4)
    for name in ("weight_hh_l0", "bias_ih_l0"):
        getattr(module, name).requires_grad_(False)
    h = tenon.zeros(1, 2, 4, requires_grad=True)
    module(tenon.ones(3, 2, 3), h)[1].sum().backward()
    assert module.weight_hh_l0.grad is None and module.bias_ih_l0.grad is None
    assert all(t.grad is not None for t in (h, module.weight_ih_l0, module.bias_hh_l0))
