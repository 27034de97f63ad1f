"""Norms as modules: parameters, running statistics, what is printed and refused; gradients of gradients."""

import numpy as np
import pytest
import tenon
from tenon import nn

F = nn.functional


def _normal(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@pytest.fixture
def images():
    return np.random.default_rng(0).standard_normal((3, 4, 5, 6)).astype(np.float32)


@pytest.mark.parametrize(
    "module, axes",
    [
        (nn.LayerNorm(6), (3,)),
        (nn.LayerNorm((5, 6), bias=False), (2, 3)),
        (nn.GroupNorm(4, 4), (2, 3)),
        (nn.GroupNorm(1, 4, affine=False), (1, 2, 3)),
        (nn.BatchNorm2d(4), (0, 2, 3)),
        (nn.InstanceNorm2d(4), (2, 3)),
    ],
)
def test_rows_have_mean_0_and_variance_1(module, axes, images):
    result = module(tenon.tensor(images)).detach().numpy()
    np.testing.assert_allclose(result, _normal(images, axes), atol=2e-6)


# Of 64 columns and more the gradients of weights read rows in place.
@pytest.mark.parametrize("shape", [(3, 64), (40, 65), (1100, 129), (2, 33, 1030)])
@pytest.mark.parametrize("layout", ["contiguous", "columns", "repeated"])
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_of_weights_of_many_columns(shape, layout, threads):
    rng = np.random.default_rng(3)
    x, g = rng.standard_normal(shape), rng.standard_normal(shape)
    if layout == "repeated":
        g = np.broadcast_to(g[..., :1, :], shape)
    axes = tuple(range(len(shape) - 1))
    want = (g * _normal(x, (-1,))).sum(axes), g.sum(axes)

    def arranged(a):
        t = tenon.tensor(np.ascontiguousarray(a))
        if layout == "columns":
            return t.mT.contiguous().mT
        return t[..., :1, :].expand(shape) if layout == "repeated" and a is g else t

    before = tenon.get_num_threads()
    tenon.set_num_threads(threads)
    try:
        for dtype, tolerance in ((tenon.float64, 1e-11), (tenon.float32, 2e-5)):
            norm = nn.LayerNorm(shape[-1]).to(dtype)
            norm(arranged(x).to(dtype)).backward(arranged(g).to(dtype))
            for got, expected in zip((norm.weight.grad, norm.bias.grad), want, strict=True):
                scale = np.abs(expected).max() + 1
                np.testing.assert_allclose(got.numpy() / scale, expected / scale, atol=tolerance)
    finally:
        tenon.set_num_threads(before)


@pytest.mark.parametrize(
    "shape, groups", [((3, 1, 4), 1), ((5, 6), 3), ((2, 6, 4, 80), 2), ((2, 8, 300), 8), ((3, 4, 2, 3, 5), 1)]
)
@pytest.mark.parametrize("half", [False, True])
def test_gradients_of_weights_of_a_norm_over_groups(shape, groups, half):
    rng = np.random.default_rng(4)
    dtype = tenon.float16 if half else tenon.float64
    x, g = (tenon.tensor(rng.standard_normal(shape)).to(dtype) for _ in range(2))
    norm = nn.GroupNorm(groups, shape[1]).to(dtype)
    norm(x.requires_grad_()).backward(g)
    xs, gs = (t.detach().to(tenon.float64).numpy().reshape(shape[0], groups, -1) for t in (x, g))
    axes = (0, *range(2, len(shape)))
    want = (gs * _normal(xs, (2,))).reshape(shape).sum(axes), gs.reshape(shape).sum(axes)
    rtol, atol = (4e-3, 2e-2) if half else (1e-7, 1e-11)
    for got, expected in zip((norm.weight.grad, norm.bias.grad), want, strict=True):
        np.testing.assert_allclose(got.to(tenon.float64).numpy(), expected, rtol, atol)


def test_rms_norm_has_no_mean_to_take_away(images):
    result = nn.RMSNorm(6, eps=0.5)(tenon.tensor(images)).detach().numpy()
    np.testing.assert_allclose(result, images / np.sqrt((images**2).mean(-1, keepdims=True) + 0.5), atol=2e-6)


def test_running_statistics_follow_the_batches(images):
    module = nn.BatchNorm2d(4, momentum=0.25)
    module(tenon.tensor(images))
    mean, var = images.mean((0, 2, 3)), images.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(module.running_mean.numpy(), 0.25 * mean, atol=1e-6)
    np.testing.assert_allclose(module.running_var.numpy(), 0.75 + 0.25 * var, rtol=1e-5)
    assert module.num_batches_tracked.item() == 1
    module.eval()
    result = module(tenon.tensor(images)).detach().numpy()
    wide = module.running_var.numpy().reshape(1, 4, 1, 1) + 1e-5
    np.testing.assert_allclose(result, (images - 0.25 * mean.reshape(1, 4, 1, 1)) / np.sqrt(wide), atol=1e-5)
    assert module.num_batches_tracked.item() == 1, "evaluation counts nothing"


def test_without_momentum_all_batches_weigh_the_same(images):
    module = nn.BatchNorm2d(4, momentum=None)
    for scale in (1, 3):
        module(tenon.tensor(images * scale))
    np.testing.assert_allclose(module.running_mean.numpy(), 2 * images.mean((0, 2, 3)), atol=1e-6)


def test_state_and_text():
    module = nn.BatchNorm1d(3)
    assert list(module.state_dict()) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert repr(module) == "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"
    assert list(nn.InstanceNorm1d(3).state_dict()) == []
    assert repr(nn.LayerNorm(8)) == "LayerNorm((8,), eps=1e-05, elementwise_affine=True, bias=True)"
    assert repr(nn.GroupNorm(2, 4)) == "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"
    assert repr(nn.RMSNorm(4)) == "RMSNorm((4,), eps=None, elementwise_affine=True)"


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: nn.LayerNorm(7)(x), RuntimeError, "layer_norm: given `normalized_shape`"),
        (lambda x: nn.functional.layer_norm(x, []), RuntimeError, "`normalized_shape` must not be empty"),
        (lambda x: nn.functional.layer_norm(x, [6], tenon.ones(5)), RuntimeError, "layer_norm: expected `weight`"),
        (lambda x: nn.functional.layer_norm(x, [6], tenon.ones(6).double()), TypeError, "expected `weight` of float32"),
        (lambda x: nn.functional.layer_norm(x.long(), [6]), NotImplementedError, "layer_norm: not implemented for int64"),
        (lambda x: nn.functional.group_norm(x, 3), ValueError, "divisible by `num_groups`"),
        (lambda x: nn.GroupNorm(3, 4), ValueError, "divisible"),
        (lambda x: nn.BatchNorm1d(4)(x), ValueError, "expected 2D or 3D input"),
        (lambda x: nn.BatchNorm2d(5)(x), RuntimeError, "batch_norm: expected `weight`"),
        (lambda x: nn.functional.batch_norm(x, None, None), ValueError, "running_mean"),
        (lambda x: nn.BatchNorm1d(4)(x[:1, :, 0, 0]), ValueError, "more than 1 value"),
    ],
)
def test_what_is_refused(call, error, text, images):
    with pytest.raises(error, match=text):
        call(tenon.tensor(images))


def test_gradients_of_gradients():
    x = tenon.tensor(np.random.default_rng(1).standard_normal((3, 4, 5)), requires_grad=True)
    w = tenon.tensor(np.random.default_rng(2).standard_normal(5), requires_grad=True)
    c = tenon.tensor(np.random.default_rng(3).standard_normal(4), requires_grad=True)
    none, mean, var = None, tenon.tensor([0.1, -0.2, 0.3, 0.0]).double(), tenon.tensor([0.5, 1.0, 2.0, 0.25]).double()
    for f, *args in [
        (lambda x, w: nn.functional.layer_norm(x, [5], w, w), x, w),
        (lambda x, w: nn.functional.rms_norm(x, [5], w, 0.25), x, w),
        (lambda x, c: nn.functional.group_norm(x, 2, c, c), x, c),
        (lambda x, c: nn.functional.batch_norm(x, none, none, c, c, True), x, c),
        (lambda x, c: nn.functional.batch_norm(x, mean, var, c, c), x, c),
        (lambda x, c: nn.functional.instance_norm(x, none, none, c, c), x, c),
    ]:
        assert tenon.autograd.gradcheck(f, args)
        assert tenon.autograd.gradgradcheck(f, args)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("norm", "rows"),
    [
        (lambda x: F.layer_norm(x, [6]), (0,)),
        (lambda x: F.rms_norm(x, [6]), (0,)),
        (lambda x: F.group_norm(x.reshape(4, 2, 3), 1).reshape(4, 6), (0,)),
        (lambda x: F.instance_norm(x.reshape(4, 1, 6)).reshape(4, 6), (0,)),
        (lambda x: F.batch_norm(x.t(), None, None, training=True).t(), (0,)),
    ],
    ids=["layer", "rms", "group", "instance", "batch"],
)
def test_what_is_not_finite_stays_in_its_row(norm, rows, bad):
    """A row with a NaN or an infinity is undefined where it is used; the bits of the others do not change."""
    x = tenon.arange(24.0, dtype=tenon.float64).reshape(4, 6).sin()
    want = norm(x)
    x[1, 2] = bad
    got = norm(x)
    assert got[1, 2].isnan()
    for row in (0, 2, 3):
        assert tenon.equal(got[row], want[row])


@pytest.mark.parametrize("half", [tenon.float16, tenon.bfloat16])
def test_half_precision_takes_weights_of_float32(half, images):
    """Elements are stored as the input is; statistics, weights and their gradients keep the digits of float32."""
    rng = np.random.default_rng(1)
    x = tenon.tensor(images).to(half)
    wide, incoming = x.to(tenon.float64), tenon.tensor(rng.standard_normal(images.shape)).to(half)
    unit = 2.0**-8 if half is tenon.bfloat16 else 2.0**-11
    calls = {
        "layer_norm": (lambda x, w, b: tenon.nn.functional.layer_norm(x, (6,), w, b), 6),
        "rms_norm": (lambda x, w, b: tenon.nn.functional.rms_norm(x, (6,), w, 1e-5), 6),
        "group_norm": (lambda x, w, b: tenon.nn.functional.group_norm(x, 2, w, b), 4),
        "batch_norm": (lambda x, w, b: tenon.nn.functional.batch_norm(x, None, None, w, b, True), 4),
        "batch_norm, running": (lambda x, w, b: tenon.nn.functional.batch_norm(x, w.detach() * 0, w.detach() ** 2, w, b), 4),
    }
    for name, (call, size) in calls.items():
        weight, bias = rng.standard_normal(size).astype(np.float32) + 2, rng.standard_normal(size).astype(np.float32)
        results = []
        for elements, dtype in ((x, tenon.float32), (wide, tenon.float64)):
            tensors = [t.clone().requires_grad_() for t in (elements, tenon.tensor(weight).to(dtype), tenon.tensor(bias).to(dtype))]
            out = call(*tensors)
            assert out.dtype is elements.dtype, name
            out.backward(incoming.to(elements.dtype))
            results.append([out, *(t.grad for t in tensors)])
        for mine, exact in zip(*results):
            assert (mine is None) == (exact is None)
            if mine is not None:
                scale = np.abs(exact.detach().numpy()).max()
                bound = scale * (4 * unit if mine.dtype is half else 1e-4)
                np.testing.assert_allclose(mine.detach().double().numpy(), exact.detach().numpy(), atol=bound, err_msg=name)
        assert results[0][2].dtype is tenon.float32
    _, mean, rstd = tenon.native_layer_norm(x, (6,), tenon.ones(6), None, 1e-5)
    assert mean.dtype is rstd.dtype is tenon.float32
    assert tenon.native_layer_norm(x, (6,), None, None, 1e-5)[1].dtype is half
    with pytest.raises(TypeError, match="`weight` of .*16 as `input`, or of float32, got float64"):
        tenon.nn.functional.layer_norm(x, (6,), tenon.ones(6, dtype=tenon.float64))
    with pytest.raises(TypeError, match="`weight` of float32 as `input`, got float64"):
        tenon.nn.functional.layer_norm(tenon.tensor(images), (6,), tenon.ones(6, dtype=tenon.float64))


@pytest.mark.parametrize("n", [1, 5, 16, 31, 192, 1000, 1024, 1025, 3000, 5000])
def test_sums_that_are_added_up_as_they_are_computed_have_the_bits_of_sum(n):
    for rows in (1, 3, 9):
        x, g, w = tenon.randn(rows, n), tenon.randn(rows, n), tenon.randn(n)
        x[0] = -0.0
        for a in (x, x.t().contiguous().t(), tenon.cat([x, x], 1)[:, ::2]):
            a = a.detach().requires_grad_()
            y = tenon.softmax(a, 1)
            (got,) = tenon.autograd.grad(y, a, g)
            y = y.detach()
            assert got.numpy().tobytes() == (y * (g - (g * y).sum(1, True))).numpy().tobytes()
            a = a.detach()
            scale = 1 / tenon.sqrt((a * a).mean(1, True) + 1e-5)
            assert F.rms_norm(a, (n,), w, 1e-5).numpy().tobytes() == (a * scale * w).numpy().tobytes()
            z = a - a.amax(1, True)
            assert tenon.log_softmax(a, 1).numpy().tobytes() == (z - tenon.log(tenon.exp(z).sum(1, True))).numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("places", [1, 255, 256, 784, 1500])
def test_weights_that_are_the_same_along_runs_have_the_bits_of_those_in_memory(places, dtype):
    x, w, b = (tenon.randn(*s).to(getattr(tenon, dtype)) for s in ((5, 6, places), (6, 1), (6, 1)))
    shape = (6, places)
    for a in (x, x.flip(2), x.transpose(1, 2).contiguous().transpose(1, 2)):
        a = a.detach().requires_grad_()
        results = []
        for weight, bias in ((w.expand(shape), b.expand(shape)), (w.expand(shape).contiguous(), b.expand(shape).contiguous())):
            y = F.layer_norm(a, shape, weight, bias)
            (g,) = tenon.autograd.grad(y, a, x)
            z = F.rms_norm(a, shape, weight)
            results.append([t.detach().to(tenon.float64).numpy().tobytes() for t in (y, g, z)])
        assert results[0] == results[1]


@pytest.mark.parametrize("shape", [(3001, 1501), (40, 11, 10007)])
def test_results_too_large_for_the_caches_have_the_bits_of_small_ones(shape):
    """They go past the caches, in pieces that begin anywhere in a line, but not where they lie over an operand."""
    x = tenon.randn(shape)
    weight = tenon.randn(shape[1])
    channels = (x if x.dim() == 3 else x[:, :, None], weight * 0, weight * weight, weight, weight)
    whole = [x.softmax(-1), F.layer_norm(x, shape[-1:]), F.batch_norm(*channels).reshape(shape)]
    for first in range(0, shape[0], 7):
        part = x[first : first + 7]
        small = F.batch_norm(channels[0][first : first + 7], *channels[1:]).reshape(part.shape)
        for got, want in zip(whole, [part.softmax(-1), F.layer_norm(part, shape[-1:]), small]):
            assert tenon.equal(got[first : first + 7], want)
    tenon.softmax(x, -1, out=x)
    assert tenon.equal(x, whole[0])


@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float64, tenon.float16, tenon.bfloat16])
@pytest.mark.parametrize("length", [1, 3, 37, 1000, 5000])
def test_rows_of_equal_elements_become_exactly_zero(dtype, length):
    values = [0.1, -3.3, 100.1, 12345.678, 1e-30, 0.0, 7e4]
    x = tenon.tensor(values, dtype=dtype).unsqueeze(1).expand(-1, length)
    x = x[x.isfinite().all(1)].contiguous()
    ones, zeros = tenon.ones(length, dtype=dtype), tenon.zeros(length, dtype=dtype)
    of_layer, mean, rstd = tenon.native_layer_norm(x, (length,), None, None, 1e-5)
    assert (of_layer == 0).all() and tenon.equal(mean.squeeze(1), x[:, 0])
    np.testing.assert_allclose(rstd.double().numpy(), 1e-5**-0.5, rtol=1e-2)
    assert (F.layer_norm(x, (length,), ones, zeros + 2) == 2).all()
    assert (tenon.compile(lambda x: F.layer_norm(x, (length,), ones, zeros))(x) == 0).all()
    assert (tenon.compile(lambda x: F.layer_norm(x * 2, (length,)))(x[:-1]) == 0).all()
    columns = x.t().contiguous()
    if length > 1:
        assert (F.group_norm(x.unsqueeze(0), len(x)) == 0).all() and (F.instance_norm(x.unsqueeze(0)) == 0).all()
        running = tenon.zeros(len(x), dtype=dtype), tenon.ones(len(x), dtype=dtype)
        assert (F.batch_norm(columns, *running, training=True, momentum=1.0) == 0).all()
        assert tenon.equal(running[0], x[:, 0])


def test_statistics_of_rows_far_from_zero():
    """The reference is NumPy's in float64, of the same float32 elements."""
    x = (np.random.default_rng(3).standard_normal((5, 700)) + 10.0 ** np.arange(5)[:, None]).astype(np.float32)
    exact = x.astype(np.float64)
    out, mean, rstd = tenon.native_layer_norm(tenon.tensor(x), (700,), None, None, 1e-5)
    np.testing.assert_allclose(mean[:, 0].numpy(), exact.mean(1), rtol=6e-8, atol=1e-7)
    np.testing.assert_allclose(rstd[:, 0].numpy(), (exact.var(1) + 1e-5) ** -0.5, rtol=3e-6)
    # The mean itself is rounded to float32.
    errors = np.abs(out.numpy() - _normal(exact, 1)).max(1)
    assert (errors < 1e-6 + 6e-8 * np.abs(exact.mean(1))).all()


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.bfloat16])
@pytest.mark.parametrize("weighted", [True, False])
def test_rms_norm_s_gradient_in_half_types_is_rounded_once(dtype, weighted):
    ulp = {tenon.float16: 2.0**-11, tenon.bfloat16: 2.0**-8}[dtype]
    rng = np.random.default_rng(5)

    def half(*shape):
        return tenon.tensor(rng.standard_normal(shape)).to(dtype)

    x, w, g = half(64, 256), half(256), half(64, 256)
    x.requires_grad_(), w.requires_grad_()
    F.rms_norm(x, (256,), w if weighted else None, 1e-5).backward(g)
    X, W, G = (t.detach().double().numpy() for t in (x, w, g))
    r = ((X**2).mean(1, keepdims=True) + 1e-5) ** -0.5
    GW = G * W if weighted else G
    want = r * (GW - X * r * r * (GW * X).mean(1, keepdims=True))

    def error(got, want):
        return np.sqrt(((got.double().numpy() - want) ** 2).mean() / (want**2).mean()) / ulp

    # Rounding once leaves 0.42 ulp on average.
    assert x.grad.dtype is dtype and error(x.grad, want) < 0.5
    if weighted:
        assert w.grad.dtype is dtype and error(w.grad, (G * X * r).sum(0)) < 0.5


def test_native_group_norm_s_statistics_have_gradients():
    x = tenon.randn(2, 4, 3, dtype=tenon.float64, requires_grad=True)
    weight = tenon.randn(4, dtype=tenon.float64, requires_grad=True)

    def norm(x, weight):
        return tenon.native_group_norm(x, weight, None, 2, 4, 3, 2, 1e-5)

    results, detached = norm(x, weight), norm(x.detach(), weight.detach())
    assert all(t.requires_grad for t in results) and not any(t.requires_grad for t in detached)
    assert all(a.equal(b) for a, b in zip(results, detached, strict=True))
    groups = x.detach().numpy().reshape(2, 2, 6)
    rstd = (groups.var(2) + 1e-5) ** -0.5
    (of_mean,) = tenon.autograd.grad(norm(x, weight)[1].sum(), x)
    np.testing.assert_allclose(of_mean.numpy(), np.full((2, 4, 3), 1 / 6), rtol=1e-12)
    (of_rstd,) = tenon.autograd.grad(norm(x, weight)[2].sum(), x)
    want = -(rstd[..., None] ** 3) * (groups - groups.mean(2, keepdims=True)) / 6
    np.testing.assert_allclose(of_rstd.numpy(), want.reshape(2, 4, 3), rtol=1e-12)
    assert tenon.autograd.gradcheck(norm, (x, weight)) and tenon.autograd.gradgradcheck(norm, (x, weight))


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_of_no_elements_in_one_dimension_has_no_channels(training):
    none, x = tenon.zeros(0), tenon.zeros(0, requires_grad=True)
    out = F.batch_norm(x, none, none, training=training)
    assert out.shape == (0,) and out.requires_grad
    assert tenon.batch_norm(x, None, None, none, none, training, 0.1, 1e-5, False).shape == (0,)
    for norm in (F.batch_norm, F.instance_norm):
        with pytest.raises(RuntimeError, match=r"_norm: expected `input` to have a batch and a channel dimension, got \[3\]"):
            norm(tenon.ones(3), tenon.zeros(3), tenon.ones(3))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_batch_norm_of_half_precision_without_weight_keeps_statistics_in_float32(dtype):
    x = np.random.default_rng(0).standard_normal((8, 3, 16)) * 400 + 3
    given = tenon.tensor(x.tolist()).to(getattr(tenon, dtype)).requires_grad_()
    exact = np.array(given.detach().double().tolist())
    norm = tenon.nn.BatchNorm1d(3, affine=False, momentum=1.0)
    norm(given).sum().backward()
    np.testing.assert_allclose(norm.running_mean.numpy(), exact.mean((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), exact.var((0, 2), ddof=1), rtol=1e-5)
    assert given.grad.dtype == given.dtype


@pytest.mark.parametrize("given", [(tenon.zeros(3), None), (None, tenon.ones(3))])
def test_running_statistics_are_given_both_or_neither(given):
    for norm in (tenon.nn.functional.batch_norm, tenon.nn.functional.instance_norm):
        with pytest.raises(ValueError, match=r"_norm: expected both or neither of `running_mean` and `running_var`"):
            norm(tenon.ones(2, 3, 4), *given)
