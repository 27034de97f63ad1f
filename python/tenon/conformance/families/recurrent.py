"""Recurrent layers: one step after the other, each of the products of weights with input and state."""

import math

import numpy as np

from ..dtypes import BY_NAME
from ..rows import Row
from ..samples import Spec, sample
from .matmul import packed_bytes, unpacked_bytes

RELU, TANH, LSTM, GRU, ONNX_LSTM, ONNX_GRU = range(6)
_GATES = (1, 1, 4, 3, 4, 3)
#: Where PyTorch's gates are among ONNX's.
_ORDER = {ONNX_LSTM: (0, 2, 3, 1), ONNX_GRU: (1, 0, 2)}
_ABSENT = {"zero_dim": "a state is a vector", "promotion": "operands must have one dtype",
           "channels_last": "no operand has 4 dimensions"}  # fmt: skip
#: Whether 0 * inf is among the sums of a gradient depends on how its formula is written.
_HIDDEN = {**_ABSENT, "special": "a gradient of values that no layer gives",
           **{c: "the layer itself refuses it" for c in ("bool", "integral", "complex")}}  # fmt: skip


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _kind(cell):
    return cell - 2 if cell in _ORDER else cell


def _gates(values, order):
    """The blocks of the last dimension in another order."""
    return values if order is None else np.concatenate([np.split(values, len(order), -1)[i] for i in order], -1)


def _step(cell, x, h, c, weight, bias, projection):
    """The new state and cell state, and the gates; x has the products with the input."""
    m = h @ weight.T if bias is None else h @ weight.T + bias
    x, m, cell = _gates(x, _ORDER.get(cell)), _gates(m, _ORDER.get(cell)), _kind(cell)
    if cell == LSTM:
        i, f, g, o = np.split(x + m, 4, -1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        c = f * c + i * g
        raw = o * np.tanh(c)
        return (raw if projection is None else raw @ projection.T), c, (i, f, g, o, c, raw)
    if cell == GRU:
        (xr, xz, xn), (mr, mz, mn) = np.split(x, 3, -1), np.split(m, 3, -1)
        r, z = _sigmoid(xr + mr), _sigmoid(xz + mz)
        n = np.tanh(xn + r * mn)
        return n + z * (h - n), c, (r, z, n, mn)
    return (np.maximum(x + m, 0) if cell == RELU else np.tanh(x + m)), c, ()


def _steps(input, batch_sizes, reverse):
    """(first row, rows) of each step in the order in which they are computed."""
    sizes = [input.shape[1]] * input.shape[0] if batch_sizes is None else [int(n) for n in batch_sizes]
    steps = list(zip(np.cumsum([0, *sizes[:-1]]), sizes))
    return steps[::-1] if reverse else steps


def _run(input, hx, cx, weight, bias, projection, batch_sizes, cell, reverse):
    """Rows of states, last state, last cell state, and of each step what it had and its gates."""
    x = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    h, c = hx.copy(), None if cx is None else cx.copy()
    output = np.zeros((len(x), hx.shape[-1]))
    steps = []
    for first, rows in _steps(input, batch_sizes, reverse):
        before = h[:rows].copy(), None if c is None else c[:rows].copy()
        h[:rows], new, gates = _step(cell, x[first : first + rows], *before, weight, bias, projection)
        if c is not None:
            c[:rows] = new
        output[first : first + rows] = h[:rows]
        steps.append((first, rows, *before, gates))
    return output, h, c, steps


def _forward(input, hx, cx, weight, bias, projection, batch_sizes, cell, reverse, keep):
    output, h, c, steps = _run(input, hx, cx, weight, bias, projection, batch_sizes, cell, reverse)
    gates = {LSTM: 5, GRU: 4}.get(_kind(cell), 0)
    kept = np.zeros(0)
    if keep and gates:
        kept = np.zeros((len(output), gates * (weight.shape[0] // _GATES[cell])))
        for first, rows, _, _, values in steps:
            kept[first : first + rows] = np.concatenate(values[:gates], -1)
    return output.reshape(*input.shape[:-1], hx.shape[-1]), h, np.zeros(0) if c is None else c, kept


def _kept_steps(hx, cx, batch_sizes, output, kept, cell, reverse):
    """(rows, states before, cell states before, states after, gates) of each step."""
    h, c, cell = hx.copy(), None if cx is None else cx.copy(), _kind(cell)
    states, found = output.reshape(math.prod(output.shape[:-1]), hx.shape[-1]), []
    for first, rows in _steps(output, batch_sizes, reverse):
        at = slice(first, first + rows)
        gates = np.split(kept[at], {LSTM: 5, GRU: 4}[cell], -1) if cell in (LSTM, GRU) else ()
        found.append((at, h[:rows].copy(), None if c is None else c[:rows].copy(), states[at], gates))
        h[:rows] = states[at]
        if c is not None:
            c[:rows] = gates[4]
    return found


def _backward(grad_output, grad_hy, grad_cy, hx, cx, weight, bias, projection, batch_sizes, output, kept, cell, reverse):
    go = grad_output.reshape(math.prod(output.shape[:-1]), hx.shape[-1])
    dx, dh, dc, dw = np.zeros((len(go), len(weight))), grad_hy.copy(), grad_cy.copy(), np.zeros_like(weight)
    by_bias = np.zeros(0 if bias is None else bias.shape)
    by_projection = np.zeros(0 if projection is None else projection.shape)
    order = np.argsort(_ORDER[cell]) if cell in _ORDER else None
    kind = _kind(cell)
    for at, h, c, new, gates in _kept_steps(hx, cx, batch_sizes, output, kept, cell, reverse)[::-1]:
        grad, rows, direct = go[at] + dh[: len(h)], len(h), 0
        if kind == LSTM:
            i, f, g, o, cells = gates
            if projection is not None:
                by_projection += grad.T @ (o * np.tanh(cells))
                grad = grad @ projection
            e = dc[:rows] + grad * o * (1 - np.tanh(cells) ** 2)
            by = np.concatenate([e * g * i * (1 - i), e * c * f * (1 - f), e * i * (1 - g * g), grad * np.tanh(cells) * o * (1 - o)], -1)
            dc[:rows] = e * f
            dx[at] = by = _gates(by, order)
        elif kind == GRU:
            r, z, n, m = gates
            e = grad * (1 - z) * (1 - n * n)
            by_r, by_z = e * m * r * (1 - r), grad * (h - n) * z * (1 - z)
            dx[at] = _gates(np.concatenate([by_r, by_z, e], -1), order)
            by, direct = _gates(np.concatenate([by_r, by_z, e * r], -1), order), grad * z
        else:
            by = dx[at] = np.where(new <= 0, 0, grad) if cell == RELU else grad * (1 - new * new)
        dw += by.T @ h
        if bias is not None:
            by_bias += by.sum(0)
        dh[:rows] = by @ weight + direct
    return dx.reshape(*output.shape[:-1], len(weight)), dh, np.zeros(0) if cx is None else dc, dw, by_bias, by_projection


def steps_of(values):
    """A tensor of int64 with these values."""
    return Spec(np.array(values), "int64", (len(values),), (1,), 0)


def _samples(m):
    if m.kind in ("zero_dim", "channels_last"):
        return
    batch, hidden = m.size(3), 2 if m.kind == "grad" else 4
    domain = (-1.0, 1.0)

    def tensors(rows, batch, cell, size):
        gates = _GATES[cell] * hidden
        yield m.tensor((*rows, gates), domain=domain)
        yield m.tensor((batch, size), domain=domain)
        yield m.tensor((batch, hidden), domain=domain) if _kind(cell) == LSTM else None
        yield m.tensor((gates, size), domain=domain)
        yield m.tensor((gates,), domain=domain) if size == hidden else None
        yield m.tensor((size, hidden), domain=domain) if size != hidden else None

    for cell in range(6):
        for size in (hidden, 3 if hidden == 4 else 1) if _kind(cell) == LSTM else (hidden,):
            yield sample(*tensors((3, batch), batch, cell, size), None, cell, bool(m.rng.integers(2)), True)
        if batch:
            yield sample(*tensors((6,), 3, cell, hidden), steps_of([3, 2, 1]), cell, bool(m.rng.integers(2)), True)


def _late_samples(m):
    for s in _samples(m):
        input, hx, cx, weight, bias, projection, batch_sizes, cell, reverse, _ = s.args
        args = [x.array() if isinstance(x, Spec) else x for x in s.args]
        with np.errstate(all="ignore"):
            output, _, _, kept = _forward(*args)
        grads = [m.tensor((*input.shape[:-1], weight.shape[1])), m.tensor(hx.shape), m.tensor(cx.shape if cx else (0,))]
        wide = "float64" if input.dtype == "float64" else "float32"
        results = m.tensor(output.shape, layout="contiguous"), m.tensor(kept.shape, dtype=wide, layout="contiguous")
        for t, value in zip(results, (output, kept)):
            if m.dtype.floating and m.dtype.category != "complex":
                t.flat[: value.size] = BY_NAME[t.dtype].store(value.reshape(-1))
        yield sample(*grads, hx, cx, weight, bias, projection, batch_sizes, *results, cell, reverse)


def _int8_lstm_samples(m):
    """The weight's integers are small, so that a state that falls to the other place changes little."""
    if m.kind in ("zero_dim", "channels_last", "promotion"):
        return
    batch, hidden = m.size(3), 5
    for scales, biased, reverse in ((1, True, False), (4 * hidden, False, True)):
        zeros = m.rng.integers(-9, 9, 4 * hidden)
        values = packed_bytes(m.rng.integers(-100, 100, (hidden, 4 * hidden)), zeros)
        packed = m.tensor(values.shape, dtype="int8", layout="contiguous")
        packed.flat[: values.size] = values.reshape(-1)
        states = m.tensor([4, batch, 4 * hidden]), m.tensor([batch, hidden]), m.tensor([batch, hidden])
        yield sample(*states, packed, m.tensor([scales], domain=(0.001, 0.002)), m.tensor([4 * hidden]) if biased else None, reverse)


def _int8_lstm(input, hx, cx, packed, scale, bias, reverse):
    weight = unpacked_bytes(packed, hx.shape[1], input.shape[2]) * scale
    output, h, c = np.zeros((*input.shape[:2], hx.shape[1])), hx, cx
    for t in range(len(input))[:: -1 if reverse else 1]:
        low, high = min(h.min(initial=0), 0), max(h.max(initial=0), 0)
        step = (high - low) / 255 or 1
        zero = np.rint(-low / step)
        places = (np.clip(np.rint(h / step) + zero, 0, 255) - zero) * step
        h, c, _ = _step(ONNX_LSTM, input[t], places, c, weight.T, bias, None)
        output[t] = h
    return output, h, c


def _types(s):
    dtype = s.args[0].dtype
    return dtype, dtype, dtype, "float64" if dtype == "float64" else "float32"


_COMMON = dict(extremes=False, refuse=("bool", "integral", "complex"), absent=_ABSENT, domain=(-1.0, 1.0))
_UNLIKE = dict(no_peer="PyTorch has others")


ROWS = [
    Row("_recurrence", _samples, _forward, ulps=64, magnitude=lambda *_: 4.0, result=_types, **_COMMON, **_UNLIKE),
    Row("_int8_lstm", _int8_lstm_samples, _int8_lstm, ulps=2**13, magnitude=lambda *_: 4.0, result=lambda s: "float32",
        grad_constant=(0, 1, 2, 3, 4, 5), **{**_COMMON, "refuse": ("bool", "integral", "complex", "float16", "bfloat16", "float64"),
        "absent": {**_ABSENT, "special": "infinite states have no places"}}, **_UNLIKE),
    Row("_recurrence_backward", _late_samples, _backward, ulps=256, magnitude=lambda grad_output, *_: 64.0 * (1 + grad_output.size),
        result="self", **{**_COMMON, "absent": _HIDDEN}, **_UNLIKE),
]  # fmt: skip
