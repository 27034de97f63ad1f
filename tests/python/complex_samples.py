"""Complex numbers to test with, in tensors of every stride, and the bound on their error."""

import numpy as np

import tenon

DTYPES = ["complex64", "complex128"]
EPS = {"complex64": 2.0**-23, "complex128": 2.0**-52}
REAL = {"complex64": "float32", "complex128": "float64"}


def numbers(dtype, seed=0, shape=(4, 6)):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 2 + 1j * rng.standard_normal(shape) * 2).astype(dtype)


def tensor(array, grad=False):
    return tenon.from_numpy(np.array(array)).requires_grad_(grad)


def assert_close(got, want, dtype, ulps):
    assert str(got.dtype) == f"tenon.{dtype}"
    got = got.detach().numpy()
    error = np.abs(got.astype(complex) - want)
    assert (error <= ulps * EPS.get(dtype, EPS["complex64" if dtype == "float32" else "complex128"]) * np.abs(want)).all(), (got, want)


def strided(array):
    """The same elements under every kind of stride."""
    yield tensor(array)
    yield tensor(array.T.copy()).T
    yield tensor(array[::-1].copy()).flip(0)
    yield tensor(np.repeat(array, 2, axis=1))[:, ::2]
