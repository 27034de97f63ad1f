"""tenon.onnx.save: files that say what the module computes, to the checker of the package onnx and to tenon.onnx.load.
tests/peer/onnx_save_test.py runs them in ONNX Runtime."""

import re

import numpy as np
import pytest
import tenon
from saved_cases import CASES, DYNAMIC, assert_equal, module_of, normal, tensors_of, x
from tenon import nn


@pytest.fixture
def path(tmp_path):
    return tmp_path / "saved.onnx"


def check(path):
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(onnx.load(path), full_check=True)


@pytest.mark.parametrize("name", CASES)
def test_a_saved_function_loads_and_gives_its_results(name, path):
    made, *inputs = CASES[name]
    module = module_of(made)
    tenon.onnx.save(module, path, *inputs)
    with tenon.no_grad():
        assert_equal(tensors_of(tenon.onnx.load(path)(*inputs)), tensors_of(module(*inputs)))
    check(path)


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_axes_take_other_sizes(name, path):
    made, example, axes, others = DYNAMIC[name]
    module = module_of(made)
    tenon.onnx.save(module, path, *example, dynamic_axes=axes)
    loaded = tenon.onnx.load(path)
    for inputs in others:
        with tenon.no_grad():
            assert_equal(tensors_of(loaded(*inputs)), tensors_of(module(*inputs)))
    check(path)


def test_names_are_those_of_parameters_and_weights(path):
    module = module_of(CASES["mlp"][0])
    tenon.onnx.save(module, path, normal(2, 3))
    loaded = tenon.onnx.load(path)
    assert [port.name for port in loaded.inputs + loaded.outputs] == ["input", "output_0"]
    assert list(loaded.state_dict()) == list(module.state_dict())
    assert all((loaded.state_dict()[name] == value).all() for name, value in module.state_dict().items())
    tenon.onnx.save(module, path, normal(2, 3), input_names=["image"], output_names=["scores"], dynamic_axes={"image": {0: "n"}, "scores": {0: "n"}})
    loaded = tenon.onnx.load(path)
    assert repr(loaded.inputs + loaded.outputs) == "[image: float32[n, 3], scores: float32[n, 2]]"


def test_equal_weights_stay_apart(path):
    module = module_of(CASES["equal_weights"][0])
    tenon.onnx.save(module, path, normal(3, 2))
    assert list(tenon.onnx.load(path).state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_recurrent_layers_are_single_nodes_and_keep_their_weights(path):
    for layer, op in ((nn.LSTM(3, 4), "LSTM"), (nn.GRU(3, 4), "GRU"), (nn.RNN(3, 4), "RNN")):
        tenon.onnx.save(layer, path, normal(5, 2, 3))
        names = {found.name: found.num_nodes for found in tenon.onnx.contents(path).operators}
        assert names[op] == 1 and "MatMul" not in names
        assert {"weight_ih_l0", "weight_hh_l0"} <= set(tenon.onnx.load(path).state_dict())


def test_a_saved_network_is_trained_further(path):
    module = module_of(CASES["mlp"][0])
    tenon.onnx.save(module, path, normal(2, 3))
    loaded, gradients = tenon.onnx.load(path), []
    for net in (module, loaded):
        net(normal(2, 3)).square().sum().backward()
        gradients.append({name: p.grad.numpy() for name, p in net.named_parameters()})
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=1e-5, atol=1e-6)


def test_versions_of_the_standard(path):
    for opset in (18, 21, 24):
        tenon.onnx.save(module_of(CASES["encoder"][0]), path, normal(2, 5, 8), opset=opset)
        assert {op.opset for op in tenon.onnx.contents(path).operators} == {opset}
        if opset < 24:
            check(path)
    tenon.onnx.save(lambda x: tenon.nn.functional.pad(x, (1, 2), mode="circular"), path, x, opset=19)
    volumes = lambda x: tenon.grid_sampler_3d(x[None, None], tenon.zeros(1, 2, 2, 2, 3), 0, 0, True)  # noqa: E731
    tenon.onnx.save(volumes, path, x, opset=20)
    assert tenon.onnx.load(path)(x).equal(volumes(x))


def test_everything_that_onnx_does_not_have_is_listed(path):
    def function(x):
        y = x.cumprod(1)
        return y, tenon.nn.functional.unfold(y[None], 2), x.sum()

    with pytest.raises(NotImplementedError) as raised:
        tenon.onnx.save(function, path, x)
    text = str(raised.value)
    assert re.search(r"ONNX has no operators for 2 of the calls: aten::cumprod \(.*save_test.py:\d+\); aten::im2col \(.*", text)
    assert text.endswith("save_program writes them") and not path.exists()


@pytest.mark.parametrize("function, words", [
    (lambda x: tenon.nn.functional.max_pool1d(x, 2, return_indices=True), "its indices count from each plane"),
    (lambda x: tenon.nn.functional.avg_pool1d(x, 3, 2, 1, ceil_mode=True)[..., :9], None),
    (lambda x: tenon.nn.functional.adaptive_avg_pool1d(x, 3), "5 elements are not divided into 3 equal parts"),
    (lambda x: x.norm(3), "ONNX has no norm of order 3"),
    (nn.LSTM(5, 6, proj_size=2), "ONNX's LSTM has no projections"),
    (lambda x: tenon.nn.functional.pad(x, (1, 1), mode="circular"), "padding in a circle needs opset 19"),
    (lambda x: tenon.grid_sampler_3d(x[None, None], tenon.zeros(1, 1, 1, 1, 3), 0, 0, True), "sampling of volumes needs opset 20"),
    (lambda x: tenon.complex(x, x).real, "complex"),
    (lambda x: x.scatter_reduce(1, tenon.zeros(3, 4, 5, dtype=tenon.int64), x, "mean"), "ONNX has sum, prod, amax and amin"),
    (lambda x: x[tenon.tensor([0]), :, tenon.tensor([1])], "its indices have dimensions between them"),
    (lambda x: x.view(tenon.int32), "the bytes of another dtype"),
])  # fmt: skip
def test_what_a_call_lacks_is_said(function, words, path):
    if words is None:
        return tenon.onnx.save(function, path, x)
    with pytest.raises(NotImplementedError, match=re.escape(words)):
        tenon.onnx.save(function, path, x)


@pytest.mark.parametrize("error, words, arguments", [
    (ValueError, "`opset` is 17, expected 18 to 24", {"opset": 17}),
    (TypeError, "`opset` is a version of the standard's operators, not '18' (str)", {"opset": "18"}),
    (ValueError, "`input_names` has 2 names, and there are 1 inputs", {"input_names": ["a", "b"]}),
    (ValueError, "`output_names` has 2 names, and there are 1 outputs", {"output_names": ["a", "b"]}),
    (ValueError, "the name 'a' is given twice", {"input_names": ["a"], "output_names": ["a"]}),
    (TypeError, "`input_names` is a list of strings", {"input_names": "image"}),
    (ValueError, "`dynamic_axes` names 'z', which is no input; inputs are x", {"dynamic_axes": {"z": [0]}}),
    (ValueError, "`dynamic_axes` names axis 3 of 'x', which has 3 dimensions", {"dynamic_axes": {"x": [3]}}),
    (ValueError, "dynamic axis 'n' has size 3 in one input and 4 in another", {"dynamic_axes": {"x": {0: "n", 1: "n"}}}),
])  # fmt: skip
def test_wrong_arguments_are_named(error, words, arguments, path):
    with pytest.raises(error, match=re.escape(words)):
        tenon.onnx.save(lambda x: x + 1, path, x, **arguments)


def test_what_depends_on_a_dynamic_size_is_named(path):
    def table(x):
        return x + tenon.arange(x.shape[1]) ** 2

    def branch(x):
        return x.sin() if x.shape[1] > 8 else x.cos()

    def pooled(x):
        return tenon.nn.functional.adaptive_avg_pool1d(x, 2)

    def padded(x):
        return tenon.nn.functional.pad(x, (0, -x.shape[1] % 4))

    for function, words in ((table, "a constant of shape [4] depends on the sizes"), (branch, "what is computed depends on"),
                            (pooled, "attribute `kernel_shape` of AveragePool depends on"),
                            (lambda x: x * x.shape[1] ** 2, "a number (16, 64, 144, 25) follows by no simple formula from"),
                            (lambda x: x * (x.shape[1] % 3), "a number (1, 2, 0, 2) follows by no simple formula from"),
                            (lambda x: x * (x.shape[1] * 0.5), "a constant of shape [] depends on"),
                            (lambda x: x.roll(x.shape[1] // 2, 1), "follows by no simple formula from"),
                            (lambda x: x[:, ::2] + 1, "a number (3, 7, 11, 5) follows by no simple formula from")):  # fmt: skip
        with pytest.raises(NotImplementedError, match=re.escape(words)) as raised:
            tenon.onnx.save(function, path, normal(3, 4), dynamic_axes={"x": [1]})
        assert "save_test.py" in str(raised.value)
    with pytest.raises(NotImplementedError, match=r"a number \(0, 0, 0, 3\) follows by no simple formula"):
        tenon.onnx.save(padded, path, normal(3, 4), dynamic_axes={"x": [1]})


def test_sizes_that_are_no_multiples_of_the_examples(path):
    def halves(x):
        return x * (x.shape[1] // 2) + x.shape[0] * 2 + 1

    def zeroth(x):
        return x.gather(1, tenon.zeros(x.shape, dtype=tenon.int64))

    def pairs(x):
        assert x.shape[1] % 2 == 0
        return x.reshape(x.shape[0], x.shape[1] // 2, 2).sum(2)

    tenon.onnx.save(pairs, path, normal(2, 4), dynamic_axes={"x": [0, 1]})
    given = normal(3, 10)
    np.testing.assert_allclose(tenon.onnx.load(path)(given).numpy(), pairs(given).numpy(), rtol=1e-6)

    for function in (halves, zeroth):
        tenon.onnx.save(function, path, normal(2, 4), dynamic_axes={"x": [0, 1]})
        model = tenon.onnx.load(path)
        for shape in ((2, 4), (3, 5), (1, 7), (4, 9)):
            given = normal(*shape)
            np.testing.assert_allclose(model(given).numpy(), function(given).numpy(), rtol=1e-6)


def test_a_module_in_training_and_what_is_no_function_are_refused(path):
    with pytest.raises(TypeError, match=r"`module` is called with tensors; 3 \(int\) is no module"):
        tenon.onnx.save(3, path, x)
    with pytest.raises(ValueError, match=r"draws random numbers; call eval\(\)"):
        tenon.onnx.save(nn.Dropout(), path, x)
    with pytest.raises(NotImplementedError, match="a number is made of it"):
        tenon.onnx.save(lambda x: x if x.sum() > 0 else -x, path, x)
