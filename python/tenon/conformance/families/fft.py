"""Fourier transforms: NumPy's in float64, and frames of them."""

import numpy as np

from ..dtypes import PARTS
from ..rows import ONE_OPERAND, Row, shape_calls
from ..samples import sample, with_options
from .factory import _KINDS_OF_NUMBERS, _given

_WHOLES = {real: name for name, real in PARTS.items()}


def _parts(s):
    """The dtype that a transform of the first argument computes in."""
    name = s.specs()[0].dtype
    name = PARTS.get(name, name)
    return "float64" if name == "float64" else "float32"


def _complex(s):
    return _WHOLES[_parts(s)]


def _shapes(m):
    """Of transforms along the last two dimensions, which have elements."""
    return {
        "empty": [(0, 3), (2, 0, 4, 3)],
        "channels_last": [(2, 3, 2, 4)],
        "promotion": [(5,)],
        "grad": [(2, 3), (4,)],
        "plain": [(3, 8), (37,), (2, 66)],
    }.get(m.kind, [(3, 5), (2, 3, 4)])


def _one(m):
    for shape in _shapes(m):
        yield sample(m.tensor(shape))
        if m.kind == "empty":
            continue
        yield sample(m.tensor(shape), 6, 0, "ortho")
        yield sample(m.tensor(shape), 3, -1, "forward")
        if m.kind == "plain":
            yield sample(m.tensor((2, 16, 17)), None, 1, "backward")


@with_options
def _several(m, two):
    for shape in _shapes(m):
        if len(shape) < 2:
            continue
        if m.kind == "empty":
            yield sample(m.tensor(shape), None, [-1])
            continue
        yield sample(m.tensor(shape))
        yield sample(m.tensor(shape), [4, 3], [0, 1], "forward")
        if m.kind == "plain":
            yield sample(m.tensor(shape), [-1, 6], [-1, 0], "ortho")
            if not two:
                yield sample(m.tensor((2, 3, 4)), [5], None, "ortho")


def _bound(reference):
    """Errors are relative to the largest result that the sizes of the elements could have."""

    def bound(*args, **kwargs):
        found = np.abs(reference(*args, **kwargs))
        return np.full(found.shape, found.max(initial=0))

    return bound


_SPREAD = {"special": "infinities and NaN spread over all of a transform", "promotion": "one operand"}
_NUMBERS = {**_SPREAD, "zero_dim": "needs a dimension"}


def _row(name, samples, reference, ulps=8, absent=_NUMBERS, **options):
    return Row(name, samples, reference, ulps=ulps, magnitude=_bound(reference), absent=absent, **options)


def _hermitian_several(x, s, dim, norm, transform):
    """hfftn and ihfftn, which NumPy lacks: irfftn of conjugates, and conjugates of rfftn, with the norm of the other way."""
    turned = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}[norm]
    if transform == "hfftn":
        return np.fft.irfftn(np.conj(x), _lengths(x, s, dim), _axes(x, s, dim), turned)
    return np.conj(np.fft.rfftn(x, _lengths(x, s, dim), _axes(x, s, dim), turned))


def _axes(x, s, dim):
    if dim is not None:
        return [d % x.ndim for d in dim]
    return list(range(x.ndim - len(s), x.ndim)) if s is not None else list(range(x.ndim))


def _lengths(x, s, dim):
    """Sizes with -1 replaced, as older NumPy wants them."""
    return s if s is None else [x.shape[d] if n == -1 else n for n, d in zip(s, _axes(x, s, dim))]


def _numpy(name):
    if name in ("hfftn", "ihfftn"):
        return lambda x, s=None, dim=None, norm=None: _hermitian_several(x, s, dim, norm, name)
    transform = getattr(np.fft, name)
    return lambda x, s=None, dim=None, norm=None: transform(x, _lengths(x, s, dim), _axes(x, s, dim), norm)


def _pairs(several):
    return lambda x, s=None, dim=(-2, -1), norm=None: several(x, s, dim, norm)


def _errors(m):
    yield sample(m.tensor((3,)), 0), (RuntimeError,), "expected at least 1 element"
    yield sample(m.tensor((3,)), -2), (RuntimeError,), "expected at least 1 element"
    yield sample(m.tensor((2, 0))), (RuntimeError,), "too few for a transform"
    yield sample(m.tensor((3,)), None, 1), (IndexError,), "dim"
    yield sample(m.tensor((3,)), None, -1, "other"), (RuntimeError,), "expected `norm`"


def _several_errors(m):
    yield sample(m.tensor((2, 3)), [1, 2, 3]), (RuntimeError,), "expected at most 2 sizes"
    yield sample(m.tensor((2, 3)), None, [0, 0]), (RuntimeError,), "expected dimensions that differ"
    yield sample(m.tensor((2, 3)), [2], [0, 1]), (RuntimeError,), "expected as many sizes"
    yield sample(m.tensor((2, 3)), [0, 1], [0, 1]), (RuntimeError,), "expected at least 1 element"


def _transforms():
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        real_in, real_out = name in ("rfft", "ihfft"), name in ("irfft", "hfft")
        inner = "_fft_r2c" if real_in else "_fft_c2r" if real_out else "_fft_c2c"
        options = dict(result=_parts if real_out else _complex, refuse=("complex",) if real_in else (), inner=inner)
        one = getattr(np.fft, name)
        yield _row(f"fft_{name}", _one, one, errors=_errors, **options)
        several = _numpy(name + "n")
        yield _row(f"fft_{name}n", _several(False), several, errors=_several_errors, **options)
        yield _row(f"fft_{name}2", _several(True), _pairs(several), **options)


# The operators that have kernels


def _scaled(result, n, normalization):
    return result * (1.0, n**-0.5, 1.0 / n)[normalization]


def _product(sizes, dims):
    return float(np.prod([sizes[d] for d in dims]))


def _c2c(x, dim, normalization, forward):
    if forward:
        return _scaled(np.fft.fftn(x, axes=dim), _product(x.shape, dim), normalization)
    n = _product(x.shape, dim)
    return _scaled(np.fft.ifftn(x, axes=dim) * n, n, normalization)


def _r2c(x, dim, normalization, onesided):
    transform = np.fft.rfftn if onesided else np.fft.fftn
    return _scaled(transform(x, axes=dim), _product(x.shape, dim), normalization)


def _c2r(x, dim, normalization, size):
    sizes = [size if d == dim[-1] else x.shape[d] for d in dim]
    n = float(np.prod(sizes))
    return _scaled(np.fft.irfftn(x, s=sizes, axes=dim) * n, n, normalization)


@with_options
def _kernel_samples(m, *last, halved=False):
    """Along one dimension and two, with every normalization."""
    for shape in _shapes(m):
        for i, dims in enumerate([[-1]] if m.kind == "empty" or len(shape) < 2 else [[-1], [0], [0, 1], [1, 0]]):
            for extra in last:
                if not halved:
                    yield sample(m.tensor(shape), dims, i % 3, extra)
                    continue
                d = dims[-1] % len(shape)
                half = [n // 2 + 1 if k == d else n for k, n in enumerate(shape)]
                yield sample(m.tensor(half), dims, i % 3, shape[d])


def _c2r_backward(grad, dim, normalization):
    """2 times the elements of the middle."""
    half = _r2c(grad, dim, normalization, True)
    n, d = grad.shape[dim[-1]], dim[-1]
    weights = np.where((np.arange(half.shape[d]) == 0) | (2 * np.arange(half.shape[d]) == n), 1.0, 2.0)
    return half * np.moveaxis(weights.reshape((-1,) + (1,) * (grad.ndim - 1)), 0, d)


def _r2c_backward(grad, dim, normalization, onesided, sizes):
    if onesided:
        d = dim[-1] % grad.ndim
        pad = [(0, sizes[k] - grad.shape[k] if k == d else 0) for k in range(grad.ndim)]
        grad = np.pad(grad, pad)
    return _c2c(grad, dim, normalization, False).real


def _r2c_backward_samples(m):
    for s in _kernel_samples(True, False)(m):
        x, dims, normalization, onesided = s.args
        shape = [n // 2 + 1 if onesided and k == dims[-1] % len(x.shape) else n for k, n in enumerate(x.shape)]
        m.made = 0
        yield sample(m.tensor(shape), dims, normalization, onesided, list(x.shape))


def _c2r_backward_samples(m):
    for s in _kernel_samples(0)(m):
        yield sample(*s.args[:3])


_REAL = ("bool", "integral", "complex", "float16", "bfloat16")
_COMPLEX = ("bool", "integral", "floating")
_OTHERS = {**_NUMBERS, **{c: "gradients are floating numbers" for c in ("bool", "integral")}}


def _kernels():
    yield _row("_fft_c2c", _kernel_samples(True, False), _c2c, no_peer="PyTorch's take no negative dimensions", result=_complex, refuse=_COMPLEX)
    yield _row("_fft_r2c", _kernel_samples(True, False), _r2c, no_peer="PyTorch's take no negative dimensions", result=_complex, refuse=_REAL)
    yield _row("_fft_c2r", _kernel_samples(0, halved=True), _c2r, no_peer="PyTorch's take no negative dimensions", result=_parts, refuse=_COMPLEX)
    gradient = dict(ulps=16, absent=_OTHERS, no_peer="PyTorch has none")
    yield _row("_fft_c2r_backward", _c2r_backward_samples, _c2r_backward, result=_complex, refuse=_REAL, inner="_fft_r2c", **gradient)
    yield _row("_fft_r2c_backward", _r2c_backward_samples, _r2c_backward, result=_parts, refuse=_COMPLEX, inner="_fft_c2r", **gradient)


# Frequencies and shifts


def _frequency_samples(m):
    if m.kind in ("plain", "large"):
        for n in (1, 2, 7, 8) if m.kind == "plain" else (2**17,):
            yield sample(n, dtype=m.dtype.name)
            yield sample(n, 0.5, dtype=m.dtype.name)


def _frequencies(transform):
    return lambda n, d=1.0, dtype=None: transform(n, d)


_shift_samples = shape_calls(lambda shape: [(), ([-1],)] if shape else [()])


def _shifted(shift):
    return lambda x, dim=None: shift(x, axes=dim) if x.ndim else x


# Frames


def _stft(x, n_fft, hop=None, win=None, window=None, normalized=False, onesided=None, return_complex=None):
    win = n_fft if win is None else win
    left = (n_fft - win) // 2
    weights = np.pad(np.ones(win) if window is None else window, (left, n_fft - win - left))
    frames = np.stack([x[..., i : i + n_fft] * weights for i in range(0, x.shape[-1] - n_fft + 1, hop or n_fft // 4)], -1)
    return (np.fft.rfft if onesided else np.fft.fft)(frames, axis=-2, norm="ortho" if normalized else None)


def _stft_center(x, n_fft, hop=None, win=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None):
    if center:
        pads = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        x = np.pad(x, pads, mode={"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode))
    return _stft(x, n_fft, hop, win, window, normalized, onesided)


def _signals(m):
    if m.kind in ("zero_dim", "channels_last", "empty"):
        return
    yield (12,)
    if m.kind != "grad":
        yield (2, 21)


@with_options
def _stft_samples(m, *center):
    half = m.dtype.category != "complex"
    for shape in _signals(m):
        yield sample(m.tensor(shape), 6, 3, None, None, *center, False, half, True)
        yield sample(m.tensor(shape), 8, None, 5, m.tensor((5,)), *center, True, half, True)
        if center and m.kind == "plain":
            for mode in ("constant", "replicate", "circular"):
                yield sample(m.tensor(shape), 6, 3, None, None, True, mode, False, False, True)
            yield sample(m.tensor(shape), 6, 3, None, None, False, "reflect", False, half, True)


def _istft_samples(m):
    if m.kind in ("zero_dim", "channels_last", "empty"):
        return
    for batch in ((), (2,)) if m.kind != "grad" else ((),):
        yield sample(m.tensor((*batch, 4, 4)), 6, 2)
        yield sample(m.tensor((*batch, 5, 4)), 8, 2, 6, None, True, True, None, 9)


def _istft(x, n_fft, hop, win=None, window=None, center=True, normalized=False, onesided=None, length=None):
    win = n_fft if win is None else win
    left = (n_fft - win) // 2
    weights = np.pad(np.ones(win), (left, n_fft - win - left))
    frames = np.fft.irfft(x, n_fft, axis=-2, norm="ortho" if normalized else None) * weights[:, None]
    size = n_fft + hop * (x.shape[-1] - 1)
    total, envelope = np.zeros((*x.shape[:-2], size)), np.zeros(size)
    for t in range(x.shape[-1]):
        total[..., t * hop : t * hop + n_fft] += frames[..., t]
        envelope[t * hop : t * hop + n_fft] += weights**2
    begin = n_fft // 2 if center else 0
    end = begin + length if length else size - n_fft // 2
    return (total / np.where(envelope == 0, 1, envelope))[..., begin:end]


def _istft_bound(x, *args):
    """The sum of the frequencies of a frame."""
    return np.full(_istft(x, *args).shape, np.abs(x).sum(-2).max(initial=0))


_FIXED = {**_SPREAD, **{k: "the rank is fixed" for k in ("zero_dim", "channels_last")}, "empty": "frames have samples"}

ROWS = [
    *_transforms(),
    *_kernels(),
    Row("fft_fftfreq", _frequency_samples, _frequencies(np.fft.fftfreq), result=_given, refuse=("bool", "integral"), ulps=1, absent=_KINDS_OF_NUMBERS),
    Row("fft_rfftfreq", _frequency_samples, _frequencies(np.fft.rfftfreq), result=_given, refuse=("bool", "integral"), ulps=1, absent=_KINDS_OF_NUMBERS),
    Row("fft_fftshift", _shift_samples, _shifted(np.fft.fftshift), result="self", absent=ONE_OPERAND),
    Row("fft_ifftshift", _shift_samples, _shifted(np.fft.ifftshift), result="self", absent=ONE_OPERAND),
    _row("stft", _stft_samples(), _stft, 16, _FIXED, direct=True, result=_complex, refuse=("bool", "integral")),
    _row("stft.center", _stft_samples(True, "reflect"), _stft_center, 16, _FIXED, result=_complex, refuse=("bool", "integral")),
    Row("istft", _istft_samples, _istft, result=_parts, refuse=_COMPLEX, ulps=8, magnitude=_istft_bound, absent=_FIXED),
]  # fmt: skip
