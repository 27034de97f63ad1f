"""Training loops with optimizers and schedulers: eager's bits at every step, and no new plan once all steps were seen."""

import pytest
from beside_eager import alike, counted

import tenon
import tenon.nn.functional as F
from tenon import nn

OPTIMIZERS = {
    "SGD": lambda p: tenon.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: tenon.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "Adam": lambda p: tenon.optim.Adam(p, lr=0.01),
    "Adam amsgrad": lambda p: tenon.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1, maximize=True),
    "AdamW": lambda p: tenon.optim.AdamW(p, lr=0.01, betas=(0.8, 0.95)),
    "NAdam": lambda p: tenon.optim.NAdam(p, lr=0.01),
    "RMSprop": lambda p: tenon.optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5),
    "Adagrad": lambda p: tenon.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adadelta": lambda p: tenon.optim.Adadelta(p),
}


def model_and_data(dtype=tenon.float32):
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(dtype)
    return model, tenon.linspace(-1, 1, 42).reshape(7, 6).to(dtype), tenon.tensor([0, 1, 2, 0, 1, 2, 1])


def stepper(c, model, optimizer, x, y):
    @c
    def step(rows):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float16, tenon.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer(name, dtype):
    def program(c):
        model, x, y = model_and_data(dtype)
        optimizer = OPTIMIZERS[name](model.parameters())
        step = stepper(c, model, optimizer, x, y)
        return [step(slice(0, 7)) for _ in range(6)], model, optimizer

    alike(program)


SCHEDULES = {
    "cosine": lambda o: tenon.optim.lr_scheduler.CosineAnnealingLR(o, 20),
    "one cycle": lambda o: tenon.optim.lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=101),
    "steps": lambda o: tenon.optim.lr_scheduler.StepLR(o, 7, gamma=0.5),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_adam_with_a_scheduler_for_100_steps(schedule):
    """Numbers are inputs of a plan: other rates and step counts plan nothing."""
    planned = []

    def program(c):
        model, x, y = model_and_data()
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.05)
        scheduler = SCHEDULES[schedule](optimizer)
        step = stepper(c, model, optimizer, x, y)
        losses = []
        for i in range(100):
            before = counted()
            losses.append(step(slice(0, 7)))
            planned.append((i, counted() - before))
            scheduler.step()
        return losses, model, optimizer

    alike(program)
    assert not [(i, n) for i, n in planned if n and i > 3]


def test_a_rate_that_equals_another_number():
    def program(c):
        model, x, y = model_and_data()
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.5, betas=(0.9, 0.999))
        step = stepper(c, model, optimizer, x, y)
        losses, planned = [], []
        for lr in (0.5, 0.25, 0.9, 0.999, 1.0, 0.0, 1, 0.9, 0.1):
            optimizer.param_groups[0]["lr"] = lr
            before = counted()
            losses.append(step(slice(0, 7)))
            planned.append(counted() - before)
        # An integer is of another kind than a float; nothing else is news.
        assert not any(planned[i] for i in (3, 4, 5, 7, 8)), planned
        return losses, model

    alike(program)


def test_the_first_step_of_sgd_has_no_buffer():
    planned = []

    def program(c):
        model, x, y = model_and_data()
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step = stepper(c, model, optimizer, x, y)
        losses = []
        for _ in range(6):
            before = counted()
            losses.append(step(slice(0, 7)))
            planned.append(counted() - before)
        return losses, model, optimizer

    alike(program)
    for run in (planned[6:12], planned[12:18], planned[18:]):
        assert not any(run[2:]), run


def test_the_last_batch_of_an_epoch_is_smaller():
    planned = []

    def program(c):
        model, x, y = model_and_data()
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step = stepper(c, model, optimizer, x, y)
        losses = []
        for epoch in range(4):
            before = counted()
            losses += [step(slice(start, start + 3)) for start in (0, 3, 6)]
            planned.append((epoch, counted() - before))
        return losses, model

    alike(program)
    assert not [n for epoch, n in planned if epoch > 1 and n]


def test_parameters_that_join_and_freeze():
    def program(c):
        model, x, y = model_and_data()
        optimizer = tenon.optim.Adam(model[0].parameters(), lr=0.05)
        step = stepper(c, model, optimizer, x, y)
        losses = [step(slice(0, 7)) for _ in range(2)]
        optimizer.add_param_group({"params": list(model[2].parameters()), "lr": 0.01})
        losses += [step(slice(0, 7)) for _ in range(2)]
        model[0].weight.requires_grad_(False)
        losses += [step(slice(0, 7)) for _ in range(2)]
        return losses, model, optimizer

    alike(program)


def test_state_saved_and_loaded_between_steps():
    def program(c):
        model, x, y = model_and_data()
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.05)
        step = stepper(c, model, optimizer, x, y)
        losses = [step(slice(0, 7)) for _ in range(3)]
        saved = {name: t.clone() for name, t in model.state_dict().items()}, optimizer.state_dict()
        losses += [step(slice(0, 7)) for _ in range(2)]
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
        return losses + [step(slice(0, 7)) for _ in range(2)], model

    alike(program)


def test_a_closure_that_the_optimizer_calls():
    def program(c):
        model, x, y = model_and_data()
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.1)

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        step = c(lambda: optimizer.step(closure))
        return [step() for _ in range(3)], model

    alike(program)
