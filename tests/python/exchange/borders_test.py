"""Tensors from and to other libraries: buffers, DLPack, NumPy's array interface, ml_dtypes, the array API, einops, notebooks."""

import gc
import importlib.util
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tenon

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]
LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "negative": lambda a: a[::-1, ::-1],
    "stepped": lambda a: a[:, ::2],
    "broadcast": lambda a: np.broadcast_to(a[0], (4, a.shape[1])),
    "vector": lambda a: a[1],
    "scalar": lambda a: a[1, 2],
    "empty": lambda a: a[:0],
}


class Exports:
    """An array behind one protocol alone."""

    def __init__(self, array, protocol):
        self._array = array
        setattr(type(self), protocol, property(lambda self: getattr(self._array, protocol)))


def behind(protocol, value):
    return type("Only", (Exports,), {})(value, protocol)


def numbers(dtype):
    return (np.arange(24).reshape(4, 6) % 7).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("protocol", ["buffer", "__array_interface__"])
def test_every_dtype_and_layout_comes_in(protocol, dtype, layout):
    source = np.asarray(LAYOUTS[layout](numbers(dtype)))
    given = memoryview(source) if protocol == "buffer" and source.size else source
    if protocol != "buffer":
        given = behind(protocol, source)
    for make in (tenon.tensor, tenon.as_tensor, tenon.asarray):
        got = make(given)
        assert got.dtype is getattr(tenon, dtype) and tuple(got.shape) == source.shape
        np.testing.assert_array_equal(got.numpy(), source)
        shares = source.size > 0 and np.shares_memory(got.numpy(), source)
        assert shares == (make is not tenon.tensor and source.size > 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_exporters_come_in(dtype):
    source = numbers(dtype)

    class Only:
        def __dlpack__(self, **options):
            return source.__dlpack__(**options)

        def __dlpack_device__(self):
            return source.__dlpack_device__()

    for make in (tenon.tensor, tenon.as_tensor, tenon.asarray):
        np.testing.assert_array_equal(make(Only()).numpy(), source)
    shared = tenon.asarray(Only())
    assert np.shares_memory(shared.numpy(), source)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_is_a_buffer(dtype, layout):
    base = numbers(dtype)
    source = np.asarray(LAYOUTS[layout](base))
    view = memoryview(tenon.asarray(source))
    assert view.shape == source.shape and view.strides == source.strides or source.size == 0
    assert view.itemsize == source.itemsize and view.nbytes == source.nbytes
    assert view.readonly == (not source.flags.writeable)
    np.testing.assert_array_equal(np.asarray(view), source)


def test_writes_through_a_buffer_reach_the_tensor():
    t = tenon.zeros(2, 3)
    memoryview(t).cast("B").cast("f", (2, 3))[1, 2] = 5.0
    assert t.tolist() == [[0, 0, 0], [0, 0, 5]]
    assert bytes(tenon.tensor([1, 2], dtype=tenon.uint8)) == b"\x01\x02"


def test_a_buffer_keeps_the_memory_and_the_memory_keeps_its_owner():
    view = memoryview(tenon.arange(5, dtype=tenon.int64))
    gc.collect()
    assert view.tolist() == [0, 1, 2, 3, 4]
    for share in (tenon.as_tensor, tenon.asarray, lambda a: tenon.frombuffer(a, dtype=tenon.float64)):
        owner = np.ones(3)
        alive = weakref.ref(owner)
        t = share(owner)
        del owner
        gc.collect()
        assert alive() is not None and t.tolist() == [1.0, 1.0, 1.0]
        del t
        gc.collect()
        assert alive() is None


def test_buffers_that_a_tensor_does_not_have_are_refused():
    for t, why in [
        (tenon.ones(2, requires_grad=True), "requires grad"),
        (tenon.ones(2, dtype=tenon.bfloat16), "bfloat16"),
        (tenon.empty(2, device="meta"), "meta"),
    ]:
        with pytest.raises(BufferError, match=why):
            memoryview(t)
    read_only = np.arange(3)
    read_only.flags.writeable = False
    with pytest.raises((BufferError, TypeError)):
        open("/dev/zero", "rb").readinto(tenon.asarray(read_only))


def test_a_buffer_whose_elements_overlap_is_read_only():
    for t in (tenon.ones(1).expand(3), tenon.arange(5.0).as_strided((3, 3), (1, 1)), tenon.zeros(2, 1).expand(2, 4)[1:]):
        assert memoryview(t).readonly and memoryview(t).tolist() == t.tolist()
        with pytest.raises((BufferError, TypeError), match="read-only|read-write|same memory"):
            open("/dev/zero", "rb").readinto(t)
    for t in (tenon.ones(1).expand(1), tenon.arange(6.0).reshape(2, 3).T, tenon.ones(1, 3).expand(1, 3)):
        assert not memoryview(t).readonly


def test_read_only_memory_stays_so():
    source = np.arange(3.0)
    source.flags.writeable = False
    for given in (source, behind("__array_interface__", source), memoryview(source)):
        t = tenon.asarray(given)
        with pytest.raises(RuntimeError, match="may only be read"):
            t.add_(1)
        tenon.tensor(given).add_(1)
    assert memoryview(tenon.frombuffer(b"1234", dtype=tenon.int32)).readonly


def test_other_byte_orders_are_converted_where_a_copy_may_be_made():
    source = np.arange(4.0, dtype=">f4")
    for make in (tenon.tensor, tenon.as_tensor, tenon.asarray):
        assert make(source).tolist() == [0, 1, 2, 3]
    for make in (tenon.from_numpy, lambda a: tenon.asarray(a, copy=False)):
        with pytest.raises(TypeError, match="big-endian"):
            make(source)
    with pytest.raises(TypeError, match="big-endian"):
        tenon.asarray(behind("__array_interface__", source))


def test_strides_between_elements_are_copied_where_a_copy_may_be_made():
    records = np.zeros(3, dtype=[("a", "i1"), ("b", "<f4")])
    records["b"] = [1, 2, 3]
    assert tenon.as_tensor(records["b"]).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="no multiple"):
        tenon.from_numpy(records["b"])
    with pytest.raises(TypeError, match="no dtype here"):
        tenon.tensor(records)


def test_asarray_copies_as_it_is_told():
    source = np.arange(3.0)
    assert not np.shares_memory(tenon.asarray(source, copy=True).numpy(), source)
    assert tenon.asarray(source, dtype="float32").dtype is tenon.float32
    assert tenon.asarray([1, 2]).tolist() == [1, 2] and tenon.asarray(2.5).shape == ()
    for wrong in (lambda: tenon.asarray(source, dtype=tenon.int64, copy=False), lambda: tenon.asarray([1], copy=False)):
        with pytest.raises(ValueError, match="copy=False"):
            wrong()
    t = tenon.ones(2)
    assert tenon.asarray(t).data_ptr() == t.data_ptr()
    assert tenon.asarray(source, requires_grad=True).requires_grad


def test_frombuffer_reads_bytes():
    data = bytearray(np.arange(6, dtype=np.int16).tobytes())
    t = tenon.frombuffer(data, dtype=tenon.int16, count=3, offset=2)
    assert t.tolist() == [1, 2, 3]
    t[0] = 9
    assert data[2] == 9
    for options, why in [
        ({"dtype": tenon.int32, "offset": 2}, "whole number"),
        ({"dtype": tenon.int16, "count": 7}, "need more"),
        ({"dtype": tenon.int16, "offset": 13}, "beyond"),
        ({"dtype": tenon.int16, "offset": 1, "count": 2}, "aligned"),
    ]:
        with pytest.raises(ValueError, match=why):
            tenon.frombuffer(data, **options)
    with pytest.raises(TypeError, match="dtype"):
        tenon.frombuffer(data)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_ml_dtypes_both_ways(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    theirs = getattr(ml_dtypes, name)
    source = np.array([[0.0, 1.0, -2.0], [0.5, 4.0, 6.0]]).astype(theirs)
    for layout in (source, source.T, source[::-1], source[:, ::2], source[0, 1:2].reshape(())):
        for make in (tenon.tensor, tenon.as_tensor, tenon.asarray, tenon.from_numpy):
            t = make(layout)
            assert t.dtype is getattr(tenon, name)
            back = t.numpy()
            assert back.dtype == theirs
            np.testing.assert_array_equal(back.astype(np.float64), layout.astype(np.float64))
    assert np.shares_memory(tenon.as_tensor(source).numpy(), source)
    assert np.asarray(tenon.as_tensor(source)).dtype == theirs


def test_dtypes_have_numpy_s_names():
    for given, wanted in [
        ("float32", tenon.float32), ("bool", tenon.bool), ("bfloat16", tenon.bfloat16), (np.float32, tenon.float32),
        (np.int64, tenon.int64), (np.uint16, tenon.uint16), (np.dtype("uint8"), tenon.uint8), (np.dtype("<f8"), tenon.float64),
        (np.complex64, tenon.complex64), (float, tenon.float64),
    ]:  # fmt: skip
        assert tenon.zeros(2, dtype=given).dtype is wanted
        assert tenon.ones(2).to(given).dtype is wanted
    assert tenon.ones(2).to("cpu").dtype is tenon.float32
    for ambiguous in ("float", "long", "int", "f4", np.dtype(">f4"), np.longdouble, np.dtype([("a", "i4")]), "nonsense"):
        with pytest.raises(TypeError, match="dtype"):
            tenon.zeros(2, dtype=ambiguous)


def test_ml_dtypes_name_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert tenon.zeros(2, dtype=ml_dtypes.bfloat16).dtype is tenon.bfloat16
    assert tenon.zeros(2, dtype=np.dtype(ml_dtypes.bfloat16)).dtype is tenon.bfloat16


# The array API

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.5, -6.0]])
CALLS = {
    "sum": [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}],
    "mean": [{}, {"axis": -1}],
    "prod": [{}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}],
    "std": [{}, {"axis": 0, "correction": 1.0}],
    "var": [{}, {"axis": 1, "keepdims": True}],
    "max": [{}, {"axis": 1}],
    "min": [{}, {"axis": (0,)}],
    "argmax": [{}, {"axis": 0}],
    "argmin": [{}, {"axis": 1, "keepdims": True}],
    "flip": [{}, {"axis": 1}],
    "sort": [{}, {"axis": 0}],
    "argsort": [{}, {"axis": 0}],
    "cumulative_sum": [{"axis": 1}, {"axis": 0, "include_initial": True}],
    "cumulative_prod": [{"axis": 1}, {"axis": 0, "include_initial": True}],
    "positive": [{}],
    "diff": [{}, {"axis": 0}, {"n": 2}, {"n": 9}],
    "unstack": [{}, {"axis": 1}],
    "matrix_transpose": [{}],
    "nonzero": [{}],
}


@pytest.mark.parametrize("name", CALLS)
def test_the_array_api_s_functions_are_numpy_s(name):
    x = tenon.asarray(X)
    xp = x.__array_namespace__(api_version="2024.12")
    for options in CALLS[name]:
        got, want = getattr(xp, name)(x, **options), getattr(np, name)(X, **options)
        if not isinstance(got, tuple):
            got, want = [got], [want]
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g.numpy(), w, rtol=1e-12)


def test_the_array_api_reduces_over_no_dimensions_element_by_element():
    xp = tenon.ones(1).__array_namespace__()
    for x in (np.array([[2, 0], [5, 7]], np.int32), np.array(3, np.int32), np.array([1.5, 0.0]), np.array(2.5, np.float32)):
        t = tenon.tensor(x)
        for name in ("sum", "prod", "max", "min", "any", "all", "count_nonzero", *(["mean", "std", "var"] * (x.dtype.kind == "f"))):
            for keepdims in (False, True):
                got, want = getattr(xp, name)(t, axis=(), keepdims=keepdims), getattr(np, name)(x, axis=(), keepdims=keepdims)
                assert got.shape == want.shape and np.array_equal(got.numpy(), want), (name, x)
            if x.ndim == 0:
                assert np.array_equal(getattr(xp, name)(t).numpy(), getattr(np, name)(x)), (name, x)


def test_the_array_api_s_sums_of_narrow_integers_are_of_the_default_integer_dtype():
    xp = tenon.ones(1).__array_namespace__()
    for dtype in (tenon.int8, tenon.int16, tenon.int32, tenon.int64):
        for shape in ((), (1,), (2, 3)):
            x = tenon.ones(shape, dtype=dtype)
            assert xp.sum(x).dtype is xp.prod(x).dtype is tenon.int64
            assert xp.sum(x, axis=()).dtype is xp.prod(x, axis=()).dtype is tenon.int64
            if shape:
                assert xp.sum(x, axis=0).dtype is xp.prod(x, axis=0).dtype is xp.cumulative_sum(x, axis=0).dtype is tenon.int64
            assert xp.prod(x, dtype=tenon.int32).dtype is xp.sum(x, dtype=tenon.int32).dtype is tenon.int32
    for dtype in (tenon.float32, tenon.float64, tenon.complex64):
        x = tenon.ones((), dtype=dtype)
        assert xp.sum(x).dtype is xp.prod(x).dtype is dtype
    with pytest.raises(ValueError, match="cumulative_sum: `axis` must be given for an array of 2 dimensions"):
        xp.cumulative_sum(tenon.ones(2, 2))


@pytest.mark.parametrize(("a", "b"), [("uint8", "uint8"), ("uint8", "int8"), ("int32", "int64"), ("float32", "float64"), ("float32", "complex64")])
def test_the_array_api_s_products_have_the_promoted_dtype(a, b):
    xp = tenon.ones(1).__array_namespace__()
    x, y = np.arange(6).reshape(2, 3).astype(a), np.arange(3).astype(b)
    for name, arguments in (("vecdot", (x, y)), ("vecdot", (y, x)), ("matmul", (x, y)), ("matmul", (y, x.T))):
        got, want = getattr(xp, name)(*map(tenon.tensor, arguments)), getattr(np, name)(*arguments)
        assert str(got.dtype) == f"tenon.{want.dtype}" and np.array_equal(got.numpy(), want), name
    got, want = xp.tensordot(tenon.tensor(x), tenon.tensor(y), axes=1), np.tensordot(x, y, axes=1)
    assert str(got.dtype) == f"tenon.{want.dtype}" and np.array_equal(got.numpy(), want)


def test_the_array_api_s_result_type_takes_any_number_of_arguments():
    """Expected dtypes are the standard's: 0-dim arrays are arrays; a number matters where its kind is above all others'."""
    xp = tenon.ones(1).__array_namespace__()
    zero = tenon.tensor(1.0, dtype=tenon.float64)
    for arguments, want in [
        ((tenon.int8,), tenon.int8),
        ((tenon.int8, tenon.uint8), tenon.int16),
        ((tenon.int8, tenon.int32, tenon.int16), tenon.int32),
        ((tenon.float32, zero), tenon.float64),
        ((tenon.ones(2), tenon.float32, zero, tenon.float32), tenon.float64),
        ((tenon.ones(2), tenon.complex64, zero), tenon.complex128),
        ((tenon.int8, 1000), tenon.int8),
        ((1000, tenon.int8, True), tenon.int8),
        ((tenon.float32, 1.5, 2), tenon.float32),
        ((tenon.float64, 1.5), tenon.float64),
        ((tenon.float32, 1j), tenon.complex64),
        ((1.5, tenon.float64, 1j), tenon.complex128),
        ((tenon.complex64, 1.5), tenon.complex64),
        ((tenon.bool, True), tenon.bool),
        ((tenon.bool, 1), tenon.int64),
        ((tenon.int32, 1.5), tenon.float32),
        ((tenon.int32, 1j), tenon.complex64),
        ((tenon.float32, np.float64(2)), tenon.float32),
    ]:
        assert xp.result_type(*arguments) is want, arguments
    with pytest.raises(ValueError, match="result_type: expected an array or a dtype among the arguments, got 2 numbers"):
        xp.result_type(1, 2.5)
    with pytest.raises(TypeError, match="result_type: expected arrays, dtypes and numbers, got str as argument 1"):
        xp.result_type(tenon.int8, "int8")


def test_the_array_api_s_functions_take_the_standard_s_arguments():
    xp = tenon.ones(1).__array_namespace__()
    x = np.arange(6.0).reshape(2, 3)
    t = tenon.tensor(x)
    for got, want in [
        (xp.expand_dims(t), x[None]),
        (xp.expand_dims(t, axis=1), x[:, None]),
        (xp.permute_dims(t, axes=(1, 0)), x.T),
        (xp.roll(t, shift=1), np.roll(x, 1)),
        (xp.roll(t, shift=(1, 2), axis=(0, 1)), np.roll(x, (1, 2), (0, 1))),
        (xp.reshape(t, shape=(3, 2), copy=True), x.reshape(3, 2)),
        (xp.broadcast_to(t, shape=(2, 2, 3)), np.broadcast_to(x, (2, 2, 3))),
        (xp.linspace(0, 1, num=4, endpoint=False), np.linspace(0, 1, 4, endpoint=False)),
        (xp.linspace(0, 1, 4), np.linspace(0, 1, 4)),
        (xp.eye(3, 4, k=1), np.eye(3, 4, 1)),
        (xp.eye(3, k=-2), np.eye(3, k=-2)),
        (xp.eye(2, k=5), np.eye(2, k=5)),
        (xp.arange(0, stop=3, step=2), np.arange(0, 3, 2)),
        (xp.arange(3), np.arange(3)),
        (xp.arange(3, 1), np.arange(3, 1)),
        (xp.arange(0, -3, -1), np.arange(0, -3, -1)),
        (xp.full(shape=(2,), fill_value=7), np.full(2, 7)),
        (xp.full(2, 1.5), np.full(2, 1.5)),
        (xp.ones(shape=2, dtype=xp.int8), np.ones(2, np.int8)),
        (xp.zeros((2, 1)), np.zeros((2, 1))),
        (xp.tril(t, k=1), np.tril(x, 1)),
        (xp.triu(t, k=-1), np.triu(x, -1)),
        (xp.clip(t), x),
        (xp.clip(t, 1, tenon.tensor([3.0, 4.0, 5.0])), np.clip(x, 1, [3, 4, 5])),
        (xp.clip(t, max=2), np.clip(x, None, 2)),
        (xp.atan2(t, 2), np.arctan2(x, 2)),
        (xp.hypot(2, t), np.hypot(2, x)),
        (xp.logaddexp(t, 1.5), np.logaddexp(x, 1.5)),
        (xp.logical_xor(t > 2, True), np.logical_xor(x > 2, True)),
        (xp.diff(t, axis=0, prepend=t[:1], append=t * 2), np.diff(x, axis=0, prepend=x[:1], append=x * 2)),
        (xp.take_along_axis(t, tenon.tensor([[0, -1], [1, 1]])), np.take_along_axis(x, np.array([[0, -1], [1, 1]]), -1)),
        (xp.take_along_axis(t, tenon.tensor([[1, 0, -1]]), axis=0), np.take_along_axis(x, np.array([[1, 0, -1]]), 0)),
    ]:
        assert got.dtype in (tenon.float32, xp.asarray(want).dtype)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert xp.empty(3).shape == (3,) and xp.finfo(t).bits == 64 and xp.iinfo(tenon.ones(1, dtype=tenon.int8)).max == 127
    assert xp.can_cast(t, xp.float64) and not xp.can_cast(t, xp.float32) and xp.can_cast(xp.int8, xp.int16)
    assert xp.reshape(t, (6,), copy=False).data_ptr() == t.data_ptr() != xp.reshape(t, (6,), copy=True).data_ptr()
    with pytest.raises(ValueError, match=r"reshape: copy=False, but \(3, 2\) with these strides is no view as \(6,\)"):
        xp.reshape(t.mT, (6,), copy=False)


def test_the_array_api_has_versions_and_kinds_of_dtypes():
    xp = tenon.ones(1).__array_namespace__()
    assert xp is tenon.ones(2).__array_namespace__(api_version="2023.12")
    with pytest.raises(ValueError, match="1999.1"):
        tenon.ones(1).__array_namespace__(api_version="1999.1")
    assert xp.concat([tenon.ones(1), tenon.zeros(2)]).tolist() == [1, 0, 0]
    assert xp.astype(tenon.ones(1), tenon.int64).dtype is tenon.int64
    assert xp.isdtype(tenon.int8, "integral") and not xp.isdtype(tenon.float32, ("bool", "integral"))
    assert xp.__array_namespace_info__().dtypes(kind="bool") == {"bool": tenon.bool}
    assert xp.meshgrid(tenon.arange(2), tenon.arange(3))[0].shape == (3, 2)
    assert [xp.pi, xp.inf, xp.newaxis] == [np.pi, np.inf, None]


# einops

EINOPS = """
import sys
{first}
import numpy as np
{second}
from einops import rearrange, reduce, repeat, einsum, pack
x = tenon.arange(24, dtype=tenon.float32).view(2, 3, 4)
n = x.numpy()
for pattern in ("a b c -> (a c) b", "a (b 1) c -> c a b", "a b (c d) -> a (b d) c"):
    options = {{"d": 2}} if "d" in pattern else {{}}
    assert np.array_equal(rearrange(x, pattern, **options).numpy(), rearrange(n, pattern, **options)), pattern
for operation in ("sum", "mean", "max", "min", "prod"):
    got, want = reduce(x, "a b c -> b", operation), reduce(n, "a b c -> b", operation)
    assert np.allclose(got.numpy(), want), operation
assert repeat(x, "a b c -> a b (c r)", r=2).shape == (2, 3, 8)
assert einsum(x, x, "a b c, a d c -> a b d").shape == (2, 3, 3)
assert pack([x, x], "* c")[0].shape == (12, 4)
y = rearrange(tenon.ones(2, 3, requires_grad=True), "a b -> (b a)").sum()
y.backward()
print("einops" if "einops" in sys.modules else "none")
"""


@pytest.mark.parametrize("order", ["import tenon\nassert 'einops' not in sys.modules\n import einops", "import einops\n import tenon"])
def test_einops_takes_tensors_whichever_is_imported_first(order):
    pytest.importorskip("einops")
    first, second = order.split("\n ")
    done = subprocess.run(
        [sys.executable, "-c", EINOPS.format(first=first, second=second)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "einops"


EINOPS_LAYERS = """
import tenon as torch
from {module} import EinMix, Rearrange, Reduce
import numpy as np, pickle
torch.manual_seed(0)
x = torch.randn(2, 3, 4, 4)
n = x.numpy()
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 3, padding=1), Reduce("b c (h h2) (w w2) -> b c h w", "max", h2=2, w2=2),
    Rearrange("b c h w -> b (c h w)"), torch.nn.Linear(24, 5),
)
assert len([*model.parameters()]) == 4 and "Rearrange('b c h w -> b (c h w)')" in repr(model)
model(x).square().sum().backward()
assert all(p.grad is not None for p in model.parameters())
pooled = n.reshape(2, 3, 2, 2, 2, 2).max((3, 5))
assert np.array_equal(Reduce("b c (h h2) (w w2) -> b c h w", "max", h2=2, w2=2)(x).numpy(), pooled)
assert np.array_equal(Rearrange("b c h w -> h (b w) c")(x).numpy(), n.transpose(2, 0, 3, 1).reshape(4, 8, 3))
assert np.array_equal(pickle.loads(pickle.dumps(Rearrange("a b c d -> (a b) (c d)")))(x).numpy(), n.reshape(6, 16))
mix = EinMix("b c h w -> b h w k", weight_shape="c k", bias_shape="k", c=3, k=7)
want = np.einsum("bchw,ck->bhwk", n, mix.weight.detach().numpy()) + mix.bias.detach().numpy().reshape(7)
assert np.allclose(mix(x).detach().numpy(), want, atol=1e-5) and [*mix.state_dict()] == ["weight", "bias"]
heads = EinMix("b (g c) h w -> b (g k) h w", weight_shape="g c k", g=3, c=1, k=2)
want = np.einsum("bghw,gk->bgkhw", n, heads.weight.detach().numpy()[:, 0]).reshape(2, 6, 4, 4)
assert np.allclose(heads(x).detach().numpy(), want, atol=1e-5) and heads.bias is None
import tenon.einops_layers
assert Rearrange is tenon.einops_layers.Rearrange
"""


@pytest.mark.parametrize("module", ["einops.layers.tenon", "einops.layers.torch"])
def test_the_layers_of_einops(module):
    """Under PyTorch's name where there is no PyTorch: programs import them so."""
    pytest.importorskip("einops")
    if module.endswith("torch") and importlib.util.find_spec("torch"):
        pytest.skip("PyTorch is there, whose layers these are then")
    done = subprocess.run([sys.executable, "-c", EINOPS_LAYERS.format(module=module)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Notebooks


def test_notebooks_show_a_table():
    text = tenon.tensor([[1.5, 2.0], [3.0, 4.0]])._repr_html_()
    assert "Tensor: 2 x 2, float32, cpu" in text and "<td>1.5</td>" in text and text.count("<tr>") == 2
    assert tenon.arange(100)._repr_html_().count("<td>") == 11 and "&hellip;" in tenon.arange(100)._repr_html_()
    assert "<pre>" in tenon.zeros(2, 2, 2)._repr_html_() and "meta" in tenon.empty(2, device="meta")._repr_html_()
    assert "Parameter" in tenon.nn.Parameter(tenon.ones(2))._repr_html_()
