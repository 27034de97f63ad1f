"""Layers and functions over spatial dimensions: arguments, texts and errors as PyTorch's, values against loops or NumPy."""

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F
from tenon import nn


def image(*shape):
    return tenon.arange(int(np.prod(shape)), dtype=tenon.float32).reshape(shape)


#: What PyTorch 2.15 prints.
TEXTS = {
    "MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)": nn.MaxPool2d(3, 2, 1),
    "MaxPool1d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=True)": nn.MaxPool1d(3, ceil_mode=True),
    "AvgPool1d(kernel_size=(3,), stride=(2,), padding=(1,))": nn.AvgPool1d(3, 2, 1),
    "AvgPool2d(kernel_size=(2, 3), stride=(2, 3), padding=0)": nn.AvgPool2d((2, 3)),
    "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)": nn.LPPool2d(2, 3),
    "AdaptiveAvgPool2d(output_size=(1, None))": nn.AdaptiveAvgPool2d((1, None)),
    "AdaptiveMaxPool3d(output_size=2)": nn.AdaptiveMaxPool3d(2, return_indices=True),
    "ReflectionPad2d((1, 1, 1, 1))": nn.ReflectionPad2d(1),
    "ReplicationPad1d((1, 2))": nn.ReplicationPad1d((1, 2)),
    "CircularPad1d((2, 2))": nn.CircularPad1d(2),
    "ZeroPad2d((1, 1, 2, 0))": nn.ZeroPad2d((1, 1, 2, 0)),
    "ConstantPad3d(padding=(1, 1, 1, 1, 1, 1), value=0.5)": nn.ConstantPad3d(1, 0.5),
    "Upsample(scale_factor=2.0, mode='nearest')": nn.Upsample(scale_factor=2),
    "UpsamplingBilinear2d(size=(4, 5), mode='bilinear')": nn.UpsamplingBilinear2d((4, 5)),
    "Unfold(kernel_size=3, dilation=1, padding=1, stride=1)": nn.Unfold(3, padding=1),
    "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=2)": nn.Fold((4, 5), 2, stride=2),
    "PixelShuffle(upscale_factor=2)": nn.PixelShuffle(2),
    "PixelUnshuffle(downscale_factor=2)": nn.PixelUnshuffle(2),
    "ChannelShuffle(groups=2)": nn.ChannelShuffle(2),
}


@pytest.mark.parametrize("text", TEXTS)
def test_layers_print_as_pytorchs(text):
    assert repr(TEXTS[text]) == text


def test_layers_are_their_functions():
    x = image(2, 4, 6, 8)
    calls = [
        (nn.MaxPool2d(3, 2, 1), F.max_pool2d(x, 3, 2, 1)),
        (nn.AvgPool2d(3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
        (nn.AdaptiveAvgPool2d((2, None)), F.adaptive_avg_pool2d(x, (2, 8))),
        (nn.AdaptiveMaxPool2d(3), F.adaptive_max_pool2d(x, 3)),
        (nn.ReflectionPad2d((1, 2, 0, 3)), F.pad(x, (1, 2, 0, 3), "reflect")),
        (nn.ReplicationPad2d(2), F.pad(x, (2, 2, 2, 2), "replicate")),
        (nn.CircularPad2d(2), F.pad(x, (2, 2, 2, 2), "circular")),
        (nn.ConstantPad2d(1, 7.0), F.pad(x, (1, 1, 1, 1), value=7.0)),
        (nn.ZeroPad2d(1), F.pad(x, (1, 1, 1, 1))),
        (nn.Upsample(scale_factor=2, mode="bilinear"), F.interpolate(x, (12, 16), mode="bilinear")),
        (nn.UpsamplingNearest2d(scale_factor=1.5), F.interpolate(x, scale_factor=1.5)),
        (nn.Unfold(3, padding=1), F.unfold(x, 3, padding=1)),
        (nn.PixelShuffle(2), F.pixel_shuffle(x, 2)),
        (nn.PixelUnshuffle(2), F.pixel_unshuffle(x, 2)),
        (nn.ChannelShuffle(2), F.channel_shuffle(x, 2)),
    ]
    for layer, want in calls:
        assert layer(x).tolist() == want.tolist(), layer
    values, indices = nn.MaxPool2d(2, return_indices=True)(x)
    assert values.tolist() == x.flatten(2).gather(2, indices.flatten(2)).reshape(values.shape).tolist()


def test_fold_divides_by_how_often_unfold_took():
    x = image(1, 2, 5, 6)
    unfold, fold = nn.Unfold(3, padding=1), nn.Fold((5, 6), 3, padding=1)
    times = fold(unfold(tenon.ones_like(x)))
    assert (fold(unfold(x)) / times).tolist() == x.tolist()


def test_unfold_and_a_product_are_a_convolution():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 6, 7)), rng.standard_normal((4, 3, 2, 3))
    columns = F.unfold(tenon.tensor(x), (2, 3))
    got = (tenon.tensor(w.reshape(4, -1)) @ columns).reshape(2, 4, 5, 5).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))
    np.testing.assert_allclose(got, np.einsum("nchwij,ocij->nohw", windows, w), rtol=1e-12)


def test_the_gradient_of_max_pool_goes_to_the_maxima():
    x = image(1, 1, 4, 4).requires_grad_()
    F.max_pool2d(x, 3, 1).sum().backward()
    assert x.grad.tolist() == [[[[0.0] * 4, [0.0] * 4, [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]]]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_a_window_of_the_whole_image_is_its_mean(dtype):
    tolerance = {"float64": 1e-14, "float32": 1e-6, "bfloat16": 1e-2}[dtype]
    x = tenon.tensor(np.random.default_rng(2).standard_normal((3, 5, 33, 65)) + 1).to(getattr(tenon, dtype))
    want = x.to(tenon.float64).numpy().mean((-1, -2), keepdims=True)
    padded = want * 33 * 65 / (35 * 67)
    for t in (x, x.contiguous(memory_format=tenon.channels_last), x.flip(2), x.transpose(2, 3).contiguous().transpose(2, 3)):
        for got, value in (
            (F.adaptive_avg_pool2d(t, 1), want),
            (F.adaptive_avg_pool3d(t, 1), want.mean(1, keepdims=True)),
            (F.adaptive_avg_pool1d(t[0], 1), t[0].to(tenon.float64).numpy().mean(-1, keepdims=True)),
            (F.avg_pool2d(t, (33, 65)), want),
            (F.avg_pool2d(t, (33, 65), divisor_override=1), want * 33 * 65),
            (F.avg_pool2d(t, (35, 67), padding=1, count_include_pad=False), want),
            (F.avg_pool2d(t, (35, 67), padding=1), padded),
        ):
            np.testing.assert_allclose(got.to(tenon.float64).numpy(), value, rtol=tolerance, atol=tolerance)
    x = x.requires_grad_()
    F.adaptive_avg_pool2d(x, 1).sum().backward()
    np.testing.assert_allclose(x.grad.to(tenon.float64).numpy(), 1 / (33 * 65), rtol=tolerance)


def test_adaptive_means_of_no_channels():
    for shape, size, want in (((2, 0, 5, 5), 1, (2, 0, 1, 1)), ((0, 5, 5), (2, 3), (0, 2, 3)), ((0, 0, 5, 5), 1, (0, 0, 1, 1))):
        x = tenon.ones(shape, requires_grad=True)
        y = F.adaptive_avg_pool2d(x, size)
        y.sum().backward()
        assert y.shape == want and x.grad.shape == shape
    assert F.adaptive_avg_pool1d(tenon.ones(2, 0, 5), 3).shape == (2, 0, 3)
    for call in (
        lambda: F.adaptive_avg_pool2d(tenon.ones(2, 0, 5, 0), 1),
        lambda: F.adaptive_avg_pool3d(tenon.ones(2, 0, 5, 5, 5), 1),
        lambda: F.adaptive_max_pool2d(tenon.ones(2, 0, 5, 5), 1),
    ):
        with pytest.raises(tenon.ShapeError, match="size of 0"):
            call()


def test_norms_of_windows():
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6))
    got = nn.LPPool2d(2, 3)(tenon.tensor(x)).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::3, ::3]
    np.testing.assert_allclose(got, np.sqrt((windows**2).sum((-1, -2))), rtol=1e-12)


def test_channels_last_stays():
    x = image(2, 3, 6, 8).contiguous(memory_format=tenon.channels_last)
    for y in (
        F.max_pool2d(x, 2),
        F.avg_pool2d(x, 3, 2, 1),
        F.adaptive_avg_pool2d(x, 2),
        F.adaptive_avg_pool2d(x, 1),
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, scale_factor=2, mode="bilinear"),
        F.pad(x, (1, 1), "reflect" if x.dim() == 3 else "constant"),
        F.pad(x, (1, 1, 2, 2), "reflect"),
    ):
        assert y.is_contiguous(memory_format=tenon.channels_last)
    x = x.requires_grad_()
    F.max_pool2d(x, 2).backward(tenon.ones(2, 3, 3, 4).contiguous(memory_format=tenon.channels_last))
    assert x.grad.sum().item() == 72


def test_nan_is_the_maximum_and_equal_values_count_once():
    nan = float("nan")
    values, indices = F.max_pool1d(tenon.tensor([[1.0, nan, 2.0, nan, 5.0, 5.0]]), 3, return_indices=True)
    assert np.isnan(values.tolist()[0]).tolist() == [True, True] and indices.tolist() == [[1, 3]]
    values, indices = F.max_pool1d(tenon.tensor([[-0.0, 0.0, 5.0, 5.0]]), 2, return_indices=True)
    assert indices.tolist() == [[0, 2]] and np.signbit(values.tolist()[0]).tolist() == [True, False]
    empty_in_parts = F.max_pool2d(tenon.full((1, 1, 2, 2), float("-inf")), 3, 1, 1, return_indices=True)
    assert empty_in_parts[1].flatten().tolist() == [0, 0, 0, 0]


def test_the_same_bits_for_every_layout_and_number_of_threads():
    x = tenon.randn(3, 33, 40, 41)
    threads = tenon.get_num_threads()
    try:
        for f in (
            lambda t: F.avg_pool2d(t, 3, 2, 1),
            lambda t: F.adaptive_avg_pool2d(t, (7, 5)),
            lambda t: F.adaptive_avg_pool2d(t, 1),
            lambda t: F.avg_pool2d(t, (40, 41)),
            lambda t: F.interpolate(t, (55, 60), mode="bilinear"),
            lambda t: F.interpolate(t, (20, 60), mode="bicubic"),
            lambda t: F.max_pool2d(t, 3, 2, 1),
            lambda t: F.pad(t, (3, 4, 5, 6), "reflect"),
        ):
            tenon.set_num_threads(1)
            want = f(x).numpy().tobytes()
            for t in (x.contiguous(memory_format=tenon.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3), x.flip(3).contiguous().flip(3)):
                assert f(t).contiguous().numpy().tobytes() == want
            tenon.set_num_threads(3)
            assert f(x).numpy().tobytes() == want
    finally:
        tenon.set_num_threads(threads)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: F.max_pool2d(x, 0), r"max_pool2d: .*kernel_size"),
        (lambda x: F.max_pool2d(x, 2, 0), r"max_pool2d: .*stride"),
        (lambda x: F.max_pool2d(x, 2, 1, 2), r"max_pool2d: .*padding.* at most half"),
        (lambda x: F.max_pool2d(x, 2, 1, 0, 0), r"max_pool2d: .*dilation"),
        (lambda x: F.max_pool2d(x, 9), r"max_pool2d: a window of 9 does not fit"),
        (lambda x: F.max_pool2d(x, [2, 2, 2]), r"max_pool2d: .*kernel_size"),
        (lambda x: F.max_pool2d(x, 2**62, 1, 0, 2**62), r"max_pool2d: .*int64"),
        (lambda x: F.max_pool2d(x[0, 0], 2), r"max_pool2d: `self` must have"),
        (lambda x: F.avg_pool2d(x, -1), r"avg_pool2d: .*kernel_size"),
        (lambda x: F.avg_pool2d(x, 2, padding=-1), r"avg_pool2d: .*padding"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), r"avg_pool2d: .*divisor_override"),
        (lambda x: F.avg_pool2d(x.to(tenon.int64), 2), r"avg_pool2d: not implemented for int64"),
        (lambda x: F.adaptive_avg_pool2d(x, -1), r"adaptive_avg_pool2d: .*output_size"),
        (lambda x: F.adaptive_max_pool2d(x[:, :, :0], 1), r"adaptive_max_pool2d: .*size of 0"),
        (lambda x: F.pad(x, (9, 0, 0, 0), "reflect"), r"pad: .*padding"),
        (lambda x: F.pad(x, (9, 0, 0, 0), "circular"), r"pad: .*wrap"),
        (lambda x: F.pad(x, (1, 2, 3)), r"pad: `pad`"),
        (lambda x: F.pad(x, (-5, -5)), r"pad: `pad`.*negative"),
        (lambda x: F.pad(x, (2**62, 2**62)), r"pad: `pad`.*too large"),
        (lambda x: F.pad(x, (1, 1), "mirror"), r"pad: `mode`"),
        (lambda x: F.pad(x, (1, 1, 1, 1), "reflect", 1.0), r"pad: .*value"),
        (lambda x: F.interpolate(x), r"size and scale_factor"),
        (lambda x: F.interpolate(x, 3, 2), r"size and scale_factor"),
        (lambda x: F.interpolate(x, (3,)), r"interpolate: size must have 2"),
        (lambda x: F.interpolate(x, 0), r"interpolate: `output_size`"),
        (lambda x: F.interpolate(x, scale_factor=-1.0), r"interpolate: `scale_factors`"),
        (lambda x: F.interpolate(x, 3, mode="linear"), r"'linear' needs"),
        (lambda x: F.interpolate(x, 3, align_corners=True), r"align_corners"),
        (lambda x: F.interpolate(x, 3, mode="middle"), r"mode must be"),
        (lambda x: F.unfold(x, 7), r"unfold: a window of 7 does not fit"),
        (lambda x: F.unfold(x, 2, stride=0), r"unfold: `stride`"),
        (lambda x: F.fold(x[0], (4, 4), 2), r"fold: .*(multiple|columns)"),
        (lambda x: F.pixel_shuffle(x, 3), r"pixel_shuffle: the channels"),
        (lambda x: F.pixel_unshuffle(x, 4), r"pixel_unshuffle: height and width"),
        (lambda x: x.repeat(2), r"repeat: `repeats`"),
        (lambda x: x.repeat(1, 1, 1, -1), r"repeat: `repeats` must not be negative"),
        (lambda x: x.repeat(1, 1, 2**62, 2**62), r"repeat: "),
        (lambda x: x.roll([1, 2], [0]), r"roll: `shifts`"),
        (lambda x: x.roll(1, 7), r"roll"),
        (lambda x: x.repeat_interleave(-1), r"repeat_interleave: `repeats`"),
    ],
)
def test_what_does_not_fit_is_named(call, text):
    with pytest.raises((ValueError, RuntimeError, IndexError, NotImplementedError, TypeError), match=text):
        call(image(2, 4, 5, 6))


def test_places_of_adaptive_maxima_and_the_older_names_of_resizing():
    x = image(2, 3, 6, 8)
    values, places = F.adaptive_max_pool2d_with_indices(x, (2, None))
    assert tenon.equal(values, F.adaptive_max_pool2d(x, (2, 8)))
    assert places[0, 0].tolist() == [[16 + i for i in range(8)], [40 + i for i in range(8)]]
    assert tenon.equal(F.adaptive_max_pool1d_with_indices(x[0], 2)[1], tenon.tensor([3, 7]).expand(3, 6, 2))
    assert F.adaptive_max_pool3d_with_indices(x, 1)[1].flatten().tolist() == [143, 143]
    assert tenon.equal(F.upsample_nearest(x, scale_factor=2), F.interpolate(x, scale_factor=2))
    corners = F.interpolate(x, (9, 4), mode="bilinear", align_corners=True)
    assert tenon.equal(F.upsample_bilinear(x, (9, 4)), corners)


@pytest.mark.parametrize("op, arguments", [("max_pool2d_with_indices", (2,)), ("adaptive_max_pool2d", ((2, 2),))])
def test_two_results_are_written_to_out(op, arguments):
    x, function = image(1, 2, 4, 6), getattr(tenon._C, op)
    wanted = function(x, *arguments)
    given = tenon.empty(0), tenon.empty(wanted[1].shape, dtype=tenon.int64)
    for out in (given, (tenon.empty(wanted[0].shape[::-1]).T, given[1])):
        got = function(x, *arguments, out=out)
        assert all(g is o and tenon.equal(g, w) for g, o, w in zip(got, out, wanted))
    before = given[0].clone()
    with pytest.raises(RuntimeError, match=rf"{op}.*shape"):
        function(x + 1, *arguments, out=(given[0], tenon.empty(3, dtype=tenon.int64)))
    assert tenon.equal(given[0], before)
    with pytest.raises(RuntimeError, match=rf"{op}.*(same tensor|overlap)"):
        function(x.long(), *arguments, out=(given[1], given[1]))
    with pytest.raises(RuntimeError, match="requires? grad"):
        function(x.requires_grad_(), *arguments, out=given)


def test_antialias_takes_means_and_is_for_images():
    x = image(1, 1, 8, 8)
    halved = F.interpolate(x, (4, 4), mode="bilinear", antialias=True)
    # Triangles of width 4 over 8 inputs: 1/8, 3/8, 3/8, 1/8 inside, and what lies beside the ends left out.
    rows = np.array([[3, 3, 1, 0, 0, 0, 0, 0], [0, 1, 3, 3, 1, 0, 0, 0], [0, 0, 0, 1, 3, 3, 1, 0], [0, 0, 0, 0, 0, 1, 3, 3]])
    rows = rows / rows.sum(1, keepdims=True)
    np.testing.assert_allclose(halved[0, 0].numpy(), rows @ x[0, 0].numpy() @ rows.T, rtol=1e-6)
    for mode in ("bilinear", "bicubic"):
        assert tenon.equal(F.interpolate(x, (8, 8), mode=mode, antialias=True), x)
    with pytest.raises(ValueError, match="interpolate: antialias is for the modes bilinear | bicubic, got mode 'nearest'"):
        F.interpolate(x, (4, 4), antialias=True)


def test_celu_and_selu_in_place():
    for name in ("celu", "selu"):
        x = tenon.tensor([-1.0, 0.5])
        wanted = getattr(F, name)(x)
        assert getattr(F, name + "_")(x) is x and tenon.equal(x, wanted)


@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float16])
def test_gradients_of_adaptive_pools_to_one_element_can_be_written_and_viewed(dtype):
    x = tenon.randn(2, 3, 5, 7).to(dtype).requires_grad_()
    shares = tenon.tensor(np.random.default_rng(0).standard_normal((2, 3, 1, 1))).to(dtype)
    (grad,) = tenon.autograd.grad(F.adaptive_avg_pool2d(x, 1), x, shares)
    wanted = np.broadcast_to((shares.to(tenon.float64).numpy() / 35), x.shape)
    np.testing.assert_allclose(grad.to(tenon.float64).numpy(), wanted, rtol=1e-3 if dtype == tenon.float16 else 1e-7)
    assert grad.view(2, -1).add_(1).shape == (2, 105)
    zero = tenon.autograd.grad(F.adaptive_avg_pool2d(x, 1), x, tenon.full((2, 3, 1, 1), -0.0, dtype=dtype))[0]
    assert not tenon.signbit(zero).any()
