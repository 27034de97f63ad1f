"""save_program and load_program: a module's results without its lines, from a file."""

import subprocess
import sys

import numpy as np
import pytest
import tenon
from inference_test import MODULES
from tenon import nn


@pytest.mark.parametrize("name", MODULES)
def test_a_loaded_program_gives_the_bits_of_the_plan(name, tmp_path):
    make, shape = MODULES[name]
    module, x = make().eval(), tenon.randn(*shape)
    path = tmp_path / "net.tenon"
    for exact in (True, False):
        tenon.save_program(module, path, x, exact=exact)
        program = tenon.load_program(path)
        assert program.inputs == [(tenon.float32, tuple(shape))]
        with tenon.no_grad():
            assert tenon.equal(program(x), tenon.inference(module, x, exact=exact)(x))


def test_another_process_runs_it(tmp_path):
    tenon.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), tenon.tensor([[1.0, -2.0, 3.0]])
    path = tmp_path / "net.tenon"
    tenon.save_program(net, path, x)
    code = f"import tenon; print(tenon.load_program({str(path)!r})(tenon.tensor([[1.0, -2.0, 3.0]])).tolist())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    with tenon.no_grad():
        assert eval(out) == net(x).tolist()


def test_constants_of_any_kind_and_several_outputs(tmp_path):
    index, mask = tenon.tensor([1, 0]), tenon.tensor([True, False])
    half = tenon.randn(2).half()

    def f(x, y):
        return x[index] + half.float(), tenon.where(mask, y, -y), x, tenon.arange(3), y.sum()

    x, y = tenon.randn(2, 2), tenon.tensor([5, 7])
    path = tmp_path / "f.tenon"
    tenon.save_program(f, path, x, y, exact=True)
    for got, wanted in zip(tenon.load_program(path)(x, y), f(x, y)):
        assert got.dtype == wanted.dtype and tenon.equal(got, wanted)


def test_the_file_is_one_of_safetensors(tmp_path):
    path = tmp_path / "net.tenon"
    net = nn.Linear(3, 2)
    tenon.save_program(net, path, tenon.ones(1, 3))
    found = tenon.safetensors.load_file(path)
    sizes = sorted(value.numel() for name, value in found.items() if name.startswith("constant."))
    assert sizes == [2, 6]


def test_wrong_inputs_are_named(tmp_path):
    path = tmp_path / "net.tenon"
    tenon.save_program(nn.Linear(3, 2), path, tenon.ones(1, 3))
    program = tenon.load_program(path)
    for wrong in ((), (tenon.ones(2, 3),), (tenon.ones(1, 3).double(),), (tenon.ones(1, 3), tenon.ones(1)), ([1, 2, 3],)):
        with pytest.raises(ValueError, match=r"Program: it takes .*float32 of shape \(1, 3\), and got"):
            program(*wrong)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "net.tenon"
    with pytest.raises(FileNotFoundError):
        tenon.load_program(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="net.tenon"):
        tenon.load_program(path)
    tenon.safetensors.save_file({"weight": tenon.ones(3)}, path)
    with pytest.raises(ValueError, match="it is no program that save_program has written"):
        tenon.load_program(path)
    tenon.save_program(nn.Linear(3, 2), path, tenon.ones(1, 3))
    parts = tenon.safetensors.load_file(path, mmap=False)
    newer = parts["program"].clone()
    newer[8] = 99
    tenon.safetensors.save_file({**parts, "program": newer}, path)
    with pytest.raises(ValueError, match=r"this is version 99 of the form; this build reads version 1 \(in .*net.tenon\)"):
        tenon.load_program(path)
    for name in ("constant.0", "constant.1"):
        tenon.safetensors.save_file({key: value for key, value in parts.items() if key != name}, path)
        with pytest.raises(ValueError, match="a constant is missing"):
            tenon.load_program(path)
        tenon.safetensors.save_file({**parts, name: tenon.ones(1)}, path)
        with pytest.raises(ValueError, match="its inputs, outputs or constants are not those of its graph"):
            tenon.load_program(path)


def test_altered_programs_are_refused_or_run(tmp_path):
    rng = np.random.default_rng(5)
    path = tmp_path / "net.tenon"
    tenon.save_program(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)), path, tenon.ones(1, 1, 4, 4))
    parts = tenon.safetensors.load_file(path, mmap=False)
    program = parts["program"].numpy().copy()
    refused = 0
    for _ in range(400):
        altered = program.copy()
        for place in rng.integers(0, len(altered), rng.integers(1, 4)):
            altered[place] = rng.integers(0, 256)
        tenon.safetensors.save_file({**parts, "program": tenon.from_numpy(altered)}, path)
        try:
            tenon.load_program(path)
        except (ValueError, NotImplementedError, TypeError):
            refused += 1
    assert refused > 300
