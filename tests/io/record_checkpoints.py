"""Writes recorded/*.pt: checkpoints of small models as PyTorch saves them, with an input and PyTorch's logits beside.

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


if __name__ == "__main__":
    for name, sizes in SMALL.items():
        torch.save(checkpoint(name, inputs(name), **sizes), Path(__file__).parent / "recorded" / f"{name}.pt")
