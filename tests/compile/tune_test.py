"""compile(tune=...): what runs each region is measured once, and has eager's bits."""

import pytest

import tenon
import tenon.nn.functional as F

PLENTY = 20_000  # milliseconds: no machine is so slow that something is left out


def regions(f):
    return [region for segment in f.explain().segments for region in segment["regions"]]


def chain(x, y):
    return F.silu(x * 3.0 + y) * x.tanh()


def product(x, w):
    return F.gelu(x @ w + 1.0) * 0.5


def in_place(x, w):
    x.mul_(0.5).add_(1.0)
    return x @ w


def halves(x, w):
    y = x.half() * 2.0 + 1.0
    return (y.tanh() * y).sum(1), y


PROGRAMS = [
    (chain, [(300, 70), (300, 70)]),
    (chain, [(64, 512), (512,)]),
    (product, [(512, 64), (64, 96)]),
    (in_place, [(128, 32), (32, 48)]),
    (halves, [(64, 80), (2, 2)]),
]


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("program, shapes", PROGRAMS, ids=lambda x: getattr(x, "__name__", str(x)))
def test_results_are_eagers(program, shapes, relaxed):
    tuned = tenon.compile(program, threshold=0, tune=PLENTY, relaxed=relaxed)
    for seed in range(3):
        tenon.manual_seed(seed)
        arguments = [tenon.randn(*shape) for shape in shapes]
        copies = [a.clone() for a in arguments]
        results, wanted = tuned(*arguments), program(*copies)
        if not isinstance(results, tuple):
            results, wanted = (results,), (wanted,)
        for result, want in zip((*results, *arguments), (*wanted, *copies), strict=True):
            if relaxed:
                assert tenon.allclose(result.float(), want.float(), rtol=1e-2, atol=1e-2)
            else:
                assert tenon.equal(result, want)


def test_the_report_has_what_was_timed():
    f = tenon.compile(chain, threshold=0, tune=PLENTY)
    x = tenon.randn(200, 100)
    f(x, x)
    (region,) = regions(f)
    timed = region["timed"]
    assert {trial["name"].split("(")[0] for trial in timed} >= {"interpreter"}
    assert [trial for trial in timed if not trial["reason"]], "nothing won"
    assert all(trial["microseconds"] > 0 or trial["reason"] for trial in timed)
    (winner,) = [trial for trial in timed if not trial["reason"]]
    assert winner["name"].startswith(region["engine"])
    assert all(f"{name}={value}" in winner["name"] for name, value in region["knobs"].items())
    text = str(f.explain())
    assert f"run by {region['engine']}" in text
    for trial in timed:
        assert f"timed: {trial['name']}" in text
    # It is done once.
    before = f.explain().events
    f(x, x)
    assert f.explain().planned == 1
    assert regions(f)[0]["timed"] == before[0]["regions"][0]["timed"]


def test_products_are_kept_where_they_are_faster_than_their_calls():
    f = tenon.compile(product, threshold=0, tune=PLENTY)
    f(tenon.randn(512, 64), tenon.randn(64, 96))
    (segment,) = f.explain().segments
    for region in segment["regions"]:
        if region["engine"] == "composed":
            assert any(trial["name"] == "its calls apart" and trial["reason"] for trial in region["timed"])
            return
    (reason,) = [reason for operator, _, reason in segment["opaque"] if operator == "aten::mm"]
    assert reason.startswith("nothing was faster than its calls when it was timed: ")


def test_without_it_nothing_is_timed():
    f = tenon.compile(chain, threshold=0)
    f(tenon.randn(200, 100), tenon.randn(200, 100))
    assert regions(f)[0]["timed"] == []


def test_replays_and_scopes_are_tuned_too():
    x = tenon.randn(64, 64)
    f = tenon.compile(lambda x: (x * 2.0 + 1.0).tanh(), pure=True, threshold=0, tune=PLENTY)
    for _ in range(4):
        assert tenon.equal(f(x), (x * 2.0 + 1.0).tanh())
    assert regions(f)[0]["timed"]
    with tenon.recording(threshold=0, tune=PLENTY):
        y = (x * 3.0 + 1.0).tanh()
    assert tenon.equal(y, (x * 3.0 + 1.0).tanh())


@pytest.mark.parametrize("tune", ["max-autotune", -1, float("nan"), None])
def test_what_is_no_budget(tune):
    with pytest.raises(ValueError, match="tune must be a bool or a number of milliseconds"):
        tenon.compile(chain, tune=tune)
