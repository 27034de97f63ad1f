"""The extensions linalg and fft of the Python array API standard: arguments, result tuples, shapes and dtypes; values are NumPy's in float64."""

import math

import numpy as np
import pytest

import tenon

xp = tenon.ones(1).__array_namespace__(api_version="2024.12")
RANDOM = np.random.default_rng(5)
SQUARE = RANDOM.standard_normal((2, 3, 4, 4))
TALL, WIDE = RANDOM.standard_normal((2, 5, 3)), RANDOM.standard_normal((3, 5))
COMPLEX = TALL + 1j * RANDOM.standard_normal((2, 5, 3))
SYMMETRIC = SQUARE + SQUARE.swapaxes(-1, -2)
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(4)


def close(got, want, rtol=1e-10):
    want = np.asarray(want)
    assert got.numpy().dtype == want.dtype and tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=1e-10)


def test_the_extensions_have_the_standards_names():
    assert set(xp.linalg.__all__) - {"EighResult", "QRResult", "SVDResult", "SlogdetResult"} == set(
        "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr slogdet solve "
        "svd svdvals tensordot trace vecdot vector_norm".split()
    )
    assert set(xp.fft.__all__) == set(
        "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift".split()
    )
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(xp, name) is getattr(xp.linalg, name)


def test_functions_of_matrices():
    for name, x, options in [
        ("det", SQUARE, {}), ("inv", SQUARE, {}), ("cholesky", POSITIVE, {}), ("eigvalsh", SYMMETRIC, {}), ("diagonal", TALL, {}),
        ("diagonal", TALL, {"offset": 1}), ("diagonal", TALL, {"offset": -2}), ("trace", TALL, {}), ("trace", TALL, {"offset": -1}),
        ("svdvals", TALL, {}), ("svdvals", WIDE, {}), ("svdvals", COMPLEX, {}), ("pinv", TALL, {}), ("pinv", COMPLEX, {}), ("matrix_transpose", TALL, {}),
        ("trace", TALL[:, :0], {}), ("cholesky", POSITIVE + 0j, {"upper": True}),
    ]:  # fmt: skip
        close(getattr(xp.linalg, name)(tenon.tensor(x), **options), getattr(np.linalg, name)(x, **options))
    assert xp.linalg.trace(tenon.ones(2, 2, dtype=tenon.int16)).dtype is tenon.int64
    close(xp.linalg.trace(tenon.ones(3, 3, dtype=tenon.int16), dtype=tenon.float64), 3.0)
    for n in (0, 1, 3, -2):
        close(xp.linalg.matrix_power(tenon.tensor(SQUARE), n), np.linalg.matrix_power(SQUARE, n))


def test_named_results():
    for x in (SYMMETRIC, SYMMETRIC + 0j):
        got = xp.linalg.eigh(tenon.tensor(x))
        assert got._fields == ("eigenvalues", "eigenvectors") and got.eigenvalues.dtype is tenon.float64
        close(got.eigenvectors * got.eigenvalues[..., None, :], (x @ got.eigenvectors.numpy()))
        got = xp.linalg.slogdet(tenon.tensor(x))
        assert got._fields == ("sign", "logabsdet")
        for part, want in zip(got, np.linalg.slogdet(x)):
            close(part, want)
    for x in (TALL, WIDE, COMPLEX):
        t = tenon.tensor(x)
        rows, columns = x.shape[-2:]
        for mode, size in (("reduced", min(rows, columns)), ("complete", rows)):
            got = xp.linalg.qr(t, mode=mode)
            assert got._fields == ("Q", "R") and got.Q.shape[-1] == size == got.R.shape[-2]
            close(got.Q @ got.R, x)
        for full in (True, False):
            got = xp.linalg.svd(t, full_matrices=full)
            assert got._fields == ("U", "S", "Vh") and got.S.dtype is tenon.float64
            k = min(rows, columns)
            assert got.U.shape[-1] == (rows if full else k) and got.Vh.shape[-2] == (columns if full else k)
            close((got.U[..., :k] * got.S[..., None, :]) @ got.Vh[..., :k, :], x)
    with pytest.raises(ValueError, match="qr: expected `mode` of 'reduced' or 'complete', got 'r'"):
        xp.linalg.qr(tenon.ones(2, 2), mode="r")


def test_solve_takes_a_vector_only_of_one_dimension():
    assert tuple(xp.linalg.solve(tenon.ones(1, 1, 1), tenon.ones(1)).shape) == (1, 1)
    a = tenon.tensor(SQUARE)
    for shape in ((4,), (4, 2), (3, 4, 1), (1, 3, 4, 4), (7, 1, 1, 4, 2), (4, 4)):
        b = RANDOM.standard_normal(shape)
        want = np.linalg.solve(SQUARE, b)
        close(xp.linalg.solve(a, tenon.tensor(b)), want)
    # A matrix whose shape is that of a batch of vectors.
    a, b = SQUARE[0, :, :3, :3], RANDOM.standard_normal((3, 3))
    close(xp.linalg.solve(tenon.tensor(a), tenon.tensor(b)), np.linalg.solve(a, b))
    assert xp.linalg.solve(tenon.eye(2), tenon.ones((2,), dtype=tenon.float64)).dtype is tenon.float64


def test_rank_and_pseudoinverse_with_a_tolerance():
    low = TALL.copy()
    low[..., 2] = low[..., 0] + 1e-9 * low[..., 2]
    t = tenon.tensor(low)
    for rtol in (None, 1e-6, 1e-12, np.array([1e-6, 1e-12])):
        ours = rtol if rtol is None or np.isscalar(rtol) else tenon.tensor(rtol)
        assert np.array_equal(xp.linalg.matrix_rank(t, rtol=ours).numpy(), np.linalg.matrix_rank(low, rtol=rtol))
        close(xp.linalg.pinv(t, rtol=ours), np.linalg.pinv(low, rtol=rtol), 1e-5)
    with pytest.raises(ValueError, match="matrix_rank: expected an array of at least 2 dimensions, got 1"):
        xp.linalg.matrix_rank(tenon.ones(3))


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrix_norms(ord, keepdims):
    for x in (TALL, WIDE, COMPLEX):
        close(xp.linalg.matrix_norm(tenon.tensor(x), ord=ord, keepdims=keepdims), np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims))


@pytest.mark.parametrize("ord", [0, 1, -1, 2, -2, 2.5, 0.5, math.inf, -math.inf])
def test_vector_norms(ord):
    for x in (TALL, COMPLEX, WIDE[0]):
        for axis in (None, 0, -1, *([(0, 2), (1, 0)] if x.ndim == 3 else [])):
            for keepdims in (False, True):
                got = xp.linalg.vector_norm(tenon.tensor(x), axis=axis, ord=ord, keepdims=keepdims)
                close(got, np.linalg.vector_norm(x, axis=axis, ord=ord, keepdims=keepdims))
    close(xp.linalg.vector_norm(tenon.tensor(WIDE), axis=(), ord=ord), (WIDE != 0) * 1.0 if ord == 0 else np.abs(WIDE))
    assert xp.linalg.vector_norm(tenon.ones(2, dtype=tenon.complex64)).dtype is tenon.float32


@pytest.mark.parametrize("a", ["int32", "float32", "float64", "complex128"])
def test_products(a):
    x, y = np.arange(24).reshape(2, 3, 4).astype(a), np.arange(12.0).reshape(3, 4)[::-1].copy()
    s, t = tenon.tensor(x), tenon.tensor(y)
    if a == "int32":
        t, y = t.to(tenon.int64), y.astype(np.int64)
    close(xp.linalg.vecdot(s, t), np.vecdot(x, y.astype(np.result_type(x, y))))
    close(xp.linalg.vecdot(s, t, axis=-2), np.vecdot(x, y.astype(np.result_type(x, y)), axis=-2))
    close(xp.linalg.matmul(s, t.mT), x @ y.T)
    close(xp.linalg.matmul(s, t[0]), x @ y[0])
    close(xp.linalg.tensordot(s, t), np.tensordot(x, y))
    close(xp.linalg.tensordot(s, t, axes=((1, 2), (0, 1))), np.tensordot(x, y, axes=((1, 2), (0, 1))))
    close(xp.linalg.tensordot(s, t, axes=0), np.tensordot(x, y, axes=0))
    close(xp.linalg.outer(s[0, 0], t[0]), np.linalg.outer(x[0, 0], y[0]))
    close(xp.linalg.cross(s[..., 1:], t[..., 1:]), np.linalg.cross(x[..., 1:], y[..., 1:]))
    close(xp.linalg.cross(s, t, axis=-2), np.linalg.cross(x, y, axis=-2))


def test_products_refuse_axes_that_do_not_fit():
    one, three, four = tenon.ones(2, 1), tenon.ones(2, 3), tenon.ones(2, 4)
    for call, error, text in [
        (lambda: xp.vecdot(three, one), ValueError, "vecdot: `axis` -1 must have one size in both arrays, got 3 and 1"),
        (lambda: xp.vecdot(three, three, axis=0), IndexError, "vecdot: `axis` must count from the last dimension of both arrays, from -2 to -1, got 0"),
        (lambda: xp.linalg.cross(three, one), ValueError, "cross: `axis` -1 must have one size in both arrays, got 3 and 1"),
        (lambda: xp.linalg.cross(four, four), ValueError, "cross: expected 3 elements along `axis` -1, got 4"),
        (lambda: xp.linalg.cross(three, three, axis=-3), IndexError, "cross: `axis` must count from the last dimension"),
        (lambda: xp.linalg.outer(three, three), ValueError, "outer: expected two arrays of 1 dimension, got 2 and 2"),
        (lambda: xp.matmul(tenon.ones(()), three), RuntimeError, "matmul"),
        (lambda: xp.fft.fftfreq(4, dtype=tenon.complex64), ValueError, "fftfreq: expected `dtype` real and floating, got tenon.complex64"),
        (lambda: xp.fft.rfftfreq(4, dtype=tenon.int32), ValueError, "rfftfreq: expected `dtype` real and floating, got tenon.int32"),
        (lambda: xp.fft.fft(three, norm="half"), (ValueError, RuntimeError), "norm"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier_transforms(norm):
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        x = TALL if name in ("rfft", "ihfft") else COMPLEX
        for options in ({}, {"axis": 1}, {"n": 4}, {"n": 9, "axis": -2}):
            close(getattr(xp.fft, name)(tenon.tensor(x), **options, norm=norm), getattr(np.fft, name)(x, **options, norm=norm))
        assert getattr(xp.fft, name)(tenon.ones(4, dtype=tenon.float32 if x is TALL else tenon.complex64)).dtype in (tenon.float32, tenon.complex64)
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        x = TALL if name == "rfftn" else COMPLEX
        for options in ({}, {"axes": (0, 2)}, {"s": (3, 4), "axes": (1, 2)}):
            close(getattr(xp.fft, name)(tenon.tensor(x), **options, norm=norm), getattr(np.fft, name)(x, **options, norm=norm))


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            got = getattr(xp.fft, name)(n, d=0.25, dtype=tenon.float64, device="cpu")
            close(got, getattr(np.fft, name)(n, 0.25))
            assert getattr(xp.fft, name)(n).dtype is tenon.get_default_dtype()
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, -1, (1, 2)):
            close(getattr(xp.fft, name)(tenon.tensor(TALL), axes=axes), getattr(np.fft, name)(TALL, axes))
