"""One call of every kind of node with all its inputs, values for each attribute that change the result, and what NumPy makes
of the call in float64."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from graph_cases import BINARY, OF_POSITIVE, RNG, UNARY, gelu, gelu_tanh, positive, randn, sigmoid, softmax


@dataclass
class Sample:
    kind: str
    inputs: dict[str, np.ndarray]  # by the names of the node's inputs; a list of arrays for a node of a list
    reference: Callable  # (**float64 arrays, **attributes) -> the results
    attributes: dict[str, Any] = field(default_factory=dict)  # of every call
    values: dict[str, Any] = field(default_factory=dict)  # by attribute: two values, or dicts of attributes that go together
    dims: list[Any] | None = None  # of the outputs, where they do not follow
    optional: tuple[str, ...] = ()  # inputs that may be absent


SAMPLES: dict[str, Sample] = {}


def sample(kind, inputs, reference, attributes=None, values=None, **more):
    SAMPLES[kind] = Sample(kind, inputs, reference, attributes or {}, values or {}, **more)


# Element by element

for kind, (reference, _) in UNARY.items():
    sample(kind, {"input": randn(3, 5) * 1.5}, lambda input, f=reference: f(input))
for kind, (reference, _) in OF_POSITIVE.items():
    sample(kind, {"input": positive(3, 5)}, lambda input, f=reference: f(input))
sample("logical_not", {"input": np.array([0, 1, -2.0, 0], np.float32)}, lambda input: input == 0)
NAMES = {"bias": ("input", "bias"), "scale": ("input", "scale"), "max": ("input0", "input1"), "min": ("input0", "input1")}
NAMES |= {"mod": ("input0", "input1"), "pow": ("input0", "input1")}
for kind, (reference, _) in {**BINARY, "pow": (np.power, None)}.items():
    names = NAMES.get(kind, ("input", "comparison") if kind.startswith("cmp_") else ("a", "b"))
    left, right = positive(4, 5), positive(5)
    if kind.startswith("cmp_"):
        left[:2, :2] = right[:2]
    if kind.startswith("logical_"):
        left, right = left * (RNG.random((4, 5)) < 0.5), right * np.array([0, 1, 1, 0, 1], np.float32)
    sample(kind, dict(zip(names, (left, right))), lambda f=reference, n=names, **k: f(k[n[0]], k[n[1]]))
sample(
    "binary_select",
    {"input0": randn(4, 5), "input1": randn(4, 5), "mask": np.array([True, False, True, True, False])},
    lambda input0, input1, mask: np.where(mask != 0, input0, input1),
)
sample(
    "gen_index",
    {"input": randn(3, 4)},
    lambda input, axis=0: np.broadcast_to(np.arange(input.shape[axis]).reshape([-1 if d == axis else 1 for d in range(2)]), input.shape),
    values={"axis": (0, 1)},
)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(x))


def relu(x, negative_slope=0.0, lower_clip=0.0, upper_clip=np.inf):
    return np.where(x > lower_clip, np.minimum(x, upper_clip), lower_clip + negative_slope * (x - lower_clip))


def softplus(x, beta=1.0):
    return np.log1p(np.exp(beta * x)) / beta


def swish(x, swish_beta=1.0):
    return x * sigmoid(swish_beta * x)


RELU = {"negative_slope": (0.125, 0.5), "lower_clip": (-0.25, 0.5), "upper_clip": (0.75, 1.0)}
PARAMETERS = {
    "elu": (elu, {"alpha": (0.5, 2.0)}),
    "leaky_relu": (relu, {"negative_slope": (0.125, 0.5)}),
    "relu": (relu, RELU),
    "softplus": (softplus, {"beta": (0.5, 2.0)}),
    "swish": (swish, {"swish_beta": (0.5, 2.0)}),
}
REQUIRED = {"leaky_relu": {"negative_slope": 0.25}}
for kind, (function, values) in PARAMETERS.items():
    sample(kind, {"input": randn(6, 7)}, lambda input, f=function, **k: f(input, **k), REQUIRED.get(kind), values)
PLAIN = {"gelu": gelu, "gelu_approx_tanh": gelu_tanh, "sigmoid": sigmoid, "tanh": np.tanh}
for kind, (function, values) in {**{k: (f, {}) for k, f in PLAIN.items()}, **PARAMETERS}.items():
    if kind == "leaky_relu":
        continue

    def derivative(loss, input, f=function, **k):
        return loss * (f(input + 1e-6, **k) - f(input - 1e-6, **k)) / 2e-6

    sample(f"{kind}_backward", {"loss": randn(6, 7), "input": randn(6, 7)}, derivative, values=values)

# Reductions, products, convolutions

REDUCTIONS = {
    "ADD": np.sum,
    "AVG": np.mean,
    "MAX": np.max,
    "MIN": np.min,
    "AMAX": lambda x, **k: np.abs(x).max(**k),
    "MUL": np.prod,
    "MUL_NO_ZEROS": lambda x, **k: np.where(x == 0, 1, x).prod(**k),
    "NORM1": lambda x, **k: np.abs(x).sum(**k),
    "NORM2": lambda x, **k: np.sqrt((x * x).sum(**k)),
}
sample(
    "reduction",
    {"input": np.concatenate([randn(3, 4), np.zeros((3, 1), np.float32)], 1)},
    lambda input, mode, axis, keepdim=False: REDUCTIONS[mode](input, axis=tuple(axis), keepdims=keepdim),
    {"mode": "ADD", "axis": [1]},
    {"mode": tuple(REDUCTIONS), "axis": ([0], [1], [0, 1]), "keepdim": (True, False)},
)
sample("matmul", {"A": randn(4, 6), "B": randn(6, 5)}, lambda A, B: A @ B)
sample("softmax", {"input": randn(4, 5)}, lambda input, axis=-1: softmax(input, axis), values={"axis": (0, 1)})


def places(loss_shape, window_shape, stride, dilation):
    """For each position of the result: where it is, and the slices of the padded image that it reads."""
    for at in itertools.product(*map(range, loss_shape)):
        begin = [i * s for i, s in zip(at, stride)]
        yield at, tuple(slice(b, b + d * (n - 1) + 1, d) for b, n, d in zip(begin, window_shape, dilation))


def window_of(padding=(0, 0), pre_padding=None, post_padding=None, stride=(1, 1), dilation=(1, 1)):
    return pre_padding or padding, post_padding or padding, stride, dilation


def conv_fprop(image, weight, **window):
    before, after, stride, dilation = window_of(**window)
    x = np.pad(image, [(0, 0), (0, 0), *zip(before, after)])
    shape = [(n - d * (w - 1) - 1) // s + 1 for n, w, s, d in zip(x.shape[2:], weight.shape[2:], stride, dilation)]
    y = np.zeros((image.shape[0], weight.shape[0], *shape))
    for at, read in places(shape, weight.shape[2:], stride, dilation):
        y[(..., *at)] = np.einsum("ncrs,kcrs->nk", x[(..., *read)], weight)
    return y


def conv_dgrad(loss, filter, shape, **window):
    before, after, stride, dilation = window_of(**window)
    padded = np.pad(np.zeros(shape), [(0, 0), (0, 0), *zip(before, after)])
    for at, read in places(loss.shape[2:], filter.shape[2:], stride, dilation):
        padded[(..., *read)] += np.einsum("nk,kcrs->ncrs", loss[(..., *at)], filter)
    inner = [slice(b, b + n) for b, n in zip(before, shape[2:])]
    return padded[(..., *inner)]


def conv_wgrad(image, loss, shape, **window):
    before, after, stride, dilation = window_of(**window)
    x, dw = np.pad(image, [(0, 0), (0, 0), *zip(before, after)]), np.zeros(shape)
    for at, read in places(loss.shape[2:], shape[2:], stride, dilation):
        dw += np.einsum("ncrs,nk->kcrs", x[(..., *read)], loss[(..., *at)])
    return dw


WINDOW = {
    "padding": ([1, 1], [2, 0]),
    "pre_padding": ({"pre_padding": [1, 0], "post_padding": [2, 2]}, {"pre_padding": [0, 1], "post_padding": [2, 2]}),
    "post_padding": ({"pre_padding": [1, 1], "post_padding": [0, 2]}, {"pre_padding": [1, 1], "post_padding": [2, 0]}),
    "stride": ([1, 2], [2, 1]),
    "dilation": ([1, 2], [2, 1]),
}
sample("conv_fprop", {"image": randn(2, 3, 7, 6), "weight": randn(4, 3, 3, 2)}, conv_fprop, values=WINDOW)
# The sizes of the loss follow from the window: the tests make it by conv_fprop.
sample("conv_dgrad", {"loss": randn(2, 4, 5, 5), "filter": randn(4, 3, 3, 2)}, conv_dgrad, values=WINDOW, dims=[(2, 3, 7, 6)])
sample("conv_wgrad", {"image": randn(2, 3, 7, 6), "loss": randn(2, 4, 5, 5)}, conv_wgrad, values=WINDOW, dims=[(4, 3, 3, 2)])

# Norms


def over(x, scale, axis):
    """The axes that a norm goes over."""
    return tuple(range(axis if axis is not None else x.ndim - scale.ndim, x.ndim))


def layernorm(input, scale=None, bias=None, epsilon=1e-5, norm_forward_phase="INFERENCE", axis=None):
    axes = over(input, scale, axis)
    mean, rstd = input.mean(axes, keepdims=True), 1 / np.sqrt(input.var(axes, keepdims=True) + epsilon)
    y = (input - mean) * rstd * (1 if scale is None else scale) + (0 if bias is None else bias)
    return [y, mean, rstd] if norm_forward_phase == "TRAINING" else [y]


def rmsnorm(input, scale=None, bias=None, epsilon=1e-5, norm_forward_phase="INFERENCE", axis=None):
    rstd = 1 / np.sqrt((input * input).mean(over(input, scale, axis), keepdims=True) + epsilon)
    y = input * rstd * (1 if scale is None else scale) + (0 if bias is None else bias)
    return [y, rstd] if norm_forward_phase == "TRAINING" else [y]


def norm_backward(grad, input, scale, mean, inv_variance, axis):
    axes, shape = over(input, scale, axis), None if scale is None else scale.shape
    normal, g = (input - mean) * inv_variance, grad * (1 if scale is None else scale)
    rows = tuple(d for d in range(input.ndim) if d not in axes)
    per_row = dict(axis=axes, keepdims=True)
    dscale = None if scale is None else (grad * normal).sum(rows).reshape(shape)
    dbias = None if scale is None else grad.sum(rows).reshape(shape)
    return g, normal, per_row, dscale, dbias


def layernorm_backward(grad, input, mean, inv_variance, scale=None, axis=None):
    g, normal, rows, dscale, dbias = norm_backward(grad, input, scale, mean, inv_variance, axis)
    dx = inv_variance * (g - g.mean(**rows) - normal * (g * normal).mean(**rows))
    return [dx, dscale, dbias]


def rmsnorm_backward(grad, input, inv_variance, scale=None, axis=None):
    g, normal, rows, dscale, _ = norm_backward(grad, input, scale, 0, inv_variance, axis)
    return [inv_variance * (g - normal * (g * normal).mean(**rows)), dscale]


NORM = {
    "norm_forward_phase": ("INFERENCE", "TRAINING"),
    "epsilon": (0.5, 2.0),
    "axis": tuple({"axis": axis, "scale": None, "bias": None} for axis in (1, 2)),
}
x, parameter = randn(4, 3, 5), {"scale": positive(3, 5), "bias": randn(3, 5)}
for kind, function in (("layernorm", layernorm), ("rmsnorm", rmsnorm)):
    sample(kind, {"input": x, **parameter}, function, {"norm_forward_phase": "INFERENCE"}, NORM, optional=("scale", "bias"))
statistics = {"mean": x.mean((1, 2), keepdims=True), "inv_variance": 1 / np.sqrt(x.var((1, 2), keepdims=True))}
per_column = {"axis": 2, "scale": None, "mean": x.mean(2, keepdims=True), "inv_variance": 1 / np.sqrt(x.var(2, keepdims=True))}
AXES = {"axis": ({"axis": 1, "scale": None}, per_column)}
sample(
    "layernorm_backward",
    {"grad": randn(4, 3, 5), "input": x, "scale": positive(3, 5), **statistics},
    layernorm_backward,
    values=AXES,
    optional=("scale",),
)
AXES = {"axis": ({"axis": 1, "scale": None}, {k: v for k, v in per_column.items() if k != "mean"})}
sample(
    "rmsnorm_backward",
    {"grad": randn(4, 3, 5), "input": x, "scale": positive(3, 5), "inv_variance": statistics["inv_variance"]},
    rmsnorm_backward,
    values=AXES,
    optional=("scale",),
)
sample(
    "batchnorm_inference",
    {"input": randn(2, 3, 4), "mean": randn(1, 3, 1), "inv_variance": positive(1, 3, 1), "scale": randn(1, 3, 1), "bias": randn(1, 3, 1)},
    lambda input, mean, inv_variance, scale, bias: (input - mean) * inv_variance * scale + bias,
)

# Attention


def scores(q, k, bias, attn_scale, use_causal_mask):
    s = q @ k.swapaxes(-1, -2) * (attn_scale or 1 / math.sqrt(q.shape[-1])) + (0 if bias is None else bias)
    return np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf) if use_causal_mask else s


def sdpa(q, k, v, bias=None, attn_scale=None, use_causal_mask=False, generate_stats=False):
    s = scores(q, k, bias, attn_scale, use_causal_mask)
    return [softmax(s) @ v, np.log(np.exp(s).sum(-1))] if generate_stats else [softmax(s) @ v]


def sdpa_backward(q, k, v, o, dO, stats, bias=None, attn_scale=None, use_causal_mask=False):
    p = np.exp(scores(q, k, bias, attn_scale, use_causal_mask) - stats[..., None])
    ds = p * (dO @ v.swapaxes(-1, -2) - (dO * o).sum(-1, keepdims=True)) * (attn_scale or 1 / math.sqrt(q.shape[-1]))
    return [ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dO]


qkv = {name: randn(2, 3, 6, 4) for name in "qkv"}
bias = randn(2, 3, 6, 6)
CALL = {"attn_scale": (0.25, 1.0), "use_causal_mask": tuple({"use_causal_mask": on, "bias": None} for on in (False, True))}
sample("sdpa", {**qkv, "bias": bias}, sdpa, values={**CALL, "generate_stats": (False, True)}, optional=("bias",))
o, stats = (y.astype(np.float32) for y in sdpa(**qkv, bias=bias, generate_stats=True))
sample(
    "sdpa_backward",
    {**qkv, "o": o, "dO": randn(2, 3, 6, 4), "stats": stats, "bias": bias},
    sdpa_backward,
    values=CALL,
    optional=("bias",),
)

# What moves elements

sample("reshape", {"input": randn(3, 4)}, lambda input, dim: input.reshape(dim), {"dim": [4, 3]}, {"dim": ([2, 6], [12])})
sample(
    "transpose",
    {"input": randn(2, 3, 4)},
    lambda input, permutation: input.transpose(permutation),
    {"permutation": [2, 1, 0]},
    {"permutation": ([0, 2, 1], [1, 0, 2])},
)
sample(
    "slice",
    {"input": randn(5, 6)},
    lambda input, slices: input[tuple(slices)],
    {"slices": [slice(1, 4)]},
    {"slices": ([slice(0, 4, 2)], [slice(None), slice(4, 1, -1)])},
)
sample(
    "concatenate",
    {"inputs": [randn(3, 3), randn(3, 3)]},
    lambda inputs, axis=0: np.concatenate(inputs, axis),
    {"axis": 0},
    {"axis": (0, 1)},
)
