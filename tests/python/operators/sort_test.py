"""sort and topk beyond their rows in tests/conformance: stability, threads, long rows, gradients, errors."""

import numpy as np
import pytest

import tenon

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def numbers(shape, dtype, seed=0):
    values = np.random.default_rng(seed).integers(-100, 100, shape)
    t = tenon.tensor((values % 2 if dtype == "bool" else values).tolist())
    return t.to(getattr(tenon, dtype)), np.asarray(t.to(getattr(tenon, dtype)).to(tenon.float64))


def stable(a, axis, descending):
    return np.argsort(-a if descending else a, axis=axis, kind="stable")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, dim", [((40, 70), 1), ((2100, 3), 0), ((20, 130, 7), 1)])
def test_equal_elements_keep_their_order(dtype, shape, dim):
    x, a = numbers(shape, dtype)
    for descending in (False, True):
        order = stable(a, dim, descending)
        values, indices = tenon.sort(x, dim, descending)
        np.testing.assert_array_equal(np.asarray(indices), order)
        np.testing.assert_array_equal(np.asarray(values.to(tenon.float64)), np.take_along_axis(a, order, dim))
        values, indices = x.topk(5, dim, largest=descending)
        np.testing.assert_array_equal(np.asarray(indices), np.take(order, range(5), axis=dim))


@pytest.mark.parametrize("strides", [(1, 200), (-200, 1), (200, -1), (0, 1), (1, 0), (400, 2)])
def test_any_strides(strides):
    base, a = numbers(100_000, "float32")
    offset = sum(-s * (n - 1) for s, n in zip(strides, (90, 150)) if s < 0)
    x = tenon.as_strided(base, (90, 150), strides, offset)
    a = np.asarray(x.contiguous())
    for dim in (0, 1):
        np.testing.assert_array_equal(np.asarray(x.argsort(dim)), stable(a, dim, False))
        np.testing.assert_array_equal(np.asarray(x.topk(7, dim).indices), np.take(stable(a, dim, True), range(7), dim))


def test_threads_do_not_change_the_result():
    x, a = numbers((300, 500), "float32")
    threads = tenon.get_num_threads()
    try:
        for n in (1, 2, 3):
            tenon.set_num_threads(n)
            for dim in (0, 1):
                np.testing.assert_array_equal(np.asarray(tenon.argsort(x, dim)), stable(a, dim, False))
                np.testing.assert_array_equal(np.asarray(x.topk(9, dim)[1]), np.take(stable(a, dim, True), range(9), dim))
    finally:
        tenon.set_num_threads(threads)


def test_nan_is_the_largest_and_zeros_are_equal():
    x = tenon.tensor([0.0, float("nan"), -0.0, float("inf"), -1.0, float("nan"), 0.0])
    values, indices = x.sort()
    assert indices.tolist() == [4, 0, 2, 6, 3, 1, 5]
    assert [str(v) for v in values.tolist()] == ["-1.0", "0.0", "-0.0", "0.0", "inf", "nan", "nan"]
    assert x.sort(descending=True).indices.tolist() == [1, 5, 3, 0, 2, 6, 4]
    assert x.topk(3).indices.tolist() == [1, 5, 3]
    assert x.topk(3, largest=False).indices.tolist() == [4, 0, 2]
    assert tenon.cat([x, tenon.zeros(100)]).topk(3).indices.tolist() == [1, 5, 3]


def test_named_results_and_out():
    x = tenon.tensor([[3, 1, 2]])
    assert repr(type(x.sort())).endswith("return_types.sort'>")
    values, indices = tenon.empty(0, dtype=tenon.int64), tenon.empty(0, dtype=tenon.int64)
    result = tenon.sort(x, stable=True, descending=True, out=(values, indices))
    assert result[0] is values and values.tolist() == [[3, 2, 1]] and indices.tolist() == [[0, 2, 1]]
    # An operand as the result.
    tenon.sort(x, out=(x, tenon.empty(0, dtype=tenon.int64)))
    assert x.tolist() == [[1, 2, 3]]


def test_gradients_go_to_where_the_values_were():
    x = tenon.tensor([[3.0, 1.0, 2.0], [5.0, 5.0, 4.0]], requires_grad=True)
    weights = tenon.tensor([[1.0, 10.0, 100.0]])
    (x.sort(1).values * weights).sum().backward()
    assert x.grad.tolist() == [[100.0, 1.0, 10.0], [10.0, 100.0, 1.0]]
    x.grad = None
    (x.topk(2).values * weights[:, :2]).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 10.0], [1.0, 10.0, 0.0]]
    assert not x.sort().indices.requires_grad


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: x.sort(2), IndexError, "sort: dimension out of range"),
        (lambda x: x.topk(4), RuntimeError, r"topk: selected index k out of range: 4 of the 3 elements of `self`, \[2, 3\]"),
        (lambda x: x.topk(-1), RuntimeError, "topk: selected index k out of range"),
        (lambda x: x.topk(1, 5), IndexError, "topk: dimension out of range"),
        (lambda x: x.to(tenon.complex64).sort(), NotImplementedError, "sort: not implemented for complex64"),
        (lambda x: x.to(tenon.complex64).topk(1), NotImplementedError, "topk: not implemented for complex64"),
        (lambda x: tenon.sort(x, out=(tenon.empty(2), tenon.empty(0))), RuntimeError, "sort"),
        (lambda x: tenon.sort(x, out=(tenon.empty(0, dtype=tenon.int64), tenon.empty(0))), TypeError, "sort"),
    ],
)
def test_errors_name_the_operator(call, error, text):
    with pytest.raises(error, match=text):
        call(tenon.ones(2, 3))
