"""The rows of compare_compile.py: what each column runs, and the bounds."""

import functools
import itertools
import math
import pathlib
import sys
import time

PEERS = ("torch", "torch.compile", "jax", "mlx", "onednn")

CHAIN, NORM, SOFTMAX = "silu(x*a+b)*tanh(x)+b, 1M", "layer_norm written out, 1024x1024", "softmax written out, 1024x1024"
SMALL, MLP1, ADAM, MLP64 = "the chain of 16 elements", "MLP step, batch 1, SGD", "MLP step, batch 1, Adam", "MLP step, batch 64, SGD"
BLOCK, CONV = "transformer block 1x32x64, fwd and bwd", "convnet step, batch 32"
PRODUCT = "64x784x512 + bias + gelu + row sum"
#: Not in BOUNDS: readme_chart.py draws these.
WIDTHS = {width: f"MLP step of width {width}, batch 32, SGD" for width in (16, 32, 64, 128, 256, 512, 1024)}
NEW, NEW_PRODUCT = "first call, 8 new pointwise operators", "first call, a product among them"
EXAMPLES = {
    name: f"examples/{name}.py, a small step"
    for name in ("convnet", "resnet", "unet", "vit", "gpt", "llama", "moe", "lora")
}

#: (column, at most so many times, the reference column; or so many "us")
BOUNDS = {
    CHAIN: [("compiled", 1.0, "jax"), ("compiled", 1.0, "torch.compile"), ("compiled", 1.2, "floor"), ("interpreter", 1.5, "jax")],
    NORM: [("compiled", 1.2, "jax"), ("interpreter", 0.6, "eager")],
    SOFTMAX: [("compiled", 1.2, "jax"), ("interpreter", 0.6, "eager")],
    SMALL: [("compiled", 1.2, "eager"), ("pure", 0.6, "eager"), ("pure", 0.05, "jax")],
    MLP1: [("compiled", 1.1, "eager"), ("pure", 0.6, "eager"), ("pure", 0.35, "jax")],
    ADAM: [("compiled", 0.5, "eager")],
    MLP64: [("compiled", 0.85, "eager")],
    BLOCK: [("compiled", 0.7, "eager")],
    CONV: [("compiled", 0.85, "eager")],
    PRODUCT: [("compiled", 0.9, "eager"), ("relaxed", 0.9, "eager"), ("relaxed", 1.1, "onednn")],
    NEW: [("compiled", 60, "us")],
    NEW_PRODUCT: [("compiled", 300, "us")],
    **{row: [] for row in EXAMPLES.values()},
}


def rows_of(column):
    """{name of a row: a function that makes what is measured}; raises ImportError where the framework is not there."""
    if column == "floor":
        return _floor()
    if column == "jax":
        return _jax()
    if column == "mlx":
        return _mlx()
    if column == "onednn":
        return _onednn()
    if column.startswith("torch"):
        import torch

        torch.set_num_threads(1)
        if column == "torch.compile":  # the examples would take it half an hour
            return _eager_names(torch, torch.compile)
        return _eager_names(torch, lambda f: f) | _examples(torch, lambda f: f)
    import tenon

    tenon.set_num_threads(1)
    if column == "eager":
        return _eager_names(tenon, lambda f: f) | _examples(tenon, lambda f: f)
    options = {"relaxed": {"relaxed": True}, "pure": {"pure": True}, "tuned": {"tune": 2000}}
    compiled = tenon.compile(**options[column]) if column in options else tenon.compile
    rows = _eager_names(tenon, compiled) | _examples(tenon, compiled)
    rows[NEW] = lambda: _first_call(tenon, lambda x, ops: _applied(x, ops))
    rows[NEW_PRODUCT] = lambda: _first_call(tenon, lambda x, ops: _applied(_applied(x, ops[:4]) @ x.t() + 1, ops[4:]))
    return rows


def _chain(t, silu):
    return lambda x, a, b: silu(x * a + b) * t.tanh(x) + b


def _norm(x, w, b):
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    var = (centred * centred).mean(-1, keepdim=True)
    return centred / (var + 1e-5).sqrt() * w + b


def _softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def _product(F):
    def product(x, w, b):
        y = F.gelu(x @ w + b)
        return y, y.sum(1)

    return product


def _with(make):
    """Rows whose function is called with tensors that are made once."""

    def prepared():
        function, arguments = make()
        return lambda: function(*arguments)

    return prepared


def _eager_names(t, compiled):
    """The rows of a framework with PyTorch's names."""
    F = t.nn.functional
    randn = t.randn
    return {
        CHAIN: _with(lambda: (compiled(_chain(t, F.silu)), [randn(1 << 20) for _ in range(3)])),
        NORM: _with(lambda: (compiled(_norm), [randn(1024, 1024), randn(1024), randn(1024)])),
        SOFTMAX: _with(lambda: (compiled(_softmax), [randn(1024, 1024)])),
        SMALL: _with(lambda: (compiled(_chain(t, F.silu)), [randn(16) for _ in range(3)])),
        PRODUCT: _with(lambda: (compiled(_product(F)), [randn(64, 784), randn(784, 512), randn(512)])),
        MLP1: lambda: _step(t, compiled, _mlp(t), (randn(1, 64), t.tensor([3])), "SGD"),
        ADAM: lambda: _step(t, compiled, _mlp(t), (randn(1, 64), t.tensor([3])), "Adam"),
        MLP64: lambda: _step(t, compiled, _mlp(t), (randn(64, 64), t.randint(0, 10, (64,))), "SGD"),
        BLOCK: lambda: _block(t, compiled),
        **{row: functools.partial(_step_of_width, t, compiled, width) for width, row in WIDTHS.items()},
        CONV: lambda: _step(t, compiled, _convnet(t), (randn(32, 1, 8, 8), t.randint(0, 10, (32,))), "SGD"),
    }


def _examples(t, compiled):
    """Training steps of examples/ with the models and batches of their tests."""
    programs = _programs()

    def prepared(program):
        _, batch, step, _ = programs.prepared(program, t, compiled)
        return lambda: step(*batch)

    return {EXAMPLES[p.name]: functools.partial(prepared, p) for p in programs.PROGRAMS}


def _programs():
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "programs"))
    import programs

    return programs


def _mlp(t, inputs=64, width=128):
    nn = t.nn
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def _step_of_width(t, compiled, width):
    return _step(t, compiled, _mlp(t, width, width), (t.randn(32, width), t.randint(0, 10, (32,))), "SGD")


def _convnet(t):
    return _programs().load("convnet", t).ConvNet()


def _step(t, compiled, model, data, optimizer):
    """A whole training step: forward, loss, backward, update."""
    optimizer = getattr(t.optim, optimizer)(model.parameters(), lr=0.01)
    x, y = data

    def step():
        loss = t.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return compiled(step)


def _block(t, compiled):
    block, x = t.nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True), t.randn(1, 32, 64)
    parameters = list(block.parameters())

    def step():
        for p in parameters:
            p.grad = None
        block(x).square().mean().backward()

    return compiled(step)


_OPERATORS = ("sin", "tanh", "sigmoid", "relu", "neg", "square", "erf", "abs", "floor", "exp", "sqrt", "round")


def _applied(x, operators):
    for name in operators:
        x = getattr(x, name)() * 1.5
    return x


def _first_call(t, program):
    """Each call is of a function that was never seen before, on small tensors of which everything is recorded."""
    orders = itertools.permutations(_OPERATORS, 4)
    x = t.randn(8, 8)

    def nanoseconds():
        best = float("inf")
        for order in itertools.islice(orders, 40):
            f = t.compile(lambda: program(x, order), threshold=0)
            start = time.perf_counter_ns()
            f()
            best = min(best, time.perf_counter_ns() - start)
        return best

    nanoseconds.nanoseconds = nanoseconds
    return nanoseconds


def _floor():
    """What the chain cannot beat: 16 MB streamed, or its functions on what is in cache, whichever takes longer."""
    import tenon
    from compare_compile import once

    def floor():
        x, y, out = tenon.randn(1 << 20), tenon.randn(1 << 20), tenon.empty(1 << 20)
        small = tenon.randn(1 << 12)
        result = tenon.empty(1 << 12)
        silu, tanh = tenon.ops.aten.silu.out, tenon.ops.aten.tanh.out

        def nanoseconds():
            stream = once(lambda: tenon.add(x, y, out=out), 0.03) * 16 / 12
            maths = once(lambda: silu(small, out=result), 0.03) + once(lambda: tanh(small, out=result), 0.03)
            return max(stream, maths * 256)

        nanoseconds.nanoseconds = nanoseconds
        return nanoseconds

    return {CHAIN: floor}


def _onednn():
    from onednn_direct import Direct

    import tenon

    direct, randn = Direct(), tenon.randn
    memory = [randn(64, 784), randn(784, 512), randn(512), tenon.empty(64, 512), tenon.empty(64, 1)]
    return {PRODUCT: lambda: direct.product(*memory)}


def _jax():
    import jax
    import jax.numpy as jnp

    def norm(x, w, b):
        mean = x.mean(-1, keepdims=True)
        centred = x - mean
        return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w + b

    def softmax(x):
        e = jnp.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def product(x, w, b):
        y = jax.nn.gelu(x @ w + b, approximate=False)
        return y, y.sum(1)

    def mlp(weights, x):
        for w, b in weights[:-1]:
            x = jax.nn.relu(x @ w + b)
        return x @ weights[-1][0] + weights[-1][1]

    def loss(weights, x, y):
        return -jax.nn.log_softmax(mlp(weights, x))[jnp.arange(len(y)), y].mean()

    def step(weights, x, y):
        grads = jax.grad(loss)(weights, x, y)
        return jax.tree.map(lambda w, g: w - 0.01 * g, weights, grads)

    key = jax.random.key(0)

    def randn(*shape):
        return jax.random.normal(key, shape, jnp.float32)

    def ready(make):
        def prepared():
            function, arguments = make()
            jitted = jax.jit(function)
            return lambda: jax.block_until_ready(jitted(*arguments))

        return prepared

    def trained(batch, inputs=64, width=128):
        def prepared():
            sides = [inputs, width, width, 10]
            weights = [(randn(i, o) / math.sqrt(i), jnp.zeros(o)) for i, o in zip(sides, sides[1:])]
            state = [weights]
            x, y, jitted = randn(batch, inputs), jnp.arange(batch) % 10, jax.jit(step, donate_argnums=0)

            def run():
                state[0] = jax.block_until_ready(jitted(state[0], x, y))

            return run

        return prepared

    chain = _chain(jnp, jax.nn.silu)
    return {
        CHAIN: ready(lambda: (chain, [randn(1 << 20) for _ in range(3)])),
        NORM: ready(lambda: (norm, [randn(1024, 1024), randn(1024), randn(1024)])),
        SOFTMAX: ready(lambda: (softmax, [randn(1024, 1024)])),
        SMALL: ready(lambda: (chain, [randn(16) for _ in range(3)])),
        PRODUCT: ready(lambda: (product, [randn(64, 784), randn(784, 512), randn(512)])),
        MLP1: trained(1),
        MLP64: trained(64),
        **{row: trained(32, width, width) for width, row in WIDTHS.items()},
    }


def _mlx():
    import mlx.core as mx
    import mlx.nn as nn

    mx.set_default_device(mx.cpu)

    def norm(x, w, b):
        centred = x - x.mean(-1, keepdims=True)
        return centred / mx.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w + b

    def softmax(x):
        e = mx.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def product(x, w, b):
        y = nn.gelu(x @ w + b)
        return y, y.sum(1)

    def ready(make):
        def prepared():
            function, arguments = make()
            compiled = mx.compile(function)
            return lambda: mx.eval(compiled(*arguments))

        return prepared

    def randn(*shape):
        return mx.random.normal(shape)

    chain = _chain(mx, nn.silu)
    return {
        CHAIN: ready(lambda: (chain, [randn(1 << 20) for _ in range(3)])),
        NORM: ready(lambda: (norm, [randn(1024, 1024), randn(1024), randn(1024)])),
        SOFTMAX: ready(lambda: (softmax, [randn(1024, 1024)])),
        SMALL: ready(lambda: (chain, [randn(16) for _ in range(3)])),
        PRODUCT: ready(lambda: (product, [randn(64, 784), randn(784, 512), randn(512)])),
    }
