"""compile(pure=True) of the examples' training steps: eager's losses and states, without the program."""

import pathlib
import sys
import warnings

import numpy
import pytest

import tenon

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "programs"))
from programs import PROGRAMS, run  # noqa: E402


@pytest.mark.parametrize("check", [False, True], ids=["replayed", "checked"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_replayed_steps_give_the_same_bits(program, check):
    made = []

    def compiled(step):
        made.append(tenon.compile(step, pure=True, check=check))
        return made[0]

    eager = run(program, tenon, steps=6)
    with warnings.catch_warnings(record=True) as refusals:
        warnings.simplefilter("ignore")  # such as those about what another test left open
        warnings.simplefilter("always", UserWarning)
        replayed = run(program, tenon, 6, compiled)
    assert replayed.losses == eager.losses
    for key, value in eager.state.items():
        assert numpy.array_equal(replayed.state[key], value), key
    if program.name == "moe":  # how many tokens an expert has is a value
        assert "nonzero runs at once" in str(refusals[0].message)
    else:
        assert [str(warning.message) for warning in refusals] == []
        assert made[0].explain().of("replays")[0]["runs"] == 4
