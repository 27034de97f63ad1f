"""Corners where a choice must be made, and PyTorch's is expected; the figures are PyTorch 2.15's."""

import numpy as np
import pytest

import tenon
from tenon import nn
from tenon.nn import functional as F


def test_gradients_at_corners():
    x = tenon.tensor([-1.0, 0.0, 6.0, 3.0], requires_grad=True)
    F.relu6(x).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 1]
    x.grad = None
    F.rrelu(x, 0.25, 0.75).sum().backward()
    assert x.grad.tolist() == [0.5, 0.5, 1, 1]
    assert str(F.relu6(tenon.tensor(-0.0)).item()) == "-0.0"


def test_gradients_at_nan():
    x = tenon.tensor([float("nan"), -4.0, 0.0, 4.0], requires_grad=True)
    y = F.hardsigmoid(x)
    y.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), [np.nan, 0, 0.5, 1])
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 1 / 6, 0], rtol=1e-6)
    for name, slope in {"hardtanh": 1, "relu6": 1, "hardshrink": 1, "softshrink": 0, "hardswish": np.nan, "elu": np.nan, "celu": np.nan}.items():
        x = tenon.full((33,), np.nan, requires_grad=True)
        getattr(F, name)(x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), slope)
    # The element, its bounds, and the gradients of the three.
    for *operands, gradients in (
        (np.nan, 0.0, 2.0, [1, 0, 0]), (1.0, np.nan, 2.0, [1, 0, 0]), (3.0, np.nan, 2.0, [0, 0, 0]), (1.0, 0.0, np.nan, [1, 0, 0]),
        (-1.0, 0.0, np.nan, [0, 0, 0]), (np.nan, np.nan, np.nan, [1, 0, 0]), (-1.0, 0.0, np.inf, [0, 1, 0]),
        (np.nan, 3.0, 1.0, [1, 0, 1]),
    ):  # fmt: skip
        tensors = [tenon.tensor([v], requires_grad=True) for v in operands]
        y = tenon.clamp(*tensors)
        y.backward(tenon.ones(1))
        assert [t.grad.item() for t in tensors] == gradients and y.isnan().item() == bool(np.isnan(operands).any())


@pytest.mark.parametrize(("name", "alpha", "scale"), [("elu", 1, 1), ("celu", 2, 1), ("selu", 1, 1.7580993408473766), ("expm1", 1, 1)])
def test_gradients_of_exponentials_keep_their_digits_far_below_zero(name, alpha, scale):
    x = tenon.tensor([-80.0, -40.0, -20.0, -17.0, -1.0], requires_grad=True)
    function = getattr(tenon, name)
    in_place = getattr(tenon, name + "_", tenon.Tensor.expm1_)
    want = scale * np.exp(x.detach().double().numpy() / alpha)
    for y in (function(x, alpha) if name == "celu" else function(x), in_place(x * 1, alpha) if name == "celu" else in_place(x * 1)):
        (first,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(first.detach().numpy(), want, rtol=1e-6)
        np.testing.assert_allclose(tenon.autograd.grad(first.sum(), x)[0].numpy(), want / alpha, rtol=1e-6)


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16])
def test_rms_norm_of_half_types_uses_the_epsilon_of_float32(dtype):
    x = tenon.tensor([1e-3, 1e-3]).to(dtype)
    of_float64 = x.double().numpy()
    want = of_float64 / np.sqrt((of_float64**2).mean() + 2.0**-23)
    np.testing.assert_allclose(F.rms_norm(x, (2,)).double().numpy(), want, rtol=2.0**-8)


def test_norms_of_few_values():
    m = nn.BatchNorm1d(2)
    assert m(tenon.ones(0, 2)).shape == (0, 2)
    assert m.running_mean.tolist() == [0, 0] and m.running_var.tolist() == [1, 1]
    with pytest.raises(ValueError, match="batch_norm: expected more than 1 value"):
        m(tenon.ones(1, 2))
    with pytest.raises(ValueError, match="group_norm: expected more than 1 value"):
        F.group_norm(tenon.ones(1, 2), 2)
    assert F.group_norm(tenon.ones(1, 2), 1).tolist() == [[0, 0]]
    assert F.group_norm(tenon.ones(0, 2), 2).shape == (0, 2)
    for shape in ((2, 0, 3), (2, 0), (2, 4, 0), (0, 4, 0)):
        for function in (F.group_norm, tenon.group_norm):
            with pytest.raises(RuntimeError, match="^group_norm: expected `input` to have channels, and elements in each of them, got "):
                function(tenon.ones(*shape), 2)


@pytest.mark.parametrize("norm", [nn.BatchNorm2d(8), nn.BatchNorm2d(8).eval(), nn.Softmax2d(), nn.LogSoftmax(1)], ids=str)
def test_channels_last_stays(norm):
    x = tenon.randn(2, 8, 4, 4)
    got = norm(x.contiguous(memory_format=tenon.channels_last))
    assert got.is_contiguous(memory_format=tenon.channels_last)
    assert norm(x).is_contiguous()
    assert got.tolist() == norm(x).tolist()


def test_cosine_similarity_broadcasts():
    a, b = np.arange(1.0, 7).reshape(3, 2), np.ones((1, 2))
    want = (a * b).sum(0) / np.sqrt((a**2).sum(0) * (np.broadcast_to(b, a.shape) ** 2).sum(0))
    got = F.cosine_similarity(tenon.from_numpy(a), tenon.from_numpy(b), dim=0)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    assert F.cosine_similarity(tenon.ones(3, 2), tenon.ones(2), dim=1).shape == (3,)
    with pytest.raises(TypeError, match="cosine_similarity: expected floating-point"):
        F.cosine_similarity(tenon.ones(2, dtype=tenon.int64), tenon.ones(2, dtype=tenon.int64), dim=0)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax, F.softmin])
def test_softmax_without_a_dimension_warns(function):
    for shape, dim in [((3,), 0), ((2, 3), 1), ((2, 3, 2), 0), ((2, 2, 2, 2), 1)]:
        x = tenon.randn(shape)
        with pytest.warns(UserWarning, match="give `dim`"):
            got = function(x)
        assert got.tolist() == function(x, dim).tolist()


def test_a_part_does_not_replace_one_of_another_kind():
    m = nn.Module()
    m.a = nn.Linear(2, 2)
    for register in (lambda: m.register_buffer("a", tenon.ones(1)), lambda: m.register_parameter("a", None)):
        with pytest.raises(KeyError, match="exists already"):
            register()
    assert list(m.state_dict()) == ["a.weight", "a.bias"]


@pytest.mark.parametrize("low", [True, False])
def test_places_of_triangles(low):
    indices, of_numpy = (tenon.tril_indices, np.tril_indices) if low else (tenon.triu_indices, np.triu_indices)
    for row in (0, 1, 3, 5):
        for col in (0, 1, 4):
            for offset in range(-6, 7):
                want = np.stack(of_numpy(row, offset, col)) if row and col else np.empty((2, 0))
                assert indices(row, col, offset).tolist() == want.tolist(), (row, col, offset)
    for side in (2**33, 2**62):
        with pytest.raises((ValueError, RuntimeError, MemoryError), match="indices|allocator"):
            indices(side, side)


def test_a_window_without_elements_is_refused():
    """PyTorch gives -inf, and its backward writes outside of the gradient."""
    with pytest.raises(ValueError, match="max_pool2d: with padding 1 and dilation 2 a window lies beside dimension 2"):
        F.max_pool2d(tenon.ones(1, 1, 1, 4), (2, 1), 1, (1, 0), (2, 1))
    assert F.max_pool2d(tenon.ones(1, 1, 2, 4), (2, 1), 1, (1, 0), (2, 1)).shape == (1, 1, 2, 4)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_pool_is_padded_by_half_of_its_kernel_at_most(rank):
    x = tenon.ones((1, 1) + (9,) * rank)
    text = f"pool{rank}d.*: `padding` must be at most half of `kernel_size`, got padding 2 and kernel_size 3$"
    for name, options in (("max", {}), ("max", {"dilation": 2}), ("max", {"return_indices": True}), ("avg", {})):
        with pytest.raises(ValueError, match=text):
            getattr(F, f"{name}_pool{rank}d")(x, 3, padding=2, **options)
    assert F.max_pool2d(tenon.ones(1, 1, 9, 9), 3, 1, 1, 2).shape == (1, 1, 7, 7)


INF, NAN = float("inf"), float("nan")


def _signs(t):
    return tenon.copysign(tenon.ones_like(t), t).tolist()


def _products(rows):
    """prod of rows, in every way that they are walked: along, across, of all, of half types, recorded, in a larger program."""
    x = tenon.tensor(rows)
    yield x.prod(1)
    yield x.t().contiguous().prod(0)
    yield tenon.stack([row.prod() for row in x])
    yield tenon.stack([x, x], 2)[:, :, 0].prod(1)
    yield x.flip(1).contiguous().flip(1).prod(1)
    yield x.double().prod(1, dtype=tenon.float32)
    yield tenon.stack([x] * 40, 2).prod(1)[:, 0]
    yield tenon.compile(lambda x: (x.abs() * x.sign().where(x != 0, x)).prod(1))(x)
    yield tenon.compile(lambda x: (x.abs() * x.sign().where(x != 0, x)).prod(0))(x.t().contiguous())


def test_a_product_that_overflows_beside_a_zero_is_zero():
    # 130 numbers; more than one chunk of the tree; signs count.
    long = [1e30] * 3000
    long[2500] = 0.0
    assert tenon.arange(130.0).prod().item() == 0
    assert tenon.arange(130.0).flip(0).prod().item() == 0
    assert tenon.arange(130.0, dtype=tenon.float16).prod().item() == 0
    assert tenon.arange(1.0, 130.0).prod().item() == INF
    assert tenon.tensor(long).prod().item() == 0 and tenon.tensor([long] * 20).prod(1).tolist() == [0] * 20
    rows = [[0.0] + [1e30] * 40, [1e30] * 40 + [-0.0], [-1e30] + [1e30] * 39 + [0.0], [1e30] * 41]
    for got in _products(rows):
        assert got.tolist() == [0, 0, 0, INF] and _signs(got)[:3] == [1, -1, -1]


def test_a_product_whose_lanes_overflow_and_vanish_is_taken_in_order():
    # In 16 lanes, every other one is infinite or zero; in order the product is 1.
    rows = [[1e30, 1e-30] * 40, [INF] + [1e-30] * 79, [0.0] + [INF] + [1e30] * 78, [NAN] + [1.0] * 79, [1e30, 1e-30] * 39 + [-2.0, 1.0]]
    for got in _products(rows):
        assert np.array_equal(got.numpy(), np.array([1, INF, NAN, NAN, -2], np.float32), equal_nan=True)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_gradients_of_variances_with_a_correction_above_the_count(name):
    x = tenon.tensor([[1.0, 2.0, 4.0], [3.0, 3.0, 3.0]], requires_grad=True)
    spread = getattr(tenon, name)(x, 1, correction=4)
    spread = spread[0] if isinstance(spread, tuple) else spread
    assert np.array_equal(spread.detach().numpy(), [INF, NAN], equal_nan=True)
    spread.sum().backward()
    if name.startswith("var"):
        # 2 / (3 - 4) times the distances from 7 / 3.
        np.testing.assert_allclose(x.grad[0].numpy(), [8 / 3, 2 / 3, -10 / 3], rtol=1e-6)
        assert x.grad[1].tolist() == [0, 0, 0] and _signs(x.grad[1]) == [-1, -1, -1]
    else:
        assert x.grad[0].tolist() == [0, 0, 0] and x.grad[1].isnan().all()
    # Over all elements, the slope is infinite.
    y = tenon.tensor([1.0, 1.0], requires_grad=True)
    tenon.var(y, correction=3).backward()
    assert y.grad.isnan().all()


X = [-1.0, 0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("gradient", [INF, NAN])
@pytest.mark.parametrize(
    ("function", "operands", "want"),
    [
        # 1 where the gradient goes, 0 where nothing does, for each operand.
        (tenon.clamp, (X, [1.0] * 5, [1.0] * 5), ("00100", "11000", "00011")),
        (tenon.clamp, (X, [1.0] * 5, [2.0] * 5), ("00110", "11100", "00011")),
        (tenon.clamp, (X, [2.0] * 5, [1.0] * 5), ("00000", "00000", "11111")),
        (tenon.clamp_min, (X, [1.0] * 5), ("00111", "11100")),
        (tenon.clamp_max, (X, [1.0] * 5), ("11100", "00111")),
        (tenon.maximum, (X, [1.0] * 5), ("00111", "11100")),
        (tenon.minimum, (X, [1.0] * 5), ("11100", "00111")),
        (tenon.fmax, (X, [1.0] * 5), ("00111", "11100")),
        (lambda x: tenon.clamp(x, 0, 2), (X,), ("00100",)),
        (lambda x: tenon.clamp(x, 1, 1), (X,), ("00000",)),
        (F.hardtanh, (X,), ("01000",)),
        (F.relu6, (X,), ("00111",)),
        (F.relu, (X,), ("00111",)),
        (lambda x: F.threshold(x, 1, 9), (X,), ("00011",)),
        (lambda x: F.hardshrink(x, 1), (X,), ("00011",)),
        (lambda x: F.softshrink(x, 1), (X,), ("00011",)),
        (lambda x: F.hardsigmoid(3 * x), (X,), ("01000",)),
        (lambda x: tenon.where(x > 1, x, 0.0), (X,), ("00011",)),
        (lambda x: x.masked_fill(x > 1, 0), (X,), ("11100",)),
    ],
)
def test_what_bounds_keep_out_gets_no_gradient_whatever_it_is(function, operands, want, gradient):
    leaves = [tenon.tensor(x, requires_grad=True) for x in operands]
    result = function(*leaves)
    result.backward(tenon.full_like(result, gradient))
    got = ["".join("0" if g == 0 else "1" for g in x.grad.tolist()) for x in leaves]
    assert got == list(want)
