"""What compile(pure=True) says of calls that no replay fits and of programs that it refuses: what differs, its values, and the
line of the user's program."""

import inspect
import re
import warnings

import pytest

import tenon
from tenon import nn

def pure(f):
    return tenon.compile(f, pure=True)


def replanned(f):
    """Why replays did not fit."""
    return [event["reason"] for event in f.explain().of("replanned")]


def line_of(function, text):
    """The line of a function that has a text."""
    lines, first = inspect.getsourcelines(function)
    return f"{__file__}:{first + next(i for i, line in enumerate(lines) if text in line)}"


def refusal(f, *calls):
    """The one warning of calls of a compiled function, and its line."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for arguments in calls:
            f(*arguments)
    (warning,) = seen
    return str(warning.message), f"{warning.filename}:{warning.lineno}"


def test_a_number_that_differs_in_every_call():
    def advance(x, position):
        return x * position

    def run(f):
        return [f(tenon.ones(2), i) for i in range(12)]

    f = pure(advance)
    with pytest.warns(UserWarning) as seen:
        run(f)
    message = str(seen[0].message)
    assert "advance is not replayed" in message and f"({line_of(advance, 'x * position')})" in message
    assert "8 calls in a row differed, the last one in argument `position`, which was 8 and is 9; pass what changes" in message
    assert f"{seen[0].filename}:{seen[0].lineno}" == line_of(run, "f(tenon.ones(2), i)")


def test_the_class_of_a_module_and_the_line_of_its_call():
    class Scaled(nn.Module):
        def forward(self, x, by=1):
            return x * by

    def run(model):
        for i in range(12):
            model(tenon.ones(2), by=i)

    with pytest.warns(UserWarning) as seen:
        run(tenon.compile(Scaled(), pure=True))
    message = str(seen[0].message)
    assert "Scaled is not replayed" in message and "argument `by`, which was 8 and is 9" in message
    assert f"{seen[0].filename}:{seen[0].lineno}" == line_of(run, "model(")


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ((tenon.ones(3), 1), (tenon.ones(4), 1), "argument `x`, which was float32[3] and is float32[4]"),
        ((tenon.ones(3), 1), (tenon.ones(3, dtype=tenon.int64), 1), "argument `x`, which was float32[3] and is int64[3]"),
        (
            (tenon.ones(2, 3), 1), (tenon.ones(3, 2).t(), 1),
            "argument `x`, which was float32[2, 3] and is float32[2, 3] of strides [1, 2]",
        ),
        ((tenon.ones(2), 1), (tenon.ones(3)[1:], 1), "argument `x`, which was float32[2] and is float32[2] at offset 1"),
        ((tenon.ones(2), 1), (tenon.ones(2), 1.0), "argument `k`, which was 1 and is 1.0"),
        ((tenon.ones(2), 1), (tenon.ones(2), tenon.ones(2)), "argument `k`, which was 1 and is a tensor, float32[2]"),
        ((tenon.ones(2), "a"), (tenon.ones(2), "b"), "argument `k`, which was 'a' and is 'b'"),
        ((tenon.ones(2), 1), (tenon.ones(2), 16**5000), f"argument `k`, which was 1 and is 0x1{'0' * 57}..."),
        ((tenon.ones(2), float("nan")), (tenon.ones(2), float("nan") * 1), "argument `k`, which was nan and is nan"),
        ((tenon.ones(2), [1, {"m": 2}]), (tenon.ones(2), [1, {"m": 3}]), "argument `k[1]['m']`, which was 2 and is 3"),
        ((tenon.ones(2), (1, 2)), (tenon.ones(2), (1, 2, 3)), "argument `k`, which was a tuple of 2 and is a tuple of 3"),
        (
            (tenon.ones(2), [tenon.ones(1), tenon.ones(2)]), (tenon.ones(2), [tenon.ones(1), tenon.ones(5)]),
            "argument `k[1]`, which was float32[2] and is float32[5]",
        ),
        (
            (tenon.ones(2), 1), (tenon.ones(2, requires_grad=True).detach().requires_grad_(), 1),
            "argument `x`, which was float32[2] and is float32[2] that requires grad",
        ),
    ],
)  # fmt: skip
def test_what_differs_in_an_argument(first, then, said):
    def f(x, k):
        return (x * 2).detach()

    f = pure(f)
    for arguments in (first, first, first, then):
        f(*arguments)
    assert replanned(f) == [said]


def test_how_many_arguments_there_are():
    def f(x, *rest, **named):
        return x * 2

    f = pure(f)
    for _ in range(3):
        f(tenon.ones(1))
    f(tenon.ones(1), 2, k=3)
    assert replanned(f) == ["the number or the names of the arguments, which are 2 without a name and k by name"]


def test_what_differs_in_modules_optimizers_and_tensors():
    model, w = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), tenon.ones(2)
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x * w).sum().backward()
        optimizer.step()

    f = pure(step)

    def after(calls=2):
        for _ in range(calls):
            f(tenon.ones(2))
        return replanned(f)[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            f(tenon.ones(2))
        model[1].p = 0.25
        assert after() == "`model.1.p`, which was 0.5 and is 0.25"
        model.eval()
        assert after() == "what `model` has"
        optimizer.param_groups[0]["weight_decay"] = 0.5
        assert after() == "`optimizer.param_groups[0]['weight_decay']`, which was 0 and is 0.5"
        model[0].bias = nn.Parameter(tenon.zeros(2))
        assert after(1) == "`model.0.bias`, which is another Parameter"
        assert after() == "`model.0.bias`, which had no gradient then"
        w.resize_(1).fill_(1)
        assert after() == "`w`, which had another shape, dtype or layout then: float32[2]"
        model[0].weight.requires_grad_(False)
        assert after(1) == "`model.0.weight`, which had another shape, dtype or layout then: float32[2, 2] that requires grad"


def test_how_often_a_difference_came():
    f = pure(lambda x, k: x * k)
    for k in (1, 1, 1, 2, 2, 1, 3):
        f(tenon.ones(1), k)
    (event,) = f.explain().of("replanned")
    assert event == {"event": "replanned", "reason": "argument `k`, which was 2 and is 3", "count": 2}


def reads_a_value(x):
    y = x * 2
    if y.sum() > 0:
        y = y + 1
    return y


def calls_tenons_python(x):
    w = nn.Parameter(x)
    w.grad = x * 2
    nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    return w.grad


COUNTS = {"calls": 0}


def counts(x):
    COUNTS["calls"] += 1
    return x + 1


def grows(x, seen):
    seen.append(1)
    return x + 1


def prints(x):
    print(end="")
    return x + 1


def switches(x):
    tenon.set_grad_enabled(not tenon.is_grad_enabled())
    return x + 1


WEIGHT = nn.Parameter(tenon.ones(2))
OPTIMIZER = tenon.optim.SGD([WEIGHT], lr=0.1)


def steps_twice(x):
    (WEIGHT * x).sum().backward()
    OPTIMIZER.step()
    x = x + 1
    OPTIMIZER.step()  # once more
    return x


def decays(x):
    (WEIGHT * x).sum().backward()
    OPTIMIZER.step()
    with tenon.no_grad():
        WEIGHT.add_(x, alpha=-0.1)
    return x + 1


def with_history(x):
    y = WEIGHT * x
    return y * 2


def sets_a_view(x):
    y = x * 2
    WEIGHT.grad = y[:2]
    return y


def marks(x):
    x.mark = 3
    return x * 2


PART = WEIGHT * 2


def uses_history(x):
    y = x * 2
    return (y + PART).detach()


@pytest.mark.parametrize(
    ("program", "reason", "line"),
    [
        (steps_twice, "it makes something else of an optimizer than one step", "once more"),
        (decays, "it updates a parameter of an optimizer beside the optimizer's step", "add_("),
        (with_history, "it returns a tensor with history", "return y * 2"),
        (sets_a_view, "a gradient that it sets is a view", "WEIGHT.grad"),
        (marks, "it sets an attribute of a tensor", "x.mark"),
        (uses_history, "it uses `PART`, which has history: detach() it", "PART).detach"),
    ],
)
def test_the_line_that_a_reason_without_a_name_is_about(program, reason, line):
    WEIGHT.grad = None
    message, _ = refusal(pure(program), *[(tenon.ones(2),) for _ in range(4)])
    assert reason in message and message.endswith(f"({line_of(program, line)})"), message


@pytest.mark.parametrize(
    ("program", "arguments", "reason", "line"),
    [
        (reads_a_value, (), "a value was read|runs at once", "if y.sum()"),
        (calls_tenons_python, (), "a value was read|runs at once|it changes", "clip_grad_norm_"),
        (counts, (), r"it changes `COUNTS\['calls'\]`", "COUNTS"),
        (grows, ([],), "it changes a list or a dict among its arguments, in `seen`", "seen.append"),
        (prints, (), "it prints, which a replay would not do", "print("),
        (switches, (), "it changes gradient mode", "def switches"),
    ],
)
def test_the_line_of_a_refusal(program, arguments, reason, line):
    try:
        message, _ = refusal(pure(program), *[(tenon.ones(2), *arguments)] * 4)
    finally:
        tenon.set_grad_enabled(True)
    assert re.search(rf"{program.__name__} is not replayed, but recorded at every call: .*({reason})", message)
    assert message.endswith(f"({line_of(program, line)})"), message
