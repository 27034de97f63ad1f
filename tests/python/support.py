"""What the tests of the Python package share: strategies for arrays and tensors, and comparisons with NumPy."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import tenon

# Builds and sanitizers make times vary; what is tested is never how fast it was.
settings.register_profile("tenon", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("tenon")

NUMPY_DTYPES = {
    tenon.bool: np.bool_,
    tenon.uint8: np.uint8,
    tenon.int8: np.int8,
    tenon.int16: np.int16,
    tenon.int32: np.int32,
    tenon.int64: np.int64,
    tenon.float16: np.float16,
    tenon.float32: np.float32,
    tenon.float64: np.float64,
}


@st.composite
def arrays(draw, dtypes=(np.float32, np.float64, np.int64), max_dims=3, max_side=4):
    """NumPy arrays of every stride: contiguous, transposed, sliced, reversed, broadcast."""
    shape = draw(st.lists(st.integers(0, max_side), max_size=max_dims).map(tuple))
    dtype = draw(st.sampled_from(list(dtypes)))
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    array = np.asarray(rng.integers(-9, 10, shape)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        array = np.asarray(array + rng.random(shape).astype(dtype))
    kind = draw(st.sampled_from(["contiguous", "transposed", "reversed", "sliced", "broadcast"]))
    if kind == "transposed":
        return array.T
    if kind == "reversed":
        return np.asarray(array[tuple(slice(None, None, -1) for _ in shape)])
    if kind == "sliced" and shape:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if kind == "broadcast" and shape:
        return np.broadcast_to(array[:1], (min(1, shape[0]) * 3,) + shape[1:])
    return array


def view_of(array):
    """A tensor over the very memory of an array, strides and all."""
    return tenon.from_numpy(array if array.flags.writeable else array.copy("K"))


def assert_same(tensor, array):
    """The same shape, dtype and bits (NaN equal to NaN)."""
    assert tuple(tensor.shape) == array.shape
    assert NUMPY_DTYPES[tensor.dtype] == array.dtype.type
    np.testing.assert_array_equal(np.array(tensor.tolist(), dtype=array.dtype).reshape(array.shape), array)
