"""hann_window and its kin beside NumPy's windows in float64."""

import numpy as np
import pytest
import scipy.special

import tenon

WINDOWS = {"bartlett": np.bartlett, "blackman": np.blackman, "hamming": np.hamming, "hann": np.hanning, "kaiser": lambda n: np.kaiser(n, 12.0)}


@pytest.mark.parametrize("length", [0, 1, 2, 5, 16, 1001])
@pytest.mark.parametrize("name", WINDOWS)
def test_values_are_numpys(name, length):
    call = getattr(tenon, f"{name}_window")
    for dtype, tolerance in ((tenon.float64, 1e-14), (None, 1e-7), (tenon.float16, 1e-3)):
        found = call(length, periodic=False, dtype=dtype)
        assert found.dtype is (dtype or tenon.float32) and found.shape == (length,)
        np.testing.assert_allclose(found.double().numpy(), WINDOWS[name](length) if length else [], atol=tolerance)
    whole = WINDOWS[name](length + 1)[:-1] if length > 1 else np.ones(length)
    np.testing.assert_allclose(call(length, dtype=tenon.float64).numpy(), whole, atol=1e-14)


def test_their_own_arguments():
    np.testing.assert_allclose(tenon.hamming_window(4, True, 0.5, 0.4).numpy(), [0.1, 0.5, 0.9, 0.5], rtol=1e-6)
    for beta in (0.0, 0.5, 5.0, 100.0, 600.0):
        np.testing.assert_allclose(tenon.kaiser_window(33, False, beta, dtype=tenon.float64).numpy(), np.kaiser(33, beta), rtol=1e-6, atol=1e-12)
    # Beyond exp's range NumPy's is inf / inf: the scaled functions of SciPy are not.
    root = 1e6 * np.sqrt(1 - np.linspace(-1, 1, 5) ** 2)
    expected = scipy.special.i0e(root) / scipy.special.i0e(1e6) * np.exp(root - 1e6)
    np.testing.assert_allclose(tenon.kaiser_window(5, False, 1e6, dtype=tenon.float64).numpy(), expected, rtol=1e-9)
    assert tenon.hann_window(3, requires_grad=True).requires_grad and tenon.hann_window(3, layout=tenon.strided, device="cpu").shape == (3,)


@pytest.mark.parametrize("name", WINDOWS)
def test_errors(name):
    call = getattr(tenon, f"{name}_window")
    with pytest.raises(RuntimeError, match=f"^{name}_window requires non-negative window_length, got window_length=-1$"):
        call(-1)
    with pytest.raises(RuntimeError, match=f"^{name}_window expects floating point dtypes, got: tenon.int32$"):
        call(4, dtype=tenon.int32)
    with pytest.raises(RuntimeError, match=f"^{name}_window is not implemented for sparse types, got: "):
        call(4, layout=tenon.sparse_coo)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_a_length_is_an_int(name):
    window = getattr(tenon, f"{name}_window")
    for length in (3.7, 3.0, True):
        with pytest.raises(TypeError, match=rf"{name}_window: window_length must be an int, got {length} \({type(length).__name__}\)"):
            window(length)
        with pytest.raises(TypeError, match=rf"{name}: M must be an int, got {length} "):
            getattr(tenon.signal.windows, name)(length)
    with pytest.raises(TypeError, match=f"{name}_window: periodic must be a bool, got 1 .int.$"):
        window(3, 1)
    assert window(np.int64(3)).shape == window(tenon.tensor(3)).shape == (3,)
