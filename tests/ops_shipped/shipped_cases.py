"""Tensors of every layout, and how close results of a dtype are to a float64 reference."""

import numpy as np

import tenon

FLOATING = [tenon.float64, tenon.float32, tenon.float16, tenon.bfloat16]
#: Of values near one, for results that are rounded once.
TOLERANCE = {tenon.float64: 1e-12, tenon.float32: 2e-6, tenon.float16: 2e-3, tenon.bfloat16: 1.6e-2}

#: A tensor of the same values that lies otherwise in memory.
LAYOUTS = {
    "contiguous": lambda t: t.clone(),
    "transposed": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
    "negative": lambda t: t.flip(list(range(t.dim()))).contiguous().flip(list(range(t.dim()))),
    "sliced": lambda t: tenon.cat([t, t], dim=-1)[..., : t.shape[-1]],
    "offset": lambda t: tenon.cat([t, t], dim=0)[t.shape[0] :],
}


def expanded(t):
    """The first row of a tensor, for every row, with stride 0."""
    return t[:1].expand(t.shape)


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def rounded(values, dtype):
    """A tensor, and the float64 values that it has."""
    t = tenon.tensor(values).to(dtype)
    return t, t.double().numpy()


def assert_close(result, wanted, dtype=None, factor=1.0):
    dtype = dtype or result.dtype
    assert result.dtype == dtype
    assert tuple(result.shape) == wanted.shape
    tolerance = TOLERANCE[dtype] * factor
    np.testing.assert_allclose(result.detach().double().numpy(), wanted, rtol=tolerance, atol=tolerance)
