"""self[...] and self[...] = value, against NumPy."""

import array
import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.python.support import arrays, assert_same, view_of

import tenon


@st.composite
def keys(draw, shape):
    """Subscripts of ints, slices of any step, None and Ellipsis that fit a shape."""
    items = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if size and draw(st.booleans()):
            items.append(draw(st.integers(-size, size - 1)))
        else:
            bound = st.none() | st.integers(-size - 2, size + 2)
            step = st.none() | st.integers(-3, 3).filter(bool)
            items.append(slice(draw(bound), draw(bound), draw(step)))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items.append(Ellipsis)
    return tuple(items)


@given(st.data(), arrays())
def test_views_are_numpys(data, array):
    key = data.draw(keys(array.shape))
    t = view_of(array)
    assert_same(t[key], np.asarray(array[key]))
    assert t[key].untyped_storage() == t.untyped_storage()


@given(st.data(), arrays(dtypes=(np.float64,)))
def test_assignment_of_a_number_is_numpys(data, array):
    key = data.draw(keys(array.shape))
    array = array.copy("K")
    t = tenon.tensor(array)
    t[key] = 5
    array[key] = 5
    assert_same(t, array)


@given(st.data(), arrays(dtypes=(np.float64,)))
def test_assignment_of_values_broadcasts(data, array):
    key = data.draw(keys(array.shape))
    array = array.copy("K")
    t = tenon.tensor(array)
    shape = np.asarray(array[key]).shape
    values = np.arange(shape[-1] if shape else 1, dtype=np.float64).reshape(shape[-1:])
    t[key] = tenon.tensor(values)
    array[key] = values
    assert_same(t, array)


class Positions:
    """A sequence that is no list."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


@pytest.mark.parametrize(
    ("key", "as_list"),
    [
        (range(2), [0, 1]),
        (range(-1, -3, -1), [-1, -2]),
        (range(0), []),
        ((range(2), range(1, 3)), ([0, 1], [1, 2])),
        ((slice(None), range(2)), (slice(None), [0, 1])),
        (array.array("q", [2, 0]), [2, 0]),
        (array.array("i", [2, 0]), [2, 0]),
        (bytearray([1, 2]), [1, 2]),
        (memoryview(np.array([0, 2])), [0, 2]),
        (collections.deque([2, 1]), [2, 1]),
        (collections.UserList([2, 1]), [2, 1]),
        (Positions(0, 2), [0, 2]),
        (Positions(True, False, True), [True, False, True]),
    ],
)
def test_any_sequence_of_positions_is_an_index(key, as_list):
    x = np.arange(12.0).reshape(3, 4)
    t = tenon.tensor(x)
    assert_same(t[key], x[as_list])
    t[key] = 5
    x[as_list] = 5
    assert_same(t, x)


@pytest.mark.parametrize("key", ["ab", b"ab", 1.0, {0, 1}, {0: 1}, object(), (i for i in range(2)), np.float64(1)])
def test_what_is_no_sequence_of_positions_is_refused(key):
    expected = "index: expected an int, slice, None, Ellipsis, bool, sequence of ints or bools, or a tensor of them, got"
    for item in (key, (0, key)):
        with pytest.raises(IndexError, match=f"^{expected} {type(key).__module__ + '.' if 'numpy' in str(type(key)) else ''}{type(key).__name__}$"):
            tenon.ones(3, 4)[item]
        with pytest.raises(IndexError, match=f"^{expected}"):
            tenon.ones(3, 4)[item] = 1


a = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "key",
    [
        [0, 1],
        [[0, 1], [1, 0]],
        np.array([1, 0, 1]),
        (slice(None), [2, 0]),
        (slice(None), slice(None), [3, 3, 0]),
        ([0, 1], [2, 1]),
        ([0, 1], slice(None), [3, 0]),
        ([[0], [1]], [0, 2]),
        (0, [1, 2]),
        (None, [1]),
        (Ellipsis, [1, 2]),
        (slice(None, None, -1), [0, 2]),
        ([], ),
        np.zeros((2, 3), bool),
        np.array([[True, False, True], [False, True, False]]),
        (0, np.array([True, False, True])),
        (slice(None), np.array([True, False, True]), 1),
        a > 5,
        True,
        False,
        (True, 0),
        [-1, -2],
    ],
    ids=repr,
)
def test_index_tensors_are_numpys(key):
    t = tenon.tensor(a)
    assert_same(t[key], a[key])
    as_tensors = tuple(tenon.tensor(k) if isinstance(k, (list, np.ndarray)) and len(k) else k
                       for k in (key if isinstance(key, tuple) else (key,)))
    assert_same(t[as_tensors], a[key])
    want = a.copy()
    want[key] = -1
    t[key] = -1
    assert_same(t, want)


def test_assigning_values_through_index_tensors():
    t, want = tenon.zeros(3, 4), np.zeros((3, 4), np.float32)
    rows = np.array([2, 0])
    t[tenon.tensor(rows)] = tenon.tensor([[1.0], [2.0]])
    want[rows] = [[1], [2]]
    t[t > 1] = 9
    want[want > 1] = 9
    assert_same(t, want)


def test_uint8_is_a_mask():
    t, want = tenon.arange(5), np.arange(5)
    bits = np.array([1, 0, 2, 0, 1], np.uint8)
    assert_same(t[tenon.tensor(bits)], want[bits != 0])
    assert_same(t[bits], want[bits != 0])
    assert t[tenon.tensor(1, dtype=tenon.uint8)].shape == (1, 5)
    t[tenon.tensor(bits)] = 9
    want[bits != 0] = 9
    assert_same(t, want)


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (2, IndexError),
        (-3, IndexError),
        ((0, 0, 0, 0), IndexError),
        ((Ellipsis, Ellipsis), IndexError),
        ([5], IndexError),
        (np.zeros((3, 3), bool), IndexError),
        (slice(0, 2, 0), ValueError),
        (1.5, IndexError),
        ("a", IndexError),
        ([0.5], TypeError),
        (np.array([1, 0], np.int8), IndexError),
        (slice(0.5, None), TypeError),
    ],
    ids=repr,
)
def test_bad_indices(key, error):
    t = tenon.tensor(a)
    with pytest.raises(error):
        t[key]
    with pytest.raises(error):
        t[key] = 0
    assert_same(t, a)


def test_values_that_do_not_broadcast_leave_the_tensor():
    t = tenon.zeros(2, 3)
    with pytest.raises(ValueError):
        t[0] = tenon.ones(2)
    assert t.tolist() == [[0.0] * 3] * 2


def test_iteration_length_and_membership():
    t = tenon.tensor(a)
    assert len(t) == 2
    assert [row.tolist() for row in t] == a.tolist()
    assert 7 in t and 99 not in t
    with pytest.raises(TypeError):
        iter(tenon.tensor(1)).__next__()


def test_gradients_flow_through_indexing():
    x = tenon.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (x[::-2] * tenon.tensor([10.0, 1.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 10.0]
    x.grad = None
    x[[0, 0, 3]].sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0, 1.0]
