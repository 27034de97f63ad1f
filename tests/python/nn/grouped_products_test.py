"""Products of groups, a layer with its loss, gradients of convolutions, and batch norms in the weights before them."""

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F
from tenon import nn

RNG = np.random.default_rng(8)


def tensor(*shape):
    return tenon.tensor(RNG.standard_normal(shape))


def test_products_of_groups():
    a, b, ends = RNG.standard_normal((6, 3)), RNG.standard_normal((2, 3, 4)), [2, 5]
    got = F.grouped_mm(tenon.tensor(a), tenon.tensor(b), offs=tenon.tensor(ends, dtype=tenon.int32))
    np.testing.assert_allclose(got.numpy(), np.concatenate([a[:2] @ b[0], a[2:5] @ b[1], np.zeros((1, 4))]))
    c, d = RNG.standard_normal((2, 4, 3)), RNG.standard_normal((3, 5))
    got = F.grouped_mm(tenon.tensor(c), tenon.tensor(d), offs=tenon.tensor(ends, dtype=tenon.int32))
    np.testing.assert_allclose(got.numpy(), np.concatenate([c[0] @ d[:, :2], c[1] @ d[:, 2:]], 1))
    e, f = RNG.standard_normal((4, 5)), RNG.standard_normal((5, 3))
    got = F.grouped_mm(tenon.tensor(e), tenon.tensor(f), offs=tenon.tensor(ends, dtype=tenon.int32))
    np.testing.assert_allclose(got.numpy(), np.stack([e[:, :2] @ f[:2], e[:, 2:] @ f[2:]]))
    got = F.grouped_mm(tenon.tensor(c), tenon.tensor(b), out_dtype=tenon.float32)
    np.testing.assert_allclose(got.numpy(), c @ b, rtol=1e-5, atol=1e-6)
    assert got.dtype is tenon.float32


def test_a_layer_with_its_loss():
    x, w, b, y = tensor(5, 3), tensor(4, 3), tensor(4), tenon.tensor([0, 3, 1, 1, 2])
    assert F.linear_cross_entropy(x, w, y, linear_bias=b).equal(F.cross_entropy(F.linear(x, w, b), y))
    images = tensor(4, 2, 3)
    want = F.cross_entropy(F.linear(x, images.reshape(8, 3)).reshape(5, 4, 2), tenon.stack([y, y], 1), ignore_index=1)
    assert F.linear_cross_entropy(x, images, tenon.stack([y, y], 1), ignore_index=1).equal(want)
    module = nn.LinearCrossEntropyLoss(3, 4, bias=True, dtype=tenon.float64)
    assert module(x, y).equal(F.linear_cross_entropy(x, module.linear.weight, y, linear_bias=module.linear.bias))
    assert list(module.state_dict()) == ["linear.weight", "linear.bias"] and "num_classes=4, out_features=()" in repr(module)
    assert nn.LinearCrossEntropyLoss(3, 4, out_features=(2,))(x.float(), tenon.stack([y, y], 1)).shape == ()


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions(rank):
    x, w = tensor(2, 4, *[6] * rank).requires_grad_(), tensor(2, 2, *[2] * rank).requires_grad_()
    y = getattr(F, f"conv{rank}d")(x, w, None, 2, 1, 1, 2)
    grad = tensor(*y.shape)
    y.backward(grad)
    assert getattr(nn.grad, f"conv{rank}d_input")(x.shape, w, grad, 2, 1, 1, 2).equal(x.grad)
    assert getattr(nn.grad, f"conv{rank}d_weight")(x, w.shape, grad, 2, 1, 1, 2).equal(w.grad)


@pytest.mark.parametrize("transpose", [False, True])
def test_batch_norms_in_the_weights_before_them(transpose):
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(3, 4, 2, bias=transpose, dtype=tenon.float64).eval()
    norm = nn.BatchNorm2d(4, dtype=tenon.float64).eval()
    for value in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data):
        value.uniform_(0.5, 2)
    x = tensor(2, 3, 5, 5)
    fused = nn.utils.fuse_conv_bn_eval(conv, norm, transpose)
    np.testing.assert_allclose(fused(x).detach().numpy(), norm(conv(x)).detach().numpy(), atol=1e-10)
    line, flat = nn.Linear(3, 4, dtype=tenon.float64).eval(), nn.BatchNorm1d(4, affine=False, dtype=tenon.float64).eval()
    flat.running_mean.uniform_()
    np.testing.assert_allclose(nn.utils.fusion.fuse_linear_bn_eval(line, flat)(x[0, :, :, 0].T).detach().numpy(),
                               flat(line(x[0, :, :, 0].T)).detach().numpy(), atol=1e-10)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda o: F.grouped_mm(o(2), o(2, 2)), RuntimeError, "with 2 or 3 dimensions"),
        (lambda o: F.grouped_mm(o(2, 3), o(2, 2)), RuntimeError, "the last size of mat_a"),
        (lambda o: F.grouped_mm(o(2, 2), o(2, 2), bias=o(2)), NotImplementedError, "bias is not supported"),
        (lambda o: F.grouped_mm(o(1, 2, 2), o(1, 2, 2), offs=o(1)), RuntimeError, "offs must be None"),
        (lambda o: F.grouped_mm(o(2, 2), o(2, 2)), RuntimeError, "offs must be given"),
        (lambda o: F.grouped_mm(o(2, 2), o(2, 2), offs=o(1)), RuntimeError, "offs must be a vector of int32"),
        (lambda o: F.grouped_mm(o(2, 2), o(2, 2), offs=o(2).int() * 3), RuntimeError, "offs must ascend from 0 to at most 2"),
        (lambda o: F.grouped_mm(o(2, 2), o(2, 2, 2), offs=o(1).int()), RuntimeError, "offs must have 2 numbers"),
        (lambda o: F.linear_cross_entropy(o(2, 3), o(4, 2), o(2).long()), RuntimeError, r"linear_weight \[C, ..., in_features\]"),
        (lambda o: F.linear_cross_entropy(o(2, 2, 3), o(4, 3), o(2, 4).long()), RuntimeError, r"^linear_cross_entropy: expected input .*, got \[2, 2, 3\] and \[4, 3\]"),
        (lambda o: F.linear_cross_entropy(o(3), o(4, 5, 3), o(4, 5)), RuntimeError, r"or input \[in_features\] and linear_weight \[C, in_features\]"),
        (lambda o: F.linear_cross_entropy(o(2, 3), o(4, 3), o(2).long(), linear_bias=o(3)), RuntimeError, r"linear_bias must be \[4\]"),
        (lambda o: F.linear_cross_entropy(o(2, 3), o(4, 3), o(2).long(), options=1), NotImplementedError, "give None"),
        (lambda o: nn.LinearCrossEntropyLoss(2, 3, options=1), NotImplementedError, "LinearCrossEntropyLoss: options"),
        (lambda o: nn.LinearCrossEntropyLoss(2, 3, weight=o(2)), RuntimeError, r"weight must be \[3\]"),
        (lambda o: nn.LinearCrossEntropyLoss(2, 3, label_smoothing=2.0), RuntimeError, "label_smoothing must be between"),
        (lambda o: nn.grad.conv2d_input([1, 2, 3], o(2, 2, 2, 2), o(1, 2, 2, 2)), ValueError, "that of 4 dimensions"),
        (lambda o: nn.grad.conv2d_weight(o(1, 2), [1, 2, 3, 3], o(1, 2, 2, 2)), RuntimeError, "input must have 4 dimensions"),
        (lambda o: nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)), ValueError, "call eval"),
        (lambda o: nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1, track_running_stats=False).eval()), ValueError,
         "must have running statistics"),
        (lambda o: nn.utils.fuse_linear_bn_eval(nn.Linear(1, 3).eval(), nn.BatchNorm1d(2).eval()), ValueError, "out_features, 3, or 1"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text):
        call(lambda *shape: tenon.ones(*shape))
