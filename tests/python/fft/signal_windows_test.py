"""tenon.signal.windows: against formulas in NumPy, NumPy's own windows, and values that SciPy gives."""

import numpy as np
import pytest

import tenon
from tenon.signal import windows

F64 = {"dtype": tenon.float64}


def cosines(weights):
    return lambda k, steps: sum((-1) ** i * a * np.cos(2 * np.pi * i * k / steps) for i, a in enumerate(weights))


FORMULAS = {
    "bartlett": ({}, lambda k, n: 1 - np.abs(2 * k / n - 1)),
    "blackman": ({}, cosines([0.42, 0.5, 0.08])),
    "general_cosine": ({"a": [0.3, 0.5, 0.2]}, cosines([0.3, 0.5, 0.2])),
    "general_hamming": ({"alpha": 0.6}, cosines([0.6, 0.4])),
    "hamming": ({}, cosines([0.54, 0.46])),
    "hann": ({}, cosines([0.5, 0.5])),
    "kaiser": ({"beta": 8.0}, lambda k, n: np.i0(8 * np.sqrt(1 - (2 * k / n - 1) ** 2)) / np.i0(8.0)),
    "nuttall": ({}, cosines([0.3635819, 0.4891775, 0.1365995, 0.0106411])),
    "gaussian": ({"std": 2.5}, lambda k, n: np.exp(-(((k - n / 2) / 2.5) ** 2) / 2)),
    "exponential": ({"tau": 3.0}, lambda k, n: np.exp(-np.abs(k - n / 2) / 3)),
    "cosine": ({}, lambda k, n: np.sin(np.pi * (k + 0.5) / (n + 1))),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("sym", [True, False])
def test_windows_are_their_formulas(name, sym):
    options, formula = FORMULAS[name]
    window = getattr(windows, name)
    for M in (2, 7, 16):
        found = window(M, sym=sym, **options, **F64)
        np.testing.assert_allclose(found.numpy(), formula(np.arange(M), M - 1 if sym else M), atol=1e-13)
    assert window(0, **options).shape == (0,)
    np.testing.assert_allclose(window(1, sym=sym, **options, **F64).numpy(), [1.0])
    assert window(5, **options).dtype == tenon.float32
    assert window(5, requires_grad=True, **options).requires_grad


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming"])
def test_symmetric_windows_are_numpys(name):
    np.testing.assert_allclose(getattr(windows, name)(33, **F64).numpy(), getattr(np, name)(33), atol=1e-15)
    np.testing.assert_allclose(windows.hann(33, **F64).numpy(), np.hanning(33), atol=1e-15)
    np.testing.assert_allclose(windows.kaiser(33, beta=5.0, **F64).numpy(), np.kaiser(33, 5.0), rtol=1e-12)


def test_an_exponential_has_a_centre():
    found = windows.exponential(6, center=0, tau=2.0, sym=False, **F64)
    np.testing.assert_allclose(found.numpy(), np.exp(-np.arange(6) / 2))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: windows.hann(-1), ValueError, "hann: expected M of at least 0, got -1"),
        (lambda: windows.hann(4, dtype=tenon.float16), ValueError, "hann: expected dtype float32 or float64, got"),
        (lambda: windows.hann(4, layout="sparse"), ValueError, "hann: expected layout strided, got sparse"),
        (lambda: windows.exponential(4, tau=0), ValueError, "exponential: expected tau above 0, got 0"),
        (lambda: windows.exponential(4, center=1.0), ValueError, "exponential: expected center only with sym=False"),
        (lambda: windows.gaussian(4, std=-1), ValueError, "gaussian: expected std above 0, got -1"),
        (lambda: windows.kaiser(4, beta=-1), ValueError, "kaiser: expected beta of at least 0, got -1"),
        (lambda: windows.general_cosine(4, a=[]), ValueError, "general_cosine: expected at least one number in a"),
        (lambda: windows.general_cosine(4, a=1.0), TypeError, "general_cosine: expected a, a list of numbers, got float"),
    ],
)
def test_bad_input_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
