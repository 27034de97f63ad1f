"""compile(pure=True, check=True): where a replay fits, the program runs and has to record what the replay has; what it does otherwise
is named with its line."""

import functools
import inspect
import re
import sys
import types
import warnings

import pytest

import tenon
import tenon.nn.functional as F
from tenon import nn

checked = functools.partial(tenon.compile, pure=True, check=True)

SCALE, LARGE = 2.0, False
package = types.ModuleType("package")
package.option_1 = 2.0
held = types.SimpleNamespace(scale=2.0, kept=[], tensor=tenon.ones(2), flag=False)


@pytest.fixture(autouse=True)
def restore():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    globals().update(SCALE=2.0, LARGE=False, COUNT=0)
    package.option_1 = 2.0
    vars(held).update(scale=2.0, kept=[], tensor=tenon.ones(2), flag=False)


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return f"{__file__}:{first + next(i for i, line in enumerate(lines) if text in line)}"


def refused(f, x, program, line, reason):
    """The next call names the line of the program that has this text."""
    with pytest.raises(RuntimeError, match=reason) as error:
        f(x)
    message = str(error.value)
    assert message.startswith("compile(pure=True, check=True): "), message
    assert f"({line_of(program, line)}); pass what it depends on as an argument" in message, message


def planted(program, change, line, reason):
    """A program that is the same for some calls, and another one after `change()`."""
    f, x = checked(program), tenon.ones(2)
    for _ in range(5):
        f(x)
    assert f.explain().of("replays") == [{"event": "replays", "count": 1, "runs": 3}]
    change()
    refused(f, x, program, line, reason)


def set_global(**values):
    return lambda: globals().update(values)


def test_a_changed_global():
    def program(x):
        y = x + 1
        return y * SCALE  # here

    planted(program, set_global(SCALE=3.0), "# here", r"aten::mul.Scalar with 3.0 for `other`, and its replay has 2.0 ")


def test_a_changed_closure_cell():
    scale = 2.0

    def program(x):
        return (x + scale).exp()

    def change():
        nonlocal scale
        scale = 5.0

    planted(program, change, "x + scale", "aten::add.Scalar with 5.0 for `other`")


def test_an_option_of_a_package_that_is_read_by_a_computed_name():
    def program(x):
        return x * getattr(package, f"option_{1}")

    planted(program, lambda: setattr(package, "option_1", 4.0), "getattr", "with 4.0 for `other`, and its replay has 2.0")


def test_hooks_of_saved_tensors_around_a_step():
    w = nn.Parameter(tenon.ones(2))

    def program(x):
        hooks = tenon.autograd.graph.saved_tensors_hooks
        with hooks((lambda t: t * 2) if held.flag else (lambda t: t), lambda t: t):  # hooks
            loss = (w * x * w).sum()
        loss.backward()

    planted(program, lambda: setattr(held, "flag", True), "# hooks", "it records aten::mul")


COUNT = 0


def test_a_counter():
    def program(x):
        global COUNT
        if held.flag:
            COUNT += 1
        return x * 2

    planted(program, lambda: setattr(held, "flag", True), "COUNT += 1", "it changes global `COUNT`")


def test_a_counter_of_a_module():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            if held.flag:
                self.calls += 1
            return x * 2

    f, x = checked(Counting()), tenon.ones(2)
    for _ in range(4):
        f(x)
    held.flag = True
    refused(f, x, Counting, "self.calls += 1", "it changes `.*calls`")


@pytest.mark.parametrize(
    ("branches", "line", "reason"),
    [
        ("y = x * 2 if LARGE else x + 2", "y = ", "it records aten::mul.Scalar: its replay has aten::add.Scalar"),
        ("y = x + 2 if LARGE else x[:1] + 2", "y = ", r"it records aten::add.Scalar: sizes of `self`: \[2\], known \[1\]"),
        ("y = (x + 2).exp() if LARGE else x + 2", "y = ", "it records aten::exp as well"),
        ("y = x + 2 if LARGE else (x + 2).exp()", "y = ", "it does not record aten::exp"),
    ],
)
def test_a_branch_on_a_global(branches, line, reason, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(f"def program(x):\n    {branches}\n    return y\n")
    exec(compile(file.read_text(), str(file), "exec"), globals())
    f, x = checked(globals()["program"]), tenon.ones(2)
    for _ in range(4):
        f(x)
    globals()["LARGE"] = True
    with pytest.raises(RuntimeError, match=reason) as error:
        f(x)
    assert f"({file}:2)" in str(error.value)


CHANGES = {
    "another tensor": (lambda x: x * held.tensor, {"tensor": tenon.zeros(2)}, "it uses another tensor"),
    "a tensor made of other numbers": (lambda x: x * tenon.tensor([held.scale, 1.0]), {"scale": 3.0}, "it makes a tensor of other numbers"),
    "something kept": (
        lambda x: (held.kept.append(x * 3) if held.flag else x * 3, x * 2)[1], {"flag": True}, "it changes `held.kept`",
    ),
    "a value read": (lambda x: x * (x.tolist()[0] if held.flag else 1.0), {"flag": True}, "a value was read"),
    "printing": (lambda x: (sys.stdout.write("said") if held.flag else 0, x * 2)[1], {"flag": True}, "it prints, which a replay"),
    "a written argument": (lambda x: x.add_(1) if held.flag else x.add(1), {"flag": True}, "it records aten::add_"),
    "another result": (lambda x: (x * 2, x if held.flag else None), {"flag": True}, "it returns something else"),
    "another view": (lambda x: (x * 2)[: 1 + held.flag], {"flag": True}, "it returns something else"),
    "random numbers": (lambda x: x * 2 + (F.dropout(x, 0.5) if held.flag else x), {"flag": True}, "it records aten::"),
    "a seed": (lambda x: (tenon.manual_seed(3) if held.flag else 0, x * 2)[1], {"flag": True}, "it seeds the default generator"),
    "a mode": (lambda x: (tenon.set_num_threads(1 + held.flag), x * 2)[1], {"flag": True}, "it changes the number of threads"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_else_a_program_may_do_otherwise(what):
    program, change, reason = CHANGES[what]
    threads = tenon.get_num_threads()
    tenon.set_num_threads(1)
    try:
        f = checked(program)
        for _ in range(4):
            f(tenon.ones(2))
        vars(held).update(change)
        with pytest.raises(RuntimeError, match=reason) as error:
            f(tenon.ones(2))
    finally:
        tenon.set_num_threads(threads)
    assert re.search(rf"\({re.escape(__file__)}:\d+\); pass what", str(error.value)) or "it returns" in reason, error.value


def test_tensors_that_change_places():
    w, v = nn.Parameter(tenon.ones(2)), tenon.ones(2)
    f = checked(lambda x: (w.detach() * v if held.flag else v * w.detach()) * x)
    for _ in range(4):
        f(tenon.ones(2))
    held.flag = True
    with pytest.raises(RuntimeError, match="it uses another tensor"):
        f(tenon.ones(2))


def test_a_gradient_that_is_no_longer_cleared():
    w = nn.Parameter(tenon.ones(2))

    def program(x):
        w.grad = None
        (w * x).sum().backward()
        if held.flag:
            w.grad = None

    f = checked(program)
    for _ in range(4):
        f(tenon.ones(2))
    held.flag = True
    with pytest.raises(RuntimeError, match="it leaves another gradient"):
        f(tenon.ones(2))


def test_training_steps_with_live_numbers_pass():
    """Rates, counts of steps and random numbers are other ones at each call."""
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    optimizer = tenon.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = tenon.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    f = checked(step)
    for _ in range(10):
        f(tenon.randn(5, 3), tenon.randint(0, 2, (5,)))
        scheduler.step()
        tenon.rand(3)
    assert f.explain().of("replays")[0]["runs"] >= 6


def test_the_program_runs_once_and_its_results_are_its_own():
    calls = []

    def program(x):
        calls.append(1) if held.flag else None
        return x * 2 + 1

    f = checked(program)
    for k in range(5):
        assert f(tenon.ones(2) * k).tolist() == [2 * k + 1] * 2
    held.flag = True
    with pytest.raises(RuntimeError, match="it changes `calls`"):
        f(tenon.ones(2))
    assert len(calls) == 1


def test_a_rate_that_the_program_reads_itself():
    w = nn.Parameter(tenon.ones(2))
    optimizer = tenon.optim.SGD([w], lr=0.5)

    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return x * optimizer.param_groups[0]["lr"]

    planted(step, lambda: optimizer.param_groups[0].update(lr=0.25), "return x * optimizer", "with 0.25 for `other`")


def test_the_environment_checks_all(monkeypatch):
    monkeypatch.setenv("TENON_REPLAY", "check")
    f = tenon.compile(lambda x: x * SCALE, pure=True)
    for _ in range(4):
        f(tenon.ones(2))
    globals()["SCALE"] = 3.0
    with pytest.raises(RuntimeError, match=r"check=True\): .*<lambda> did something else than its replay"):
        f(tenon.ones(2))
    module = tenon.compile(nn.Linear(2, 2), pure=True)
    with tenon.no_grad():
        for _ in range(4):
            module(tenon.ones(1, 2))
    assert tenon.compile(lambda x: x * SCALE)(tenon.ones(1)).tolist() == [3.0]
    monkeypatch.setenv("TENON_REPLAY", "verify")
    with pytest.raises(ValueError, match="TENON_REPLAY must be 'check' or not set, got 'verify'"):
        tenon.compile(lambda x: x, pure=True)


def test_check_needs_pure():
    with pytest.raises(ValueError, match="check=True compares a program with its replays, which pure=True makes: give both"):
        tenon.compile(lambda x: x, check=True)
