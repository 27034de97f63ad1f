"""What explain() says: plans in the order of their first use, what ran at once, what forced values, what differed."""

import os
import subprocess
import sys

import pytest

import tenon


def test_plans_are_listed_in_the_order_of_their_first_use():
    @tenon.compile(threshold=0)
    def f(x):
        for i in range(4):
            x = x * 2
            if i == 0:
                x = x + 1
            x.tolist()
        return x.exp()

    f(tenon.ones(3))
    report = f.explain()
    assert [(s["nodes"], s["runs"]) for s in report.segments] == [(2, 1), (1, 3), (1, 1)]
    text = str(report)
    assert text.index("plan 1: 2 operators") < text.index("plan 2: 1 operator") < text.index("plan 3: ")


def test_nothing_is_left_in_a_first_run():
    """Its second segment begins where the first one did, and follows nothing that was known."""

    @tenon.compile(threshold=0)
    def f(x):
        x = (x * 2).relu()
        x.t().tolist()
        x = x.exp()
        x.tolist()
        return x - 1

    for _ in range(2):
        f(tenon.zeros(2, 2))
        assert f.explain().of("left") == []
    f(tenon.zeros(3, 2))
    (left,) = f.explain().of("left")
    assert left["operator"] == "aten::mul.Scalar" and left["field"] == "sizes of `self`: [3, 2], known [2, 2]"


def test_views_are_no_part_of_a_known_path():
    def f(x, again):
        y = x * 2
        if again:
            y = y.reshape(4).view(2, 2).t()
        return y + 1

    c = tenon.compile(f, threshold=0)
    c(tenon.ones(2, 2), False)
    c(tenon.ones(2, 2), True)
    (left,) = c.explain().of("left")
    assert left["operator"] == "aten::add.Scalar" and left["field"].startswith("strides of `self`: [1, 2], known [2, 1]")


@pytest.mark.parametrize("ask", [bool, float, lambda x: x.item(), lambda x: 1 if x else 0], ids=["bool", "float", "item", "if"])
def test_a_number_that_is_made_of_a_tensor(ask):
    f = tenon.compile(lambda x: ask((x * 2).sum()), threshold=0)
    f(tenon.ones(2))
    (forced,) = f.explain().of("forced")
    assert forced["reason"] == "a number is made of it: item(), bool(), float(), if"
    assert f"ended: {forced['operator']}: {forced['reason']}" in str(f.explain())


def test_who_asked_for_a_value():
    f = tenon.compile(lambda x: (x * 2).nonzero(), threshold=0)
    f(tenon.ones(2))
    (forced,) = f.explain().of("forced")
    assert forced["operator"] == "aten::nonzero"


def test_a_call_that_is_not_recorded_makes_no_plan():
    """Its operands get no plan of no operators."""
    x = tenon.from_numpy(tenon.ones(3).numpy())
    f = tenon.compile(lambda y: (y.nonzero(), x * 2), threshold=0)
    f(tenon.ones(3))
    assert f.explain().planned == 0 and f.explain().of("forced") == []


def test_a_wrong_TENON_FLUSH_is_said_once():
    program = "import tenon\nfor _ in range(2): tenon.compile(lambda x: x * 2, threshold=0)(tenon.ones(3))"

    def said(value):
        done = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "TENON_FLUSH": value}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    for wrong in ("rnd:1", "random", "random:x", "random:1x"):
        assert said(wrong).strip() == f"TENON_FLUSH: '{wrong}' is not random:SEED; nothing is cut"
    assert said("random:7") == said("") == ""


def test_the_line_that_asks_for_a_long_computation():
    """For which other threads may run meanwhile."""
    f = tenon.compile(lambda x: (x * 2).numpy(), threshold=0)
    f(tenon.ones(1 << 20))
    (forced,) = f.explain().of("forced")
    assert "report_test.py:" in forced["line"]
