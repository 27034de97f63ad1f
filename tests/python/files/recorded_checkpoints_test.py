"""Checkpoints that PyTorch wrote (tests/io/record_checkpoints.py) load, and give PyTorch's logits."""

import sys
from pathlib import Path

import pytest

import tenon

IO = Path(__file__).parents[2] / "io"
sys.path.insert(0, str(IO))
from checkpoints import SMALL, largest_difference  # noqa: E402


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_the_logits_are_pytorchs(name, mmap):
    checkpoint = tenon.load(IO / "recorded" / f"{name}.pt", mmap=mmap)
    assert largest_difference(checkpoint, name, tenon, **SMALL[name]) < 1e-5


def test_through_safetensors_they_are_the_same(tmp_path):
    checkpoint = tenon.load(IO / "recorded/gpt.pt")
    tenon.save(checkpoint["model"], tmp_path / "gpt.safetensors")
    checkpoint["model"] = tenon.load(tmp_path / "gpt.safetensors")
    assert largest_difference(checkpoint, "gpt", tenon, **SMALL["gpt"]) < 1e-5
