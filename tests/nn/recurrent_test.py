"""RNN, LSTM, GRU and their cells, compared with NumPy in float64; what they refuse; what they are called."""

import itertools
import pickle

import numpy as np
import pytest
from recurrent_reference import run, step

import tenon
from tenon import nn

MODES = ["RNN_TANH", "RNN_RELU", "LSTM", "GRU"]
DTYPES = {tenon.float64: 1e-12, tenon.float32: 2e-5, tenon.bfloat16: 4e-2, tenon.float16: 5e-3}


def make(mode, *sizes, **options):
    if mode.startswith("RNN"):
        return nn.RNN(*sizes, nonlinearity=mode[4:].lower(), **options)
    return getattr(nn, mode)(*sizes, **options)


def states(module, batch, dtype=tenon.float64):
    """Random states: what the module takes, and arrays of both."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    h = tenon.randn(count, batch, module.proj_size or module.hidden_size, dtype=dtype)
    c = tenon.randn(count, batch, module.hidden_size, dtype=dtype)
    return (h, c) if module.mode == "LSTM" else h, h.double().numpy(), c.double().numpy()


def assert_agrees(module, x, hx, h, c, tolerance, batch_first=False):
    """The module's results on a padded batch without padding are those of each sequence by itself."""
    got, state = module(x, hx)
    sequences = x.double().numpy() if batch_first else x.double().numpy().swapaxes(0, 1)
    want, hy, cy = run(module, list(sequences), h, c)
    want = np.array(want) if batch_first else np.array(want).swapaxes(0, 1)
    np.testing.assert_allclose(got.detach().double().numpy(), want, rtol=tolerance, atol=tolerance)
    found = state if module.mode == "LSTM" else (state,)
    for a, b in zip(found, (hy, cy)):
        np.testing.assert_allclose(a.detach().double().numpy(), b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layers, bidirectional, bias", itertools.product((1, 3), (False, True), (True, False)))
def test_layers_are_those_of_the_definition(mode, layers, bidirectional, bias):
    tenon.manual_seed(layers)
    for steps, batch, size, hidden in ((1, 1, 3, 5), (7, 4, 6, 4), (5, 1, 1, 1), (4, 3, 17, 33)):
        module = make(mode, size, hidden, layers, bidirectional=bidirectional, bias=bias, dtype=tenon.float64)
        x = tenon.randn(steps, batch, size, dtype=tenon.float64)
        assert_agrees(module, x, *states(module, batch), 1e-12)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_projection_shortens_the_states_of_lstm(bidirectional, bias):
    tenon.manual_seed(0)
    module = nn.LSTM(6, 7, 2, proj_size=3, bidirectional=bidirectional, bias=bias, dtype=tenon.float64)
    x = tenon.randn(5, 4, 6, dtype=tenon.float64)
    assert_agrees(module, x, *states(module, 4), 1e-12)
    output, (h, c) = module(x)
    directions = 2 if bidirectional else 1
    assert output.shape == (5, 4, 3 * directions)
    assert h.shape == (2 * directions, 4, 3) and c.shape == (2 * directions, 4, 7)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_floating_dtypes(mode, dtype):
    tenon.manual_seed(1)
    module = make(mode, 9, 20, 2, bidirectional=True, dtype=dtype)
    x = tenon.randn(6, 3, 9, dtype=dtype)
    output, _ = module(x)
    assert output.dtype == dtype
    assert_agrees(module, x, *states(module, 3, dtype), DTYPES[dtype])


@pytest.mark.parametrize("mode", MODES)
def test_strides_make_no_difference(mode):
    tenon.manual_seed(2)
    module = make(mode, 8, 6, dtype=tenon.float64)
    x = tenon.randn(8, 5, 14, dtype=tenon.float64).permute(2, 1, 0).flip(0)[::2]
    hx, h, c = states(module, 5)
    assert_agrees(module, x, hx, h, c, 1e-12)
    turned = tuple(t.transpose(1, 2).contiguous().transpose(1, 2) for t in (hx if mode == "LSTM" else (hx,)))
    plain, strided = module(x.contiguous(), hx)[0], module(x, turned if mode == "LSTM" else turned[0])[0]
    assert plain.equal(strided)


@pytest.mark.parametrize("mode", MODES)
def test_batch_first_and_unbatched_input(mode):
    tenon.manual_seed(3)
    module = make(mode, 4, 5, 2, bidirectional=True, batch_first=True, dtype=tenon.float64)
    x = tenon.randn(3, 6, 4, dtype=tenon.float64)
    hx, h, c = states(module, 3)
    assert_agrees(module, x, hx, h, c, 1e-12, batch_first=True)
    whole, state = module(x, hx)
    one = tuple(t[:, 1] for t in hx) if mode == "LSTM" else hx[:, 1]
    output, last = module(x[1], one)
    assert output.equal(whole[1])
    for a, b in zip(last if mode == "LSTM" else (last,), state if mode == "LSTM" else (state,)):
        assert a.equal(b[:, 1])


@pytest.mark.parametrize("mode", MODES)
def test_states_are_zeros_unless_given(mode):
    module = make(mode, 3, 4, 2, dtype=tenon.float64)
    x = tenon.randn(5, 2, 3, dtype=tenon.float64)
    zeros = tenon.zeros(2, 2, 4, dtype=tenon.float64)
    assert module(x)[0].equal(module(x, (zeros, zeros) if mode == "LSTM" else zeros)[0])


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_batch_has_empty_results_and_zero_gradients(mode):
    module = make(mode, 3, 4)
    output, state = module(tenon.ones(5, 0, 3))
    assert output.shape == (5, 0, 4)
    assert (state[0] if mode == "LSTM" else state).shape == (1, 0, 4)
    output.sum().backward()
    assert all(p.grad.count_nonzero() == 0 for p in module.parameters())


@pytest.mark.parametrize("mode", MODES)
def test_a_sequence_in_two_parts_ends_as_the_whole_one(mode):
    module = make(mode, 6, 5)
    x = tenon.randn(9, 2, 6)
    whole, state = module(x)
    first, between = module(x[:4])
    second, last = module(x[4:], between)
    assert tenon.cat([first, second]).equal(whole)
    for a, b in zip(last if mode == "LSTM" else (last,), state if mode == "LSTM" else (state,)):
        assert a.equal(b)


@pytest.mark.parametrize("mode", MODES)
def test_a_sequence_has_the_same_bits_in_any_batch(mode):
    module = make(mode, 16, 24, 2, bidirectional=True)
    x = tenon.randn(5, 40, 16)
    whole = module(x)[0]
    assert module(x[:, 7:8])[0].equal(whole[:, 7:8])
    assert module(x[:, 3:21])[0].equal(whole[:, 3:21])


def test_dropout_is_between_layers_and_in_training_alone():
    tenon.manual_seed(4)
    module = nn.GRU(4, 8, 2, dropout=0.5)
    plain = nn.GRU(4, 8, 2)
    plain.load_state_dict(module.state_dict())
    x = tenon.randn(6, 3, 4)
    first, second = nn.GRU(4, 8), nn.GRU(8, 8)
    for layer, number in ((first, 0), (second, 1)):
        layer.load_state_dict({n.replace(f"l{number}", "l0"): v for n, v in module.state_dict().items() if f"l{number}" in n})
    tenon.manual_seed(5)
    got = module(x)[0]
    tenon.manual_seed(5)
    between = nn.functional.dropout(first(x)[0], 0.5)
    assert got.equal(second(between)[0])
    assert not got.equal(plain(x)[0])
    module.eval()
    assert module(x)[0].equal(plain(x)[0])
    with pytest.warns(UserWarning, match="dropout=0.5 does nothing"):
        nn.LSTM(2, 3, dropout=0.5)


@pytest.mark.parametrize("bias", [True, False])
def test_cells_are_one_step(bias):
    tenon.manual_seed(6)
    for mode, cell in (
        ("RNN_TANH", nn.RNNCell(4, 6, bias, dtype=tenon.float64)),
        ("RNN_RELU", nn.RNNCell(4, 6, bias, "relu", dtype=tenon.float64)),
        ("LSTM", nn.LSTMCell(4, 6, bias, dtype=tenon.float64)),
        ("GRU", nn.GRUCell(4, 6, bias, dtype=tenon.float64)),
    ):
        x, h, c = (tenon.randn(3, n, dtype=tenon.float64) for n in (4, 6, 6))
        w = [None if p is None else p.detach().numpy() for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)]
        w[2:] = [np.zeros(len(w[0])) if b is None else b for b in w[2:]]
        want = [step(mode, x.numpy()[n], h.numpy()[n], c.numpy()[n], *w) for n in range(3)]
        got = cell(x, (h, c)) if mode == "LSTM" else (cell(x, h),)
        for i, t in enumerate(got):
            np.testing.assert_allclose(t.detach().numpy(), [w[i] for w in want], atol=1e-13)
        one = cell(x[1], (h[1], c[1])) if mode == "LSTM" else (cell(x[1], h[1]),)
        assert all(a.equal(b[1]) for a, b in zip(one, got))
        zero = tenon.zeros(3, 6, dtype=tenon.float64)
        first = cell(x)[0] if mode == "LSTM" else cell(x)
        assert first.equal(cell(x, (zero, zero))[0] if mode == "LSTM" else cell(x, zero))


def test_the_state_of_a_module_has_pytorchs_names():
    module = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    parts = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"]
    names = [f"{part}_l{layer}{suffix}" for layer in (0, 1) for suffix in ("", "_reverse") for part in parts]
    assert list(module.state_dict()) == names
    assert module.weight_ih_l1.shape == (16, 4) and module.weight_hr_l0_reverse.shape == (2, 4)
    assert [len(w) for w in module.all_weights] == [5] * 4
    assert module.all_weights[1][0] is module.weight_ih_l0_reverse
    assert list(nn.GRU(3, 4, bias=False).state_dict()) == ["weight_ih_l0", "weight_hh_l0"]
    assert list(nn.GRUCell(3, 4).state_dict()) == ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    assert module.flatten_parameters() is None
    assert all(p.abs().max() <= 0.5 for p in module.parameters())


def test_repr():
    module = nn.LSTM(3, 4, 2, bias=False, batch_first=True, dropout=0.25, bidirectional=True, proj_size=2)
    options = "proj_size=2, num_layers=2, bias=False, batch_first=True, dropout=0.25, bidirectional=True"
    assert repr(module) == f"LSTM(3, 4, {options})"
    assert repr(nn.RNN(3, 4)) == "RNN(3, 4)"
    assert repr(nn.RNNCell(3, 4, nonlinearity="relu")) == "RNNCell(3, 4, nonlinearity=relu)"
    assert repr(nn.GRUCell(3, 4, bias=False)) == "GRUCell(3, 4, bias=False)"


def test_sizes_may_be_integers_of_numpy():
    module = nn.LSTM(np.int64(3), np.int32(4), np.int64(2))
    assert repr(module) == "LSTM(3, 4, num_layers=2)" and module(tenon.ones(2, 1, 3))[0].shape == (2, 1, 4)


def test_a_module_can_be_pickled_and_converted():
    module = nn.GRU(3, 4)
    x = tenon.randn(2, 1, 3)
    again = pickle.loads(pickle.dumps(module))
    assert again(x)[0].equal(module(x)[0])
    assert module.double()(x.double())[0].dtype == tenon.float64


@pytest.mark.parametrize("mode", MODES)
def test_compiled_layers_have_the_bits_of_eager_ones(mode):
    module = make(mode, 8, 12, 2, bidirectional=True)
    x = tenon.randn(5, 3, 8)

    def train(x):
        module.zero_grad()
        output, _ = module(x)
        output.pow(2).sum().backward()
        return output.detach(), [p.grad for p in module.parameters()]

    want, grads = train(x)
    grads = [g.clone() for g in grads]
    compiled = tenon.compile(train)
    for _ in range(3):
        got, found = compiled(x)
        assert got.equal(want) and all(a.equal(b) for a, b in zip(found, grads))
    forward = tenon.compile(lambda x: module(x)[0], pure=True)
    with tenon.no_grad():
        assert all(forward(x).equal(want) for _ in range(4))


# What is refused.

LAYER = nn.LSTM(3, 4, 2)
X = tenon.zeros(5, 2, 3)
STATE = tenon.zeros(2, 2, 4)


def recurrence(input=tenon.zeros(5, 2, 12), hx=STATE[0], cx=None, weight=tenon.zeros(12, 4), bias=None, batch_sizes=None):
    return tenon._recurrence(input, hx, cx, weight, bias, None, batch_sizes, 3, False, True)




@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "RNN: Unknown nonlinearity 'sin'; expected 'tanh' or 'relu'"),
        (lambda: nn.GRU(0, 4), ValueError, "GRU: input_size must be greater than zero, got 0"),
        (lambda: nn.GRU(3, 4.0), TypeError, "GRU: hidden_size must be an int, got 4.0 \\(float\\)"),
        (lambda: nn.GRU(3, 4, 0), ValueError, "GRU: num_layers must be greater than zero, got 0"),
        (lambda: nn.GRU(3, 4, bias=1), TypeError, "GRU: bias must be a bool, got 1 \\(int\\)"),
        (lambda: nn.LSTM(3, 4, 2, dropout=1.5), ValueError, "LSTM: dropout must be a number between 0 and 1, got 1.5"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "LSTM: proj_size must be 0 or between 1 and hidden_size - 1 = 3, got 4"),
        (lambda: LAYER(X.double()), ValueError, "LSTM: `input` is tenon.float64, the weights are tenon.float32; convert one"),
        (lambda: LAYER(X[..., :2]), RuntimeError, r"LSTM: expected `input` of input_size=3 features, got \[5, 2, 2\]"),
        (lambda: LAYER(X[0, 0]), ValueError, r"LSTM: Expected input to be 2D or 3D, got \[3\]"),
        (lambda: LAYER([1]), TypeError, "LSTM: `input` must be a Tensor or a PackedSequence, got \\[1\\] \\(list\\)"),
        (lambda: LAYER(X, STATE), TypeError, "LSTM: `hx` must be a state and a cell state"),
        (lambda: LAYER(X, (STATE, STATE[:1])), RuntimeError, r"LSTM: Expected hidden\[1\] size \(2, 2, 4\), got \[1, 2, 4\]"),
        (lambda: LAYER(X, (STATE[:, :1], STATE)), RuntimeError, r"LSTM: Expected hidden\[0\] size \(2, 2, 4\), got \[2, 1, 4\]"),
        (lambda: LAYER(X, (STATE[0], STATE)), RuntimeError, r"LSTM: For batched 3-D input, `hx` should also be 3-D, got \[2, 4\]"),
        (lambda: LAYER(X[:0]), RuntimeError, r"LSTM: expected `input` of at least one step, got \[0, 2, 3\]"),
        (lambda: nn.GRU(3, 4)(X, STATE), RuntimeError, r"GRU: Expected hidden size \(1, 2, 4\), got \[2, 2, 4\]"),
        (lambda: nn.GRUCell(3, 4)(X), ValueError, r"GRUCell: Expected input to be 1D or 2D, got \[5, 2, 3\]"),
        (lambda: nn.GRUCell(3, 4)(X[0], STATE), RuntimeError, r"GRUCell: expected `hx` \[2, 4\] for `input` \[2, 3\], got"),
        (lambda: nn.LSTMCell(3, 4)(X[0, 0, :2]), RuntimeError, "LSTMCell: expected `input` of input_size=3 features, got"),
        (lambda: nn.RNNCell(3, 4, nonlinearity="x")(X[0]), ValueError, "RNNCell: Unknown nonlinearity 'x'"),
        (lambda: tenon._recurrence(X, X[0], None, X[0], None, None, None, 6, False, True), ValueError, "`cell` must be 0 .* got 6"),
        (lambda: recurrence(X[0]), RuntimeError, r"_recurrence: expected `input` \[steps, batch, \*\], or packed .* got \[2, 3\]"),
        (lambda: recurrence(X), RuntimeError, r"_recurrence: expected `input` float32 \[5, 2, 12\], got float32 \[5, 2, 3\]"),
        (lambda: recurrence(hx=X), RuntimeError, r"_recurrence: expected `hx` \[batch, size\], got \[5, 2, 3\]"),
        (lambda: recurrence(hx=X[0]), RuntimeError, r"_recurrence: expected `hx` float32 \[2, 4\], got float32 \[2, 3\]"),
        (lambda: recurrence(weight=X[0]), RuntimeError, r"_recurrence: expected `weight` \[gates \* hidden_size, size\], or its panels, got \[2, 3\]"),
        (lambda: recurrence(weight=tenon.zeros(1, 4, 31)), RuntimeError, r"_recurrence: expected `weight` float32 \[1, 4, 32\], got float32 \[1, 4, 31\]"),
        (lambda: recurrence(bias=X[0]), RuntimeError, r"_recurrence: expected `bias` float32 \[12\], got float32 \[2, 3\]"),
        (lambda: recurrence(cx=X[0]), ValueError, "_recurrence: LSTM has `cx` and may have `projection`; other cells have neither"),
        (lambda: recurrence(hx=STATE[0].double()), RuntimeError, r"_recurrence: expected `hx` float32 \[2, 4\], got float64 \[2, 4\]"),
    ],
)
def test_errors_name_argument_and_shapes(call, error, text):
    with pytest.raises(error, match=text):
        call()
