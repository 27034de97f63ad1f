"""Quantized operators: exact sums, rounding half to even, saturation. The references compute in int64 or float64."""

import numpy as np
import pytest

import tenon

from onnx_networks import load, node, run, tensor

rng = np.random.default_rng(0)


def saturated(values, dtype):
    bounds = np.iinfo(dtype)
    return np.clip(np.rint(values), bounds.min, bounds.max).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32])
def test_values_are_rounded_half_to_even_and_saturated(dtype):
    x = np.array([-1e12, -300, -2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 300, 40000, 1e12], np.float32)
    zero = np.array(3, dtype)
    np.testing.assert_array_equal(run("QuantizeLinear", x, np.float32(1), zero), saturated(np.rint(x.astype(np.float64)) + 3, dtype))
    np.testing.assert_array_equal(run("DequantizeLinear", np.arange(-2, 5).astype(dtype), np.float32(0.5), zero)[2:], (np.arange(5) - 3) * 0.5)


def test_int32_keeps_all_its_bits_until_it_is_scaled():
    x, zero = np.array([2**24 + 1, -(2**31)], np.int32), np.int32(2**24)
    with np.errstate(over="ignore"):
        assert run("DequantizeLinear", x[:1], np.float32(3), zero).tolist() == [3]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_of_an_axis_and_of_blocks(axis):
    x = rng.standard_normal((4, 6)).astype(np.float32) * 9
    size = x.shape[axis]
    for block in (0, 2):
        scale = (rng.random(size if block == 0 else [n // 2 if k == axis % 2 else n for k, n in enumerate(x.shape)]) + 0.1).astype(np.float32)
        zero = rng.integers(-9, 9, scale.shape).astype(np.int8)
        attributes = {"axis": axis, **({"block_size": block} if block else {})}
        fit = lambda t: np.repeat(t, 2, axis) if block else np.expand_dims(t, 1 - axis % 2)
        q = run("QuantizeLinear", x, scale, zero, **attributes)
        np.testing.assert_array_equal(q, saturated(np.rint(x / fit(scale)) + fit(zero), np.int8))
        back = run("DequantizeLinear", q, scale, zero, **attributes)
        np.testing.assert_allclose(back, (q.astype(np.float32) - fit(zero)) * fit(scale), rtol=1e-6)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("count", [3, 300, 3000, 70000])
def test_products_of_integers_are_exact(count, constant):
    a, b = rng.integers(250, 256, (2, count)).astype(np.uint8), rng.integers(-128, -120, (count, 3)).astype(np.int8)
    zeros = np.array([7, 250], np.uint8), np.array([-128, 3, 127], np.int8)
    centered = [(a.astype(np.int64) - zeros[0][:, None]), b.astype(np.int64) - zeros[1]]
    for given, expected in (((None, None), a.astype(np.int64) @ b.astype(np.int64)), (zeros, centered[0] @ centered[1])):
        if constant:
            names = "a b" if given[0] is None else "a b p q"
            constants = {"b": b} if given[0] is None else {"b": b, "p": given[0], "q": given[1]}
            result = load([node("MatMulInteger", names, "y")], "a", "y", **constants)(tensor(a)).numpy()
        else:
            result = run("MatMulInteger", a, b, *given)
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, expected.astype(np.int32))  # which wraps beyond 2^31


def bytes_of(dtype, *shape):
    """Random integers of 8 bits, in their whole range."""
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("shapes", [((3, 4, 9), (9, 5)), ((9,), (9, 5)), ((4, 9), (9,)), ((9,), (9,)), ((2, 3, 4, 9), (3, 9, 5)), ((4, 9), (2, 9, 5)), ((2, 1, 4, 9), (1, 3, 9, 5)), ((0, 9), (9, 5)), ((4, 0), (0, 5)), ((2, 4, 9), (2, 9, 0))])  # fmt: skip
@pytest.mark.parametrize("dtypes", [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8), (np.int8, np.uint8)])
def test_products_of_any_shape_have_the_sums_of_int64(shapes, dtypes):
    a, b = (bytes_of(dtype, *shape) for dtype, shape in zip(dtypes, shapes))
    for one in ("number", "list", "columns"):
        if one != "number" and (a.ndim == 1 or b.ndim == 1):
            continue
        rows = () if one == "number" else (a.shape[-2],) if one == "list" else (*a.shape[:-1], 1)
        a_zero, b_zero = bytes_of(dtypes[0], *rows), bytes_of(dtypes[1], *(() if one == "number" else b.shape[-1:]))
        of_rows = a_zero[:, None] if one == "list" else a_zero
        expected = np.matmul(a.astype(np.int64) - of_rows, b.astype(np.int64) - b_zero)
        np.testing.assert_array_equal(run("MatMulInteger", a, b, a_zero, b_zero), expected)


@pytest.mark.parametrize("turned", [False, True])
def test_gemm_of_integers_has_a_bias_and_may_be_quantized(turned):
    own = {"domain": "com.microsoft", "alpha": 0.5, "transA": int(turned), "transB": int(turned)}
    a, b, c = bytes_of(np.uint8, 4, 30), bytes_of(np.int8, 30, 6), rng.integers(-999, 999, 6).astype(np.int32)
    scale, zero = np.linspace(0.01, 0.02, 6).astype(np.float32), bytes_of(np.int8, 6)
    real = 0.5 * 0.1 * scale.astype(np.float64) * ((a.astype(np.int64) - 9) @ (b.astype(np.int64) - zero) + c)
    given = (a.T if turned else a, np.float32(0.1), np.uint8(9), b.T if turned else b, scale, zero, c)
    np.testing.assert_allclose(run("QGemm", *given, **own), real, rtol=1e-6)
    got = run("QGemm", *given, np.float32(0.5), np.uint8(100), **own)
    np.testing.assert_allclose(got.astype(np.int64), saturated(np.rint(real / 0.5) + 100, np.uint8), atol=1)


def correlated(x, w, strides, groups):
    """The windows of [N, C, H, W] with [M, C / groups, h, w], in int64."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, :: strides[0], :: strides[1]]
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0))
    return np.concatenate([np.einsum("nchwij,mcij->nmhw", part, weights) for part, weights in parts], 1)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("channels", [2, 200])
def test_sums_of_convolutions_are_exact_and_padding_is_the_zero_point(channels, groups):
    x, w = rng.integers(200, 256, (2, channels, 5, 6)).astype(np.uint8), rng.integers(0, 256, (4, channels // groups, 3, 2)).astype(np.uint8)
    x_zero, w_zero = np.uint8(7), np.array([0, 5, 255, 90], np.uint8)
    padded = np.pad(x.astype(np.int64) - x_zero, ((0, 0), (0, 0), (1, 0), (2, 1)))
    sums = correlated(padded, w.astype(np.int64) - w_zero[:, None, None, None], (2, 1), groups)
    attributes = {"pads": [1, 2, 0, 1], "strides": [2, 1], "group": groups}
    np.testing.assert_array_equal(run("ConvInteger", x, w, x_zero, w_zero, **attributes), sums)
    w_scale, bias = np.array([0.1, 0.2, 0.3, 0.4], np.float32) / channels, rng.integers(-99, 99, 4).astype(np.int32)
    result = run("QLinearConv", x, np.float32(0.02), x_zero, w, w_scale, w_zero, np.float32(1.5), np.int8(-3), bias, **attributes)
    exact = (sums + bias[:, None, None]) * (0.02 * w_scale.astype(np.float64) / 1.5)[:, None, None]
    assert np.abs(result.astype(np.int64) - saturated(exact - 3, np.int8)).max() <= 1  # a half may fall to either side
    assert (result == saturated(np.rint(exact) - 3, np.int8)).mean() > 0.99


@pytest.mark.parametrize("dtypes", [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
@pytest.mark.parametrize("case", [
    dict(sizes=(2, 5, 9, 33), weights=(6, 5, 3, 3), strides=(1, 1), groups=1),
    dict(sizes=(1, 8, 6, 40), weights=(12, 4, 1, 2), strides=(1, 2), groups=2),
    dict(sizes=(2, 4, 7, 37), weights=(8, 4, 1, 1), strides=(2, 2), groups=1),
    dict(sizes=(1, 6, 5, 20), weights=(6, 1, 3, 3), strides=(1, 1), groups=6),
])  # fmt: skip
def test_windows_of_any_place_have_the_sums_of_int64(case, dtypes):
    x, w = bytes_of(dtypes[0], *case["sizes"]), bytes_of(dtypes[1], *case["weights"])
    for w_zero in (bytes_of(dtypes[1]), bytes_of(dtypes[1], len(w))):
        x_zero = bytes_of(dtypes[0])
        padded = np.pad(x.astype(np.int64) - x_zero, ((0, 0), (0, 0), (1, 0), (2, 1)))
        sums = correlated(padded, w.astype(np.int64) - w_zero.reshape(-1, 1, 1, 1), case["strides"], case["groups"])
        attributes = {"pads": [1, 2, 0, 1], "strides": case["strides"], "group": case["groups"]}
        np.testing.assert_array_equal(run("ConvInteger", x, w, x_zero, w_zero, **attributes), sums)
        model = load([node("ConvInteger", "a b p q", "y", **attributes)], "a", "y", b=w, p=x_zero, q=w_zero)
        np.testing.assert_array_equal(model(tensor(x)).numpy(), sums)
        np.testing.assert_array_equal(tenon.inference(model, tensor(x))(tensor(x)).numpy(), sums)


def test_sums_over_one_and_three_axes_and_with_holes():
    x, w = bytes_of(np.uint8, 2, 3, 30), bytes_of(np.int8, 5, 3, 4)
    centered, real = x.astype(np.int64) - 3, w.astype(np.int64)
    expected = correlated(centered[:, :, None], real[:, :, None], (1, 3), 1)[:, :, 0]
    np.testing.assert_array_equal(run("ConvInteger", x, w, np.uint8(3), strides=[3]), expected)
    holes = sum(np.einsum("ncl,mc->nml", centered[:, :, 2 * k : 24 + 2 * k], real[..., k]) for k in range(4))
    np.testing.assert_array_equal(run("ConvInteger", x, w, np.uint8(3), dilations=[2]), holes)
    expected = correlated(centered[:, :, :, None], real[:, :, :, None], (1, 1), 1)[..., None]
    np.testing.assert_array_equal(run("ConvInteger", x[..., None, None], w[..., None, None], np.uint8(3)), expected)


@pytest.mark.parametrize("automatic, pads", [("SAME_UPPER", (0, 1)), ("SAME_LOWER", (1, 0)), ("VALID", (0, 0))])
def test_padding_may_follow_from_the_sizes(automatic, pads):
    x, w = rng.integers(0, 256, (1, 1, 4, 4)).astype(np.uint8), rng.integers(0, 256, (1, 1, 2, 2)).astype(np.uint8)
    padded = np.pad(x.astype(np.int64), ((0, 0), (0, 0), pads, pads))
    np.testing.assert_array_equal(run("ConvInteger", x, w, auto_pad=automatic), correlated(padded, w.astype(np.int64), (1, 1), 1))


def test_a_dynamic_range_contains_zero_and_may_be_empty():
    for x in (np.array([1.0, 2, 3], np.float32), np.array([-4.0, -3, -3], np.float32), np.array([-1.0, 0.5, 8], np.float32)):
        q, scale, zero = run("DynamicQuantizeLinear", x, outputs=3)
        low, high = min(x.min(), 0), max(x.max(), 0)
        assert scale == np.float32((high - low) / np.float32(255)) and zero == saturated(-low / scale, np.uint8)
        np.testing.assert_array_equal(q, saturated(np.rint(x / scale) + zero, np.uint8))
    q, scale, zero = run("DynamicQuantizeLinear", np.zeros(2, np.float32), outputs=3)
    assert scale == 1 and zero == 0 and q.tolist() == [0, 0]


def test_operators_of_onnxruntime_compute_on_what_the_integers_stand_for():
    a, b = rng.integers(0, 256, (2, 3, 4, 4)).astype(np.uint8), rng.integers(0, 256, (2, 3, 4, 4)).astype(np.uint8)
    x, y = (a.astype(np.float64) - 100) * 0.05, (b.astype(np.float64) - 30) * 0.02
    first, second, third = (np.float32(0.05), np.uint8(100)), (np.float32(0.02), np.uint8(30)), (np.float32(0.1), np.uint8(90))
    near = lambda result, real: np.testing.assert_allclose(result, saturated(np.rint(real / 0.1) + 90, np.uint8), atol=1)
    own = {"domain": "com.microsoft"}
    near(run("QLinearAdd", a, *first, b, *second, *third, **own), x + y)
    near(run("QLinearMul", a, *first, b, *second, *third, **own), x * y)
    near(run("QLinearSigmoid", a, *first, *third, **own), 1 / (1 + np.exp(-x)))
    near(run("QLinearLeakyRelu", a, *first, *third, alpha=0.2, **own), np.where(x < 0, 0.2 * x, x))
    near(run("QLinearGlobalAveragePool", a, *first, *third, **own), x.mean((2, 3), keepdims=True))
    near(run("QLinearGlobalAveragePool", a, *first, *third, channels_last=1, **own), x.mean((1, 2), keepdims=True))
    near(run("QLinearAveragePool", a, *first, *third, kernel_shape=[2, 2], strides=[2, 2], **own), x.reshape(2, 3, 2, 2, 2, 2).mean((3, 5)))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0)))[:, :, ::4]
    edge = run("QLinearAveragePool", a, *first, *third, kernel_shape=[2, 1], strides=[4, 1], pads=[1, 0, 0, 0], **own)
    near(edge, padded[:, :, :1] + x[:, :, :1])
    near(run("QLinearConcat", *third, a, *first, b, *second, axis=1, **own), np.concatenate([x, y], 1))


def test_products_with_dynamic_scales():
    x, w = rng.standard_normal((3, 40)).astype(np.float32), rng.integers(-128, 128, (40, 5)).astype(np.int8)
    scale, zero, bias = np.full(5, 0.01, np.float32), np.full(5, 3, np.int8), rng.standard_normal(5).astype(np.float32)
    real = (w.astype(np.float64) - 3) * 0.01
    result = run("DynamicQuantizeMatMul", x, w, scale, zero, bias, domain="com.microsoft")
    np.testing.assert_allclose(result, x @ real + bias, atol=0.2)
    q = rng.integers(0, 256, (3, 40)).astype(np.uint8)
    result = run("MatMulIntegerToFloat", q, w, np.float32(0.5), scale, np.uint8(9), zero, bias, domain="com.microsoft")
    np.testing.assert_allclose(result, (q.astype(np.float64) - 9) * 0.5 @ real + bias, rtol=1e-5)


def test_messages_name_the_attribute_or_the_shapes():
    def text(op, *inputs, **attributes):
        with pytest.raises((ValueError, RuntimeError, NotImplementedError, TypeError)) as error:
            run(op, *inputs, **attributes)
        return str(error.value)

    x, q = np.ones((2, 3), np.float32), np.ones((2, 3), np.uint8)
    image, kernel = np.ones((1, 1, 4, 4), np.uint8), np.ones((1, 1, 2, 2), np.uint8)
    assert "QuantizeLinear: quantized values of int64" in text("QuantizeLinear", x, np.float32(1), np.int64(1))
    assert "QuantizeLinear: a scale of shape [2], for dimension 1 of an input of shape [2, 3]" in text("QuantizeLinear", x, np.ones(2, np.float32))
    assert "attribute `block_size` is 2, with a scale of shape [2]" in text("QuantizeLinear", x, np.ones(2, np.float32), block_size=2)
    assert "MatMulInteger: a product with a number" in text("MatMulInteger", q, np.uint8(1))
    assert "ConvInteger: an input of 2 dimensions, weights of 4" in text("ConvInteger", q, kernel)
    assert "ConvInteger: attribute `pads` has 2 numbers, expected 4" in text("ConvInteger", image, kernel, pads=[1, 1])
    assert "ConvInteger: attribute `strides` or `dilations` does not fit the weights" in text("ConvInteger", image, kernel, strides=[0, 1])
    half = np.float32(0.5), np.uint8(0)
    pool = lambda **attributes: text("QLinearAveragePool", image, *half, *half, domain="com.microsoft", **attributes)
    assert "QLinearAveragePool: attribute `channels_last` or `ceil_mode` is 1" in pool(channels_last=1)
    assert "QLinearAveragePool: attribute `kernel_shape` or `strides` does not fit its input" in pool(kernel_shape=[2])
    assert "QLinearGlobalAveragePool: its input has no image" in text("QLinearGlobalAveragePool", q, *half, *half, domain="com.microsoft")


@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
def test_a_zero_point_of_many_dimensions_is_one_number(op):
    x, w, zero = bytes_of(np.uint8, 1, 2, 4, 4), bytes_of(np.int8, 3, 2, 2, 2), np.full((1,) * 7, 9, np.uint8)
    if op == "ConvInteger":
        nodes, constants = [node(op, "x w z", "y")], dict(w=w, z=zero)
    else:
        nodes, constants = [node(op, "x s z w s v s z", "y")], dict(w=w, z=zero, s=np.float32(0.1), v=np.int8(0))
    made = load(nodes, "x", "y", **constants)
    plain = load(nodes, "x", "y", **constants | dict(z=np.uint8(9)))
    np.testing.assert_array_equal(made(tensor(x)).numpy(), plain(tensor(x)).numpy())
    np.testing.assert_array_equal(tenon.inference(made, tensor(x))(tensor(x)).numpy(), plain(tensor(x)).numpy())
