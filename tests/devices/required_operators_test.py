"""Row X1: the operators that every device has, each as PyTorch's documentation of them describes it. A device brings memory,
copies of bytes and streams; Tenon makes these of them."""

import pytest

import tenon

aten = tenon.ops.aten


def on(device, values, **options):
    return tenon.tensor(values, device=device, **options)


@pytest.fixture(autouse=True)
def nothing_falls_back(request):
    """Not one of them runs on host copies, save in the test that asks for it."""
    tenon.reset_fallbacks()
    yield
    if "fallback" not in request.node.name:
        assert not tenon.fallbacks()


def test_empty_memory_format(device):
    x = aten.empty.memory_format([2, 3, 4, 5], dtype=tenon.float64, device=device)
    assert x.shape == (2, 3, 4, 5) and x.stride() == (60, 20, 5, 1) and x.dtype is tenon.float64 and x.device.type == device
    y = aten.empty.memory_format([2, 3, 4, 5], device=device, memory_format=tenon.channels_last)
    assert y.stride() == (60, 1, 15, 3) and y.dtype is tenon.get_default_dtype()
    assert aten.empty.memory_format([0, 3], device=device).numel() == 0 and aten.empty.memory_format([], device=device).dim() == 0
    assert x.untyped_storage().nbytes() == 8 * 120 and x.data_ptr() % 64 == 0
    with pytest.raises((RuntimeError, ValueError), match="negative|-1"):
        aten.empty.memory_format([2, -1], device=device)


def test_empty_strided(device):
    x = aten.empty_strided([2, 3], [1, 4], dtype=tenon.int16, device=device)
    assert x.stride() == (1, 4) and x.untyped_storage().nbytes() == 2 * (1 + 1 * 1 + 2 * 4) and x.storage_offset() == 0
    x.fill_(3)
    assert x.tolist() == [[3] * 3] * 2
    with pytest.raises((RuntimeError, ValueError)):
        aten.empty_strided([2, 3], [1], device=device)


def test_as_strided(device):
    base = on(device, list(range(10)))
    x = aten.as_strided(base, [2, 3], [1, 2], 1)
    assert x.tolist() == [[1, 3, 5], [2, 4, 6]] and x.data_ptr() == base.data_ptr() + 8
    x[0, 0] = 70
    assert base[1].item() == 70, "a view"
    assert aten.as_strided(base[4:], [2], [1]).tolist() == [4, 5], "from the tensor's own offset"
    with pytest.raises((RuntimeError, ValueError), match="storage"):
        aten.as_strided(base, [4], [5])


def test_view(device):
    base = on(device, list(range(12)))
    x = aten.view(base, [3, -1])
    assert x.shape == (3, 4) and x.data_ptr() == base.data_ptr() and x[2].tolist() == [8, 9, 10, 11]
    assert aten.view(x[:, :2], [3, 2, 1]).stride() == (4, 1, 1)
    with pytest.raises((RuntimeError, ValueError), match="view"):
        aten.view(x.t(), [12])


def test_reshape_alias(device):
    base = on(device, list(range(6)))
    x = aten._reshape_alias(base, [2, 3], [3, 1])
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x.data_ptr() == base.data_ptr()
    x.add_(1)
    assert base.tolist() == [1, 2, 3, 4, 5, 6]


def test_resize_(device):
    x = on(device, [1, 2, 3, 4])
    y = x[:2]
    assert aten.resize_(x, [2, 4]) is x and x.shape == (2, 4) and x[0].tolist() == [1, 2, 3, 4], "bytes stay"
    assert x.untyped_storage().nbytes() == 8 * 8
    x[0, 0] = 9
    assert y.tolist() == [9, 2], "views share the larger storage"
    aten.resize_(x, [1])
    assert x.tolist() == [9] and x.untyped_storage().nbytes() == 8 * 8, "a storage does not shrink"
    assert aten.resize_(on(device, [1, 2]).view(2, 1), [0]).numel() == 0


def test_copy_from(device):
    """copy(self, dst): writes dst, and returns it."""
    for source in (tenon.arange(6.0).view(2, 3).t(), tenon.arange(6).view(3, 2), on(device, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])):
        dst = tenon.zeros(2, 3, device=device).t()
        assert aten._copy_from(source, dst) is dst or aten._copy_from(source, dst).data_ptr() == dst.data_ptr()
        assert dst.cpu().equal(source.cpu().float())
    host = tenon.zeros(2)
    aten._copy_from(on(device, [5, 6]), host, non_blocking=True)
    getattr(tenon, device).synchronize()
    assert host.tolist() == [5, 6]


def test_copy_from_and_resize(device):
    dst = tenon.empty(0, device=device)
    got = aten._copy_from_and_resize(tenon.arange(6.0).view(2, 3), dst)
    assert dst.shape == (2, 3) and dst.tolist() == [[0, 1, 2], [3, 4, 5]] and got.data_ptr() == dst.data_ptr()
    host = tenon.empty(0)
    aten._copy_from_and_resize(dst, host)
    assert host.equal(dst.cpu())


def test_local_scalar_dense(device):
    for value, dtype in ((3, tenon.int64), (2.5, tenon.float16), (True, tenon.bool), (1 + 2j, tenon.complex64), (-1, tenon.int8)):
        number = aten._local_scalar_dense(on(device, [value, value], dtype=dtype)[1])
        assert number == value and type(number) is type(value)
    with pytest.raises((RuntimeError, ValueError), match="elements"):
        on(device, [1, 2]).item()


def test_set_source_tensor(device):
    source, x = on(device, [[1, 2], [3, 4]]).t(), tenon.empty(0, dtype=tenon.int64, device=device)
    assert x.set_(source) is x
    assert x.shape == (2, 2) and x.stride() == (1, 2) and x.data_ptr() == source.data_ptr()
    x.fill_(7)
    assert source.tolist() == [[7, 7], [7, 7]]


def test_set_source_storage(device):
    source, x = on(device, [1.0, 2.0, 3.0]), tenon.empty(0, device=device)
    assert x.set_(source.untyped_storage()) is x
    assert x.tolist() == [1, 2, 3] and x.data_ptr() == source.data_ptr() and x.storage_offset() == 0


def test_set_source_storage_storage_offset(device):
    source, x = on(device, [1.0, 2.0, 3.0, 4.0]), tenon.empty(0, device=device)
    x.set_(source.untyped_storage(), 1, [2], [2])
    assert x.tolist() == [2, 4] and x.storage_offset() == 1
    x.fill_(0)
    assert source.tolist() == [1, 0, 3, 0]
    with pytest.raises((RuntimeError, ValueError)):
        x.set_(source.untyped_storage(), 1, [2], [-2])


def test_the_fallback(device):
    """What the device has no kernel for runs on host copies, and is counted."""
    x = on(device, [[3.0, 1.0], [2.0, 5.0]])
    values, indices = tenon.sort(x.t(), dim=1)
    assert values.device == indices.device == x.device and values.tolist() == [[2, 3], [1, 5]] and indices.tolist() == [[1, 0], [0, 1]]
    counts = {name: row["calls"] for name, row in tenon.fallbacks(device).items()}
    assert counts and set(counts.values()) == {1} and all("sort" in name for name in counts)


def test_every_one_has_a_kernel_for_the_device_and_the_table_says_where(device):
    (key,) = [key for name, key in tenon.dispatch.backends() if name == device]
    for name in ("empty.memory_format", "empty_strided", "as_strided", "view", "_reshape_alias", "resize_", "_copy_from",
                 "_copy_from_and_resize", "_local_scalar_dense", "set_.source_Tensor", "set_.source_Storage",
                 "set_.source_Storage_storage_offset"):  # fmt: skip
        assert tenon.dispatch.has_kernel_for_key(name, key), name
        cell = {c.key: c for c in tenon.dispatch.computed_table(name)}[key]
        assert cell.source != "fallback" and cell.file, name
    assert tenon.dispatch.has_fallback(key) and key in tenon.dispatch.keys()
