"""autotune: all plans that are built are timed, without a write to the caller's outputs, and the best one runs."""

import pytest

import tenon
from tenon.graph import build_plan_policy, heur_mode, pygraph

PLENTY = 20_000  # milliseconds


def built(policy=build_plan_policy.ALL, plans=()):
    x, w, b = tenon.randn(96, 64), tenon.randn(64, 80), tenon.randn(80)
    out = tenon.full((96,), 7.0)
    g = pygraph()
    tx, tw, tb = g.tensor_like(x, name="x"), g.tensor_like(w), g.tensor_like(b)
    y = g.reduction(g.gelu(g.add(g.matmul(tx, tw), tb)), "ADD", axis=[1]).set_output(True)
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([heur_mode.A, heur_mode.B])
    for engine, knobs in plans:
        g.create_execution_plan(engine, knobs)
    g.check_support()
    g.build_plans(policy)
    wanted = tenon.nn.functional.gelu(x @ w + b).sum(1)
    return g, {tx: x, tw: w, tb: b, y: out}, out, wanted


def workspace_for(g):
    return tenon.empty(max(g.get_autotune_workspace_size(), 64), dtype=tenon.uint8)


def test_the_fastest_is_first_and_runs():
    g, pack, out, wanted = built()
    names = [g.get_plan_name_at_index(i) for i in range(g.get_execution_plan_count())]
    assert g.get_autotune_workspace_size() >= g.get_workspace_size()
    version = out._version
    told = g.autotune(pack, workspace_for(g), budget_ms=PLENTY)
    assert out.tolist() == [7.0] * 96 and out._version == version, "an output of the caller was written"
    assert {trial["name"] for trial in told} >= set(names)
    (winner,) = [trial for trial in told if not trial["reason"]]
    assert g.get_plan_name_at_index(0) == winner["name"]
    assert all(trial["microseconds"] > 0 for trial in told)
    g.execute(pack, tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8))
    assert tenon.equal(out, wanted)
    # Plans are in the order of their times, each what its name says.
    assert sorted(names) == sorted(n for i in range(g.get_execution_plan_count()) if "tuned" not in (n := g.get_plan_name_at_index(i)))
    for index in range(g.get_execution_plan_count()):
        out.fill_(7.0)
        g.execute_plan_at_index(pack, workspace_for(g), index)
        assert tenon.equal(out, wanted), g.get_plan_name_at_index(index)


@pytest.mark.parametrize("budget", [-1, float("nan"), float("inf"), True])
def test_a_budget_is_a_number_of_milliseconds(budget):
    g, pack, _, _ = built()
    with pytest.raises(ValueError, match="^autotune: budget_ms must be a number of milliseconds"):
        g.autotune(pack, workspace_for(g), budget_ms=budget)


def test_the_choice_is_in_the_bytes():
    g, pack, out, wanted = built()
    g.autotune(pack, workspace_for(g), budget_ms=PLENTY)
    loaded = pygraph()
    loaded.deserialize(g.serialize())
    assert loaded.get_plan_name_at_index(0) == g.get_plan_name_at_index(0)
    loaded.execute({t.get_uid(): x for t, x in pack.items()}, workspace_for(g))
    assert tenon.equal(out, wanted)
    assert loaded.serialize() == g.serialize()


def test_a_tuned_plan_can_be_asked_for():
    g, pack, out, wanted = built(build_plan_policy.HEURISTICS_CHOICE, [("fused", {"tuned": 1})])
    index = g.get_execution_plan_count() - 1
    assert g.get_plan_name_at_index(index) == "fused(position=0, rows=1, relaxed=0, tuned=1)"
    g.build_plan_at_index(index)
    g.execute_plan_at_index(pack, workspace_for(g), index)
    assert tenon.equal(out, wanted)


def test_relaxed_plans_are_held_against_the_others():
    g, pack, out, wanted = built(plans=[("fused", {"relaxed": 1})])
    told = g.autotune(pack, workspace_for(g), budget_ms=PLENTY)
    assert not [trial for trial in told if trial["reason"].startswith("wrong")]
    g.execute(pack, workspace_for(g))
    assert tenon.allclose(out, wanted, rtol=1e-4, atol=1e-4)


def test_what_cannot_be_tuned():
    g = pygraph()
    x = g.tensor(dim=[16, 16], data_type=tenon.float32)
    g.matmul(g.matmul(x, x), x).set_uid(7).set_output(True)
    g.build()
    with pytest.raises(RuntimeError, match="autotune: no plan ran: it needs a workspace of"):
        g.autotune({x: tenon.ones(16, 16), 7: tenon.ones(16, 16)})
    g, pack, out, wanted = built()
    x = pygraph()
    with pytest.raises(RuntimeError, match=r"^autotune: call validate\(\), .*, build_plans\(\) first$"):
        x.autotune({}, None)
    with pytest.raises(ValueError, match="the address of UID .* is missing"):
        g.autotune({t: v for t, v in pack.items() if v is not out}, workspace_for(g))
    with pytest.raises(TypeError, match="maps tensors of the graph or UIDs"):
        g.autotune([], None)


def test_what_was_tuned_is_no_other_plan_when_it_is_tuned_again():
    g, pack, _, _ = built()
    for _ in range(4):
        g.autotune(pack, workspace_for(g), budget_ms=PLENTY)
    names = [g.get_plan_name_at_index(i) for i in range(g.get_execution_plan_count())]
    assert len(set(names)) == len(names), names


def test_without_time_the_first_plan_stays():
    g, pack, out, wanted = built()
    first = g.get_plan_name_at_index(0)
    told = g.autotune(pack, workspace_for(g), budget_ms=0)
    assert g.get_plan_name_at_index(0) == first
    assert all(trial["reason"] == "not timed: the budget of 0 ms was spent" for trial in told[1:])
    g.execute(pack, workspace_for(g))
    assert tenon.equal(out, wanted)
