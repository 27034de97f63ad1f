"""Weights that Python trained give the same logits, bit for bit, in a C++ program that needs no library at run time; and what it
trains itself has the bits of what Python trains."""

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
#include <tenon/optim.h>
#include <tenon/tenon.h>

namespace nn = tenon::nn;

struct Net : nn::Module {
  nn::Linear& hidden = register_module("hidden", nn::Linear(64, 48));
  nn::Linear& out = register_module("out", nn::Linear(48, 10));
  tenon::Tensor mean = register_buffer("mean", tenon::zeros({64}));
  tenon::Tensor forward(const tenon::Tensor& x) override { return out(tenon::relu(hidden(x - mean))); }
};

struct Images : nn::Module {
  nn::Conv2d& stem = register_module("stem", nn::Conv2d(1, 8, 3, {.padding = 1, .bias = false}));
  nn::BatchNorm2d& norm = register_module("norm", nn::BatchNorm2d(8));
  nn::MaxPool2d& pool = register_module("pool", nn::MaxPool2d(3, {.stride = 2, .padding = 1}));
  nn::Conv2d& mix = register_module("mix", nn::Conv2d(8, 16, {3, 1}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2}));
  nn::Embedding& columns = register_module("columns", nn::Embedding(4, 16, {.padding_idx = 3}));
  nn::LayerNorm& rows = register_module("rows", nn::LayerNorm(16));
  nn::Flatten& flat = register_module("flat", nn::Flatten());
  nn::Dropout& dropout = register_module("dropout", nn::Dropout(0.25));
  nn::Linear& out = register_module("out", nn::Linear(128, 10));
  tenon::Tensor forward(const tenon::Tensor& x) override {
    const tenon::Tensor seen = mix(pool(tenon::relu(norm(stem(x.reshape({-1, 1, 8, 8}))))));  // [N, 16, 2, 4]
    return out(dropout(flat(rows(seen.permute({0, 2, 3, 1}) + columns(tenon::arange(4))))));
  }
};

struct Sequences : nn::Module {
  nn::LSTM& lines = register_module("lines", nn::LSTM(8, 12, {.num_layers = 2, .batch_first = true, .dropout = 0.25,
                                                             .bidirectional = true, .proj_size = 7}));
  nn::GRU& marks = register_module("marks", nn::GRU(14, 16, {.batch_first = true}));
  nn::RNN& ends = register_module("ends", nn::RNN(16, 24, {.bias = false, .nonlinearity = "relu"}));
  nn::LSTMCell& cell = register_module("cell", nn::LSTMCell(24, 20));
  nn::Linear& out = register_module("out", nn::Linear(20, 10));
  tenon::Tensor forward(const tenon::Tensor& x) override {
    const tenon::Tensor seen = marks(lines(x.reshape({-1, 8, 8})));
    return out(cell(ends(seen.transpose(0, 1))[-1]));
  }
};

template <class Model>
void run(const char* state, const char* input, const char* output) {
  Model model;
  model.load_state_dict(tenon::load(state));
  model.eval();
  const tenon::InferenceMode inference;
  tenon::save({{"logits", model(tenon::load(input)["x"].to_tensor())}}, output);
}

template <class Model>
void train(const char* input, const char* output) {
  tenon::manual_seed(3);
  Model model;
  tenon::optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  const tenon::Value given = tenon::load(input);
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    tenon::cross_entropy_loss(model(given["x"].to_tensor()), given["y"].to_tensor()).backward();
    optimizer.step();
  }
  tenon::save(model.state_dict(), output);
}

/// Goes on with a run that Python has begun.
template <class Model, class Optimizer>
void go_on(const char* begun, const char* input, const char* output) {
  const tenon::Value run = tenon::load(begun), given = tenon::load(input);
  tenon::manual_seed(7);
  Model model;
  model.load_state_dict(run["model"]);
  Optimizer optimizer(model.parameters(), {});
  optimizer.load_state_dict(run["optimizer"]);
  tenon::manual_seed(7);
  for (int i = 0; i < 5; ++i) {
    optimizer.zero_grad();
    tenon::cross_entropy_loss(model(given["x"].to_tensor()), given["y"].to_tensor()).backward();
    optimizer.step();
  }
  tenon::save(model.state_dict(), output);
}

int main(int argc, char** argv) {
  try {
    const std::string_view what = argv[1];
    if (what == "train-images")
      train<Images>(argv[2], argv[3]);
    else if (what == "train-sequences")
      train<Sequences>(argv[2], argv[3]);
    else if (what == "go-on-images-adamw")
      go_on<Images, tenon::optim::AdamW>(argv[2], argv[3], argv[4]);
    else if (what == "go-on-sequences-adamw")
      go_on<Sequences, tenon::optim::AdamW>(argv[2], argv[3], argv[4]);
    else if (what == "go-on-images-sgd")
      go_on<Images, tenon::optim::SGD>(argv[2], argv[3], argv[4]);
    else if (what == "sequences")
      run<Sequences>(argv[2], argv[3], argv[4]);
    else if (what == "images")
      run<Images>(argv[2], argv[3], argv[4]);
    else
      run<Net>(argv[2], argv[3], argv[4]);
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


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.mix = nn.Conv2d(8, 16, (3, 1), stride=(2, 1), padding=(1, 0), groups=2)
        self.columns, self.rows = nn.Embedding(4, 16, padding_idx=3), nn.LayerNorm(16)
        self.flat, self.dropout, self.out = nn.Flatten(), nn.Dropout(0.25), nn.Linear(128, 10)

    def forward(self, x):
        seen = self.mix(self.pool(nn.functional.relu(self.norm(self.stem(x.reshape(-1, 1, 8, 8))))))
        return self.out(self.dropout(self.flat(self.rows(seen.permute(0, 2, 3, 1) + self.columns(tenon.arange(4))))))


class Sequences(nn.Module):
    """The lines of an image, one after the other."""

    def __init__(self):
        super().__init__()
        self.lines = nn.LSTM(8, 12, 2, batch_first=True, dropout=0.25, bidirectional=True, proj_size=7)
        self.marks = nn.GRU(14, 16, batch_first=True)
        self.ends = nn.RNN(16, 24, nonlinearity="relu", bias=False)
        self.cell, self.out = nn.LSTMCell(24, 20), nn.Linear(20, 10)

    def forward(self, x):
        seen = self.marks(self.lines(x.reshape(-1, 8, 8))[0])[0]
        return self.out(self.cell(self.ends(seen.transpose(0, 1))[0][-1])[0])


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
def digits():
    rows = np.loadtxt(gzip.open(ROOT / "data/digits.csv.gz"), delimiter=",", dtype=np.float32)
    return tenon.tensor(rows[:, :64] / 16), tenon.tensor(rows[:, 64].astype(np.int64))


@pytest.fixture(scope="module", params=[Net, Images, Sequences], ids=["net", "images", "sequences"])
def trained(request, digits):
    """A model that has learned something, with its input and its logits."""
    x, y = digits
    tenon.manual_seed(0)
    net = request.param()
    if request.param is Net:
        net.mean.copy_(x.mean(0))
    recurrent = request.param is Sequences
    optimizer = tenon.optim.Adam(net.parameters(), lr=0.003) if recurrent else tenon.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for start in [*range(0, 1600, 32)] * (6 if recurrent else 1):
        loss = nn.functional.cross_entropy(net(x[start : start + 32]), y[start : start + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    given = x[1600:1664]
    logits = net(given).detach()
    assert (logits.argmax(1) == y[1600:1664]).sum() > (20 if recurrent else 40)
    return net, given, logits


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("name", ["net.safetensors", "net.tenon"])
def test_the_same_logits_bit_for_bit(program, trained, tmp_path, name):
    net, given, logits = trained
    weights, x, out = tmp_path / name, tmp_path / "x.safetensors", tmp_path / "logits.safetensors"
    tenon.save(net.state_dict(), weights)
    tenon.save({"x": given}, x)
    done = run(program, type(net).__name__.lower(), weights, x, out)
    assert done.returncode == 0, done.stderr
    assert same_bits(tenon.load(out)["logits"], logits)


@pytest.mark.parametrize("kind", [Images, Sequences])
def test_both_train_the_same_model(program, digits, tmp_path, kind):
    """From the weights of a seed on: batches' statistics, dropped elements and a row of padding included."""
    x, y = digits[0][:64], digits[1][:64]
    tenon.save({"x": x, "y": y}, tmp_path / "given.safetensors")
    done = run(program, f"train-{kind.__name__.lower()}", tmp_path / "given.safetensors", tmp_path / "state.safetensors")
    assert done.returncode == 0, done.stderr
    tenon.manual_seed(3)
    model = kind()
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    state, theirs = model.state_dict(), tenon.load(tmp_path / "state.safetensors")
    assert list(theirs) == list(state)
    assert not [name for name, value in state.items() if not same_bits(value, theirs[name])]


OPTIMIZERS = {
    "adamw": lambda parameters: tenon.optim.AdamW(parameters, lr=0.01, betas=(0.8, 0.95), weight_decay=0.05, amsgrad=True),
    "sgd": lambda parameters: tenon.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
}


@pytest.mark.parametrize("kind, optimizer", [(Images, "adamw"), (Sequences, "adamw"), (Images, "sgd")])
def test_a_run_that_python_began_goes_on_with_the_same_bits(program, digits, tmp_path, kind, optimizer):
    x, y = digits[0][:64], digits[1][:64]

    def steps(model, made, count):
        for _ in range(count):
            made.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            made.step()

    tenon.manual_seed(3)
    model = kind()
    made = OPTIMIZERS[optimizer](model.parameters())
    steps(model, made, 4)
    tenon.save({"x": x, "y": y}, tmp_path / "given.safetensors")
    tenon.save({"model": model.state_dict(), "optimizer": made.state_dict()}, tmp_path / "run.tenon")
    done = run(program, f"go-on-{kind.__name__.lower()}-{optimizer}", tmp_path / "run.tenon", tmp_path / "given.safetensors", tmp_path / "state.safetensors")
    assert done.returncode == 0, done.stderr
    tenon.manual_seed(7)
    steps(model, made, 5)
    state, theirs = model.state_dict(), tenon.load(tmp_path / "state.safetensors")
    assert list(theirs) == list(state)
    assert not [name for name, value in state.items() if not same_bits(value, theirs[name])]


@pytest.mark.parametrize("change, words", [
    (lambda run: run.pop("optimizer"), "the dict has no key 'optimizer'"),
    (lambda run: run.update(optimizer=run["model"]), "Adam.load_state_dict: expected the state_dict() of an optimizer, with `state` and `param_groups`, got a dict"),
    (lambda run: run["optimizer"]["param_groups"].append({}), "the state has 2 groups of parameters, and this optimizer has one"),
    (lambda run: run["optimizer"]["param_groups"][0].update(params=[0]), "the state is of 1 parameters, and this optimizer has"),
    (lambda run: run["optimizer"]["state"][0].update(exp_avg=tenon.ones(3)), "`exp_avg` of parameter 0 is float32 of shape [3], and the parameter is float32 of shape [8, 1, 3, 3]"),
    (lambda run: run["optimizer"]["param_groups"][0].update(lr=-1.0), "Adam: lr must not be negative, got -1"),
])  # fmt: skip
def test_a_state_of_another_optimizer_is_refused(program, digits, tmp_path, change, words):
    model = Images()
    made = OPTIMIZERS["adamw"](model.parameters())
    nn.functional.cross_entropy(model(digits[0][:64]), digits[1][:64]).backward()
    made.step()
    begun = {"model": model.state_dict(), "optimizer": made.state_dict()}
    change(begun)
    tenon.save(begun, tmp_path / "run.tenon")
    done = run(program, "go-on-images-adamw", tmp_path / "run.tenon", tmp_path / "run.tenon", tmp_path / "state.safetensors")
    assert done.returncode == 1 and words in done.stderr, done.stderr


def test_a_state_that_does_not_fit_is_listed(program, tmp_path):
    state = Net().state_dict()
    del state["out.bias"]
    state["more"] = tenon.ones(1)
    state["mean"] = tenon.ones(3)
    tenon.save(state, tmp_path / "w.safetensors")
    done = run(program, "net", tmp_path / "w.safetensors", tmp_path / "w.safetensors", tmp_path / "out.safetensors")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[1:] == [
        '\tMissing key(s) in state_dict: "out.bias".',
        '\tUnexpected key(s) in state_dict: "more".',
        "\tsize mismatch for mean: a shape of [3] in the state_dict, [64] in the module.",
    ]
    assert re.match("load_state_dict: the state does not fit", lines[0])
