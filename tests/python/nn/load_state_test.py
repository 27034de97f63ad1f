"""What load_state_dict gives to modules that take their values themselves, and states of older versions."""

import gc
import weakref
from collections import OrderedDict

import pytest

import tenon
from tenon import nn


def state_without_counts(version=None):
    """As PyTorch wrote one before 0.4.1."""
    state = OrderedDict((name, value + 1) for name, value in model().state_dict().items() if not name.endswith("num_batches_tracked"))
    if version is not None:
        state._metadata = {"1": {"version": version}}
    return state


def model():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


@pytest.mark.parametrize("version", [None, 1])
@pytest.mark.parametrize("assign", [False, True])
def test_older_states_of_batch_norms_have_no_count(version, assign):
    module = model()
    module[1].num_batches_tracked.fill_(5)
    assert module.load_state_dict(state_without_counts(version), assign=assign) == ([], [])
    assert module[1].num_batches_tracked.item() == 5 and module[1].running_mean.tolist() == [1, 1, 1]
    bare = nn.BatchNorm1d(3, track_running_stats=False)
    assert bare.load_state_dict({"weight": tenon.ones(3), "bias": tenon.ones(3)}) == ([], [])


def test_newer_states_of_batch_norms_have_a_count():
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "1.num_batches_tracked".'):
        model().load_state_dict(state_without_counts(2))


class Renamed(nn.Linear):
    """Takes its weight by an older name too, as classes of PyTorch's programs do it."""

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        self.seen = local_metadata
        if prefix + "kernel" in state_dict:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        if prefix + "bias" in missing_keys:
            missing_keys.remove(prefix + "bias")


def test_a_class_may_change_what_it_gets():
    module = nn.Sequential(Renamed(2, 2), nn.Sequential(Renamed(2, 2)))
    state = OrderedDict({"0.kernel": tenon.ones(2, 2), "0.bias": tenon.ones(2), "1.0.weight": tenon.zeros(2, 2)})
    state._metadata = {"0": {"version": 3}, "1.0": {"version": 4}}
    before = list(state)
    assert module.load_state_dict(state) == ([], []) and list(state) == before
    assert module[0].weight.tolist() == [[1, 1], [1, 1]] and module[1][0].weight.tolist() == [[0, 0], [0, 0]]
    assert module[0].seen == {"version": 3} and module[1][0].seen == {"version": 4}
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "weight".\n\tUnexpected key\(s\) in state_dict: "x".'):
        Renamed(2, 2).load_state_dict({"x": tenon.ones(1)})


class Itself(nn.Module):
    def __init__(self):
        super().__init__()
        self.taken = None
        self.inner = nn.Linear(1, 1)

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        self.taken = state_dict[prefix + "value"]


def test_a_class_may_take_its_values_itself():
    module = nn.Sequential(Itself())
    inner = nn.Linear(1, 1).state_dict()
    assert module.load_state_dict({"0.value": 5, "0.inner.weight": inner["weight"], "0.inner.bias": inner["bias"]}) == ([], [])
    assert module[0].taken == 5 and module[0].inner.weight.item() == inner["weight"].item()


def test_hooks_get_the_metadata():
    module, seen = model(), []
    module[1].register_load_state_dict_pre_hook(lambda module, state, prefix, metadata, *rest: seen.append((prefix, metadata)))
    module.load_state_dict(state_without_counts(1))
    assert seen == [("1.", {"version": 1})]


def test_another_dict_is_refused():
    class Other(nn.Linear):
        def _load_from_state_dict(self, state_dict, *rest):
            super()._load_from_state_dict(dict(state_dict), *rest)

    with pytest.raises(RuntimeError, match="^_load_from_state_dict: state_dict must be the dict that load_state_dict gave; change that one$"):
        Other(1, 1).load_state_dict(nn.Linear(1, 1).state_dict())


def test_nothing_keeps_the_tensors_of_a_state():
    state = nn.Linear(2, 2).state_dict()
    kept = weakref.ref(state["weight"])
    gc.disable()
    try:
        nn.Linear(2, 2).load_state_dict(state)
        with pytest.raises(RuntimeError, match="size mismatch"):
            nn.Linear(3, 2).load_state_dict(state)
        del state
        assert kept() is None
    finally:
        gc.enable()
