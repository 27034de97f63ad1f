"""nn.utils.parametrize, weight_norm and spectral_norm: values beside NumPy's in float64, names in states, errors."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import tenon
from tenon import nn
from tenon.nn.utils import parametrizations, parametrize
from tenon.nn.utils.parametrize import register_parametrization, remove_parametrizations


def older(name):
    """A function of nn.utils without its warning."""

    def call(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return getattr(nn.utils, name)(*args, **kwargs)

    call.__name__ = f"older {name}"
    return call


WEIGHT_NORMS = [parametrizations.weight_norm, older("weight_norm")]
SPECTRAL_NORMS = [parametrizations.spectral_norm, older("spectral_norm")]


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()


class Product(nn.Module):
    """Of two tensors."""

    def forward(self, a, b):
        return a * b

    def right_inverse(self, x):
        return x.clone(), tenon.ones_like(x)


def double(tensor):
    return tensor.detach().numpy().astype(np.float64)


def normalized(v, g, dim):
    """g v / |v|, in float64."""
    axes = None if dim is None else tuple(d for d in range(v.ndim) if d != dim % v.ndim)
    length = np.sqrt((v**2).sum(axes, keepdims=dim is not None)) if axes != () else np.abs(v)
    return v * (g / length)


@pytest.mark.parametrize("make", WEIGHT_NORMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_beside_numpy(make, dim):
    tenon.manual_seed(0)
    module = nn.Conv1d(3, 5, 2)
    start = double(module.weight)
    assert make(module, dim=dim) is module
    np.testing.assert_allclose(double(module.weight), start, rtol=1e-6)
    g, v = [p for name, p in module.named_parameters() if name != "bias"]
    assert list(g.shape) == {0: [5, 1, 1], 1: [1, 3, 1], None: []}[dim]
    with tenon.no_grad():
        v.add_(0.5)
        g.mul_(3)
    x = tenon.randn(2, 3, 7)
    y = module(x)
    want = normalized(double(v), double(g), dim)
    np.testing.assert_allclose(double(module.weight), want, rtol=1e-6)
    np.testing.assert_allclose(double(y), double(nn.functional.conv1d(x, tenon.tensor(want, dtype=tenon.float32), module.bias)), atol=1e-5)
    # The gradient in g is the sum of the weight's along v / |v|.
    y.sum().backward()
    plain = tenon.tensor(want, dtype=tenon.float32).requires_grad_()
    nn.functional.conv1d(x, plain).sum().backward()
    axes = None if dim is None else tuple(d for d in range(3) if d != dim)
    np.testing.assert_allclose(
        double(g.grad), (double(plain.grad) * normalized(double(v), 1, dim)).sum(axes, keepdims=dim is not None), rtol=1e-4, atol=1e-4
    )
    assert v.grad is not None


def test_weight_norm_of_a_vector():
    module = nn.Module()
    module.weight = nn.Parameter(tenon.tensor([3.0, -4.0]))
    parametrizations.weight_norm(module)
    assert module.parametrizations.weight.original0.tolist() == [3, 4] and module.weight.tolist() == [3, -4]


def sigma(matrix, u, v, steps, first):
    """What steps of the power method make of u and v, and the singular value, in float64."""
    unit = lambda x: x / np.sqrt((x**2).sum())
    for _ in range(steps):
        if first == "u":
            u = unit(matrix @ v)
            v = unit(matrix.T @ u)
        else:
            v = unit(matrix.T @ u)
            u = unit(matrix @ v)
    return u, v, u @ matrix @ v


@pytest.mark.parametrize("make", SPECTRAL_NORMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("module", [nn.Linear(6, 4), nn.Conv2d(3, 5, 2), nn.ConvTranspose2d(3, 5, 2)], ids=lambda m: type(m).__name__)
def test_spectral_norm_beside_numpy(make, module):
    tenon.manual_seed(0)
    module = copy.deepcopy(module)
    module.reset_parameters()
    dim = int(isinstance(module, nn.ConvTranspose2d))
    start = double(module.weight)
    matrix = np.moveaxis(start, dim, 0).reshape(start.shape[dim], -1)
    assert make(module, n_power_iterations=2) is module
    u, v = [double(b) for b in module.buffers()]
    x = tenon.randn(2, 6) if isinstance(module, nn.Linear) else tenon.randn(2, 3, 6, 6)
    first = "u" if make is parametrizations.spectral_norm else "v"
    for training in (True, True, False):
        module.train(training)
        module(x).sum().backward()
        u, v, value = sigma(matrix, u, v, 2 * training, first)
        for found, want in zip(module.buffers(), (u, v)):
            np.testing.assert_allclose(double(found), want, atol=1e-5)
    module.eval()
    np.testing.assert_allclose(double(module.weight), start / value, rtol=1e-5, atol=1e-7)
    for _ in range(200 if make is parametrizations.spectral_norm else 0):
        u, v, value = sigma(matrix, u, v, 1, first)
    if make is parametrizations.spectral_norm:
        module.train()
        for _ in range(100):
            module.weight
        assert value == pytest.approx(np.linalg.svd(matrix)[1][0])
        np.testing.assert_allclose(double(module.eval().weight), start / value, rtol=1e-4, atol=1e-6)


def test_spectral_norm_of_a_vector():
    module = nn.Module()
    module.weight = nn.Parameter(tenon.tensor([3.0, 4.0]))
    parametrizations.spectral_norm(module)
    np.testing.assert_allclose(module.weight.tolist(), [0.6, 0.8], rtol=1e-6)
    assert list(module.state_dict()) == ["parametrizations.weight.original"]


def test_two_forward_passes_before_one_backward():
    """As generative adversarial networks have it: the second forward changes the singular vectors."""
    for make in SPECTRAL_NORMS:
        module = make(nn.Linear(4, 4))
        (module(tenon.randn(2, 4)).sum() - module(tenon.randn(2, 4)).sum()).backward()
        assert all(p.grad is not None for p in module.parameters())


STATES = {
    parametrizations.weight_norm: ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"],
    parametrizations.spectral_norm: ["bias", "parametrizations.weight.original", "parametrizations.weight.0._u", "parametrizations.weight.0._v"],
    WEIGHT_NORMS[1]: ["bias", "weight_g", "weight_v"],
    SPECTRAL_NORMS[1]: ["bias", "weight_orig", "weight_u", "weight_v"],
}


@pytest.mark.parametrize("make", STATES, ids=lambda f: f.__name__)
def test_states_and_copies(make, tmp_path):
    module = make(nn.Linear(3, 4)).eval()
    assert list(module.state_dict()) == STATES[make]
    tenon.save(module.state_dict(), tmp_path / "state")
    other = make(nn.Linear(3, 4)).eval()
    assert str(other.load_state_dict(tenon.load(tmp_path / "state"))) == "<All keys matched successfully>"
    x = tenon.randn(2, 3)
    y = module(x)
    assert other(x).tolist() == y.tolist()
    twin = copy.deepcopy(module)
    assert repr(twin) == repr(module) and list(twin.state_dict()) == STATES[make] and twin(x).tolist() == y.tolist()
    with tenon.no_grad():
        for p in twin.parameters():
            p.mul_(2).add_(1)
    assert twin(x).tolist() != y.tolist() and module(x).tolist() == y.tolist()
    twin(x).sum().backward()
    assert all(p.grad is not None for p in twin.parameters()) and all(p.grad is None for p in module.parameters())


@pytest.mark.filterwarnings("ignore:compile.pure=True.")  # of what is recorded at every call
@pytest.mark.parametrize("make", STATES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("options", [{}, {"pure": True}], ids=["recorded", "pure"])
@pytest.mark.parametrize("training", [True, False])
def test_compiled_programs_compute_the_weight_again(make, options, training):
    tenon.manual_seed(0)
    module = make(nn.Linear(16, 16)).train(training)
    twin = copy.deepcopy(module)
    call = tenon.compile(lambda x: module(x), **options)
    steps = [tenon.optim.SGD(m.parameters(), 0.1) for m in (module, twin)]
    x = tenon.randn(4, 16)
    for _ in range(6):
        results = call(x), twin(x)
        np.testing.assert_allclose(double(results[0]), double(results[1]), rtol=1e-5, atol=1e-6)
        for y, step in zip(results, steps):
            step.zero_grad()
            y.square().mean().backward()
            step.step()
    for (name, value), want in zip(module.state_dict().items(), twin.state_dict().values()):
        np.testing.assert_allclose(double(value), double(want), rtol=1e-5, atol=1e-6, err_msg=name)
    with tenon.no_grad():
        for _ in range(6):
            np.testing.assert_allclose(double(call(x)), double(twin(x)), rtol=1e-5, atol=1e-6)
            for m in (module, twin):
                next(m.parameters()).mul_(1.5)


@pytest.mark.parametrize("make", [parametrizations.weight_norm, parametrizations.spectral_norm], ids=lambda f: f.__name__)
@pytest.mark.parametrize("training", [True, False])
def test_replays_compute_the_weight_again(make, training):
    tenon.manual_seed(0)
    module = make(nn.Linear(16, 16)).train(training)
    twin, x = copy.deepcopy(module), tenon.randn(4, 16)

    @tenon.compile(pure=True)
    def call(x):
        return module(x)

    with tenon.no_grad():
        for _ in range(8):
            np.testing.assert_allclose(double(call(x)), double(twin(x)), rtol=1e-5, atol=1e-6)
            for m in (module, twin):
                list(m.parameters())[-1].mul_(1.5).add_(0.1)
    assert call.explain().of("replays")[0]["runs"] >= 4
    for value, want in zip(module.buffers(), twin.buffers()):
        np.testing.assert_allclose(double(value), double(want), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make, remove", [(WEIGHT_NORMS[1], "remove_weight_norm"), (SPECTRAL_NORMS[1], "remove_spectral_norm")], ids=["weight", "spectral"])
def test_removing_older_norms(make, remove):
    module = make(nn.Linear(3, 4)).eval()
    x = tenon.randn(2, 3)
    y = module(x)
    assert getattr(nn.utils, remove)(module) is module
    np.testing.assert_allclose(double(module(x)), double(y), rtol=1e-6)
    assert list(module.state_dict()) == ["bias", "weight"] and isinstance(module.weight, nn.Parameter)
    with pytest.raises(ValueError, match=rf"^{remove.removeprefix('remove_')} of 'weight' not found in Linear\("):
        getattr(nn.utils, remove)(module)
    make(module)
    with pytest.raises(RuntimeError, match=f"^Cannot register two {remove.removeprefix('remove_')} hooks on the same parameter weight$"):
        make(module)


def test_weight_norm_loads_states_of_the_older_one():
    old, new = WEIGHT_NORMS[1](nn.Linear(3, 4)), parametrizations.weight_norm(nn.Linear(3, 4))
    state = {f"0.{key}": value for key, value in old.state_dict().items()}
    nn.Sequential(new).load_state_dict(state)
    assert list(state) == ["0.bias", "0.weight_g", "0.weight_v"]  # the caller's stays as it was
    x = tenon.randn(2, 3)
    np.testing.assert_allclose(double(new(x)), double(old(x)), rtol=1e-6)


def test_a_parametrization_is_computed_wherever_the_tensor_is_used():
    module = nn.Linear(3, 3)
    start = double(module.weight)
    assert register_parametrization(module, "weight", Symmetric()) is module
    np.testing.assert_array_equal(double(module.weight), np.triu(start) + np.triu(start, 1).T)
    assert repr(module) == (
        "ParametrizedLinear(\n  in_features=3, out_features=3, bias=True\n  (parametrizations): ModuleDict(\n"
        "    (weight): ParametrizationList(\n      (0): Symmetric()\n    )\n  )\n)"
    )
    assert isinstance(module, nn.Linear) and parametrize.type_before_parametrizations(module) is nn.Linear is parametrize.type_before_parametrizations(nn.Linear(1, 1))
    assert [name for name, _ in module.named_parameters()] == ["bias", "parametrizations.weight.original"]
    module(tenon.ones(1, 3)).sum().backward()
    np.testing.assert_array_equal(double(module.parametrizations.weight.original.grad), [[1, 2, 2], [0, 1, 2], [0, 0, 1]])
    module.to(tenon.float64)
    assert module.weight.dtype is tenon.float64
    with pytest.raises(RuntimeError, match="^parametrization Symmetric does not implement right_inverse.$"):
        module.weight = tenon.ones(3, 3, dtype=tenon.float64)


def test_several_parametrizations_and_assignments():
    module = nn.Linear(2, 2)
    start = double(module.weight)
    register_parametrization(module, "weight", Doubled())
    np.testing.assert_allclose(double(module.weight), start)
    np.testing.assert_allclose(double(module.parametrizations.weight.original), start / 2)
    register_parametrization(module, "weight", Doubled())
    np.testing.assert_allclose(double(module.weight), 2 * start)
    original = module.parametrizations.weight.original
    module.weight = tenon.full((2, 2), 8.0)
    assert module.parametrizations.weight.original is original and original.tolist() == [[2, 2], [2, 2]]
    assert module.weight.tolist() == [[8, 8], [8, 8]]
    register_parametrization(module, "bias", Doubled())
    assert parametrize.is_parametrized(module, "bias") and parametrize.is_parametrized(module) and not parametrize.is_parametrized(module, "x")
    for name in ("weight", "bias"):
        remove_parametrizations(module, name, leave_parametrized=name == "weight")
    assert type(module) is nn.Linear and not hasattr(module, "parametrizations") and module.weight.tolist() == [[8, 8], [8, 8]]
    assert module.weight is original and isinstance(module.bias, nn.Parameter) and not parametrize.is_parametrized(module)


def test_parametrizations_of_several_tensors():
    module = register_parametrization(nn.Linear(2, 2), "weight", Product())
    assert list(module.state_dict()) == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    module.weight = tenon.full((2, 2), 3.0)
    assert module.weight.tolist() == [[3, 3], [3, 3]] and module.parametrizations.weight.original1.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(ValueError, match=r"^Cannot leave unparametrized \(`leave_parametrized=False`\) a tensor that is parametrized in terms of a sequence of tensors.$"):
        remove_parametrizations(module, "weight", leave_parametrized=False)
    remove_parametrizations(module, "weight")
    assert isinstance(module.weight, nn.Parameter) and module.weight.tolist() == [[3, 3], [3, 3]]


def test_buffers_can_be_parametrized():
    module = nn.BatchNorm1d(2)
    register_parametrization(module, "running_mean", Doubled())
    assert "parametrizations.running_mean.original" in dict(module.named_buffers())
    module.running_mean = tenon.ones(2)
    assert module.running_mean.tolist() == [1, 1]
    remove_parametrizations(module, "running_mean")
    assert "running_mean" in dict(module.named_buffers()) and module.running_mean.tolist() == [1, 1]


class Counting(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return x + 1


def test_inside_cached_each_tensor_is_computed_once():
    modules = [register_parametrization(nn.Linear(2, 2), "weight", Counting(), unsafe=True) for _ in range(2)]
    twin = copy.deepcopy(modules[0])
    with parametrize.cached(), parametrize.cached():
        assert modules[0].weight is modules[0].weight is not modules[1].weight and twin.weight is not modules[0].weight
    assert modules[0].parametrizations.weight[0].calls == 1 and parametrize._cache == {}
    assert modules[0].weight is not modules[0].weight


def test_a_copy_keeps_its_own_parametrizations():
    module = register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    twin = copy.deepcopy(module)
    remove_parametrizations(module, "weight")
    assert parametrize.is_parametrized(twin, "weight") and twin.weight.tolist() == module.weight.tolist() and type(twin).__name__ == "ParametrizedLinear"
    with pytest.raises(RuntimeError, match=r"^Serialization of parametrized modules is only supported through state_dict\(\)"):
        pickle.dumps(twin)


def test_transfers():
    source, target = register_parametrization(nn.Linear(2, 2), "weight", Doubled()), nn.Linear(2, 2)
    assert parametrize.transfer_parametrizations_and_params(source, target, "weight") is target
    assert target.parametrizations.weight.original is source.parametrizations.weight.original and target.weight.tolist() == source.weight.tolist()
    bare = nn.Module()
    several = register_parametrization(nn.Linear(2, 2), "weight", Product())
    parametrize.transfer_parametrizations_and_params(several, bare)
    assert bare.parametrizations.weight.original0 is several.parametrizations.weight.original0 and bare.weight.tolist() == several.weight.tolist()
    assert parametrize.transfer_parametrizations_and_params(nn.Linear(2, 2), bare) is bare


def returning(value, inverse=None):
    class Map(nn.Module):
        def forward(self, *x):
            return value(*x)

    if inverse is not None:
        Map.right_inverse = lambda self, x: inverse(x)
    return Map()


FIRST = {
    "no tensor": (returning(lambda x: 3), r"^A parametrization must return a tensor. Got int.$"),
    "another dtype": (returning(lambda x: x.double()), "^Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is enabled.\nunparametrized dtype: tenon.float32\nparametrized dtype: tenon.float64$"),
    "another shape": (returning(lambda x: x[0]), "^Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled.\nunparametrized shape: .*\nparametrized shape: "),
    "an inverse of nothing": (returning(lambda x: x, lambda x: 3), r"^'right_inverse' must return a Tensor or a Sequence of tensors \(list, tuple...\). Got int$"),
    "an inverse of numbers": (returning(lambda x: x, lambda x: [3]), r"^'right_inverse' must return a Tensor or a Sequence of tensors .* Got element 0 of the sequence with type int.$"),
    "an inverse of another dtype": (returning(lambda x: x, lambda x: x.double()), "^When `right_inverse` outputs one tensor, it may not change the dtype.\noriginal.dtype: tenon.float32\nright_inverse\\(original\\).dtype: tenon.float64$"),
    "an inverse elsewhere": (returning(lambda x: x, lambda x: x.to("meta")), "^When `right_inverse` outputs one tensor, it may not change the device.\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", FIRST)
def test_what_a_first_parametrization_may_not_do(what):
    parametrization, text = FIRST[what]
    module = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=text):
        register_parametrization(module, "weight", parametrization)
    assert type(module) is nn.Linear and not hasattr(module, "parametrizations")


SECOND = {
    "no tensor": (returning(lambda x: 3), r"^A parametrization must return a tensor. Got int.$"),
    "another dtype": (returning(lambda x: x.double()), "unless the `unsafe` flag is enabled.\nmodule.weight.dtype: tenon.float32\nparametrization\\(module.weight\\).dtype: tenon.float64$"),
    "another shape": (returning(lambda x: x[0]), "unless the `unsafe` flag is enabled.\nmodule.weight.shape: .*\nparametrization\\(module.weight\\).shape: "),
    "an inverse of nothing": (returning(lambda x: x, lambda x: 3), "^parametrization.right_inverse must return a tensor. Got: int$"),
    "an inverse of another dtype": (returning(lambda x: x, lambda x: x.double()), "^The tensor returned by parametrization.right_inverse must have the same dtype as module.weight, unless the `unsafe` flag is enabled.\nmodule.weight.dtype: tenon.float32\nreturned dtype: tenon.float64$"),
    "an inverse of another shape": (returning(lambda x: x, lambda x: x[0]), "^The tensor returned by parametrization.right_inverse must have the same shape as module.weight"),
}  # fmt: skip


@pytest.mark.parametrize("what", SECOND)
def test_what_a_second_parametrization_may_not_do(what):
    parametrization, text = SECOND[what]
    module = register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    with pytest.raises(ValueError, match=text):
        register_parametrization(module, "weight", parametrization)
    assert len(module.parametrizations.weight) == 1


ASSIGNED = {
    "numbers": (lambda x: x, lambda x: 3, "^`right_inverse` should return a tensor. Got int$"),
    "a dtype": (lambda x: x, lambda x: x.double(), "^The tensor returned by `right_inverse` has dtype tenon.float64 while `original` has dtype tenon.float32$"),
    "no sequence": (lambda a, b: a, lambda x: x, r"^'right_inverse' must return a sequence of tensors. Got Tensor.$"),
    "one too few": (lambda a, b: a, lambda x: [x], r"^'right_inverse' must return a sequence of tensors of length 2. Got a sequence of length 1.$"),
    "a number in it": (lambda a, b: a, lambda x: [x, 3], r"^'right_inverse' must return a sequence of tensors. Got element 1 of type int.$"),
    "a dtype in it": (lambda a, b: a, lambda x: [x, x.double()], "^Tensor 1 returned by `right_inverse` has dtype tenon.float64 while `original1` has dtype tenon.float32$"),
}  # fmt: skip


@pytest.mark.parametrize("what", ASSIGNED)
def test_what_an_assignment_may_not_do(what):
    forward, inverse, text = ASSIGNED[what]
    several = forward.__code__.co_argcount == 2
    parametrization = returning(forward, lambda x: (x, x) if several else x)
    module = register_parametrization(nn.Linear(2, 2), "weight", parametrization)
    type(parametrization).right_inverse = lambda self, x: inverse(x)
    with pytest.raises(ValueError, match=text):
        module.weight = tenon.ones(2, 2)


def test_inverses_that_are_not_there():
    def absent(x):
        raise NotImplementedError

    module = nn.Linear(2, 2)
    for _ in range(2):
        register_parametrization(module, "weight", returning(lambda x: x + 1, absent))
    with pytest.raises(NotImplementedError):
        module.weight = tenon.ones(2, 2)


def test_other_errors():
    module = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"^Module 'Linear\(.*\)' does not have a parameter, a buffer, or a parametrized element with name 'x'$"):
        register_parametrization(module, "x", Doubled())
    with pytest.raises(ValueError, match=r"^Module Linear\(.*\) does not have a parametrization on weight$"):
        remove_parametrizations(module, "weight")
    with pytest.raises(ValueError, match="^ParametrizationList requires one or more modules.$"):
        parametrize.ParametrizationList([], module.weight)
    with pytest.raises(ValueError, match=r"^Module 'Linear\(.*\)' has no parameter or buffer with name 'x'$"):
        parametrizations.spectral_norm(module, "x")
    with pytest.raises(IndexError, match=r"^Dimension out of range \(expected to be in range of \[-2, 1\] but got 2\)$"):
        parametrizations.spectral_norm(module, dim=2)
    for make in SPECTRAL_NORMS:
        with pytest.raises(ValueError, match="^Expected n_power_iterations to be positive, but got n_power_iterations=0$"):
            make(module, n_power_iterations=0)
    with pytest.raises(ValueError, match="^`SpectralNorm` cannot be applied as parameter `bias` is None$"):
        nn.utils.spectral_norm(nn.Linear(2, 2, bias=False), "bias")
    with pytest.raises(KeyError, match="spectral_norm: Linear has no parameter 'x'"):
        nn.utils.spectral_norm(module, "x")
    with pytest.raises(NotImplementedError, match="^orthogonal: Tenon has no matrix exponential, QR decomposition or solver for it; nn.init.orthogonal_ makes"):
        parametrizations.orthogonal(module)
    with pytest.warns(FutureWarning, match="^weight_norm of nn.utils is deprecated in favor of nn.utils.parametrizations.weight_norm$") as seen:
        nn.utils.weight_norm(module)
    assert seen[0].filename == __file__
    with pytest.raises(AttributeError, match="has no attribute 'not_there'"):
        parametrize.not_there


def test_modules_of_functions_have_their_names():
    """A function and its module have one name, as in PyTorch: what is asked for first changes nothing."""
    from tenon.nn.utils.spectral_norm import SpectralNorm
    from tenon.nn.utils.weight_norm import WeightNorm

    assert callable(nn.utils.weight_norm) and callable(nn.utils.spectral_norm)
    assert WeightNorm("weight", None).dim == -1 and SpectralNorm().name == "weight"


def test_skip_init():
    module = nn.utils.skip_init(nn.Linear, 3, out_features=2)
    assert module.weight.shape == (2, 3) and module.weight.device.type == "cpu" and isinstance(module.weight, nn.Parameter)
    assert nn.utils.skip_init(nn.Linear, 3, 2, device="meta").weight.is_meta
    with pytest.raises(RuntimeError, match="^skip_init: Expected a Module; got the class int$"):
        nn.utils.skip_init(int)
    with pytest.raises(RuntimeError, match="^skip_init: Module must support a 'device' arg to skip initialization$"):
        nn.utils.skip_init(nn.ReLU)
