"""backward and grad: what they take, what they refuse, order three, threads, and graphs of a million nodes."""

import threading

import numpy as np
import pytest

import tenon
from tenon import autograd


def leaf(*values):
    return tenon.tensor(values, requires_grad=True)


REFUSED = {
    "no scalar": (lambda x: (x * 2).backward(), RuntimeError, "only for scalar outputs"),
    "no history": (lambda x: tenon.ones(1).backward(), RuntimeError, "element 0 of tensors does not require grad"),
    "second has no history": (
        lambda x: autograd.backward([x.sum(), tenon.ones(1)]),
        RuntimeError,
        "element 1 of tensors does not require grad",
    ),
    "twice": (lambda x: [y := x.exp().sum(), y.backward(), y.backward()], RuntimeError, "a second time"),
    "shape": (lambda x: (x * 2).backward(tenon.ones(3)), RuntimeError, r"Mismatch in shape.*\[3\].*\[2\]"),
    "scalar for a vector": (lambda x: (x * 2).backward(tenon.tensor(1.0)), RuntimeError, "Mismatch in shape"),
    "device": (lambda x: (x * 2).backward(tenon.ones(2, device="meta")), RuntimeError, "meta"),
    "no tensor": (lambda x: (x * 2).backward(3.0), TypeError, "gradient"),
    "a list with a number": (lambda x: autograd.backward([x * 2], [3.0]), TypeError, "Tensor"),
    "too many gradients": (
        lambda x: autograd.backward([x.sum()], [None, None]),
        RuntimeError,
        "1 tensors and 2 gradients",
    ),
    "no inputs": (lambda x: x.sum().backward(inputs=[]), RuntimeError, "cannot be empty"),
    "an input without history": (
        lambda x: x.sum().backward(inputs=[tenon.ones(1)]),
        RuntimeError,
        "does not require grad",
    ),
    "grad without inputs": (lambda x: autograd.grad(x.sum(), []), ValueError, "inputs"),
    "unused": (lambda x: autograd.grad(x.sum(), leaf(1.0)), RuntimeError, "not have been used in the graph"),
    "batched": (
        lambda x: autograd.grad(x * 2, x, tenon.ones(3, 2), is_grads_batched=True),
        NotImplementedError,
        "is_grads_batched",
    ),
    "materialize without unused": (
        lambda x: autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True),
        ValueError,
        "allow_unused",
    ),
    "unknown keyword": (lambda x: x.sum().backward(keep=True), TypeError, "keep"),
    "integers": (lambda x: tenon.ones(2, dtype=tenon.int64).requires_grad_(), RuntimeError, "floating point"),
    "integers at birth": (lambda x: tenon.tensor([1, 2], requires_grad=True), RuntimeError, "floating point"),
    "grad of another shape": (lambda x: setattr(x, "grad", tenon.ones(3)), RuntimeError, "shape"),
}


@pytest.mark.parametrize("call, error, message", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(call, error, message):
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=message):
        call(x)


def test_gradients_default_one_by_one():
    x = leaf(1.0, 2.0)
    autograd.backward([x.sum(), x * 3], [None, tenon.tensor([1.0, 10.0])])
    assert x.grad.tolist() == [4.0, 31.0]


def test_inputs_that_are_no_leaves_keep_their_gradient():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    (y * y).backward(inputs=[y, w])
    assert y.grad.tolist() == [12.0] and w.grad.tolist() == [24.0] and x.grad is None


def test_third_order_and_mixed_derivatives():
    x, y = leaf(2.0), leaf(3.0)
    f = x**4 * y**2

    def d(f, by):
        return autograd.grad(f, by, create_graph=True)[0]

    assert d(f, x).item() == 4 * 8 * 9
    assert d(d(f, x), y).item() == 4 * 8 * 6
    assert d(d(d(f, x), x), y).item() == 12 * 4 * 6
    assert d(d(d(f, y), x), x).item() == 12 * 4 * 6
    assert d(d(d(f, x), x), x).item() == 24 * 2 * 9


def test_create_graph_keeps_the_graph_and_retain_graph_can_say_no():
    x = leaf(2.0)
    y = x.exp()
    autograd.grad(y, x, create_graph=True)
    autograd.grad(y, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="a second time"):
        autograd.grad(y, x)


def test_backward_of_the_same_graph_inside_a_hook():
    x = leaf(3.0)
    y = x * x
    seen = []

    def hook(g):
        if not seen:
            seen.append(None)
            seen.append(autograd.grad(y, x, retain_graph=True)[0].item())

    z = y * 2
    z.register_hook(hook)
    z.backward()
    assert seen[1] == 6.0 and x.grad.tolist() == [12.0]


def test_threads_share_a_graph():
    x = leaf(*[1.0] * 64)
    shared = x.exp().log()
    errors = []

    def work(k):
        try:
            for _ in range(50):
                (shared * k).sum().backward(retain_graph=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in (1, 2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert tenon.allclose(x.grad, tenon.full((64,), 500.0), rtol=1e-4)


def on_a_small_stack(f):
    result = []

    def run():
        try:
            f()
            result.append(None)
        except BaseException as error:
            result.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        t = threading.Thread(target=run)
        t.start()
        t.join()
    finally:
        threading.stack_size(before)
    if result[0] is not None:
        raise result[0]


def test_a_million_nodes_deep():
    def run():
        x = leaf(1.0)
        y = x
        for _ in range(1_000_000):
            y = y + x
        y.backward()
        assert x.grad.tolist() == [1_000_001.0]

    on_a_small_stack(run)


def test_a_million_leaves_wide():
    def run():
        leaves = [leaf(1.0) for _ in range(1_000_000)]
        level = leaves  # a tree of sums
        while len(level) > 1:
            level = [a + b for a, b in zip(level[::2], level[1::2])] + level[len(level) // 2 * 2 :]
        y = level[0] * 2
        y.backward(retain_graph=True)
        assert leaves[0].grad.tolist() == leaves[-1].grad.tolist() == [2.0]
        grads = autograd.grad(y, leaves)
        assert len(grads) == 1_000_000 and grads[-1].tolist() == [2.0]

    on_a_small_stack(run)


def test_functions_nested_deep_are_freed():
    class Next(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.before = x  # the graph also hangs together through Python
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    def run():
        x = leaf(1.0)
        y = x
        for _ in range(50_000):
            y = Next.apply(y)
        y.backward()
        assert x.grad.tolist() == [1.0]

    on_a_small_stack(run)


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16])
@pytest.mark.parametrize("name", ["cumprod", "prod"])
def test_gradients_of_products_in_half_types_are_rounded_once(dtype, name):
    ulp = {tenon.float16: 2.0**-11, tenon.bfloat16: 2.0**-8}[dtype]
    rng = np.random.default_rng(4)
    for zeros in (False, True):
        values = rng.standard_normal((300, 12)) + 1
        if zeros:
            values[rng.random(values.shape) < 0.1] = 0
        x = tenon.tensor(values).to(dtype).requires_grad_()
        result = getattr(tenon, name)(x, 1)
        g = tenon.tensor(rng.standard_normal(result.shape)).to(dtype)
        result.backward(g)
        X, G = x.detach().double().numpy(), g.double().numpy()
        want = np.zeros_like(X)
        for i in range(12):
            others = np.cumprod(np.where(np.arange(12) == i, 1, X), 1)
            want[:, i] = (G[:, i:] * others[:, i:]).sum(1) if name == "cumprod" else G * others[:, -1]
        error = np.sqrt(((x.grad.double().numpy() - want) ** 2).mean() / (want**2).mean()) / ulp
        # Rounding once leaves 0.4 ulp on average, and a little more where numbers are denormal.
        assert x.grad.dtype is dtype and error < 0.55
