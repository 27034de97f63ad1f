"""Images at places: grid_sample and affine_grid, maxima put back, windows at random distances, and neighbouring channels."""

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F

RNG = np.random.default_rng(5)


def tensor(*shape):
    return tenon.tensor(RNG.standard_normal(shape))


def test_a_grid_of_the_identity_gives_the_image_and_its_gradient():
    x = tensor(2, 3, 4, 5).requires_grad_()
    theta = tenon.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]] * 2, dtype=tenon.float64)
    for align in (True, False):
        grid = F.affine_grid(theta, [2, 3, 4, 5], align_corners=align)
        y = F.grid_sample(x, grid, align_corners=align)
        np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy(), atol=1e-12)
        x.grad = None
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 1, atol=1e-12)


def test_bilinear_values_and_slopes_by_hand():
    image = tenon.tensor([[[[1.0, 2.0], [3.0, 7.0]]]], dtype=tenon.float64)
    grid = tenon.tensor([[[[0.5, -0.5]]]], dtype=tenon.float64, requires_grad=True)  # 3/4 along x, 1/4 along y
    y = F.grid_sample(image, grid, align_corners=True)
    assert y.item() == 0.75 * (0.25 * 1 + 0.75 * 2) + 0.25 * (0.25 * 3 + 0.75 * 7)
    y.sum().backward()
    # Along x: (2 - 1) * 3/4 + (7 - 3) * 1/4, along y: (3 - 1) * 1/4 + (7 - 2) * 3/4; a step of the grid is half an element.
    assert grid.grad.tolist() == [[[[0.5 * 1.75, 0.5 * 4.25]]]]


def test_what_is_outside_of_the_image():
    image = tenon.tensor([[[[1.0, 2.0, 4.0]]]])
    grid = tenon.tensor([[[[-5.0, 0.0], [3.0, 0.0], [float("nan"), 0.0]]]])
    assert F.grid_sample(image, grid, align_corners=True)[0, 0, 0, :2].tolist() == [0.0, 0.0]
    assert F.grid_sample(image, grid, padding_mode="border", align_corners=True)[0, 0, 0, :2].tolist() == [1.0, 4.0]
    assert F.grid_sample(image, grid, padding_mode="reflection", align_corners=True)[0, 0, 0, :2].tolist() == [1.0, 1.0]
    assert F.grid_sample(image, grid, align_corners=True)[0, 0, 0, 2].isnan()


@pytest.mark.parametrize("rank", [2, 3])
def test_images_and_grids_of_any_stride_and_number_of_places(rank):
    """More places than a tile, and a last tile that is not full."""
    turned = tuple(range(rank + 1, -1, -1))
    image, grid = tensor(*[5, 4, 6][:rank], 3, 2).permute(turned), tensor(*[9, 7, 5][:rank], rank, 2).movedim(-1, 0) * 0.7
    weights = tensor(2, 3, *[9, 7, 5][:rank])
    results = []
    for x, g in ((image, grid), (image.contiguous(), grid.contiguous()), (image.flip(2).contiguous().flip(2), grid.flip(1).contiguous().flip(1))):
        x, g = x.detach().requires_grad_(), g.detach().requires_grad_()
        y = getattr(tenon, f"grid_sampler_{rank}d")(x, g, 0, 2, False)
        results.append([y, *tenon.autograd.grad(y, (x, g), weights.expand_as(y))])
    assert all(a.equal(b) for other in results[1:] for a, b in zip(results[0], other))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_half_types_compute_in_float32(mode):
    image, grid = tensor(1, 2, 5, 6).half(), (tensor(1, 9, 8, 2) * 0.6).half()
    wanted = tenon.grid_sampler_2d(image.float(), grid.float(), mode, 1, True)
    assert tenon.grid_sampler_2d(image, grid, mode, 1, True).equal(wanted.half())
    inputs = [image.requires_grad_(), grid.requires_grad_()]
    wide = [t.detach().float().requires_grad_() for t in inputs]
    found = tenon.autograd.grad(tenon.grid_sampler_2d(*inputs, mode, 1, True).sum(), inputs)
    for a, b in zip(found, tenon.autograd.grad(tenon.grid_sampler_2d(*wide, mode, 1, True).sum(), wide)):
        assert a.equal(b.half())


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_a_gradient_is_the_same_where_it_is_differentiated(mode, padding):
    """A kernel computes the one, operators the other."""
    image, grid = tensor(2, 3, 4, 5).requires_grad_(), (tensor(2, 6, 7, 2)).requires_grad_()
    y = tenon.grid_sampler_2d(image, grid, mode, padding, False)
    grad = tensor(2, 3, 6, 7)
    once = tenon.autograd.grad(y, (image, grid), grad, retain_graph=True)
    for a, b in zip(once, tenon.autograd.grad(y, (image, grid), grad, create_graph=True)):
        assert b.requires_grad
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_what_is_infinite_or_undefined():
    image = tenon.tensor([[[[1.0, 2.0], [3.0, float("inf")]]]])
    grid = tenon.tensor([[[[float("inf"), 0.0], [float("nan"), -1.0], [-1.0, -1.0], [1e30, 1e30]]]])
    # An element outside counts as 0, whatever the first element of the image is.
    assert tenon.grid_sampler_2d(image, grid, 0, 0, True)[..., 3].item() == 0
    assert tenon.grid_sampler_2d(image, grid, 1, 0, True).flatten().tolist() == [0, 0, 1, 0]
    assert tenon.grid_sampler_2d(image, grid, 1, 1, True).flatten().tolist() == [2, 1, 1, float("inf")]
    assert tenon.grid_sampler_2d(image, grid, 1, 2, True)[..., 1:3].flatten().tolist() == [1, 1]


def test_a_second_derivative():
    x, grid = tensor(1, 2, 3, 3).requires_grad_(), (tensor(1, 2, 2, 2) * 0.3).requires_grad_()
    assert tenon.autograd.gradgradcheck(lambda a, g: tenon.grid_sampler_2d(a, g, 2, 0, True), (x, grid))


def test_a_grid_loads_and_warns_without_align_corners():
    with pytest.warns(UserWarning, match="grid_sample: give align_corners"):
        F.grid_sample(tenon.ones(1, 1, 2, 2), tenon.zeros(1, 1, 1, 2))
    with pytest.warns(UserWarning, match="affine_grid: give align_corners"):
        F.affine_grid(tenon.ones(1, 2, 3), [1, 1, 2, 2])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: F.grid_sample(tenon.ones(1, 1, 2), tenon.ones(1, 1, 2), align_corners=True), RuntimeError, "of 4 or 5 dimensions"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 2), tenon.ones(1, 1, 2), 0, 0, True), RuntimeError, "of 4 dimensions, got"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 2, 2), tenon.ones(2, 1, 1, 2), 0, 0, True), RuntimeError, "same batch size"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 2, 2), tenon.ones(1, 1, 1, 3), 0, 0, True), RuntimeError, "size 2 in its last"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 0, 2), tenon.ones(1, 1, 1, 2), 0, 0, True), RuntimeError, "elements in each channel"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 2, 2).long(), tenon.ones(1, 1, 1, 2).long(), 0, 0, True), TypeError, "floating-point"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 2, 2), tenon.ones(1, 1, 1, 2).double(), 0, 0, True), TypeError, "of the dtype of"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 2, 2), tenon.ones(1, 1, 1, 2), 3, 0, True), ValueError, "`interpolation_mode` must"),
        (lambda: tenon.grid_sampler_2d(tenon.ones(1, 1, 2, 2), tenon.ones(1, 1, 1, 2), 0, 3, True), ValueError, "`padding_mode` must be"),
        (lambda: F.grid_sample(tenon.ones(1, 1, 2, 2), tenon.ones(1, 1, 1, 2), "cubic", align_corners=True), ValueError, "mode must be one"),
        (lambda: F.grid_sample(tenon.ones(1, 1, 2, 2), tenon.ones(1, 1, 1, 2), "nearest", "x", True), ValueError, "padding_mode must be one"),
        (lambda: tenon.affine_grid_generator(tenon.ones(1, 2, 3), [1, 2, 3], True), RuntimeError, "`size` must have 4 or 5"),
        (lambda: tenon.affine_grid_generator(tenon.ones(1, 2, 3), [2, 1, 2, 2], True), RuntimeError, r"`theta` must be \[2, 2, 3\]"),
        (lambda: tenon.affine_grid_generator(tenon.ones(1, 2, 3).int(), [1, 1, 2, 2], True), TypeError, "convert `theta`"),
        (lambda: tenon.affine_grid_generator(tenon.ones(1, 2, 3), [1, 1, 0, 2], True), ValueError, "greater than zero"),
        (lambda: F.affine_grid(tenon.ones(1, 2, 3).int(), [1, 1, 2, 2], True), ValueError, "theta must have a floating-point"),
        (lambda: F.affine_grid(tenon.ones(1, 2, 3), [1, 1, 2], True), NotImplementedError, "size must have 4 or 5"),
        (lambda: F.affine_grid(tenon.ones(1, 3, 4), [1, 1, 2, 2], True), ValueError, r"theta must be \[N, 2, 3\]"),
        (lambda: F.affine_grid(tenon.ones(1, 2, 3), [1, 1, 2, 0], True), ValueError, "greater than zero"),
        (lambda: F.local_response_norm(tenon.ones(2, 2), 3), ValueError, "at least 3 dimensions"),
        (lambda: F.conv_tbc(tenon.ones(2, 2), tenon.ones(1, 2, 2), tenon.ones(2)), RuntimeError, "conv_tbc: expected input"),
        (lambda: F.max_unpool2d(tenon.ones(2, 2), tenon.ones(2, 2).long(), 2), RuntimeError, "of 3 or 4 dimensions"),
        (lambda: F.max_unpool2d(tenon.ones(1, 1, 1), tenon.ones(1, 1, 1), 2), RuntimeError, "indices must be int64"),
        (lambda: F.max_unpool2d(tenon.ones(1, 1, 1), tenon.ones(1, 1, 1).long() * 4, 2), RuntimeError, "from 0 to 3"),
        (lambda: F.max_unpool2d(tenon.ones(1, 1, 1), tenon.ones(1, 1, 1).long(), [2]), ValueError, "kernel_size must be an int or 2"),
        (lambda: F.max_unpool2d(tenon.ones(1, 1, 1), tenon.ones(1, 1, 1).long(), 2, output_size=[9, 9]), ValueError, "less than a stride"),
        (lambda: F.max_unpool2d(tenon.ones(1, 1, 1), tenon.ones(1, 1, 1).long(), 2, output_size=[9]), ValueError, "2 or 4 numbers"),
        *((lambda f=f, n=n: f(tenon.ones(*[1] * (n + 1)), tenon.ones(*[1] * (n + 1)).long(), 2, stride=0), RuntimeError, r"stride must be greater than zero, got \[0")
          for n, f in ((1, F.max_unpool1d), (2, F.max_unpool2d), (3, F.max_unpool3d))),
        (lambda: F.max_unpool3d(tenon.ones(1, 1, 1, 1), tenon.ones(1, 1, 1, 1).long(), 2, stride=(2, -1, 2)), RuntimeError, "greater than zero, got"),
        (lambda: F.max_unpool1d(tenon.ones(1, 0), tenon.ones(1, 0).long(), 1, 3), RuntimeError, "these windows give the size"),
        (lambda: F.fractional_max_pool2d(tenon.ones(1, 4, 4), 2), ValueError, "output_size or output_ratio"),
        (lambda: F.fractional_max_pool2d(tenon.ones(4, 4), 2, 2), RuntimeError, "of 3 or 4 dimensions"),
        (lambda: F.fractional_max_pool2d(tenon.ones(1, 4, 4), 2, 4), RuntimeError, "cannot give"),
        (lambda: F.fractional_max_pool2d(tenon.ones(1, 4, 4), 2, output_ratio=(0.5,)), ValueError, "output_ratio must be a number or 2"),
        (lambda: F.fractional_max_pool2d(tenon.ones(1, 4, 4), 2, 2, None, False, tenon.ones(1, 1, 3)), RuntimeError, "_random_samples must be"),
        (lambda: tenon.nn.FractionalMaxPool2d(2), ValueError, "exactly one of"),
        (lambda: tenon.nn.FractionalMaxPool2d(2, output_ratio=1.5), ValueError, "between 0 and 1"),
        (lambda: tenon.nn.FractionalMaxPool2d((2, 2, 2), 2), ValueError, "one number or 2"),
        (lambda: tenon.nn.CrossMapLRN2d(3)(tenon.ones(1, 2, 3)), ValueError, r"input \[N, C, H, W\]"),
    ],
)
def test_errors_say_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_maxima_go_back_to_their_places(rank):
    x = tensor(2, 3, *[6, 4, 4][:rank])
    pooled, places = getattr(F, f"max_pool{rank}d")(x, 2, return_indices=True)
    back = getattr(F, f"max_unpool{rank}d")(pooled, places, 2)
    want = np.zeros((2, 3, x[0, 0].numel()))
    np.put_along_axis(want, places.flatten(2).numpy(), pooled.flatten(2).numpy(), 2)
    np.testing.assert_array_equal(back.numpy(), want.reshape(x.shape))
    module = getattr(tenon.nn, f"MaxUnpool{rank}d")(2)
    assert module(pooled, places, output_size=x.shape).equal(back)
    if rank == 2:
        assert repr(module) == "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))"
    pooled.requires_grad_()
    getattr(F, f"max_unpool{rank}d")(pooled, places, 2).sum().backward()
    assert (pooled.grad == 1).all()


@pytest.mark.parametrize("rank", [2, 3])
def test_windows_at_random_distances_cover_the_image(rank):
    x = tensor(2, 3, *[7, 6, 8][:rank])
    values, places = getattr(F, f"fractional_max_pool{rank}d")(x, 2, [4, 3, 5][:rank], return_indices=True)
    assert values.shape == (2, 3, *[4, 3, 5][:rank]) and places.shape == values.shape
    np.testing.assert_array_equal(np.take_along_axis(x.flatten(2).numpy(), places.flatten(2).numpy(), 2), values.flatten(2).numpy())
    # Samples of 0 have windows start at int(i * alpha), with alpha = (size - kernel) / (outputs - 1).
    zeros = tenon.zeros(2, 3, rank, dtype=x.dtype)
    fixed = getattr(F, f"fractional_max_pool{rank}d")(x, 2, 2, None, False, zeros)
    corner = (slice(None), slice(None), *[slice(0, 2)] * rank)
    np.testing.assert_array_equal(fixed[(..., *[0] * rank)].numpy(), x.numpy()[corner].max(tuple(range(2, 2 + rank))))
    assert getattr(F, f"fractional_max_pool{rank}d")(x, 2, [n - 1 for n in x.shape[2:]]).shape[2:] == tuple(n - 1 for n in x.shape[2:])
    module = getattr(tenon.nn, f"FractionalMaxPool{rank}d")(2, output_ratio=0.5)
    assert module(x).shape == (2, 3, *[n // 2 for n in x.shape[2:]])


def test_neighbouring_channels_divide():
    x = tensor(2, 5, 3, 2)
    squares = np.pad(x.numpy() ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    mean = (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]) / 3
    want = x.numpy() / (2 + 0.1 * mean) ** 0.6
    np.testing.assert_allclose(F.local_response_norm(x, 3, 0.1, 0.6, 2.0).numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(F.local_response_norm(x[:, :, :, 0], 3, 0.1, 0.6, 2.0).numpy(), want[..., 0], rtol=1e-12)
    assert tenon.nn.LocalResponseNorm(3, 0.1, 0.6, 2.0)(x).equal(F.local_response_norm(x, 3, 0.1, 0.6, 2.0))
    legacy = tenon.nn.CrossMapLRN2d(3, 0.1, 0.6, 2.0)(x)
    np.testing.assert_allclose(legacy[:, :2].numpy(), want[:, :2], rtol=1e-12)
    # The first channel stays in the sums of the others.
    stays = x.numpy()[:, 2:] / (2 + 0.1 * (mean[:, 2:] + x.numpy()[:, :1] ** 2 / 3)) ** 0.6
    np.testing.assert_allclose(legacy[:, 2:].numpy(), stays, rtol=1e-12)
    assert F.local_response_norm(tenon.ones(0, 2, 3), 2).shape == (0, 2, 3)
    assert "3, alpha=0.1" in repr(tenon.nn.CrossMapLRN2d(3, 0.1)) and "3, alpha=0.1" in repr(tenon.nn.LocalResponseNorm(3, 0.1))


def test_a_convolution_of_steps_first():
    x, weight, bias = tensor(5, 2, 3), tensor(3, 3, 4), tensor(4)
    padded = np.pad(x.numpy(), ((1, 1), (0, 0), (0, 0)))
    want = sum(padded[i : i + 5] @ weight.numpy()[i] for i in range(3)) + bias.numpy()
    np.testing.assert_allclose(F.conv_tbc(x, weight, bias, 1).numpy(), want, rtol=1e-10)
    assert F.native_channel_shuffle(tenon.arange(4.0).reshape(1, 4, 1, 1), 2).flatten().tolist() == [0, 2, 1, 3]
