"""Checkpoints that PyTorch wrote (tests/io/record_checkpoints.py) load, and give PyTorch's logits."""

import sys
from pathlib import Path

import numpy as np
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


@pytest.mark.parametrize("how", ["path", "mmap", "open"])
def test_the_format_before_1_6(how):
    path = IO / "recorded/old.pt"
    with open(path, "rb") as file:
        found = tenon.load(file if how == "open" else path, mmap=how == "mmap")
    model = tenon.nn.Sequential(tenon.nn.Linear(3, 2), tenon.nn.BatchNorm1d(2))
    assert str(model.load_state_dict(found["model"])) == "<All keys matched successfully>"
    tensors = {**found["model"], **{name: found[name] for name in ("base", "half")}}
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor.numpy(), np.arange(tensor.numel()).reshape(tensor.shape), name)
    assert found["model"]._metadata["1"] == {"version": 2}
    assert found["view"].tolist() == [1, 2, 3] and found["view"].untyped_storage().data_ptr() == found["base"].data_ptr()
    assert found["turned"].tolist() == [[0, 3], [1, 4], [2, 5]] and found["turned"].stride() == (1, 3) and found["turned"].dtype is tenon.int32
    assert found["flags"].tolist() == [True, False] and found["none"].shape == (0, 2) and found["base"].dtype is tenon.float64
    assert isinstance(found["parameter"], tenon.nn.Parameter) and found["parameter"].requires_grad and found["parameter"].tolist() == [0, 1]
    assert (found["epoch"], found["text"], found["plain"]) == (3, "größe", [1, (2.5, None)])
