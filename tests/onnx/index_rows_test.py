"""Reading and writing by index, against NumPy."""

import numpy as np
import pytest

import tenon

from onnx_networks import load, node, run, tensor

rng = np.random.default_rng(0)
x = rng.standard_normal((3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_indices_count_from_the_back_too(axis, dtype):
    index = np.array([[-1, 0], [1, -3]], dtype)
    np.testing.assert_array_equal(run("Gather", x, index, axis=axis), np.take(x, index, axis))
    each = rng.integers(-3, 3, x.shape).astype(dtype)
    np.testing.assert_array_equal(run("GatherElements", x, each, axis=axis), np.take_along_axis(x, each, axis))
    written = x.copy()
    flat = np.broadcast_to(np.array([0, -1, 1], dtype)[:, None, None], (3, 4, 5)) if axis == 0 else None
    if flat is not None:
        np.put_along_axis(written, flat, -x, 0)
        np.testing.assert_array_equal(run("ScatterElements", x, flat, -x, axis=0), written)
        np.testing.assert_array_equal(run("Scatter", x, flat, -x, axis=0, opset=9), written)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_one_place_that_the_file_names(axis):
    for place in (0, 2, -1, -3):
        model = load([node("Gather", "x i", "y", axis=axis)], "x", "y", i=np.array(place))
        for run_model in (model, tenon.inference(model, tensor(x))):
            np.testing.assert_array_equal(run_model(tensor(x)).numpy(), np.take(x, place, axis))
    model = load([node("Gather", "x i", "y", axis=axis)], "x", "y", i=np.array(-6))
    for call in (model, lambda t: tenon.inference(model, t)):
        with pytest.raises(IndexError, match=r"index -6 is out of range for a dimension of [345].*Gather"):
            call(tensor(x))


@pytest.mark.parametrize("reduction, how", [("add", np.add), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum)])
def test_places_that_are_written_twice_are_reduced(reduction, how):
    index = np.array([[1, -1], [0, 2], [1, 4], [-2, -2]])
    updates = rng.standard_normal((4, 5)).astype(np.float32)
    y = rng.standard_normal((3, 5, 5)).astype(np.float32)
    expected = y.copy()
    for place, update in zip(index, updates):
        expected[tuple(place)] = how(expected[tuple(place)], update)
    np.testing.assert_allclose(run("ScatterND", y, index, updates, reduction=reduction), expected, rtol=1e-6)
    elements = np.array([[0, 0, -1, 1, 0]])
    expected = y[0].copy()
    for column, row in enumerate(elements[0]):
        expected[row, column] = how(expected[row, column], updates[0, column])
    np.testing.assert_allclose(run("ScatterElements", y[0], elements, updates[:1], reduction=reduction, opset=18), expected, rtol=1e-6)


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_gather_nd_pairs_the_dimensions_of_a_batch(batch):
    index = rng.integers(-3, 3, (3, 4, 2, 1)) if batch else rng.integers(-3, 3, (2, 6, 2))
    if batch == 0:
        expected = x[index[..., 0], index[..., 1]]
    elif batch == 1:
        expected = np.stack([x[i][index[i, ..., 0]] for i in range(3)])
    else:
        expected = np.stack([[x[i, j][index[i, j, ..., 0]] for j in range(4)] for i in range(3)])
    np.testing.assert_array_equal(run("GatherND", x, index, batch_dims=batch), expected)


def test_strides_of_any_kind_are_read():
    turned = np.ascontiguousarray(x.transpose(2, 0, 1))
    model = load([node("Transpose", "x", "t", perm=[1, 2, 0]), node("Gather", "t i", "y", axis=1)], "x i", "y")
    np.testing.assert_array_equal(model(tensor(turned), tensor(np.array([3, -1]))).numpy(), x[:, [3, -1]])


def test_empty_tensors_have_empty_results():
    none = np.zeros((0, 4), np.float32)
    assert run("Gather", none, np.zeros((0, 2), np.int64), axis=1).shape == (0, 0, 2)
    assert run("NonZero", none).shape == (2, 0)
    assert run("Compress", none, np.zeros(0, np.bool_), axis=0).shape == (0, 4)
    assert [part.shape for part in run("Unique", none[:, 0], outputs=4)] == [(0,)] * 4
    assert run("OneHot", np.zeros((2, 0), np.int64), np.int64(3), np.array([0.0, 1])).shape == (2, 0, 3)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique_values_come_in_order_or_as_they_are_first(axis):
    y = rng.integers(0, 2, (6, 2)).astype(np.float32)
    attributes = {} if axis is None else {"axis": axis}
    values, first, place, count = run("Unique", y, outputs=4, **attributes)
    np.testing.assert_array_equal(values, (expected := np.unique(y, True, True, True, axis=axis))[0])
    for ours, theirs in zip((first, place, count), expected[1:]):
        np.testing.assert_array_equal(ours, theirs.reshape(-1))
    values, first, place, count = run("Unique", y, outputs=4, sorted=0, **attributes)
    np.testing.assert_array_equal(first, np.sort(expected[1]))
    np.testing.assert_array_equal(np.take(values, place, axis or 0), y.reshape(-1) if axis is None else y)
    assert count.sum() == place.size


def test_unique_values_are_ordered_as_numbers():
    y = np.array([-0.0, np.nan, 2, -np.inf, 0, np.inf, np.nan, -1e-300, -2])
    values, first, place, count = run("Unique", y, outputs=4)
    for ours, theirs in zip((values, first, place, count), np.unique(y, True, True, True)):
        np.testing.assert_array_equal(ours, theirs)


def test_unique_values_are_differentiable():
    model = load([node("Unique", "x", "y", sorted=0)], "x", "y")
    z = tenon.tensor([2.0, 1.0, 2.0], requires_grad=True)
    (model(z) * tenon.tensor([3.0, 4.0])).sum().backward()
    assert z.grad.tolist() == [3, 4, 0]


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_is_written_from_places_on(mode):
    past, update = np.zeros((2, 3, 6, 2), np.float32), rng.standard_normal((2, 3, 2, 2)).astype(np.float32)
    first = np.array([1, 5 if mode == "circular" else 4])
    expected = past.copy()
    for b in range(2):
        for k in range(2):
            expected[b, :, (first[b] + k) % 6] = update[b, :, k]
    np.testing.assert_array_equal(run("TensorScatter", past, update, first, mode=mode, opset=24), expected)


def test_messages_name_what_is_out_of_range_or_does_not_fit():
    def text(op, *inputs, **attributes):
        with pytest.raises((IndexError, ValueError, RuntimeError, NotImplementedError, TypeError)) as error:
            run(op, *inputs, **attributes)
        return str(error.value)

    far = np.array([[-4, 0]])
    assert "index -4 is out of bounds for dimension 0 with size 3 (onnx: a node (Gather))" in text("Gather", x, far)
    assert "is out of bounds for dimension 0 with size 3 (onnx: a node (GatherElements))" in text("GatherElements", x[:, :, 0], far)
    assert "is out of bounds for dimension 0 with size 3 (onnx: a node (ScatterElements))" in text("ScatterElements", x[:, :, 0], far, far.astype(np.float32))
    for reduction in ("none", "mul"):
        assert "is out of bounds for dimension 0 with size 3" in text("ScatterND", x, far, x[:1, 0], reduction=reduction)
        assert "index 4 is out of bounds for dimension" in text("ScatterND", x, np.array([[0, 4]]), x[:1, 0], reduction=reduction)
    assert "is out of bounds for dimension 0 with size 3" in text("GatherND", x, far)
    for op in ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"):
        assert f"{op}: `indices` are of bool, expected int32 or int64" in text(op, x, far > 0, x)
    assert "axis 3 of a tensor with 3 dimensions" in text("Gather", x, far, axis=3)
    assert "GatherND: `indices` of 2 dimensions, and 2 of a batch" in text("GatherND", x, far, batch_dims=2)
    assert "GatherND: indices of 4 dimensions, for 3" in text("GatherND", x, np.zeros((2, 4), np.int64))
    assert "GatherND: a batch of 3, and one of 2" in text("GatherND", x, np.zeros((2, 1), np.int64), batch_dims=1)
    assert "ScatterElements: attribute `reduction` is mean" in text("ScatterElements", x, far, far, reduction="mean")
    assert "TensorScatter: its axis is that of the batch" in text("TensorScatter", x, x, axis=0, opset=24)
    assert "OneHot: `values` are not two" in text("OneHot", far, np.int64(3), np.array([0.0]))
    assert "OneHot: `depth` is -3" in text("OneHot", far, np.int64(-3), np.array([0.0, 1]))
    assert "OneHot: `depth` is nan" in text("OneHot", far, np.float32("nan"), np.array([0.0, 1]))
    assert "Compress: `condition` has not one dimension" in text("Compress", x, np.ones((1, 1), np.bool_))
    assert "ArrayFeatureExtractor: its input has no dimensions" in text("ArrayFeatureExtractor", np.float32(1), far, domain="ai.onnx.ml")
    assert "BitCast: from float32 to int64, whose elements have another size" in text("BitCast", x, to=7, opset=26)


def test_n_grams_of_attributes_that_do_not_fit_are_refused():
    given = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "mode": "TFIDF", "pool_int64s": [2, 3, 5, 6], "ngram_counts": [0, 2],
             "ngram_indexes": [0, 1, 2], "weights": [2.0, 3.0, 4.0]}  # fmt: skip
    words = np.array([[2, 5, 3, 6, 2]])
    assert run("TfIdfVectorizer", words, **given).tolist() == [[4, 3, 4]]

    def text(**changed):
        with pytest.raises((ValueError, NotImplementedError, TypeError)) as error:
            run("TfIdfVectorizer", words, **{**given, **changed})
        return str(error.value)

    for changed in ({"ngram_indexes": [0, 1]}, {"ngram_indexes": [0, 1, 9]}, {"ngram_indexes": [0, 1, -1]}, {"ngram_counts": [2, 0]},
                    {"ngram_counts": [0, 9]}, {"min_gram_length": 0}, {"max_gram_length": 3}, {"max_skip_count": -1}):  # fmt: skip
        assert "TfIdfVectorizer: its attributes do not fit each other" in text(**changed)
    assert "its weights do not fit its n-grams" in text(weights=[1.0])
    assert "attribute `pool_strings` is given" in text(pool_strings=["a"])
    with pytest.raises(TypeError, match="its input is no matrix of integers"):
        run("TfIdfVectorizer", x, **given)


@pytest.mark.parametrize("size, start, end, step, places", [
    (3, -10, -100, -1, [0]), (1, -2, -100, -1, [0]), (4, -5, -100, -2, [0]), (4, 10, -10, -1, [3, 2, 1, 0]), (4, 2, -100, -2, [2, 0]),
    (4, -10, 1, 1, [0]), (0, -1, -100, -1, []),
])  # fmt: skip
def test_a_slice_backward_begins_at_an_element(size, start, end, step, places):
    """As the standard clamps it: a start before the first element is that element."""
    x = np.arange(size, dtype=np.float32)
    result = run("Slice", x, np.array([start]), np.array([end]), np.array([0]), np.array([step]))
    assert result.tolist() == places
