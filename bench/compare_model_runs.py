"""Rows of compare.py --models that need no package's network: weights to a file and back beside PyTorch, a whole process from its
imports to the first result beside ONNX Runtime, and a GPT that decodes with a cache of keys and values, beside ONNX Runtime with bound
buffers and the same program in C++.

Each row: name, what it stands beside, bound, and two functions that return the nanoseconds of one run each.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import tenon
from tenon import nn

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Decoder(nn.Module):
    """One token of a GPT: its logits, and the caches [1, heads, context, size] of keys and values with those of the token written."""

    def __init__(self, vocabulary=256, context=128, width=128, layers=4, heads=4):
        super().__init__()
        self.context, self.heads, self.layers = context, heads, layers
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.norms1, self.norms2 = (nn.ModuleList(nn.LayerNorm(width) for _ in range(layers)) for _ in range(2))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.up = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        self.register_buffer("places", tenon.arange(context))

    def forward(self, token, position, *caches):
        x = self.tokens(token) + self.positions(position)
        hidden = (self.places > position).reshape(1, 1, 1, -1)
        later = []
        for i in range(self.layers):
            q, k, v = self.qkv[i](self.norms1[i](x)).view(1, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()
            keys, values = caches[2 * i].index_copy(2, position, k), caches[2 * i + 1].index_copy(2, position, v)
            later += [keys, values]
            scores = (q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(hidden, -1e9)
            x = x + self.out[i]((scores.softmax(-1) @ values).transpose(1, 2).reshape(1, -1))
            x = x + self.down[i](nn.functional.gelu(self.up[i](self.norms2[i](x)), approximate="tanh"))
        return self.head(self.norm(x)), *later


def per_run(run, count):
    start = time.perf_counter_ns()
    for i in range(count):
        run(i)
    return (time.perf_counter_ns() - start) / count


def weights_rows(folder):
    """87 MB in 40 tensors."""
    import torch

    arrays = {f"layers.{i}.weight": np.random.default_rng(i).standard_normal((739, 739), dtype=np.float32) for i in range(40)}
    ours, theirs = {k: tenon.tensor(v) for k, v in arrays.items()}, {k: torch.from_numpy(v) for k, v in arrays.items()}

    def to_file_and_back(lib, state, name):
        return lambda: per_run(lambda _: (lib.save(state, folder / name), lib.load(folder / name)), 3)

    other = to_file_and_back(torch, theirs, "w.pt")
    yield "save and load", "PyTorch", 1.0, to_file_and_back(tenon, ours, "w.tenon"), other
    yield "the same, safetensors", "PyTorch", 1.0, to_file_and_back(tenon, ours, "w.safetensors"), other


def first_result_rows(folder):
    """A perceptron of 64-64-10."""
    path = folder / "perceptron.onnx"
    tenon.onnx.save(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), path, tenon.ones(1, 64), input_names=["x"])
    ours = f"import tenon; tenon.onnx.load({str(path)!r})(tenon.ones(1, 64))"
    theirs = (f"import numpy, onnxruntime as o; s = o.InferenceSession({str(path)!r}, providers=['CPUExecutionProvider']);"
              "s.run(None, {'x': numpy.ones((1, 64), 'f')})")  # fmt: skip

    # As an installed package has it: modules are compiled once, wherever the tree may not be written.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")

    def process(code):
        start = time.perf_counter_ns()
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        return time.perf_counter_ns() - start

    yield "first result", "ONNX Runtime", 0.5, lambda: process(ours), lambda: process(theirs)


def decoding_rows(folder):
    tenon.manual_seed(0)
    model = Decoder().eval()
    context, steps = model.context, model.context
    caches = [tenon.zeros(1, model.heads, context, 128 // model.heads) for _ in range(2 * model.layers)]
    token, positions = tenon.tensor([7]), [tenon.tensor([i]) for i in range(context)]
    run = tenon.inference(model, token, positions[0], *caches)
    tenon.onnx.save(model, folder / "decoder.onnx", token, positions[0], *caches)
    tenon.save_program(model, folder / "decoder.program", token, positions[0], *caches)
    state = [caches]

    def ours(i):
        logits, *state[0] = run(token, positions[i], *(caches if i == 0 else state[0]))
        return logits

    bound = bound_runs(folder / "decoder.onnx", caches, context)
    with tenon.no_grad():
        assert max(float(np.abs(ours(i).numpy() - bound(i)).max()) for i in range(8)) < 1e-4

    def fastest(run):
        """Of eleven passes, as run_program takes it."""
        return min(per_run(run, steps) for _ in range(11))

    yield "GPT decoding", "ONNX Runtime", 1.0, lambda: fastest(ours), lambda: fastest(bound)
    if (program := ROOT / "build/release/bench/run_program").exists():


        def compiled():
            return float(subprocess.run([program, folder / "decoder.program", str(steps)], check=True, capture_output=True).stdout)

        yield "GPT decoding", "C++", 1.1, lambda: fastest(ours), compiled


def bound_runs(path, caches, context):
    """A step of ONNX Runtime: inputs and outputs are bound to buffers, and two sets of caches take turns."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs, outputs = ([port.name for port in side] for side in (session.get_inputs(), session.get_outputs()))
    value = onnxruntime.OrtValue.ortvalue_from_numpy
    turns = [[value(np.zeros(tuple(c.shape), np.float32)) for c in caches] for _ in range(2)]
    token, positions = value(np.array([7])), [value(np.array([i])) for i in range(context)]
    logits = value(np.zeros((1, 256), np.float32))
    bindings = []
    for turn in range(2):
        binding = session.io_binding()
        binding.bind_ortvalue_input(inputs[0], token)
        for name, cache in zip(inputs[2:], turns[turn]):
            binding.bind_ortvalue_input(name, cache)
        binding.bind_ortvalue_output(outputs[0], logits)
        for name, cache in zip(outputs[1:], turns[1 - turn]):
            binding.bind_ortvalue_output(name, cache)
        bindings.append(binding)

    def run(i):
        binding = bindings[i % 2]
        binding.bind_ortvalue_input(inputs[1], positions[i])
        session.run_with_iobinding(binding)
        return logits.numpy()

    return run


def compare(pattern, rounds):
    table = []
    print(f"\n{'':32}{'tenon us':>12}{'other us':>14}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as name:
        for rows in (weights_rows, first_result_rows, decoding_rows):
            with contextlib.suppress(ImportError):
                for row, beside, bound, *runs in rows(pathlib.Path(name)):
                    if not pattern.search(row):
                        continue
                    best = [min(times) for times in zip(*([run() / 1000 for run in runs] for _ in range(rounds)))]
                    ratio = best[0] / best[1]
                    table.append({"row": f"{row}, {beside}", "tenon": best[0], "other": best[1], "ratio": ratio, "bound": bound})
                    print(f"{row + ', ' + beside:32}{best[0]:>12,.1f}{best[1]:>14,.1f}{ratio:>8.2f}{'  above its bound' if ratio > bound else ''}")
    return table
