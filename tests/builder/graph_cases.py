"""Graphs of the builder: how each is written down, what NumPy makes of it in float64, and what eager operators make of it."""

import math
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

import tenon

RNG = np.random.default_rng(13)


def randn(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def positive(*shape):
    return (RNG.random(shape) + 0.25).astype(np.float32)


@dataclass
class Case:
    name: str
    inputs: dict[str, Any]  # arrays, or tensors of tenon where the geometry matters
    build: Callable  # (graph, **tensors of the graph) -> outputs
    reference: Callable  # (**float64 arrays) -> arrays
    eager: Callable | None = None  # (**tensors) -> tensors with the same bits
    rtol: float = 2e-6
    atol: float = 2e-6
    options: dict = field(default_factory=dict)


def as_list(x):
    return list(x) if isinstance(x, (list, tuple)) else [x]


def to_array(t):
    t = t.cpu()
    return t.double().contiguous().numpy() if t.dtype != tenon.bool else t.contiguous().numpy()


def proposed(case, inputs, handle=None):
    """The graph of a case with its plans proposed; its tensors for the inputs, by name; its outputs."""
    g = tenon.pygraph(handle=handle, **case.options)
    tensors = {name: g.tensor_like(x, name=name) for name, x in inputs.items()}
    outputs = as_list(case.build(g, **tensors))
    for y in outputs:
        y.set_output(True)
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([tenon.graph.heur_mode.A, tenon.graph.heur_mode.B])
    g.check_support()
    return g, tensors, outputs


def packed(g, tensors, outputs, inputs, device="cpu"):
    """Memory for the outputs, with other bytes than a plan writes; the variant pack of a run on it."""
    results = [tenon.empty_strided(y.get_dim(), y.get_stride(), dtype=y.get_data_type(), device=device) for y in outputs]
    for r in results:
        r.fill_(77)
    pack = {tensors[name]: x for name, x in inputs.items()} | dict(zip(outputs, results))
    used = set(g._get_variant_pack_uids_sorted())
    return results, {t: x for t, x in pack.items() if t.get_uid() in used}


CASES: list[Case] = []


def case(name, inputs, build, reference, eager=None, **kwargs):
    CASES.append(Case(name, inputs, build, reference, eager, **kwargs))


erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# Pointwise, each mode; odd sizes.
UNARY = {
    "abs": (np.abs, tenon.abs),
    "ceil": (np.ceil, tenon.ceil),
    "cos": (np.cos, tenon.cos),
    "erf": (erf, tenon.erf),
    "exp": (np.exp, tenon.exp),
    "floor": (np.floor, tenon.floor),
    "gelu": (gelu, tenon.nn.functional.gelu),
    "gelu_approx_tanh": (gelu_tanh, lambda x: tenon.nn.functional.gelu(x, approximate="tanh")),
    "identity": (lambda x: x, lambda x: x),
    "neg": (np.negative, tenon.neg),
    "reciprocal": (np.reciprocal, tenon.reciprocal),
    "relu": (lambda x: np.maximum(x, 0), tenon.relu),
    "sigmoid": (sigmoid, tenon.sigmoid),
    "sin": (np.sin, tenon.sin),
    "softplus": (lambda x: np.log1p(np.exp(x)), tenon.nn.functional.softplus),
    "swish": (lambda x: x * sigmoid(x), tenon.nn.functional.silu),
    "tan": (np.tan, tenon.tan),
    "tanh": (np.tanh, tenon.tanh),
}
for mode, (reference, eager) in UNARY.items():
    rtol = 2e-5 if mode in ("tan", "reciprocal") else 2e-6
    case(
        mode,
        {"x": randn(7, 13)},
        lambda g, x, m=mode: getattr(g, m)(x),
        lambda x, f=reference: f(x),
        lambda x, f=eager: f(x),
        rtol=rtol,
    )
OF_POSITIVE = {
    "log": (np.log, tenon.log),
    "rsqrt": (lambda x: 1 / np.sqrt(x), tenon.rsqrt),
    "sqrt": (np.sqrt, tenon.sqrt),
}
for mode, (reference, eager) in OF_POSITIVE.items():
    case(
        mode,
        {"x": positive(5, 11)},
        lambda g, x, m=mode: getattr(g, m)(x),
        lambda x, f=reference: f(x),
        lambda x, f=eager: f(x),
    )
case("elu", {"x": randn(9, 5)}, lambda g, x: g.elu(x, alpha=0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)))
case("leaky_relu", {"x": randn(31)}, lambda g, x: g.leaky_relu(x, negative_slope=0.1), lambda x: np.where(x > 0, x, 0.1 * x))
case(
    "relu clipped",
    {"x": randn(31)},
    lambda g, x: g.relu(x, lower_clip=-0.5, upper_clip=0.75),
    lambda x: np.clip(x, -0.5, 0.75),
)
case(
    "relu with a slope below its lower clip",
    {"x": randn(31)},
    lambda g, x: g.relu(x, negative_slope=0.25, lower_clip=-0.5, upper_clip=0.75),
    lambda x: np.where(x <= -0.5, -0.5 + 0.25 * (x + 0.5), np.minimum(x, 0.75)),
)
case(
    "relu_backward with a slope below its lower clip",
    {"dy": randn(31), "x": randn(31)},
    lambda g, dy, x: g.relu_backward(dy, x, negative_slope=0.25, lower_clip=-0.5, upper_clip=0.75),
    lambda dy, x: np.where(x >= 0.75, 0, np.where(x <= -0.5, 0.25 * dy, dy)),
)
case("swish with beta", {"x": randn(31)}, lambda g, x: g.swish(x, swish_beta=1.5), lambda x: x * sigmoid(1.5 * x))
case("logical_not", {"x": np.array([0.0, 1.0, -2.0], np.float32)}, lambda g, x: g.logical_not(x), lambda x: x == 0)

BINARY = {
    "add": (np.add, tenon.add),
    "bias": (np.add, tenon.add),
    "sub": (np.subtract, tenon.sub),
    "mul": (np.multiply, tenon.mul),
    "scale": (np.multiply, tenon.mul),
    "div": (np.divide, tenon.div),
    "max": (np.maximum, tenon.maximum),
    "min": (np.minimum, tenon.minimum),
    "mod": (np.fmod, tenon.fmod),
    "add_square": (lambda a, b: a + b * b, lambda a, b: a + b * b),
    "cmp_eq": (np.equal, tenon.eq),
    "cmp_neq": (np.not_equal, tenon.ne),
    "cmp_gt": (np.greater, tenon.gt),
    "cmp_ge": (np.greater_equal, tenon.ge),
    "cmp_lt": (np.less, tenon.lt),
    "cmp_le": (np.less_equal, tenon.le),
    "logical_and": (np.logical_and, tenon.logical_and),
    "logical_or": (np.logical_or, tenon.logical_or),
}
for mode, (reference, eager) in BINARY.items():
    inputs = {"a": randn(6, 1, 9), "b": positive(4, 1)}
    case(
        mode,
        inputs,
        lambda g, a, b, m=mode: getattr(g, m)(a, b),
        lambda a, b, f=reference: f(a, b),
        lambda a, b, f=eager: f(a, b),
        rtol=1e-5,
    )
case("pow", {"a": positive(3, 5), "b": randn(5)}, lambda g, a, b: g.pow(a, b), lambda a, b: a**b, lambda a, b: a**b, rtol=1e-5)
case("pow of a number", {"a": randn(40)}, lambda g, a: g.pow(a, g.tensor_scalar(2.0)), lambda a: a**2, lambda a: a**2.0)
case(
    "binary_select",
    {"a": randn(3, 5), "b": randn(5), "m": np.array([True, False, True, False, True])},
    lambda g, a, b, m: g.binary_select(a, b, m),
    lambda a, b, m: np.where(m != 0, a, b),
)
case("gen_index", {"x": randn(3, 4)}, lambda g, x: g.add(x, g.gen_index(x, axis=1)), lambda x: x + np.arange(4))
case(
    "numbers",
    {"x": randn(3, 4)},
    lambda g, x: g.sub(2.0, g.div(g.mul(g.add(x, 0.5), 3.0), g.tensor_scalar(7.0))),
    lambda x: 2 - (x + 0.5) * 3 / 7,
)

# Gradients of pointwise nodes: numerically, in float64.
DIFFERENTIABLE = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "gelu": gelu,
    "gelu_approx_tanh": gelu_tanh,
    "swish": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
}
for mode, function in DIFFERENTIABLE.items():
    x = randn(6, 7)
    x[np.abs(x) < 0.01] = 0.5
    case(
        f"{mode}_backward",
        {"grad": randn(6, 7), "x": x},
        lambda g, grad, x, m=mode: getattr(g, f"{m}_backward")(grad, x),
        lambda grad, x, f=function: grad * (f(x + 1e-5) - f(x - 1e-5)) / 2e-5,
        rtol=1e-5,
        atol=5e-6,
    )

# Reductions
REDUCTIONS = {
    "ADD": np.sum,
    "AVG": np.mean,
    "MAX": np.max,
    "MIN": np.min,
    "AMAX": lambda x, **k: np.abs(x).max(**k),
    "MUL": np.prod,
    "MUL_NO_ZEROS": np.prod,
    "NORM1": lambda x, **k: np.abs(x).sum(**k),
    "NORM2": lambda x, **k: np.sqrt((x * x).sum(**k)),
}
for mode, reference in REDUCTIONS.items():
    case(
        f"reduction {mode}",
        {"x": positive(5, 9, 7)},
        lambda g, x, m=mode: g.reduction(x, mode=getattr(tenon.graph.reduction_mode, m)).set_dim([5, 1, 7]),
        lambda x, f=reference: f(x, axis=1, keepdims=True),
        rtol=1e-5,
    )
case(
    "reduction over two",
    {"x": randn(5, 9, 7)},
    lambda g, x: g.reduction(x, mode="ADD", axis=[0, 2]),
    lambda x: x.sum(axis=(0, 2)),
    lambda x: x.sum((0, 2)),
    rtol=1e-5,
)
case(
    "reduction of a chain",
    {"x": randn(33, 65)},
    lambda g, x: g.reduction(g.mul(g.exp(x), 0.5), "AVG").set_dim([33, 1]),
    lambda x: (np.exp(x) / 2).mean(1, keepdims=True),
    lambda x: (x.exp() * 0.5).mean(1, keepdim=True),
    rtol=1e-5,
)

# Products
PRODUCT = dict(rtol=1e-5, atol=1e-4)
case(
    "matmul",
    {"a": randn(33, 20), "b": randn(20, 17)},
    lambda g, a, b: g.matmul(a, b),
    lambda a, b: a @ b,
    lambda a, b: a @ b,
    **PRODUCT,
)
case(
    "matmul in batches",
    {"a": randn(3, 7, 20), "b": randn(3, 20, 5)},
    lambda g, a, b: g.matmul(A=a, B=b),
    lambda a, b: a @ b,
    lambda a, b: a @ b,
    **PRODUCT,
)
case(
    "matmul over one matrix",
    {"a": randn(3, 7, 20), "b": randn(1, 20, 5)},
    lambda g, a, b: g.matmul(a, b),
    lambda a, b: a @ b,
    lambda a, b: a @ b,
    **PRODUCT,
)
case(
    "matmul of four dimensions",
    {"a": randn(2, 3, 7, 8), "b": randn(2, 3, 8, 5)},
    lambda g, a, b: g.matmul(a, b),
    lambda a, b: a @ b,
    lambda a, b: a @ b,
    **PRODUCT,
)
case(
    "matmul of a transposed matrix",
    {"a": tenon.randn(20, 33).t(), "b": tenon.randn(17, 20).t()},
    lambda g, a, b: g.matmul(a, b),
    lambda a, b: a @ b,
    lambda a, b: a @ b,
    **PRODUCT,
)
case(
    "matmul of a flipped matrix",
    {"a": tenon.randn(33, 20).flip(1), "b": tenon.randn(20, 17)[::2].repeat(2, 1)},
    lambda g, a, b: g.matmul(a, b),
    lambda a, b: a @ b,
    lambda a, b: a @ b,
    **PRODUCT,
)
case(
    "matmul of no columns",
    {"a": randn(4, 0), "b": randn(0, 3)},
    lambda g, a, b: g.matmul(a, b),
    lambda a, b: a @ b,
    lambda a, b: a @ b,
)
case(
    "matmul of no rows",
    {"a": randn(0, 4), "b": randn(4, 3)},
    lambda g, a, b: g.relu(g.matmul(a, b)),
    lambda a, b: np.maximum(a @ b, 0),
)


def feed_forward(g, x, w, b):
    return g.reduction(g.gelu(g.bias(g.matmul(x, w), b)), "ADD").set_dim([x.get_dim()[0], 1])


case(
    "matmul, bias, gelu and a reduction",
    {"x": randn(129, 64), "w": randn(64, 97), "b": randn(97)},
    feed_forward,
    lambda x, w, b: gelu(x @ w + b).sum(1, keepdims=True),
    lambda x, w, b: tenon.nn.functional.gelu(x @ w + b).sum(1, keepdim=True),
    rtol=2e-5,
    atol=1e-3,
)
case(
    "a prologue before both operands",
    {"x": randn(65, 40), "s": positive(40), "w": randn(40, 33), "b": randn(33)},
    lambda g, x, s, w, b: g.add(g.matmul(g.mul(x, s), g.relu(w)), b),
    lambda x, s, w, b: (x * s) @ np.maximum(w, 0) + b,
    lambda x, s, w, b: (x * s) @ w.relu() + b,
    **PRODUCT,
)
case(
    "an epilogue of several outputs",
    {"x": randn(70, 30), "w": randn(30, 50), "b": randn(50)},
    lambda g, x, w, b: (lambda y: [y, g.relu(y), g.cmp_gt(y, 0.0)])(g.add(g.matmul(x, w), b)),
    lambda x, w, b: [x @ w + b, np.maximum(x @ w + b, 0), (x @ w + b) > 0],
    lambda x, w, b: (lambda y: [y, y.relu(), y > 0])(x @ w + b),
    **PRODUCT,
)
case(
    "a residual around two products",
    {"x": randn(24, 16), "w": randn(16, 32), "v": randn(32, 16)},
    lambda g, x, w, v: g.add(x, g.matmul(g.gelu(g.matmul(x, w)), v)),
    lambda x, w, v: x + gelu(x @ w) @ v,
    lambda x, w, v: x + tenon.nn.functional.gelu(x @ w) @ v,
    rtol=1e-5,
    atol=1e-3,
)

# Convolutions
conv = dict(rtol=1e-5, atol=2e-4)


def convolved(x, w, stride=1, padding=(0, 0), dilation=1, groups=1):
    before, after = padding
    x = np.pad(x, [(0, 0), (0, 0), (before, after), (before, after)])
    n, c, h, width = x.shape
    k, own, r, s = w.shape
    oh, ow = ((size - dilation * (f - 1) - 1) // stride + 1 for size, f in ((h, r), (width, s)))
    out = np.zeros((n, k, oh, ow))
    for i in range(oh):
        for j in range(ow):
            rows = slice(i * stride, i * stride + dilation * (r - 1) + 1, dilation)
            columns = slice(j * stride, j * stride + dilation * (s - 1) + 1, dilation)
            window = x[:, :, rows, columns]
            for group in range(groups):
                ks = slice(group * k // groups, (group + 1) * k // groups)
                out[:, ks, i, j] = np.einsum("ncrs,kcrs->nk", window[:, group * own : (group + 1) * own], w[ks])
    return out


F = tenon.nn.functional
case(
    "conv_fprop",
    {"x": randn(2, 3, 9, 8), "w": randn(4, 3, 3, 3)},
    lambda g, x, w: g.conv_fprop(x, w, padding=[1, 1]),
    lambda x, w: convolved(x, w, padding=(1, 1)),
    lambda x, w: F.conv2d(x, w, padding=1),
    **conv,
)
case(
    "conv_fprop with strides, dilation and groups",
    {"x": randn(2, 4, 11, 10), "w": randn(6, 2, 3, 3)},
    lambda g, x, w: g.conv_fprop(image=x, weight=w, padding=[2, 2], stride=[2, 2], dilation=[2, 2]),
    lambda x, w: convolved(x, w, 2, (2, 2), 2, 2),
    lambda x, w: F.conv2d(x, w, stride=2, padding=2, dilation=2, groups=2),
    **conv,
)
case(
    "conv_fprop with other padding behind",
    {"x": randn(1, 2, 6, 6), "w": randn(3, 2, 2, 2)},
    lambda g, x, w: g.conv_fprop(x, w, pre_padding=[0, 0], post_padding=[1, 1]),
    lambda x, w: convolved(x, w, padding=(0, 1)),
    **conv,
)
case(
    "convolution, bias and relu",
    {"x": randn(3, 3, 12, 12), "w": randn(8, 3, 3, 3), "b": randn(1, 8, 1, 1)},
    lambda g, x, w, b: g.relu(g.bias(g.conv_fprop(x, w, padding=[1, 1]), b)),
    lambda x, w, b: np.maximum(convolved(x, w, padding=(1, 1)) + b, 0),
    lambda x, w, b: (F.conv2d(x, w, padding=1) + b).relu(),
    **conv,
)


def image_gradient(dy, w, shape, stride, padding):
    dx = np.zeros(shape)
    padded = np.pad(dx, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    _, _, r, s = w.shape
    for i in range(dy.shape[2]):
        for j in range(dy.shape[3]):
            rows, columns = slice(i * stride, i * stride + r), slice(j * stride, j * stride + s)
            padded[:, :, rows, columns] += np.einsum("nk,kcrs->ncrs", dy[:, :, i, j], w)
    return padded[:, :, padding : padding + shape[2], padding : padding + shape[3]]


def filter_gradient(x, dy, shape, stride, padding):
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    dw = np.zeros(shape)
    for i in range(dy.shape[2]):
        for j in range(dy.shape[3]):
            rows, columns = slice(i * stride, i * stride + shape[2]), slice(j * stride, j * stride + shape[3])
            dw += np.einsum("nk,ncrs->kcrs", dy[:, :, i, j], x[:, :, rows, columns])
    return dw


case(
    "conv_dgrad",
    {"dy": randn(2, 4, 4, 5), "w": randn(4, 3, 3, 3)},
    lambda g, dy, w: g.conv_dgrad(loss=dy, filter=w, padding=[1, 1], stride=[2, 2]).set_dim([2, 3, 8, 9]),
    lambda dy, w: image_gradient(dy, w, (2, 3, 8, 9), 2, 1),
    **conv,
)
case(
    "conv_wgrad",
    {"x": randn(2, 3, 8, 9), "dy": randn(2, 4, 4, 5)},
    lambda g, x, dy: g.conv_wgrad(image=x, loss=dy, padding=[1, 1], stride=[2, 2]).set_dim([4, 3, 3, 3]),
    lambda x, dy: filter_gradient(x, dy, (4, 3, 3, 3), 2, 1),
    **conv,
)
case(
    "conv_dgrad with more padding behind",
    {"dy": randn(2, 4, 4, 5), "w": randn(4, 3, 3, 3)},
    lambda g, dy, w: g.conv_dgrad(loss=dy, filter=w, pre_padding=[0, 1], post_padding=[1, 2], stride=[2, 2]).set_dim([2, 3, 8, 9]),
    lambda dy, w: image_gradient(dy, w, (2, 3, 9, 12), 2, 0)[:, :, :8, 1:10],
    **conv,
)
case(
    "conv_wgrad with more padding behind",
    {"x": randn(2, 3, 8, 9), "dy": randn(2, 4, 4, 5)},
    lambda g, x, dy: g.conv_wgrad(image=x, loss=dy, pre_padding=[0, 1], post_padding=[1, 2], stride=[2, 2]).set_dim([4, 3, 3, 3]),
    lambda x, dy: filter_gradient(np.pad(x, [(0, 0), (0, 0), (0, 1), (1, 2)]), dy, (4, 3, 3, 3), 2, 0),
    **conv,
)

# Norms, softmax, attention
NORM = dict(rtol=1e-5, atol=1e-5)


def layernorm(x, s, b, axes):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return [(x - mean) / np.sqrt(var + 1e-5) * s + b, mean, 1 / np.sqrt(var + 1e-5)]


case(
    "layernorm, training",
    {"x": randn(6, 40), "s": randn(1, 40), "b": randn(1, 40)},
    lambda g, x, s, b: g.layernorm("TRAINING", x, s, b, 1e-5),
    lambda x, s, b: layernorm(x, s, b, (1,)),
    **NORM,
)
case(
    "layernorm, inference",
    {"x": randn(6, 3, 40), "s": randn(3, 40), "b": randn(3, 40)},
    lambda g, x, s, b: g.layernorm(tenon.graph.norm_forward_phase.INFERENCE, x, s, b, 1e-5)[0],
    lambda x, s, b: layernorm(x, s, b, (1, 2))[0],
    lambda x, s, b: F.layer_norm(x, (3, 40), s, b),
    **NORM,
)
case(
    "rmsnorm, training",
    {"x": randn(5, 33), "s": randn(33)},
    lambda g, x, s: g.rmsnorm("TRAINING", x, s, epsilon=1e-6),
    lambda x, s: [x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * s, 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)],
    **NORM,
)
case(
    "rmsnorm with a bias",
    {"x": randn(5, 33), "s": randn(33), "b": randn(33)},
    lambda g, x, s, b: g.rmsnorm("INFERENCE", x, s, b, 1e-6)[0],
    lambda x, s, b: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * s + b,
    **NORM,
)
case(
    "batchnorm_inference",
    {"x": randn(2, 3, 5, 4), "m": randn(3), "v": positive(3), "s": randn(1, 3, 1, 1), "b": randn(3)},
    lambda g, x, m, v, s, b: g.batchnorm_inference(x, m, v, s, b),
    lambda x, m, v, s, b: (x - m.reshape(1, 3, 1, 1)) * v.reshape(1, 3, 1, 1) * s + b.reshape(1, 3, 1, 1),
    **NORM,
)
case("softmax", {"x": randn(5, 77)}, lambda g, x: g.softmax(x), lambda x: softmax(x), lambda x: x.softmax(-1), **NORM)
case(
    "softmax over another dimension",
    {"x": randn(5, 7, 3)},
    lambda g, x: g.softmax(x, axis=1),
    lambda x: softmax(x, 1),
    lambda x: x.softmax(1),
    **NORM,
)


def attention(q, k, v, causal=False, bias=0.0, scale=None):
    s = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1])) + bias
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    return softmax(s) @ v


qkv = {name: randn(2, 3, 9, 8) for name in "qkv"}
case(
    "sdpa",
    qkv,
    lambda g, q, k, v: g.sdpa(q, k, v)[0],
    attention,
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    rtol=1e-4,
    atol=1e-5,
)
case(
    "sdpa, causal",
    qkv,
    lambda g, q, k, v: g.sdpa(q, k, v, use_causal_mask=True, attn_scale=0.25)[0],
    lambda q, k, v: attention(q, k, v, True, scale=0.25),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.25),
    rtol=1e-4,
    atol=1e-5,
)
case(
    "sdpa with a bias",
    {**qkv, "b": randn(2, 3, 9, 9)},
    lambda g, q, k, v, b: g.sdpa(q=q, k=k, v=v, bias=b)[0],
    lambda q, k, v, b: attention(q, k, v, bias=b),
    rtol=1e-4,
    atol=1e-5,
)
case(
    "sdpa with statistics",
    qkv,
    lambda g, q, k, v: g.sdpa(q, k, v, generate_stats=True),
    lambda q, k, v: [attention(q, k, v), np.log(np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(8)).sum(-1))],
    rtol=1e-4,
    atol=1e-5,
)

# What moves elements
case(
    "reshape",
    {"x": randn(6, 4)},
    lambda g, x: g.exp(g.reshape(x, dim=[3, 8])),
    lambda x: np.exp(x.reshape(3, 8)),
    lambda x: x.reshape(3, 8).exp(),
)
case("reshape as an output", {"x": randn(6, 4)}, lambda g, x: g.reshape(x).set_dim([4, 6]), lambda x: x.reshape(4, 6))
case(
    "transpose",
    {"x": randn(2, 3, 4)},
    lambda g, x: g.neg(g.transpose(x, permutation=[2, 0, 1])),
    lambda x: -x.transpose(2, 0, 1),
)
case(
    "slice with negative steps",
    {"x": randn(9, 7)},
    lambda g, x: g.mul(g.slice(x, [slice(None, None, -1), slice(5, 0, -2)]), 2.0),
    lambda x: x[::-1, 5:0:-2] * 2,
)
case(
    "slice",
    {"x": randn(9, 8)},
    lambda g, x: g.mul(g.slice(x, [slice(1, 8, 2), slice(None, 5)]), 2.0),
    lambda x: x[1:8:2, :5] * 2,
)
case(
    "concatenate",
    {"a": randn(3, 4), "b": randn(3, 2)},
    lambda g, a, b: g.relu(g.concatenate([a, b], axis=1)),
    lambda a, b: np.maximum(np.concatenate([a, b], 1), 0),
)

# Geometry: what is read may lie anywhere.
case(
    "a transposed operand",
    {"a": tenon.randn(13, 7).t(), "b": randn(7, 13)},
    lambda g, a, b: g.add(a, b),
    lambda a, b: a + b,
    lambda a, b: a + b,
)
case(
    "a flipped operand",
    {"a": tenon.randn(7, 13).flip(0), "b": randn(7, 13)},
    lambda g, a, b: g.mul(a, b),
    lambda a, b: a * b,
    lambda a, b: a * b,
)
case(
    "an expanded operand",
    {"a": tenon.randn(7, 1).expand(7, 13), "b": randn(7, 13)},
    lambda g, a, b: g.sub(a, b),
    lambda a, b: a - b,
    lambda a, b: a - b,
)
case("every third element", {"a": tenon.randn(40)[1::3]}, lambda g, a: g.exp(a), lambda a: np.exp(a), lambda a: a.exp())
case("no elements", {"a": randn(0, 3)}, lambda g, a: g.exp(a), lambda a: np.exp(a))
case("one number", {"a": np.array(0.5, np.float32)}, lambda g, a: g.exp(a), lambda a: np.exp(a))

# Types
half = {"rtol": 2e-3, "atol": 2e-3}
for dtype, bounds in ((tenon.float16, half), (tenon.bfloat16, {"rtol": 1.6e-2, "atol": 1.6e-2})):
    for intermediate in (dtype, tenon.float32):
        options = {"io_data_type": dtype, "intermediate_data_type": intermediate, "compute_data_type": tenon.float32}
        x, w, b = tenon.randn(17, 24).to(dtype), tenon.randn(24, 9).to(dtype), tenon.randn(9).to(dtype)
        if intermediate == dtype:

            def eager(x, w, b):
                return F.gelu(x @ w + b)

        else:

            def eager(x, w, b, dtype=dtype):
                return F.gelu(x.float() @ w.float() + b.float()).to(dtype)

        scale = 1 if intermediate == tenon.float32 else 8
        case(
            f"{dtype} products by way of {intermediate}",
            {"x": x, "w": w, "b": b},
            lambda g, x, w, b: g.gelu(g.bias(g.matmul(x, w), b)),
            lambda x, w, b: gelu(x @ w + b),
            eager,
            options=options,
            rtol=bounds["rtol"],
            atol=bounds["atol"] * scale,
        )
case(
    "float64",
    {"x": RNG.standard_normal((9, 7)), "w": RNG.standard_normal((7, 5))},
    lambda g, x, w: g.tanh(g.matmul(x, w)),
    lambda x, w: np.tanh(x @ w),
    lambda x, w: (x @ w).tanh(),
    rtol=1e-12,
    atol=1e-13,
)
case(
    "int32",
    {"a": np.arange(12, dtype=np.int32), "b": np.full(12, 3, np.int32)},
    lambda g, a, b: g.max(g.mul(a, b), g.sub(b, a)),
    lambda a, b: np.maximum(a * b, b - a),
    lambda a, b: tenon.maximum(a * b, b - a),
)
case(
    "a conversion of an output",
    {"x": randn(8, 4)},
    lambda g, x: g.mul(x, 10.0).set_data_type(tenon.float16),
    lambda x: x * 10,
    lambda x: (x * 10.0).half(),
    rtol=1e-3,
)
