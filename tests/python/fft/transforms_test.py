"""tenon.fft: every length against NumPy in float64 and exact sums, errors in eps, laws, strides, dtypes, derivatives."""

import fractions
import math

import numpy as np
import pytest

import tenon
from tenon.autograd import gradcheck, gradgradcheck

RNG = np.random.default_rng(7)
#: Relative rms errors, over eps sqrt(log2 n).
BOUND = 0.6
NORMS = ("backward", "ortho", "forward")


def values(shape, dtype):
    x = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def relative(found, exact):
    return np.sqrt((np.abs(found.astype(exact.dtype) - exact) ** 2).sum() / (np.abs(exact) ** 2).sum())


def error(found, exact, n):
    """In eps sqrt(log2 n)."""
    return float(relative(found, exact)) / np.finfo(found.dtype).eps / max(1.0, math.sqrt(math.log2(max(n, 2))))


def exact_dft(x):
    """By sums in long double."""
    n = x.shape[-1]
    k = np.arange(n)
    angle = k.astype(np.longdouble) * (-2 * np.longdouble("3.14159265358979323846264338327950288") / n)
    return x.astype(np.clongdouble) @ (np.cos(angle) + 1j * np.sin(angle))[np.outer(k, k) % n]


LENGTHS = [*range(1, 131), 243, 400, 512, 625, 720, 961, 1000, 1009, 1024, 2018, 2048, 4096, 6561]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_every_length_is_as_exact_as_its_bound(dtype):
    reference = exact_dft if dtype == "complex128" else lambda x: np.fft.fft(x.astype(np.complex128))
    for n in [n for n in LENGTHS if dtype == "complex64" or n <= 130 or n == 400]:
        for rows in (1, 40):
            x = values((rows if rows > 1 else max(1, min(40, 1600 // n)), n), dtype)
            found = [tenon.fft.fft(tenon.tensor(r)).numpy() for r in x] if rows == 1 else tenon.fft.fft(tenon.tensor(x)).numpy()
            assert error(np.asarray(found), reference(x), n) < BOUND, n
            back = tenon.fft.ifft(tenon.tensor(x)).numpy()
            assert error(back, np.conj(reference(np.conj(x))) / n, n) < BOUND, n


def test_real_transforms_of_every_length():
    for n in LENGTHS:
        x = values((24, n), "float32")
        exact = np.fft.fft(x.astype(np.float64))
        for found in (tenon.fft.rfft(tenon.tensor(x)).numpy(), np.stack([tenon.fft.rfft(tenon.tensor(r)).numpy() for r in x[:3]])):
            assert error(found, exact[: len(found), : n // 2 + 1], n) < BOUND, n
        whole = tenon.fft.fft(tenon.tensor(x)).numpy()
        assert error(whole, exact, n) < BOUND, n
        np.testing.assert_array_equal(whole[:, 1:], np.conj(whole[:, :0:-1]))
        half = values((24, n // 2 + 1), "complex64")
        found = tenon.fft.irfft(tenon.tensor(half), n).numpy()
        assert found.shape == (24, n) and error(found, np.fft.irfft(half.astype(np.complex128), n), n) < BOUND, n


@pytest.mark.parametrize("n", [65537, 65536, 1 << 17, 3 << 16, 1 << 20, 99991])
def test_long_transforms(n):
    x = values(n, "complex64")
    exact = np.fft.fft(x.astype(np.complex128))
    assert error(tenon.fft.fft(tenon.tensor(x)).numpy(), exact, n) < BOUND
    found = tenon.fft.fft(tenon.tensor(x.astype(np.complex128)))
    assert relative(found.numpy(), exact) < 4e-15
    assert relative(tenon.fft.ifft(found).numpy(), x.astype(np.complex128)) < 4e-15
    real = tenon.tensor(x.real.copy())
    assert error(tenon.fft.rfft(real).numpy(), np.fft.rfft(x.real.astype(np.float64)), n) < BOUND
    assert error(tenon.fft.irfft(tenon.fft.rfft(real), n).numpy(), x.real.astype(np.float64), n) < 2 * BOUND


def test_a_unit_impulse_gives_roots_of_unity():
    """Roots of unity in whole 40-digit arithmetic: of cos and sin by their series."""
    n = 48

    def root(a):
        turn = fractions.Fraction(a, n)
        x = turn * 2 * fractions.Fraction(31415926535897932384626433832795028841971693993751, 10**49)
        cos, sin, term = fractions.Fraction(0), fractions.Fraction(0), fractions.Fraction(1)
        for k in range(1, 60):
            if k % 2:
                cos += term if k % 4 == 1 else -term
            else:
                sin += term if k % 4 == 2 else -term
            term = (term * x / k).limit_denominator(10**45)
        return complex(float(cos), -float(sin))

    impulse = np.zeros(n, np.complex128)
    impulse[1] = 1
    found = tenon.fft.fft(tenon.tensor(impulse)).numpy()
    exact = np.array([root(k) for k in range(n)])
    assert np.abs(found - exact).max() <= 2.0**-52
    assert found[n // 4] == -1j and found[n // 2] == -1 and found[3 * n // 4] == 1j


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", [None, *NORMS])
def test_norms_lengths_and_dimensions_are_numpys(name, norm):
    real = name in ("rfft", "ihfft")
    x = values((5, 6, 7), "float64" if real else "complex128")
    for n in (None, 4, 9, 1, 12):
        for dim in (-1, 0, 1):
            if name in ("irfft", "hfft") and n == 1:
                continue
            found = getattr(tenon.fft, name)(tenon.tensor(x), n, dim, norm)
            np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(x, n, dim, norm), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_several_dimensions_are_numpys(name):
    x = values((3, 4, 5, 6), "float64" if name == "rfftn" else "complex128")
    two = getattr(tenon.fft, name[:-1] + "2")
    for norm in (None, *NORMS):
        for s, dim in [(None, None), (None, (0, 2)), ((3, 8), (1, -1)), ((4, 5), (-1, 0)), ((2, 7), None), ((-1, 4), (3, 1))]:
            axes = dim if dim is not None or s is None else (2, 3)
            sizes = s and tuple(x.shape[a] if k == -1 else k for k, a in zip(s, axes))
            found = getattr(tenon.fft, name)(tenon.tensor(x), s, dim, norm).numpy()
            np.testing.assert_allclose(found, getattr(np.fft, name)(x, sizes, axes, norm), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(two(tenon.tensor(x), norm=norm).numpy(), getattr(np.fft, name)(x, None, (-2, -1), norm), atol=1e-13)


def test_hermitian_transforms_of_several_dimensions_are_inverses():
    x = values((4, 6, 5), "float64")
    for norm in NORMS:
        half = tenon.fft.ihfftn(tenon.tensor(x), norm=norm)
        np.testing.assert_allclose(tenon.fft.hfftn(half, (4, 6, 5), norm=norm).numpy(), x, atol=1e-13)
        np.testing.assert_allclose(tenon.fft.hfft2(tenon.fft.ihfft2(tenon.tensor(x)), (6, 5)).numpy(), x, atol=1e-13)
    # Along one dimension after the others: each is a transform of complex numbers.
    y = values((4, 6), "complex128")
    exact = np.fft.hfft(np.fft.fft(y, axis=0), axis=1)
    np.testing.assert_allclose(tenon.fft.hfftn(tenon.tensor(y)).numpy(), exact, atol=1e-12)


def test_laws():
    x, y = (tenon.tensor(values((3, 360), "complex128")) for _ in range(2))
    fx, fy = tenon.fft.fft(x), tenon.fft.fft(y)
    np.testing.assert_allclose(tenon.fft.fft(2 * x - 3j * y).numpy(), (2 * fx - 3j * fy).numpy(), atol=1e-11)
    np.testing.assert_allclose((fx.abs() ** 2).sum().item(), 360 * (x.abs() ** 2).sum().item(), rtol=1e-14)
    turned = np.exp(-2j * np.pi * 5 * np.arange(360) / 360)
    np.testing.assert_allclose(tenon.fft.fft(x.roll(5, 1)).numpy(), fx.numpy() * turned, atol=1e-11)
    shifted = tenon.fft.ifftshift(tenon.fft.fftshift(x))
    assert shifted.equal(x)


def test_strides_and_batches_change_no_bits():
    x = values((37, 40), "complex64")
    t = tenon.tensor(x)
    whole = tenon.fft.fft(t)
    alone = tenon.stack([tenon.fft.fft(tenon.tensor(r)) for r in x])
    assert whole.equal(alone)
    assert tenon.fft.fft(t.t().contiguous().t()).equal(whole)
    assert tenon.fft.fft(t.t(), dim=0).equal(whole.t())
    wide = tenon.tensor(np.repeat(x, 2, 1))[:, ::2]
    assert tenon.fft.fft(wide).equal(whole)
    assert tenon.fft.fft(t.flip(1).flip(1)).equal(whole)
    assert tenon.fft.fft(t[:1].expand(20, 40)).equal(whole[:1].expand(20, 40))
    real = tenon.tensor(x.real.copy())
    rows = tenon.stack([tenon.fft.rfft(r) for r in real])
    assert tenon.fft.rfft(real).equal(rows)
    assert tenon.fft.irfft(rows, 40).equal(tenon.stack([tenon.fft.irfft(r, 40) for r in rows]))


def test_a_real_input_has_the_transform_of_complex_numbers():
    x = values((3, 15), "float64")
    for name in ("fft", "ifft", "fft2", "ifftn"):
        found = getattr(tenon.fft, name)(tenon.tensor(x)).numpy()
        np.testing.assert_allclose(found, getattr(np.fft, name)(x), atol=1e-14)


def test_dtypes():
    for name, complex_, real in [("int64", "complex64", "float32"), ("bool", "complex64", "float32"), ("float16", "complex64", "float32"),
                                 ("bfloat16", "complex64", "float32"), ("float64", "complex128", "float64")]:  # fmt: skip
        x = tenon.ones(4).to(getattr(tenon, name))
        assert tenon.fft.fft(x).dtype == tenon.fft.rfft(x).dtype == getattr(tenon, complex_)
        assert tenon.fft.irfft(x).dtype == getattr(tenon, real)
    x = tenon.randn(65).half()
    assert tenon.fft.fft(x).equal(tenon.fft.fft(x.float()))


def test_empty_batches_and_meta():
    assert tenon.fft.fft(tenon.zeros(0, 4)).shape == (0, 4)
    assert tenon.fft.rfft(tenon.zeros(3, 0, 4), dim=0).shape == (2, 0, 4)
    meta = tenon.zeros(3, 4, device="meta")
    assert tenon.fft.rfft2(meta).shape == (3, 3) and tenon.fft.rfft2(meta).device.type == "meta"
    assert tenon.fft.fft(meta, 9).dtype == tenon.complex64
    assert tenon.fft.fftn(tenon.zeros(2, 3), dim=()).shape == (2, 3)
    assert tenon.stft(tenon.zeros(100, device="meta"), 16, return_complex=True).shape == (9, 26)


def test_out_is_written_and_may_be_the_input():
    x = tenon.tensor(values(8, "complex64"))
    expected = tenon.fft.fft(x)
    out = tenon.empty(0, dtype=tenon.complex64)
    assert tenon.fft.fft(x, out=out) is out and out.equal(expected)
    strided = tenon.zeros(16, dtype=tenon.complex64)[::2]
    tenon.fft.fft(x, out=strided)
    assert strided.equal(expected)
    tenon.fft.fft(x, out=x)
    assert x.equal(expected)
    with pytest.raises(TypeError, match="out"):
        tenon.fft.fft(x, out=tenon.empty(8))


@pytest.mark.parametrize("norm", NORMS)
def test_derivatives(norm):
    z = tenon.tensor(values((2, 5), "complex128"), requires_grad=True)
    x = tenon.tensor(values((2, 6), "float64"), requires_grad=True)
    odd = tenon.tensor(values((2, 5), "float64"), requires_grad=True)
    for f, arg in [
        (lambda t: tenon.fft.fft(t, norm=norm), z), (lambda t: tenon.fft.ifft2(t, norm=norm), z), (lambda t: tenon.fft.fft(t, 3, norm=norm), x),
        (lambda t: tenon.fft.rfft(t, norm=norm), x), (lambda t: tenon.fft.rfftn(t, norm=norm), odd), (lambda t: tenon.fft.ihfft(t, 8, norm=norm), odd),
        (lambda t: tenon.fft.irfft(t, norm=norm), z), (lambda t: tenon.fft.irfftn(t, (3, 7), norm=norm), z), (lambda t: tenon.fft.hfft2(t, norm=norm), z),
    ]:  # fmt: skip
        assert gradcheck(f, (arg,)) and gradgradcheck(f, (arg,))


def test_imaginary_parts_of_the_ends_have_no_gradient():
    z = tenon.tensor(values(5, "complex128"), requires_grad=True)
    weights = tenon.tensor(values(8, "float64"))
    (tenon.fft.irfft(z) * weights).sum().backward()
    assert z.grad[0].imag == 0 and z.grad[-1].imag == 0 and z.grad[1].imag != 0
    changed = z.detach().clone()
    changed[0] += 3j
    changed[-1] -= 2j
    assert tenon.fft.irfft(changed).equal(tenon.fft.irfft(z.detach()))


def test_frequencies_and_shifts_are_numpys():
    for n in (1, 2, 5, 8):
        for d in (1.0, 0.25):
            np.testing.assert_allclose(tenon.fft.fftfreq(n, d, dtype=tenon.float64).numpy(), np.fft.fftfreq(n, d))
            np.testing.assert_allclose(tenon.fft.rfftfreq(n, d).numpy(), np.fft.rfftfreq(n, d).astype(np.float32), rtol=1e-6)
    x = np.arange(30).reshape(5, 6)
    for axes in (None, 0, (1,), (0, 1)):
        np.testing.assert_array_equal(tenon.fft.fftshift(tenon.tensor(x), axes).numpy(), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(tenon.fft.ifftshift(tenon.tensor(x), axes).numpy(), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: tenon.fft.fft(x, 0), RuntimeError, r"^fft\.fft: expected at least 1 element .*dimension 1 .*got 0 from `n`"),
        (lambda x: tenon.fft.fft(x, -3), RuntimeError, "got -3"),
        (lambda x: tenon.fft.fft(x[:, :0]), RuntimeError, r"^fft\.fft: dimension 1 of `self` .*0 elements.*give its length"),
        (lambda x: tenon.fft.irfft(x[:, :1]), RuntimeError, r"^fft\.irfft: dimension 1 .*1 elements, too few"),
        (lambda x: tenon.fft.fft(x, dim=2), IndexError, r"^fft\.fft: dimension out of range"),
        (lambda x: tenon.fft.fft(x[0, 0]), IndexError, r"^fft\.fft: `dim` is -1, but `self` has no dimensions"),
        (lambda x: tenon.fft.fft(x, norm="big"), RuntimeError, r'^fft\.fft: expected `norm` .*"ortho", got "big"'),
        (lambda x: tenon.fft.rfft(x + 0j), TypeError, r"^fft\.rfft: expected a real `self`, got complex64; take"),
        (lambda x: tenon.fft.ihfft2(x + 0j), TypeError, r"^fft\.ihfft2: expected a real `self`"),
        (lambda x: tenon.fft.fftn(x, (1, 2, 3)), RuntimeError, r"^fft\.fftn: expected at most 2 sizes in `s`"),
        (lambda x: tenon.fft.fftn(x, dim=(0, -2)), RuntimeError, r"^fft\.fftn: expected dimensions that differ in `dim`"),
        (lambda x: tenon.fft.fftn(x, (3,), (0, 1)), RuntimeError, r"^fft\.fftn: expected as many sizes in `s`"),
        (lambda x: tenon.fft.rfftn(x, dim=()), RuntimeError, r"^fft\.rfftn: expected at least one dimension"),
        (lambda x: tenon.fft.fftfreq(4, dtype=tenon.int64), TypeError, r"^fft\.fftfreq: expected a floating or complex `dtype`, got int64"),
        (lambda x: tenon.fft.fftfreq(-1), ValueError, r"^fft\.fftfreq: expected `n` of at least 0, got -1"),
        (lambda x: tenon.ops.aten._fft_c2r(x + 0j, [1], 0, 9), (ValueError, RuntimeError), "expected 5 elements along dimension 1"),
        (lambda x: tenon.ops.aten._fft_c2c(x, [1], 0, True), NotImplementedError, "expected `self` of complex64 or complex128, got float32"),
        (lambda x: tenon.ops.aten._fft_r2c(x, [1], 3, True), ValueError, "expected `normalization` from 0 to 2, got 3"),
        (lambda x: tenon.ops.aten._fft_r2c(x[0, 0], [0], 0, True), IndexError, "_fft_r2c: `dim` is .*0.*, but `self` has no dimensions"),
        (lambda x: tenon.ops.aten._fft_r2c_backward(x[0, 0] + 0j, [0], 0, True, []), IndexError, "expected `grad` with dimensions"),
        (lambda x: tenon.ops.aten._fft_c2r_backward(x[0, 0], [0], 0), IndexError, "expected `grad` with dimensions"),
        (lambda x: tenon.ops.aten._fft_r2c(x, [], 0, True), ValueError, "expected at least one dimension in `dim`"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call(tenon.ones(3, 4))
