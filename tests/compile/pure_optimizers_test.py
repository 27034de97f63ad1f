"""compile(pure=True): training steps with optimizers train what eager trains, whatever becomes of gradients, rates and counts
between the steps and inside them."""

import random

import pytest
from beside_eager import bits
from pure_cases import alike

import tenon
from tenon import nn

OPTIMIZERS = {
    "SGD": lambda groups: tenon.optim.SGD(groups, lr=0.1),
    "SGD momentum": lambda groups: tenon.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True),
    "SGD decay": lambda groups: tenon.optim.SGD(groups, lr=0.1, weight_decay=0.1, maximize=True),
    "Adam": lambda groups: tenon.optim.Adam(groups, lr=0.1),
    "Adam amsgrad": lambda groups: tenon.optim.Adam(groups, lr=0.1, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda groups: tenon.optim.AdamW(groups, lr=0.1),
    "NAdam": lambda groups: tenon.optim.NAdam(groups, lr=0.1),
    "RMSprop": lambda groups: tenon.optim.RMSprop(groups, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda groups: tenon.optim.Adagrad(groups, lr=0.1, lr_decay=0.1),
    "Adadelta": lambda groups: tenon.optim.Adadelta(groups),
}
#: Those whose rate and count of steps replays read afresh.
REPLAYED = ("SGD", "Adam")


def step_of(order, set_to_none, optimizer, model, loss):
    """A training step: where zero_grad() is called, and whether the optimizer calls the forward pass itself."""

    def closure(x, used):
        if order == "closure":
            optimizer.zero_grad(set_to_none)
        value = loss(x, used)
        value.backward()
        return value

    def step(x, used):
        if order == "closure":
            return optimizer.step(lambda: closure(x, used))
        if order == "before":
            optimizer.zero_grad(set_to_none)
        value = closure(x, used)
        if order == "between":
            optimizer.step()
            optimizer.zero_grad(set_to_none)
            return value
        optimizer.step()
        if order == "after the model's":
            for p in model:
                p.grad = None
        return value

    return step


def program_of(seed):
    """A random program, which trains by a step that it compiles by `c`, and returns all that it made of the parameters."""
    draw = random.Random(seed)
    kind = draw.choice([*OPTIMIZERS])
    order = draw.choice(["before", "between", "between", "after the model's", "closure", "never"])
    set_to_none = draw.random() < 0.6
    frozen = {i for i in range(5) if draw.random() < 0.2}
    groups = draw.choice([[[0, 1, 2, 3, 4]], [[0, 1], [2, 3, 4]], [[4], [2, 0], [1, 3]]])
    comes_and_goes = draw.random() < 0.5
    clears_outside = draw.random() < 0.3
    schedule = draw.choice([None, "exponential", "steps", "by hand", "one group by hand"])
    uses = [[True, i // 3 % 2 == 0 or not comes_and_goes, i // 4 % 2 == 0 or not comes_and_goes] for i in range(12)]

    def program(c):
        params = [nn.Parameter(tenon.linspace(-1, 1, 3) * (i + 1), requires_grad=i not in frozen or i == 0) for i in range(5)]
        optimizer = OPTIMIZERS[kind]([{"params": [params[i] for i in group], "lr": 0.05 * (n + 1)} for n, group in enumerate(groups)])
        scheduler = None
        if schedule == "exponential":
            scheduler = tenon.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
        if schedule == "steps":
            scheduler = tenon.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def loss(x, used):
            y = x * params[0]
            if used[1]:
                y = y * params[1] + params[2]
            if used[2]:
                y = (y + params[3]) * params[4].cos()
            return y.sin().square().sum()  # which stays small

        step, seen = c(step_of(order, set_to_none, optimizer, params[:2], loss)), []
        for i, used in enumerate(uses):
            seen.append(bits(step(tenon.linspace(0, 1, 3), used)))
            seen.append([(bits(p), None if p.grad is None else bits(p.grad)) for p in params])
            if scheduler:
                scheduler.step()
            if schedule == "by hand":
                optimizer.param_groups[-1]["lr"] = 0.5 / (i + 2)
            if schedule == "one group by hand" and i == 5:
                optimizer.param_groups[0]["lr"] = 1
            if clears_outside and i % 3 == 2:
                optimizer.zero_grad(set_to_none=not set_to_none)
        return seen, optimizer

    return program, f"{kind}, zero_grad {order}, set_to_none={set_to_none}, {schedule}, groups {groups}, frozen {frozen}"


@pytest.mark.parametrize("part", range(10))
def test_random_training_programs(part):
    for seed in range(part * 20, part * 20 + 20):
        program, what = program_of(seed)
        try:
            alike(program)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {what}: {error}") from None


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in OPTIMIZERS if kind.startswith(REPLAYED)])
def test_gradients_that_are_cleared_after_the_step(kind, set_to_none):
    """The rate and the count of steps are read at each replay, although no parameter has a gradient when a call ends."""

    def train(c):
        w = nn.Parameter(tenon.tensor([1.0, -2.0]))
        optimizer = OPTIMIZERS[kind]([w])

        def step(x):
            (w * w * x).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none)

        f = c(step)
        for i in range(10):
            optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            f(tenon.ones(2))
        return f, w.tolist(), optimizer.state_dict()["state"].get(0, {}).get("step")

    replayed, *ours = train(lambda f: tenon.compile(f, pure=True))
    _, *theirs = train(lambda f: f)
    assert ours == theirs
    assert replayed.explain().of("replays")[0]["runs"] >= 6


def test_a_parameter_without_a_gradient_that_the_program_writes_itself():
    """Nothing of what the program does to it follows from the optimizer's rate."""

    def program(c):
        w, v = nn.Parameter(tenon.ones(2)), nn.Parameter(tenon.ones(2), requires_grad=False)
        optimizer = tenon.optim.SGD([w, v], lr=0.5)

        def step(x):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()
            v.add_(x, alpha=-0.5)

        f, seen = c(step), []
        for i in range(8):
            optimizer.param_groups[0]["lr"] = 0.5 if i < 5 else 0.25
            f(tenon.ones(2))
            seen.append((w.tolist(), v.tolist()))
        return seen

    alike(program)


def test_two_steps_in_one_call():
    def program(c):
        w = nn.Parameter(tenon.ones(2))
        optimizer = tenon.optim.SGD([w], lr=0.5)

        def step(x):
            for _ in range(2):
                (w * w * x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()

        f = c(step)
        for i in range(8):
            optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            f(tenon.ones(2))
        return w.tolist()

    alike(program)


def test_a_rate_that_is_a_tensor():
    def program(c):
        w = nn.Parameter(tenon.ones(2))
        optimizer = tenon.optim.SGD([w], lr=tenon.tensor(0.5))

        def step(x):
            (w * w * x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        f = c(step)
        for _ in range(6):
            f(tenon.ones(2))
            optimizer.param_groups[0]["lr"].mul_(0.5)
        return w.tolist()

    alike(program)


WRONG = {
    "no rate": lambda o: o.param_groups[0].pop("lr"),
    "a rate that is None": lambda o: o.param_groups[0].update(lr=None),
    "a rate that is a text": lambda o: o.param_groups[0].update(lr="0.1"),
    "a rate beyond 64 bits": lambda o: o.param_groups[0].update(lr=2**70),
    "a rate beyond float64": lambda o: o.param_groups[0].update(lr=10**400),
    "no parameters": lambda o: o.param_groups[0].pop("params"),
    "no groups": lambda o: delattr(o, "param_groups"),
    "a count beyond 64 bits": lambda o: [s.update(step=2**70) for s in o.state.values()],
    "the largest count": lambda o: [s.update(step=2**63 - 1) for s in o.state.values()],
    "a count that is a text": lambda o: [s.update(step="1") for s in o.state.values()],
    "no state": lambda o: o.state.clear(),
    "a state that is None": lambda o: setattr(o, "state", None),
    "no moment": lambda o: [s.pop("exp_avg", None) for s in o.state.values()],
    "a moment of another shape": lambda o: [s.update(exp_avg=tenon.zeros(7)) for s in o.state.values()],
    "no decay": lambda o: o.param_groups[0].pop("weight_decay"),
    "a decay beyond 64 bits": lambda o: o.param_groups[0].update(weight_decay=2**70),
    "betas that are none": lambda o: o.param_groups[0].update(betas=None),
    "no betas": lambda o: o.param_groups[0].pop("betas", None),
    "a rate that is NaN": lambda o: o.param_groups[0].update(lr=float("nan")),
    "a parameter that is a text": lambda o: o.param_groups[0]["params"].append("w"),
}


@pytest.mark.parametrize("calls", range(5))
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_what_a_step_refuses_leaves_what_eager_leaves(kind, wrong, calls):
    """After so many calls, something of the optimizer is wrong: gradients, buffers and the generator are as after eager's error."""

    def train(c):
        tenon.manual_seed(3)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
        optimizer = OPTIMIZERS[kind](model.parameters())

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()

        f, x = c(step), tenon.linspace(-1, 1, 15).reshape(5, 3)
        for _ in range(calls):
            f(x)
        WRONG[wrong](optimizer)
        error = None
        try:
            f(x)
        except Exception as e:
            error = type(e), str(e)
        state = {name: bits(t) for name, t in model.state_dict().items()}
        return error, state, [None if p.grad is None else bits(p.grad) for p in model.parameters()], bits(tenon.rand(4))

    ours, theirs = train(lambda f: tenon.compile(f, pure=True)), train(lambda f: f)
    assert ours == theirs
