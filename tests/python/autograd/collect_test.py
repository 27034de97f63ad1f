"""Python's collector of cycles sees through the graph: it frees what only a cycle through C++ keeps, and nothing else."""

import gc
import threading
import weakref

import pytest

import tenon
from tenon import nn
from tenon.library import Library


class Sentinel:
    """Something to have a weak reference to."""


@pytest.fixture(autouse=True)
def python_in_the_graph():
    # Tensors are shown to the collector once there was a hook or a Function.
    tenon.ones(1, requires_grad=True).register_hook(lambda g: None)
    gc.collect()


def seen_of(make):
    """A weak reference to a sentinel that `make` ties into a cycle, and what `make` returns."""
    sentinel = Sentinel()
    kept = make(sentinel)
    return weakref.ref(sentinel), kept


def collect():
    # What one cycle keeps of another is free in the second round.
    gc.collect()
    gc.collect()


class Scale(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x, keep):
        y = x * 2
        keep(ctx, x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


def leaf(*size):
    return tenon.ones(*size or (3,), requires_grad=True)


def hook_of_a_leaf(s):
    x = leaf()
    x.register_hook(lambda g: (x, s) and None)


def hook_of_a_parameter(s):
    x = nn.Parameter(tenon.ones(3))
    x.register_hook(lambda g: (x, s) and None)


def hook_after_accumulation(s):
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda t: (x, s) and None)


def hook_of_a_leaf_after_backward(s):
    x = leaf()
    x.register_hook(lambda g: (x, s) and None)
    (x * x).sum().backward()


def hook_of_a_result(s):
    y = leaf() * 2
    y.register_hook(lambda g: (y, s) and None)


def hook_that_holds_what_came_after(s):
    y = leaf() * 2
    z = (y * 3 + y * y).sum()
    y.register_hook(lambda g: (z, s) and None)


def hook_of_a_base_that_holds_a_view(s):
    y = leaf(2, 3) * 2
    v = y[0]
    y.register_hook(lambda g: (v, s) and None)


def hooks_of_a_node(s):
    y = leaf() * 2
    y.grad_fn.register_hook(lambda a, b: (y, s) and None)
    y.grad_fn.register_prehook(lambda a: (y, s) and None)


def hook_of_a_node_that_holds_the_node(s):
    y = leaf() * 2
    node = y.grad_fn
    node.register_hook(lambda a, b: (node, s) and None)


def hook_that_nothing_can_be_cleared_from(s):
    x = leaf()
    x.s = s
    x.register_hook(x.mul)


def result_on_ctx(s):
    def keep(ctx, x, y):
        ctx.y, ctx.s = y, s

    Scale.apply(leaf(), keep)


def result_in_a_list_on_ctx(s):
    def keep(ctx, x, y):
        ctx.kept = [{"y": y, "s": s}]

    Scale.apply(leaf(), keep)


def later_result_on_ctx(s):
    box = []

    def keep(ctx, x, y):
        ctx.box, ctx.s = box, s

    y = Scale.apply(leaf(), keep)
    for _ in range(20):
        y = y * 2 + y
    box.append(y.sum())


def ctx_and_leaf_hook(s):
    def keep(ctx, x, y):
        ctx.y, ctx.s = y, s

    x = leaf()
    x.register_hook(lambda g: (x, s) and None)
    Scale.apply(x * 1, keep).sum().backward()


def module_with_a_hook(s):
    m = nn.Linear(3, 2)
    m.s = s
    for p in m.parameters():
        p.register_post_accumulate_grad_hook(lambda p: m.zero_grad())
    m(tenon.ones(1, 3)).sum().backward()


def written_result_on_ctx(s):
    def keep(ctx, x, y):
        ctx.s = s
        ctx.kept = []

    y = Scale.apply(leaf(), keep)
    z = tenon.zeros(3)
    z.add_(y)
    y.grad_fn.kept.append(z)


CYCLES = [
    hook_of_a_leaf,
    hook_of_a_parameter,
    hook_after_accumulation,
    hook_of_a_leaf_after_backward,
    hook_of_a_result,
    hook_that_holds_what_came_after,
    hook_of_a_base_that_holds_a_view,
    hooks_of_a_node,
    hook_of_a_node_that_holds_the_node,
    hook_that_nothing_can_be_cleared_from,
    result_on_ctx,
    result_in_a_list_on_ctx,
    later_result_on_ctx,
    ctx_and_leaf_hook,
    module_with_a_hook,
    written_result_on_ctx,
]


@pytest.mark.parametrize("cycle", CYCLES)
def test_a_cycle_through_the_graph_is_freed(cycle):
    seen, _ = seen_of(cycle)
    collect()
    assert seen() is None


@pytest.mark.parametrize("in_list", [False, True])
def test_a_result_on_the_ctx_of_an_operator_is_freed(in_list):
    with Library("collect_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x.detach() * 2, "CPU")
        seen = []

        def setup(ctx, inputs, output):
            s = Sentinel()
            seen.append(weakref.ref(s))
            if in_list:
                ctx.kept = [output, s]
            else:
                ctx.y, ctx.s = output, s

        tenon.library.register_autograd("collect_test::twice", lambda ctx, g: g * 2, setup_context=setup)
        y = tenon.ops.collect_test.twice(leaf())
        gc.collect()
        assert seen[0]() is not None
        del y
        gc.collect()
        assert seen[0]() is None


# What C++ still holds stays, with its attributes and its hooks.


def test_a_graph_that_is_alive_keeps_the_hooks_of_its_leaf():
    calls = []

    def make(s):
        x = leaf()
        x.register_hook(lambda g: calls.append((x, s)))
        return (x * x).sum()

    seen, loss = seen_of(make)
    gc.collect()
    assert seen() is not None
    loss.backward()
    assert len(calls) == 1 and calls[0][0].tolist() == [1, 1, 1]


def test_a_later_result_keeps_what_is_on_ctx():
    def keep(ctx, x, y):
        ctx.y, ctx.s = y, Sentinel()

    box = []
    y = Scale.apply(leaf(), lambda ctx, x, y: (keep(ctx, x, y), box.append(weakref.ref(ctx.s))))
    z = (y * 3).sum()
    del y
    gc.collect()
    assert box[0]() is not None
    z.backward()
    del z
    gc.collect()
    assert box[0]() is None


def test_a_gradient_keeps_its_graph():
    seen = []

    def make():
        x, w = leaf(), leaf()
        y = x * w
        s = Sentinel()
        seen.append(weakref.ref(s))
        y.register_hook(lambda g: (y, s) and None)
        (g,) = tenon.autograd.grad((y * y).sum(), x, create_graph=True)
        return g, w

    g, w = make()
    gc.collect()
    assert seen[0]() is not None
    g.sum().backward()
    assert w.grad is not None
    del g, w
    gc.collect()
    assert seen[0]() is None


def test_collections_while_backward_runs_take_nothing_away():
    x = leaf()
    ran = []

    def collect(g):
        gc.collect()
        ran.append(g)

    y = x * 2
    y.register_hook(collect)
    y.register_hook(lambda g: collect(g) or g * 2)
    z = Scale.apply(y, lambda ctx, x, y: setattr(ctx, "y", y))
    del y
    z.register_hook(collect)
    loss = z.sum()
    del z
    loss.backward()
    assert len(ran) == 3 and x.grad.tolist() == [8, 8, 8]


def test_collections_beside_threads_that_write_take_nothing_away():
    stop = threading.Event()
    errors = []

    def work():
        try:
            while not stop.is_set():
                x = tenon.ones(200, 200, requires_grad=True)
                y = Scale.apply(x, lambda ctx, x, y: setattr(ctx, "y", y))
                calls = []
                y.register_hook(lambda g: calls.append(y))
                y.mul_(2)
                y[0].mul_(3)
                y.add_(x)
                y.register_hook(lambda g: calls.append(y))
                y.sum().backward()
                assert len(calls) == 2 and x.grad[1, 0].item() == 5 and x.grad[0, 0].item() == 13
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    gc.freeze()  # a collection looks at what is made here alone, whatever other tests have left
    for t in threads:
        t.start()
    for _ in range(200):
        gc.collect()
    stop.set()
    for t in threads:
        t.join()
    gc.unfreeze()
    assert not errors


def test_loops_with_cycles_do_not_grow():
    def count():
        collect()
        return sum(isinstance(o, (tenon.Tensor, Sentinel)) for o in gc.get_objects())

    for cycle in CYCLES:
        cycle(Sentinel())
    before = count()
    for _ in range(20):
        for cycle in CYCLES:
            cycle(Sentinel())
    assert count() <= before
