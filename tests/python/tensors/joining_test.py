"""Joins, splits, grids and triangles as Python calls them, and views as another dtype, against NumPy."""

import numpy as np
import pytest

import tenon


def test_any_number_of_tensors():
    x, y = tenon.tensor(1.0), tenon.ones(2)
    assert [t.shape for t in tenon.atleast_2d(x, y)] == [(1, 1), (1, 2)] and tenon.atleast_1d(x).shape == (1,)
    assert [tuple(t.shape) for t in tenon.atleast_3d([x, y])] == [(1, 1, 1), (1, 2, 1)]
    a, b = tenon.broadcast_tensors(tenon.ones(3, 1), tenon.arange(2))
    assert a.shape == b.shape == (3, 2)
    assert tenon.broadcast_shapes((3, 1), (2,), 1) == (3, 2) and tenon.broadcast_shapes() == ()
    with pytest.raises(RuntimeError, match="do not broadcast"):
        tenon.broadcast_shapes((2,), (3,))
    for indexing in ("ij", "xy"):
        grids = tenon.meshgrid(tenon.arange(3), tenon.arange(2), tenon.arange(4), indexing=indexing)
        for grid, want in zip(grids, np.meshgrid(np.arange(3), np.arange(2), np.arange(4), indexing=indexing)):
            np.testing.assert_array_equal(grid.numpy(), want)
    with pytest.raises(ValueError, match="indexing must be 'xy' or 'ij', got 'zz'"):
        tenon.meshgrid(tenon.arange(2), indexing="zz")
    assert tenon.meshgrid(tenon.arange(3), tenon.arange(2), indexing=None)[0].shape == (3, 2)
    assert tenon.cartesian_prod(tenon.arange(2), tenon.arange(2)).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert tenon.block_diag(tenon.ones(1, 2), tenon.tensor(3.0)).tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]


def test_splits():
    x = tenon.arange(24).reshape(4, 3, 2)
    a = np.arange(24).reshape(4, 3, 2)
    for got, want in [
        (tenon.tensor_split(x, 3), np.array_split(a, 3)),
        (tenon.tensor_split(x, (1, 3), 0), np.array_split(a, [1, 3])),
        (x.tensor_split(tenon.tensor([1, 2]), 1), np.array_split(a, [1, 2], 1)),
        (tenon.hsplit(x, 3), np.hsplit(a, 3)),
        (x.vsplit([1, 2]), np.vsplit(a, [1, 2])),
        (x.dsplit(2), np.dsplit(a, 2)),
    ]:
        assert len(got) == len(want)
        for g, w in zip(got, want):
            np.testing.assert_array_equal(g.numpy(), w)
    assert [p.data_ptr() - x.data_ptr() for p in tenon.tensor_split(x, 2)] == [0, 12 * 8]
    with pytest.raises(ValueError, match="dimension 1 of size 3 cannot be divided into 2 equal parts"):
        tenon.hsplit(x, 2)
    with pytest.raises(ValueError, match="sections must be positive, got 0"):
        tenon.tensor_split(x, 0)


def test_repetitions():
    x = tenon.tensor([[1, 2], [3, 4]])
    assert tenon.repeat_interleave(x, 2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert x.repeat_interleave(tenon.tensor([1, 2]), dim=0).tolist() == [[1, 2], [3, 4], [3, 4]]
    assert tenon.repeat_interleave(tenon.tensor([0, 2, 1])).tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match="must not be negative, got -1 at 1"):
        tenon.repeat_interleave(tenon.tensor([1, -1]))
    with pytest.raises(ValueError, match="output_size is 3, and `repeats` add up to 2"):
        tenon.repeat_interleave(tenon.tensor([1, 1]), output_size=3)


def test_triangles_and_places():
    x = tenon.arange(12.0).reshape(3, 4)
    assert tenon.tril(x, -1).tolist() == np.tril(np.arange(12.0).reshape(3, 4), -1).tolist()
    y = x.clone()
    assert y.triu_(1) is y and y.tolist() == np.triu(np.arange(12.0).reshape(3, 4), 1).tolist()
    assert tenon.tril(tenon.full((2, 2), float("nan"))).tolist()[0][1] == 0.0
    assert tenon.tril(tenon.ones(2, 2, dtype=tenon.bool)).dtype is tenon.bool
    assert tenon.triu_indices(3, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert tenon.tril_indices(2, 3, dtype=tenon.int32).dtype is tenon.int32
    # Rows without a place take no time.
    assert tenon.tril_indices(2**62, 2, -(2**62) + 2).tolist() == [[2**62 - 2, 2**62 - 1, 2**62 - 1], [0, 0, 1]]
    assert tenon.triu_indices(2**62, 2).tolist() == [[0, 0, 1], [0, 1, 1]] and tenon.triu_indices(2**62, 3, 2**62).shape == (2, 0)
    assert tenon.tril_indices(3, 3, 2**62).shape == (2, 9) and tenon.triu_indices(3, 3, 2**62).shape == (2, 0)
    assert [t.tolist() for t in tenon.where(tenon.tensor([[0, 1], [2, 0]]))] == [[0, 1], [1, 0]]
    for call in (lambda: tenon.tril(tenon.ones(3)), lambda: tenon.tril_indices(-1, 2)):
        with pytest.raises((ValueError, RuntimeError)):
            call()


def test_views_as_another_dtype():
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7.5
    x = tenon.tensor(values)
    assert x.view(tenon.int32).numpy().tolist() == values.view(np.int32).tolist()
    assert x.view(tenon.uint8).numpy().tolist() == values.view(np.uint8).tolist()
    assert x.view(tenon.int64).numpy().tolist() == values.view(np.int64).tolist()
    assert x[:, 1:].view(tenon.int16).numpy().tolist() == values[:, 1:].view(np.int16).tolist()
    assert x.transpose(0, 1).view(tenon.float64).numpy().tolist() == values.transpose(1, 0, 2).view(np.float64).tolist()
    y = x.view(tenon.int32)
    y.zero_()
    assert not x.any() and tenon.ones(2).view(dtype=tenon.int32).tolist() == [0x3F800000] * 2
    for call, message in [
        (lambda: x[..., ::2].view(tenon.int16), "the last dimension must have stride 1"),
        (lambda: x[..., :3].view(tenon.int64), "must be multiples of 2"),
        (lambda: x[..., 1:3].view(tenon.int64), "must be multiples of 2"),
        (lambda: tenon.tensor(1.0).view(tenon.int64), "a 0-dim tensor cannot be viewed as int64"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=message):
            call()


def test_copies_with_one_part_replaced():
    x = tenon.zeros(3, 4, requires_grad=True)
    src = tenon.ones(3, requires_grad=True)
    y = tenon.diagonal_scatter(x, src)
    y.sum().backward()
    assert y.tolist() == np.eye(3, 4).tolist() and src.grad.tolist() == [1.0] * 3
    assert x.grad.tolist() == (1 - np.eye(3, 4)).tolist()
    assert tenon.select_scatter(tenon.zeros(2, 2), tenon.ones(2), 1, -1).tolist() == [[0.0, 1.0]] * 2
    assert tenon.slice_scatter(tenon.zeros(4), tenon.ones(2), step=2).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert tenon.diag(tenon.tensor([1, 2]), 1).tolist() == [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    assert tenon.ones(2).new_tensor([1, 2]).dtype is tenon.float32
    with pytest.raises(ValueError, match=r"select_scatter: expected `src` of shape \[2\], got \[3\]"):
        tenon.select_scatter(tenon.zeros(2, 2), tenon.ones(3), 0, 0)
