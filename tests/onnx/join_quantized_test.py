"""Files that quantize by QuantizeLinear and DequantizeLinear: products between the two are products of integers, so that sums are
exact and a half is a half. The references add in int64."""

import numpy as np
import pytest

from onnx_networks import load, node, tensor
from quantized_test import correlated, saturated

rng = np.random.default_rng(1)

#: Scales whose product over the result's makes half of all results end in .5, where they are computed of integers.
X_SCALE, W_SCALE, Y_SCALE = np.float32(0.1), np.float32(0.1), np.float32(0.02)


def whole(dtype, *shape):
    bounds = np.iinfo(dtype)
    return rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def few(dtype, *shape):
    """Weights with which few results saturate."""
    return rng.integers(0 if dtype == np.uint8 else -1, 2, shape).astype(dtype)


def requantized(sums, scale, zero):
    """What the standard says of QLinearConv and its kin: exact sums, one float32 product, half to even."""
    return saturated(np.rint(sums.astype(np.float32) * scale) + zero, zero.dtype)


def between(op, inputs, **attributes):
    """Nodes from x through `op` to y; x and w are dequantized."""
    return [
        node("DequantizeLinear", "x xs xz", "xr"),
        node("DequantizeLinear", "w ws wz", "wr", **({"axis": attributes.pop("axis")} if "axis" in attributes else {})),
        node(op, inputs, "r", **attributes),
        node("QuantizeLinear", "r ys yz", "y"),
    ]


@pytest.mark.parametrize("kinds", [(np.uint8, np.int8, np.uint8), (np.int8, np.int8, np.int8), (np.uint8, np.uint8, np.int8)])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("with_relu", [False, True])
def test_a_convolution(kinds, groups, with_relu):
    x, w = whole(kinds[0], 2, 4, 9, 11), few(kinds[1], 6, 4 // groups, 3, 2)
    xz, wz, yz = whole(kinds[0]), np.zeros(6, kinds[1]), whole(kinds[2])
    if with_relu:
        yz = np.array(np.iinfo(kinds[2]).min, kinds[2])
    ws = (W_SCALE * rng.choice([1, 2, 4], 6)).astype(np.float32)
    bias = rng.integers(-50, 50, 6).astype(np.int32)
    nodes = between("Conv", "xr wr br", axis=0, pads=[1, 0, 1, 1], strides=[1, 2], group=groups)
    nodes.insert(0, node("DequantizeLinear", "b bs", "br", axis=0))
    if with_relu:
        nodes[-1:] = [node("Relu", "r", "p"), node("QuantizeLinear", "p ys yz", "y")]
    made = load(nodes, "x", "y", xs=X_SCALE, xz=xz, w=w, ws=ws, wz=wz, b=bias, bs=X_SCALE * ws, ys=Y_SCALE, yz=yz)
    padded = np.pad(x.astype(np.int64) - xz, ((0, 0), (0, 0), (1, 1), (0, 1)))
    sums = correlated(padded, w.astype(np.int64), (1, 2), groups) + bias[:, None, None]
    expected = requantized(sums, (X_SCALE * ws / Y_SCALE)[:, None, None], yz)
    np.testing.assert_array_equal(made(tensor(x)).numpy(), expected)


@pytest.mark.parametrize("shape", [(7, 20), (2, 3, 5, 20)])
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_a_product_of_matrices(shape, axis):
    x, w = whole(np.uint8, *shape), few(np.int8, 20, 9)
    ws = W_SCALE if axis is None else (W_SCALE * rng.choice([1, 2], 9)).astype(np.float32)
    xz, wz, yz = whole(np.uint8), np.zeros(np.shape(ws), np.int8), whole(np.uint8)
    nodes = between("MatMul", "xr wr", **({} if axis is None else {"axis": axis}))
    made = load(nodes, "x", "y", xs=X_SCALE, xz=xz, w=w, ws=ws, wz=wz, ys=Y_SCALE, yz=yz)
    expected = requantized((x.astype(np.int64) - xz) @ w.astype(np.int64), X_SCALE * ws / Y_SCALE, yz)
    np.testing.assert_array_equal(made(tensor(x)).numpy(), expected)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_a_layer(turned, with_bias):
    x, w = whole(np.uint8, 5, 33), few(np.int8, 33, 8)
    ws = (W_SCALE * rng.choice([1, 2], 8)).astype(np.float32)
    bias, xz, wz, yz = rng.integers(-90, 90, 8).astype(np.int32), whole(np.uint8), np.zeros(8, np.int8), whole(np.int8)
    nodes = between("Gemm", "xr wr br" if with_bias else "xr wr", axis=1 - turned, transB=turned)
    if with_bias:
        nodes.insert(0, node("DequantizeLinear", "b bs", "br", axis=0))
    constants = dict(xs=X_SCALE, xz=xz, w=w.T.copy() if turned else w, ws=ws, wz=wz, ys=Y_SCALE, yz=yz)
    made = load(nodes, "x", "y", **constants, **({"b": bias, "bs": X_SCALE * ws} if with_bias else {}))
    sums = (x.astype(np.int64) - xz) @ w.astype(np.int64) + (bias if with_bias else 0)
    np.testing.assert_array_equal(made(tensor(x)).numpy(), requantized(sums, X_SCALE * ws / Y_SCALE, yz))


def test_what_moves_elements_moves_integers():
    x, zero, scale = whole(np.int8, 2, 3, 6, 8), np.int8(-5), np.float32(0.3)
    nodes = [
        node("DequantizeLinear", "x s z", "a"), node("MaxPool", "a", "b", kernel_shape=[2, 2], strides=[2, 2]), node("QuantizeLinear", "b s z", "c"),
        node("DequantizeLinear", "c s z", "d"), node("Transpose", "d", "e", perm=[0, 2, 3, 1]), node("QuantizeLinear", "e t z", "f"),
        node("DequantizeLinear", "f s z", "g"), node("Reshape", "g shape", "h"), node("QuantizeLinear", "h s z", "y"),
    ]  # fmt: skip
    made = load(nodes, "x", "y", s=scale, t=scale, z=zero, shape=np.array([2, -1]))
    pooled = x.reshape(2, 3, 3, 2, 4, 2).max((3, 5))
    np.testing.assert_array_equal(made(tensor(x)).numpy(), pooled.transpose(0, 2, 3, 1).reshape(2, -1))


CONSTANTS = dict(xs=np.float32(0.05), xz=np.uint8(3), w=whole(np.int8, 6, 4), ws=np.float32(0.02), wz=np.int8(0), ys=np.float32(0.4), yz=np.uint8(100))


def reals(x, constants):
    real = lambda q, s, z: (q.astype(np.float64) - z) * s
    return real(x, constants["xs"], constants["xz"]) @ real(constants["w"], constants["ws"], constants["wz"])


@pytest.mark.parametrize("how", ["the real product is a result, too", "an operand is read elsewhere", "scales that are inputs",
                                 "other scales of a moved tensor", "a bias of other units", "16 bits"])  # fmt: skip
def test_what_is_read_elsewhere_or_is_no_product_of_bytes_stays(how):
    x, constants, nodes, outputs, inputs = whole(np.uint8, 5, 6), dict(CONSTANTS), between("MatMul", "xr wr"), "y", "x"
    expected = reals(x, constants)
    given = [tensor(x)]
    if how == "the real product is a result, too":
        outputs = "y r"
    elif how == "an operand is read elsewhere":
        nodes.append(node("Neg", "xr", "n"))
        outputs = "y n"
    elif how == "scales that are inputs":
        constants.pop("ys")
        inputs, given = "x ys", [tensor(x), tensor(np.float32(0.4))]
    elif how == "other scales of a moved tensor":
        nodes = [node("DequantizeLinear", "x xs xz", "a"), node("Transpose", "a", "b"), node("QuantizeLinear", "b ys yz", "y")]
        expected = ((x.astype(np.float64) - 3) * constants["xs"]).T
    elif how == "a bias of other units":
        nodes = [node("DequantizeLinear", "b bs", "br"), *between("Gemm", "xr wr br")]
        constants |= dict(b=np.arange(4, dtype=np.int32), bs=np.float32(1.5))
        expected = expected + np.arange(4) * 1.5
    else:
        constants |= dict(xz=np.uint16(3))
        x = x.astype(np.uint16)
        given = [tensor(x)]
    results = load(nodes, inputs, outputs, **constants)(*given)
    results = results if isinstance(results, (list, tuple)) else [results]
    exact = expected / constants.get("ys", np.float32(0.4)) + 100
    assert np.abs(results[0].numpy() - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-4
    if how == "the real product is a result, too":
        np.testing.assert_allclose(results[1].numpy(), expected, rtol=1e-5, atol=1e-5)
    if how == "an operand is read elsewhere":
        np.testing.assert_allclose(results[1].numpy(), -(x.astype(np.float64) - 3) * constants["xs"], rtol=1e-6)


def test_inside_of_a_branch():
    from onnx_networks import graph

    constants = dict(CONSTANTS)
    then = graph(between("MatMul", "xr wr"), [], ["y"], **constants)
    other = graph([node("Identity", "x", "z")], [], ["z"])
    nodes = [node("If", "c", "out", then_branch=then, else_branch=other)]
    made = load(nodes, "x c", "out")
    x = whole(np.uint8, 5, 6)
    exact = reals(x, constants) / 0.4 + 100
    assert np.abs(made(tensor(x), tensor(np.array(True))).numpy() - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-4
    np.testing.assert_array_equal(made(tensor(x), tensor(np.array(False))).numpy(), x)


def both(nodes, outputs="y", **constants):
    """A model, and the same with the real numbers as a result, too, which are not joined."""
    real = nodes[-1].input[0]
    return load(nodes, "x", outputs, **constants), load(nodes, "x", f"{outputs} {real}", **constants)


@pytest.mark.parametrize("depth", [33025, 33026, 70000])
def test_sums_that_int32_does_not_hold(depth):
    x, w = np.full((1, depth), 255, np.uint8), np.full((depth, 1), 255, np.uint8)
    made = load(between("MatMul", "xr wr"), "x", "y", xs=np.float32(0.1), xz=np.uint8(0), w=w, ws=np.float32(0.1), wz=np.uint8(0),
                ys=np.float32(depth * 255 * 255 * 0.01 / 100), yz=np.uint8(3))  # fmt: skip
    assert made(tensor(x)).item() == 103


@pytest.mark.parametrize("bias", [2**31 - 1000, -(2**31)])
def test_a_bias_that_fills_int32(bias):
    nodes = [node("DequantizeLinear", "b bs", "br"), *between("Conv", "xr wr br")]
    made = load(nodes, "x", "y", xs=np.float32(0.1), xz=np.uint8(0), w=np.full((1, 1, 1, 1), 127, np.int8), ws=np.float32(0.1), wz=np.int8(0),
                b=np.array([bias], np.int32), bs=np.float32(0.1) * np.float32(0.1), ys=np.float32(2**31 * 0.01 / 100), yz=np.uint8(110))  # fmt: skip
    assert made(tensor(np.full((1, 1, 2, 2), 255, np.uint8))).flatten().tolist() == [110 + round(100 * bias / 2**31)] * 4


def test_scales_of_one_element_make_no_dimensions():
    lists = {k: np.reshape(v, (1,)) if k not in "xw" else v for k, v in CONSTANTS.items()} | dict(w=whole(np.int8, 6))
    made = load(between("MatMul", "xr wr", axis=0), "x", "y", **lists)
    assert made(tensor(whole(np.uint8, 6))).shape == ()


@pytest.mark.parametrize("scale", [-0.1, 0.0, float("nan"), float("inf"), 3e38, 1e-42])
def test_scales_with_which_integers_are_not_in_the_order_of_real_numbers(scale):
    nodes = [node("DequantizeLinear", "x s z", "a"), node("MaxPool", "a", "b", kernel_shape=[2, 2]), node("QuantizeLinear", "b s z", "y")]
    with np.errstate(all="ignore"):
        made, plain = both(nodes, s=np.float32(scale), z=np.uint8(9))
    x = tensor(np.array([[[[1, 2], [3, 4]]]], np.uint8))
    assert made(x).tolist() == plain(x)[0].tolist()
    if scale == -0.1:
        assert made(x).item() == 1


def test_scales_whose_product_is_no_normal_number():
    constants = CONSTANTS | dict(xs=np.float32(1e-22), ws=np.float32(1e-22), ys=np.float32(3e-41))
    made, plain = both(between("MatMul", "xr wr"), **constants)
    x = tensor(whole(np.uint8, 5, 6))
    assert made(x).tolist() == plain(x)[0].tolist()


def test_a_negative_scale_after_relu():
    nodes = between("MatMul", "xr wr")
    nodes[-1:] = [node("Relu", "r", "p"), node("QuantizeLinear", "p ys yz", "y")]
    made, plain = both(nodes, **CONSTANTS | dict(ys=np.float32(-0.4), yz=np.uint8(0)))
    x = tensor(whole(np.uint8, 5, 6))
    assert made(x).tolist() == plain(x)[0].tolist()
