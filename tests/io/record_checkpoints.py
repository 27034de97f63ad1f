"""Writes recorded/*.pt: checkpoints of small models as PyTorch saves them, with an input and PyTorch's logits beside, and one in
the format before 1.6.

    PYTHONPATH=build/release/python:ENVIRONMENT/lib/python3.11/site-packages .venv/bin/python tests/io/record_checkpoints.py
"""

from pathlib import Path

import numpy as np
import torch
from checkpoints import SMALL, make
from programs import fill


def checkpoint(name, given, **sizes):
    """A model of PyTorch's with weights of NumPy's, its input and its logits."""
    model = make(name, torch, **sizes)
    state = {key: torch.tensor(value, dtype=torch.float32) for key, value in fill(model, np.random.default_rng(0)).items()}
    model.load_state_dict(state, strict=False)
    model.eval()
    with torch.no_grad():
        return {"model": model.state_dict(), "input": given, "logits": model(given)}


def inputs(name, vocabulary=27, length=12, size=64):
    rng = np.random.default_rng(1)
    if name == "gpt":
        return torch.tensor(rng.integers(0, vocabulary, (2, length)))
    return torch.tensor(rng.normal(size=(2, 3, size, size)), dtype=torch.float32)


def old():
    """What tests read again; every tensor counts up."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    for part in model.state_dict().values():
        part.copy_(torch.arange(part.numel()).reshape(part.shape))
    base = torch.arange(4.0, dtype=torch.float64)
    return {
        "model": model.state_dict(), "base": base, "view": base[1:], "turned": torch.arange(6, dtype=torch.int32).reshape(2, 3).t(),
        "half": torch.arange(3, dtype=torch.float16), "flags": torch.tensor([True, False]), "none": torch.zeros(0, 2),
        "parameter": torch.nn.Parameter(torch.arange(2.0)), "epoch": 3, "text": "größe", "plain": [1, (2.5, None)],
    }  # fmt: skip


if __name__ == "__main__":
    for name, sizes in SMALL.items():
        torch.save(checkpoint(name, inputs(name), **sizes), Path(__file__).parent / "recorded" / f"{name}.pt")
    torch.save(old(), Path(__file__).parent / "recorded" / "old.pt", _use_new_zipfile_serialization=False)
