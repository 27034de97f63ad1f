"""stft and istft: against frames cut by hand and SciPy's definition, a log-mel spectrogram, inverses, errors."""

import numpy as np
import pytest

import tenon
from tenon.autograd import gradcheck

RNG = np.random.default_rng(11)


def frames(x, n_fft, hop, window):
    count = 1 + (x.shape[-1] - n_fft) // hop
    return np.stack([np.fft.fft(x[..., t * hop : t * hop + n_fft] * window, axis=-1) for t in range(count)], -1)


@pytest.mark.parametrize("shape", [(500,), (3, 500)])
@pytest.mark.parametrize("mode", ["reflect", "constant", "replicate", "circular"])
def test_frames_are_those_of_the_padded_signal(shape, mode):
    x, window = RNG.standard_normal(shape), np.hanning(48)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(32, 32)], {"replicate": "edge", "circular": "wrap"}.get(mode, mode))
    weights = np.pad(window, 8)
    exact = frames(padded, 64, 20, weights)
    t, w = tenon.tensor(x), tenon.tensor(window)
    found = tenon.stft(t, 64, 20, 48, w, pad_mode=mode, return_complex=True)
    np.testing.assert_allclose(found.numpy(), exact[..., :33, :], atol=1e-12)
    whole = tenon.stft(t, 64, 20, 48, w, pad_mode=mode, onesided=False, normalized=True, return_complex=True)
    np.testing.assert_allclose(whole.numpy(), exact / 8, atol=1e-12)
    pairs = tenon.stft(t, 64, 20, 48, w, pad_mode=mode, return_complex=False)
    assert pairs.equal(tenon.view_as_real(found))


def test_frames_without_a_centre():
    x = RNG.standard_normal(500)
    found = tenon.stft(tenon.tensor(x), 64, center=False, return_complex=True)
    np.testing.assert_allclose(found.numpy(), frames(x, 64, 16, np.ones(64))[:33], atol=1e-12)
    window = np.hanning(50)
    aligned = tenon.stft(tenon.tensor(x), 64, 16, 50, tenon.tensor(window), center=False, align_to_window=True, return_complex=True)
    exact = frames(np.pad(x, 7), 64, 16, np.pad(window, 7))
    np.testing.assert_allclose(aligned.numpy(), exact[:33], atol=1e-12)
    assert aligned.shape[1] == 1 + (500 - 50) // 16


def test_complex_signals_have_both_sides():
    x = RNG.standard_normal(200) + 1j * RNG.standard_normal(200)
    found = tenon.stft(tenon.tensor(x), 32, center=False)
    np.testing.assert_allclose(found.numpy(), frames(x, 32, 8, np.ones(32)), atol=1e-12)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("shape", [(400,), (2, 400)])
def test_istft_inverts(shape, normalized):
    x = tenon.tensor(RNG.standard_normal(shape))
    window = tenon.hann_window(40, dtype=tenon.float64)
    for options in ({}, {"onesided": False}):
        z = tenon.stft(x, 48, 10, 40, window, normalized=normalized, return_complex=True, **options)
        back = tenon.istft(z, 48, 10, 40, window, normalized=normalized, **options)
        np.testing.assert_allclose(back.numpy(), x.numpy()[..., : back.shape[-1]], atol=1e-13)
        assert tenon.istft(z, 48, 10, 40, window, normalized=normalized, length=390, **options).shape[-1] == 390
    z = tenon.stft(x + 0j, 48, 10, 40, window, return_complex=True)
    back = tenon.istft(z, 48, 10, 40, window, return_complex=True)
    np.testing.assert_allclose(back.numpy(), x.numpy() + 0j, atol=1e-13)
    z = tenon.stft(x, 48, 12, return_complex=True, center=False)
    np.testing.assert_allclose(tenon.istft(z, 48, 12, center=False).numpy(), x.numpy()[..., : 48 + 12 * (z.shape[-1] - 1)], atol=1e-13)


def test_a_longer_length_is_filled_with_zeros():
    z = tenon.stft(tenon.randn(100), 16, return_complex=True)
    back = tenon.istft(z, 16, length=150)
    assert back.shape == (150,) and (back[108:] == 0).all()


def test_gradients():
    x = tenon.tensor(RNG.standard_normal(20), requires_grad=True)
    window = tenon.tensor(np.hanning(8) + 0.1, requires_grad=True)
    assert gradcheck(lambda x, w: tenon.stft(x, 8, 4, window=w, return_complex=True), (x, window))
    z = tenon.tensor(RNG.standard_normal((5, 4)) + 1j * RNG.standard_normal((5, 4)), requires_grad=True)
    assert gradcheck(lambda z, w: tenon.istft(z, 8, 3, window=w), (z, window))


def test_a_log_mel_spectrogram():
    """Of a chirp, as speech programs compute it: 400/160, 80 bands of triangles on the mel scale."""
    t = np.arange(16000) / 16000
    wave = 0.5 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))
    hertz = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 8000 / 700), 82) / 2595) - 1)
    bins = np.arange(201) * 40.0
    up, down = (bins - hertz[:-2, None]) / np.diff(hertz)[:-1, None], (hertz[2:, None] - bins) / np.diff(hertz)[1:, None]
    bands = np.maximum(0, np.minimum(up, down))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    power = np.abs(frames(np.pad(wave, 200, "reflect"), 400, 160, window)[:201]) ** 2
    exact = np.log10(np.maximum(bands @ power, 1e-10))
    x = tenon.tensor(wave.astype(np.float32))
    spectrum = tenon.stft(x, 400, 160, window=tenon.hann_window(400), return_complex=True)
    found = (tenon.tensor(bands.astype(np.float32)) @ spectrum.abs() ** 2).clamp(min=1e-10).log10().numpy()
    loud = exact > exact.max() - 8
    assert found.shape == (80, 101) and np.abs(found - exact)[loud].max() < 1e-2
    assert np.abs(found - exact)[exact > exact.max() - 4].max() < 1e-4


X, Z = tenon.ones(100), tenon.ones(9, 6) + 0j


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: tenon.stft(X, 16), RuntimeError, "stft: expected `return_complex` to be given"),
        (lambda: tenon.stft(X, 16, return_complex=True, align_to_window=True), RuntimeError, "stft: expected `align_to_window` only with `center` False"),
        (lambda: tenon.stft(X, 300, return_complex=True), RuntimeError, "stft: expected at least 151 samples for `pad_mode` \"reflect\" .*got 100; give"),
        (lambda: tenon.stft(X, 300, pad_mode="circular", return_complex=True), RuntimeError, "stft: expected at least 150 samples"),
        (lambda: tenon.stft(X, 101, return_complex=True, center=False), RuntimeError, "stft: expected `n_fft` of at most .*100, got 101"),
        (lambda: tenon.stft(X, 0, return_complex=True), RuntimeError, "stft: expected `n_fft` of at least 1, got 0"),
        (lambda: tenon.stft(X, 16, 0, return_complex=True), RuntimeError, "stft: expected `hop_length` of at least 1, got 0"),
        (lambda: tenon.stft(X, 16, win_length=17, return_complex=True), RuntimeError, "stft: expected `win_length` from 1 to `n_fft` 16, got 17"),
        (lambda: tenon.stft(X, 16, window=tenon.ones(9), return_complex=True), RuntimeError, r"stft: expected `window` of shape \[16\]"),
        (lambda: tenon.stft(X[None, None], 16, return_complex=True), RuntimeError, "stft: expected `self` of 1 or 2 dimensions"),
        (lambda: tenon.stft(X + 0j, 16, onesided=True), RuntimeError, "stft: expected `onesided` False"),
        (lambda: tenon.stft(X.long(), 16, return_complex=True), TypeError, "stft: expected `self` of a floating or complex dtype, got int64"),
        (lambda: tenon.stft(X, 16, pad_mode="mirror", return_complex=True), RuntimeError, 'stft: expected `pad_mode` .*got "mirror"'),
        (lambda: tenon.istft(Z.real, 16), TypeError, "istft: expected a complex `self`"),
        (lambda: tenon.istft(Z[0], 16), RuntimeError, "istft: expected `self` of 2 or 3 dimensions"),
        (lambda: tenon.istft(Z[:, :0], 16), RuntimeError, "istft: expected `self` with elements"),
        (lambda: tenon.istft(Z, 18), RuntimeError, "istft: expected 10 frequencies"),
        (lambda: tenon.istft(Z, 16, 17), RuntimeError, "istft: expected `hop_length` of at most `win_length` 16, got 17"),
        (lambda: tenon.istft(Z, 16, length=0), RuntimeError, "istft: expected `length` of at least 1, got 0"),
        (lambda: tenon.istft(Z, 16, return_complex=True), RuntimeError, "istft: expected `onesided` False"),
        (lambda: tenon.istft(Z, 9, window=tenon.ones(9) + 0j), RuntimeError, "istft: expected a real `window`"),
        (lambda: tenon.istft(Z, 16, window=tenon.zeros(16)), RuntimeError, "istft: expected windows whose squares add up to more than 1e-11"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
