"""nn.Module and its containers: parts by name, hooks, state dicts, conversion, and what is printed."""

import collections
import copy
import os
import pickle

import numpy as np
import pytest

import tenon
from tenon import nn


def net():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("fleeting", tenon.zeros(1), persistent=False)
            self.register_buffer("count", tenon.zeros(2))
            self.scale = nn.Parameter(tenon.ones(2))
            self.body = nn.Sequential(collections.OrderedDict(first=nn.Linear(2, 3), act=nn.ReLU(), last=nn.Linear(3, 2)))
            self.absent = None

        def forward(self, x, times=1):
            return self.body(x) * self.scale * times

    return Net()


def test_every_part_has_a_dotted_name():
    m = net()
    assert [n for n, _ in m.named_buffers()] == ["fleeting", "count"]
    assert list(m.state_dict()) == ["scale", "count", "body.first.weight", "body.first.bias", "body.last.weight", "body.last.bias"]
    assert m.get_parameter("body.first.bias") is m.body.first.bias and m.get_buffer("count") is m.count
    assert m.get_submodule("") is m and m.get_submodule("body.act") is m.body[1]
    m.body.again = m.body.first
    assert [n for n, _ in m.named_parameters(remove_duplicate=False)][-2:] == ["body.again.weight", "body.again.bias"]
    assert [n for n, _ in m.named_parameters(prefix="p", recurse=False)] == ["p.scale"]
    m.set_submodule("body.act", nn.Tanh())
    assert isinstance(m.body[1], nn.Tanh)
    for call, message in [
        (lambda: m.get_parameter("body.first.x"), "Linear has no parameter 'x'"),
        (lambda: m.get_parameter("count"), "Net has no parameter 'count'"),
        (lambda: m.get_buffer("scale"), "Net has no buffer 'scale'"),
        (lambda: m.set_submodule("scale", nn.Tanh()), "Net has no module 'scale'"),
        (lambda: m.set_submodule("body.new", nn.Tanh(), strict=True), "Sequential has no module 'new'"),
    ]:
        with pytest.raises(AttributeError, match=message):
            call()


def test_state_dicts_take_prefixes_and_tensors_themselves():
    m = net()
    state = m.state_dict(prefix="m.", keep_vars=True)
    assert state["m.scale"] is m.scale and "m.count" in state
    into = collections.OrderedDict(x=1)
    assert m.state_dict(destination=into) is into and list(into)[:2] == ["x", "scale"]
    twin, values = net(), {k: v.clone() for k, v in m.state_dict().items()}
    values["scale"] = values["scale"].double()
    twin.load_state_dict(values, assign=True)
    assert twin.scale.dtype is tenon.float64 and isinstance(twin.scale, nn.Parameter) and twin.scale.requires_grad
    assert twin.body.first.weight.data_ptr() == values["body.first.weight"].data_ptr()
    assert isinstance(twin.count, nn.Buffer) and twin.count.persistent
    before = twin.body.last.bias.tolist()
    values["scale"] = tenon.ones(3)
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        twin.load_state_dict(values)
    assert twin.body.last.bias.tolist() == before


def test_a_value_that_cannot_be_copied_is_named_and_nothing_is_changed():
    m = nn.Linear(2, 3)
    before = m.weight.tolist()
    for bias, why in [
        (tenon.ones(3, device="meta"), "copy_: cannot copy out of a meta tensor; it has no data"),
        (tenon.empty(3, dtype=tenon.float8_e5m2), "copy_: no conversion from float8_e5m2 to float32"),
    ]:
        state = {"weight": tenon.ones(3, 2), "bias": bias}
        with pytest.raises(RuntimeError) as caught:
            m.load_state_dict(state)
        assert str(caught.value) == f'Error(s) in loading state_dict for Linear:\n\tWhile copying the parameter named "bias": {why}'
        assert m.weight.tolist() == before
        m.load_state_dict(state, assign=True)  # copies nothing
        assert m.bias.dtype is bias.dtype and m.bias.device == bias.device
        m = nn.Linear(2, 3)
        before = m.weight.tolist()


def test_what_copying_raises_names_the_part_and_keeps_its_type(tmp_path):
    path = tmp_path / "w.safetensors"
    m = nn.BatchNorm1d(3)
    tenon.save({name: value for name, value in m.state_dict().items()}, path)
    state = tenon.load(path, mmap=True)
    os.truncate(path, 0)
    state["bias"].sum()  # finds the file cut short
    with pytest.raises(tenon.FileError, match='for BatchNorm1d:\n\tWhile copying the parameter named "weight": .*cut short'):
        m.load_state_dict(state)


def test_extra_state_and_hooks_of_state_dicts():
    class Counter(nn.Module):
        steps = 3

        def get_extra_state(self):
            return {"steps": self.steps}

        def set_extra_state(self, state):
            self.steps = state["steps"]

    m = nn.Sequential(Counter(), nn.Linear(1, 1))
    m[0].steps = 7
    other = nn.Sequential(Counter(), nn.Linear(1, 1))
    assert m.state_dict()["0._extra_state"] == {"steps": 7}
    other.load_state_dict(m.state_dict())
    assert other[0].steps == 7
    seen = []
    m[1].register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(prefix))
    m[1].register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update({prefix + "more": 1}))
    state = m.state_dict()
    assert seen == ["1."] and state["1.more"] == 1
    other[1].register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: state.pop(prefix + "more"))
    other.register_load_state_dict_post_hook(lambda module, keys: seen.append(keys.missing_keys))
    other.load_state_dict(state)
    assert seen[-1] == [] and "1.more" in state


def test_forward_hooks_see_and_change_calls():
    m, x = nn.Linear(2, 2), tenon.ones(1, 2)
    seen = []
    m.register_forward_hook(lambda module, args, result: seen.append("second"))
    m.register_forward_hook(lambda module, args, kwargs, result: seen.append(kwargs), with_kwargs=True, prepend=True)
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"input": kwargs["input"] * 0}), with_kwargs=True)
    assert m(input=x).tolist() == [m.bias.tolist()] and seen[0]["input"].tolist() == [[0.0, 0.0]] and seen[1] == "second"

    failing = nn.Linear(2, 2)
    failing.register_forward_hook(lambda *a: seen.append("always"), always_call=True)
    with pytest.raises(ValueError):
        failing(tenon.ones(3))
    assert seen[-1] == "always"
    with m.register_forward_hook(lambda module, args, result: result * 0) as handle:
        assert m(input=x).tolist() == [[0.0, 0.0]]
    handle.remove()
    assert m(input=x).tolist() != [[0.0, 0.0]]


def test_backward_hooks_see_and_change_gradients():
    m = nn.Linear(2, 1, bias=False)
    x = tenon.tensor([[1.0, 2.0]], requires_grad=True)
    seen = []

    def hook(module, grad_input, grad_output):
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    m.register_full_backward_hook(hook)
    pre = m.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    (m(x) * 3).sum().backward()
    w = m.weight.tolist()[0]
    assert seen == [([pytest.approx([6 * v for v in w])], [[6.0]])]
    assert x.grad.tolist() == [pytest.approx([60 * v for v in w])] and m.weight.grad.tolist() == [[6.0, 12.0]]
    pre.remove()
    first = nn.Linear(2, 1)
    first.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output[0].tolist())))
    first(tenon.ones(3, 2)).sum().backward()  # no input requires grad
    assert seen[-1] == ((None,), [[1.0]] * 3)
    with pytest.raises(RuntimeError, match="returned 2 gradients for 1 inputs"):
        bad = nn.Linear(2, 1)
        bad.register_full_backward_hook(lambda *a: (None, None))
        bad(x).sum().backward()


def test_conversions_of_whole_modules():
    m = net()
    m.register_buffer("places", tenon.arange(3))
    m.scale.grad = tenon.ones(2)
    m.bfloat16()
    assert {p.dtype for p in m.parameters()} == {tenon.bfloat16} and m.places.dtype is tenon.int64
    assert m.scale.grad.dtype is tenon.bfloat16 and m.count.dtype is tenon.bfloat16
    assert m.half().scale.dtype is tenon.float16 and m.double().scale.dtype is tenon.float64
    m.type(tenon.float32)
    assert m.places.dtype is tenon.float32
    hollow = nn.Linear(2, 3, device="meta")
    assert hollow.weight.is_meta and hollow.to_empty(device="cpu").weight.shape == (3, 2) and not hollow.weight.is_meta
    assert not any(p.requires_grad for p in m.requires_grad_(False).parameters())
    assert m.eval() is m and not m.body.act.training and m.train().body.act.training
    with pytest.raises(ValueError, match=r"^train: mode must be a bool, got 'yes' \(str\)$"):
        m.train("yes")


def test_sequences_of_modules_are_lists():
    a, b, c, d = nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1), nn.Tanh()
    s = nn.Sequential(a, b) + nn.Sequential(c)
    assert list(s) == [a, b, c] and a in s and d not in s
    assert s.append(d) is s and s.pop() is d and s.insert(1, d) is s and list(s) == [a, d, b, c]
    del s[1]
    s[1] = d
    assert list(s) == [a, d, c] and s[-2] is d and [n for n, _ in s.named_children()] == ["0", "1", "2"]
    assert list(s[1:]) == [d, c] and isinstance(s[1:], nn.Sequential) and list(s.extend([b])) == [a, d, c, b]
    assert len(nn.Sequential(b) * 3) == 3 and len(2 * nn.Sequential(b)) == 2
    named = nn.Sequential({"x": a, "y": b})
    named.z = c
    assert list(named) == [a, b, c] and [n for n, _ in named[1:].named_children()] == ["y", "z"]
    named.y = d
    assert list(named) == [a, d, c]
    del named.y
    assert list(named) == [a, c] and named(tenon.ones(1, 1)).shape == (1, 1)
    items = nn.ModuleList([a]) + nn.ModuleList([b])
    items += [c]
    assert list(items) == [a, b, c] and items.pop(0) is a and isinstance(items[:1], nn.ModuleList)
    assert pickle.loads(pickle.dumps(named))[0].weight.tolist() == a.weight.tolist()
    assert copy.deepcopy(s)[0] is not s[0]
    for call, error in [
        (lambda: s[9], IndexError),
        (lambda: s.append(3), TypeError),
        (lambda: nn.Sequential(3), TypeError),
        (lambda: s * 0, ValueError),
        (lambda: s.extend(3), TypeError),
        (lambda: nn.Sequential({"a.b": b}), KeyError),
    ]:
        with pytest.raises(error):
            call()


def test_dicts_of_modules_are_dicts():
    a, b = nn.Linear(1, 1), nn.ReLU()
    d = nn.ModuleDict({"a": a})
    d.update([["b", b]])
    assert list(d) == ["a", "b"] and d["b"] is b and "a" in d and len(d) == 2 and list(d.values()) == [a, b]
    assert d.pop("a") is a and list(d.items()) == [("b", b)]
    d.clear()
    assert len(d) == 0
    for call, error in [
        (lambda: d["x"], KeyError),
        (lambda: d.update({"x": 3}), TypeError),
        (lambda: d.update([("x",)]), ValueError),
        (lambda: d.update(3), TypeError),
        (lambda: d.update({"pop": b}), KeyError),
    ]:
        with pytest.raises(error):
            call()


def test_lists_and_dicts_of_parameters():
    p = nn.ParameterList([tenon.ones(2), nn.Parameter(tenon.zeros(1)), 3])
    assert [n for n, _ in p.named_parameters()] == ["0", "1"] and isinstance(p[0], nn.Parameter) and p[-1] == 3
    p[0] = tenon.zeros(4)
    p += [tenon.ones(1)]
    assert p.pop(2) == 3 and len(p) == 3 and p[0].shape == (4,) and len(p[1:]) == 2
    assert repr(nn.ParameterList([tenon.ones(2, 3), 3])) == (
        "ParameterList(\n    (0): Parameter containing: [tenon.float32 of size 2x3]\n    (1): Object of type: int\n)"
    )
    d = nn.ParameterDict({"a": tenon.ones(2)})
    d["b"] = nn.Parameter(tenon.zeros(1))
    assert [n for n, _ in d.named_parameters()] == ["a", "b"] and list(reversed(d)) == ["b", "a"]
    assert d.get("x") is None and d.setdefault("c", tenon.ones(1)).shape == (1,) and d.popitem()[0] == "c"
    assert list((d | {"e": tenon.ones(1)}).keys()) == ["a", "b", "e"] and d.copy()["a"] is d["a"]
    assert list(d.fromkeys(["x", "y"], 1).items()) == [("x", 1), ("y", 1)]
    assert d.pop("a").shape == (2,) and list(d.state_dict()) == ["b"]
    for call, error in [
        (lambda: p[5], IndexError),
        (lambda: p.extend(tenon.ones(2)), TypeError),
        (lambda: d["x"], KeyError),
        (lambda: d.update({3: tenon.ones(1)}), TypeError),
        (lambda: nn.ParameterList()(), RuntimeError),
    ]:
        with pytest.raises(error):
            call()


def test_what_modules_print():
    assert repr(nn.Sequential(nn.Linear(1, 2), nn.Flatten())) == (
        "Sequential(\n  (0): Linear(in_features=1, out_features=2, bias=True)\n  (1): Flatten(start_dim=1, end_dim=-1)\n)"
    )
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
    assert repr(nn.ModuleList()) == "ModuleList()" and repr(nn.Dropout2d(0.2)) == "Dropout2d(p=0.2, inplace=False)"


def test_dropout_of_channels():
    tenon.manual_seed(0)
    for layer, shape in [(nn.Dropout1d(), (64, 8, 5)), (nn.Dropout2d(), (64, 8, 3, 2)), (nn.Dropout3d(), (64, 8, 2, 2, 3))]:
        x = tenon.ones(shape, requires_grad=True)
        y = layer(x)
        channels = y.detach().reshape(512, -1)
        assert (channels == channels[:, :1]).all() and set(channels[:, 0].tolist()) == {0.0, 2.0}
        assert abs((channels[:, 0] == 0).sum().item() - 256) < 5 * 512**0.5 / 2
        y.sum().backward()
        assert x.grad.tolist() == y.tolist()
        assert layer.eval()(x) is x
        t = tenon.ones(shape)
        assert type(layer)(1.0, inplace=True)(t) is t and not t.any()
    assert nn.Dropout1d()(tenon.ones(8, 5)).shape == (8, 5) and nn.Dropout3d()(tenon.ones(8, 2, 2, 2)).shape == (8, 2, 2, 2)
    with pytest.raises(ValueError, match=r"dropout1d: expected 2 or 3 dimensions, got shape \[2\]"):
        nn.Dropout1d()(tenon.ones(2))


def test_alpha_dropout_keeps_mean_and_variance():
    tenon.manual_seed(0)
    x = tenon.randn(200_000, dtype=tenon.float64)
    for p in (0.1, 0.5):
        y = nn.AlphaDropout(p)(x)
        assert abs(y.mean().item()) < 0.02 and abs(y.std().item() - 1) < 0.02
        assert nn.AlphaDropout(p).eval()(x) is x
        _, counts = np.unique(y.numpy(), return_counts=True)
        assert abs(counts.max() / 200_000 - p) < 0.01
    y = nn.FeatureAlphaDropout(0.5)(tenon.zeros(4, 50, 7))
    assert (y == y[:, :, :1]).all() and len(set(y.flatten().tolist())) == 2
    assert not nn.AlphaDropout(1.0)(x).any()


@pytest.mark.parametrize("value", [3, 2.5, "text", [1.0], object(), tenon.ones], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("name, role", [("running", "buffer"), ("weight", "parameter"), ("layer", "child module")])
def test_what_is_no_tensor_takes_no_place_of_a_part(name, role, value):
    """As in PyTorch: it would leave the state dict unnoticed."""
    m = nn.Module()
    m.register_buffer("running", tenon.zeros(2))
    m.weight, m.layer = nn.Parameter(tenon.ones(2)), nn.Linear(1, 1)
    before = list(m.state_dict())
    with pytest.raises(TypeError, match=f"^Module: cannot assign .* as {role} '{name}'; expected .* or None"):
        setattr(m, name, value)
    assert list(m.state_dict()) == before


def test_the_place_of_a_part_takes_its_kin_and_none():
    m = nn.Module()
    m.register_buffer("running", tenon.zeros(2), persistent=False)
    m.running = tenon.ones(3)
    assert isinstance(m.running, nn.Buffer) and not m.running.persistent and m.running.tolist() == [1, 1, 1]
    m.running = nn.Parameter(tenon.ones(1))
    assert [n for n, _ in m.named_parameters()] == ["running"]
    m.running = None
    m.running = 3  # nothing is there any more
    m.register_buffer("other", tenon.zeros(1))
    m.other = nn.Linear(1, 1)
    assert list(m.state_dict()) == ["other.weight", "other.bias"]
    m.other = None
    with pytest.raises(TypeError, match="cannot assign .* as child module 'inner'"):
        m.inner = nn.ReLU()
        m.inner = tenon.ones(1)


@pytest.mark.parametrize(
    "make, place",
    [
        (lambda: nn.Sequential(nn.ReLU), "at 0; write ReLU()"), (lambda: nn.Sequential(nn.Linear(1, 1), nn.ReLU), "at 1; write ReLU()"),
        (lambda: nn.Sequential({"act": nn.ReLU}), "at 'act'; write ReLU()"), (lambda: nn.ModuleList([nn.ReLU]), "at 0; write ReLU()"),
        (lambda: nn.ModuleList([nn.ReLU()]).extend([3]), "3 (int) at 1"),
    ],
)  # fmt: skip
def test_a_class_is_no_module(make, place):
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value).endswith(place)


def test_names_that_programs_use_for_themselves():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self._parts, self._part, self._named = [1], 2, {}
            self.inner = nn.Linear(2, 2)

        def _run(self, x, scale):
            return self.inner(x) * scale

        def forward(self, x):
            return self._run(x, 2)

    model = Model()
    model.register_forward_hook(lambda module, args, result: result + 1)
    assert model(tenon.ones(1, 2)).tolist() == (model.inner(tenon.ones(1, 2)) * 2 + 1).tolist()
    assert list(model.state_dict()) == ["inner.weight", "inner.bias"] and len(list(model.parameters())) == 2
    assert model.double().get_parameter("inner.weight").dtype is tenon.float64 and model._parts == [1]


def test_hooks_of_recurrent_modules():
    for module, shape in ((nn.LSTM(2, 3), (4, 1, 2)), (nn.GRUCell(2, 3), (1, 2)), (nn.RNN(2, 3), (4, 1, 2))):
        x, seen = tenon.ones(shape), []
        plain = module(x)
        module.register_forward_pre_hook(lambda module, args: seen.append(args))
        module.register_forward_hook(lambda module, args, result: seen.append(result))
        result = module(x)
        first = lambda r: (r[0] if isinstance(r, tuple) else r).tolist()
        assert first(result) == first(plain) and seen[0] == (x,) and seen[1] is result


def test_the_dicts_of_parts_change_the_module():
    """As programs of PyTorch's replace layers and remove parameters."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model._modules["1"] = nn.Identity()
    model._modules["2"] = nn.Linear(2, 2)
    assert isinstance(model[1], nn.Identity) and len(model) == 3 and list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    del model._modules["2"]
    assert isinstance(model._modules.pop("1"), nn.Identity) and len(model) == 1 and list(model._modules) == ["0"]
    linear = model[0]
    del linear._parameters["weight"]
    linear.weight = tenon.ones(2, 2)
    linear._buffers["x"] = tenon.ones(1)
    linear._parameters.update(w=nn.Parameter(tenon.ones(1)))
    assert list(linear.state_dict()) == ["bias", "w", "x"] and linear._buffers.setdefault("x", None) is linear.x
    assert type(copy.copy(linear._parameters)) is dict and copy.deepcopy(linear._parameters).keys() == {"bias", "w"}
    linear._parameters.clear()
    assert list(linear.parameters()) == [] and not hasattr(linear, "w") and linear._parameters == {}
    with pytest.raises(KeyError, match="'w'"):
        del linear._parameters["w"]
    with pytest.raises(TypeError, match=r"^Sequential takes Modules, got 3 \(int\) at '0'"):
        model._modules["0"] = 3
