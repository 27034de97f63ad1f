"""The table of dtypes against NumPy's, where NumPy has the same type."""

import itertools
import sys

import numpy as np
import pytest

import tenon

SHARED = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
ONLY_HERE = ["bfloat16", "qint8", "quint8", "float8_e4m3fn", "float8_e5m2"]


def ours(name):
    return getattr(tenon, name)


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_dtype_is_numpys(name):
    dtype, other = ours(name), np.dtype(name)
    assert dtype.itemsize == other.itemsize
    assert dtype.is_floating_point == (other.kind == "f")
    assert dtype.is_complex == (other.kind == "c")
    assert dtype.is_signed == (other.kind in "ifc")
    array = tenon.zeros(2, dtype=dtype).numpy()
    assert array.dtype == other and array.__array_interface__["typestr"] == other.str
    assert tenon.from_numpy(np.zeros(2, other)).dtype is dtype


@pytest.mark.parametrize("name", ONLY_HERE)
def test_numpy_has_no_other_dtype(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as where it is not installed
    with pytest.raises(TypeError, match=f"NumPy has no {name}"):
        tenon.empty(2, dtype=ours(name)).numpy()


def test_promotion_within_a_category_is_numpys():
    # Across categories PyTorch's rule differs: int64 and float16 are float16 here, float64 in NumPy.
    for a, b in itertools.product(SHARED, SHARED):
        kinds = {np.dtype(a).kind, np.dtype(b).kind}
        if kinds <= set("bui") or kinds <= {"f"} or kinds <= {"c"} or "b" in kinds:
            want = np.promote_types(a, b).name
            assert tenon.promote_types(ours(a), ours(b)) is ours(want), (a, b)


def test_can_cast_is_numpys_same_kind():
    """NumPy's same_kind also refuses what loses a sign or a wider integer; PyTorch's asks for the category alone."""
    for a, b in itertools.product(SHARED, SHARED):
        if np.can_cast(a, b, "same_kind"):
            assert tenon.can_cast(ours(a), ours(b)), (a, b)
        elif np.dtype(a).kind not in "iu" or np.dtype(b).kind not in "iu":
            assert not tenon.can_cast(ours(a), ours(b)), (a, b)


def test_quantized_dtypes_are_a_category_of_their_own():
    # As torch.can_cast: a quantized dtype is neither an integer nor a bool, so that only complex numbers stay out.
    for name in ["qint8", "quint8"]:
        assert tenon.can_cast(tenon.float32, ours(name)) and tenon.can_cast(ours(name), tenon.int8)
        assert not tenon.can_cast(tenon.complex64, ours(name)) and not tenon.can_cast(ours(name), tenon.bool)
        with pytest.raises(TypeError, match="do not promote"):
            tenon.promote_types(ours(name), tenon.float32)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "multiply", "true_divide"])
@pytest.mark.parametrize("numbers", [(1.5, 2.5), (1, 2.5), (1.5, 2), (1.5, 2j)])
def test_two_numbers_give_the_default_dtype(name, numbers):
    result = getattr(tenon, name)(*numbers)
    assert result.dtype == (tenon.complex64 if isinstance(numbers[1], complex) else tenon.float32)
    one = tenon.tensor(numbers[0], dtype=tenon.float64)
    assert getattr(tenon, name)(one, numbers[1]).dtype == (tenon.complex128 if isinstance(numbers[1], complex) else tenon.float64)
