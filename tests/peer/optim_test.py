"""Optimizers and schedulers beside PyTorch's: the same parameters and rates over many steps, and the same state dicts."""

import math

import numpy as np
import pytest
import tenon

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("AdamW", {"lr": 0.05, "betas": (0.8, 0.99)}),
    ("AdamW", {"lr": 0.05, "amsgrad": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.9, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.5, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.01}),
]
NAMES = [f"{name}-{'-'.join(options)}" for name, options in OPTIMIZERS]
STEPS = 200


def start(dtype):
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in ((3, 4), (5,), (), (0, 2))]
    if dtype == "complex128":
        values = [v + 1j * rng.standard_normal(v.shape) for v in values]
    return [np.asarray(v).astype(dtype) for v in values]


def optimizers(name, options, dtype):
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in start(dtype)]
    ours = [tenon.nn.Parameter(tenon.tensor(v)) for v in start(dtype)]
    return (getattr(tenon.optim, name)(ours, **options), ours), (getattr(torch.optim, name)(theirs, **options), theirs)


def grads(step, dtype):
    rng = np.random.default_rng(step + 1)
    out = []
    for v in start("float64"):
        g = rng.standard_normal(v.shape)
        out.append(np.asarray(g + 1j * rng.standard_normal(v.shape) if dtype == "complex128" else g).astype(dtype))
    return out


def walk(pair_of_ours, pair_of_theirs, steps, dtype):
    (ours, p), (theirs, q) = pair_of_ours, pair_of_theirs
    for step in steps:
        for a, b, g in zip(p, q, grads(step, dtype)):
            # The last parameter has a gradient at every third step only.
            skip = b.numel() == 1 and step % 3
            a.grad, b.grad = (None, None) if skip else (tenon.tensor(g), torch.tensor(g))
        ours.step()
        theirs.step()


def check(ours, theirs, bound):
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=bound, atol=bound)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-6), ("float32", 2e-5), ("complex128", 1e-6)])
def test_parameters_stay_equal(name, options, dtype, bound):
    if name not in ("NAdam",) and dtype != "float32":
        bound = 1e-11  # NAdam's running product is a float32 in PyTorch
    mine, other = optimizers(name, options, dtype)
    walk(mine, other, range(STEPS), dtype)
    check(mine[1], other[1], bound)


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
def test_state_dicts_are_exchanged(name, options):
    mine, other = optimizers(name, options, "float64")
    walk(mine, other, range(5), "float64")
    ours, theirs = mine[0].state_dict(), other[0].state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert [(k, list(v)) for k, v in ours["state"].items()] == [(k, list(v)) for k, v in theirs["state"].items()]
    for number, kept in theirs["state"].items():
        for key, value in kept.items():
            if value is None:
                assert ours["state"][number][key] is None
                continue
            assert str(ours["state"][number][key].dtype).split(".")[1] == str(value.dtype).split(".")[1]
            np.testing.assert_allclose(plain(ours["state"][number][key]), plain(value), rtol=1e-6, atol=1e-12)
    # Each goes on from the other's state.
    def turned(state, library):
        return {
            "param_groups": state["param_groups"],
            "state": {
                n: {k: v if v is None else library.tensor(v.numpy()) for k, v in kept.items()}
                for n, kept in state["state"].items()
            },
        }

    mine[0].load_state_dict(turned(theirs, tenon))
    other[0].load_state_dict(turned(ours, torch))
    walk(mine, other, range(5, 30), "float64")
    check(mine[1], other[1], 1e-6 if name == "NAdam" else 1e-11)


SCHEDULERS = [
    ("LambdaLR", lambda s, o: s.LambdaLR(o, lambda e: 0.9**e)),
    ("MultiplicativeLR", lambda s, o: s.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.05)),
    ("StepLR", lambda s, o: s.StepLR(o, 4, 0.5)),
    ("MultiStepLR", lambda s, o: s.MultiStepLR(o, [3, 7, 7, 12], 0.5)),
    ("ConstantLR", lambda s, o: s.ConstantLR(o, 0.25, 6)),
    ("LinearLR", lambda s, o: s.LinearLR(o, 0.25, 0.75, 6)),
    ("ExponentialLR", lambda s, o: s.ExponentialLR(o, 0.9)),
    ("PolynomialLR", lambda s, o: s.PolynomialLR(o, 12, 2.0)),
    ("CosineAnnealingLR", lambda s, o: s.CosineAnnealingLR(o, 7, 0.01)),
    ("WarmRestarts", lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)),
    ("WarmRestarts1", lambda s, o: s.CosineAnnealingWarmRestarts(o, 4)),
    ("CyclicLR", lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, 5)),
    ("CyclicLR2", lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 3, mode="triangular2", base_momentum=0.7)),
    ("CyclicLRexp", lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9)),
    ("CyclicLRown", lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda x: 1 / (5 * x), cycle_momentum=False)),
    ("OneCycleLR", lambda s, o: s.OneCycleLR(o, 0.3, 25)),
    ("OneCycleLR3", lambda s, o: s.OneCycleLR(o, [0.3, 0.2], epochs=5, steps_per_epoch=5, three_phase=True)),
    ("OneCycleLRlin", lambda s, o: s.OneCycleLR(o, 0.3, 25, anneal_strategy="linear", cycle_momentum=False)),
    (
        "SequentialLR",
        lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 10), s.ExponentialLR(o, 0.5)], [4, 15]),
    ),
    ("SequentialLRconst", lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 3), s.StepLR(o, 3, 0.5)], [5])),
    ("ChainedScheduler", lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)])),
]


def scheduled(library, make, kind):
    p = [library.nn.Parameter(library.ones(2)) for _ in range(2)]
    groups = [{"params": [p[0]], "lr": 0.4}, {"params": [p[1]], "lr": 0.1}]
    if kind == "Adam":
        optimizer = library.optim.Adam(groups)
    else:
        optimizer = library.optim.SGD(groups, momentum=0.9)
    return optimizer, make(library.optim.lr_scheduler, optimizer)


def rates(optimizer):
    return [[g["lr"], g.get("momentum"), *(g.get("betas") or ())] for g in optimizer.param_groups]


@pytest.mark.parametrize(("name", "make"), SCHEDULERS, ids=[name for name, _ in SCHEDULERS])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.filterwarnings("ignore")
def test_rates_stay_equal(name, make, kind):
    (ours, a), (theirs, b) = scheduled(tenon, make, kind), scheduled(torch, make, kind)
    for epoch in range(25):
        for x, y in zip(rates(ours), rates(theirs)):
            assert [v for v in x if v is not None] == pytest.approx([v for v in y if v is not None], rel=1e-9, abs=1e-12), epoch
        assert a.get_last_lr() == pytest.approx(b.get_last_lr(), rel=1e-9, abs=1e-12)
        if epoch == 11:  # from here on with a new scheduler that has the old one's state
            (new, c) = scheduled(tenon, make, kind)
            c.load_state_dict(a.state_dict())
            new.load_state_dict(ours.state_dict())
            ours, a = new, c
        if epoch < 24:
            theirs.step()
            a.step()
            b.step()


@pytest.mark.parametrize(
    "options",
    [{}, {"patience": 1}, {"mode": "max", "patience": 0, "threshold_mode": "abs", "threshold": 0.05}, {"cooldown": 2, "patience": 1, "min_lr": 0.03}],
)
def test_plateaus_are_found_alike(options):
    make = lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, **options)
    (ours, a), (theirs, b) = scheduled(tenon, make, "SGD"), scheduled(torch, make, "SGD")
    for epoch in range(40):
        metric = math.cos(epoch / 4) + 1 / (1 + epoch)
        a.step(tenon.tensor(metric, dtype=tenon.float64))
        b.step(metric)
        assert rates(ours) == rates(theirs), epoch
        assert a.num_bad_epochs == b.num_bad_epochs


@pytest.mark.parametrize("kind", [0, 0.5, 1, 2, 3, math.inf])
def test_gradients_are_clipped_alike(kind):
    values = [np.random.default_rng(i).standard_normal((3, i)) for i in range(1, 4)]
    ours, theirs = [tenon.nn.Parameter(tenon.ones(v.shape, dtype=tenon.float64)) for v in values], []
    for p, v in zip(ours, values):
        p.grad = tenon.tensor(v)
        q = torch.nn.Parameter(torch.ones(v.shape, dtype=torch.float64))
        q.grad = torch.tensor(v)
        theirs.append(q)
    assert tenon.nn.utils.clip_grad_norm_(ours, 0.7, kind).item() == pytest.approx(
        torch.nn.utils.clip_grad_norm_(theirs, 0.7, kind).item(), rel=1e-12
    )
    check([p.grad for p in ours], [q.grad for q in theirs], 1e-12)
    tenon.nn.utils.clip_grad_value_(ours, 0.05)
    torch.nn.utils.clip_grad_value_(theirs, 0.05)
    check([p.grad for p in ours], [q.grad for q in theirs], 1e-12)
    vector = tenon.nn.utils.parameters_to_vector(ours)
    assert vector.tolist() == torch.nn.utils.parameters_to_vector(theirs).tolist()
    tenon.nn.utils.vector_to_parameters(vector.detach() * 2, ours)
    assert ours[1].tolist() == [[2.0, 2.0]] * 3
