"""compile(pure=True): what tensors have beside their elements, and modes, may change between replays: results are eager's."""

import collections
import sys
import warnings

import pytest
from pure_cases import Cases, alike, warm, x

import tenon
from tenon import nn
from tenon.library import Library

case = Cases()


# Hooks


def _accumulating(c):
    w = nn.Parameter(tenon.ones(2))
    f = c(lambda x: (w * x).sum().backward())
    warm(f)
    w.grad.zero_()
    return w, f


@case
def a_hook_of_a_gradient(c):
    w, f = _accumulating(c)
    handle = w.register_hook(lambda g: g * 10)
    f(x())
    first = w.grad.clone()
    handle.remove()
    f(x())
    return first, w.grad


@case
def a_hook_from_the_start(c):
    w = nn.Parameter(tenon.ones(2))
    k = [1.0]
    w.register_hook(lambda g: g * k[0])
    f = c(lambda x: (w * x).sum().backward())
    warm(f)
    k[0] = 10.0
    f(x())
    return w.grad


@case
def a_hook_after_accumulation(c):
    w, f = _accumulating(c)
    called = []
    w.register_post_accumulate_grad_hook(lambda p: called.append(p.grad.clone()))
    f(x())
    return w.grad, called


@case
def a_hook_of_the_node_that_accumulates(c):
    w, f = _accumulating(c)
    (w * 1).grad_fn.next_functions[0][0].register_prehook(lambda grads: tuple(g * 10 for g in grads))
    f(x())
    return w.grad


@case
def a_hook_of_an_argument(c):
    f = c(lambda x, w: (w * x).sum().backward())
    w = nn.Parameter(tenon.ones(2))
    warm(f, w)
    w.register_hook(lambda g: g * 10)
    f(x(), w)
    return w.grad


# Gradients


@case
def a_frozen_parameter_that_has_a_gradient(c):
    def run(early):
        w, v = nn.Parameter(tenon.ones(2), requires_grad=False), nn.Parameter(tenon.ones(2))
        optimizer = tenon.optim.SGD([w, v], lr=0.1)

        def step(x):
            if early:
                optimizer.zero_grad()
            (w * v * x).sum().backward()
            optimizer.step()
            if not early:
                optimizer.zero_grad()

        f = c(step)
        warm(f)
        w.grad = tenon.ones(2)
        f(x())
        return w, w.grad, v

    return run(True), run(False)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_a_layer_frozen_for_a_while(kind):
    def program(c):
        tenon.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        optimizer = getattr(tenon.optim, kind)(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

        f, seen = c(step), []
        for i in range(20):
            model[0].requires_grad_(i // 5 % 2 == 0)
            f(x())
            seen.append([(p.detach().clone(), None if p.grad is None else p.grad.clone()) for p in model.parameters()])
        return seen

    alike(program)


@case
def addresses(c):
    both = tenon.arange(12.0)
    f = c(lambda x, y: x * (2.0 if x.data_ptr() == y.data_ptr() else 3.0))
    apart = [f(both[:6], both.clone()[:6]) for _ in range(5)]
    return apart, f(both[:6], both[:6])


@case
def a_gradient_that_is_another_tensor(c):
    """Identities of gradients that are set."""
    w, v, held = tenon.ones(2), tenon.ones(2), tenon.zeros(2)

    def f(x):
        w.grad = held
        v.grad = x * 2
        v.grad, w.grad = w.grad, v.grad

    f, seen = c(f), []
    for _ in range(5):
        f(x())
        seen.append((w.grad, v.grad is held))
    return seen


@case
def one_gradient_of_two_tensors(c):
    w, v = tenon.ones(2), tenon.ones(2)

    def f(x):
        w.grad = v.grad = x * 2

    f, seen = c(f), []
    for _ in range(5):
        f(x())
        seen.append(w.grad is v.grad)
    return seen


@case
def a_result_with_a_gradient(c):
    def f(x):
        y = x * 2
        y.grad = x * 3
        return y

    f = c(f)
    return warm(f)


# Attributes of tensors


@case
def an_attribute_of_an_argument(c):
    def given(scale):
        t = x()
        t.scale = scale
        return t

    f = c(lambda x: x * x.scale)
    return [f(given(k)) for k in (1, 1, 1, 2, 2, 2, 1)]


@case
def an_attribute_that_is_set(c):
    def f(x):
        x.tag = 5
        return x * 2

    f, seen = c(f), []
    for _ in range(5):
        given = x()
        f(given)
        seen.append(vars(given))
    return seen


@case
def an_attribute_of_a_captured_tensor_set(c):
    held = x()

    def f(x):
        held.tag = x * 2

    f, seen = c(f), []
    for k in range(5):
        f(x() * k)
        seen.append(held.tag)
    return seen


@case
def an_attribute_of_a_result(c):
    def f(x):
        y = x * 2
        y.tag = 5
        return y

    f = c(f)
    return [vars(f(x())) for _ in range(5)]


@case
def the_class_of_a_result(c):
    f = c(lambda x: nn.Parameter(x * 2, requires_grad=False))
    return [type(f(x())).__name__ for _ in range(5)]


# Modes


@case
def the_number_of_threads(c):
    threads = tenon.get_num_threads()
    f = c(lambda x: x * tenon.get_num_threads())
    try:
        tenon.set_num_threads(1)
        before = warm(f)
        tenon.set_num_threads(2)
        return before, warm(f)
    finally:
        tenon.set_num_threads(threads)


@case
def anomaly_detection(c):
    def run(early):
        w = nn.Parameter(tenon.tensor([1.0, 1.0]))
        f = c(lambda x: (w.sqrt() * x * 0).sum().backward())
        with tenon.autograd.set_detect_anomaly(early):
            warm(f)
        with tenon.no_grad():
            w.zero_()
        with tenon.autograd.detect_anomaly(), pytest.raises(RuntimeError) as error:
            f(x())
        return str(error.value).split(":")[0]

    return run(False), run(True)


@case
def hooks_of_saved_tensors(c):
    w = nn.Parameter(tenon.ones(2))
    f = c(lambda x: (w * x * w).sum().backward())
    warm(f)
    w.grad = None
    with tenon.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        f(x())
    return w.grad


@case
def hooks_of_saved_tensors_that_change(c):
    """Also their effects: they run at every call."""
    w, called = nn.Parameter(tenon.ones(2)), []
    f = c(lambda x: (w * x * w).sum().backward())

    def inside(factor):
        def pack(t):
            called.append(factor)
            return t * factor

        w.grad = None
        with tenon.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            f(x())
        return w.grad.tolist()

    def outside():
        w.grad = None
        f(x())
        return w.grad.tolist()

    seen = [outside() for _ in range(4)] + [inside(k) for k in (1, 1, 1, 1, 2, 2, 3)]
    return seen + [outside() for _ in range(4)], called


@case
def hooks_of_saved_tensors_that_are_disabled(c):
    w = nn.Parameter(tenon.ones(2))

    def step(x):
        with tenon.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
            loss = (w * x * w).sum()
        loss.backward()

    f = c(step)
    warm(f)
    with tenon.autograd.graph.disable_saved_tensors_hooks("not now"):
        with pytest.raises(RuntimeError) as error:
            f(x())
    f(x())
    return w.grad, str(error.value)


@case
def the_seed(c):
    f = c(lambda x: x * tenon.initial_seed())
    tenon.manual_seed(1)
    before = warm(f)
    tenon.manual_seed(2)
    return before, warm(f)


@case
def the_state_of_the_generator(c):
    f = c(lambda x: x * tenon.get_rng_state().sum())
    tenon.manual_seed(1)
    before = warm(f)
    tenon.rand(3)
    return before, warm(f)


# Kernels


REGISTERED = {
    "one operator": lambda x: x.exp(),
    "a fused one": lambda x: x.exp() + 1,
    "by its name": lambda x: tenon.ops.aten.exp(x) + 1,
    "by an overload": lambda x: tenon.ops.aten.exp.default(x) + 1,
}


@pytest.mark.parametrize("what", REGISTERED)
def test_a_kernel_registered_and_removed(what):
    def program(c):
        f = c(REGISTERED[what])
        before = warm(f)
        mine = Library("aten", "IMPL", "CPU")
        mine.impl("exp", lambda x: x * 100)
        during = warm(f)
        mine._destroy()
        return before, during, warm(f)

    alike(program)


def test_a_kernel_of_a_composite_operator():
    w = tenon.ones(2, 2)

    def program(c):
        f = c(lambda x: tenon.nn.functional.linear(x, w) + 1)
        before = warm(f)
        mine = Library("aten", "IMPL", "CPU")
        mine.impl("linear", lambda x, w, b=None: x * 100)
        during = warm(f)
        mine._destroy()
        return before, during, warm(f)

    alike(program)


# What does not change is no reason to refuse


Pair = collections.namedtuple("Pair", "scale offset")


PAIR = Pair(2.0, 1.0)


DEVICE = tenon.device("cpu")


CONSTANTS = {
    "dtype": lambda x: x.to(tenon.float64) * 2,
    "dtype of a new tensor": lambda x: x + tenon.ones(2, dtype=tenon.int64),
    "dtype compared": lambda x: x * 2 if x.dtype is tenon.float32 else x,
    "limits of a dtype": lambda x: x + tenon.finfo(x.dtype).eps,
    "device": lambda x: x + tenon.ones(2, device=DEVICE),
    "layout": lambda x: x + tenon.ones(2, layout=tenon.strided),
    "memory format": lambda x: x.clone(memory_format=tenon.preserve_format) + 1,
    "overload": lambda x: tenon.ops.aten.add.Tensor(x, x),
    "packet": lambda x: tenon.ops.aten.relu(x),
    "field": lambda x: x * PAIR.scale + PAIR.offset,
    "field of a new tuple": lambda x: x * Pair(3.0, 1.0).scale,
}


@pytest.mark.parametrize("what", CONSTANTS)
def test_constants_do_not_refuse(what):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = tenon.compile(CONSTANTS[what], pure=True)
        results = warm(f)
    assert all(r.dtype == results[0].dtype and r.tolist() == CONSTANTS[what](x()).tolist() for r in results)
    assert next(e["runs"] for e in f.explain().of("replays")) == 3


@pytest.mark.parametrize("name", case)
def test_as_eager(name):
    alike(case[name])


def test_a_compiled_function_goes_without_running_python():
    """What a finalizer in Python raises is lost, also KeyboardInterrupt."""
    compiled = tenon.compile(lambda x: x + 1)
    compiled(x())
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
    try:
        del compiled
    finally:
        sys.setprofile(None)
    assert seen == []
