"""Modules of convolutions: shapes, initialisation, texts, states and errors. Values are those of the functions."""

import math

import numpy
import pytest

import tenon
from tenon import nn
from tenon.nn import functional as F


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_module_is_its_function_of_its_parameters(n, transposed):
    tenon.manual_seed(1)
    kind = getattr(nn, f"Conv{'Transpose' if transposed else ''}{n}d")
    layer = kind(4, 6, 3, stride=2, padding=1, groups=2, dilation=1)
    assert layer.weight.shape == ((4, 3) if transposed else (6, 2)) + (3,) * n
    assert list(layer.state_dict()) == ["weight", "bias"]
    x = tenon.randn(2, 4, *[5] * n)
    function = getattr(F, f"conv_transpose{n}d" if transposed else f"conv{n}d")
    wanted = function(x, layer.weight, layer.bias, stride=2, padding=1, groups=2)
    assert tenon.equal(layer(x), wanted)
    assert tenon.allclose(layer(x[0]), wanted[0])
    layer(x).sum().backward()
    assert layer.weight.grad.shape == layer.weight.shape and layer.bias.grad.shape == (6,)


def test_weights_are_drawn_as_in_pytorch():
    tenon.manual_seed(2)
    layer = nn.Conv2d(8, 16, (3, 5), groups=2)
    bound = 1 / math.sqrt(4 * 15)
    for p in layer.parameters():
        assert p.abs().max() <= bound
    assert layer.weight.abs().max() > 0.9 * bound
    tenon.manual_seed(2)
    assert tenon.equal(nn.Conv2d(8, 16, (3, 5), groups=2).weight, layer.weight)


@pytest.mark.parametrize(
    "layer, text",
    [
        (nn.Conv2d(3, 4, 3), "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))"),
        (
            nn.Conv1d(4, 4, 2, stride=2, padding=1, dilation=3, groups=2, bias=False),
            "Conv1d(4, 4, kernel_size=(2,), stride=(2,), padding=(1,), dilation=(3,), groups=2, bias=False)",
        ),
        (nn.Conv2d(3, 4, 3, padding="same"), "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1), padding=same)"),
        (
            nn.Conv3d(1, 1, (1, 2, 3), padding=1, padding_mode="circular"),
            "Conv3d(1, 1, kernel_size=(1, 2, 3), stride=(1, 1, 1), padding=(1, 1, 1), padding_mode=circular)",
        ),
        (
            nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1),
            "ConvTranspose2d(3, 4, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1))",
        ),
    ],
)
def test_texts_are_pytorch_s(layer, text):
    assert repr(layer) == text


def test_same_padding_keeps_the_size():
    x = tenon.randn(2, 3, 7, 8)
    assert nn.Conv2d(3, 5, (4, 3), padding="same", dilation=2)(x).shape == (2, 5, 7, 8)


def test_a_transposed_one_gives_the_size_that_is_asked_for():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = tenon.randn(1, 2, 5, 6)
    for size in ([9, 12], [10, 11], [1, 3, 10, 12]):
        assert layer(x, output_size=size).shape == (1, 3, *size[-2:])
    assert layer(x[0], output_size=[10, 12]).shape == (3, 10, 12)
    with pytest.raises(ValueError, match=r"ConvTranspose2d: requested an output size of \[8, 12\], but valid sizes range"):
        layer(x, output_size=[8, 12])
    with pytest.raises(ValueError, match="ConvTranspose2d: for 4D input, output_size must have 2 or 4 elements"):
        layer(x, output_size=[8])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "Conv2d: in_channels 3 must be divisible by groups 2"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), "Conv2d: out_channels 3 must be divisible by groups 2"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), "Conv2d: groups must be a positive integer"),
        (lambda: nn.Conv2d(4, 4, 3, padding="full"), "Conv2d: padding must be 'same', 'valid' or numbers"),
        (lambda: nn.Conv2d(4, 4, 3, padding="same", stride=2), "Conv2d: padding='same' is not supported for strides"),
        (lambda: nn.Conv2d(4, 4, 3, padding_mode="mirror"), "Conv2d: padding_mode must be one of"),
        (lambda: nn.ConvTranspose1d(4, 4, 3, padding_mode="circular"), 'ConvTranspose1d: only "zeros" padding mode'),
    ],
)
def test_an_error_names_the_module_and_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_transposed_convolution_takes_no_padding_by_name():
    with pytest.raises(TypeError, match="ConvTranspose1d: padding must be an int or several"):
        nn.ConvTranspose1d(4, 4, 3, padding="same")


@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_a_padding_mode_pads_the_input(mode, numpy_mode):
    tenon.manual_seed(3)
    layer = nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode)
    x = tenon.randn(2, 2, 5, 6)
    padded = tenon.from_numpy(numpy.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (2, 2)), mode=numpy_mode))
    assert tenon.equal(layer(x), F.conv2d(padded, layer.weight, layer.bias))
