"""Matrices that factorizations are tried on, and LAPACK's measure of what they leave."""

import numpy as np

DTYPES = ("float32", "float64", "complex64", "complex128")
EPS = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}
#: Up to which order lanes serve, one that crosses panels, and one that crosses several.
ORDERS = (1, 2, 3, 16, 32, 33, 70)


def random_matrix(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def kinds(n, dtype):
    """{name: matrix}: random, graded, Hilbert, Vandermonde and of half the rank."""
    a = random_matrix((n, n), dtype, n)
    scale = np.logspace(0, -6, n)
    i = np.arange(n)
    half = random_matrix((n, max(n // 2, 1)), dtype, n) @ random_matrix((max(n // 2, 1), n), dtype, n + 1)
    return {
        "random": a,
        "graded": (a * scale * scale[:, None]).astype(dtype),
        "hilbert": (1 / (i[:, None] + i + 1)).astype(dtype),
        "vandermonde": np.vander(np.linspace(0.1, 1, n), increasing=True).astype(dtype),
        "deficient": half.astype(dtype),
    }


def wide(x):
    return np.asarray(x).astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def ratio(rest, scale, n, dtype):
    """LAPACK's test ratio |rest| / (n |scale| eps); below 30 is well. `scale` is a matrix or a norm."""
    size, left = _norm(scale), _norm(rest)
    return left / (max(n, 1) * max(size, np.finfo(np.float64).tiny) * EPS[dtype])


def _norm(x):
    return float(np.abs(wide(x)).sum(-2).max(initial=0)) if np.ndim(x) > 1 else float(np.abs(x))


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))
