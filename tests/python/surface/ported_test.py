"""What programs written for PyTorch say that no other test has: former names, switches, rooms to import, printed forms."""

import importlib
import io
import subprocess
import sys

import numpy as np
import pytest

import tenon


def test_former_types_of_tensors():
    assert tenon.FloatTensor([1, 2]).dtype is tenon.float32 and tenon.LongTensor(2, 3).shape == (2, 3)
    x = tenon.ones(2)
    assert isinstance(x, tenon.FloatTensor) and not isinstance(x, tenon.LongTensor)
    assert x.type() == "tenon.FloatTensor"
    for wanted in (tenon.LongTensor, "torch.LongTensor", "tenon.LongTensor", tenon.int64):
        assert x.type(wanted).dtype is tenon.int64
    with pytest.raises(ValueError, match="type: unknown type 'ComplexTensor'"):
        x.type("ComplexTensor")
    with pytest.raises(TypeError, match="type: dtype"):
        x.type(3)


def test_activations_in_place():
    F = tenon.nn.functional
    for name in ("elu", "celu", "selu", "relu", "leaky_relu", "hardtanh", "threshold"):
        x = tenon.linspace(-3, 3, 7)
        more = (0.1, 0.5) if name == "threshold" else ()
        want = getattr(F, name)(x, *more)
        assert getattr(F, name + "_")(x, *more) is x and tenon.equal(x, want), name


def test_variables():
    x = tenon.ones(2)
    v = tenon.autograd.Variable(x, requires_grad=True)
    v.sum().backward()
    assert v.grad.tolist() == [1, 1] and not x.requires_grad and v.data_ptr() == x.data_ptr()


def test_switches_are_read_as_they_were_set():
    tenon.use_deterministic_algorithms(True, warn_only=True)
    assert tenon.are_deterministic_algorithms_enabled() and tenon.is_deterministic_algorithms_warn_only_enabled()
    tenon.use_deterministic_algorithms(False)
    assert not tenon.are_deterministic_algorithms_enabled()
    tenon.set_float32_matmul_precision("high")
    assert tenon.get_float32_matmul_precision() == "high"
    with pytest.raises(ValueError, match="set_float32_matmul_precision"):
        tenon.set_float32_matmul_precision("low")
    tenon.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("room", ["nn.parallel", "nn.transformer", "optim.lr_scheduler", "utils.data.dataloader"])
def test_rooms_are_imported_by_their_names(room):
    module = importlib.import_module(f"tenon.{room}")
    owner = importlib.import_module(f"tenon.{room.rpartition('.')[0]}")
    assert getattr(owner, room.rpartition(".")[2]) is module
    with pytest.raises(AttributeError):
        module.no_such_name


def test_rooms_load_when_they_are_asked_for():
    code = (
        "import sys, tenon; later = {'tenon.optim.lr_scheduler', 'tenon.nn.transformer', 'tenon.utils', 'tenon._names.legacy'}; "
        "assert not later & set(sys.modules); "
        "assert {'Transformer', 'TransformerEncoder'} <= set(dir(tenon.nn)) and 'lr_scheduler' in dir(tenon.optim); "
        "from tenon.nn import *; from tenon.optim import lr_scheduler; Transformer, Linear, lr_scheduler.StepLR; "
        "assert tenon.nn.Transformer is Transformer and 'LongTensor' in dir(tenon)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_only_derivatives_call_is_not_public():
    assert not hasattr(tenon, "upsample_nearest2d_backward") and not hasattr(tenon, "numpy_T")
    assert tenon.ops.aten.upsample_nearest2d_backward is not None


def test_checkpoints_hold_what_has_a_history(tmp_path):
    w = tenon.ones(2, requires_grad=True)
    loss = (w * 3).sum()
    tenon.save({"loss": loss, "states": [{"w": w.detach()}]}, tmp_path / "checkpoint")
    got = tenon.load(tmp_path / "checkpoint", map_location="cpu", weights_only=True)
    assert got["loss"].item() == 6 and got["loss"].is_leaf and got["loss"].requires_grad
    assert got["states"][0]["w"].tolist() == [1, 1]
    on_meta = tenon.load(tmp_path / "checkpoint", map_location=tenon.device("meta"))
    assert on_meta["loss"].is_meta and on_meta["states"][0]["w"].is_meta
    for place in (lambda storage, location: storage, {"cuda:0": "cpu"}):
        assert tenon.load(tmp_path / "checkpoint", map_location=place)["loss"].item() == 6
    with pytest.raises(TypeError, match="load: map_location"):
        tenon.load(io.BytesIO(), map_location=3)


def test_printed_forms():
    assert repr(tenon.nn.BatchNorm1d(2).running_mean) == "tensor([0., 0.])"
    assert repr(tenon.nn.Buffer(tenon.ones(1))) == "tensor([1.])"
    two = [{"params": [tenon.ones(1, requires_grad=True)]}, {"params": [tenon.ones(1, requires_grad=True)]}]
    assert "\n\nParameter Group 1\n" in repr(tenon.optim.SGD(two, lr=0.1))


def test_loading_a_state_says_what_did_not_match():
    layer = tenon.nn.Linear(2, 1)
    assert repr(layer.load_state_dict(layer.state_dict())) == "<All keys matched successfully>"
    got = layer.load_state_dict({"weight": layer.weight, "more": layer.bias}, strict=False)
    assert repr(got) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['more'])"
    with pytest.raises(RuntimeError, match=r'Missing key.*"bias".\s*Unexpected key.*"more"'):
        layer.load_state_dict({"weight": layer.weight, "more": layer.bias})


def test_modules_say_what_is_wrong_with_their_arguments():
    nn = tenon.nn
    for make, text in (
        (lambda: nn.Conv2d(3, 4, "a"), "Conv2d: kernel_size"),
        (lambda: nn.Conv2d(3, 4, 0), "Conv2d: kernel_size"),
        (lambda: nn.Conv1d(3, 4, (3, 3)), "Conv1d: kernel_size"),
        (lambda: nn.Conv2d(-3, 4, 3), "Conv2d: in_channels"),
        (lambda: nn.Linear(-3, 4), "Linear: in_features"),
        (lambda: nn.Embedding(-4, 2), "Embedding: num_embeddings"),
        (lambda: nn.Embedding(4, 2, padding_idx=4), "Embedding: padding_idx 4"),
        (lambda: nn.functional.embedding_bag(tenon.tensor([0]), tenon.ones(2, 2), tenon.tensor([0]), mode="x"), "embedding_bag"),
        (lambda: nn.BatchNorm1d(3)(tenon.ones(1, 3)), "batch_norm: expected more than 1 value"),
    ):
        with pytest.raises((ValueError, TypeError), match=text):
            make()


def test_an_index_out_of_range_writes_nothing():
    """In every operator that writes by position; the position is named."""
    source = tenon.full([3, 4], 7.0)
    far = tenon.tensor([0, 9])
    table = tenon.tensor([[0, 1, 2, 3], [0, 1, 2, 9]])
    for name, call in {
        "scatter": lambda x: x.scatter_(1, table, 5.0),
        "scatter_src": lambda x: x.scatter_(1, table, source),
        "scatter_add": lambda x: x.scatter_add_(1, table, source),
        "scatter_reduce": lambda x: x.scatter_reduce_(1, table, source, "amax"),
        "index_add": lambda x: x.index_add_(0, far, source[:2]),
        "index_copy": lambda x: x.index_copy_(0, far, source[:2]),
        "index_fill": lambda x: x.index_fill_(0, far, 5.0),
        "index_put": lambda x: x.index_put_((far,), source[:2]),
        "put": lambda x: x.put_(tenon.tensor([0, 12]), tenon.ones(2)),
        "setitem": lambda x: x.__setitem__(far, 5.0),
        "setitem of two": lambda x: x.__setitem__((tenon.tensor([0, 1]), tenon.tensor([0, -9])), 5.0),
    }.items():
        x = tenon.arange(12.0).reshape(3, 4)
        with pytest.raises(IndexError, match=r"index (9|12|-9)"):
            call(x)
        assert x.tolist() == np.arange(12.0).reshape(3, 4).tolist(), name


def test_the_former_constructor_copies():
    assert tenon.Tensor([1, 2]).tolist() == [1.0, 2.0] and tenon.Tensor(2, 3).dtype is tenon.float32
    assert tenon.as_tensor([1], tenon.float64).dtype is tenon.float64


def test_where_elements_are():
    x = tenon.ones(1)
    assert x.is_cpu and not x.is_cuda and not x.to("meta").is_cpu


def test_overloads_take_lists_of_any_length():
    x = tenon.arange(4.0).reshape(1, 1, 4, 1)
    values, places = tenon.ops.aten.max_pool2d_with_indices(x, [2, 1], [], [0], 1)
    assert values.flatten().tolist() == [1, 3] and places.flatten().tolist() == [1, 3]


def test_named_results_print_on_lines():
    pair = tenon.tensor([[1, 3], [2, 0]]).max(1)
    assert repr(pair) == str(pair) == "tenon.return_types.max(\nvalues=tensor([3, 2]),\nindices=tensor([1, 0]))"
