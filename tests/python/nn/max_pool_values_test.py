"""Maxima without their places, which pools compute where no gradient is asked for: the bits of the element that is chosen."""

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F

_DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"]


def _by_hand(x, kernel, stride, padding, dilation):
    """The element of each window that comes first among the largest; NaN is larger than all, and of NaNs the last counts."""
    spatial = x.shape[-len(kernel) :]
    sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation)]
    out = np.empty(x.shape[: -len(kernel)] + tuple(sizes), x.dtype)
    for at in np.ndindex(*sizes):
        best = None
        for tap in np.ndindex(*kernel):
            place = [a * s - p + t * d for a, s, p, t, d in zip(at, stride, padding, tap, dilation)]
            if any(i < 0 or i >= n for i, n in zip(place, spatial)):
                continue
            seen = x[(..., *place)]
            best = seen if best is None else np.where((seen > best) | (seen != seen), seen, best)
        out[(..., *at)] = best
    return out


def _values(rng, shape, dtype):
    if dtype in ("float32", "float64", "float16", "bfloat16"):
        a = rng.integers(-4, 5, shape).astype("float32") * rng.choice([0.5, 1, 2])
        a[rng.random(shape) < 0.1] = -0.0
        a[rng.random(shape) < 0.03] = np.nan
        a[rng.random(shape) < 0.1] = -np.inf
        return a
    return rng.integers(0 if dtype == "uint8" else -100, 100, shape)


def _laid_out(rng, x):
    """x at other strides: turned around, with gaps, or with channels inside."""
    how = rng.integers(0, 5)
    if how == 1:
        return x.flip(-1).contiguous().flip(-1)
    if how == 2:
        return tenon.stack([x, x], -1)[..., 0]
    if how == 3 and x.dim() == 4:
        return x.contiguous(memory_format=tenon.channels_last)
    if how == 4:
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    return x


def _same_bits(a, b):
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", _DTYPES)
def test_the_chosen_elements_bits(dtype):
    rng = np.random.default_rng(_DTYPES.index(dtype))
    pools = [F.max_pool1d, F.max_pool2d, F.max_pool3d]
    for _ in range(60):
        rank = int(rng.integers(1, 4))
        most = (70, 24, 9)[rank - 1]
        kernel = [int(k) for k in rng.integers(1, 6, rank)]
        dilation = [int(d) for d in rng.integers(1, 3, rank)]
        stride = [int(s) for s in rng.integers(1, 6, rank)]
        padding = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        shape = [d * (k - 1) + 1 + int(rng.integers(0, most)) for k, d in zip(kernel, dilation)]
        shape = (int(rng.integers(1, 3)), int(rng.choice([1, 3, 20])), *shape)
        x = tenon.tensor(_values(rng, shape, dtype)).to(getattr(tenon, dtype))
        wide = x.to(tenon.float64) if x.is_floating_point() else x.to(tenon.int64)
        want = _by_hand(wide.numpy(), kernel, stride, padding, dilation)
        got = pools[rank - 1](_laid_out(rng, x), kernel, stride, padding, dilation)
        assert got.dtype == x.dtype
        # NaNs of narrow types are wider ones' only up to their payload.
        got = got.to(wide.dtype).numpy()
        where = np.isnan(want) if want.dtype == np.float64 else np.zeros(want.shape, bool)
        assert _same_bits(np.where(where, 0, got), np.where(where, 0, want)), (shape, kernel, stride, padding, dilation)
        if where.any():
            assert np.isnan(got[where]).all()


def test_with_a_gradient_and_without_one_result():
    rng = np.random.default_rng(7)
    for shape, kernel, stride in [((2, 3, 40), (5,), (2,)), ((2, 3, 9, 31), (3, 3), (2, 2)), ((2, 3, 30, 1), (3, 1), (2, 1)), ((1, 2, 5003), (7,), (3,)),
                                  ((1, 2, 6, 7, 20), (5, 5, 2), (1, 1, 2))]:  # fmt: skip
        x = tenon.tensor(_values(rng, shape, "float32"))
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1]
        plain = pool(x, kernel, stride)
        tracked = pool(x.clone().requires_grad_(), kernel, stride)
        assert _same_bits(plain.numpy(), tracked.detach().numpy())


def test_its_own_derivative_finds_the_places():
    x = tenon.tensor([[1.0, 5.0, 2.0, 5.0, 0.0, 7.0]], dtype=tenon.float64).requires_grad_()
    tenon.ops.aten._max_pool_values(x, [3], [1], [0], [1], False).backward(tenon.tensor([[1.0, 2.0, 4.0, 8.0]], dtype=tenon.float64))
    assert x.grad.tolist() == [[0.0, 3.0, 0.0, 4.0, 0.0, 8.0]]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_errors_name_the_function_with_and_without_places(axes):
    for places in (False, True):
        with pytest.raises(ValueError, match=f"^max_pool{axes}d: `padding` must not be negative"):
            getattr(F, f"max_pool{axes}d")(tenon.ones(1, *[4] * axes), 2, padding=-1, return_indices=places)
