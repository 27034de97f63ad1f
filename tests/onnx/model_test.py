"""tenon.onnx: loading, calling, training and refusing models. References are computed with NumPy."""

import copy
import json
import pickle
import re

import numpy as np
import pytest
import tenon
from models import FLOAT, TensorProto, constant, helper, mlp, model_of, onnx, port


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def relu_mlp(x, w):
    return np.maximum(x @ w["fc1.weight"].T + w["fc1.bias"], 0) @ w["fc2.weight"].T + w["fc2.bias"]


def test_a_model_computes_what_its_file_says(rng, tmp_path):
    data, w = mlp(rng)
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    x = rng.standard_normal((4, 3)).astype(np.float32)
    for source in (path, str(path), data, bytearray(data), memoryview(data)):
        model = tenon.onnx.load(source)
        np.testing.assert_allclose(model(tenon.tensor(x)).detach().numpy(), relu_mlp(x, w), rtol=1e-5)
    assert repr(model.inputs) == "[x: float32[batch, 3]]" and model.outputs[0].shape == ["batch", 2]
    assert "x: float32[batch, 3] -> y: float32[batch, 2]" in repr(model)


def test_inputs_of_any_stride_give_the_same_bits(rng):
    model = tenon.onnx.load(mlp(rng)[0])
    x = tenon.tensor(rng.standard_normal((4, 3)).astype(np.float32))
    wanted = model(x)
    turned = x.t().contiguous().t()
    backward = x.flip(0).contiguous().flip(0)
    for other in (turned, backward, tenon.cat([x, x], 1)[:, :3]):
        assert tenon.equal(model(other), wanted)
    assert model(x[:0]).shape == (0, 2)


def test_weights_have_the_names_of_the_file(rng):
    data, w = mlp(rng)
    model = tenon.onnx.load(data)
    assert {name: p.detach().numpy().tolist() for name, p in model.named_parameters()} == {k: v.tolist() for k, v in w.items()}
    assert model.fc1.weight.requires_grad
    other = {name: tenon.zeros_like(value) for name, value in model.state_dict().items()}
    model.load_state_dict(other)
    assert model(tenon.ones(1, 3)).tolist() == [[0, 0]]


def test_a_replaced_weight_is_used(rng):
    model = tenon.onnx.load(mlp(rng)[0])
    model.fc2.weight = tenon.nn.Parameter(tenon.zeros(2, 5))
    model.fc2.bias = tenon.nn.Parameter(tenon.tensor([1.0, 2.0]))
    assert model(tenon.ones(1, 3)).tolist() == [[1, 2]]


def test_copies_are_independent_and_pickling_says_why_not(rng):
    model = tenon.onnx.load(mlp(rng)[0])
    other = copy.deepcopy(model)
    with tenon.no_grad():
        for p in other.parameters():
            p.zero_()
    assert other(tenon.ones(1, 3)).tolist() == [[0, 0]]
    assert model(tenon.ones(1, 3)).abs().sum() > 0
    with pytest.raises(TypeError, match=r"cannot be pickled; save its state_dict"):
        pickle.dumps(model)


def test_a_model_trains(rng):
    """One step of SGD on a linear layer, whose gradient NumPy computes."""
    w, b = rng.standard_normal((2, 3)).astype(np.float32), rng.standard_normal(2).astype(np.float32)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    model = tenon.onnx.load(model_of([node], [port("x", ["n", 3])], [port("y", ["n", 2])], [constant("w", w), constant("b", b)]))
    x, wanted = rng.standard_normal((5, 3)).astype(np.float32), rng.standard_normal((5, 2)).astype(np.float32)
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.1)
    tenon.nn.functional.mse_loss(model(tenon.tensor(x)), tenon.tensor(wanted)).backward()
    optimizer.step()
    error = 2 * (x @ w.T + b - wanted) / wanted.size
    np.testing.assert_allclose(model.w.detach().numpy(), w - 0.1 * error.T @ x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.b.detach().numpy(), b - 0.1 * error.sum(0), rtol=1e-5, atol=1e-6)


def test_compiled_models_have_eager_bits(rng):
    model = tenon.onnx.load(mlp(rng, (64, 256, 32))[0])
    compiled = tenon.compile(model)
    for rows in (1, 7, 300, 7):
        x = tenon.tensor(rng.standard_normal((rows, 64)).astype(np.float32))
        assert tenon.equal(compiled(x), model(x))


def test_inputs_by_name_and_several_outputs():
    nodes = [helper.make_node("Sub", ["a", "b"], ["d"]), helper.make_node("Add", ["a", "b"], ["s"])]
    model = tenon.onnx.load(model_of(nodes, [port("a", [2]), port("b", [2])], [port("d", [2]), port("s", [2])]))
    a, b = tenon.tensor([1.0, 2.0]), tenon.tensor([10.0, 20.0])
    for got in (model(a, b), model(b=b, a=a), model(a, b=b)):
        assert [x.tolist() for x in got] == [[-9, -18], [11, 22]]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (lambda x: ([x, x], {}), ValueError, r"takes 1 inputs, and got 2"),
        (lambda x: ([], {}), ValueError, r"input 'x' is missing, expected float32\[batch, 3\]"),
        (lambda x: ([x.double()], {}), TypeError, r"input 'x' is float64, expected float32\[batch, 3\]"),
        (lambda x: ([x[0]], {}), ValueError, r"input 'x' is of shape \[3\], expected float32\[batch, 3\]"),
        (lambda x: ([x[:, :2]], {}), ValueError, r"input 'x' is of shape \[4, 2\]"),
        (lambda x: ([], {"z": x}), TypeError, r"it has no input 'z'; its inputs are 'x'"),
        (lambda x: ([x], {"x": x}), TypeError, r"input 'x' was given twice"),
        (lambda x: (["text"], {}), TypeError, r"input"),
    ],
)
def test_wrong_inputs_are_named(rng, arguments, error, words):
    model = tenon.onnx.load(mlp(rng)[0])
    args, kwargs = arguments(tenon.ones(4, 3))
    with pytest.raises(error, match=words):
        model(*args, **kwargs)


def test_a_name_in_a_shape_has_one_size():
    node = helper.make_node("Concat", ["a", "b"], ["c"], axis=1)
    model = tenon.onnx.load(model_of([node], [port("a", ["n", 1]), port("b", ["n", 2])], [port("c", ["n", 3])]))
    with pytest.raises(ValueError, match=r"input 'b' is of shape \[4, 2\], and 'n' is 3 in an input before it"):
        model(tenon.ones(3, 1), tenon.ones(4, 2))


def test_sizes_called_with_a_question_mark_are_independent():
    node = helper.make_node("Relu", ["x"], ["y"])
    model = tenon.onnx.load(model_of([node], [port("x", ["?", "?"])], [port("y", ["?", "?"])]))
    assert model(tenon.ones(3, 2)).shape == (3, 2) and model.inputs[0].shape == [None, None]


def test_an_error_names_the_node():
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="reshape_7")
    model = tenon.onnx.load(model_of([node], [port("x", ["n"])], [port("y", None)], [constant("s", np.array([2, 3]))]))
    with pytest.raises(ValueError, match=r"node 'reshape_7' \(Reshape\)"):
        model(tenon.ones(5))


def test_all_that_is_missing_is_listed_at_once(tmp_path):
    nodes = [
        helper.make_node("Frobnicate", ["x"], ["a"], name="first"),
        helper.make_node("Grind", ["a"], ["b"], domain="mill"),
        helper.make_node("Frobnicate", ["b"], ["y"]),
    ]
    data = model_of(nodes, [port("x", [1]), port("u", [1], TensorProto.UINT4)], [port("y", [1])], domains=["mill"])
    with pytest.raises(NotImplementedError) as e:
        tenon.onnx.load(data)
    text = str(e.value)
    assert "'u' is of uint4, which Tenon does not have" in text
    assert "Frobnicate (version 17, 2 nodes, the first is 'first')" in text and "mill:Grind (version 1, 1 node" in text
    found = tenon.onnx.contents(data)
    assert len(found.missing) == 3 and [op.name for op in found.operators] == ["Frobnicate", "Grind"]


def test_a_newer_standard_is_refused():
    node = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(NotImplementedError, match=r"operators are of version 99 of the standard; the newest that is read is 28"):
        tenon.onnx.load(model_of([node], [port("x", [1])], [port("y", [1])], opset=99))


def test_functions_of_the_file_are_computed():
    body = [helper.make_node("Constant", [], ["c"]), helper.make_node("Mul", ["t", "c"], ["r"])]
    body[0].attribute.append(onnx.AttributeProto(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="factor"))
    function = helper.make_function("own", "Scaled", ["t"], ["r"], body, [helper.make_opsetid("", 17)],
                                    attribute_protos=[helper.make_attribute("factor", 3.0)])  # fmt: skip
    nodes = [
        helper.make_node("Scaled", ["x"], ["a"], domain="own"),
        helper.make_node("Scaled", ["a"], ["y"], domain="own", factor=5.0),
    ]
    model = tenon.onnx.load(model_of(nodes, [port("x", [2])], [port("y", [2])], functions=[function], domains=["own"]))
    assert model(tenon.tensor([1.0, 2.0])).tolist() == [15, 30]


def test_a_function_that_calls_itself_is_refused():
    body = [helper.make_node("Loop1", ["t"], ["r"], domain="own")]
    function = helper.make_function("own", "Loop1", ["t"], ["r"], body, [helper.make_opsetid("own", 1)])
    nodes = [helper.make_node("Loop1", ["x"], ["y"], domain="own")]
    data = model_of(nodes, [port("x", [2])], [port("y", [2])], functions=[function], domains=["own"])
    with pytest.raises(ValueError, match=r"function 'Loop1' calls itself"):
        tenon.onnx.load(data)


def test_statistics_are_buffers_and_are_not_trained(rng):
    values = {name: rng.random(3).astype(np.float32) + 1 for name in ("scale", "bias", "mean", "var")}
    node = helper.make_node("BatchNormalization", ["x", *values], ["y"])
    data = model_of([node], [port("x", ["n", 3])], [port("y", ["n", 3])], [constant(*item) for item in values.items()])
    model = tenon.onnx.load(data)
    assert [name for name, _ in model.named_parameters()] == ["scale", "bias"]
    assert [name for name, _ in model.named_buffers()] == ["mean", "var"]


class TestExternalData:
    def write(self, folder, location, values, offset=0, length=None):
        raw = np.asarray(values, np.float32).tobytes()
        tensor = TensorProto(data_type=FLOAT, dims=[len(values)], name="w", data_location=TensorProto.EXTERNAL)
        for key, value in (("location", location), ("offset", offset), ("length", len(raw) if length is None else length)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        node = helper.make_node("Mul", ["x", "w"], ["y"])
        path = folder / "net.onnx"
        path.write_bytes(model_of([node], [port("x", [len(values)])], [port("y", [len(values)])], [tensor]))
        return path, raw

    def test_it_is_read_from_the_folder(self, tmp_path):
        for offset in (0, 4096, 3):
            path, raw = self.write(tmp_path, "data/w.bin", [1.0, 2.0, 3.0], offset)
            (tmp_path / "data").mkdir(exist_ok=True)
            (tmp_path / "data" / "w.bin").write_bytes(b"\1" * offset + raw)
            assert tenon.onnx.load(path)(tenon.ones(3)).tolist() == [1, 2, 3]

    @pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "inside/../../secret.bin", "link/secret.bin"])
    def test_nothing_outside_of_it_is(self, tmp_path, location):
        folder = tmp_path / "model"
        folder.mkdir()
        (tmp_path / "secret.bin").write_bytes(bytes(4096))
        (folder / "link").symlink_to(tmp_path)
        path, _ = self.write(folder, location, [1.0])
        with pytest.raises(ValueError, match=r"tensor 'w': its data is in '.*', which is outside of the model's folder"):
            tenon.onnx.load(path)

    def test_a_model_in_memory_has_none(self, tmp_path):
        path, _ = self.write(tmp_path, "w.bin", [1.0])
        with pytest.raises(ValueError, match="which a model in memory cannot have; load it by its path"):
            tenon.onnx.load(path.read_bytes())

    def test_short_missing_and_wrong_lengths_are_refused(self, tmp_path):
        path, _ = self.write(tmp_path, "w.bin", [1.0, 2.0])
        with pytest.raises(FileNotFoundError):
            tenon.onnx.load(path)
        (tmp_path / "w.bin").write_bytes(bytes(7))
        with pytest.raises(ValueError, match="8 bytes are expected here, and the file ends at byte 7"):
            tenon.onnx.load(path)
        path, _ = self.write(tmp_path, "w.bin", [1.0, 2.0], length=4)
        with pytest.raises(ValueError, match="it has 8 bytes, and its external data 4"):
            tenon.onnx.load(path)


class TestDamage:
    def refuse(self, data, words):
        with pytest.raises(ValueError, match=words):
            tenon.onnx.load(data)

    def test_other_files_are_refused(self, tmp_path):
        self.refuse(b"", "it is no ONNX model")
        self.refuse(b"PK\3\4 something else", "it is no ONNX model, or it is damaged|it has no graph")
        with pytest.raises(FileNotFoundError):
            tenon.onnx.load(tmp_path / "absent.onnx")
        with pytest.raises(IsADirectoryError):
            tenon.onnx.load(tmp_path)
        with pytest.raises(TypeError, match="`source` is a path or the bytes of a model, not 5"):
            tenon.onnx.load(5)

    def test_a_file_that_is_cut_off_is_refused(self, rng):
        data = mlp(rng)[0]
        for size in range(0, len(data), 7):
            with pytest.raises((ValueError, NotImplementedError)):
                tenon.onnx.load(data[:size])

    def test_absurd_sizes_are_refused(self):
        huge = TensorProto(data_type=FLOAT, dims=[1 << 40, 1 << 40], name="w", raw_data=b"1234")
        node = helper.make_node("Relu", ["w"], ["y"])
        self.refuse(model_of([node], [], [port("y", None)], [huge]), r"tensor 'w': it has the shape")
        huge.dims[:] = [1 << 40]
        self.refuse(model_of([node], [], [port("y", None)], [huge]), r"tensor 'w': 4 bytes of data, expected 4398046511104")
        huge.dims[:] = [-1]
        self.refuse(model_of([node], [], [port("y", None)], [huge]), r"tensor 'w': it has the shape \[-1\]")

    def test_names_that_are_missing_or_twice_there_are_refused(self):
        relu = helper.make_node("Relu", ["nowhere"], ["y"], name="r")
        self.refuse(model_of([relu], [], [port("y", None)]), r"node 'r' \(Relu\) reads 'nowhere'")
        twice = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
        self.refuse(model_of(twice, [port("x", [1])], [port("y", None)]), r"two values are called 'y'")
        self.refuse(model_of([], [port("x", [1])], [port("y", None)]), r"no node makes the output 'y'")
        cycle = [helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
        self.refuse(model_of(cycle, [], [port("b", None)]), r"reads 'b', which is no input")


def test_the_command_lists_what_a_file_needs(rng, tmp_path, capsys):
    from tenon._tools.command import main

    path = tmp_path / "net.onnx"
    path.write_bytes(mlp(rng)[0])
    assert main(["onnx", str(path)]) == 0
    out = capsys.readouterr().out
    assert "input     x: float32[batch, 3]" in out and "weights   32 elements" in out and "Tenon runs it." in out
    assert re.search(r"Gemm +17 +2\n", out)
    path.write_bytes(model_of([helper.make_node("Grind", ["x"], ["y"])], [port("x", [1])], [port("y", [1])]))
    assert main(["onnx", str(path)]) == 1
    assert "MISSING" in capsys.readouterr().out
    assert main(["onnx", "--json", str(path)]) == 1
    assert json.loads(capsys.readouterr().out)["operators"][0]["name"] == "Grind"
    assert main(["onnx", str(tmp_path / "absent")]) == 1
