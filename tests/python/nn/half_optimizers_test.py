"""Optimizers of parameters in half types: each step in float64 from what is stored, rounded where it is stored.

A gradient of 300 has a square beyond float16, and one of 1e-4 a square below it.
"""

import ml_dtypes
import numpy as np
import pytest

import tenon

DTYPES = {tenon.float16: np.float16, tenon.bfloat16: ml_dtypes.bfloat16}
GRADIENTS = {"large": (300.0, 1.0, 1.0, 1.0), "small": (1e-4, -2e-4, 1e-4, 3e-4), "usual": (0.5, -2.0, 1.25, 0.75)}


def adam(g, p, s, t, lr, eps=1e-8, amsgrad=False):
    first = 0.9 * s.get("exp_avg", 0) + 0.1 * g
    second = 0.999 * s.get("exp_avg_sq", 0) + 0.001 * g * g
    kept = {"exp_avg": first, "exp_avg_sq": second}
    if amsgrad:
        kept["max_exp_avg_sq"] = second = np.maximum(second, s.get("max_exp_avg_sq", 0))
    return p - lr / (1 - 0.9**t) * first / (np.sqrt(second / (1 - 0.999**t)) + eps), kept


def nadam(g, p, s, t, lr, eps=1e-8):
    mu = [0.9 * (1 - 0.5 * 0.96 ** (i * 4e-3)) for i in range(1, t + 2)]
    product, following = np.prod(mu[:-1]), np.prod(mu)
    first = 0.9 * s.get("exp_avg", 0) + 0.1 * g
    second = 0.999 * s.get("exp_avg_sq", 0) + 0.001 * g * g
    scale = np.sqrt(second / (1 - 0.999**t)) + eps
    step = lr * ((1 - mu[-2]) / (1 - product) * g + mu[-1] / (1 - following) * first) / scale
    return p - step, {"exp_avg": first, "exp_avg_sq": second}


def rmsprop(g, p, s, t, lr, eps=1e-8, centered=False, momentum=0.0):
    squares = 0.99 * s.get("square_avg", 0) + 0.01 * g * g
    kept, scale = {"square_avg": squares}, squares
    if centered:
        kept["grad_avg"] = mean = 0.99 * s.get("grad_avg", 0) + 0.01 * g
        scale = squares - mean * mean
    step = g / (np.sqrt(scale) + eps)
    if momentum:
        kept["momentum_buffer"] = step = momentum * s.get("momentum_buffer", 0) + step
    return p - lr * step, kept


def adadelta(g, p, s, t, lr, eps=1e-6):
    squares = 0.9 * s.get("square_avg", 0) + 0.1 * g * g
    delta = np.sqrt(s.get("acc_delta", 0) + eps) / np.sqrt(squares + eps) * g
    return p - lr * delta, {"square_avg": squares, "acc_delta": 0.9 * s.get("acc_delta", 0) + 0.1 * delta * delta}


def adagrad(g, p, s, t, lr, eps=1e-10, lr_decay=0.0):
    total = s.get("sum", 0) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(total) + eps), {"sum": total}


def sgd(g, p, s, t, lr, momentum=0.0, nesterov=False):
    if not momentum:
        return p - lr * g, {}
    average = momentum * s["momentum_buffer"] + g if t > 1 else g
    return p - lr * (g + momentum * average if nesterov else average), {"momentum_buffer": average}


OPTIMIZERS = [
    ("Adam", adam, {}),
    ("Adam", adam, {"amsgrad": True}),
    ("NAdam", nadam, {}),
    ("RMSprop", rmsprop, {}),
    ("RMSprop", rmsprop, {"centered": True}),
    ("RMSprop", rmsprop, {"momentum": 0.5}),
    ("RMSprop", rmsprop, {"centered": True, "momentum": 0.5}),
    ("Adadelta", adadelta, {}),
    ("Adagrad", adagrad, {"lr_decay": 0.1}),
    ("SGD", sgd, {}),
    ("SGD", sgd, {"momentum": 0.5, "nesterov": True}),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", GRADIENTS)
@pytest.mark.parametrize(("name", "formula", "options"), OPTIMIZERS, ids=[f"{n}-{'-'.join(o)}" for n, _, o in OPTIMIZERS])
def test_steps_round_only_what_they_store(name, formula, options, kind, dtype):
    stored = lambda x: np.asarray(x, np.float64).astype(DTYPES[dtype]).astype(np.float64)  # noqa: E731
    p = tenon.full((3,), 0.5, dtype=dtype, requires_grad=True)
    optimizer = getattr(tenon.optim, name)([p], lr=0.125, **options)
    step = 2.0**-10 if dtype == tenon.float16 else 2.0**-7
    for t, gradient in enumerate(GRADIENTS[kind], 1):
        before = {k: v.double().numpy()[0] for k, v in optimizer.state[p].items() if isinstance(v, tenon.Tensor)}
        value, g = p.detach().double().numpy()[0], stored(gradient)
        p.grad = tenon.full((3,), gradient, dtype=dtype)
        with np.errstate(over="ignore"):
            expected, kept = formula(g, value, before if t > 1 else {}, t, 0.125, **options)
            kept = {k: stored(v) for k, v in kept.items()}
        optimizer.step()
        np.testing.assert_allclose(p.detach().double().numpy(), [stored(expected)] * 3, rtol=step, atol=2.0**-24)
        for k, v in kept.items():
            np.testing.assert_allclose(optimizer.state[p][k].double().numpy(), [v] * 3, rtol=step, atol=2.0**-24, err_msg=k)


def test_adam_survives_one_large_gradient_as_pytorch_does():
    """The values are those of PyTorch 2.9."""
    p = tenon.ones(2).half().requires_grad_()
    optimizer = tenon.optim.Adam([p], lr=0.1)
    values = []
    for gradient in (300.0, 1.0, 1.0, 1.0):
        p.grad = tenon.full((2,), gradient).half()
        optimizer.step()
        values.append(p[0].item())
    np.testing.assert_allclose(values, [0.8999, 0.8325, 0.7803, 0.7373], atol=6e-4)
    np.testing.assert_allclose(optimizer.state[p]["exp_avg_sq"].numpy(), [89.8125] * 2, rtol=2e-3)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RMSprop", "Adadelta", "Adagrad", "SGD"])
def test_a_gradient_of_zero_moves_nothing(name):
    """eps is below float16, and counts all the same."""
    p = tenon.ones(2).half().requires_grad_()
    optimizer = getattr(tenon.optim, name)([p], **({"weight_decay": 0} if name == "AdamW" else {}))
    for _ in range(3):
        p.grad = tenon.zeros(2).half()
        optimizer.step()
    assert p.tolist() == [1.0, 1.0]
