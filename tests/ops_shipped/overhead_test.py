"""tenon bench overhead: the arithmetic of its steps, on given figures, and which operators it takes."""

import json

import pytest

import tenon
from tenon._tools import overhead
from tenon._tools.command import main
from tenon.library import Library, register_autograd
from tenon._tools.op_arguments import Arguments
from tenon._tools.overhead import Rung, steps


def rounds(*nanoseconds):
    return list(map(float, nanoseconds))


QUIET = (0, 1, 2, 3, 4, 5, 6, 7)  # the fastest quarter of eight rounds differs by 2


def around(least):
    return rounds(*(least + more for more in QUIET))


def test_a_step_is_what_a_call_takes_longer_and_steps_add_up():
    found = steps(["look-up", "result", "run"], [around(80), around(180), around(370)])
    assert [(row.name, row.tenon, row.noise) for row in found] == [("look-up", 80, 2), ("result", 100, 2), ("run", 190, 2), ("total", 370, 2)]


def test_a_step_below_its_noise_has_no_figure_and_counts_to_the_next():
    found = steps(["look-up", "result", "map", "run"], [around(80), around(180), around(181), around(300)])
    assert [row.tenon for row in found] == [80, 100, None, 120, 300]


def test_the_last_step_below_its_noise_counts_to_the_last_that_has_a_figure():
    assert [row.tenon for row in steps(["a", "b", "c"], [around(80), around(180), around(181)])] == [80, 101, None, 181]


def test_a_step_that_measured_shorter_than_nothing_is_not_negative():
    """The look-up took 374 alone, and the call that contains it 269."""
    found = steps(["look-up", "result", "run"], [around(374), around(260), around(269)])
    assert [row.tenon for row in found] == [260, None, 9, 269]
    found = steps(["a", "b"], [around(100), around(90)])
    assert [row.tenon for row in found] == [90, None, 90]


def test_the_noise_is_that_of_the_noisier_of_two_measurements():
    loud = rounds(180, 220, 260, 300, 340, 380, 420, 460)
    found = steps(["a", "b", "c"], [around(80), loud, around(240)])
    assert [(row.tenon, row.noise) for row in found] == [(80, 2), (160, 80), (None, 80), (240, 2)]


@pytest.mark.parametrize("seed", range(20))
def test_figures_are_never_negative_and_always_add_up(seed):
    tenon.manual_seed(seed)
    measured = (tenon.rand(6, 15) * 100 + tenon.rand(6, 1) * 100).tolist()
    *parts, total = steps(list("abcdef"), measured)
    assert all(row.tenon is None or row.tenon >= 0 for row in parts) and total.tenon == min(measured[-1])
    assert sum(row.tenon or 0 for row in parts) == pytest.approx(total.tenon)


def test_a_difference_below_the_noise_has_no_figure():
    assert overhead.difference("lock", around(130), around(100)).tenon == 30
    assert overhead.difference("lock", around(101), around(100)).tenon is None
    assert overhead.difference("lock", around(90), around(100)).tenon is None


@pytest.fixture
def operators():
    """An operator for each kind of kernel."""
    graphs = {}

    @tenon.cached_plan(name="timed::planned")
    def planned(g, x, by):
        return g.mul(x, by)

    def by_hand(x):
        out = tenon.empty_like(x)
        if x.shape not in graphs:
            g = tenon.pygraph()
            tx = g.tensor_like(x).set_uid(1)
            g.add(tx, tx).set_uid(2).set_output(True)
            g.build()
            graphs[x.shape] = g
        graphs[x.shape]._execute_with_ptrs([x.data_ptr(), out.data_ptr()])
        return out

    kernels = {
        "planned(Tensor x, float by) -> Tensor": planned,
        "around(Tensor x, float by) -> Tensor": lambda x, by: planned(x, by),
        "by_hand(Tensor x) -> Tensor": by_hand,
        "eager(Tensor x) -> Tensor": lambda x: x * 2,
        "fails(Tensor x) -> Tensor": lambda x: x.undefined,
    }
    with Library("timed", "FRAGMENT") as lib:
        for schema, kernel in kernels.items():
            lib.define(schema)
            lib.impl(schema.partition("(")[0], kernel, "CPU")
        register_autograd("timed::planned", lambda ctx, grad: (grad, None), lib=lib)
        yield


@pytest.fixture
def counted(monkeypatch):
    """Each statement runs once and counts as longer than the one before by 100."""
    ran = []

    def measure(rungs):
        found = []
        for i, rung in enumerate(rungs):
            with rung.context():
                exec(rung.statement, dict(rung.names))
            ran.append(rung)
            found.append(around(100 * (i + 1)))
        return found

    monkeypatch.setattr(overhead, "measure", measure)
    monkeypatch.setattr(overhead, "_torch", lambda: None)
    monkeypatch.setattr(overhead, "ten_thousand", lambda: (400.0, 0.2))
    return ran


PLAN = ["key and look-up", "allocate an output", "map of UIDs", "execute"]


@pytest.mark.parametrize(
    "name, given, expected",
    [
        ("timed::planned", "(tenon.ones(4), 2.0)", [*PLAN, "dispatch and autograd"]),
        ("timed::around", None, [*PLAN, "the kernel's lines around its plan", "dispatch"]),  # it has no derivative
        ("timed::by_hand", None, ["the kernel without its graph: key, look-up, outputs, UIDs", "execute", "dispatch and autograd"]),
        ("timed::eager", "tenon.ones(4)", ["the kernel", "dispatch and autograd"]),
        ("tenon::rmsnorm", None, [*PLAN, "dispatch and autograd"]),
    ],
)
def test_an_operator_of_a_user_is_taken_with_its_steps(operators, counted, name, given, expected):
    rows = overhead.user_operator(name, given)
    recorded = ["  dispatch alone"] if expected[-1] == "dispatch and autograd" else []
    assert [row.name for row in rows] == [*expected, "total", *recorded]
    assert [row.tenon for row in rows] == [100] * len(expected) + [100 * len(expected)] + [200] * len(recorded)
    assert all(row.cudnn == overhead.CUDNN.get(row.name, 0) * 1000 or row.cudnn is None for row in rows)


def test_an_operator_in_cpp_has_the_steps_that_can_be_told_apart(counted):
    assert [row.name for row in overhead.user_operator("aten::relu")] == ["dispatch and the kernel, which is no function of Python", "autograd", "total"]


def test_nothing_runs_while_the_kernel_is_measured_without_its_graph(operators):
    x = tenon.ones(4)
    tenon.ops.timed.by_hand(x)
    rung, whole, *_ = overhead.operator_rungs(tenon.ops.timed.by_hand.default, Arguments((x,), {}))
    for step, doubled in ((rung, False), (whole, True)):
        names = dict(step.names)
        with step.context():
            exec(f"y = {step.statement}", names)
        assert bool((names["y"] == 2).all()) >= doubled  # what was not computed may hold anything
    assert tenon.ops.timed.by_hand(x).tolist() == [2.0] * 4


def test_the_measurement_keeps_rounds_apart():
    found = overhead.measure([Rung("", "f()", {"f": lambda: None}), Rung("", "1", {})], rounds=3, seconds=1e-5)
    assert [len(values) for values in found] == [3, 3] and all(value > 0 for values in found for value in values)


def test_the_report_has_all_rows(counted, capsys):
    assert main(["bench", "overhead"]) == 0
    text = capsys.readouterr().out
    for row in (*overhead.CUDNN, "dispatch alone", "a call of an empty function", "the interpreter lock"):
        assert row in text
    assert "10,000 x r[i] = r[i]*2+1: 400 ns a turn, 80 ns an operator" in text and "PyTorch is not installed here" in text
    assert main(["bench", "overhead", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["custom operator"]}
    assert rows["total"]["cudnn"] == 52000.0 and rows["native operator"]["cudnn"] == 18000.0
    parts = [*PLAN, "dispatch and autograd"]
    assert sum(rows[name]["tenon"] for name in parts) == rows["total"]["tenon"]


def test_the_report_of_an_operator_says_what_is_below_the_noise(operators, counted, monkeypatch, capsys):
    monkeypatch.setattr(overhead, "measure", lambda rungs: [around(100 + i) for i in range(len(rungs))])
    assert main(["bench", "overhead", "timed::eager", "--arguments", "tenon.ones(4)"]) == 0
    text = capsys.readouterr().out
    assert "One call of timed::eager" in text and "below the noise" in text and "10,000" not in text and "-1" not in text
    assert main(["bench", "overhead", "--json", "timed::eager"]) == 0  # options anywhere
    (table,) = json.loads(capsys.readouterr().out).values()
    assert [row["tenon"] for row in table] == [101, None, 101, None]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["timed::none"], "has no operator 'none'; an operator is there once the module that registers it is imported"),
        (["none"], "'none' is not an operator's name, expected 'namespace::name'"),
        (["timed::fails"], "no guess fits it"),
        (["timed::eager", "--arguments", "(1"], "--arguments '(1' cannot be evaluated: SyntaxError"),
    ],
)
def test_what_cannot_be_measured_says_why(operators, counted, capsys, arguments, message):
    assert main(["bench", "overhead", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_arguments_without_an_operator_are_wrong_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bench", "overhead", "--arguments", "tenon.ones(1)"])
    assert ended.value.code == 2 and "name it: overhead NS::NAME" in capsys.readouterr().err
