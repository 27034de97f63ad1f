"""Losses, steps of optimizers, numbers that are drawn, and spectra, against NumPy."""

import numpy as np
import pytest

import tenon

from onnx_networks import load, node, run, tensor

rng = np.random.default_rng(0)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 2, 0)])
def test_losses_weigh_the_classes_and_leave_out_what_is_ignored(shape, reduction):
    x = rng.standard_normal(shape)
    target, weight = rng.integers(0, 3, (shape[0], *shape[2:])).astype(np.int32), rng.random(3)
    log_prob = x - np.log(np.exp(x).sum(1, keepdims=True))
    each = weight[target] * (target != 1)
    picked = -np.take_along_axis(log_prob, target[:, None], 1)[:, 0] * each
    with np.errstate(invalid="ignore"):
        expected = {"none": picked, "sum": picked.sum(), "mean": picked.sum() / each.sum()}[reduction]
    loss, own = run("SoftmaxCrossEntropyLoss", x, target, weight, outputs=2, reduction=reduction, ignore_index=1)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    np.testing.assert_allclose(own, log_prob, rtol=1e-12)
    np.testing.assert_allclose(run("NegativeLogLikelihoodLoss", log_prob, target, weight, reduction=reduction, ignore_index=1), expected, rtol=1e-12)


def test_the_gradient_of_a_loss_is_the_difference_of_probabilities():
    model = load([node("SoftmaxCrossEntropyLoss", "x t", "y")], "x t", "y")
    x, target = tenon.from_numpy(rng.standard_normal((5, 3))).requires_grad_(), rng.integers(0, 3, 5)
    model(x, tensor(target)).backward()
    exp = np.exp(x.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), (exp / exp.sum(1, keepdims=True) - np.eye(3)[target]) / 5, rtol=1e-10)


def test_messages_of_losses_and_optimizers():
    def text(op, *inputs, **attributes):
        with pytest.raises((ValueError, RuntimeError)) as error:
            run(op, *inputs, **attributes)
        return str(error.value)

    x, t = np.ones((2, 3), np.float32), np.zeros(2, np.int64)
    assert "NegativeLogLikelihoodLoss: attribute `reduction` is max, expected none, mean or sum" in text("NegativeLogLikelihoodLoss", x, t, reduction="max")
    assert "an input of shape [2, 3] with a target of shape [2, 3]" in text("SoftmaxCrossEntropyLoss", x, x.astype(np.int64))
    own = {"domain": "ai.onnx.preview.training"}
    assert "Adam: it has 4 inputs, expected 2 and 4 for each weight" in text("Adam", np.float32(1), np.int64(0), x, x, **own)
    assert "Momentum: attribute `mode` is fast, expected standard or nesterov" in text("Momentum", np.float32(1), np.int64(0), x, x, x, mode="fast", **own)


@pytest.mark.parametrize("name", ["RandomNormal", "RandomUniform"])
def test_numbers_follow_their_distribution_and_their_seed(name):
    attributes = {"mean": 3.0, "scale": 2.0} if name == "RandomNormal" else {"low": 1.0, "high": 5.0}
    model = load([node(name, "", "y", shape=[200, 50], **attributes)], "", "y")
    tenon.manual_seed(1)
    first, second = model().numpy(), model().numpy()
    assert (first != second).any() and abs(first.mean() - 3) < 0.1
    assert abs(first.std() - (2 if name == "RandomNormal" else 4 / 12**0.5)) < 0.1
    tenon.manual_seed(1)
    np.testing.assert_array_equal(model().numpy(), first)
    like = lambda seed: run(name + "Like", first.astype(np.float64), seed=seed, **attributes)
    assert like(3.0).dtype == np.float64 and like(3.0).shape == (200, 50)
    np.testing.assert_array_equal(like(3.0), like(3.0))
    assert (like(3.0) != like(0.5)).any()


def test_draws_have_the_probabilities_that_they_are_given():
    p = np.full((200, 50), 0.3)
    drawn = run("Bernoulli", p, dtype=9, seed=1.0)
    assert drawn.dtype == np.bool_ and abs(drawn.mean() - 0.3) < 0.02
    drawn = run("Multinomial", np.log(np.array([[1.0, 3, 0.001]])), sample_size=10000, seed=1.0)
    assert drawn.dtype == np.int32 and drawn.shape == (1, 10000) and abs((drawn == 1).mean() - 0.75) < 0.02


def test_dropout_keeps_what_its_mask_says_while_training_and_all_otherwise():
    x = rng.standard_normal((100, 100)).astype(np.float32)
    for opset in (7, 10, 21):
        y, mask = run("Dropout", x, outputs=2, opset=opset)
        np.testing.assert_array_equal(y, x)
        assert mask.all() and mask.dtype == (np.float32 if opset == 7 else np.bool_)
    y, mask = run("Dropout", x, np.float32(0.75), np.bool_(True), outputs=2)
    np.testing.assert_array_equal(y, np.where(mask, x * 4, 0))
    assert abs(mask.mean() - 0.25) < 0.03
    with pytest.raises(ValueError, match="Dropout: `ratio` is 1, expected one from 0"):
        run("Dropout", x, np.float32(1), np.bool_(True))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotImplementedError, match="RandomUniform: numbers of int64"):
        run("RandomUniform", shape=[2], dtype=7)
    with pytest.raises(ValueError, match="RandomNormal: attribute `shape` is missing"):
        run("RandomNormal")


@pytest.mark.parametrize("size", [1, 7, 64, 250])
def test_transforms_are_those_of_numpy(size):
    x = rng.standard_normal((2, size, 3, 2))
    z = x[..., 0] + 1j * x[..., 1]
    parts = lambda c: np.stack([c.real, c.imag], -1)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    for length in (None, np.int64(size + 3), np.int64(max(size // 2, 1))):
        close(run("DFT", x, length, np.int64(1)), parts(np.fft.fft(z, length, 1)))
        close(run("DFT", x, length, inverse=1, axis=1, opset=17), parts(np.fft.ifft(z, length, 1)))
        close(run("DFT", x[..., :1], length, np.int64(-3), onesided=1), parts(np.fft.rfft(x[..., 0], length, 1)))
    half = parts(np.fft.rfft(x[..., 0], axis=1))
    close(run("DFT", half, np.int64(size), np.int64(1), inverse=1, onesided=1), x[..., :1])


def test_spectra_of_frames_are_differentiable():
    x, window = rng.standard_normal((2, 50, 1)), rng.random(16)
    frames = np.lib.stride_tricks.sliding_window_view(x[..., 0], 16, 1)[:, ::5]
    spectrum = np.fft.rfft(frames * window)
    given = tenon.from_numpy(x).requires_grad_()
    out = load([node("STFT", "x step window", "y")], "x", "y", step=np.int64(5), window=window)(given)
    np.testing.assert_allclose(out.detach().numpy(), np.stack([spectrum.real, spectrum.imag], -1), rtol=1e-9, atol=1e-9)
    out[..., 0, 0].sum().backward()  # the sums of the frames
    covered = np.zeros(50)
    for start in range(0, 35, 5):
        covered[start : start + 16] += window
    np.testing.assert_allclose(given.grad.numpy()[0, :, 0], covered, rtol=1e-9)


def test_messages_of_windows_and_spectra():
    def text(op, *inputs, **attributes):
        with pytest.raises((ValueError, RuntimeError, NotImplementedError)) as error:
            run(op, *inputs, **attributes)
        return str(error.value)

    x = np.ones((1, 8, 1), np.float32)
    assert "HannWindow: `size` is -1" in text("HannWindow", np.int64(-1))
    mel = lambda *numbers: text("MelWeightMatrix", *map(np.int64, numbers[:3]), *map(np.float32, numbers[3:]))
    assert "MelWeightMatrix: 0 bands from 0 to 4000 Hz, of 16 points at 8000 Hz" in mel(0, 16, 8000, 0, 4000)
    assert "MelWeightMatrix: 2 bands from 0 to inf Hz" in mel(2, 16, 8000, 0, np.inf)
    assert "a band ends at 9000 Hz, beyond a spectrum of 16 points at 8000 Hz" in mel(4, 16, 8000, 0, 9000)
    assert "DFT: along axis 2 of an input of shape [1, 8, 1]" in text("DFT", x, None, np.int64(-1))
    assert "DFT: a transform of 5000 numbers, expected 1 to 4096" in text("DFT", x, np.int64(5000))
    assert "STFT: a signal of shape [8, 1]" in text("STFT", x[0], np.int64(1))
    assert "STFT: frames of 9 elements every 1, a window of 9, a signal of 8" in text("STFT", x, np.int64(1), np.ones(9, np.float32))


def test_steps_of_optimizers_are_those_of_their_formulas():
    own = {"domain": "ai.onnx.preview.training"}
    rate, x, g, v, h = np.float32(0.1), *rng.random((4, 5)).astype(np.float32)
    for t in (0, 3):
        norm = g + 0.01 * x
        new_x, new_h = run("Adagrad", rate, np.int64(t), x, g, h, outputs=2, decay_factor=0.5, epsilon=1e-3, norm_coefficient=0.01, **own)
        np.testing.assert_allclose(new_h, h + norm**2, rtol=1e-6)
        np.testing.assert_allclose(new_x, x - 0.1 / (1 + 0.5 * t) * norm / (np.sqrt(new_h) + 1e-3), rtol=1e-6)
        for mode in ("standard", "nesterov"):
            new_x, new_v = run("Momentum", rate, np.int64(t), x, g, v, outputs=2, alpha=0.9, beta=0.5, mode=mode, norm_coefficient=0.01, **own)
            np.testing.assert_allclose(new_v, 0.9 * v + (0.5 if t else 1) * norm, rtol=1e-6)
            np.testing.assert_allclose(new_x, x - 0.1 * (new_v if mode == "standard" else norm + 0.9 * new_v), rtol=1e-6)
        new_x, new_v, new_h = run("Adam", rate, np.int64(t), x, g, v, h, outputs=3, epsilon=1e-3, norm_coefficient=0.01, norm_coefficient_post=0.2, **own)
        np.testing.assert_allclose(new_v, 0.9 * v + 0.1 * norm, rtol=1e-6)
        np.testing.assert_allclose(new_h, 0.999 * h + 0.001 * norm**2, rtol=1e-6)
        corrected = 0.1 * (np.sqrt(1 - 0.999**t) / (1 - 0.9**t) if t else 1)
        np.testing.assert_allclose(new_x, 0.8 * (x - corrected * new_v / (np.sqrt(new_h) + 1e-3)), rtol=1e-5)
