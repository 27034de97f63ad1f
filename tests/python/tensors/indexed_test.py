"""Reading and writing by index: what is checked before anything is written, which write stays, threads, memory that is shared."""

import numpy as np
import pytest

import tenon

RNG = np.random.default_rng(11)


def _calls(index):
    """Every operator that writes by index, as (name of the argument, function of a [4, 3] tensor)."""
    along = index.reshape([-1, 1]).expand(-1, 3)
    rows = tenon.ones(index.numel(), 3)
    return {
        "index_put_": ("indices", lambda x: x.index_put_((index,), rows)),
        "index_put_ adding": ("indices", lambda x: x.index_put_((index,), rows, True)),
        "index_add_": ("index", lambda x: x.index_add_(0, index, rows)),
        "index_copy_": ("index", lambda x: x.index_copy_(0, index, rows)),
        "index_fill_": ("index", lambda x: x.index_fill_(0, index, 2)),
        "scatter_": ("index", lambda x: x.scatter_(0, along, rows)),
        "scatter_ value": ("index", lambda x: x.scatter_(0, along, 2)),
        "scatter_add_": ("index", lambda x: x.scatter_add_(0, along, rows)),
        "scatter_reduce_": ("index", lambda x: x.scatter_reduce_(0, along, rows, "prod", include_self=False)),
        "scatter_reduce_ mean": ("index", lambda x: x.scatter_reduce_(0, along, rows, "mean")),
        "setitem": ("indices", lambda x: x.__setitem__(index, 2)),
        "gather out": ("index", lambda x: tenon.gather(tenon.ones(4, 3), 0, along, out=x[: along.shape[0]])),
        "index_select out": ("index", lambda x: tenon.index_select(tenon.ones(4, 3), 0, index, out=x[: index.numel()])),
        "scatter out": ("index", lambda x: tenon.scatter(tenon.ones(4, 3), 0, along, rows, out=x)),
        "index_add out": ("index", lambda x: tenon.index_add(tenon.ones(4, 3), 0, index, rows, out=x)),
    }


@pytest.mark.parametrize("dtype", [tenon.int64, tenon.int32])
@pytest.mark.parametrize("name", _calls(tenon.tensor([0])))
def test_an_index_out_of_range_is_found_before_anything_is_written(name, dtype):
    argument, call = _calls(tenon.tensor([0, 1, 7], dtype=dtype))[name]
    x = tenon.zeros(4, 3)
    with pytest.raises(IndexError, match=f"`{argument}`.*index 7 is out of bounds for dimension 0 with size 4"):
        call(x)
    assert not x.any()


@pytest.mark.parametrize("name", [n for n in _calls(tenon.tensor([0])) if n.startswith(("index_a", "index_c", "scatter"))])
def test_negative_positions_are_refused_where_pytorch_refuses_them(name):
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        _calls(tenon.tensor([-1]))[name][1](tenon.zeros(4, 3))


def test_positions_in_the_flattened_tensor_are_counted_in_errors():
    x = tenon.zeros(2, 3)
    with pytest.raises(IndexError, match="take: `index`: index 6 is out of bounds for a tensor of 6 elements"):
        tenon.take(x, tenon.tensor([0, 6]))
    with pytest.raises(IndexError, match="put_: `index`: index -7 is out of bounds for a tensor of 6 elements"):
        x.put_(tenon.tensor([1, -7]), tenon.ones(2))
    assert not x.any()
    x.put_(tenon.tensor([-1, -6]), tenon.tensor([5.0, 7.0]))
    assert x.tolist() == [[7, 0, 0], [0, 0, 5]]


def test_an_index_counts_even_where_nothing_is_read():
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        tenon.zeros(3, 0)[tenon.tensor([5])]
    with pytest.raises(IndexError, match="index 0 is out of bounds for dimension 0 with size 0"):
        tenon.zeros(0, 3).index_select(0, tenon.tensor([0]))


def test_of_several_writes_to_a_place_the_last_one_stays():
    index = tenon.tensor(RNG.integers(0, 5, 4000))
    values = tenon.arange(4000)
    want = np.zeros(5, np.int64)
    for i, v in zip(index.tolist(), range(4000)):
        want[i] = v
    for write in (
        lambda x: x.index_put_((index,), values),
        lambda x: x.index_copy_(0, index, values),
        lambda x: x.scatter_(0, index, values),
        lambda x: x.put_(index, values),
    ):
        x = tenon.zeros(5, dtype=tenon.int64)
        assert write(x).tolist() == want.tolist()


@pytest.fixture
def threads():
    before = tenon.get_num_threads()
    yield tenon.set_num_threads
    tenon.set_num_threads(before)


@pytest.mark.parametrize("shape", [(7,), (100003,), (50, 64), (5000, 3), (3, 40000), (4, 5, 600)])
def test_bits_do_not_depend_on_threads(shape, threads):
    n = 200000 // max(int(np.prod(shape[1:])), 1)
    rows = tenon.tensor(RNG.integers(0, shape[0], n))
    source = tenon.tensor(RNG.standard_normal((n, *shape[1:])).astype(np.float32))
    along = tenon.tensor(RNG.integers(0, shape[0], (n, *shape[1:])))
    flat = tenon.tensor(RNG.integers(0, int(np.prod(shape)), source.numel()))

    def results():
        x = tenon.ones(shape)
        return [
            x.index_add(0, rows, source),
            x.index_put((rows,), source),
            x.scatter_add(0, along, source),
            x.scatter_reduce(0, along, source, "prod"),
            x.scatter_reduce(0, along, source, "amax"),
            x.put(flat, source, accumulate=True),
            source.gather(0, along % n),
            x[rows],
            x.take(flat),
        ]

    threads(1)
    one = results()
    for count in (2, 3):
        threads(count)
        for a, b in zip(one, results()):
            assert np.array_equal(a.numpy(), b.numpy(), equal_nan=True)
    want = np.ones(shape, np.float32)
    np.add.at(want, rows.numpy(), source.numpy())  # in ascending order too
    assert np.array_equal(one[0].numpy(), want)


def test_a_source_and_an_index_may_share_memory_with_what_is_written():
    x = tenon.arange(6)
    x.index_copy_(0, tenon.tensor([0, 1, 2, 3, 4, 5]), x.flip(0))
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    x = tenon.tensor([1, 2, 0])
    x.index_copy_(0, x, tenon.tensor([7, 8, 9]))
    assert x.tolist() == [9, 7, 8]
    x = tenon.tensor([2, 2, 0, 1])
    x.scatter_add_(0, x, x)
    assert x.tolist() == [2, 3, 4, 1]  # each index and source as they were
    x = tenon.arange(12.0).reshape(3, 4)
    x[tenon.tensor([0, 1])] = x[1:]
    assert x.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11], [8, 9, 10, 11]]
    x = tenon.arange(4.0)
    x[x > 1] = x[1]
    assert x.tolist() == [0, 1, 1, 1]
    m = tenon.tensor([True, False, True])
    m[m] = False
    assert m.tolist() == [False, False, False]


def test_one_element_tensors():
    x, zero = tenon.tensor(3.0), tenon.tensor(0)
    assert x.gather(0, zero).item() == 3 and x.gather(0, zero).shape == ()
    assert x.gather(0, tenon.tensor([0, 0])).tolist() == [3, 3]
    assert x.scatter(0, zero, tenon.tensor(5.0)).item() == 5
    assert x.scatter_add(0, zero, tenon.tensor(5.0)).item() == 8
    assert x.scatter_reduce(0, zero, tenon.tensor(5.0), "prod").item() == 15
    assert x.index_select(0, zero).item() == 3
    assert x.index_fill(0, zero, 2).item() == 2
    assert x.index_copy(0, zero, tenon.tensor(4.0)).item() == 4
    assert x.index_add(0, zero, tenon.tensor(4.0), alpha=2).item() == 11
    assert x.take(zero).item() == 3 and x.take(tenon.tensor([0, -1])).tolist() == [3, 3]
    assert x.put(zero, tenon.tensor(9.0)).item() == 9
    assert x.masked_scatter(tenon.tensor(True), tenon.tensor([6.0])).item() == 6
    assert x.take_along_dim(zero, 0).item() == 3
    x.masked_fill_(tenon.tensor(True), 1)
    assert x.item() == 1


def test_a_mask_among_other_indices():
    a = np.arange(48).reshape(2, 3, 4, 2)
    t, mask = tenon.tensor(a), np.array([[True, False, False, True], [False, True, True, False], [True, True, False, False]])
    m = tenon.tensor(mask)
    for key, of in (((slice(None), m), (slice(None), mask)), ((0, m), (0, mask)), ((slice(None), m, 1), (slice(None), mask, 1))):
        assert t[key].tolist() == a[of].tolist()
        for value in (7, [1, 2]):
            if len(key) == 3 and value != 7:
                continue
            ours, want = t.clone(), a.copy()
            ours[key] = tenon.tensor(value)
            want[of] = value
            assert ours.tolist() == want.tolist()
    rows = tenon.tensor([True, False])
    ours, want = t.clone(), a.copy()
    ours[rows] = tenon.arange(24).reshape(3, 4, 2)
    want[[True, False]] = np.arange(24).reshape(3, 4, 2)
    assert ours.tolist() == want.tolist()
    ours[tenon.tensor([False, False])] = 5
    assert ours.tolist() == want.tolist()


def test_assignment_at_a_mask_has_a_gradient():
    x = tenon.ones(2, 3, dtype=tenon.float64, requires_grad=True)
    v = tenon.tensor([5.0, 6.0, 7.0], dtype=tenon.float64, requires_grad=True)
    y = x * 2
    y[tenon.tensor([True, False])] = v
    (y * tenon.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=tenon.float64)).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [8, 10, 12]] and v.grad.tolist() == [1, 2, 3]


def test_reductions_of_what_is_scattered():
    x, index = tenon.tensor([1.0, 2.0, 3.0]), tenon.tensor([0, 0, 2])
    src = tenon.tensor([4.0, 6.0, float("nan")])
    got = {r: x.scatter_reduce(0, index, src, r, include_self=i).tolist() for r in ("sum", "mean", "amax") for i in (False,)}
    assert got["sum"][:2] == [10, 2] and got["mean"][:2] == [5, 2] and got["amax"][:2] == [6, 2]
    assert all(np.isnan(v[2]) for v in got.values())
    ints = tenon.tensor([-7, 5]).scatter_reduce(0, tenon.tensor([0, 0]), tenon.tensor([2, 1]), "mean")
    assert ints.tolist() == [-2, 5]  # rounded down
    many = tenon.zeros(1, dtype=tenon.bfloat16).scatter_reduce(0, tenon.zeros(1000, dtype=tenon.int64), tenon.zeros(1000, dtype=tenon.bfloat16) + 0, "mean")
    assert many.tolist() == [0]
    with pytest.raises(ValueError, match="`reduce` must be sum, prod, mean, amax or amin, got 'max'"):
        x.scatter_reduce(0, index, src, "max")
    with pytest.raises(ValueError, match="`reduce` must be add or multiply"):
        x.scatter(0, index, src, reduce="sum")


def test_one_hot():
    one_hot = tenon.nn.functional.one_hot
    assert one_hot(tenon.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert one_hot(tenon.tensor(1), 3).tolist() == [0, 1, 0]
    assert one_hot(tenon.zeros(0, 2, dtype=tenon.int64), 4).shape == (0, 2, 4)
    for wrong, text in (([-1], "class -1 in `self` is negative"), ([3], "class 3 in `self` is out of range for `num_classes` 3")):
        with pytest.raises(IndexError, match=text):
            one_hot(tenon.tensor(wrong), 3)
    with pytest.raises(ValueError, match="give `num_classes`"):
        one_hot(tenon.zeros(0, dtype=tenon.int64))
    with pytest.raises(TypeError, match="int32 or int64"):
        one_hot(tenon.tensor([1.0]))


def test_too_few_elements_for_a_mask():
    x = tenon.zeros(3)
    with pytest.raises(RuntimeError, match="`source` has 1 elements, and 2 elements of `mask` are true"):
        x.masked_scatter_(tenon.tensor([True, True, False]), tenon.ones(1))
    assert not x.any()


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16])
def test_many_halves_at_one_place_are_added_in_float32(dtype):
    """Sums of terms around 1, which would stop growing at 256 (bfloat16) if each were rounded."""
    terms = tenon.tensor(RNG.uniform(0.5, 1.5, 6000)).to(dtype)
    index = tenon.tensor(RNG.integers(0, 3, 6000))
    zeros = tenon.zeros(3, dtype=dtype)
    sums = np.bincount(index.numpy(), terms.double().numpy(), 3)
    means = sums / np.bincount(index.numpy(), minlength=3)

    def gradient(select):
        x = zeros.clone().requires_grad_()
        select(x).backward(terms)
        return x.grad

    for found, want in (
        (zeros.scatter_add(0, index, terms), sums),
        (zeros.clone().scatter_add_(0, index, terms), sums),
        (zeros.index_add(0, index, terms, alpha=-1), -sums),
        (zeros.scatter_reduce(0, index, terms, "sum"), sums),
        (zeros.scatter_reduce(0, index, terms, "mean", include_self=False), means),
        (gradient(lambda x: x.gather(0, index)), sums),
        (gradient(lambda x: x.index_select(0, index)), sums),
        (gradient(lambda x: x[index]), sums),
        (gradient(lambda x: tenon.nn.functional.embedding(index, x.unsqueeze(1)).squeeze(1)), sums),
    ):
        assert found.dtype is dtype
        np.testing.assert_allclose(found.double().numpy(), want, rtol=tenon.finfo(dtype).eps)


def test_index_fill_counts_negative_positions_from_the_end():
    x = np.arange(12.0).reshape(3, 4)
    want = x.copy()
    want[:, [-1, 0, -3]] = 9
    index = tenon.tensor([-1, 0, -3])
    assert tenon.tensor(x).index_fill(1, index, 9).tolist() == want.tolist()
    assert tenon.tensor(x).index_fill_(1, index, tenon.tensor(9.0)).tolist() == want.tolist()
    t = tenon.tensor(x, requires_grad=True)
    value = tenon.tensor(9.0, requires_grad=True)
    t.index_fill(1, index, value).sum().backward()
    assert t.grad.tolist() == [[0, 0, 1, 0]] * 3 and value.grad.item() == 9
    for position in (-5, 4):
        with pytest.raises(IndexError, match=f"index_fill: .*{position}"):
            tenon.tensor(x).index_fill(1, tenon.tensor([position]), 9)


def test_take_along_dim_counts_negative_positions_from_the_end():
    x = np.arange(12.0).reshape(3, 4)
    for axis, index in ((1, [[-1, 0], [1, -4], [2, -2]]), (0, [[-1, 0, -3, 2]]), (None, [-1, -12, 5])):
        for dtype in (tenon.int64, tenon.int32):
            got = tenon.take_along_dim(tenon.tensor(x), tenon.tensor(index, dtype=dtype), axis)
            assert got.tolist() == np.take_along_axis(x, np.array(index), axis).tolist()
    t = tenon.tensor(x, requires_grad=True)
    tenon.take_along_dim(t, tenon.tensor([[-1], [0], [-1]]), 1).sum().backward()
    assert t.grad.tolist() == [[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]]
    # PyTorch takes any position along a dimension modulo its size.
    for position in (-5, 4):
        with pytest.raises(IndexError, match=f"{position}"):
            tenon.take_along_dim(tenon.tensor(x), tenon.tensor([[position]]), 1)
    with pytest.raises(IndexError, match="-1"):
        tenon.gather(tenon.tensor(x), 1, tenon.tensor([[-1]]))
