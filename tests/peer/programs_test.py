"""The programs of examples/ on Tenon and on PyTorch: the same source, parameters and batches, three training steps."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "programs"))
from programs import PROGRAMS, run  # noqa: E402


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_three_steps_agree(program):
    ours, theirs = run(program, tenon), run(program, torch)
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-9)
    assert list(ours.state) == list(theirs.state)
    for key, value in theirs.state.items():
        np.testing.assert_allclose(ours.state[key], value, rtol=1e-7, atol=1e-9, err_msg=key)
