"""What the cache holds is looked at and emptied: tenon.plans, and the command of that name."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import tenon
g = tenon.pygraph(io_data_type=tenon.float32)
x, w = g.tensor(dim=[8, 6], uid=1), g.tensor(dim=[6, 5], uid=2)
g.relu(g.matmul(x, w)).set_uid(3).set_output(True)
g.build()
x, w, out = tenon.randn(8, 6), tenon.randn(6, 5), tenon.empty(8, 5)
g.execute({1: x, 2: w, 3: out}, tenon.empty(max(g.get_workspace_size(), 1), dtype=tenon.uint8))
assert tenon.equal(out, (x @ w).relu())
print(tenon.plans.summary())
"""


def tenon_process(*arguments, folder, **variables):
    environment = {**os.environ, "TENON_CACHE": str(folder), **variables}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def plans(folder, *arguments, **variables):
    done = tenon_process("-m", "tenon", "plans", *arguments, folder=folder, **variables)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path):
    where = tmp_path / "plans"
    for wanted in ("1 planned, 0 tuned, 0 loaded; not found: nothing was stored (1)", "0 planned, 0 tuned, 1 loaded"):
        assert tenon_process("-c", PROGRAM, folder=where).stdout.strip() == wanted
    return where


def test_what_the_folder_holds_and_what_processes_found_there(folder):
    code, out, _ = plans(folder)
    rows = dict(line.rsplit(None, 1) for line in out.splitlines())
    assert code == 0 and rows["folder"] == str(folder) and rows["plans"] == "1" and int(rows["bytes"]) > 100
    assert rows["loaded"] == "1" and rows["planned"] == "1" and rows["missed: nothing was stored"] == "1"
    known = json.loads(plans(folder, "--json")[1])
    assert known["totals"] == {"loaded": 1, "missed: nothing was stored": 1, "planned": 1} and known["unusable"] == {}


def test_each_plan_says_what_it_computes(folder):
    assert "mm, relu: 2 calls in 2 steps" in plans(folder, "list")[1]
    (entry,) = json.loads(plans(folder, "list", "--json")[1])
    assert entry["problem"] == "" and entry["about"].startswith("mm, relu") and (folder / entry["file"]).stat().st_size == entry["bytes"]
    (folder / entry["file"]).write_bytes(b"something else")
    assert "the file is cut off" in plans(folder, "list")[1]


def test_clear_removes_plans_and_counts_and_nothing_else(folder):
    (folder / "notes.txt").write_text("mine")
    assert plans(folder, "clear")[1] == "removed 1 plans\n"
    assert sorted(f.name for f in folder.iterdir() if not f.name.startswith(".")) == ["notes.txt"]
    rows = dict(line.rsplit(None, 1) for line in plans(folder)[1].splitlines())
    assert rows["plans"] == "0" and rows["loaded"] == "0"


def test_counts_and_files_that_others_wrote_are_passed_over(folder):
    (folder / ".counts").write_bytes(b"3 loaded\n-7 planned\n1 \xff\xfe\n1 \x1b[31mred\n")
    (folder / "thesis.plan").write_text("mine")
    code, out, error = plans(folder)
    assert (code, error) == (0, "") and "\x1b" not in out
    rows = dict(line.rsplit(None, 1) for line in out.splitlines())
    assert rows["loaded"] == "3" and rows["planned"] == "0" and rows["plans"] == "1" and "red" not in out
    assert plans(folder, "clear")[1] == "removed 1 plans\n" and (folder / "thesis.plan").read_text() == "mine"


def test_a_folder_whose_name_is_no_utf_8(tmp_path):
    where = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(where)
    for arguments in ((), ("list",), ("--json",)):
        code, out, error = plans(os.fsdecode(where), *arguments, PYTHONIOENCODING="utf-8:strict")
        assert (code, error) == (0, "") and str(tmp_path) in out


def test_a_folder_that_is_not_used_is_said_so(tmp_path):
    tmp_path.chmod(0o777)
    code, _, said = plans(tmp_path)
    assert code == 1 and said.startswith(f"tenon plans: others may write into {tmp_path}")
    off = dict(line.split("  ", 1) for line in plans("0")[1].splitlines())
    assert off["folder"].strip() == "none: TENON_CACHE switches it off"
