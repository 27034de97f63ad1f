"""Altered files of every kind and pickles made at random: some in every run, TENON_MUTATIONS says how many of each kind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "files.py"
COUNT = int(os.environ.get("TENON_MUTATIONS", 3000))
KINDS = ["own", "own-sealed", "first", "pytorch", "pytorch-sealed", "legacy", "safetensors", "safetensors-foreign", "hand-made"]


def test_no_kind_is_left_out():
    listed = subprocess.run([sys.executable, SCRIPT, "--list"], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_altered_files_load_as_what_they_hold_or_say_where_they_are_wrong(kind):
    done = subprocess.run([sys.executable, SCRIPT, kind, "--count", str(COUNT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["refused"] > COUNT / 2 and counts["compared"] > COUNT / 200, counts


@pytest.mark.parametrize("kind", ["bytes", "fields"])
def test_altered_onnx_files_load_with_the_weights_of_the_file_or_say_where_they_are_wrong(kind):
    done = subprocess.run([sys.executable, SCRIPT.with_name("onnx_files.py"), kind, "--count", str(COUNT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["refused"] > COUNT / 4 and counts["loaded"] > COUNT / 40, counts


def test_altered_onnx_files_that_load_run_or_fail_with_an_error():
    done = subprocess.run([sys.executable, SCRIPT.with_name("onnx_files.py"), "fields", "--run", "--count", str(COUNT // 3)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["run"] > COUNT / 12 and counts["failed"] > COUNT / 300, counts
