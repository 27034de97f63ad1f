"""TENON_DUMP_GRAPH: what a program looks like at each stage, and what each position of the matcher would fuse."""

import os
import subprocess
import sys

import tenon

PROGRAM = """
import tenon
x, w = tenon.ones(64, 64), tenon.ones(64, 64)
tenon.compile(lambda x, w: tenon.relu((x * 2) @ w + 1), threshold=0)(x, w)
"""


def run(folder, **variables):
    paths = os.pathsep.join([os.path.dirname(os.path.dirname(tenon.__file__)), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "TENON_DUMP_GRAPH": str(folder), **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_stages_are_written_as_text_and_as_pictures(tmp_path):
    assert run(tmp_path) == ""
    files = sorted(f.name.split("_", 3)[3] for f in tmp_path.iterdir())
    stages = ["0_lifted", "1_clean", "3_fused"]
    assert files == sorted([f"{s}.{kind}" for s in stages for kind in ("txt", "dot")] + ["2_positions.txt"])
    text = {f.name.split("_", 3)[3]: f.read_text() for f in tmp_path.iterdir()}
    assert text["0_lifted.txt"].startswith("graph 1\nstorage %0 16384 cpu input\n")
    assert text["0_lifted.txt"].count("aten::") == 4
    assert "tenon::region_flat" in text["3_fused.txt"]
    assert text["3_fused.dot"].startswith("digraph")


def test_positions_say_what_each_fuses_with_its_key(tmp_path):
    run(tmp_path)
    text = next(tmp_path.glob("*_positions.txt")).read_text()
    for position in ("a", "b-A", "b-B", "c"):
        assert f"position {position}: 1 fusions, 1 steps" in text
    assert text.count("  planned in ") == 4 and text.count(" us, run in ") == 4
    assert text.count("(matmul): aten::mul.Scalar, aten::mm, aten::add.Scalar, aten::relu") == 4
    assert text.count("  key ") == 4


def test_a_folder_that_is_not_there_is_made(tmp_path):
    assert run(tmp_path / "none" / "yet") == ""
    assert list((tmp_path / "none" / "yet").glob("*fused.txt"))


def test_a_folder_that_cannot_be_made_is_said_once(tmp_path):
    (tmp_path / "file").write_text("")
    said = run(tmp_path / "file" / "folder")
    assert said.count("TENON_DUMP_GRAPH: ") == 1 and "nothing can be written to the folder" in said


def test_an_unknown_position_is_said(tmp_path):
    assert "TENON_FUSION: 'd' is none of a, b-A, b-B and c; a is taken" in run(tmp_path, TENON_FUSION="d")
    assert run(tmp_path, TENON_FUSION="b-B") == ""
