"""The networks that come with the package onnx: nine of known architectures, and those that PyTorch once exported, with the outputs
that their authors recorded; eager, compiled and planned for inference."""

import pathlib

import numpy as np
import pytest
import tenon

onnx = pytest.importorskip("onnx")
from onnx import numpy_helper  # noqa: E402

DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
LIGHT = sorted(DATA.glob("light/*.onnx"))
FOLDERS = sorted(path.parent for kind in ("pytorch-converted", "pytorch-operator", "simple") for path in DATA.glob(f"{kind}/*/model.onnx"))


def read(path, port=None):
    """A recorded array; a list of them where the port of the model is a sequence."""
    is_list = port is not None and "a sequence" in repr(port)
    recorded = onnx.SequenceProto() if is_list else onnx.TensorProto()
    recorded.ParseFromString(path.read_bytes())
    return numpy_helper.to_list(recorded) if is_list else numpy_helper.to_array(recorded)


def tensors(value):
    return [tenon.tensor(one) for one in value] if isinstance(value, list) else tenon.tensor(value)


def outputs_of(run, inputs):
    with tenon.no_grad():
        got = run(*inputs)
    return got if isinstance(got, tuple) else (got,)


def in_three_ways(model, inputs):
    """The outputs of the module, of the compiled one and of a plan, each a tuple. A plan has no shapes that are inputs."""
    yield outputs_of(model, inputs)
    yield outputs_of(tenon.compile(model), inputs)
    try:
        yield outputs_of(tenon.inference(model), inputs)
    except NotImplementedError as e:
        assert "the values of an input are needed here, and a plan knows only its sizes" in str(e)


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_known_architectures(path):
    wanted = read(path.with_name(f"{path.stem}_output_0.pb"))
    model = tenon.onnx.load(path)
    (port,) = model.inputs
    n = int(np.prod(port.shape))
    x = tenon.tensor((np.arange(n) / n).astype(np.float32).reshape(port.shape))
    for (got,) in in_three_ways(model, [x]):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-6)


def refused(path):
    """Why a model is refused, where that is known."""
    missing = tenon.onnx.contents(path).missing
    return missing and all("is of string" in m or "StringNormalizer" in m or "Gradient" in m for m in missing)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_exported_networks(folder):
    if refused(folder / "model.onnx"):
        with pytest.raises(NotImplementedError):
            tenon.onnx.load(folder / "model.onnx")
        return
    model = tenon.onnx.load(folder / "model.onnx")
    for data in sorted(folder.glob("test_data_set_*")):
        inputs, wanted = (
            [read(path, port) for path, port in zip(sorted(data.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem[len(kind) + 1 :])), ports)]
            for kind, ports in (("input", model.inputs), ("output", model.outputs))
        )
        inputs = [tensors(value) for value in inputs]
        for outputs in in_three_ways(model, inputs):
            assert len(outputs) == len(wanted)
            for got, other in zip(outputs, wanted):
                assert isinstance(got, list) == isinstance(other, list) and (not isinstance(got, list) or len(got) == len(other))
                for one, array in zip(got, other) if isinstance(got, list) else [(got, other)]:
                    np.testing.assert_allclose(one.numpy(), array, rtol=1e-3, atol=1e-5)
