"""tenon.testing.assert_close: what passes, and the messages, which are those that PyTorch 2.15 gave for the same calls."""

import numpy as np
import pytest

import tenon
from tenon.testing import assert_close

NAN, INF = float("nan"), float("inf")


def refused(*args, **options):
    with pytest.raises(AssertionError) as caught:
        assert_close(*args, **options)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    return str(caught.value)


@pytest.mark.parametrize("dtype, rtol, atol", [
    ("float16", 1e-3, 1e-5), ("bfloat16", 1.6e-2, 1e-5), ("float32", 1.3e-6, 1e-5), ("float64", 1e-7, 1e-7),
    ("complex64", 1.3e-6, 1e-5), ("complex128", 1e-7, 1e-7),
])  # fmt: skip
def test_tolerances_go_by_the_dtype(dtype, rtol, atol):
    """With values of float64 that an explicit tolerance compares: each side of |difference| = atol + rtol * |expected|."""
    kind = tenon.complex128 if dtype.startswith("complex") else tenon.float64
    zero = tenon.zeros(1, dtype=getattr(tenon, dtype))
    for expected in (0.0, 100.0):
        allowed = atol + rtol * expected
        e = tenon.tensor([expected], dtype=kind)
        assert_close(e + 0.99 * allowed, e, rtol=rtol, atol=atol)
        refused(e + 1.01 * allowed, e, rtol=rtol, atol=atol)
    assert_close(zero + 0.9 * atol, zero)
    assert f"(up to {rtol} allowed)" in refused(zero + 2 * atol, zero) and f"(up to {atol} allowed)" in refused(zero + 2 * atol, zero)


def test_dtypes_that_differ_have_the_wider_tolerance():
    a, b = tenon.tensor([1.0], dtype=tenon.float64), tenon.tensor([1.001], dtype=tenon.bfloat16)
    assert refused(a, b) == "The values for attribute 'dtype' do not match: tenon.float64 != tenon.bfloat16."
    assert_close(a + 0.01, b, check_dtype=False)
    refused(a + 0.02, b, check_dtype=False)


def test_the_message_counts_and_finds_the_greatest():
    expected = tenon.tensor([[1.0, 2.0, 4.0], [0.0, 8.0, 16.0]], dtype=tenon.float64)
    actual = expected.clone()
    actual[0, 1] += 1.0
    actual[1, 2] += 2.0
    assert refused(actual, expected) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 6 (33.3%)\n"
        "Greatest absolute difference: 2.0 at index (1, 2) (up to 1e-07 allowed)\n"
        "Greatest relative difference: 0.5 at index (0, 1) (up to 1e-07 allowed)"
    )
    assert refused(tenon.tensor([1, 2, 3]), tenon.tensor([1, 2, 4])) == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1 at index (2,)\n"
        "Greatest relative difference: 0.25 at index (2,)"
    )
    assert "difference: 1.0 (up to" in refused(tenon.tensor(1.0), tenon.tensor(2.0))  # no index


def test_numbers():
    assert_close(1.0, 1.0 + 1e-8)
    assert_close([3, INF, -INF, 1j], [3, INF, -INF, 1j])
    assert refused(1.0, 2.0) == (
        "Scalars are not close!\n\nExpected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-07 allowed)\nRelative difference: 0.5 (up to 1e-07 allowed)"
    )
    assert refused(1, 2) == "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"
    assert "(d)types do not match" in refused(1, 1.0)
    assert_close(1, 1.0, check_dtype=False)
    refused(INF, -INF)
    refused(INF, 1.0)
    assert refused(True, False) == "Booleans mismatch: True is not False"
    assert refused(None, 1) == "None mismatch: None is not 1"


def test_nan_is_near_nan_where_that_is_asked_for():
    t = tenon.tensor([NAN, 1.0])
    for a, b in ((t, t.clone()), (NAN, NAN)):
        refused(a, b)
        assert_close(a, b, equal_nan=True)
    refused(t, tenon.tensor([1.0, NAN]), equal_nan=True)


def test_places_in_containers_are_named():
    a, b = tenon.ones(2), tenon.ones(2)
    assert_close({"w": [a, None], "n": (1, 2.0)}, {"n": [1, 2.0], "w": (b, None)})
    assert refused([a, {"w": a}], [b, {"w": b + 1}]).endswith("\n\nThe failure occurred for item [1]['w']")
    assert refused([1], [1, 2]) == "The length of the sequences mismatch: 1 != 2"
    assert refused({"a": 1}, {"b": 1}) == (
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']"
    )


def test_shapes_strides_and_devices_are_compared():
    x = tenon.arange(6.0).reshape(2, 3)
    assert refused(x, x.t()) == "The values for attribute 'shape' do not match: tenon.Size([2, 3]) != tenon.Size([3, 2])."
    assert_close(x, x.t().contiguous().t())
    assert "attribute 'stride()' do not match: (3, 1) != (1, 2)." in refused(x, x.t().contiguous().t(), check_stride=True)
    assert "attribute 'device' do not match: cpu != meta." in refused(x, x.to("meta"))
    assert_close(tenon.zeros(0, 3), tenon.zeros(0, 3))


def test_dtypes_that_have_no_arithmetic():
    for dtype in (tenon.bool, tenon.uint8, tenon.int8, tenon.float8_e4m3fn, tenon.float8_e5m2):
        a, b = (tenon.tensor(bits, dtype=tenon.uint8).view(dtype) for bits in ([0, 1], [0, 0]))
        assert_close(a, a.clone())
        assert "Greatest absolute difference: 1 at index (1,)" in refused(a, b)


def test_the_message_may_be_the_callers():
    a, b = tenon.ones(1), tenon.zeros(1)
    assert refused(a, b, msg="mine") == "mine"
    assert refused(a, b, msg=lambda text: "mine: " + text).startswith("mine: Tensor-likes are not close!")


def test_arrays_are_compared_and_nothing_else():
    assert_close(np.ones(3), np.ones(3))
    refused(np.ones(3), np.zeros(3))
    for a, b in ((np.ones(3), tenon.ones(3)), (1.0, tenon.tensor(1.0)), ("a", "a"), ([1, "a"], [1, "a"])):
        with pytest.raises(TypeError, match="assert_close: cannot compare"):
            assert_close(a, b)
    with pytest.raises(ValueError, match="rtol and atol are given both or not at all"):
        assert_close(tenon.ones(1), tenon.ones(1), rtol=1.0)
    with pytest.raises(TypeError, match="the types differ"):
        assert_close(tenon.nn.Parameter(tenon.ones(1)), tenon.ones(1), allow_subclasses=False)
