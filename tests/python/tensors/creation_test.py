"""tensor, as_tensor, from_numpy and back; dtypes told from data."""

import sys

import numpy as np
import pytest
from hypothesis import given
from tests.python.support import NUMPY_DTYPES, arrays, assert_same, view_of

import tenon


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, tenon.int64, ()),
        (1.5, tenon.float32, ()),
        (True, tenon.bool, ()),
        ([1, 2], tenon.int64, (2,)),
        ([1, 2.0], tenon.float32, (2,)),
        ([True, 2], tenon.int64, (2,)),
        ([[1.0, 2.0], [3.0, 4.0]], tenon.float32, (2, 2)),
        ([], tenon.float32, (0,)),
        ([[], []], tenon.float32, (2, 0)),
        ((1, (2)), tenon.int64, (2,)),
        (np.float64(2), tenon.float64, ()),
        (np.array([1, 2], np.int16), tenon.int16, (2,)),
        (range(3), tenon.int64, (3,)),
    ],
)
def test_tensor_tells_dtype_and_shape_from_its_data(data, dtype, shape):
    t = tenon.tensor(data)
    assert t.dtype is dtype
    assert t.shape == shape


def test_tensor_takes_dtype_device_and_requires_grad():
    t = tenon.tensor([1, 2], dtype=tenon.float64, device="cpu", requires_grad=True)
    assert t.dtype is tenon.float64
    assert t.device == tenon.device("cpu")
    assert t.requires_grad and t.is_leaf
    assert tenon.tensor([1, 2], dtype=float).dtype is tenon.float64


def test_tensor_of_tensors_stacks_them():
    t = tenon.tensor([tenon.tensor([1, 2]), tenon.tensor([3, 4])])
    assert t.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("data", [[[1, 2], [3]], [1, [2]], [[1], 2], [[[1]], [[1, 2]]]])
def test_ragged_data_are_a_value_error(data):
    with pytest.raises(ValueError, match="tensor: "):
        tenon.tensor(data)


@pytest.mark.parametrize("data", ["text", None, object(), [None], ["a"], {1: 2}])
def test_what_is_no_data_is_a_type_error(data):
    with pytest.raises(TypeError):
        tenon.tensor(data)


def test_numbers_that_do_not_fit_are_value_errors():
    with pytest.raises(ValueError, match="int8"):
        tenon.tensor([300], dtype=tenon.int8)
    with pytest.raises(ValueError):
        tenon.tensor([2**70])


def test_tensor_copies_and_from_numpy_shares():
    array = np.arange(4.0)
    copy, shared = tenon.tensor(array), tenon.from_numpy(array)
    array[0] = 9
    assert copy.tolist() == [0, 1, 2, 3]
    assert shared.tolist() == [9, 1, 2, 3]
    shared[1] = 7
    assert array[1] == 7
    assert tenon.as_tensor(array).data_ptr() == array.ctypes.data
    assert tenon.as_tensor(shared) is shared


@given(arrays(dtypes=NUMPY_DTYPES.values()))
def test_numpy_round_trip_shares_memory_at_any_stride(array):
    t = view_of(array)
    assert_same(t, array)
    back = t.numpy()
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    if array.size:
        assert back.ctypes.data == t.data_ptr()


def test_numpy_refuses_what_it_must(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as where it is not installed
    with pytest.raises(RuntimeError, match="detach"):
        tenon.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="bfloat16"):
        tenon.ones(2, dtype=tenon.bfloat16).numpy()
    with pytest.raises(TypeError, match="ndarray"):
        tenon.from_numpy([1, 2])
    with pytest.raises(TypeError):
        tenon.from_numpy(np.array(["a"]))


def test_numpy_functions_take_tensors():
    t = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert np.asarray(t).sum() == 10
    assert np.array(t, dtype=np.float64).dtype == np.float64


def test_numpy_keeps_the_memory_alive():
    array = tenon.arange(1000).numpy()
    junk = [tenon.zeros(1000) for _ in range(50)]
    assert (array == np.arange(1000)).all()
    assert len(junk) == 50


def test_read_only_arrays_come_in():
    array = np.arange(3.0)
    array.flags.writeable = False
    t = tenon.from_numpy(array)
    assert t.tolist() == [0, 1, 2]
    assert not t.numpy().flags.writeable


def test_factories():
    assert tenon.zeros(2, 3).shape == (2, 3) == tenon.zeros((2, 3)).shape == tenon.zeros([2, 3]).shape
    assert tenon.zeros(()).shape == ()
    assert tenon.ones(2, dtype=tenon.int32).tolist() == [1, 1]
    assert tenon.full((2,), 7).dtype is tenon.int64
    assert tenon.arange(5).tolist() == [0, 1, 2, 3, 4]
    assert tenon.arange(1, 2, 0.25).tolist() == [1.0, 1.25, 1.5, 1.75]
    assert tenon.empty(2, 0).numel() == 0
    assert tenon.zeros_like(tenon.ones(3, dtype=tenon.int8)).dtype is tenon.int8
    assert tenon.randn(2, 3, requires_grad=True).requires_grad
    assert tenon.empty(4, device="meta").is_meta


def test_sizes_that_overflow_are_shape_errors():
    with pytest.raises(ValueError):
        tenon.zeros(2**40, 2**40)
    with pytest.raises(RuntimeError):
        tenon.zeros(-1)
    with pytest.raises(tenon.ShapeError):
        tenon.zeros(3, -1)


def test_out_of_memory_is_a_memory_error():
    with pytest.raises(MemoryError):
        tenon.empty(2**55, dtype=tenon.uint8)
    with pytest.raises(RuntimeError):
        tenon.empty(2**55, dtype=tenon.uint8)


def test_seeds_repeat():
    tenon.manual_seed(3)
    first = tenon.randn(5).tolist()
    assert tenon.manual_seed(3) is not None
    assert tenon.randn(5).tolist() == first
    g = tenon.Generator().manual_seed(3)
    assert tenon.randn(5, generator=g).tolist() == first
    state = tenon.get_rng_state()
    a = tenon.rand(3).tolist()
    tenon.set_rng_state(state)
    assert tenon.rand(3).tolist() == a


class ClearsItsList:
    """A number whose conversion empties the list that holds it."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.clear()
        return 1

    def __float__(self):
        return float(self.__index__())


@pytest.mark.parametrize(
    "read",
    [
        lambda items: tenon.tensor(items),
        lambda items: tenon.tensor(items, dtype=tenon.float64),
        lambda items: tenon.tensor([items, items]),
        lambda items: tenon.arange(3)[items],
    ],
)
def test_a_list_that_changes_while_it_is_read_is_refused(read):
    items = []
    items.extend([ClearsItsList(items), 5])
    with pytest.raises((ValueError, TypeError, IndexError)):
        read(items)


def test_a_seed_beyond_64_bits_is_refused():
    assert tenon.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    tenon.manual_seed(-1)
    for seed in (2**64, 2**70, -(2**63) - 1):
        with pytest.raises(ValueError):
            tenon.manual_seed(seed)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e20])
@pytest.mark.parametrize("dtype", [tenon.int64, tenon.int32, tenon.uint8])
def test_what_no_integer_holds_is_refused(value, dtype):
    for make in (
        lambda: tenon.tensor(value, dtype=dtype),
        lambda: tenon.tensor([value], dtype=dtype),
        lambda: tenon.full((2,), value, dtype=dtype),
        lambda: tenon.zeros(2, dtype=dtype).fill_(value),
    ):
        with pytest.raises(ValueError, match="overflow"):
            make()


@pytest.mark.parametrize("number", [300, -256, 300.5, -1.5])
def test_uint8_refuses_what_lies_beyond_it(number):
    with pytest.raises(ValueError):
        tenon.tensor([number], dtype=tenon.uint8)
    with pytest.raises(ValueError):
        tenon.full((1,), number, dtype=tenon.uint8)


def test_negative_numbers_wrap_in_uint8():
    assert tenon.tensor([-1, -255], dtype=tenon.uint8).tolist() == [255, 1]
    t = tenon.full((2,), -1, dtype=tenon.uint8)
    t[0] = -2
    assert t.tolist() == [254, 255]


@pytest.mark.parametrize(
    ("dtype", "most"), [(tenon.int8, 128), (tenon.uint8, 256), (tenon.float16, 2049), (tenon.bfloat16, 257)]
)
def test_randperm_refuses_what_its_dtype_cannot_tell_apart(dtype, most):
    assert sorted(tenon.randperm(most, dtype=dtype).tolist()) == list(range(most))
    with pytest.raises(ValueError, match="randperm"):
        tenon.randperm(most + 1, dtype=dtype)


def test_randint_refuses_numbers_beyond_its_dtype():
    assert tenon.randint(-128, 128, (9,), dtype=tenon.int8).dtype is tenon.int8
    for low, high, dtype in [
        (-129, 0, tenon.int8),
        (0, 129, tenon.int8),
        (-1, 5, tenon.uint8),
        (0, 3, tenon.bool),
        (0, 70000, tenon.float16),
        (0, 2**40, tenon.int32),
    ]:
        with pytest.raises(ValueError, match="randint"):
            tenon.randint(low, high, (0,), dtype=dtype)


@pytest.mark.parametrize("p", [1.5, -0.1, float("nan")])
def test_bernoulli_takes_probabilities_only(p):
    tenon.manual_seed(3)
    state = tenon.get_rng_state()
    with pytest.raises(ValueError, match="bernoulli"):
        tenon.bernoulli(tenon.tensor([0.5, p]))
    assert tenon.get_rng_state().equal(state)


def test_array_keeps_to_numpys_copy():
    t = tenon.arange(3.0)
    assert np.shares_memory(t.__array__(copy=False), t.numpy())
    assert not np.shares_memory(t.__array__(copy=True), t.numpy())
    assert np.shares_memory(t.__array__(np.float32), t.numpy())
    assert t.__array__(np.int64).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="copy=False"):
        t.__array__(np.int64, copy=False)


def test_meta_tensors_are_no_data():
    x = tenon.ones((), device="meta")
    with pytest.raises(NotImplementedError, match="meta"):
        tenon.tensor([x, 1.0])
    with pytest.raises(NotImplementedError, match="meta"):
        tenon.zeros(2)[0] = [x]


def test_arrays_and_tensors_within_sequences():
    assert tenon.tensor([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert tenon.tensor([tenon.ones(2), [1, 2]]).tolist() == [[1, 1], [1, 2]]
    assert tenon.tensor([[1, 2], np.array([3.5, 4])]).dtype == tenon.float64
    assert tenon.tensor([np.float32(2), np.array(3)]).tolist() == [2, 3]
    for ragged in ([np.ones(2), np.ones(3)], [np.ones(2), 1], [[1, 2], np.ones(3)], [[1, 2], np.ones((1, 2))]):
        with pytest.raises(ValueError):
            tenon.tensor(ragged)


def test_complex_numbers_do_not_become_real():
    for data, dtype in (1j, tenon.float32), ([1j, 2], tenon.int64), (1 + 0j, tenon.bool), ([2, 1j], tenon.float16), ([tenon.tensor(1j)], tenon.float32):
        with pytest.raises(TypeError, match="complex"):
            tenon.tensor(data, dtype=dtype)


def test_arrays_of_other_kinds(tmp_path):
    mapped = np.memmap(tmp_path / "x", dtype=np.float32, mode="w+", shape=(3,))
    t = tenon.from_numpy(mapped)
    t.fill_(2)
    assert mapped.tolist() == [2, 2, 2] and (np.ones(3, np.float32) / t).tolist() == [0.5] * 3
    with pytest.raises(TypeError, match="^from_numpy: .*big-endian.*newbyteorder"):
        tenon.from_numpy(np.array([1, 2], dtype=">f4"))
    for function in tenon.tensor, tenon.as_tensor, tenon.from_numpy:
        with pytest.raises(TypeError, match=f"^{function.__name__}: .*datetime64"):
            function(np.array(["2020-01-01"], dtype="datetime64[D]"))


@pytest.mark.parametrize("dtype", [tenon.float8_e5m2, tenon.float8_e4m3fn, tenon.qint8, tenon.quint8])
def test_dtypes_without_arithmetic(dtype):
    """They are stored, moved and shown; all else says so."""
    x = tenon.empty(2, 3, dtype=dtype)
    assert x.flip(0).clone().t().dtype == dtype
    refused = [
        lambda: tenon.ones(3).sum(dtype=dtype), lambda: tenon.ones(3).sum(0, dtype=dtype), lambda: x.sum(),
        lambda: tenon.ones(3).prod(dtype=dtype), lambda: tenon.ones(3).mean(dtype=dtype), lambda: x.amax(),
        lambda: tenon.ones(3).cumsum(0, dtype=dtype), lambda: tenon.randn(3, dtype=dtype), lambda: x.normal_(),
        lambda: tenon.randperm(5, dtype=dtype), lambda: tenon.randint(3, (2,), dtype=dtype), lambda: x + 1,
        lambda: tenon.nn.functional.nll_loss(x, tenon.tensor([0, 0])), lambda: x.any(), lambda: x.argmax(), lambda: x @ x.t(), lambda: x.to(tenon.float32), lambda: x == x,
    ]  # fmt: skip
    for f in refused:
        with pytest.raises((NotImplementedError, TypeError)):
            f()


def test_numpys_numbers_in_a_list_keep_their_dtypes():
    """As in PyTorch: they promote with each other, and with Python's numbers."""
    for numbers, want in [
        ([np.int32(1)], tenon.int32), ([np.int32(1), np.int16(2)], tenon.int32), ([np.float64(1)], tenon.float64), ([np.float64(1), 1.0], tenon.float64),
        ([np.float32(1), 2], tenon.float32), ([np.bool_(True)], tenon.bool), ([[np.int8(1)], [np.int8(2)]], tenon.int8), ([1, np.int8(2)], tenon.int64),
        ([np.int8(2), 1.5], tenon.float32), ([np.float16(1)], tenon.float16), ([np.complex128(1)], tenon.complex128), ((np.uint8(1), True), tenon.uint8),
        ([np.uint16(1)], tenon.uint16), ([np.uint16(1), np.int8(2)], tenon.int32), ([np.uint64(2**64 - 1)], tenon.uint64), ([np.longdouble(1)], tenon.float32),
    ]:  # fmt: skip
        for make in (tenon.tensor, tenon.as_tensor, tenon.asarray):
            assert make(numbers).dtype is want, numbers
        assert np.array_equal(tenon.tensor(numbers).numpy(), np.array(numbers))
    assert tenon.tensor([np.float64(0.1)]).item() == 0.1 and tenon.tensor([np.float64(0.1)], dtype=tenon.float32).dtype is tenon.float32
