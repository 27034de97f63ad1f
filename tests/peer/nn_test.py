"""Modules and losses beside PyTorch's: results, gradients, what is printed, state dicts; batches of loaders."""

import numpy as np
import pytest
import tenon

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

ACTIVATIONS = [
    ("ReLU", ()), ("ReLU6", ()), ("SELU", ()), ("SiLU", ()), ("Mish", ()), ("Hardswish", ()), ("Hardsigmoid", ()),
    ("ELU", (0.7,)), ("CELU", (0.7,)), ("GELU", ()), ("GELU", ("tanh",)), ("Hardtanh", (-0.5, 1.5)), ("LeakyReLU", (0.2,)),
    ("Threshold", (0.3, 2.0)), ("Hardshrink", (0.4,)), ("Softshrink", (0.4,)), ("Softplus", (2.0, 3.0)), ("Softsign", ()),
    ("Tanhshrink", ()), ("LogSigmoid", ()), ("Sigmoid", ()), ("Tanh", ()), ("Softmax", (1,)), ("Softmin", (1,)),
    ("LogSoftmax", (0,)), ("Softmax2d", ()), ("GLU", (1,)), ("PReLU", (4,)), ("Identity", ()), ("Flatten", ()),
    ("Unflatten", (1, (2, 2))), ("CosineSimilarity", (1,)),
]  # fmt: skip


def both(values, grad=True):
    a = tenon.tensor(values, requires_grad=grad)
    b = torch.tensor(values, requires_grad=grad)
    return a, b


def close(a, b, bound=1e-12):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=bound, atol=bound)


# Which modules there are depends on the operators of the build: docs/coverage.md lists them.
ACTIVATIONS = [(name, args) for name, args in ACTIVATIONS if hasattr(tenon.nn, name)]


@pytest.mark.parametrize(("name", "args"), ACTIVATIONS, ids=[f"{n}{a}" for n, a in ACTIVATIONS])
def test_modules_agree(name, args):
    ours, theirs = getattr(tenon.nn, name)(*args), getattr(torch.nn, name)(*args)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.double(), theirs.double()
    rng = np.random.default_rng(0)
    x, y = both(rng.standard_normal((3, 4, 2, 3)) * 2)
    more = [] if name != "CosineSimilarity" else [both(rng.standard_normal((3, 4, 2, 3)))]
    a, b = ours(x, *(m[0] for m in more)), theirs(y, *(m[1] for m in more))
    close(a, b)
    weight = rng.standard_normal(tuple(b.shape))
    (a * tenon.tensor(weight)).sum().backward()
    (b * torch.tensor(weight)).sum().backward()
    # PyTorch rounds 1/6 and 1/alpha to float32 in these two derivatives.
    close(x.grad, y.grad, 1e-7 if name in ("CELU", "Hardsigmoid") else 1e-10)


IN_PLACE = ["ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid", "ELU", "CELU", "Hardtanh", "LeakyReLU"]


@pytest.mark.parametrize("name", [name for name in IN_PLACE if hasattr(tenon.nn, name)])
def test_modules_work_in_place(name):
    values = np.random.default_rng(1).standard_normal((3, 4))
    x, y = both(values, False)
    ours, theirs = getattr(tenon.nn, name)(inplace=True), getattr(torch.nn, name)(inplace=True)
    assert repr(ours) == repr(theirs) and ours(x) is x
    close(x, theirs(y))


LOSSES = [
    ("MSELoss", {}), ("L1Loss", {}), ("SmoothL1Loss", {"beta": 0.7}), ("SmoothL1Loss", {"beta": 0.0}), ("HuberLoss", {"delta": 0.7}),
    ("BCELoss", {}), ("BCEWithLogitsLoss", {}), ("BCEWithLogitsLoss", {"pos_weight": True}), ("KLDivLoss", {}),
    ("KLDivLoss", {"log_target": True}),
]  # fmt: skip


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "batchmean"])
@pytest.mark.parametrize(("name", "options"), LOSSES)
def test_losses_agree(name, options, reduction):
    if (reduction == "batchmean") != (name == "KLDivLoss") and reduction == "batchmean":
        return
    rng = np.random.default_rng(2)
    values, target = rng.standard_normal((4, 3)), rng.random((4, 3))
    if name == "BCELoss":
        values = rng.random((4, 3))
        values[0] = [0.0, 1.0, 1e-30]
        target[0] = [0.3, 0.2, 0.9]
    if name == "KLDivLoss":
        target[0, 0] = 0.0
    x, y = both(values)
    t, u = both(target, False)
    ours, theirs = dict(options), dict(options)
    if "pos_weight" in options:
        ours["pos_weight"], theirs["pos_weight"] = (p.detach() for p in both(rng.random(3)))
    a = getattr(tenon.nn, name)(reduction=reduction, **ours)(x, t)
    b = getattr(torch.nn, name)(reduction=reduction, **theirs)(y, u)
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    inner = slice(1, None) if name == "BCELoss" else slice(None)  # at 0 and 1 the slope is a convention
    close(x.grad[inner], y.grad[inner], 1e-10)


def test_a_cosine_loss_agrees():
    rng = np.random.default_rng(3)
    pairs = [both(rng.standard_normal((5, 4))) for _ in range(2)]
    sign = np.array([1, -1, 1, -1, 1])
    ours = tenon.nn.CosineEmbeddingLoss(0.2)(*(p[0] for p in pairs), tenon.tensor(sign))
    theirs = torch.nn.CosineEmbeddingLoss(0.2)(*(p[1] for p in pairs), torch.tensor(sign))
    close(ours, theirs)
    ours.backward()
    theirs.backward()
    close(pairs[0][0].grad, pairs[0][1].grad, 1e-10)


SIGNS = np.array([1, -1, 1, -1, 1])
VECTORS = {
    "CosineSimilarity": (2, (), [{}]),
    "PairwiseDistance": (2, (), [{}, {"p": 1}, {"p": 3}, {"p": float("inf")}, {"keepdim": True}]),
    "TripletMarginLoss": (3, (), [{}, {"swap": True, "margin": 3.0}, {"p": 1, "reduction": "sum"}, {"reduction": "none"}]),
    "MarginRankingLoss": (2, (SIGNS[:, None],), [{}, {"margin": 0.5, "reduction": "sum"}, {"reduction": "none"}]),
    "HingeEmbeddingLoss": (1, (SIGNS[:, None],), [{}, {"margin": 0.5, "reduction": "sum"}, {"reduction": "none"}]),
    "SoftMarginLoss": (1, (np.broadcast_to(SIGNS[:, None], (5, 4)).copy(),), [{}, {"reduction": "sum"}]),
    "PoissonNLLLoss": (1, (np.arange(20.0).reshape(5, 4),), [{}, {"full": True}, {"reduction": "none"}]),
    "GaussianNLLLoss": (2, (np.arange(20.0).reshape(5, 4),), [{}, {"full": True}, {"reduction": "none"}]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_losses_of_vectors_agree(name):
    count, constant, cases = VECTORS[name]
    for options in cases:
        rng = np.random.default_rng(3)
        pairs = [both(rng.standard_normal((5, 4))) for _ in range(count)]
        ours, theirs = getattr(tenon.nn, name)(**options), getattr(torch.nn, name)(**options)
        assert repr(ours) == repr(theirs)
        a = ours(*(p[0] for p in pairs), *map(tenon.tensor, constant)) if name != "GaussianNLLLoss" else None
        b = theirs(*(p[1] for p in pairs), *map(torch.tensor, constant)) if name != "GaussianNLLLoss" else None
        if a is None:  # the constant stands between the two, and variances are positive
            a = ours(pairs[0][0], tenon.tensor(constant[0]), pairs[1][0].abs())
            b = theirs(pairs[0][1], torch.tensor(constant[0]), pairs[1][1].abs())
        close(a, b)
        a.sum().backward()
        b.sum().backward()
        for x, y in pairs:
            close(x.grad, y.grad, 1e-10)


def test_weighted_losses_and_former_names_agree():
    rng = np.random.default_rng(4)
    (x, y), (t, u), (v, w) = (both(rng.random((3, 4))) for _ in range(3))
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            options = {"reduction": reduction}
            close(
                getattr(tenon.nn.functional, name)(x, t, weight=v, **options),
                getattr(torch.nn.functional, name)(y, u, weight=w, **options),
            )
    with pytest.warns(UserWarning):
        close(tenon.nn.MSELoss(size_average=False)(x, t), torch.nn.MSELoss(size_average=False)(y, u))
        close(tenon.nn.functional.mse_loss(x, t, reduce=False), torch.nn.functional.mse_loss(y, u, reduce=False))


def test_containers_print_alike():
    def build(nn):
        return nn.Sequential(
            nn.Linear(2, 3), nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]), nn.ModuleDict({"a": nn.Linear(1, 1, bias=False)}),
            nn.Dropout(0.1), nn.Sequential(),
        )  # fmt: skip

    assert repr(build(tenon.nn)) == repr(build(torch.nn))
    assert list(build(tenon.nn).state_dict()) == list(build(torch.nn).state_dict())


class Uneven:
    """0 to 10, of which worker 0 of 2 has the first three."""

    def rows(self, info):
        if info is None:
            return range(11)
        return range(3) if info.id == 0 else range(3, 11)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 2, 4, None])
def test_loaders_agree(workers, drop_last, batch_size):
    if batch_size is None and drop_last:
        return

    def batches(library):
        data = library.utils.data

        class Rows(data.IterableDataset):
            def __iter__(self):
                return iter(Uneven().rows(data.get_worker_info()))

        class Numbers(data.Dataset):
            def __len__(self):
                return 11

            def __getitem__(self, i):
                return {"i": i, "pair": (float(i), [str(i)])}

        out = []
        for dataset in (Rows(), Numbers()):
            loader = data.DataLoader(dataset, batch_size, num_workers=workers, drop_last=drop_last)
            out.append([plain(batch) for batch in loader])
        return out

    def plain(x):
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            return [plain(v) for v in x]
        return (str(x.dtype).split(".")[1], x.tolist()) if hasattr(x, "tolist") else x

    assert batches(tenon) == batches(torch)
