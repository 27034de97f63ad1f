"""utils.checkpoint: gradients, random numbers and results are those of the plain call, and what backward needs is not kept."""

import numpy
import pytest

import tenon
from tenon import nn
from tenon.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

WAYS = [False, True, None]


def model():
    tenon.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2))


def trained(run):
    """Loss, gradients and the generator's place after a step in which `run(model, x)` is the forward pass."""
    net, x = model(), tenon.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    tenon.manual_seed(7)
    loss = run(net, x).square().sum()
    loss.backward()
    return [loss.tolist(), x.grad.tolist(), [p.grad.tolist() for p in net.parameters()], tenon.get_rng_state().tolist()]


def nested(use_reentrant):
    def inner(net, x):
        return checkpoint(net[3:], checkpoint(net[:3], x, use_reentrant=use_reentrant), use_reentrant=use_reentrant)

    return lambda net, x: checkpoint(inner, net, x, use_reentrant=use_reentrant)


@pytest.mark.parametrize("use_reentrant", WAYS)
@pytest.mark.parametrize("form", ["whole", "nested", "decorator", "sequential 1", "sequential 2", "sequential 4", "list"])
def test_a_step_is_that_of_the_plain_call(form, use_reentrant):
    """Dropout draws the same numbers in both calls, and the generator goes on from where the plain call leaves it."""
    forms = {
        "whole": lambda net, x: checkpoint(net, x, use_reentrant=use_reentrant),
        "nested": nested(use_reentrant),
        "decorator": lambda net, x: checkpoint(use_reentrant=use_reentrant)(lambda t: net(t))(x),
        "list": lambda net, x: checkpoint_sequential([*net], 3, x, use_reentrant=use_reentrant),
    }
    run = forms.get(form) or (lambda net, x: checkpoint_sequential(net, int(form[-1]), x, use_reentrant=use_reentrant))
    assert trained(run) == trained(lambda net, x: net(x))


def test_gradients_are_those_of_the_formula():
    """d/dx of sin(x)**2 is sin(2 x)."""
    x = tenon.linspace(-2, 2, 9, dtype=tenon.float64).requires_grad_()
    checkpoint(lambda t: t.sin() * t.sin(), x, use_reentrant=False).sum().backward()
    numpy.testing.assert_allclose(x.grad.numpy(), numpy.sin(2 * x.detach().numpy()), rtol=1e-14, atol=1e-15)


def test_other_random_numbers_without_preserve_rng_state():
    def gradient(preserve):
        tenon.manual_seed(1)
        x = tenon.ones(64, requires_grad=True)
        y = checkpoint(lambda t: t.exp() * nn.functional.dropout(t, 0.5), x, use_reentrant=False, preserve_rng_state=preserve)
        y.sum().backward()
        return bool(((y == 0) == (x.grad == 0)).all())

    assert gradient(True) and not gradient(False)


def test_the_function_runs_again_in_the_backward_pass():
    calls = []

    def f(x):
        calls.append(tenon.is_grad_enabled())
        return x.exp().sin().sum()

    x = tenon.ones(3, requires_grad=True)
    loss = checkpoint(f, x, use_reentrant=False)
    assert calls == [True]
    loss.backward()
    assert calls == [True, True]
    with tenon.no_grad():
        checkpoint(f, x, use_reentrant=False)
    assert calls == [True, True, False]


def test_memory_of_a_deep_chain():
    def chain(x):
        for _ in range(20):
            x = x.sin()
        return x

    def held(run):
        x = tenon.ones(256 * 1024, requires_grad=True)
        before = tenon.cpu.memory_allocated()
        y = run(x)
        return (tenon.cpu.memory_allocated() - before) / x.nbytes, y

    assert held(chain)[0] > 15 and held(lambda x: checkpoint(chain, x, use_reentrant=False))[0] < 2


def test_arguments_by_name_and_of_other_types():
    def f(x, scale, *, offset, bias=None):
        return (x * scale + offset).exp() + (0 if bias is None else bias)

    x, offset, bias = (tenon.full((2,), k, requires_grad=True) for k in (0.5, 0.25, 2.0))
    checkpoint(f, x, 2.0, offset=offset, bias=bias, use_reentrant=False).sum().backward()
    ours = [t.grad.tolist() for t in (x, offset, bias)]
    x.grad = offset.grad = bias.grad = None
    f(x, 2.0, offset=offset, bias=bias).sum().backward()
    assert ours == [t.grad.tolist() for t in (x, offset, bias)]


def test_parameters_get_gradients_though_no_argument_needs_one():
    layer = nn.Linear(2, 1)
    for use_reentrant in WAYS:
        layer.zero_grad()
        checkpoint(layer, tenon.ones(3, 2), use_reentrant=use_reentrant).sum().backward()
        assert layer.weight.grad.tolist() == [[3.0, 3.0]] and layer.bias.grad.tolist() == [3.0]


@pytest.mark.parametrize("use_reentrant", WAYS)
def test_autograd_grad_a_retained_graph_and_second_derivatives(use_reentrant):
    w, x = tenon.tensor([2.0], requires_grad=True), tenon.tensor([3.0], requires_grad=True)
    y = checkpoint(lambda t: (w * t) ** 3, x, use_reentrant=use_reentrant)
    (first,) = tenon.autograd.grad(y.sum(), x, retain_graph=True)
    assert first.tolist() == [3 * 8 * 9.0] and w.grad is None  # 3 w^3 x^2
    (again,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tenon.autograd.grad(again.sum(), x)
    assert again.tolist() == first.tolist() and second.tolist() == [6 * 8 * 3.0]


def test_a_backward_pass_inside_the_function():
    def f(x):
        y = x.exp()
        (inner,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
        return y * inner

    x = tenon.tensor([0.5], dtype=tenon.float64, requires_grad=True)
    checkpoint(f, x, use_reentrant=False).sum().backward()
    numpy.testing.assert_allclose(x.grad.numpy(), 2 * numpy.exp(1.0), rtol=1e-14)


def test_contexts_of_both_calls():
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *error):
            pass

    x = tenon.ones(1, requires_grad=True)
    y = checkpoint(lambda t: t.exp(), x, use_reentrant=False, context_fn=lambda: (Context("first"), Context("again")))
    assert entered == ["first"]
    y.backward()
    assert entered == ["first", "again"]


def test_results_of_several_tensors_and_methods_as_decorated():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(tenon.tensor(2.0))

        @checkpoint(use_reentrant=False)
        def forward(self, x, rest):
            return {"a": (x * self.scale).exp(), "rest": rest}

    net, x = Two(), tenon.zeros(2)
    result = net(x, ["text"])
    assert result["rest"] == ["text"]
    result["a"].sum().backward()
    assert net.scale.grad.item() == 0.0


def test_in_a_compiled_step():
    def step(f):
        net, x = model(), tenon.linspace(-1, 1, 12).reshape(3, 4)
        net.eval()

        def run():
            net.zero_grad()
            loss = checkpoint(net, x, use_reentrant=False).square().sum()
            loss.backward()
            return loss.item(), [p.grad.tolist() for p in net.parameters()]

        run = f(run)
        return [run() for _ in range(3)]

    assert step(lambda f: tenon.compile(f, threshold=0)) == step(lambda f: f)


def test_what_was_computed_differently_is_an_error():
    calls = []

    def other_shape(x):
        calls.append(1)
        return (x.exp() * (x[:2].exp() if len(calls) > 1 else x.exp())[:1]).sum()

    def fewer(x):
        calls.append(1)
        return x.exp() if len(calls) > 1 else x.exp().sin()

    x = tenon.ones(3, requires_grad=True)
    y = checkpoint(other_shape, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"saved tensor \d had shape \[3\] of .*float32 on cpu, and \[2\] of .* called again"):
        y.backward()
    calls.clear()
    y = checkpoint(fewer, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="saved 2 tensors for backward, and 1 when it was called again"):
        y.sum().backward()


def test_an_argument_changed_in_place_is_an_error():
    x = tenon.ones(3)
    y = checkpoint(lambda t, u: t.exp() * u, tenon.ones(3, requires_grad=True), x, use_reentrant=False)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"argument 2 was changed in place since the function ran.*clone\(\)"):
        y.sum().backward()


def test_what_cannot_be_had_says_so():
    x = tenon.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments with use_reentrant=True: scale; give use_reentrant=False"):
        checkpoint(lambda t, scale: t, x, scale=1, use_reentrant=True)
    with pytest.raises(ValueError, match="determinism_check must be 'default' or 'none', got 'some'"):
        checkpoint(lambda t: t, x, determinism_check="some", use_reentrant=False)
    with pytest.raises(NotImplementedError, match="debug=True"):
        checkpoint(lambda t: t, x, debug=True, use_reentrant=False)
    with pytest.raises(ValueError, match="segments must be a number from 1 to that of functions, 6, got 7"):
        checkpoint_sequential(model(), 7, tenon.ones(1, 4))
