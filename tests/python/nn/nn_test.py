"""nn and optim: parts, state, losses and updates, against formulas in float64."""

import copy
import io
import math

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F
from tenon import nn


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def test_parts_are_found_by_name():
    m = mlp()
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in m.parameters())
    assert [type(c).__name__ for c in m.children()] == ["Linear", "ReLU", "Linear"]
    assert m[0].weight.shape == (8, 4) and len(m) == 3 and m[-1] is m[2]
    assert [n for n, _ in m.named_modules()] == ["", "0", "1", "2"]
    assert m.get_submodule("2") is m[2]


def test_modules_of_ones_own():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4, bias=False)
            self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
            self.scale = nn.Parameter(tenon.ones(1))
            self.register_buffer("count", tenon.zeros(1))

        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
            return x * self.scale

    net = Net()
    names = [n for n, _ in net.named_parameters()]
    assert set(names) == {"scale", "first.weight", "blocks.0.weight", "blocks.0.bias"}
    assert list(net.state_dict()) and "count" in net.state_dict()
    assert net.first.bias is None
    assert net(tenon.ones(2, 4)).shape == (2, 4)
    with pytest.raises(TypeError):
        net.scale = tenon.ones(1)
    net.count = tenon.ones(1)
    assert isinstance(net.count, nn.Buffer)
    net.eval()
    assert not net.blocks[1].training
    assert "(first): Linear(in_features=4, out_features=4, bias=False)" in repr(net)
    twin = copy.deepcopy(net)
    assert twin.first.weight is not net.first.weight and twin.first.weight.tolist() == net.first.weight.tolist()
    assert twin(tenon.ones(2, 4)).tolist() == net(tenon.ones(2, 4)).tolist()


def test_linear_starts_within_its_bounds():
    tenon.manual_seed(1)
    layer = nn.Linear(64, 128)
    bound = 1 / math.sqrt(64)
    for p in layer.parameters():
        assert p.abs().max().item() <= bound * (1 + 1e-6)
        assert p.abs().max().item() > 0.8 * bound


def test_state_goes_out_and_in():
    a, b = mlp(), mlp()
    b.load_state_dict(a.state_dict())
    x = tenon.randn(5, 4)
    assert a(x).tolist() == b(x).tolist()
    state = a.state_dict()
    del state["0.bias"]
    with pytest.raises(RuntimeError, match="0.bias"):
        b.load_state_dict(state)
    assert b.load_state_dict(state, strict=False).missing_keys == ["0.bias"]
    state["0.weight"] = tenon.ones(2, 2)
    with pytest.raises(RuntimeError, match="shape"):
        b.load_state_dict(state, strict=False)
    file = io.BytesIO()
    tenon.save(a.state_dict(), file)
    file.seek(0)
    b.load_state_dict(tenon.load(file))
    assert a(x).tolist() == b(x).tolist()
    with pytest.raises(ValueError):
        tenon.load(io.BytesIO(b"nothing"))


def test_to_changes_parameters_in_place():
    m = mlp()
    w = m[0].weight
    assert m.double() is m and m[0].weight is w and w.dtype is tenon.float64


@pytest.mark.filterwarnings("ignore:.*discards the imaginary part")
def test_to_a_complex_dtype_converts_all_but_integers():
    m = nn.BatchNorm1d(2).to(tenon.complex64)
    assert m.weight.dtype is m.running_mean.dtype is tenon.complex64 and m.num_batches_tracked.dtype is tenon.int64
    assert m.to(tenon.complex128).weight.dtype is tenon.complex128
    assert m.to(tenon.float32).weight.dtype is tenon.float32


def test_to_gives_a_memory_format_to_what_has_four_dimensions():
    m = nn.Linear(2, 3)
    m.register_buffer("images", tenon.arange(120, dtype=tenon.float32).reshape(2, 3, 4, 5))
    m.register_buffer("places", tenon.arange(16).reshape(2, 2, 2, 2))
    assert m.to("cpu", tenon.float64, memory_format=tenon.channels_last) is m
    assert m.images.stride() == (60, 1, 15, 3) and m.images.dtype is tenon.float64
    assert m.places.stride() == (8, 1, 4, 2) and m.places.dtype is tenon.int64
    assert m.weight.stride() == (2, 1) and m.weight.dtype is tenon.float64
    assert m.images.flatten().tolist() == list(range(120))
    m.to(memory_format=tenon.contiguous_format)
    assert m.images.is_contiguous() and m.images.dtype is tenon.float64


def test_hooks_of_modules():
    m = nn.Linear(2, 2)
    seen = []
    handle = m.register_forward_hook(lambda module, args, result: seen.append(result.shape))
    pre = m.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    assert m(tenon.ones(1, 2)).tolist() == [m.bias.tolist()]
    handle.remove()
    pre.remove()
    m(tenon.ones(1, 2))
    assert seen == [(1, 2)]


def test_losses_in_float64():
    rng = np.random.default_rng(0)
    logits, target = rng.standard_normal((6, 4)), rng.integers(0, 4, 6)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    picked = -log_p[np.arange(6), target]
    x, t = tenon.tensor(logits, requires_grad=True), tenon.tensor(target)
    np.testing.assert_allclose(F.cross_entropy(x, t).item(), picked.mean(), rtol=1e-14)
    np.testing.assert_allclose(F.cross_entropy(x, t, reduction="none").tolist(), picked, rtol=1e-13)
    np.testing.assert_allclose(nn.CrossEntropyLoss(reduction="sum")(x, t).item(), picked.sum(), rtol=1e-14)
    np.testing.assert_allclose(nn.NLLLoss()(F.log_softmax(x, 1), t).item(), picked.mean(), rtol=1e-14)
    np.testing.assert_allclose(nn.MSELoss()(x, x.detach() * 0).item(), (logits**2).mean(), rtol=1e-14)
    F.cross_entropy(x, t).backward()
    want = (np.exp(log_p) - np.eye(4)[target]) / 6
    np.testing.assert_allclose(x.grad.tolist(), want, rtol=1e-12, atol=1e-15)
    with pytest.raises(ValueError, match="reduction"):
        F.cross_entropy(x, t, reduction="average")


def test_losses_of_pairs_in_float64():
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal((5, 3)) for _ in range(3))
    sign = np.array([1, -1, 1, -1, -1.0])[:, None]
    x, y, z, t = map(tenon.tensor, (a, b, c, sign))
    near, far = (np.sqrt(((a - v + 1e-6) ** 2).sum(1)) for v in (b, c))
    for got, want in (
        (F.pairwise_distance(x, y), near),
        (nn.PairwiseDistance(1)(x, y), np.abs(a - b + 1e-6).sum(1)),
        (nn.PairwiseDistance(-1)(x, y), 1 / (1 / np.abs(a - b + 1e-6)).sum(1)),
        (F.pairwise_distance(x, y, 0.0), np.count_nonzero(a - b + 1e-6, axis=1)),
        (F.pairwise_distance(x, y, float("inf"), keepdim=True), np.abs(a - b + 1e-6).max(1, keepdims=True)),
        (nn.TripletMarginLoss(0.5)(x, y, z), np.maximum(0.5 + near - far, 0).mean()),
        (F.margin_ranking_loss(x, y, t, 0.3, reduction="none"), np.maximum(0.3 - sign * (a - b), 0)),
        (F.hinge_embedding_loss(x, t, 0.4, reduction="sum"), np.where(sign == 1, a, np.maximum(0.4 - a, 0)).sum()),
        (F.soft_margin_loss(x, t.expand(5, 3)), np.log1p(np.exp(-sign * a)).mean()),
        (nn.PoissonNLLLoss()(x, y.abs()), (np.exp(a) - np.abs(b) * a).mean()),
        (F.gaussian_nll_loss(x, y, 0.25), (0.5 * (np.log(0.25) + (a - b) ** 2 / 0.25)).mean()),
    ):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    same = tenon.ones(2, 3, dtype=tenon.float64, requires_grad=True)
    F.pairwise_distance(same, same.detach(), eps=0.0).sum().backward()
    assert same.grad.tolist() == [[0] * 3] * 2, "the slope at the origin"


def test_losses_of_what_is_not_finite():
    """Element by element as the definitions in float64 have it; a sum or mean of them has what the sum has."""
    inf, nan = float("inf"), float("nan")
    a = np.array([inf, -inf, nan, 1.0, -2.0, 0.0, 1e308, -1e308])
    b = np.array([1.0, -2.0, 0.5, nan, 0.0, inf, -1e308, 1e308])
    x, t = tenon.tensor(a), tenon.tensor(b)
    with np.errstate(all="ignore"):
        d = np.abs(a - b)
        cases = (
            (F.mse_loss, (a - b) ** 2),
            (F.l1_loss, d),
            (F.smooth_l1_loss, np.where(d < 1, 0.5 * d * d, d - 0.5)),
            (F.huber_loss, np.where(d <= 1, 0.5 * d * d, d - 0.5)),
            (F.soft_margin_loss, np.logaddexp(0, -(b * a))),
            (F.kl_div, np.where(np.isnan(b), nan, np.where(b == 0, 0, b * np.log(b))) - b * a),
        )
        for loss, want in cases:
            np.testing.assert_array_equal(loss(x, t, reduction="none").numpy(), want, err_msg=loss.__name__)
            np.testing.assert_array_equal(loss(x, t, reduction="sum").numpy(), want.sum(), err_msg=loss.__name__)


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.huber_loss])
def test_weights_have_the_shape_of_the_input(loss):
    input, target, weight = tenon.tensor([1.0, 2.0]), tenon.tensor([[1.0, 4.0], [3.0, 2.0]]), tenon.tensor([1.0, 3.0])
    with pytest.warns(UserWarning, match="broadcasts them"):
        assert loss(input, target, reduction="sum", weight=weight).item() == {F.mse_loss: 16, F.l1_loss: 8, F.huber_loss: 6}[loss]
        with pytest.raises(ValueError, match=r"weight \[2, 2\] must have the shape of the input, \[2\]$"):
            loss(input, target, weight=tenon.ones(2, 2))


def test_losses_refuse_what_does_not_fit():
    x = tenon.ones(3, 2)
    for call, error, text in (
        (lambda: F.mse_loss(x, x, reduction="avg"), ValueError, "mse_loss: reduction"),
        (lambda: nn.L1Loss(reduction="avg"), ValueError, "L1Loss: reduction"),
        (lambda: F.mse_loss(x, x, weight=x[0]), ValueError, r"mse_loss: weight \[2\] must have the shape of the input, \[3, 2\]"),
        (lambda: F.kl_div(x, x[:, :1].expand(3, 3)), RuntimeError, "kl_div"),
        (lambda: F.binary_cross_entropy(x * 2, x), RuntimeError, "binary_cross_entropy: .*between 0 and 1"),
        (lambda: F.binary_cross_entropy(x, x[0]), ValueError, "binary_cross_entropy: `target`"),
        (lambda: F.binary_cross_entropy(x, x * -0.5), RuntimeError, "binary_cross_entropy: all elements of `target` should be between 0 and 1"),
        (lambda: F.binary_cross_entropy(x, x * math.nan), RuntimeError, "binary_cross_entropy: all elements of `target` should be between 0 and 1"),
        (lambda: F.binary_cross_entropy(x * math.nan, x), RuntimeError, "binary_cross_entropy: all elements of `self` should be between 0 and 1"),
        (lambda: F.margin_ranking_loss(x, x, x[0]), RuntimeError, "margin_ranking_loss"),
        (lambda: F.triplet_margin_loss(x, x, x[0]), RuntimeError, "triplet_margin_loss"),
        (lambda: nn.TripletMarginLoss(0), ValueError, "TripletMarginLoss: margin"),
        (lambda: F.gaussian_nll_loss(x, x, -x), ValueError, "gaussian_nll_loss: var"),
        (lambda: F.gaussian_nll_loss(x, x, x[:, :1].expand(3, 3)), ValueError, "gaussian_nll_loss: var"),
    ):
        with pytest.raises(error, match=text):
            call()


def sgd_reference(p, grads, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    velocity = None
    for g in grads:
        d = g + weight_decay * p
        if momentum:
            velocity = d if velocity is None else momentum * velocity + (1 - dampening) * d
            d = d + momentum * velocity if nesterov else velocity
        p = p - lr * d
    return p


def adam_reference(p, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False, amsgrad=False):
    m = v = largest = np.zeros_like(p)
    for step, g in enumerate(grads, 1):
        if weight_decay and decoupled:
            p = p * (1 - lr * weight_decay)
        elif weight_decay:
            g = g + weight_decay * p
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
        largest = np.maximum(largest, v)
        second = largest if amsgrad else v
        p = p - lr * (m / (1 - betas[0] ** step)) / (np.sqrt(second / (1 - betas[1] ** step)) + eps)
    return p


@pytest.mark.parametrize(
    ("make", "reference", "options"),
    [
        (tenon.optim.SGD, sgd_reference, {"lr": 0.1}),
        (tenon.optim.SGD, sgd_reference, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
        (tenon.optim.SGD, sgd_reference, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
        (tenon.optim.SGD, sgd_reference, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        (tenon.optim.Adam, adam_reference, {"lr": 0.1}),
        (tenon.optim.Adam, adam_reference, {"lr": 0.1, "weight_decay": 0.1, "betas": (0.5, 0.9)}),
        (tenon.optim.Adam, adam_reference, {"lr": 0.1, "amsgrad": True}),
        (tenon.optim.AdamW, lambda *a, **k: adam_reference(*a, **k, decoupled=True), {"lr": 0.1, "weight_decay": 0.1}),
    ],
)
def test_updates_follow_their_formulas(make, reference, options):
    rng = np.random.default_rng(1)
    start, grads = rng.standard_normal(5), rng.standard_normal((4, 5))
    p = nn.Parameter(tenon.tensor(start))
    optimizer = make([p], **options)
    for g in grads:
        p.grad = tenon.tensor(g)
        optimizer.step()
    np.testing.assert_allclose(p.tolist(), reference(start, grads, **options), rtol=1e-10)


def test_optimizers_keep_groups_and_state():
    a, b = nn.Parameter(tenon.ones(2)), nn.Parameter(tenon.ones(2))
    optimizer = tenon.optim.SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.1, momentum=0.5)
    for p in (a, b):
        p.grad = tenon.ones(2)
    optimizer.step()
    assert a.tolist() == pytest.approx([0.9, 0.9]) and b.tolist() == [0.0, 0.0]
    assert optimizer.state[a]["momentum_buffer"].tolist() == [1.0, 1.0]
    twin = tenon.optim.SGD([{"params": [a]}, {"params": [b]}], lr=9)
    twin.load_state_dict(optimizer.state_dict())
    assert twin.param_groups[1]["lr"] == 1.0 and twin.state[b]["momentum_buffer"].tolist() == [1.0, 1.0]
    optimizer.zero_grad()
    assert a.grad is None
    optimizer.step()
    assert b.tolist() == [0.0, 0.0]


def test_optimizers_refuse_what_makes_no_sense():
    p = nn.Parameter(tenon.ones(2))
    for make, error in [
        (lambda: tenon.optim.SGD([], lr=0.1), ValueError),
        (lambda: tenon.optim.SGD([p], lr=-1), ValueError),
        (lambda: tenon.optim.SGD([p], lr=1, nesterov=True), ValueError),
        (lambda: tenon.optim.SGD([p, p], lr=1), ValueError),
        (lambda: tenon.optim.SGD([3], lr=1), TypeError),
        (lambda: tenon.optim.SGD(p, lr=1), TypeError),
        (lambda: tenon.optim.SGD([p * 2], lr=1), ValueError),
        (lambda: tenon.optim.SGD([p], lr=1, speed=2), TypeError),
        (lambda: tenon.optim.SGD([p], lr=1, fused=True, foreach=True), RuntimeError),
        (lambda: tenon.optim.SGD([p], lr=1, differentiable=True), NotImplementedError),
        (lambda: tenon.optim.Adam([p], capturable=True), NotImplementedError),
        (lambda: tenon.optim.Adam([p], betas=(1.0, 0.9)), ValueError),
        (lambda: tenon.optim.Adam([p], betas=(0.9, tenon.tensor(0.9))), ValueError),
        (lambda: tenon.optim.AdamW([p], betas=(tenon.tensor(0.9), 0.9)), ValueError),
        (lambda: tenon.optim.Adam([p], betas=(tenon.tensor(0.9), tenon.tensor(0.9)), foreach=True), ValueError),
        (lambda: tenon.optim.Adam([p], lr=tenon.tensor(0.1), foreach=True), ValueError),
    ]:
        with pytest.raises(error):
            make()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"betas": (5,)}, r"Adam: betas must be two numbers, got \(5,\)"),
        ({"lr": "x"}, r"Adam: lr must be a number, got 'x' \(str\)"),
        ({"eps": -1.0}, "Adam: eps must not be negative, got -1.0"),
    ],
)
def test_optimizers_refuse_options_of_a_state_that_make_no_sense(options, text):
    p = nn.Parameter(tenon.ones(2))
    optimizer = tenon.optim.Adam([p], lr=0.25)
    state = optimizer.state_dict()
    state["param_groups"][0].update(options)
    with pytest.raises(ValueError, match=f"^load_state_dict: group 0 of the state: {text}$"):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.25 and optimizer.param_groups[0]["betas"] == (0.9, 0.999)


def test_a_state_of_a_device_loads():
    """Its implementation, which PyTorch writes with the options, is of no account here."""
    optimizer = tenon.optim.Adam([nn.Parameter(tenon.ones(2))])
    state = optimizer.state_dict()
    state["param_groups"][0].update(lr=0.5, capturable=True, fused=True)
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_training_lowers_the_loss():
    tenon.manual_seed(0)
    m, x, t = mlp(), tenon.randn(30, 4), tenon.randint(3, (30,))
    optimizer = tenon.optim.Adam(m.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        loss = F.cross_entropy(m(x), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_data_loader_covers_every_row_once():
    from tenon.utils.data import DataLoader, TensorDataset

    data = TensorDataset(tenon.arange(10), tenon.arange(10) * 2)
    batches = list(DataLoader(data, batch_size=4, shuffle=True))
    assert sorted(v for x, _ in batches for v in x.tolist()) == list(range(10))
    assert all(y.tolist() == (x * 2).tolist() for x, y in batches)
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2


def test_what_stands_twice_has_two_keys_and_one_parameter():
    layer = nn.Linear(1, 1)
    m = nn.Sequential(layer, layer)
    assert list(m.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias"]
    assert [n for n, _ in m.named_modules()] == ["", "0"] and [n for n, _ in m.named_children()] == ["0"]
    other = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    other.load_state_dict(m.state_dict())
    assert other[1].weight.tolist() == layer.weight.tolist()
    count = []
    m.apply(lambda module: count.append(module))
    assert count == [layer, m]


def test_deep_copies_share_what_the_originals_share():
    x = tenon.arange(6.0)
    copies = copy.deepcopy([x, x[2:4], x[::2]])
    copies[0][2] = 99
    assert copies[1].tolist() == [99.0, 3.0] and copies[2].tolist() == [0.0, 99.0, 4.0]
    assert copies[2].stride() == (2,) and x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    leaf = tenon.ones(2, requires_grad=True)
    leaf.grad = tenon.full((2,), 3.0)
    twin = copy.deepcopy(leaf)
    assert twin.grad.tolist() == [3.0, 3.0] and twin.grad is not leaf.grad and twin.requires_grad
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    b.weight = a.weight
    tied = copy.deepcopy(nn.Sequential(a, b))
    assert tied[0].weight is tied[1].weight and tied[0].weight is not a.weight
    a.weight.grad = tenon.ones(2, 2)
    assert copy.deepcopy(a).weight.grad is None


def test_modules_refuse_what_they_cannot_be():
    m = nn.Linear(2, 3)
    before = m.weight.tolist()
    with pytest.raises(TypeError, match="Module.to: expected a floating point or complex dtype, got tenon.int64"):
        m.to(tenon.int64)
    assert m.weight.dtype is tenon.float32
    for name, state in [
        ("size mismatch for weight", {"weight": tenon.ones(1), "bias": tenon.ones(3)}),
        ('Missing key.*"weight", "bias"', {}),
        ('Unexpected key.*"extra"', {**m.state_dict(), "extra": tenon.ones(1)}),
        ('"weight" is a int', {"weight": 3, "bias": tenon.ones(3)}),
    ]:
        with pytest.raises(RuntimeError, match=name):
            m.load_state_dict(state)
    with pytest.raises(TypeError, match=r"^load_state_dict: expected a dict, got \[1\] \(list\)$"):
        m.load_state_dict([1])
    with pytest.raises(KeyError, match="exists already"):
        m.register_buffer("forward", None)
    with pytest.raises(TypeError, match=r"^\w+: buffer 'x' must be a Tensor or None, got -?\d+ \(int\)$"):
        m.register_buffer("x", 3)
    with pytest.raises(AttributeError, match="Linear has no module 'x'"):
        m.get_submodule("x.y")
    assert m.weight.tolist() == before


def test_dropout_scales_what_it_keeps():
    tenon.manual_seed(0)
    x = tenon.ones(20_000, requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = (y.detach().numpy() != 0).mean()
    assert abs(kept - 0.75) < 5 * math.sqrt(0.25 * 0.75 / 20_000)
    assert set(np.unique(y.detach().numpy()).tolist()) == {0.0, float(np.float32(1) / np.float32(0.75))}
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x
    assert not F.dropout(x, 1.0).detach().any()
    layer = nn.Dropout(0.5)
    assert layer.eval()(x) is x
    t = tenon.ones(8)
    assert nn.Dropout(1.0, inplace=True)(t) is t and t.tolist() == [0.0] * 8
    assert repr(layer) == "Dropout(p=0.5, inplace=False)"
    for make in (lambda: nn.Dropout(1.5), lambda: F.dropout(x, -0.1)):
        with pytest.raises(ValueError):
            make()


def test_layers_are_their_functions():
    values = np.linspace(-3, 3, 7)
    x = tenon.tensor(values)
    for layer, want in [
        (nn.LeakyReLU(0.2), np.where(values > 0, values, 0.2 * values)),
        (nn.Softplus(), np.log1p(np.exp(values))),
        (nn.LogSigmoid(), -np.log1p(np.exp(-values))),
        (nn.LogSoftmax(0), values - np.log(np.exp(values).sum())),
        (nn.L1Loss(), None),
    ]:
        if want is None:
            np.testing.assert_allclose(layer(x, x * 0).item(), np.abs(values).mean(), rtol=1e-14)
        else:
            np.testing.assert_allclose(layer(x).numpy(), want, rtol=1e-12)
    t = x.clone()
    assert F.relu(t, inplace=True) is t and t.tolist() == np.maximum(values, 0).tolist()
    t = x.clone()
    assert F.silu(t, inplace=True) is t
    np.testing.assert_allclose(t.numpy(), values / (1 + np.exp(-values)), rtol=1e-13)


def test_an_optimizer_refuses_the_state_of_another():
    p = nn.Parameter(tenon.ones(3))
    sgd, adam = tenon.optim.SGD([p], lr=0.1, momentum=0.9), tenon.optim.Adam([p])
    p.grad = tenon.ones(3)
    sgd.step()
    for target, state in [(adam, sgd), (sgd, adam)]:
        before = target.state_dict()
        with pytest.raises(ValueError, match="the state of another optimizer"):
            target.load_state_dict(state.state_dict())
        assert target.state_dict()["param_groups"] == before["param_groups"]
    state = sgd.state_dict()
    state["state"][0] = {"exp_avg": tenon.ones(3)}
    with pytest.raises(ValueError, match="SGD keeps no exp_avg"):
        sgd.load_state_dict(state)
    small = tenon.optim.SGD([nn.Parameter(tenon.ones(2))], lr=0.1)
    with pytest.raises(ValueError, match=r"momentum_buffer of parameter 0 has shape \[3\], expected \[2\]"):
        small.load_state_dict(sgd.state_dict())
    for make, error in [
        (lambda: tenon.optim.SGD([p], lr="fast"), TypeError),
        (lambda: tenon.optim.Adam([p], lr=None), TypeError),
        (lambda: tenon.optim.Adam([p], betas=0.9), TypeError),
        (lambda: tenon.optim.SGD([{"lr": 1.0}], lr=1.0), KeyError),
    ]:
        with pytest.raises(error, match="lr must be a number|betas must be (two|a tuple of) numbers|params"):
            make()



def test_feature_alpha_dropout_of_few_dimensions_is_refused_where_it_drops():
    for x in (tenon.tensor(1.5), tenon.tensor([1.5, -2.0])):
        assert F.feature_alpha_dropout(x, 0.5, False).tolist() == x.tolist()
        assert F.feature_alpha_dropout(x, 0.0, True).tolist() == x.tolist()
        assert nn.FeatureAlphaDropout(0.5).eval()(x).tolist() == x.tolist()
        assert not F.feature_alpha_dropout(x, 1.0, True).any()
        with pytest.raises(ValueError, match="^feature_alpha_dropout: expected at least 2 dimensions in training"):
            F.feature_alpha_dropout(x, 0.5, True)
