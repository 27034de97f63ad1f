"""optim.lr_scheduler against the closed forms of its schedules."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

import tenon
from tenon import nn
from tenon.optim import lr_scheduler


def optimizer(*rates):
    return tenon.optim.SGD([{"params": [nn.Parameter(tenon.ones(1))], "lr": lr} for lr in rates], lr=1.0)


def rates_of(make, epochs, *rates):
    o = optimizer(*rates)
    s = make(o)
    seen = []
    for _ in range(epochs):
        assert s.get_last_lr() == [g["lr"] for g in o.param_groups]
        seen.append(s.get_last_lr())
        s.step()
    return seen


def linear(epoch, start, end, total):
    return start + (end - start) * min(epoch, total) / total


@pytest.mark.parametrize(
    ("make", "factor"),
    [
        (lambda o: lr_scheduler.StepLR(o, 3, gamma=0.5), lambda e: 0.5 ** (e // 3)),
        (lambda o: lr_scheduler.MultiStepLR(o, [4.0, 2, 2], gamma=0.1), lambda e: 0.1 ** ((e >= 4) + 2 * (e >= 2))),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda e: 0.9**e),
        (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e)), lambda e: 1 / (1 + e)),
        (lambda o: lr_scheduler.LambdaLR(o, [lambda e: 2.0**-e] * 2), lambda e: 2.0**-e),
        (lambda o: lr_scheduler.LinearLR(o, 0.25, 0.75, 4), lambda e: linear(e, 0.25, 0.75, 4)),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 5), lambda e: (1 + math.cos(math.pi * e / 5)) / 2),
    ],
    ids=["step", "multistep", "exponential", "lambda", "lambdas", "linear", "cosine"],
)
def test_rates_follow_their_closed_form(make, factor):
    for epoch, rates in enumerate(rates_of(make, 12, 0.4, 2.0)):
        assert rates == pytest.approx([0.4 * factor(epoch), 2.0 * factor(epoch)], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("milestones", [{4, 2}, np.array([4, 2]), range(2, 6, 2)], ids=["set", "NumPy", "range"])
def test_milestones_may_be_any_iterable(milestones):
    seen = rates_of(lambda o: lr_scheduler.MultiStepLR(o, milestones, gamma=0.5), 6, 1.0)
    assert [r for (r,) in seen] == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]


def test_cosine_keeps_its_floor():
    seen = rates_of(lambda o: lr_scheduler.CosineAnnealingLR(o, 4, eta_min=0.1), 9, 0.5)
    want = [0.1 + 0.4 * (1 + math.cos(math.pi * e / 4)) / 2 for e in range(9)]
    assert [r for (r,) in seen] == pytest.approx(want)


def test_schedules_multiply_on_one_optimizer():
    o = optimizer(1.0)
    first, second = lr_scheduler.ExponentialLR(o, 0.5), lr_scheduler.StepLR(o, 2, gamma=0.1)
    for _ in range(4):
        first.step()
        second.step()
    assert o.param_groups[0]["lr"] == pytest.approx(0.5**4 * 0.1**2)


def test_a_schedule_goes_on_where_it_was():
    def run(epochs, scheduler):
        for _ in range(epochs):
            scheduler.step()
        return scheduler.get_last_lr()

    whole = optimizer(0.4)
    want = run(7, lr_scheduler.StepLR(whole, 2, gamma=0.5))
    part = optimizer(0.4)
    scheduler = lr_scheduler.StepLR(part, 2, gamma=0.5)
    run(3, scheduler)
    later = optimizer(9.0)
    later.load_state_dict(part.state_dict())
    twin = lr_scheduler.StepLR(later, 1, gamma=9)
    later.load_state_dict(part.state_dict())
    twin.load_state_dict(scheduler.state_dict())
    assert run(4, twin) == pytest.approx(want)


def test_what_makes_no_schedule_is_refused():
    o = optimizer(1.0)
    with pytest.raises(TypeError, match="optimizer must be an Optimizer, got"):
        lr_scheduler.StepLR(3, 1)
    with pytest.raises(ValueError, match="expected 1 functions"):
        lr_scheduler.LambdaLR(o, [abs, abs])
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.StepLR(o, 1, last_epoch=3)
    with pytest.raises(ValueError, match="start_factor"):
        lr_scheduler.LinearLR(o, 0.0)
    for make, text in (
        (lambda: lr_scheduler.StepLR(o, 0), "StepLR: step_size must be at least 1 epoch, got 0"),
        (lambda: lr_scheduler.CosineAnnealingLR(o, 0), "CosineAnnealingLR: T_max must be at least 1 epoch, got 0"),
        (lambda: lr_scheduler.CyclicLR(o, 0.1, 0.2, step_size_up=0, cycle_momentum=False), "CyclicLR: step_size_up must be at least 1 step, got 0"),
        (lambda: lr_scheduler.SequentialLR(o, [2], [4]), r"SequentialLR: scheduler 0 must be an LRScheduler, got 2 \(int\)"),
        (lambda: lr_scheduler.ChainedScheduler([2]), r"ChainedScheduler: scheduler 0 must be an LRScheduler, got 2 \(int\)"),
        (lambda: lr_scheduler.SequentialLR(o, [], []), "SequentialLR: expected at least one scheduler"),
        (lambda: lr_scheduler.LambdaLR(o, [2]), r"LambdaLR: lr_lambda must be a function, got 2 \(int\)"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"^{text}$"):
            make()


def test_schedules_without_epochs():
    """As PyTorch's: the rate stays where it starts; step(epoch) agrees, where PyTorch divides by zero."""
    for make, want in (
        (lambda o: lr_scheduler.LinearLR(o, 0.25, total_iters=0), 0.1),
        (lambda o: lr_scheduler.PolynomialLR(o, total_iters=0), 0.4),
    ):
        assert rates_of(make, 3, 0.4) == [[want]] * 3
        o = optimizer(0.4)
        make(o).step(2)
        assert o.param_groups[0]["lr"] == want


def test_a_rate_comes_back_from_a_factor_of_zero():
    assert rates_of(lambda o: lr_scheduler.ConstantLR(o, 0, total_iters=2), 4, 0.4) == [[0.0], [0.0], [0.4], [0.4]]


def trained(o):
    for group in o.param_groups:
        for p in group["params"]:
            p.grad = tenon.ones_like(p)
    o.step()


def warned(caught):
    return [str(w.message) for w in caught if "before `optimizer.step()`" in str(w.message)]


def test_a_scheduler_that_steps_before_its_optimizer_warns_once():
    o = optimizer(1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s = lr_scheduler.ExponentialLR(o, 0.5)
        s.step()
        line = caught[0].lineno
        s.step()
        trained(o)
        s.step()
    (text,) = warned(caught)
    assert "ExponentialLR" in text
    assert caught[0].filename == __file__ and "s.step()" in Path(__file__).read_text().splitlines()[line - 1]


def test_schedulers_after_their_optimizer_do_not_warn():
    """Nor does making one of several, which steps each."""
    o = optimizer(1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = lr_scheduler.ConstantLR(o, 0.5, 2)
        both = lr_scheduler.SequentialLR(o, [first, lr_scheduler.ExponentialLR(o, 0.5)], milestones=[2])
        chained = lr_scheduler.ChainedScheduler([lr_scheduler.ExponentialLR(o, 0.9)], o)
        trained(o)
        both.step()
        chained.step()
    assert not warned(caught)


def test_one_cycle_goes_on_from_a_state_of_pytorch():
    # What PyTorch 2.15 has in state_dict() of OneCycleLR(o, 0.2, total_steps=10, pct_start=0.5, anneal_strategy="linear") after 3 steps.
    keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    phases = [(4.0, "initial_lr", "max_lr", "max_momentum", "base_momentum"), (9, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    state = {
        "total_steps": 10, "_schedule_phases": [dict(zip(keys, phase)) for phase in phases], "_anneal_func_type": "linear",
        "cycle_momentum": False, "base_lrs": [0.008], "last_epoch": 3, "_step_count": 4, "_is_initial": False,
        "_get_lr_called_within_step": False, "_last_lr": [0.152],
    }  # fmt: skip
    s = lr_scheduler.OneCycleLR(optimizer(1.0), 0.2, total_steps=20, cycle_momentum=False)
    assert state.keys() ^ s.state_dict().keys() == {"_is_initial", "_get_lr_called_within_step"}
    s.load_state_dict(state)
    seen = [s.step() or s.get_last_lr()[0] for _ in range(3)]
    assert s._step_count == 7
    least = 0.2 / 25 / 1e4
    assert seen == pytest.approx([0.2, 0.2 + (least - 0.2) / 5, 0.2 + (least - 0.2) * 2 / 5])


def test_cyclic_goes_on_from_a_state_of_pytorch():
    # What PyTorch 2.15 has in state_dict() of CyclicLR(o, 0.01, 0.2, 4, mode="triangular2", base_momentum=0.6, max_momentum=0.95) after 3 steps.
    state = {
        "max_lrs": [0.2], "total_size": 8.0, "step_ratio": 0.5, "mode": "triangular2", "gamma": 1.0, "scale_mode": "cycle",
        "cycle_momentum": True, "use_beta1": False, "base_momentums": [0.6], "max_momentums": [0.95], "base_lrs": [0.01], "last_epoch": 3,
        "_step_count": 4, "_is_initial": False, "_get_lr_called_within_step": False, "_last_lr": [0.1525], "_scale_fn_custom": None,
    }  # fmt: skip
    o = tenon.optim.SGD([tenon.ones(1)], lr=0.1, momentum=0.9)
    s = lr_scheduler.CyclicLR(o, 0.5, 0.6, 7)
    assert state.keys() ^ s.state_dict().keys() == {"_is_initial", "_get_lr_called_within_step"}
    s.load_state_dict(state)
    seen = [s.step() or (o.param_groups[0]["lr"], o.param_groups[0]["momentum"]) for _ in range(6)]
    want = [(0.2, 0.6), (0.1525, 0.6875), (0.105, 0.775), (0.0575, 0.8625), (0.01, 0.95), (0.03375, 0.90625)]
    assert seen == [pytest.approx(pair) for pair in want]
