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
