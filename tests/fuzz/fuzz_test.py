"""A short fuzz in every test run; `python tests/fuzz/fuzz.py --seconds N` runs a long one."""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location("fuzz_script", Path(__file__).parent / "fuzz.py")
script = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(script)


def test_random_calls_end_well():
    problems, counts = script.fuzz(seed=1, count=12000)
    assert not problems, "\n".join(problems)
    assert counts["results"] > 3000 and counts["TypeError"] > 1000, counts


def test_wrong_arguments_are_named():
    """Every error says of which function or argument: the share of texts that name neither is 0."""
    problems, counts = script.fuzz(seed=1, count=8000, wrong=True)
    assert not problems, "\n".join(problems)
    assert counts["TypeError"] > 3000, counts


def test_a_text_that_names_nothing_is_found(monkeypatch):
    monkeypatch.setenv("TENON_FUZZ_NAMELESS", "1")
    problems, _ = script.fuzz(seed=3, count=200, wrong=True)
    assert any("names no function and no argument" in p for p in problems)


def test_a_crash_is_reported_with_its_seed_and_call(monkeypatch):
    monkeypatch.setenv("TENON_FUZZ_CRASH", "7")
    problems, _ = script.fuzz(seed=3, count=20)
    assert len(problems) == 1 and problems[0].startswith("seed 3: ended with -") and "call 7" in problems[0]
