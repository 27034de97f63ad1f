"""tenon.nn.modules: the modules by which PyTorch's programs import layers, their base classes and helpers."""

import importlib
import subprocess
import sys

import pytest

import tenon
from tenon import nn

ROOMS = {
    "activation": "ReLU", "batchnorm": "BatchNorm2d", "container": "Sequential", "conv": "Conv2d", "distance": "PairwiseDistance",
    "dropout": "Dropout2d", "flatten": "Flatten", "fold": "Unfold", "instancenorm": "InstanceNorm1d", "linear": "Linear",
    "loss": "CrossEntropyLoss", "module": "Module", "normalization": "LayerNorm", "padding": "ZeroPad2d", "pixelshuffle": "PixelShuffle",
    "pooling": "MaxPool2d", "sparse": "Embedding", "transformer": "TransformerEncoderLayer", "upsampling": "Upsample",
}  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_a_layer_is_that_of_nn(room):
    module = importlib.import_module(f"tenon.nn.modules.{room}")
    assert getattr(module, ROOMS[room]) is getattr(nn, ROOMS[room]) is getattr(tenon.nn.modules, ROOMS[room])
    assert module is getattr(tenon.nn.modules, room) and ROOMS[room] in dir(module)
    for name in module.__all__:
        assert getattr(module, name) is getattr(nn, name)


def test_every_layer_of_nn_is_in_one_of_them():
    layers = {name for name in dir(nn) if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)}
    assert layers <= {*dir(nn.modules)}


def test_imports_in_a_program():
    program = """
from tenon.nn.modules.conv import Conv2d, _ConvNd
from tenon.nn.modules.batchnorm import _BatchNorm
from tenon.nn.modules.utils import _pair, _triple
import tenon.nn.modules.loss as loss
import tenon as torch
import tenon.nn.modules.pooling
assert isinstance(torch.nn.Conv1d(1, 1, 1), _ConvNd) and isinstance(torch.nn.ConvTranspose2d(1, 1, 1), _ConvNd)
assert isinstance(torch.nn.BatchNorm3d(1), _BatchNorm) and not isinstance(torch.nn.LayerNorm(1), _BatchNorm)
assert issubclass(torch.nn.MSELoss, loss._Loss) and issubclass(torch.nn.MaxPool1d, torch.nn.modules.pooling._MaxPoolNd)
assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2) and _triple(0) == (0, 0, 0)
from tenon.nn.modules import *
assert Linear is torch.nn.Linear
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_helpers():
    from tenon.nn.modules import utils

    assert utils._single(2) == (2,) and utils._quadruple(1) == (1, 1, 1, 1) and utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert utils._list_with_default([None, 3], [5, 6, 7]) == [6, 3] and utils._list_with_default(4, [1]) == 4
    with pytest.raises(ValueError, match="expected more than 2 dimensions"):
        utils._list_with_default([1, 2], [3, 4])
    state = {"module.a": 1, "b": 2, "module.c": 3}
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b": 2, "c": 3}


def test_what_is_absent_says_so():
    with pytest.raises(AttributeError, match="'SyncBatchNorm': torch.nn.SyncBatchNorm of PyTorch is not in Tenon yet"):
        tenon.nn.modules.batchnorm.SyncBatchNorm
    with pytest.raises(ImportError):
        from tenon.nn.modules.batchnorm import SyncBatchNorm  # noqa: F401
    with pytest.raises(AttributeError, match="module 'tenon.nn.modules.conv' has no attribute 'nonsense'"):
        tenon.nn.modules.conv.nonsense
    with pytest.raises(AttributeError, match="module 'tenon.nn.modules' has no attribute 'nonsense'"):
        tenon.nn.modules.nonsense


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.CircularPad1d(1), lambda: nn.CircularPad2d(1), lambda: nn.CircularPad3d(1), lambda: nn.GRUCell(2, 2), lambda: nn.LSTMCell(2, 2),
        lambda: nn.RNNCell(2, 2), nn.Softmax2d, lambda: nn.CrossMapLRN2d(2),
    ],
)  # fmt: skip
def test_a_module_names_an_input_that_is_no_tensor(make):
    module = make()
    with pytest.raises(TypeError, match=f"^{type(module).__name__}: input must be a Tensor, got 'xyz' .str.$"):
        module("xyz")


@pytest.mark.parametrize("size", [0, -1])
def test_cross_map_lrn_refuses_no_channels(size):
    with pytest.raises(ValueError, match=f"^CrossMapLRN2d: size must be at least 1, got {size}$"):
        nn.CrossMapLRN2d(size)
