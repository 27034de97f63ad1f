"""Convolutions, pools, resizing and sampling: what onnx's node tests leave out, against NumPy."""

import itertools

import numpy as np
import pytest

import tenon

from onnx_networks import load, node, run, tensor


@pytest.fixture
def rng():
    return np.random.default_rng(0)


rows = lambda x, axis, places: np.take(x, places, axis)


def windows(x, kernel, strides, dilations, before, after, value):
    """[n, c, outputs.., kernel..] of [n, c, sizes..], padded with `value`."""
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after)], constant_values=value)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    found = np.lib.stride_tricks.sliding_window_view(x, extents, tuple(range(2, x.ndim)))
    by = [slice(None)] * 2 + [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
    return found[tuple(by)]


def convolved(x, w, groups, *geometry):
    """[n, maps, outputs..]."""
    found = windows(x, w.shape[2:], *geometry, 0)
    parts = []
    for one, weight in zip(np.split(found, groups, 1), np.split(w, groups, 0)):
        spatial = weight.ndim - 2
        parts.append(np.tensordot(one, weight, ([1, *range(2 + spatial, 2 + 2 * spatial)], [1, *range(2, 2 + spatial)])))
    return np.moveaxis(np.concatenate(parts, -1), -1, 1)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("attributes", [
    dict(pads=((0, 1, 2), (2, 0, 1))), dict(pads=((1, 1, 1), (1, 1, 1)), strides=2, dilations=2, group=2),
    dict(auto_pad="SAME_UPPER", strides=2), dict(auto_pad="SAME_LOWER", strides=2, group=4), dict(auto_pad="VALID", dilations=2)])  # fmt: skip
def test_a_convolution_has_any_pads(rng, rank, attributes):
    x, groups = rng.standard_normal((2, 4, *(7, 6, 5)[:rank])), attributes.get("group", 1)
    w = rng.standard_normal((8, 4 // groups, *(3, 2, 2)[:rank]))
    strides, dilations = [attributes.get("strides", 1)] * rank, [attributes.get("dilations", 1)] * rank
    given = dict(strides=strides, dilations=dilations, group=groups)
    before = after = [0] * rank
    if "pads" in attributes:
        before, after = (list(side[:rank]) for side in attributes["pads"])
        given["pads"] = before + after
    else:
        given["auto_pad"] = attributes["auto_pad"]
        if attributes["auto_pad"] != "VALID":
            need = [max((-(-n // 2) - 1) * 2 + k - n, 0) for n, k in zip(x.shape[2:], w.shape[2:])]
            more = [n - n // 2 for n in need]
            before, after = [n // 2 for n in need], more
            if attributes["auto_pad"] == "SAME_LOWER":
                before, after = after, before
    np.testing.assert_allclose(run("Conv", x, w, **given), convolved(x, w, groups, strides, dilations, before, after), rtol=1e-12, atol=1e-12)


def test_gradients_of_uneven_pads(rng):
    x, w = (tenon.from_numpy(rng.standard_normal(shape)).requires_grad_() for shape in ((1, 2, 5, 4), (3, 2, 3, 2)))
    conv = load([node("Conv", "x w", "y", pads=[0, 1, 2, 0])], "x w", "y")
    pool = load([node("MaxPool", "x", "y", kernel_shape=[3, 2], pads=[0, 1, 2, 0])], "x", "y")
    mean = load([node("AveragePool", "x", "y", kernel_shape=[3, 2], dilations=[2, 1], pads=[0, 1, 1, 0])], "x", "y")
    up = load([node("ConvTranspose", "x w", "y", pads=[0, 1, 1, 0], strides=[2, 2])], "x w", "y")
    cubic = lambda x: load([onnx_resize()], "x s", "y")(x, tenon.tensor([1.0, 1.0, 1.5, 2.0]))
    w2 = w.detach().transpose(0, 1).contiguous().requires_grad_()
    for f in (conv, lambda x, w: pool(x), lambda x, w: mean(x), lambda x, w: up(x, w2), lambda x, w: cubic(x)):
        assert tenon.autograd.gradcheck(f, (x, w))


def onnx_resize():
    from onnx import helper

    return helper.make_node("Resize", ["x", "", "s"], ["y"], mode="cubic", exclude_outside=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8])
@pytest.mark.parametrize("by_column", [False, True])
def test_places_of_maxima_are_in_the_whole_input(rng, dtype, by_column):
    x = rng.permutation(120).reshape(2, 3, 5, 4).astype(dtype) - np.array(60 if dtype != np.uint8 else 0, dtype)
    y, places = run("MaxPool", x, kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 2], storage_order=int(by_column), outputs=2)
    low = np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -np.inf
    np.testing.assert_array_equal(y, windows(x, (2, 3), (2, 1), (1, 1), (1, 0), (0, 2), low).max((-2, -1)))
    flat = (x.transpose(0, 1, 3, 2) if by_column else x).ravel()
    np.testing.assert_array_equal(flat[places], y)
    even, places = run("MaxPool", x, kernel_shape=[2, 2], pads=[1, 1, 1, 1], storage_order=int(by_column), outputs=2)
    np.testing.assert_array_equal(flat[places], even)


@pytest.mark.parametrize("with_pads", [0, 1])
@pytest.mark.parametrize("ceil", [0, 1])
def test_means_count_what_their_windows_have(rng, with_pads, ceil):
    x = rng.standard_normal((2, 3, 7, 7))
    got = run("AveragePool", x, kernel_shape=[3, 2], strides=[2, 3], dilations=[1, 2], pads=[2, 0, 0, 1], ceil_mode=ceil, count_include_pad=with_pads)
    sums = windows(x, (3, 2), (2, 3), (1, 2), (2, 0), (0, 1 + 2 * ceil), 0).sum((-2, -1))
    counted = np.pad(np.ones_like(x), [(0, 0), (0, 0), (2, 0), (0, 1)], constant_values=with_pads)
    counts = windows(counted, (3, 2), (2, 3), (1, 2), (0, 0), (0, 2 * ceil), 0).sum((-2, -1))
    np.testing.assert_allclose(got, sums / counts, rtol=1e-12)


@pytest.mark.parametrize("p", [1, 3])
def test_norms_of_windows(rng, p):
    x = rng.standard_normal((2, 3, 7))
    want = (np.abs(windows(x, (3,), (2,), (1,), (1,), (1,), 0)) ** p).sum(-1) ** (1 / p)
    np.testing.assert_allclose(run("LpPool", x, kernel_shape=[3], strides=[2], pads=[1, 1], p=p), want, rtol=1e-12)


def test_a_transposed_convolution_may_be_larger_than_its_windows_reach(rng):
    x, w, b = rng.standard_normal((1, 2, 3)), rng.standard_normal((2, 1, 2)), rng.standard_normal(1)
    whole = np.zeros(3 * 3)
    for i, k in itertools.product(range(3), range(2)):
        whole[3 * i + k] += x[0, :, i] @ w[:, 0, k]
    got = run("ConvTranspose", x, w, b, strides=[3], output_shape=[11])
    np.testing.assert_allclose(got[0, 0], np.pad(whole, (0, 2)) + b, rtol=1e-12)
    cut = run("ConvTranspose", x, w, b, strides=[3], pads=[2, 1])
    np.testing.assert_allclose(cut[0, 0], whole[2:7] + b, rtol=1e-12)
    older = run("ConvTranspose", x, w, b, strides=[3], output_shape=[1, 1, 8], opset=1 + 9)
    np.testing.assert_allclose(older[0, 0], whole[:8] + b, rtol=1e-12)


@pytest.mark.parametrize("kernel", [(2,), (2, 2), (3, 1), (2, 3, 2)])
def test_a_transposed_convolution_of_windows_side_by_side(rng, kernel):
    size = (3, 4, 2)[: len(kernel)]
    x, w, b = rng.standard_normal((2, 3, *size)), rng.standard_normal((3, 2, *kernel)), rng.standard_normal(2)
    want = np.zeros((2, 2, *(n * k for n, k in zip(size, kernel))))
    for at in np.ndindex(*size):
        place = (slice(None), slice(None), *(slice(i * k, i * k + k) for i, k in zip(at, kernel)))
        want[place] = np.tensordot(x[(slice(None), slice(None), *at)], w, 1)
    want += b.reshape(-1, *[1] * len(kernel))
    np.testing.assert_allclose(run("ConvTranspose", x, w, b, strides=kernel), want, rtol=1e-12, atol=1e-12)
    model = load([node("ConvTranspose", "x w b", "y", strides=kernel)], "x w b", "y")
    assert tenon.autograd.gradcheck(model, [tenon.from_numpy(t[:1, :1] if t is x else t[:1] if t is w else t).requires_grad_() for t in (x, w, b)])


def test_old_forms_of_resizing(rng):
    x = rng.standard_normal((1, 2, 3, 4)).astype(np.float32)
    larger = rows(rows(x, 2, np.arange(6) // 2), 3, np.arange(10) * 2 // 5)
    scales = np.array([1, 1, 2, 2.5], np.float32)
    np.testing.assert_array_equal(run("Upsample", x, opset=7, scales=scales.tolist()), larger)
    np.testing.assert_array_equal(run("Upsample", x, scales, opset=9), larger)
    np.testing.assert_array_equal(run("Resize", x, scales, opset=10), larger)
    none = np.zeros(0, np.float32)
    np.testing.assert_array_equal(run("Resize", x, none, scales, opset=11, coordinate_transformation_mode="asymmetric", nearest_mode="floor"), larger)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric"])
def test_every_path_of_resizing_computes_the_same_weights(rng, mode, coordinates):
    """The operator for images, and the general one, which four dimensions of more than two sizes take."""
    x = rng.standard_normal((2, 3, 4, 5))
    attributes = dict(mode=mode, coordinate_transformation_mode=coordinates)
    sizes = lambda *s: np.array(s, np.int64)
    image = run("Resize", x, None, None, sizes(2, 3, 7, 3), **attributes)
    turned = run("Resize", x.transpose(2, 3, 0, 1), None, None, sizes(7, 3, 2, 3), **attributes)
    np.testing.assert_allclose(image, turned.transpose(2, 3, 0, 1), rtol=1e-6, atol=1e-12)


def test_images_of_integers_are_resized_by_weights():
    x = np.array([[[[0, 200], [100, 250]]]], np.uint8)
    got = run("Resize", x, None, np.array([1, 1, 1, 2], np.float32), mode="linear", coordinate_transformation_mode="half_pixel")
    np.testing.assert_array_equal(got[0, 0], [[0, 50, 150, 200], [100, 137, 212, 250]])


def test_gradients_of_samples_by_image_and_grid(rng):
    x = tenon.from_numpy(rng.standard_normal((1, 2, 4, 3))).requires_grad_()
    grid = tenon.from_numpy(rng.uniform(-1.3, 1.3, (1, 2, 3, 2))).requires_grad_()
    for mode, outside in itertools.product(("linear", "cubic"), ("zeros", "border", "reflection")):
        f = load([node("GridSample", "x g", "y", mode=mode, padding_mode=outside)], "x g", "y")
        assert tenon.autograd.gradcheck(f, (x, grid)), (mode, outside)


def test_a_deformed_convolution_without_offsets_is_a_convolution(rng):
    for rank, attributes in ((1, dict(pads=[1, 2])), (2, dict(pads=[1, 0, 0, 1], strides=[2, 1], group=2, offset_group=2)), (3, dict(dilations=[2, 1, 1]))):
        x, groups = rng.standard_normal((2, 4, *(7, 5, 4)[:rank])), attributes.get("group", 1)
        w, b = rng.standard_normal((6, 4 // groups, *(3, 2, 2)[:rank])), rng.standard_normal(6)
        want = run("Conv", x, w, b, **{k: v for k, v in attributes.items() if k != "offset_group"})
        taps = attributes.get("offset_group", 1) * int(np.prod(w.shape[2:]))
        offset, mask = np.zeros((2, taps * rank, *want.shape[2:])), np.full((2, taps, *want.shape[2:]), 2.0)
        np.testing.assert_allclose(run("DeformConv", x, w, offset, b, **attributes), want, rtol=1e-10, atol=1e-12)
        masked = run("DeformConv", x, w, offset, b, mask, **attributes) - b.reshape(-1, *[1] * rank)
        np.testing.assert_allclose(masked, 2 * (want - b.reshape(-1, *[1] * rank)), rtol=1e-10, atol=1e-12)


def test_maxima_of_regions():
    x = np.arange(2 * 36, dtype=np.float32).reshape(1, 2, 6, 6)
    rois = np.array([[0, 0, 0, 5, 5], [0, 2, 4, 8, 4]], np.float32)
    got = run("MaxRoiPool", x, rois, pooled_shape=[2, 2])
    np.testing.assert_array_equal(got[0, 0], [[14, 17], [32, 35]])
    np.testing.assert_array_equal(got[1, 0], [[29, 29], [29, 29]])
    assert run("MaxRoiPool", x, rois[:0], pooled_shape=[2, 2]).shape == (0, 2, 2, 2)
    assert run("RoiAlign", x, rois[:0, 1:], np.zeros(0, np.int64)).shape == (0, 2, 1, 1)


def test_corners_are_aligned_by_the_sizes_that_a_scale_gives():
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 5)
    scales = np.array([1, 1, 1.5], np.float32)
    got = run("Resize", x, None, scales, mode="linear", coordinate_transformation_mode="align_corners")
    np.testing.assert_allclose(got[0, 0], np.linspace(0, 4, 7), rtol=1e-6)


def test_a_cropped_part_is_resized_and_outside_of_the_input_is_a_value():
    x = np.arange(20, dtype=np.float32).reshape(1, 1, 5, 4)
    part = np.array([0, 0, 0.25, 0, 1, 1, 0.75, 1.5], np.float32)
    got = run("Resize", x, part, None, np.array([1, 1, 3, 4]), mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-1.0)
    np.testing.assert_allclose(got[0, 0], [[4, 5.5, 7, -1], [8, 9.5, 11, -1], [12, 13.5, 15, -1]], rtol=1e-6)
    assert run("Resize", x, part, np.array([1, 1, 2, 0.2], np.float32), coordinate_transformation_mode="tf_crop_and_resize").shape == (1, 1, 10, 0)


def test_cubic_samples_near_a_border_read_its_elements():
    x = np.arange(4, dtype=np.float64).reshape(1, 1, 1, 4)
    at = np.array([-1.0, -1.5]).reshape(1, 1, 2, 1)
    grid = np.concatenate([at, np.zeros_like(at)], -1)
    left = run("GridSample", x, grid, mode="cubic", padding_mode="border", align_corners=1)
    t, a = 0.25, -0.75  # of the second place, -0.75: elements 0, 0, 0, 1 with Keys' weights
    last = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a
    np.testing.assert_allclose(left[0, 0, 0], [0, last], atol=1e-12)


def test_no_images_give_no_results():
    none = np.zeros((0, 2, 5, 5), np.float32)
    weight = np.ones((4, 2, 2, 2), np.float32)
    assert run("Conv", none, weight).shape == (0, 4, 4, 4)
    assert run("ConvTranspose", none, weight.transpose(1, 0, 2, 3).copy(), strides=[2, 2]).shape == (0, 4, 10, 10)
    assert [r.shape for r in run("MaxPool", none, kernel_shape=[2, 2], outputs=2)] == [(0, 2, 4, 4)] * 2
    assert run("Resize", none, None, np.array([1, 1, 2, 2], np.float32)).shape == (0, 2, 10, 10)
    tiny = np.array([1, 1, 1e-30, 1], np.float32)
    assert run("Resize", none[:, :, :3], None, tiny, mode="linear", antialias=1).shape == (0, 2, 0, 5)
    assert run("GridSample", none, np.zeros((0, 3, 2, 2), np.float32)).shape == (0, 2, 3, 2)
    assert run("DeformConv", none, weight, np.zeros((0, 8, 4, 4), np.float32)).shape == (0, 4, 4, 4)
    assert run("NonMaxSuppression", np.zeros((0, 1, 4), np.float32), np.zeros((0, 2, 1), np.float32), np.array(3)).shape == (0, 3)


X = np.ones((1, 2, 4, 4), np.float32)


@pytest.mark.parametrize("call, error, words", [
    (lambda: run("Conv", X, X, auto_pad="SAME"), ValueError, "Conv: attribute `auto_pad` is 'SAME'"),
    (lambda: run("Conv", X, X, strides=[1]), ValueError, "Conv: attribute `strides` has 1 numbers, expected 2"),
    (lambda: run("Conv", X[0], X), ValueError, "Conv: windows along 2 dimensions of an input of shape"),
    (lambda: run("MaxPool", X, kernel_shape=[0, 1]), ValueError, "MaxPool: kernels, strides and dilations must be positive, got 0, 1 and 1"),
    (lambda: run("MaxPool", X), ValueError, "MaxPool: attribute `kernel_shape` is missing"),
    (lambda: run("LpPool", X, kernel_shape=[5, 1]), ValueError, "LpPool: a window of 5 does not fit into dimension 2 of"),
    (lambda: run("ConvTranspose", X, X[0]), ValueError, "ConvTranspose: input .* and weights"),
    (lambda: run("ConvTranspose", X, X, output_shape=[1]), ValueError, "ConvTranspose: attribute `output_shape` has 1 numbers"),
    (lambda: run("MaxUnpool", X, X.astype(np.int64), kernel_shape=[2]), ValueError, "MaxUnpool: attribute `kernel_shape` does not fit"),
    (lambda: run("Col2Im", X[0], np.array([4, 4]), np.array([3, 1])), ValueError, "Col2Im: an input of shape .* in blocks of 3"),
    (lambda: run("Resize", X, None, np.ones(4, np.float32), mode="area"), NotImplementedError, "Resize: attribute `mode` is 'area'"),
    (lambda: run("Resize", X, None, np.ones(4, np.float32), nearest_mode="up"), NotImplementedError, "Resize: attribute `nearest_mode` is 'up'"),
    (lambda: run("Resize", X, None, np.ones(4, np.float32), coordinate_transformation_mode="q"), NotImplementedError, "Resize: attribute `coord"),
    (lambda: run("Resize", X, None, np.ones(3, np.float32)), ValueError, "Resize: input `scales` has 3 elements, expected 4"),
    (lambda: run("Resize", X, None, -np.ones(4, np.float32)), ValueError, "Resize: a scale of -1"),
    (lambda: run("Resize", X, None, None, -np.ones(4, np.int64)), ValueError, "Resize: a size of -1"),
    (lambda: run("Resize", X[:0], None, None, np.ones(4, np.int64)), ValueError, "Resize: an empty input of shape"),
    (lambda: run("Upsample", X, np.ones(3, np.float32), opset=9), ValueError, "Upsample: 3 scales of 4 dimensions"),
    (lambda: run("GridSample", X, X), ValueError, "GridSample: input .* and grid"),
    (lambda: run("GridSample", X, X[..., :2], mode="area"), ValueError, "GridSample: attribute `mode` is 'area'"),
    (lambda: run("GridSample", X, X[..., :2], padding_mode="q"), ValueError, "GridSample: attribute `padding_mode` is 'q'"),
    (lambda: run("DeformConv", X, X, X), ValueError, "DeformConv: input .* and offsets .* in 1 groups and 1 groups of offsets"),
    (lambda: run("NonMaxSuppression", X[0], X[0, :, :, :3]), ValueError, "NonMaxSuppression: boxes .* and scores"),
    (lambda: run("RoiAlign", X, X[0, 0, :, :3], np.zeros(4, np.int64)), ValueError, "RoiAlign: input .* and regions"),
    (lambda: run("RoiAlign", X, X[0, 0], np.full(4, 7)), IndexError, "RoiAlign: a region of image 7 of 1"),
    (lambda: run("RoiAlign", X, X[0, 0], np.zeros(4, np.int64), mode="sum"), ValueError, "RoiAlign: attribute `mode` is 'sum'"),
    (lambda: run("MaxRoiPool", X, np.ones((1, 5), np.float32)), ValueError, "MaxRoiPool: attribute `pooled_shape` has not two numbers"),
    (lambda: run("AffineGrid", X, np.ones(4, np.int64)), ValueError, "AffineGrid: maps .* and a size of 4 numbers"),
    (lambda: run("CausalConvWithState", X[0], np.ones((4, 1, 2), np.float32), activation="gelu", opset=27), NotImplementedError, "`activation` is 'gelu'"),
])  # fmt: skip
def test_what_is_refused_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
