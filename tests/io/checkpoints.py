"""Checkpoints of the models of examples/ beside what PyTorch computed, for tests."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "programs"))
from programs import load  # noqa: E402

#: How the recorded ones were made (record_checkpoints.py).
SMALL = {
    "gpt": {"context": 12, "width": 16, "layers": 2, "heads": 2},
    "resnet": {"blocks": (1, 1, 1, 1), "width": 2, "classes": 10},
}


def make(name, framework, **sizes):
    """The example's model, which has random weights."""
    return getattr(load(name, framework), {"gpt": "GPT", "resnet": "ResNet"}[name])(**sizes)


def largest_difference(checkpoint, name, framework, **sizes):
    """Between the logits of the framework's model with these weights and those in the checkpoint."""
    model = make(name, framework, **sizes)
    model.load_state_dict(checkpoint["model"])
    model.eval()
    with framework.no_grad():
        return (model(checkpoint["input"]) - checkpoint["logits"]).abs().max().item()
