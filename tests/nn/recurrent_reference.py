"""Recurrent layers in NumPy, float64, one sequence at a time: what the tests compare with."""

import numpy as np

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr=None):
    """The new state and cell state of one sequence."""
    a, b = w_ih @ x + b_ih, w_hh @ h + b_hh
    if mode == "LSTM":
        i, f, g, o = np.split(a + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h if w_hr is None else w_hr @ h), c
    if mode == "GRU":
        (ar, az, an), (br, bz, bn) = np.split(a, 3), np.split(b, 3)
        r, z = sigmoid(ar + br), sigmoid(az + bz)
        n = np.tanh(an + r * bn)
        return (1 - z) * n + z * h, c
    return (np.tanh(a + b) if mode == "RNN_TANH" else np.maximum(a + b, 0)), c


def weights_of(module):
    """[layer * directions + direction] -> arrays (w_ih, w_hh, b_ih, b_hh, w_hr or None)."""
    state = {name: value.double().numpy() for name, value in module.state_dict().items()}
    found = []
    for layer in range(module.num_layers):
        for suffix in ("", "_reverse")[: 2 if module.bidirectional else 1]:
            w = [state.get(f"{part}_l{layer}{suffix}") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")]
            zeros = np.zeros(w[0].shape[0])
            found.append((w[0], w[1], *(zeros if b is None else b for b in w[2:4]), w[4]))
    return found


def run_sequence(module, x, h, c):
    """x [steps, size], h and c [layers * directions, *] -> the last layer's states, and the last states of all."""
    weights, directions = weights_of(module), 2 if module.bidirectional else 1
    hy, cy = [], []
    for layer in range(module.num_layers):
        outputs = []
        for d in range(directions):
            at = layer * directions + d
            ht, ct, out = h[at], c[at], [None] * len(x)
            for t in range(len(x))[:: -1 if d else 1]:
                ht, ct = step(module.mode, x[t], ht, ct, *weights[at])
                out[t] = ht
            outputs.append(np.array(out))
            hy.append(ht), cy.append(ct)
        x = np.concatenate(outputs, -1)
    return x, np.array(hy), np.array(cy)


def run(module, sequences, h, c):
    """The same for sequences [steps, size] of any lengths; h and c are [layers * directions, batch, *]."""
    results = [run_sequence(module, s, h[:, n], c[:, n]) for n, s in enumerate(sequences)]
    outputs, hy, cy = zip(*results)
    return list(outputs), np.stack(hy, 1), np.stack(cy, 1)
