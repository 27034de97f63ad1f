"""Modules and functions that tenon.onnx.save writes, with inputs: for the tests beside this file and those of other runtimes."""

import numpy as np
import tenon
import tenon.nn.functional as F
from tenon import nn


def normal(*shape, seed=0):
    return tenon.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


x = normal(3, 4, 5)
image = normal(1, 2, 6, 7)
grid = normal(1, 4, 5, 2, seed=1)
SAMPLINGS = [("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection"), ("bilinear", "reflection")]
places = tenon.tensor([[0, 2, 1, 1, 0], [1, 1, 0, 3, 2], [2, 0, 1, 0, 3]])


def convnet():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, stride=2, groups=2),
                        nn.BatchNorm2d(4), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))  # fmt: skip
    for i in (1, 5):
        net[i].running_mean.copy_(normal(net[i].num_features))
        net[i].running_var.copy_(normal(net[i].num_features).abs() + 0.5)
    return net


def writes_ranges(x):
    y = x.clone()
    y[:, 1:3] = 7
    y[0] = x[1]
    return y


def writes_what_it_made(x):
    y = tenon.zeros(3, 4, 5)
    y[:, ::2, 1] = x[:, :2, 0]
    y[:, 1, 2:4] += 1
    return y


def writes_diagonals(x):
    y = x.clone()
    y.transpose(0, 2)[1] = 5
    y.diagonal(0, 1, 2).add_(3)
    return y


def writes_places(x):
    y = x.clone()
    y[:, tenon.tensor([1, 2])] = 0.5
    y[tenon.tensor([0, 1]), tenon.tensor([1, 2])] = x[0, :2]
    return y


MODULES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4), nn.Linear(4, 2)), normal(2, 3)),
    "convnet": (convnet, normal(2, 3, 16, 16)),
    "channels_last": (lambda: nn.Conv2d(2, 4, 3), image.contiguous(memory_format=tenon.channels_last)),
    "lstm": (lambda: nn.LSTM(5, 6, 2, bidirectional=True), normal(7, 2, 5)),
    "lstm_batch_first": (lambda: nn.LSTM(5, 6, batch_first=True), normal(2, 7, 5)),
    "gru": (lambda: nn.GRU(5, 6, 2, bidirectional=True), normal(7, 2, 5)),
    "rnn": (lambda: nn.RNN(5, 6, nonlinearity="relu", batch_first=True), normal(2, 7, 5)),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), normal(2, 5, 8)),
    "encoder_of_one": (lambda: nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, activation="gelu", batch_first=True), normal(1, 5, 8)),
    "decoder": (lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), normal(2, 5, 8), normal(2, 3, 8)),
    "embeddings": (lambda: nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 3)), tenon.tensor([[1, 2, 3], [0, 9, 4]])),
    "equal_weights": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).requires_grad_(False).apply(lambda m: m.bias.zero_() if hasattr(m, "bias") else None), normal(3, 2)),
    "no_dimensions": (lambda: lambda x: (x * 2, x.reshape(1), x.exp().sum(), (x > 0).sum()), tenon.tensor(3.0)),
    "no_elements": (lambda: lambda x: (x * 2, x.sum(), x.reshape(3, 0)), tenon.ones(0, 3)),
    "bytes": (lambda: lambda x: (x + 250, x.float() / 255, x.sum()), tenon.arange(6).to(tenon.uint8)),
    "doubles": (lambda: lambda x: {"a": (x @ x.T).softmax(-1), "b": [x, x]}, normal(3, 3).double()),
    "attention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), normal(2, 3, 8), normal(2, 3, 8), normal(2, 3, 8)),
    "norms": (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.RMSNorm(5), nn.InstanceNorm1d(4)), x),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), image),
    "same": (lambda: nn.Conv1d(2, 3, 3, padding="same"), normal(2, 9)),
}

FUNCTIONS = {
    "causal": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked": lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=tenon.ones(4, 4, dtype=tenon.bool).tril(1)),
    "sum": lambda x: x.sum(1), "mean": lambda x: x.mean((0, 2), keepdim=True), "amax": lambda x: x.amax(-1), "max": lambda x: x.max(1),
    "argmax": lambda x: (x.argmax(1), x.argmin()), "var": lambda x: (x.var(1), x.std()), "logsumexp": lambda x: x.logsumexp(1),
    "norm": lambda x: (x.norm(dim=1), x.norm(1), x.norm(float("inf"), 2)), "prod": lambda x: x.prod(1),
    "any": lambda x: ((x > 0).any(1), (x > -5).all()), "softmax": lambda x: (x.softmax(1), x.log_softmax(-1)), "cumsum": lambda x: x.cumsum(1),
    "topk": lambda x: x.topk(2, -1), "sort": lambda x: x.sort(1, descending=True),
    "slice": lambda x: x[1:, ::2, -3:], "flip": lambda x: x.flip(1), "select": lambda x: x[1, :, 2], "permute": lambda x: x.permute(2, 0, 1),
    "reshape": lambda x: x.permute(2, 0, 1).reshape(5, 12), "unsqueeze": lambda x: x[:, None], "expand": lambda x: x[:1].expand(4, 4, 5),
    "unfold": lambda x: x.unfold(1, 3, 1), "diagonal": lambda x: x.diagonal(0, 1, 2), "turned": lambda x: x.transpose(0, 2)[1:3],
    "flat": lambda x: x.flatten(1)[:, 3:17], "unflatten": lambda x: x.flatten(1).unflatten(1, (10, 2))[:, 1::3], "chunk": lambda x: x.chunk(2, 1),
    "none": lambda x: x[:, 4:], "stack": lambda x: tenon.stack([x[0], x[1]], 1), "cat": lambda x: tenon.cat([x, x[:1]], 0),
    "roll": lambda x: x.roll(2, 1), "repeat": lambda x: x.repeat(2, 1, 3), "tril": lambda x: x.tril(),
    "where": lambda x: tenon.where(x > 0, x, -x * 2), "clamp": lambda x: x.clamp(-0.5, 0.5),
    "activations": lambda x: [f(x) for f in (F.gelu, F.silu, F.mish, F.hardswish, F.elu, F.softplus, F.logsigmoid, F.relu6, F.selu, F.leaky_relu)],
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "glu": lambda x: F.glu(x[:, :, :4]),
    "powers": lambda x: (x.abs() ** 1.5, x**2, x**3, x.abs().rsqrt(), x.square()), "logs": lambda x: (x.abs().log1p(), x.expm1(), x.abs().log2(), x.exp2()),
    "division": lambda x: (tenon.fmod(x, 0.3), x % 0.3, x // 0.3, x.trunc(), x.round(), x.sign()), "half": lambda x: (x.half() * 2).float(),
    "integers": lambda x: ((x * 10).int(), (x * 10).to(tenon.int8) + 100), "truth": lambda x: ((x > 0) & ~(x > 1), x != x[0], x.isnan(), (x / 0).isinf()),
    "products": lambda x: (x @ x.transpose(1, 2), x @ x[0, 0], x[0, 0] @ x[1, 1]), "einsum": lambda x: tenon.einsum("abc,adc->bd", x, x),
    "normalize": lambda x: F.normalize(x, dim=1), "pad": lambda x: (F.pad(x, (1, 2, 0, 1), value=3.0), F.pad(x, (-1, 2))),
    "pad_axes": lambda x: (F.pad(x, (1, 2), mode="reflect"), F.pad(x, (1, 2), mode="replicate")),
    "index": lambda x: (x[:, tenon.tensor([2, 0, 1])], x[tenon.tensor([0, 2]), tenon.tensor([1, 3])], x[:, tenon.tensor([[0], [2]]), tenon.tensor([1, 3])]),
    "in_place": lambda x: x.clone().mul_(2).add_(1), "shuffle": lambda x: F.pixel_shuffle(x.reshape(1, 4, 3, 5), 2), "constant": lambda x: (x, tenon.arange(3)),
    "writes_ranges": writes_ranges, "writes_what_it_made": writes_what_it_made, "writes_diagonals": writes_diagonals, "writes_places": writes_places,
}  # fmt: skip

OF_PLACES = {
    "gather": lambda x, i: x[:, :, 0].gather(1, i[:, :2]),
    "scatter": lambda x, i: (x[:, :, 0].scatter(1, i[:, :2], x[:, :, 1]), x[:, :, 0].scatter(1, i[:, :2], 2.0)),
    "scatter_add": lambda x, i: (x[:, :, 0].scatter_add(1, i, x[:, 0]), x[:, :, 0].scatter_reduce(1, i, x[:, 0], "amax")),
    "along": lambda x, i: (x.index_select(1, i[2]), x.index_add(1, i[0][:3], x[:, :3]), x.index_copy(1, i[0][:3], x[:, :3]), x.index_fill(2, i[0], 4)),
    "one_hot": lambda x, i: F.one_hot(i, 5), "take": lambda x, i: x.take(i), "whole": lambda x, i: (i + 3) // 2 + i % 2 + i**2 - (i & 1),
}  # fmt: skip

OF_IMAGES = {
    "resize": lambda x: [F.interpolate(x, scale_factor=2, mode=mode) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")],
    "resize_to": lambda x: [F.interpolate(x, size=(9, 5), mode=mode) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")],
    "align_corners": lambda x: F.interpolate(x, size=(9, 5), mode="bilinear", align_corners=True),
    "avg_pool": lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, 2, ceil_mode=True)),
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "grid_sample": lambda x: [F.grid_sample(x, grid, mode, padding, align_corners=mode == "nearest") for mode, padding in SAMPLINGS],
    "adaptive": lambda x: (F.adaptive_avg_pool2d(x, (3, 7)), F.adaptive_max_pool2d(x, 1)),
}

#: By name: what to save, and its inputs.
CASES = {
    **{name: (made, *inputs) for name, (made, *inputs) in MODULES.items()},
    **{name: (lambda f=f: f, x) for name, f in FUNCTIONS.items()},
    **{name: (lambda f=f: f, x, places) for name, f in OF_PLACES.items()},
    **{name: (lambda f=f: f, image) for name, f in OF_IMAGES.items()},
}

#: With dynamic axes: what to save, the example, the axes, and further inputs.
DYNAMIC = {
    "mlp": (MODULES["mlp"][0], [normal(1, 3)], {"input": {0: "batch"}}, [[normal(1, 3)], [normal(7, 3)]]),
    "convnet": (convnet, [normal(1, 3, 16, 16)], {"input": {0: "batch", 2: "h", 3: "w"}}, [[normal(1, 3, 16, 16)], [normal(4, 3, 12, 22)]]),
    "encoder": (MODULES["encoder"][0], [normal(1, 5, 8)], {"src": {0: "batch", 1: "time"}}, [[normal(1, 5, 8)], [normal(3, 9, 8)], [normal(2, 1, 8)]]),
    "lstm": (MODULES["lstm_batch_first"][0], [normal(1, 5, 5)], {"input": {0: "batch", 1: "time"}}, [[normal(1, 5, 5)], [normal(3, 9, 5)]]),
    "resize": (lambda: lambda x: F.interpolate(x, scale_factor=2), [image], {"x": [0, 2, 3]}, [[normal(2, 2, 5, 6)]]),
    "arange": (lambda: lambda x: x + tenon.arange(x.shape[1]) * 2, [normal(1, 5)], {"x": [0, 1]}, [[normal(2, 3)]]),
    "numbers": (lambda: lambda x: x.mean(1) * x.shape[1] + x.shape[0], [normal(2, 5, 3)], {"x": [0, 1]}, [[normal(3, 4, 3)]]),
    "products": (lambda: lambda x, y: tenon.cat([x.flatten(0, 1), y]).reshape(-1, 6), [normal(2, 3, 4), normal(6, 4)],
                 {"x": {0: "a", 1: "b"}, "y": {0: "c"}}, [[normal(4, 3, 4), normal(6, 4)]]),
}  # fmt: skip


def module_of(made):
    tenon.manual_seed(1)
    module = made()
    return module.eval() if isinstance(module, nn.Module) else module


def tensors_of(value):
    """All tensors in a result, as arrays."""
    if isinstance(value, tenon.Tensor):
        return [value.detach().numpy()]
    return [array for one in (value.values() if isinstance(value, dict) else value) for array in tensors_of(one)]


def assert_equal(got, wanted):
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
