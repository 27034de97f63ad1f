"""Parametrized modules beside PyTorch's: values, gradients, errors, and states that go from one to the other."""

import copy

import numpy as np
import pytest

import tenon

torch = pytest.importorskip("torch", reason="PyTorch is not installed: see CONTRIBUTING.md for how to run beside it")

MAKERS = {
    "weight_norm": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
    "weight_norm, dim=1": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=1),
    "weight_norm, dim=None": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=None),
    "spectral_norm": lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=2),
    "older weight_norm": lambda lib, m: lib.nn.utils.weight_norm(m),
    "older weight_norm, dim=None": lambda lib, m: lib.nn.utils.weight_norm(m, dim=None),
    "older spectral_norm": lambda lib, m: lib.nn.utils.spectral_norm(m),
}
MODULES = {
    "Linear": (lambda lib: lib.nn.Linear(4, 3), (2, 4)),
    "Conv2d": (lambda lib: lib.nn.Conv2d(3, 4, 3), (2, 3, 6, 6)),
    "ConvTranspose1d": (lambda lib: lib.nn.ConvTranspose1d(3, 4, 3), (2, 3, 6)),
}


def loaded(path, module):
    return str(module.load_state_dict(tenon.load(path))) == "<All keys matched successfully>"


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("how", MAKERS)
def test_states_of_pytorch_give_its_results(how, kind, zipped, tmp_path):
    module, shape = MODULES[kind]
    theirs, ours = MAKERS[how](torch, module(torch)), MAKERS[how](tenon, module(tenon))
    torch.save(theirs.state_dict(), tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    assert loaded(tmp_path / "x.pt", ours) and list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    draw = np.random.default_rng(0)
    for training in (True, True, False):
        x = draw.normal(size=shape).astype(np.float32)
        for m in (theirs, ours):
            m.train(training)
        y, z = theirs(torch.tensor(x)), ours(tenon.tensor(x))
        np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-5)
        y.square().sum().backward()
        z.square().sum().backward()
    for (name, p), q in zip(theirs.named_parameters(), ours.parameters()):
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)
    for (name, p), q in zip(theirs.state_dict().items(), ours.state_dict().values()):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
    # Back again, by PyTorch's names.
    theirs.load_state_dict({name: torch.tensor(value.numpy()) for name, value in ours.state_dict().items()})
    twin = copy.deepcopy(ours)
    np.testing.assert_allclose(twin(tenon.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5)


def errors_of(lib):
    """What each of these raises."""
    P, nn = lib.nn.utils.parametrize, lib.nn

    class Map(nn.Module):
        def __init__(self, forward, inverse=None):
            super().__init__()
            self.f = forward
            if inverse is not None:
                self.right_inverse = inverse

        def forward(self, *x):
            return self.f(*x)

    def twice(first, second):
        m = P.register_parametrization(nn.Linear(2, 2), "weight", first)
        P.register_parametrization(m, "weight", second)

    def assigned(f):
        P.register_parametrization(nn.Linear(2, 2), "weight", f).weight = lib.ones(2, 2)

    same = lambda x: x
    calls = [
        lambda: P.register_parametrization(nn.Linear(2, 2), "x", Map(same)),
        lambda: P.register_parametrization(nn.Linear(2, 2), "weight", Map(lambda x: 3)),
        lambda: P.register_parametrization(nn.Linear(2, 2), "weight", Map(lambda x: x.double())),
        lambda: P.register_parametrization(nn.Linear(2, 2), "weight", Map(lambda x: x[0])),
        lambda: P.register_parametrization(nn.Linear(2, 2), "weight", Map(same, lambda x: 3)),
        lambda: P.register_parametrization(nn.Linear(2, 2), "weight", Map(same, lambda x: x.double())),
        lambda: twice(Map(same), Map(lambda x: x[0])),
        lambda: twice(Map(same), Map(same, lambda x: x.double())),
        lambda: assigned(Map(same)),
        lambda: P.remove_parametrizations(nn.Linear(2, 2), "weight"),
        lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), "x"),
        lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), dim=2),
        lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0),
        lambda: nn.utils.spectral_norm(nn.Linear(2, 2, bias=False), "bias"),
        lambda: nn.utils.remove_weight_norm(nn.Linear(2, 2)),
        lambda: nn.utils.remove_spectral_norm(nn.Linear(2, 2)),
    ]
    found = []
    for call in calls:
        try:
            call()
            found.append("no error")
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}".replace("torch.", "tenon."))
    return found


def test_errors_are_pytorchs():
    assert errors_of(tenon) == errors_of(torch)


def test_skip_init_makes_the_same_parameters():
    assert [(n, tuple(p.shape)) for n, p in tenon.nn.utils.skip_init(tenon.nn.Conv2d, 3, 4, 2).named_parameters()] == [
        (n, tuple(p.shape)) for n, p in torch.nn.utils.skip_init(torch.nn.Conv2d, 3, 4, 2).named_parameters()
    ]


OTHERS = {
    "LSTM": (lambda nn: nn.LSTM(4, 5, 2), "weight_hh_l0", lambda m, x: m(x)[0], (3, 2, 4)),
    "GRUCell": (lambda nn: nn.GRUCell(4, 5), "weight_hh", lambda m, x: m(x), (2, 4)),
    "MultiheadAttention": (lambda nn: nn.MultiheadAttention(8, 2), "in_proj_weight", lambda m, x: m(x, x, x)[0], (3, 2, 8)),
    "Embedding": (lambda nn: nn.Embedding(6, 4), "weight", lambda m, x: m((x > 0).long()), (3,)),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_weights_of_any_name_and_module(norm, older, kind, tmp_path):
    make, name, call, shape = OTHERS[kind]
    theirs, ours = (
        getattr(lib.nn.utils if older else lib.nn.utils.parametrizations, norm)(make(lib.nn), name).eval() for lib in (torch, tenon)
    )
    torch.save(theirs.state_dict(), tmp_path / "x.pt")
    assert loaded(tmp_path / "x.pt", ours)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    y, z = call(theirs, torch.tensor(x)), call(ours, tenon.tensor(x))
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-4)
    y.sum().backward()
    z.sum().backward()
    for (name, p), q in zip(theirs.named_parameters(), ours.parameters()):
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), rtol=1e-3, atol=1e-3, err_msg=name)
