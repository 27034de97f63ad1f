"""RNN, LSTM and GRU with all that the standard allows, and norms that node tests leave out, against NumPy."""

import numpy as np
import pytest

import tenon

from onnx_networks import load, run, tensor


@pytest.fixture
def rng():
    return np.random.default_rng(1)


sigmoid = lambda x: 1 / (1 + np.exp(-x))
USUAL = {"RNN": (np.tanh,), "GRU": (sigmoid, np.tanh), "LSTM": (sigmoid, np.tanh, np.tanh)}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def step(op, x, h, c, w, r, wb, rb, p, functions, clip=None, input_forget=0, linear_before_reset=0):
    f = lambda i, v: functions[i](v if clip is None else np.clip(v, -clip, clip))
    if op == "RNN":
        return f(0, x @ w.T + h @ r.T + wb + rb), c
    if op == "GRU":
        (wz, wr, wh), (rz, rr, rh) = np.split(x @ w.T + wb, 3, -1), np.split(r, 3)
        bz, br, bh = np.split(rb, 3)
        z, gate = f(0, wz + h @ rz.T + bz), f(0, wr + h @ rr.T + br)
        own = gate * (h @ rh.T + bh) if linear_before_reset else (gate * h) @ rh.T + bh
        return (1 - z) * f(1, wh + own) + z * h, c
    i, o, g, n = np.split(x @ w.T + h @ r.T + wb + rb, 4, -1)
    pi, po, pf = np.split(p, 3)
    i = f(0, i + pi * c)
    g = 1 - i if input_forget else f(0, g + pf * c)
    c = g * c + i * f(1, n)
    return f(0, o + po * c) * functions[2](c), c


def layer(op, x, w, r, b, lengths, h, c, p, direction, functions, **options):
    """Y, Y_h, Y_c of [steps, batch, size]."""
    steps, batch, _ = x.shape
    directions, hidden = w.shape[0], r.shape[2]
    y = np.zeros((steps, directions, batch, hidden))
    h, c = h.copy(), c.copy()
    for d in range(directions):
        backward = direction == "reverse" or d == 1
        for s, count in enumerate(lengths):
            for t in reversed(range(count)) if backward else range(count):
                states = step(op, x[t, s], h[d, s], c[d, s], w[d], r[d], *np.split(b[d], 2), p[d], functions[d], **options)
                h[d, s], c[d, s] = states
                y[t, d, s] = h[d, s]
    return y, h, c


def operands(rng, op, directions, steps=5, batch=3, size=4, hidden=2, dtype=np.float64):
    gates = GATES[op] * hidden
    shapes = (steps, batch, size), (directions, gates, size), (directions, gates, hidden), (directions, 2 * gates)
    first = [rng.uniform(-1, 1, s).astype(dtype) for s in shapes]
    return first, *(rng.uniform(-1, 1, (directions, batch, hidden)).astype(dtype) for _ in range(2)), \
        rng.uniform(-1, 1, (directions, 3 * hidden)).astype(dtype)


def compare(op, rng, direction="forward", lengths=None, peepholes=False, functions=None, **attributes):
    directions = 2 if direction == "bidirectional" else 1
    (x, w, r, b), h, c, p = operands(rng, op, directions)
    known = np.full(3, 5) if lengths is None else np.array(lengths)
    options = {k: v for k, v in attributes.items() if k in ("clip", "input_forget", "linear_before_reset")}
    functions = functions or [USUAL[op]] * directions
    want = layer(op, x, w, r, b, known, h, c, p if peepholes else 0 * p, direction, functions, **options)
    inputs = [x, w, r, b, None if lengths is None else known.astype(np.int32), h]
    if op == "LSTM":
        inputs += [c] + ([p] if peepholes else [])
    if attributes.get("layout"):
        want = want[0].transpose(2, 0, 1, 3), want[1].transpose(1, 0, 2), want[2].transpose(1, 0, 2)
        for i in (0, 5, 6):
            if i < len(inputs):
                inputs[i] = np.ascontiguousarray(inputs[i].swapaxes(0, 1))
    count = 3 if op == "LSTM" else 2
    got = run(op, *inputs, outputs=count, direction=direction, hidden_size=2, **attributes)
    for found, expected in zip(got, want):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("attributes", [{}, dict(layout=1), dict(lengths=[5, 1, 3]), dict(lengths=[0, 5, 2]), dict(clip=0.25), dict(lengths=[5, 5, 5])])
def test_layers_of_every_direction(rng, op, direction, attributes):
    compare(op, rng, direction, **attributes)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_the_product_with_the_state_may_come_before_the_reset(rng, direction):
    for attributes in ({}, dict(lengths=[2, 5, 4]), dict(clip=0.125), dict(layout=1)):
        compare("GRU", rng, direction, linear_before_reset=1, **attributes)


def test_peepholes_and_coupled_gates(rng):
    compare("LSTM", rng, "bidirectional", peepholes=True)
    compare("LSTM", rng, "reverse", peepholes=True, input_forget=1, lengths=[5, 2, 1])
    compare("LSTM", rng, input_forget=1)


ACTIVATIONS = {
    "Relu": lambda x: np.maximum(x, 0), "Tanh": np.tanh, "Sigmoid": sigmoid, "Softsign": lambda x: x / (1 + abs(x)),
    "Softplus": lambda x: np.log1p(np.exp(x)), "Affine": lambda x: 0.5 * x + 0.25, "LeakyRelu": lambda x: np.where(x < 0, 0.5 * x, x),
    "ThresholdedRelu": lambda x: np.where(x > 0.5, x, 0), "ScaledTanh": lambda x: 0.5 * np.tanh(0.25 * x),
    "HardSigmoid": lambda x: np.clip(0.5 * x + 0.25, 0, 1), "Elu": lambda x: np.where(x < 0, 0.5 * np.expm1(x), x)}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_by_name(rng, name):
    compare("RNN", rng, functions=[[ACTIVATIONS[name]]], activations=[name], activation_alpha=[0.5], activation_beta=[0.25])
    compare("LSTM", rng, functions=[[sigmoid, ACTIVATIONS[name], np.tanh]], activations=["Sigmoid", name, "Tanh"],
            activation_alpha=[0.5], activation_beta=[0.25])  # fmt: skip


@pytest.mark.parametrize("op, attributes", [
    ("RNN", {}), ("LSTM", {}), ("LSTM", dict(input_forget=1)), ("GRU", {}), ("GRU", dict(linear_before_reset=1)), ("RNN", dict(activations=["Relu"]))])  # fmt: skip
def test_gradients_of_layers(rng, op, attributes):
    first, h, _, _ = operands(rng, op, 1, steps=3, batch=2)
    arguments = [tenon.from_numpy(a).requires_grad_() for a in (*first, h)]
    from onnx import helper

    model = load([helper.make_node(op, ["x", "w", "r", "b", "", "h"], ["y", "yh"], hidden_size=2, **attributes)], "x w r b h", "y yh")
    assert tenon.autograd.gradcheck(model, arguments)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_a_layer_without_steps_has_its_first_states(rng, op):
    (x, w, r, b), h, _, _ = operands(rng, op, 1)
    y, last = run(op, x[:0], w, r, b, None, h, outputs=2, hidden_size=2)
    assert y.shape == (0, 1, 3, 2)
    np.testing.assert_array_equal(last, h)


def test_a_quantized_layer_is_near_its_weights(rng):
    (x, w, r, b), h, c, p = operands(rng, "LSTM", 1, dtype=np.float32)
    exact = layer("LSTM", x, w, r, b, [5] * 3, h, c, 0 * p, "forward", [USUAL["LSTM"]])
    packed = []
    for one in (w, r):
        scale = np.abs(one).max((1, 2)) / 127
        packed.append((np.round(one / scale).astype(np.int8).transpose(0, 2, 1), scale.astype(np.float32), np.zeros(1, np.int8)))
    (qw, sw, zw), (qr, sr, zr) = packed
    got = run("DynamicQuantizeLSTM", x, qw, qr, b, None, h, c, None, sw, zw, sr, zr, outputs=3, domain="com.microsoft", hidden_size=2)
    for found, expected in zip(got, exact):
        np.testing.assert_allclose(found, expected, atol=0.03)


def quantized_state(h):
    """255 steps from the least of all, or 0, to the largest, in the float32 that the standard's operator computes in."""
    low, high = min(h.min(), np.float32(0)), max(h.max(), np.float32(0))
    scale = np.float32(high - low) / np.float32(255) or np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return (np.clip(np.rint(h / scale) + zero, 0, 255) - zero).astype(np.int64), scale


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_quantized_layer_sums_integers(rng, direction, columns, dtype):
    steps, batch, size, hidden, directions = 6, 3, 7, 9, 2 if direction == "bidirectional" else 1
    x = rng.standard_normal((steps, batch, size)).astype(np.float32)
    count, bounds = 4 * hidden if columns else 1, np.iinfo(dtype)
    draw = lambda *shape: rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)
    w, r, w_zero, r_zero = draw(directions, size, 4 * hidden), draw(directions, hidden, 4 * hidden), draw(directions, count), draw(directions, count)
    w_scale, r_scale = (rng.uniform(0.001, 0.004, (directions, count)).astype(np.float32) for _ in range(2))
    b = rng.standard_normal((directions, 8 * hidden)).astype(np.float32)
    h0, c0 = rng.uniform(-1, 1, (2, directions, batch, hidden)).astype(np.float32)
    whole = lambda t: t if columns else t[:, 0]
    given = (x, w, r, b, None, h0, c0, None, whole(w_scale), whole(w_zero), whole(r_scale), whole(r_zero))
    attributes = dict(domain="com.microsoft", hidden_size=hidden, direction=direction)
    y, last_h, last_c = run("DynamicQuantizeLSTM", *given, outputs=3, **attributes)
    for d in range(directions):
        places, scale = quantized_state(x)
        products = (places @ (w[d].astype(np.int64) - w_zero[d])) * (np.float64(scale) * w_scale[d])
        h, c = h0[d], c0[d].astype(np.float64)
        for t in range(steps)[:: -1 if direction == "reverse" or d else 1]:
            places, scale = quantized_state(h)
            sums = products[t] + (places @ (r[d].astype(np.int64) - r_zero[d])) * (np.float64(scale) * r_scale[d]) + b[d, : 4 * hidden] + b[d, 4 * hidden :]
            i, o, f, g = np.split(sums, 4, -1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            # A state near the middle of two places may go to either.
            np.testing.assert_allclose(y[t, d], sigmoid(o) * np.tanh(c), atol=0.006)
            h = y[t, d]
        np.testing.assert_array_equal(last_h[d], h)
        np.testing.assert_allclose(last_c[d], c, atol=0.006)


def test_a_quantized_layer_with_peepholes_or_a_clip_goes_step_by_step(rng):
    (x, w, r, b), h, c, p = operands(rng, "LSTM", 1, dtype=np.float32)
    scale = np.array([0.01], np.float32)
    qw, qr = (np.clip(np.round(one / 0.01), -127, 127).astype(np.int8).transpose(0, 2, 1) for one in (w, r))
    real = [(one * np.float32(0.01)).transpose(0, 2, 1) for one in (qw, qr)]
    exact = layer("LSTM", x, *real, b, [5] * 3, h, c, p, "forward", [USUAL["LSTM"]])
    got = run("DynamicQuantizeLSTM", x, qw, qr, b, None, h, c, p, scale, np.zeros(1, np.int8), scale, np.zeros(1, np.int8),
              outputs=3, domain="com.microsoft", hidden_size=2)  # fmt: skip
    for found, expected in zip(got, exact):
        np.testing.assert_allclose(found, expected, atol=0.03)


def test_old_forms_of_batch_normalization(rng):
    x, (scale, bias, mean) = rng.standard_normal((4, 3, 2)), rng.standard_normal((3, 3))
    variance = rng.uniform(1, 2, 3)
    column = lambda t: t.reshape(3, 1)
    want = (x - column(mean)) / np.sqrt(column(variance) + 1e-5) * column(scale) + column(bias)
    for opset in (7, 9, 14, 15):
        np.testing.assert_allclose(run("BatchNormalization", x, scale, bias, mean, variance, opset=opset), want, rtol=1e-6)
    each = [rng.uniform(1, 2, (3, 2)) for _ in range(4)]
    want = (x - each[2]) / np.sqrt(each[3] + 1e-5) * each[0] + each[1]
    np.testing.assert_allclose(run("BatchNormalization", x, *each, opset=7, spatial=0), want, rtol=1e-6)
    row = rng.standard_normal(5)
    one = [np.array([v]) for v in (2.0, 3.0, 0.5, 4.0)]
    np.testing.assert_allclose(run("BatchNormalization", row, *one), (row - 0.5) / np.sqrt(4 + 1e-5) * 2 + 3, rtol=1e-6)


def test_weights_of_norms_broadcast(rng):
    x, scale, bias = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 1)), rng.standard_normal(4)
    normal = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(run("LayerNormalization", x, scale, bias, axis=1), normal * scale + bias, rtol=1e-6)
    rms = x / np.sqrt((x**2).mean((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(run("RMSNormalization", x, scale, axis=1, opset=23), rms * scale, rtol=1e-6)
    assert tenon.isfinite(tensor(run("LpNormalization", np.zeros((2, 3)), p=2))).all()


def test_norms_of_sums(rng):
    x, skip, bias = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 4)), rng.standard_normal(4)
    gamma, beta = rng.standard_normal((2, 4))
    total = x + skip + bias
    y, mean, rstd, s = run("SkipLayerNormalization", x, skip, gamma, beta, bias, outputs=4, domain="com.microsoft")
    np.testing.assert_allclose(s, total)
    np.testing.assert_allclose(y, (total - total.mean(-1, keepdims=True)) / total.std(-1, keepdims=True) * gamma + beta, rtol=1e-6)
    from onnx import helper

    simple = helper.make_node("SkipSimplifiedLayerNormalization", ["x", "k", "g", "b"], ["y", "", "", "s"], domain="com.microsoft", epsilon=1e-5)
    y, s = (t.numpy() for t in load([simple], "x k g b", "y s")(*map(tensor, (x, skip, gamma, bias))))
    np.testing.assert_allclose(s, total)
    np.testing.assert_allclose(y, total / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5) * gamma, rtol=1e-6)
    for domain in ("", "com.microsoft"):
        y = run("SimplifiedLayerNormalization", x, gamma, domain=domain)
        np.testing.assert_allclose(y, x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gamma, rtol=1e-6)


def test_embeddings_of_words_places_and_segments(rng):
    words, places, segments = (rng.standard_normal((n, 4)).astype(np.float32) for n in (7, 5, 2))
    gamma, beta = rng.standard_normal((2, 4)).astype(np.float32)
    ids, kinds = np.array([[1, 6, 0], [2, 2, 5]], np.int32), np.array([[0, 0, 1], [1, 0, 1]], np.int32)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    y, counts, total = run("EmbedLayerNormalization", ids, kinds, words, places, segments, gamma, beta, mask, outputs=3, domain="com.microsoft")
    want = words[ids] + places[:3] + segments[kinds]
    np.testing.assert_allclose(total, want, rtol=1e-6)
    np.testing.assert_array_equal(counts, [2, 3])
    normal = (want - want.mean(-1, keepdims=True)) / want.std(-1, keepdims=True)
    np.testing.assert_allclose(y, normal * gamma + beta, rtol=1e-4, atol=1e-5)


W = np.ones((1, 4, 1), np.float32)


@pytest.mark.parametrize("call, error, words", [
    (lambda: run("RNN", W, W, W, activations=["Cube"]), NotImplementedError, "RNN: the activation 'cube'"),
    (lambda: run("RNN", W, W, W, activations=["Tanh", "Tanh"]), ValueError, "RNN: attribute `activations` has 2 names, expected 1"),
    (lambda: run("LSTM", W, W, W, direction="up"), ValueError, "LSTM: attribute `direction` is 'up'"),
    (lambda: run("LSTM", W, W, W, direction="bidirectional"), ValueError, "LSTM: weights .* of 2 directions"),
    (lambda: run("GRU", W[0], W, W), ValueError, "GRU: expected 3 dimensions of the input and of both weights"),
    (lambda: run("GroupNormalization", W, W[0, 0], W[0, 0], num_groups=3), ValueError, "GroupNormalization: attribute `num_groups` is 3, of 4 channels"),
    (lambda: run("LRN", W, size=0), ValueError, "LRN: attribute `size` is 0"),
    (lambda: run("LRN", W[0, 0], size=1), ValueError, "LRN: its input has no channels"),
    (lambda: run("EmbedLayerNormalization", np.zeros(1, np.int32), None, W, W, None, W, W, domain="com.microsoft"), ValueError, "`input_ids` is no matrix"),
])  # fmt: skip
def test_what_is_refused_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
