"""Files of tenon.onnx.save in ONNX Runtime: the results of the module that was saved."""

import pathlib
import sys

import pytest
import tenon

onnxruntime = pytest.importorskip("onnxruntime")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "onnx"))
from saved_cases import CASES, DYNAMIC, assert_equal, module_of, tensors_of  # noqa: E402


def run(path, inputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {port.name: t.numpy() for port, t in zip(session.get_inputs(), inputs)})


@pytest.mark.parametrize("name", CASES)
def test_a_saved_function_runs_in_onnx_runtime(name, tmp_path):
    made, *inputs = CASES[name]
    module = module_of(made)
    tenon.onnx.save(module, tmp_path / "saved.onnx", *inputs)
    with tenon.no_grad():
        assert_equal(run(tmp_path / "saved.onnx", inputs), tensors_of(module(*inputs)))


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_axes_take_other_sizes_in_onnx_runtime(name, tmp_path):
    made, example, axes, others = DYNAMIC[name]
    module = module_of(made)
    tenon.onnx.save(module, tmp_path / "saved.onnx", *example, dynamic_axes=axes)
    for inputs in others:
        with tenon.no_grad():
            assert_equal(run(tmp_path / "saved.onnx", inputs), tensors_of(module(*inputs)))
