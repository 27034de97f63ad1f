"""compile(pure=True): replays have eager's results, effects and errors, and stop where something they depend on has changed."""

import functools
import gc
import os
import re
import sys
import threading
import warnings
import weakref

import numpy
import pytest
from beside_eager import Description, bits, difference, outcome

import tenon
import tenon.nn.functional as F
from tenon import nn

def replays(f):
    """How often a replay ran."""
    return next(e["runs"] for e in f.explain().of("replays"))


def refusal(f):
    found = f.explain().of("refused")
    return found[0]["reason"] if found else None


def pure(f):
    """Compiled, with every warning an error: what is refused says so there."""
    return tenon.compile(f, pure=True)


def beside(f, make, calls=6, changes=None):
    """Calls `f(*arguments)` eager and pure on arguments of their own; compares all that can be seen after each call."""
    compiled = pure(f)
    ours, theirs = make(), make()
    for call in range(calls):
        if changes:
            changes(call, theirs)
        expected = outcome(lambda: f(*theirs), theirs)
        if changes:
            changes(call, ours)
        found = difference(expected, outcome(lambda: compiled(*ours), ours))
        assert found is None, f"call {call}: {found}"
    return compiled


@pytest.fixture(autouse=True)
def refusals_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_chain_is_replayed_from_the_third_call_on():
    f = beside(lambda x, a, b: F.silu(x * a + b) * x.tanh() + b, lambda: [tenon.linspace(-2, 2, 16) * k for k in (1, 2, 3)])
    assert replays(f) == 4


def test_a_replay_calls_no_operator(monkeypatch):
    monkeypatch.delenv("TENON_REPLAY", raising=False)
    f = pure(lambda x: (x * 2 + 1).relu().sum(0))
    x = tenon.ones(4, 4)
    for _ in range(3):
        f(x)
    with tenon.dispatch.trace() as lines:
        f(x)
    assert not [line for line in lines if "[call]" in line]


def test_a_result_is_not_written_by_the_next_replay():
    def program(x):
        inner = (x * 2).exp()  # as large as memory that replays keep; the result could take it over
        return inner * inner.cumsum(0) + 1

    f, x = pure(program), tenon.arange(1024).reshape(32, 32) / 1024
    results = [f(x + i) for i in range(6)]
    assert replays(f) == 4
    for i, result in enumerate(results):
        assert result.equal(program(x + i))


def test_what_dies_in_the_program_is_not_stored_by_a_replay():
    def softmax(x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    x, moved = tenon.ones(256, 256), []
    for options in ({}, {"pure": True}):
        f = tenon.compile(softmax, **options)
        for _ in range(5):
            f(x)
        moved.append(re.search(r"moves (.*) instead", str(f.explain()))[1])
    assert moved == ["513.0 KiB"] * 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "bool", "complex64"])
def test_dtypes_and_strides(dtype):
    values = tenon.arange(24).reshape(4, 6).to(getattr(tenon, dtype))
    for view in (values, values.t(), values[::2], values.flip(0), values[:, 1:2].expand(4, 3), values[0, 0], values[:0]):
        f = pure(lambda x: (x * x + x, x.clone(), x.t() if x.dim() == 2 else x))
        for _ in range(3):
            got = f(view)
        want = f.__wrapped__(view)
        assert difference(Description().of(list(want)), Description().of(list(got))) is None


def test_structures_of_arguments_and_results():
    def f(batch, *, scale, pair):
        return {"sum": batch["x"] + pair[0], "list": [batch["x"] * scale, None, "text"], "same": batch["x"]}

    compiled = pure(f)
    x, y = tenon.ones(3), tenon.arange(3.0)
    for _ in range(4):
        out = compiled({"x": x}, scale=2.0, pair=(y, y))
    assert replays(compiled) == 2 and out["same"] is x and out["list"][1:] == [None, "text"]
    assert out["sum"].tolist() == [1, 2, 3] and out["list"][0].tolist() == [2, 2, 2]
    assert compiled({"x": x}, scale=3.0, pair=(y, y))["list"][0].tolist() == [3, 3, 3]
    assert compiled({"x": x}, pair=(y, y), scale=3.0)["list"][0].tolist() == [3, 3, 3]


def test_writes_count_and_keep_their_places():
    def f(x, y):
        x.mul_(2)
        y[1:].add_(x[0])
        return x[::2], y

    f = beside(f, lambda: [tenon.arange(4.0), tenon.ones(3)])
    assert replays(f) == 4


def test_arguments_that_share_memory_are_another_case():
    def f(x, y):
        x.add_(1)
        return y * 2

    compiled = pure(f)
    for call in range(8):
        whole = tenon.arange(8.0)
        x, y = (whole[:4], whole[4:].clone()) if call < 4 else (whole[:4], whole[:4])
        expected = f(x.clone(), y.clone()) if call < 4 else (x + 1) * 2
        assert compiled(x, y).equal(expected), call


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.scale, self.off = 2.0, nn.Dropout(0.0)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) * self.scale
        return self.off(x)


MODULE_CHANGES = {
    "an option": lambda m: setattr(m, "scale", 3.0),
    "an option of a part": lambda m: setattr(m.off, "p", 1.0),
    "a parameter": lambda m: setattr(m.layers[0], "weight", nn.Parameter(tenon.ones(2, 2))),
    "memory of a parameter": lambda m: setattr(m.layers[0].weight, "data", tenon.ones(2, 2)),
    "a parameter that is gone": lambda m: setattr(m.layers[0], "bias", None),
    "another part": lambda m: m.layers.append(nn.Linear(2, 2)),
    "a hook": lambda m: m.layers[0].register_forward_hook(lambda m, args, y: y * 3),
    "a second hook": lambda m: [m.off.register_forward_hook(lambda m, args, y, k=k: y * k) for k in (2, 3)],
    "a forward of its own": lambda m: setattr(m, "forward", lambda x: x * 5),
    "evaluation": lambda m: m.eval(),
}


@pytest.mark.parametrize("what", MODULE_CHANGES)
@pytest.mark.parametrize("given", ["an argument", "captured", "itself"])
def test_what_modules_consist_of_is_compared(what, given):
    def calls(c):
        tenon.manual_seed(0)
        model = Scaled()
        f = {"an argument": c(lambda m, x: m(x)), "captured": c(lambda m, x: model(x)), "itself": c(lambda m, x: model.forward(x))}[given]
        if given == "itself":
            compiled = c(model)
            f = lambda m, x: compiled(x)  # noqa: E731
        out = []
        with tenon.no_grad():
            for call in range(9):
                if call in (4, 6):
                    MODULE_CHANGES[what](model)
                out.append(f(model, tenon.ones(1, 2)))
        return out

    expected = outcome(lambda: calls(lambda f: f))
    found = difference(expected, outcome(lambda: calls(functools.partial(tenon.compile, pure=True))))
    assert found is None, found


OPTIMIZER_CHANGES = {
    "weight decay": lambda o: o.param_groups[0].update(weight_decay=0.5),
    "direction": lambda o: o.param_groups[0].update(maximize=True),
    "another parameter": lambda o: o.add_param_group({"params": [nn.Parameter(tenon.ones(2))], "lr": 1.0}),
    "a state that is loaded": lambda o: o.load_state_dict(o.state_dict()),
    "a state that is gone": lambda o: o.state.clear(),
    "a hook": lambda o: o.register_step_post_hook(lambda o, args, kwargs: o.param_groups[0]["params"][0].data.mul_(0.5)),
}


@pytest.mark.parametrize("what", OPTIMIZER_CHANGES)
@pytest.mark.parametrize("kind", ["SGD momentum", "Adam"])
def test_what_optimizers_consist_of_is_compared(kind, what):
    def calls(c):
        w = nn.Parameter(tenon.ones(2))
        optimizer = OPTIMIZERS[kind]([w])

        def step(x):
            optimizer.zero_grad()
            (w * w * x).sum().backward()
            optimizer.step()

        f, out = c(step), []
        for call in range(9):
            if call == 5:
                OPTIMIZER_CHANGES[what](optimizer)
            f(tenon.ones(2))
            out.append(w.tolist())
        return out, optimizer

    expected = outcome(lambda: calls(lambda f: f))
    found = difference(expected, outcome(lambda: calls(functools.partial(tenon.compile, pure=True))))
    assert found is None, found


def test_modules_their_parts_and_modes():
    def run():
        tenon.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
        return model, tenon.linspace(-1, 1, 12).reshape(3, 4)

    def calls(c):
        model, x = run()
        f = c(model)
        out = []
        with tenon.no_grad():
            for call in range(16):
                if call == 4:
                    model.eval()
                if call == 8:
                    model[0].weight = nn.Parameter(tenon.ones(4, 4))
                if call == 12:
                    model[0].weight.data = tenon.zeros(4, 4)
                out.append(f(x))
        return out, model

    expected = outcome(lambda: calls(lambda m: m))
    found = difference(expected, outcome(lambda: calls(functools.partial(tenon.compile, pure=True))))
    assert found is None, found


OPTIMIZERS = {
    "SGD": lambda p: tenon.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: tenon.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam": lambda p: tenon.optim.Adam(p, lr=0.01),
    "Adam amsgrad": lambda p: tenon.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1, maximize=True),
    "AdamW": lambda p: tenon.optim.AdamW(p, lr=0.01, betas=(0.8, 0.95)),
}


def training(c, optimizer, schedule, cleared, steps=24):
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.25), nn.Linear(8, 3))
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    scheduler = tenon.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.5) if schedule else None

    @c
    def step(x, y):
        if cleared == "before":
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if cleared == "after":
            optimizer.zero_grad()
        return loss

    out = []
    for i in range(steps):
        out.append(step(tenon.randn(7 if i % 4 else 5, 6), tenon.randint(0, 3, (7 if i % 4 else 5,))))
        if scheduler:
            scheduler.step()
    return (out, model, [p.grad for p in model.parameters()], optimizer), step


@pytest.mark.parametrize("schedule", [False, True])
@pytest.mark.parametrize("cleared", ["before", "after"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_steps(optimizer, cleared, schedule):
    """Steps, rates and random numbers are read afresh: nothing is recorded again but the other size of the last batch."""
    expected = outcome(lambda: training(lambda f: f, optimizer, schedule, cleared)[0])
    steps = []

    def run():
        result, step = training(pure, optimizer, schedule, cleared)
        steps.append(step)
        return result

    found = difference(expected, outcome(run))
    assert found is None, found
    assert refusal(steps[0]) is None and replays(steps[0]) >= 18


def test_optimizers_among_the_arguments_make_their_state_in_a_first_step():
    def step(model, optimizer, x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    def train(f):
        tenon.manual_seed(0)
        for _ in range(3):
            model = nn.Linear(3, 2)
            optimizer = tenon.optim.Adam(model.parameters())
            for _ in range(6):
                f(model, optimizer, tenon.ones(4, 3))
            yield model.weight.tolist()

    f = pure(step)
    assert list(train(f)) == list(train(step))
    assert replays(f) >= 3 * 2


def test_a_parameter_that_the_program_writes_beside_the_optimizer():
    model = nn.Linear(2, 2)
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.5)

    @pure
    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        with tenon.no_grad():
            model.weight.add_(model.weight.grad, alpha=-0.5)

    with pytest.warns(UserWarning, match="beside the optimizer's step"):
        for _ in range(4):
            step(tenon.ones(1, 2))


def test_a_used_up_history_raises_what_eager_raises():
    w = tenon.ones(3, requires_grad=True)

    @pure
    def step(x):
        w.grad = None
        loss = (w * x).exp().sum()
        loss.backward()
        return loss

    for _ in range(4):
        loss = step(tenon.ones(3))
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    assert replays(step) == 2 and w.grad.equal(w.detach().exp())


def test_random_numbers_go_on_after_a_replay():
    def draws(c):
        tenon.manual_seed(7)
        like = (tenon.rand_like, tenon.randn_like, lambda x: tenon.randint_like(x, 1, 9))
        f = c(lambda x: F.dropout(x, 0.5) + tenon.rand(5) + tenon.randn(5) + sum(draw(x) for draw in like))
        out = []
        for call in range(8):
            out.append(f(tenon.ones(5)))
            if call == 4:
                tenon.manual_seed(1)
            out.append(tenon.rand(2))
        return out

    assert [bits(t) for t in draws(pure)] == [bits(t) for t in draws(lambda f: f)]


HELD = tenon.ones(3)
PLAN = tenon.cached_plan(lambda g, x: g.mul(x, 2.0))
ESCAPES = {
    "print": (lambda x: print(end="") or x + 1, "it prints, which a replay would not do"),
    "error stream": (lambda x: sys.stderr.write("") or x + 1, "it prints"),
    "item": (lambda x: x * x.sum().item(), "runs at once"),
    "if": (lambda x: x + 1 if x.sum() > 0 else x - 1, "runs at once"),
    "numpy": (lambda x: x + tenon.from_numpy((x * 2).numpy()), "a value was read"),
    "shapes": (lambda x: x[x > 0].sum(), "runs at once"),
    "seed": (lambda x: tenon.manual_seed(3) and x * 1, "it seeds the default generator"),
    "text": (lambda x: x + len(str(x)), "a value was read"),
    "elements": (lambda x: x * x.tolist()[0], "a value was read"),
    "elements of a captured tensor": (lambda x: x * HELD.numpy()[0], "a value was read"),
    "dlpack": (lambda x: x * float(numpy.from_dlpack(x)[0]), "a value was read"),
    "a plan": (lambda x: PLAN(x) * 2, "a value was read"),
    "a file": (lambda x: tenon.save(HELD, os.devnull) or x * 2, "a value was read"),
    "result": (lambda x: iter([x + 1]), "returns"),
}


def test_attention_that_drops_nothing_draws_nothing():
    layer, x = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), tenon.randn(2, 5, 16)

    def step():
        layer.zero_grad()
        layer(x).square().mean().backward()
        return [p.grad for p in layer.parameters()]

    f = beside(step, lambda: [])
    assert replays(f) == 4


@pytest.mark.parametrize("what", ESCAPES)
def test_what_no_replay_could_stand_for_is_refused_once(what):
    program, reason = ESCAPES[what]
    compiled = pure(program)
    x = tenon.ones(3)
    with pytest.warns(UserWarning, match=f"is not replayed, but recorded at every call: .*({reason})") as seen:
        for _ in range(5):
            got = compiled(x)
    assert len(seen) == 1 and replays(compiled) == 0 and refusal(compiled)
    if what not in ("seed", "result"):
        assert got.equal(program(x))


def test_counters_and_lists_that_grow_are_effects():
    seen, counts = [], {"calls": 0}

    def append(x):
        seen.append(x * 2)

    def count(x):
        counts["calls"] += 1
        return x + 1

    class Counting:
        calls = 0

        def __call__(self, x):
            self.calls += 1
            return x + self.calls

    counting = Counting()
    for f, expected in ((append, "seen"), (count, "calls"), (counting, "calls")):
        compiled = pure(f)
        with pytest.warns(UserWarning, match=f"it changes .*{expected}"):
            for _ in range(4):
                compiled(tenon.ones(1))
    assert len(seen) == 4 and counts["calls"] == 4 and counting.calls == 4


def test_hooks_and_history_are_refused():
    w = tenon.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="history"):
        f = pure(lambda x: w * x)
        for _ in range(3):
            f(tenon.ones(2))
    with tenon.no_grad():
        f = pure(lambda x: w * x)
        for _ in range(3):
            y = f(tenon.ones(2))
        assert replays(f) == 1 and not y.requires_grad
    with pytest.warns(UserWarning, match="history"):
        y = f(tenon.ones(2))
    y = f(tenon.ones(2))
    assert y.requires_grad


def test_errors_of_the_program_and_of_a_replay():
    def f(x, i):
        return x.index_select(0, i) * 2

    compiled = pure(f)
    x = tenon.arange(3.0)
    for _ in range(3):
        assert compiled(x, tenon.tensor([2])).tolist() == [4]
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        compiled(x, tenon.tensor([9]))
    assert compiled(x, tenon.tensor([1])).tolist() == [2]
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        compiled(tenon.ones(2, 2), "text")
    assert compiled(x, tenon.tensor([0])).tolist() == [0]


def test_threads_have_replays_of_their_own():
    weights = [tenon.full((4,), float(i)) for i in range(4)]
    compiled = pure(lambda x, w: (x * w).exp())
    wrong = []

    def work(w):
        x = tenon.linspace(0, 1, 4)
        want = (x * w).exp()
        wrong.extend(i for i in range(200) if not compiled(x, w).equal(want))

    threads = [threading.Thread(target=work, args=(w,)) for w in weights]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_inside_another_scope_it_is_part_of_that():
    inner = pure(lambda x: x * 2)
    outer = pure(lambda x: inner(x) + 1)
    x = tenon.ones(2)
    for _ in range(4):
        assert outer(x).tolist() == [3, 3] and inner(x).tolist() == [2, 2]
    assert replays(outer) == 2 and replays(inner) == 2
    with tenon.recording():
        y = inner(x)
    assert y.tolist() == [2, 2]


def test_a_program_that_differs_each_time_is_given_up():
    compiled = pure(lambda x, k: x * k)
    with pytest.warns(UserWarning, match="calls in a row differed"):
        for k in range(20):
            assert compiled(tenon.ones(1), float(k)).item() == k


def test_what_it_holds_goes_with_it():
    model = nn.Linear(2, 2)
    gone = weakref.ref(model)
    compiled = tenon.compile(model, pure=True)
    with tenon.no_grad():
        for _ in range(4):
            compiled(tenon.ones(1, 2))
    del model, compiled
    gc.collect()
    assert gone() is None
