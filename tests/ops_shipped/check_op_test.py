"""tenon check-op: what it says of operators that follow its points, and of those that break them."""

import json

import pytest

import tenon
from tenon import check_op
from tenon.command import main
from tenon.library import Library


def points(name, given=None):
    return {p.name: p for p in check_op.check(name, given, limit=1e9)}


@pytest.mark.parametrize("name", ["tenon::rmsnorm", "tenon::layernorm", "tenon::sdpa", "tenon::rmsnorm_backward"])
def test_shipped_operators_over_graphs_hold_all_points(name):
    found = check_op.check(name, limit=1e9)
    assert len(found) == 9 and all(p.holds is not False for p in found), [p for p in found if p.holds is False]
    assert sum(p.holds is None for p in found) == name.endswith("backward")  # out=, whose results autograd allocates


def test_an_operator_without_a_graph_says_why_points_do_not_apply():
    found = points("tenon::moe_matmul", "(tenon.ones(4, 8), tenon.ones(3, 8, 5), tenon.tensor([2, 0, 1, 2]))")
    assert found["the graph is cached"] == ("the graph is cached", None, "not applicable: it runs no graph")
    assert found["out= form"].holds
    assert sum(p.holds is None for p in found.values()) == 6


@pytest.fixture
def careless():
    """An operator that does everything that the points warn of."""
    kept = tenon.empty(1 << 16, dtype=tenon.uint8)

    def kernel(x):
        g = tenon.pygraph(handle=tenon.graph.Handle("cpu"))
        tx = g.tensor_like(x, name="x")
        y = g.matmul(g.matmul(tx, tx), tx).set_output(True)
        g.build()
        out = tenon.empty_like(x)
        g.execute({tx: x, y: out}, kept)
        return out

    with Library("careless", "FRAGMENT") as lib:
        lib.define("cube(Tensor x) -> Tensor")
        lib.impl("cube", kernel, "CPU")
        yield "careless::cube"


def test_each_point_that_fails_says_what_to_do(careless):
    found = points(careless, "tenon.ones(16, 16)")
    failed = {name: p.sentence for name, p in found.items() if p.holds is False}
    assert "built 3 graphs" in failed.pop("the graph is cached")
    assert "_execute_with_ptrs" in failed.pop("executed by addresses")
    assert "IntEnum" in failed.pop("explicit UIDs")
    assert "made 3 handles" in failed.pop("one handle for a device")
    assert "a workspace outlived its call" in failed.pop("a workspace for each call")
    assert "there is none; declare careless::cube.out" in failed.pop("out= form")
    assert "meta" in failed.pop("the device is part of the key")
    assert not failed


def test_a_careful_operator_without_cached_plan_holds_them():
    from enum import IntEnum

    class Uid(IntEnum):
        X = 1
        Y = 2

    graphs = {}

    def kernel(x):
        out = tenon.empty_like(x)
        if x.is_meta:
            return out
        key = (tuple(x.shape), x.stride(), x.dtype, str(x.device))
        if key not in graphs:
            g = tenon.pygraph(handle=tenon.create_handle("cpu"))
            tx = g.tensor_like(x).set_uid(Uid.X)
            g.matmul(g.matmul(tx, tx), tx).set_uid(Uid.Y).set_output(True)
            g.build()
            graphs[key] = g
        g = graphs[key]
        workspace = tenon.empty(g.get_workspace_size(), dtype=tenon.uint8)
        g._execute_with_ptrs([x.data_ptr(), out.data_ptr()], workspace)
        return out

    with Library("careful", "FRAGMENT") as lib:
        lib.define("cube(Tensor x) -> Tensor")
        lib.define("cube.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
        for key in ("CPU", "Meta"):
            lib.impl("cube", kernel, key)
        lib.impl("cube.out", lambda x, *, out: out.copy_(kernel(x)), "CPU")
        found = points("careful::cube", "tenon.ones(16, 16)")
    assert all(p.holds for p in found.values()), [p for p in found.values() if not p.holds]


def test_the_command_has_an_exit_code(careless, capsys):
    assert main(["check-op", "tenon::rmsnorm", "--limit", "1e9"]) == 0
    assert "pass" in capsys.readouterr().out
    assert main(["check-op", careless, "--json", "--limit", "1e9", "--arguments", "tenon.ones(16, 16)"]) == 1
    assert len(json.loads(capsys.readouterr().out)) == 9
    assert main(["check-op", "tenon::no_such"]) == 1
    assert "no operator 'no_such'" in capsys.readouterr().err
    assert main(["check-op", "tenon::moe_matmul"]) == 1
    assert "pass arguments: --arguments" in capsys.readouterr().err


def test_the_overhead_report_has_all_rows(monkeypatch, capsys):
    from tenon import overhead

    def once(statement, names, seconds=0.0):
        exec(statement, dict(names))
        return 10.0

    monkeypatch.setattr(overhead, "nanoseconds", once)
    monkeypatch.setattr(overhead.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(overhead, "ten_thousand", lambda: (400.0, 0.2))
    assert main(["bench", "overhead"]) == 0
    text = capsys.readouterr().out
    for row in (*overhead.CUDNN, "the implementation, without dispatch", "the interpreter lock"):
        assert row in text
    assert "10,000 x r[i] = r[i]*2+1: 400 ns a turn, 80 ns an operator" in text and "PyTorch is not installed here" in text
    assert main(["bench", "overhead", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["custom operator"]}
    assert rows["total"]["cudnn"] == 52000.0 and rows["native operator"]["cudnn"] == 18000.0
