"""Weights that Python trained give the same logits, bit for bit, in a C++ program that needs no library at run time."""

import gzip
import pathlib
import re
import subprocess

import numpy as np
import pytest

import tenon
from tenon import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """
#include <tenon/io.h>
#include <tenon/nn.h>
#include <tenon/tenon.h>

namespace nn = tenon::nn;

struct Net : nn::Module {
  nn::Linear& hidden = register_module("hidden", nn::Linear(64, 48));
  nn::Linear& out = register_module("out", nn::Linear(48, 10));
  tenon::Tensor mean = register_buffer("mean", tenon::zeros({64}));
  tenon::Tensor forward(const tenon::Tensor& x) override { return out(tenon::relu(hidden(x - mean))); }
};

int main(int argc, char** argv) {
  try {
    Net net;
    net.load_state_dict(tenon::load(argv[1]));
    const tenon::InferenceMode inference;
    const tenon::Value given = tenon::load(argv[2]);
    tenon::save({{"logits", net(given["x"].to_tensor())}}, argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\\n", error.what());
    return 1;
  }
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(classify LANGUAGES CXX)
find_package(Tenon REQUIRED)
add_executable(classify main.cc)
target_link_libraries(classify PRIVATE Tenon::tenon_static)
target_link_options(classify PRIVATE -static -Wl,--gc-sections)
"""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(64, 48), nn.Linear(48, 10)
        self.register_buffer("mean", tenon.zeros(64))

    def forward(self, x):
        return self.out(nn.functional.relu(self.hidden(x - self.mean)))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    (folder / "main.cc").write_text("#include <cstdio>\n" + PROGRAM)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    install = ROOT / "build/install"
    for command in (
        ["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={install}"],
        ["cmake", "--build", folder / "build"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    needed = subprocess.run(["readelf", "-d", folder / "build/classify"], capture_output=True, text=True).stdout
    assert "NEEDED" not in needed
    return folder / "build/classify"


@pytest.fixture(scope="module")
def trained():
    """A model that has learned something, with its input and its logits."""
    rows = np.loadtxt(gzip.open(ROOT / "data/digits.csv.gz"), delimiter=",", dtype=np.float32)
    x, y = tenon.tensor(rows[:, :64] / 16), tenon.tensor(rows[:, 64].astype(np.int64))
    tenon.manual_seed(0)
    net = Net()
    net.mean.copy_(x.mean(0))
    optimizer = tenon.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for start in range(0, 1600, 32):
        loss = nn.functional.cross_entropy(net(x[start : start + 32]), y[start : start + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    given = x[1600:1664]
    logits = net(given).detach()
    assert (logits.argmax(1) == y[1600:1664]).sum() > 40
    return net, given, logits


def run(program, *paths):
    return subprocess.run([program, *paths], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["net.safetensors", "net.tenon"])
def test_the_same_logits_bit_for_bit(program, trained, tmp_path, name):
    net, given, logits = trained
    weights, x, out = tmp_path / name, tmp_path / "x.safetensors", tmp_path / "logits.safetensors"
    tenon.save(net.state_dict(), weights)
    tenon.save({"x": given}, x)
    done = run(program, weights, x, out)
    assert done.returncode == 0, done.stderr
    assert tenon.load(out)["logits"].numpy().tobytes() == logits.numpy().tobytes()


def test_a_state_that_does_not_fit_is_listed(program, trained, tmp_path):
    state = trained[0].state_dict()
    del state["out.bias"]
    state["more"] = tenon.ones(1)
    state["mean"] = tenon.ones(3)
    tenon.save(state, tmp_path / "w.safetensors")
    done = run(program, tmp_path / "w.safetensors", tmp_path / "w.safetensors", tmp_path / "out.safetensors")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[1:] == [
        '\tMissing key(s) in state_dict: "out.bias".',
        '\tUnexpected key(s) in state_dict: "more".',
        "\tsize mismatch for mean: a shape of [3] in the state_dict, [64] in the module.",
    ]
    assert re.match("load_state_dict: the state does not fit", lines[0])
