"""The Python array API standard, but for elementwise functions and extensions: names, creation, dtypes, manipulation, reductions, searches,
sets, sorting, indexing, inspection. Expected results are NumPy's or the standard's text."""

import numpy as np
import pytest

import tenon

xp = tenon.ones(1).__array_namespace__(api_version="2024.12")
NAMES = """
e inf nan newaxis pi
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like
astype can_cast finfo iinfo isdtype result_type bool int8 int16 int32 int64 uint8 float32 float64 complex64 complex128
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip
conj copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p
log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real
reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc
take take_along_axis __array_namespace_info__ matmul matrix_transpose tensordot vecdot
broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack
argmax argmin count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse unique_values argsort sort
cumulative_prod cumulative_sum max mean min prod std sum var all any diff fft linalg __array_api_version__
""".split()
X = np.arange(24.0).reshape(2, 3, 4)[:, ::-1] * np.array([1, -1, 2, -2])
T = tenon.tensor(X)


def same(got, want):
    want = np.asarray(want)
    assert str(got.dtype) == f"tenon.{want.dtype}" and tuple(got.shape) == want.shape, (got, want)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)


def test_the_namespace_has_every_name_of_the_standard():
    assert [name for name in NAMES if not hasattr(xp, name)] == []
    for name in ("dtype", "device", "mT", "ndim", "shape", "T", "to_device", "__dlpack__", "__dlpack_device__", "__array_namespace__"):
        assert hasattr(tenon.ones(2, 2), name)


def test_creation():
    for got, want in [
        (xp.arange(5), np.arange(5)),
        (xp.arange(2, 9, 3), np.arange(2, 9, 3)),
        (xp.arange(9, 2, -3), np.arange(9, 2, -3)),
        (xp.arange(0.0), np.arange(0.0).astype(np.float32)),
        (xp.arange(5, 2, dtype=xp.float64), np.empty(0)),
        (xp.arange(0, 1, step=0.25, dtype=xp.float64), np.arange(0, 1, 0.25)),
        (xp.linspace(1, 2, 5, dtype=xp.float64), np.linspace(1, 2, 5)),
        (xp.linspace(1, 2, num=4, endpoint=False, dtype=xp.float64), np.linspace(1, 2, 4, endpoint=False)),
        (xp.linspace(1, 2, 0, dtype=xp.float64), np.empty(0)),
        (xp.linspace(1j, 2, 3, dtype=xp.complex128), np.linspace(1j, 2, 3)),
        (xp.eye(2, 3, k=1, dtype=xp.int32), np.eye(2, 3, 1, np.int32)),
        (xp.full((2, 2), True), np.full((2, 2), True)),
        (xp.full(3, 7), np.full(3, 7)),
        (xp.full((), 1j, dtype=xp.complex128), np.array(1j)),
        (xp.zeros(3, dtype=xp.int8), np.zeros(3, np.int8)),
        (xp.ones((0, 2), dtype=xp.float64), np.ones((0, 2))),
        (xp.empty((2, 0), dtype=xp.float64), np.ones((2, 0))),
        (xp.zeros_like(T), np.zeros_like(X)),
        (xp.ones_like(T, dtype=xp.uint8), np.ones_like(X, np.uint8)),
        (xp.full_like(T, 3, device="cpu"), np.full_like(X, 3)),
        (xp.tril(T, k=-1), np.tril(X, -1)),
        (xp.triu(T, k=1), np.triu(X, 1)),
        (xp.asarray([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
        (xp.asarray([True, False]), np.array([True, False])),
        (xp.asarray(X), X),
        (xp.asarray(range(3), dtype=xp.float64), np.arange(3.0)),
    ]:
        same(got, want)
    assert xp.empty_like(T).shape == T.shape and xp.asarray(1.5).dtype is xp.float32 and xp.asarray(1j).dtype is xp.complex64
    assert xp.full(2, 1.5).dtype is xp.arange(0.0, 4).dtype is xp.arange(0, 4, 0.5).dtype is xp.float32
    for indexing in ("xy", "ij"):
        for got, want in zip(xp.meshgrid(xp.arange(2), xp.arange(3), indexing=indexing), np.meshgrid(np.arange(2), np.arange(3), indexing=indexing)):
            same(got, want)


def test_copies_are_made_as_copy_says():
    for make in (xp.asarray, xp.from_dlpack):
        assert make(T, copy=True).data_ptr() != T.data_ptr() == make(T, copy=False).data_ptr() == make(T).data_ptr()
    shared, read_only = np.ones(3), np.broadcast_to(np.float64(1), (3,))
    assert np.shares_memory(xp.asarray(shared).numpy(), shared) and not np.shares_memory(xp.asarray(read_only).numpy(), read_only)
    xp.asarray(read_only)[:] = 2.0
    for scalar in (np.float32(2.0), np.array(2.0, np.float32)[()], memoryview(b"\2"), np.int8(2)):
        got = xp.asarray(scalar)
        got *= 2
        assert got.max() == 4
    assert np.shares_memory(xp.asarray(read_only, copy=False).numpy(), read_only)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(T, dtype=xp.float32, copy=False)
    t = xp.arange(6)
    t[1:] += xp.flip(t[1:])
    assert t.tolist() == [0, 6, 6, 6, 6, 6]
    assert xp.astype(T, xp.float64, copy=False) is T and xp.astype(T, xp.float64).data_ptr() != T.data_ptr()
    assert xp.astype(T, xp.int8, device="cpu").dtype is xp.int8
    assert T.to_device("cpu").data_ptr() == T.data_ptr() and T.to_device(T.device) is T
    with pytest.raises(ValueError, match="to_device: expected `stream` None, got 3; set the stream with tenon.accelerator.set_stream"):
        T.to_device("cpu", stream=3)


def test_limits_and_kinds_of_dtypes():
    for name in ("float32", "float64"):
        got, want = xp.finfo(getattr(xp, name)), np.finfo(name)
        assert [got.bits, got.eps, got.max, got.min, got.smallest_normal] == [want.bits, want.eps, want.max, want.min, want.smallest_normal]
        assert got.dtype is getattr(xp, name)
    assert xp.finfo(xp.complex128).dtype is xp.float64 and xp.finfo(tenon.ones(1)).dtype is xp.float32
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        got, want = xp.iinfo(getattr(xp, name)), np.iinfo(name)
        assert [got.bits, got.max, got.min, got.dtype] == [want.bits, want.max, want.min, getattr(xp, name)]
    kinds = {
        "bool": {"bool"}, "signed integer": {"int8", "int16", "int32", "int64"}, "unsigned integer": {"uint8", "uint16", "uint32", "uint64"}, "real floating": {"float32", "float64"},
        "complex floating": {"complex64", "complex128"},
    }  # fmt: skip
    kinds["integral"] = kinds["signed integer"] | kinds["unsigned integer"]
    kinds["numeric"] = kinds["integral"] | kinds["real floating"] | kinds["complex floating"]
    info = xp.__array_namespace_info__()
    for kind, names in kinds.items():
        assert set(info.dtypes(kind=kind)) == names and all(xp.isdtype(getattr(xp, name), kind) for name in names)
    assert set(info.dtypes(kind=("bool", "real floating"), device="cpu")) == {"bool", "float32", "float64"}
    assert set(info.dtypes()) == kinds["numeric"] | kinds["bool"]
    assert xp.isdtype(np.dtype("int8"), "integral") and not xp.isdtype(np.float32, "integral")
    assert xp.isdtype(xp.int8, (xp.int16, "integral")) and not xp.isdtype(xp.int8, xp.int16)
    with pytest.raises(ValueError, match="isdtype: unknown kind 'float'"):
        xp.isdtype(xp.int8, "float")


def test_the_namespace_describes_itself():
    info = xp.__array_namespace_info__()
    assert info.default_device() == tenon.device("cpu") and info.devices()[0] == tenon.device("cpu")  # those of other tests follow
    assert info.default_dtypes(device=info.default_device()) == {
        "real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64, "indexing": xp.int64,
    }  # fmt: skip
    tenon.set_default_dtype(tenon.float64)
    try:
        assert info.default_dtypes()["complex floating"] is xp.complex128
    finally:
        tenon.set_default_dtype(tenon.float32)
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}
    assert xp.flip(xp.ones((1,) * 200) + 1).ndim == 200


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("broadcast_to", ((5, 2, 3, 4),), {}), ("expand_dims", (1,), {}), ("expand_dims", (), {"axis": -1}), ("flip", (), {}), ("flip", (), {"axis": (0, -1)}),
        ("moveaxis", (0, -1), {}), ("moveaxis", ((0, 1), (2, 0)), {}), ("permute_dims", ((2, 0, 1),), {}), ("repeat", (2,), {}),
        ("repeat", (2,), {"axis": 1}), ("repeat", (np.array([1, 0, 3]),), {"axis": 1}), ("repeat", (np.array([1, 0, 3], np.int8),), {"axis": -2}),
        ("reshape", ((4, -1),), {}), ("reshape", ((),), {}), ("roll", (1,), {}), ("roll", (-2,), {"axis": 1}), ("roll", ((1, -1),), {"axis": (0, 2)}), ("roll", (1,), {"axis": (0, 2)}),
        ("squeeze", (0,), {}), ("squeeze", (), {"axis": (0, -1)}), ("tile", ((2,),), {}), ("tile", ((2, 1, 1, 3),), {}), ("unstack", (), {}), ("unstack", (), {"axis": -1}),
        ("take", (np.array([2, 0, -1]),), {"axis": 1}), ("take", (np.array([[1, 0]], np.uint8),), {"axis": 0}), ("take_along_axis", (np.array([[[0, 3]]], np.int16),), {"axis": -1}),
        ("sort", (), {}), ("sort", (), {"axis": 0, "descending": True}), ("argsort", (), {"axis": 1}), ("nonzero", (), {}), ("matrix_transpose", (), {}),
        ("diff", (), {"axis": 0}), ("diff", (), {"axis": 1, "n": 2}), ("diff", (), {"n": 2, "append": X[..., :1].astype(np.float32)}), ("count_nonzero", (), {}), ("count_nonzero", (), {"axis": (0, 2), "keepdims": True}),
        ("cumulative_sum", (), {"axis": 1}), ("cumulative_prod", (), {"axis": -1, "include_initial": True}), ("all", (), {"axis": 0}), ("any", (), {"keepdims": True}),
        ("sum", (), {"axis": (0, 1)}), ("prod", (), {"axis": -1}), ("max", (), {}), ("min", (), {"axis": 1}), ("mean", (), {"axis": (1, 2)}), ("std", (), {"correction": 1}),
        ("var", (), {"axis": 0, "correction": 0.5}), ("argmax", (), {}), ("argmax", (), {"keepdims": True}), ("argmin", (), {"axis": 2}),
    ],
)  # fmt: skip
def test_functions_of_one_array(name, arguments, options):
    x = X[:1, :, :1] if name == "squeeze" else X[:1, :1, 1] if name == "reshape" and arguments[0] == () else X
    ours = [tenon.tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]
    named = {key: tenon.tensor(a) if isinstance(a, np.ndarray) else a for key, a in options.items()}
    got = getattr(xp, name)(tenon.tensor(x), *ours, **named)
    if name in ("sort", "argsort") and options.get("descending"):
        want = np.flip(getattr(np, name)(x, axis=options["axis"]), options["axis"])
    elif name == "diff" and "append" in options:
        want = np.diff(x, n=2, append=options["append"])
    else:
        want = getattr(np, name)(x, *arguments, **options)
    for g, w in zip(*((got, want) if isinstance(want, tuple) else ([got], [want])), strict=True):
        same(g, w)


def test_functions_of_several_arrays():
    a, b = X[0], X[1].astype(np.float32)
    ours = [tenon.tensor(a), tenon.tensor(b)]
    for axis in (None, 0, -1):
        same(xp.concat(ours, axis=axis), np.concatenate([a, b], axis))
    for axis in (0, 1, -1):
        same(xp.stack(ours, axis=axis), np.stack([a, b], axis))
    for got, want in zip(xp.broadcast_arrays(tenon.tensor(a), tenon.tensor(b[:1])), np.broadcast_arrays(a, b[:1])):
        same(got, want)
    same(xp.where(tenon.tensor(a > 0), tenon.tensor(a), 2), np.where(a > 0, a, 2))
    same(xp.where(tenon.tensor(a > 0), 1.5, tenon.tensor(b)), np.where(a > 0, np.float32(1.5), b))
    ordered = np.array([1.0, 2.0, 2.0, 5.0])
    for side in ("left", "right"):
        want = np.searchsorted(ordered, b, side=side)
        same(xp.searchsorted(tenon.tensor(ordered), tenon.tensor(b), side=side), want)
        shuffled, sorter = ordered[[3, 0, 2, 1]], np.array([1, 3, 2, 0], np.int32)
        same(xp.searchsorted(tenon.tensor(shuffled), tenon.tensor(b), side=side, sorter=tenon.tensor(sorter)), want)


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable(descending):
    x = np.array([3, 1, 3, 2, 1, 3], np.int16)
    want = np.argsort(-x if descending else x, stable=True)
    same(xp.argsort(tenon.tensor(x), descending=descending), want)
    same(xp.sort(tenon.tensor(x), descending=descending), x[want])


def test_special_cases_of_reductions():
    empty = tenon.zeros(0, 3)
    assert xp.sum(empty).item() == 0 and xp.prod(empty).item() == 1 and xp.all(empty).item() and not xp.any(empty).item()
    assert xp.isnan(xp.mean(empty)) and xp.isnan(xp.var(empty)) and xp.isnan(xp.std(tenon.ones(1), correction=1))
    nan = tenon.tensor([1.0, float("nan"), 2.0])
    for name in ("max", "min", "sum", "prod", "mean", "std", "var"):
        assert xp.isnan(getattr(xp, name)(nan)), name
    assert xp.all(nan) and xp.any(nan[1:2]) and xp.count_nonzero(nan) == 3
    for x in (tenon.tensor([0, 3], dtype=tenon.uint8), tenon.tensor([0j, 1j]), tenon.tensor([0.0, -1.0])):
        assert xp.all(x).dtype is xp.any(x).dtype is tenon.bool and not xp.all(x) and xp.any(x) and xp.count_nonzero(x) == 1
    assert xp.argmax(tenon.tensor([1, 3, 3])).item() == 1 and xp.argmin(tenon.tensor([2, 1, 1])).item() == 1
    assert xp.mean(tenon.tensor([1j, 3.0])).item() == 1.5 + 0.5j


def test_distinct_elements():
    nan = float("nan")
    for x in (
        np.array([[3, 1], [2, 1]]), np.array([True, False, True]), np.array([0.0, -0.0, nan, 1.0, nan]), np.array(5.0), np.array([], np.float32),
        np.array([1 + 2j, 1 - 2j, -0.0 + 1j, 0.0 + 1j, 1 + 2j, complex(nan, 1), complex(nan, 1)]), np.array([], np.complex64),
    ):  # fmt: skip
        got = xp.unique_all(tenon.tensor(x))
        assert got._fields == ("values", "indices", "inverse_indices", "counts") and got.inverse_indices.shape == x.shape
        want, counts = np.unique(x, return_counts=True, equal_nan=False)
        order = np.argsort(got.values.numpy())
        same(got.values[tenon.tensor(order)], want)
        same(got.counts[tenon.tensor(order)], counts)
        same(got.values[got.inverse_indices], np.where(x == 0, got.values.numpy()[got.inverse_indices.numpy()], x) if x.ndim else x)
        same(tenon.tensor(x).reshape(-1)[got.indices], got.values.numpy())
        first = [list(x.reshape(-1)).index(v) for v in got.values.tolist() if v == v]
        assert [i for i, v in zip(got.indices.tolist(), got.values.tolist()) if v == v] == first
        assert xp.unique_counts(tenon.tensor(x))._fields == ("values", "counts")
        assert xp.unique_inverse(tenon.tensor(x))._fields == ("values", "inverse_indices")
        for other in (xp.unique_counts(tenon.tensor(x))[0], xp.unique_inverse(tenon.tensor(x))[0], xp.unique_values(tenon.tensor(x))):
            same(other, got.values.numpy())
        same(xp.unique_counts(tenon.tensor(x)).counts, got.counts.numpy())
        same(xp.unique_inverse(tenon.tensor(x)).inverse_indices, got.inverse_indices.numpy())


def test_indexing():
    rows, columns = np.array([1, 0]), np.array([2, -1])
    for key in (
        0, -1, (1, 2), slice(None, None, -1), (..., 0), (None, 1, ..., None), (slice(2, 0, -1), slice(-1, None, -2)), (0, slice(5, 9)), (rows,), (rows, columns),
        (rows, 1), (slice(None), rows), X > 3, X[..., 0] > 0, np.array([True, False]), np.zeros((2, 3, 4), bool), (), ...,
    ):  # fmt: skip
        ours = tuple(tenon.tensor(k) if isinstance(k, np.ndarray) else k for k in key) if isinstance(key, tuple) else tenon.tensor(key) if isinstance(key, np.ndarray) else key
        same(T[ours], X[key])
        x, t = X.copy(), T.clone()
        x[key] = 7.0
        t[ours] = 7.0
        same(t, x)
    same(tenon.tensor(3)[tenon.tensor(True)], np.array(3)[np.array(True)])
    same(tenon.tensor(3)[tenon.tensor(False)], np.array(3)[np.array(False)])


def test_a_mask_without_elements_takes_nothing():
    """"The size of each dimension in B must equal the size of the corresponding dimension in A or be 0.\""""
    assert T[tenon.zeros(0, dtype=tenon.bool)].shape == (0, 3, 4)
    assert T[tenon.zeros((0, 3), dtype=tenon.bool)].shape == (0, 4) == T[tenon.zeros((2, 0), dtype=tenon.bool)].shape
    assert T[:, tenon.zeros((0, 0), dtype=tenon.bool)].shape == (2, 0)
    t = T.clone()
    t[tenon.zeros(0, dtype=tenon.bool)] = 5.0
    same(t, X)
    with pytest.raises(IndexError, match=r"index: the mask has shape \[3\], the tensor \[2, 3, 4\] from dimension 0"):
        T[tenon.ones(3, dtype=tenon.bool)]
    with pytest.raises(IndexError, match="mask has shape"):
        T[tenon.zeros((0, 4), dtype=tenon.bool)]


def test_errors_of_the_standard():
    for call, error, text in [
        (lambda: xp.nonzero(tenon.tensor(1)), ValueError, "nonzero: expected an array of at least 1 dimension, got 0"),
        (lambda: xp.take(T, tenon.tensor([0])), ValueError, "take: `axis` must be given for an array of 3 dimensions"),
        (lambda: xp.take(T, tenon.tensor([0]), axis=3), IndexError, "take: `axis` 3 is out of range for an array of 3 dimensions"),
        (lambda: xp.take_along_axis(T, tenon.tensor([0])), ValueError, "take_along_axis: expected `indices` of as many dimensions as `x`, got 1 and 3"),
        (lambda: xp.squeeze(T, 0), ValueError, "squeeze: dimension 0 has 2 elements, not 1"),
        (lambda: xp.prod(T, axis=5), IndexError, "5"),
        (lambda: xp.prod(T, axis=-4), IndexError, "-4"),
        (lambda: xp.expand_dims(T, 5), IndexError, "5"),
        (lambda: xp.reshape(T, (5, 5)), (ValueError, RuntimeError), "shape"),
        (lambda: xp.cumulative_sum(T), ValueError, "cumulative_sum: `axis` must be given for an array of 3 dimensions"),
        (lambda: xp.nonsense, AttributeError, "module 'tenon.array_api' has no attribute 'nonsense'"),
        (lambda: xp.sum(T, 0), TypeError, "positional"),
        (lambda: xp.iinfo(xp.float32), TypeError, "iinfo: expected an integer dtype"),
        (lambda: xp.isdtype("nonsense", "integral"), TypeError, "dtype"),
        (lambda: xp.finfo(xp.int8), TypeError, "finfo: expected a floating dtype"),
        (lambda: bool(T), (ValueError, RuntimeError), "ambiguous|one element|element"),
        (lambda: float(tenon.tensor(1j)), (TypeError, RuntimeError, ValueError), "complex"),
    ]:
        with pytest.raises(error, match=text):
            call()
