"""Backward passes inside, outside and across compiled functions; hooks, anomaly mode, saved tensors that change."""

import pytest
from beside_eager import CALLS, alike, same

import tenon
import tenon.nn.functional as F
from tenon import nn
from tenon.autograd import Function, grad


def leaf(*shape):
    n = tenon.ones(shape).numel()
    return (tenon.arange(n, dtype=tenon.float32).reshape(shape) / n - 0.3).requires_grad_()


def polynomial(x):
    return (x * x * 3 + x.sin()).sum()


def test_forward_and_backward_inside():
    def f(x):
        loss = polynomial(x)
        loss.backward()
        return loss, x.grad * 2

    same(f, leaf(4, 5))


def test_backward_outside():
    def program(c):
        x = leaf(4, 5)
        loss = c(polynomial)(x)
        loss.backward()
        return loss, x

    alike(program)


def test_backward_inside_of_a_graph_from_outside():
    def program(c):
        x = leaf(4, 5)
        loss = polynomial(x)
        c(lambda: loss.backward())()
        return loss, x

    alike(program)


def test_gradients_that_are_added_up():
    def f(x):
        for _ in range(3):
            polynomial(x).backward()
        first = x.grad.clone()
        x.grad.zero_()
        polynomial(x * 2).backward()
        return first, x.grad

    same(f, leaf(3))


def test_create_graph():
    def f(x):
        (g,) = grad(polynomial(x), x, create_graph=True)
        (g * g).sum().backward()
        return g, x.grad

    same(f, leaf(4))


def test_create_graph_across_the_end():
    def program(c):
        x = leaf(4)
        (g,) = c(lambda: grad(polynomial(x), x, create_graph=True))()
        (g * g).sum().backward()
        return g, x

    alike(program)


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))


def data():
    return tenon.linspace(-1, 1, 30).reshape(5, 6), tenon.tensor([0, 2, 1, 1, 0])


@pytest.mark.parametrize("inside", [
    {"forward", "backward", "step"}, {"forward", "backward"}, {"backward"}, {"step"}, {"backward", "step"},
    {"forward", "step"},
])  # fmt: skip
def test_a_training_step_with_any_of_its_parts_compiled(inside):
    def program(c):
        model, (x, y) = mlp(), data()
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
        losses = []

        def step():
            optimizer.step()
            optimizer.zero_grad()

        def forward():
            return F.cross_entropy(model(x), y)

        def backward(loss):
            loss.backward()

        def whole():
            loss = forward()
            backward(loss)
            step()
            return loss

        parts = {"forward": forward, "backward": backward, "step": step}
        for name in inside:
            parts[name] = c(parts[name])
        compiled_whole = c(whole) if len(inside) == 3 else None
        for _ in range(4):
            if compiled_whole:
                losses.append(compiled_whole())
                continue
            loss = parts["forward"]()
            parts["backward"](loss)
            parts["step"]()
            losses.append(loss)
        return losses, model, optimizer

    alike(program)


def test_hooks_of_tensors_that_print_and_change(capsys):
    def f(x):
        y = x * 2
        y.register_hook(lambda g: print(g.tolist()))
        y.register_hook(lambda g: g * 3)
        y.retain_grad()
        z = y.exp()
        z.register_hook(lambda g: g.clone())
        z.sum().backward()
        return x.grad, y.grad

    same(f, leaf(3))
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == CALLS and len(set(printed)) == 1


def test_hooks_after_accumulation_step_the_optimizer():
    def program(c):
        model, (x, y) = mlp(), data()
        optimizers = {p: tenon.optim.SGD([p], lr=0.1) for p in model.parameters()}

        def now(p):
            optimizers[p].step()
            p.grad = None

        for p in model.parameters():
            p.register_post_accumulate_grad_hook(now)
        step = c(lambda: F.cross_entropy(model(x), y).backward())
        for _ in range(3):
            step()
        return model

    alike(program)


def test_hooks_of_modules():
    def program(c):
        model, (x, _) = mlp(), data()
        seen = []
        model[0].register_forward_hook(lambda m, given, result: seen.append(result.sum().item()) or result * 2)
        model[2].register_full_backward_hook(lambda m, gi, go: seen.append(go[0].abs().max().item()))
        c(lambda: model(x).square().mean().backward())()
        return seen, model

    alike(program)


def test_anomaly_mode():
    def f(x):
        with tenon.autograd.detect_anomaly():
            y = (x - x).sqrt().sum() * 0
            y.backward()

    said = same(f, leaf(3))["raised"]
    assert said and "nan" in said[1].lower()


def test_a_graph_used_twice_raises_at_the_line():
    def f(x):
        loss = polynomial(x)
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as e:
            return str(e), x.grad

    assert same(f, leaf(3))["result"][1]


def test_a_saved_tensor_changed_in_place_names_both_lines():
    def f(x):
        y = x.exp()
        y.add_(1)
        y.sum().backward()

    assert "changed" in same(f, leaf(3))["raised"][1]


def test_a_saved_argument_changed_in_place():
    def f(x, c):
        y = x * c
        c.mul_(2)
        y.sum().backward()

    assert "changed" in same(f, leaf(3), tenon.ones(3))["raised"][1]


def test_in_place_with_history():
    def f(x):
        y = x * 2
        y[1:].mul_(3)
        y[0] = 1.0
        z = y.t() if y.dim() == 2 else y
        z += x.t() if y.dim() == 2 else x
        (y * y).sum().backward()
        return y, x.grad

    same(f, leaf(3))
    same(f, leaf(3, 4))


def test_writing_a_leaf_raises_at_its_line():
    def f(x):
        try:
            x.add_(1)
        except RuntimeError as e:
            return str(e), x * 2

    assert "leaf" in same(f, leaf(3))["result"][1]


def test_custom_functions():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    def f(x):
        y = Cube.apply(x * 2)
        (g,) = grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        return y, g, x.grad

    same(f, leaf(4))


def test_saved_tensor_hooks():
    def program(c):
        x, kept = leaf(4), []

        def pack(t):
            kept.append(t.sum().item())
            return t * 1

        def f():
            with tenon.autograd.graph.saved_tensors_hooks(pack, lambda t: t + 0):
                y = (x * x).exp()
            y.sum().backward()
            return y

        return c(f)(), x, kept

    alike(program)


def test_detach_and_no_grad():
    def f(x):
        y = (x * 2).detach()
        with tenon.no_grad():
            z = x * 3
            x.mul_(2)
        w = x * z + y
        w.sum().backward()
        return y, z, w, x.grad

    same(f, leaf(3))


def test_gradients_by_argument_and_views():
    def f(x, w):
        a, b = x.chunk(2)
        y = (a @ w).relu() + (b.t().t() @ w).tanh()
        return (*grad(y.sum(), [x, w]), y)

    same(f, leaf(4, 3), leaf(3, 5))


def test_convolution_and_norms():
    def program(c):
        model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                              nn.Linear(64, 3))  # fmt: skip
        x, y = tenon.linspace(0, 1, 3 * 64).reshape(3, 1, 8, 8), tenon.tensor([0, 1, 2])

        def step():
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        g = c(step)
        return g(), g(), model

    alike(program)


def test_attention_and_embedding():
    def program(c):
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        words = nn.Embedding(10, 8, padding_idx=0)
        tokens = tenon.tensor([[1, 2, 3], [4, 0, 0]])

        def step():
            loss = layer(words(tokens)).square().mean()
            loss.backward()
            return loss

        g = c(step)
        return g(), g(), layer, words

    alike(program)


def test_checkpoints_written_by_hand():
    """A piece is computed again in the backward pass, from its saved input."""

    class Checkpoint(Function):
        @staticmethod
        def forward(ctx, f, x):
            ctx.f, ctx.state = f, tenon.get_rng_state()
            ctx.save_for_backward(x)
            with tenon.no_grad():
                return f(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            now = tenon.get_rng_state()
            tenon.set_rng_state(ctx.state)
            with tenon.enable_grad():
                again = x.detach().requires_grad_()
                y = ctx.f(again)
            tenon.set_rng_state(now)
            y.backward(g)
            return None, again.grad

    def f(x):
        y = Checkpoint.apply(lambda v: F.dropout(v.sin() * 2, 0.5), x)
        y.sum().backward()
        return y, x.grad

    same(f, leaf(6))


def test_a_gradient_that_is_used_while_it_is_pending():
    def f(x):
        polynomial(x).backward()
        norm = x.grad.norm()
        x.grad.mul_((1 / (norm + 1e-6)).clamp(max=1.0))
        return norm, x.grad

    same(f, leaf(4, 4))


def test_clipping():
    def program(c):
        model, (x, y) = mlp(), data()

        def step():
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()
            return nn.utils.clip_grad_norm_(model.parameters(), 0.1)

        g = c(step)
        return g(), g(), model

    alike(program)
