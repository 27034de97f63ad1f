"""The rule of bench/compare.py --base: slower is what is slower in two runs of alternated rounds."""

import importlib.util
import pathlib
import re

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def compare_builds(monkeypatch):
    spec = importlib.util.spec_from_file_location("compare_builds", BENCH / "compare_builds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Folder:
        def __init__(self, name):
            self.folder = name

    monkeypatch.setattr(module, "Build", Folder)
    return module


def measured(module, monkeypatch, times):
    """Lets rows take times[row][build], a list of one figure for each round; returns the turns that were taken."""
    turns = []

    def measure(build, names, core):
        turns.append(build.folder)
        number = turns.count(build.folder) - 1
        wanted = {row: by[build.folder] for row, by in times.items() if names is None or row in names}
        return {row: figures[number % len(figures)] for row, figures in wanted.items()}

    monkeypatch.setattr(module, "sources", lambda builds, pattern: [("bench", measure)])
    return turns


def test_a_row_that_is_slower_in_both_runs_is_named(compare_builds, monkeypatch, capsys):
    times = {
        "steady": {"base": [100.0], "new": [104.0]},
        "slow": {"base": [100.0], "new": [106.0]},
        "noisy": {"base": [100.0], "new": [120.0, 121.0, 119.0, 101.0]},
        "gone": {"base": [100.0], "new": [50.0]},
    }
    turns = measured(compare_builds, monkeypatch, times)
    table, slower = compare_builds.compare("base", "new", rounds=3)
    assert [entry["row"] for entry in slower] == ["bench: slow"]
    by_row = {entry["row"]: entry for entry in table}
    assert by_row["bench: noisy"]["ratio"] == pytest.approx(1.19)
    assert by_row["bench: noisy"]["again"] == pytest.approx(1.01), "the second run says that it was noise"
    assert by_row["bench: gone"]["again"] is None, "only what was slower is measured again"
    assert turns[:6] == ["base", "new", "new", "base", "base", "new"]
    printed = capsys.readouterr().out
    assert "slower than the base in both of two runs: 1" in printed
    assert "bench: slow: 1.06, then 1.06" in printed


def test_the_least_of_all_rounds_counts(compare_builds, monkeypatch):
    measured(compare_builds, monkeypatch, {"row": {"base": [300.0, 100.0, 200.0], "new": [400.0, 130.0, 90.0]}})
    table, slower = compare_builds.compare("base", "new", rounds=3)
    assert (table[0]["base"], table[0]["new"]) == (100.0, 90.0)
    assert not slower


def test_a_row_of_one_build_has_no_ratio(compare_builds, monkeypatch, capsys):
    def measure(build, names, core):
        return {"old": 1.0} if build.folder == "base" else {"added": 2.0}

    monkeypatch.setattr(compare_builds, "sources", lambda builds, pattern: [("bench", measure)])
    table, slower = compare_builds.compare("base", "new", rounds=1)
    assert {entry["row"]: entry["ratio"] for entry in table} == {"bench: old": None, "bench: added": None}
    assert not slower


def test_names_are_escaped_for_both_dialects(compare_builds):
    name = "empty({1}), C++"
    escaped = compare_builds.escaped(name)
    assert "\\" not in escaped
    assert re.fullmatch(escaped, name)


def test_a_folder_that_is_no_build_is_refused(tmp_path):
    spec = importlib.util.spec_from_file_location("compare_builds", BENCH / "compare_builds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(SystemExit, match="is no build of Tenon"):
        module.Build(tmp_path)
