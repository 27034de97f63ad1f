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


def read(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


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
    if any("sequence" in repr(port) for port in model.inputs):
        pytest.skip("its inputs are recorded as sequences")
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = [tenon.tensor(read(path)) for path in sorted(data.glob("input_*.pb"), key=lambda p: int(p.stem[6:]))]
        wanted = [read(path) for path in sorted(data.glob("output_*.pb"), key=lambda p: int(p.stem[7:]))]
        for outputs in in_three_ways(model, inputs):
            assert len(outputs) == len(wanted)
            for got, other in zip(outputs, wanted):
                np.testing.assert_allclose(got.numpy(), other, rtol=1e-3, atol=1e-5)
