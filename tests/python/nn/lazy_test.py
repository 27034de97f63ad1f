"""Layers that find their sizes at the first call."""

import copy
import pickle

import pytest

import tenon
from tenon import nn
from tenon.nn.modules.lazy import LazyModuleMixin
from tenon.nn.parameter import is_lazy

LAYERS = [
    ("Linear", (4,), (3, 5), (4, 5)),
    ("Conv1d", (4, 3), (2, 6, 7), (4, 6, 3)),
    ("Conv2d", (4, 3), (6, 7, 7), (4, 6, 3, 3)),
    ("Conv3d", (4, 2), (2, 6, 3, 3, 3), (4, 6, 2, 2, 2)),
    ("ConvTranspose1d", (4, 3), (2, 6, 7), (6, 4, 3)),
    ("ConvTranspose2d", (4, 3), (2, 6, 7, 7), (6, 4, 3, 3)),
    ("ConvTranspose3d", (4, 2), (2, 6, 3, 3, 3), (6, 4, 2, 2, 2)),
    ("BatchNorm1d", (), (3, 6), (6,)),
    ("BatchNorm2d", (), (3, 6, 2, 2), (6,)),
    ("BatchNorm3d", (), (3, 6, 2, 2, 2), (6,)),
    ("InstanceNorm1d", (), (3, 6, 4), (6,)),
    ("InstanceNorm2d", (), (3, 6, 2, 2), (6,)),
    ("InstanceNorm3d", (), (3, 6, 2, 2, 2), (6,)),
]


@pytest.mark.parametrize(("name", "args", "shape", "weight"), LAYERS, ids=[row[0] for row in LAYERS])
def test_the_first_input_gives_the_sizes(name, args, shape, weight):
    layer = getattr(nn, f"Lazy{name}")(*args)
    assert layer.has_uninitialized_params() and isinstance(layer, LazyModuleMixin) and is_lazy(layer.weight)
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    parameters = list(layer.parameters())
    x = tenon.randn(*shape)
    y = layer(x)
    assert type(layer) is getattr(nn, name) and layer.weight.shape == weight and not is_lazy(layer.weight)
    assert [id(p) for p in layer.parameters()] == [id(p) for p in parameters] and type(layer.weight) is nn.Parameter
    y.sum().backward()
    assert layer.weight.grad.shape == weight
    layer.eval()
    for other in copies:
        other.load_state_dict(layer.state_dict())
        other.eval()
        assert other(x).equal(layer(x)) and repr(other) == repr(layer)


def test_options_are_those_of_the_layer():
    conv = nn.LazyConv2d(4, 3, 2, 1, groups=2, bias=False, dtype=tenon.float64)
    conv(tenon.ones(1, 6, 5, 5).double())
    assert conv.weight.shape == (4, 3, 3, 3) and conv.bias is None and conv.weight.dtype is tenon.float64 and conv.stride == (2, 2)
    assert 0 < conv.weight.abs().max() <= 27**-0.5
    same = nn.LazyConv1d(2, 4, padding="same")
    assert same(tenon.ones(1, 3, 7)).shape == (1, 2, 7) and same.padding == "same"
    norm = nn.LazyBatchNorm1d(affine=False, track_running_stats=False)
    norm(tenon.randn(4, 3))
    assert norm.num_features == 3 and norm.weight is None and norm.running_mean is None
    model = nn.Sequential(nn.LazyLinear(3), nn.Tanh(), nn.LazyLinear(1, bias=False))
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.1)
    model(tenon.ones(2, 5)).sum().backward()
    before = [p.clone() for p in model.parameters()]
    optimizer.step()
    assert any(not a.equal(b) for a, b in zip(before, model.parameters()))


def test_what_has_no_shape_says_so():
    p = nn.UninitializedParameter(dtype=tenon.float64)
    for call, text in ((lambda: p.shape, "not initialized and has none"), (p.share_memory_, "not initialized")):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert repr(p) == "<UninitializedParameter>" and p.requires_grad
    p.materialize((2, 3))
    assert type(p) is nn.Parameter and p.shape == (2, 3) and p.dtype is tenon.float64
    b = nn.UninitializedBuffer()
    b.materialize((2,), dtype=tenon.int32)
    assert type(b) is nn.Buffer and b.dtype is tenon.int32
    with pytest.raises(RuntimeError, match="LazyConv2d: expected input of 3 or 4 dimensions"):
        nn.LazyConv2d(2, 1)(tenon.ones(2, 2))
    with pytest.raises(ValueError, match="LazyConv2d: in_channels 3 must be divisible by groups 2"):
        nn.LazyConv2d(2, 1, groups=2)(tenon.ones(1, 3, 2, 2))
    with pytest.raises(ValueError, match="LazyConv2d: out_channels 3 must not be negative, and be divisible"):
        nn.LazyConv2d(3, 1, groups=2)

    class Own(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def forward(self, input):
            return input * self.weight

    class Forgetful(Own):
        def initialize_parameters(self, input):
            pass

    class Whole(Own):
        def initialize_parameters(self, input):
            self.weight.materialize(input.shape)

    assert Whole()(tenon.ones(3)).shape == (3,)
    with pytest.raises(NotImplementedError, match="initialize_parameters: Own must have it"):
        Own()(1)
    with pytest.raises(RuntimeError, match="Forgetful: parameters are not initialized after"):
        Forgetful()(1)
